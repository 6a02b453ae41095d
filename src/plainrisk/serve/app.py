"""The application: routes, limits, keys, counters, and errors that name the field but never its value."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import anyio
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from plainrisk.audit_log import AuditLog
from plainrisk.errors import DataError, OutputError, PlainriskError
from plainrisk.serve import inference
from plainrisk.serve.answers import about, answer, audited, values_of, with_receipts
from plainrisk.serve.arrow import arrow_of, rows_of_arrow
from plainrisk.serve.counts import Counts
from plainrisk.serve.keys import Keys, Rate
from plainrisk.serve.openapi import document
from plainrisk.serve.rejects import Sifted, errors_of
from plainrisk.serve.replies import Pieces, cut, json_reply, problem, rows_reply
from plainrisk.serve.requests import ARROW, JSON, VERBS, TooLargeError
from plainrisk.serve.served import Served, Shelf
from plainrisk.serve.settings import Settings
from plainrisk.serve.supervisor import Place
from plainrisk.serve.watch import Watch
from plainrisk.signing import read_private_key

__all__ = ["make_app"]

T = TypeVar("T")
_Answered = tuple[int, int, Mapping[str, Mapping[str, int]], Response]  # rows, rejected rows, counts of values, reply

LOG = logging.getLogger("plainrisk.serve")

LARGE = 2**14  # bytes; the work on a larger body is done in a thread, so that other requests need not wait
THREADS = 4  # threads of one process for large requests
RELOAD_SECONDS = 1.0


def make_app(settings: Settings, shelf: Shelf | None = None, place: Place | None = None) -> Starlette:
    """Return the service as an ASGI application.

    Parameters
    ----------
    settings : Settings
    shelf : the models; by default those of the settings, read when the application starts
    place : of a worker among several

    Examples
    --------
    >>> app = make_app(Settings(models=("model.json",)))
    >>> "/score" in [route.path for route in app.routes]
    True
    """
    service = Service(settings, shelf or Shelf(settings.models, settings.signed_by), place)
    app = Starlette(
        routes=list(service.routes()),
        lifespan=service.lifespan,
        middleware=[
            Middleware(Watch, service=service),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(settings.hosts), www_redirect=False),
        ],
        exception_handlers={HTTPException: _refused, PlainriskError: _wrong_input},  # type: ignore[dict-item]
    )
    app.router.redirect_slashes = False  # a path is as it is written; a redirect would repeat the request's own words
    app.state.service = service
    return app


class Service:
    """The handlers and what they share."""

    def __init__(self, settings: Settings, shelf: Shelf, place: Place | None) -> None:
        self.settings, self.shelf, self.place = settings, shelf, place
        self.counts = Counts() if place is None else Counts(place.folder, f"worker{place.number}")
        self.keys, self.rate = Keys(settings), Rate(settings.rate)
        self.audit = None if settings.audit is None else AuditLog(_audit_file(settings.audit, place))
        self.draining, self.several, self.limiter = False, place is not None, CapacityLimiter(THREADS)
        self.receipt_key = None if settings.receipt_key is None else read_private_key(settings.receipt_key)

    def routes(self) -> list[Route]:
        """Return the routes."""
        verbs = [
            Route(f"{prefix}/{verb}", self._verb(verb), methods=["POST"])
            for verb in VERBS
            for prefix in ("", "/models/{model}")
        ]
        pages = [
            ("/", self.page),
            ("/models/{model}", self.page),
            ("/model", self.model),
            ("/models/{model}/model", self.model),
            ("/health/live", self.live),
            ("/health/ready", self.ready),
            ("/metrics", self.metrics),
            ("/openapi.json", self.openapi),
            ("/v2", self.server),
            ("/v2/health/live", self.live),
            ("/v2/health/ready", self.ready),
            ("/v2/models/{model}", self.metadata),
            ("/v2/models/{model}/ready", self.model_ready),
        ]
        infer = Route("/v2/models/{model}/infer", self.infer, methods=["POST"])
        return [*verbs, infer, *(Route(path, handler, methods=["GET"]) for path, handler in pages)]

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Read the models before the first request, and look for new ones until the last."""
        if not self.shelf.ready:
            self.shelf.open()
        for served in self.shelf.models.values():
            LOG.info("model %s answers, form %s, certificate valid", served.name, served.sha256[:12])
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            if self.audit is not None:
                self.audit.close()

    async def _watch(self) -> None:
        """Look for new models and keys, and send the supervisor a sign of life."""
        while True:
            if self.place is None:
                await to_thread.run_sync(self.counts.refresh, self.shelf)
            else:
                self.place.beats.send_bytes(b".")
                await to_thread.run_sync(lambda: list(self.shelf.refresh()))  # the supervisor has reported them
            await to_thread.run_sync(self.keys.refresh)
            await asyncio.sleep(RELOAD_SECONDS)

    # ---- requests

    def _verb(self, verb: str) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            served, body = self._served(request), await self._body(request)
            receipts = verb == "decide" and self._wants_receipts(request)
            large = len(body) > LARGE or verb == "what-if" or receipts
            work = functools.partial(self._answer, request, served, verb, body, receipts)
            n_rows, n_rejects, values, reply = await self._work(work, large)
            self.counts.rows.labels(served.name, verb).inc(n_rows - n_rejects)
            if n_rejects:
                self.counts.rejects.labels(served.name, verb).inc(n_rejects)
            self.counts.note_values(served.name, values)
            request.state.rows = n_rows
            return reply

        return handle

    def _wants_receipts(self, request: Request) -> bool:
        """Whether a request for decisions also asks for receipts."""
        asked = request.query_params.get("receipt", "0")
        if asked not in ("0", "1"):
            raise DataError("receipt must be 0 or 1, as in /decide?receipt=1.")
        if asked == "1" and self.receipt_key is None:
            raise DataError("This service has no key to sign receipts with. Start it with --receipt-key KEY.")
        return asked == "1"

    def _answer(self, request: Request, served: Served, verb: str, body: bytes, receipts: bool) -> _Answered:
        """Return the numbers of rows and of rejected rows, the counts of values, and the reply."""
        from_arrow, to_arrow = _kind(request) == ARROW, ARROW in request.headers.get("accept", "")
        searches = receipts or verb == "what-if"
        most = max(1, self.settings.max_rows // 100) if searches else self.settings.max_rows
        if from_arrow and verb == "what-if":
            raise HTTPException(415, "what-if needs a target beside the rows: send JSON.")
        asked: Any = VERBS[verb]() if from_arrow else served.requests.read(verb, body)
        rows: Any = rows_of_arrow(body, most, self.settings.max_bytes) if from_arrow else asked.rows
        n_rows = len(rows)
        self._refuse_many(n_rows, most)
        if to_arrow and asked.rejects:
            raise HTTPException(415, "The errors of rows come as JSON: leave out rejects, or the header accept.")
        errors = errors_of(served, rows) if asked.rejects else {}
        rows = [row for i, row in enumerate(rows) if i not in errors] if errors else rows
        table = rows if from_arrow else served.requests.table(rows)
        answers, values = answer(served, asked.options(), table), values_of(served, table)
        if self.audit is not None:
            inputs = rows.select(served.requests.features).to_dicts() if from_arrow else rows
            at = [i for i in range(n_rows) if i not in errors]
            self._audit(request, served, verb, at, inputs, [answers.to_dict(i) for i in range(len(answers))])
        answers = with_receipts(served, answers, table, self.receipt_key) if receipts else answers
        if to_arrow:
            made = arrow_of(answers.columns())
            return n_rows, 0, values, Pieces(lambda at: cut(made, at), self.settings.seconds, ARROW, _of(served))
        sifted = Sifted(answers, errors) if errors else answers
        head, seconds = {"model": served.identity}, self.settings.seconds
        return n_rows, len(errors), values, rows_reply(head, sifted, {"values": values}, seconds, _of(served))

    async def infer(self, request: Request) -> Response:
        """Answer a request of the Open Inference Protocol."""
        served, body = self._served(request), await self._body(request)

        def work() -> tuple[int, Response]:
            asked = inference.read_inference(body)
            n_rows = max((len(tensor.data) for tensor in asked.inputs), default=0)
            self._refuse_many(n_rows, self.settings.max_rows)
            response = inference.infer(served, asked)
            if self.audit is not None:
                data, names = {tensor.name: tensor.data for tensor in asked.inputs}, served.requests.features
                inputs = [{name: data[name][i] for name in names} for i in range(n_rows)]
                risks = [{"risk": risk} for risk in response["outputs"][0]["data"]]
                self._audit(request, served, "infer", range(n_rows), inputs, risks)
            return n_rows, _json(response, served)

        n_rows, reply = await self._work(work, len(body) > LARGE)
        self.counts.rows.labels(served.name, "infer").inc(n_rows)
        request.state.rows = n_rows
        return reply

    def _audit(
        self,
        request: Request,
        served: Served,
        verb: str,
        at: Sequence[int],
        inputs: Sequence[Any],
        answers: Sequence[Any],
    ) -> None:
        """Write the answers to the audit log before they are sent; if that fails, nothing is sent."""
        assert self.audit is not None
        state = request.state
        common = {"request": state.request, "key": state.key, "model": served.sha256, "verb": verb}
        try:
            self.audit.append(audited(common, at, inputs, answers, values=self.settings.audit_values))
        except OutputError as error:
            LOG.error("%s", error)
            raise HTTPException(503, "The audit log cannot be written, so nothing is answered.") from None

    def _refuse_many(self, n_rows: int, most: int) -> None:
        if n_rows > most:
            raise TooLargeError(f"{n_rows:,} rows are more than the {most:,} this service takes at once.")

    async def _work(self, task: Callable[[], T], large: bool) -> T:
        """Run a small task here and a large one in a thread; abandon a task that takes too long."""
        if not large:
            return task()
        try:
            with anyio.fail_after(self.settings.seconds):
                return await to_thread.run_sync(task, limiter=self.limiter, abandon_on_cancel=True)
        except TimeoutError:
            raise HTTPException(
                503, f"The answer took more than {self.settings.seconds:g} s. Send fewer rows."
            ) from None

    async def _body(self, request: Request) -> bytes:
        """Read the body, up to the limits of size and time."""
        most = self.settings.max_bytes
        if int(request.headers.get("content-length") or 0) > most:
            raise TooLargeError(f"The body is larger than {most:,} bytes. Send fewer rows at once.")
        kind = _kind(request)
        if kind not in (JSON, ARROW, ""):
            raise HTTPException(415, f"Send {JSON} or {ARROW}.")
        if request.headers.get("content-encoding", "identity") != "identity":
            raise HTTPException(415, "Send the body as it is, not packed; Arrow batches may be packed inside.")
        body = bytearray()
        try:
            async with asyncio.timeout(self.settings.patience):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > most:
                        raise TooLargeError(f"The body is larger than {most:,} bytes. Send fewer rows at once.")
        except TimeoutError:
            raise HTTPException(408, "The body did not arrive in time.") from None
        return bytes(body)

    def _served(self, request: Request) -> Served:
        if not self.shelf.ready:
            raise HTTPException(503, "The models are still being read and certified.")
        name = request.path_params.get("model")
        served = self.shelf.first if name is None else self.shelf.models.get(name)
        if served is None:
            raise HTTPException(404, f"There is no such model. Known: {', '.join(self.shelf.models)}.")
        return served

    # ---- pages and descriptions

    async def page(self, request: Request) -> Response:
        """Show the decision page."""
        served = self._served(request)
        html = await to_thread.run_sync(lambda: served.page)
        return Response(html, media_type="text/html; charset=utf-8", headers=_of(served))

    async def model(self, request: Request) -> Response:
        """Describe a model."""
        served = self._served(request)
        return _json(about(served), served)

    async def live(self, request: Request) -> Response:
        """Confirm that the process answers."""
        return _json({"live": True})

    async def ready(self, request: Request) -> Response:
        """Return whether requests should be sent here: all models are certified, and no signal to stop has come."""
        ready = self.shelf.ready and not self.draining
        return _json({"ready": ready}, status=200 if ready else 503)

    async def model_ready(self, request: Request) -> Response:
        """Return whether one model answers."""
        served = self._served(request)
        return _json({"name": served.name, "ready": True}, served)

    async def server(self, request: Request) -> Response:
        """Describe this server by the Open Inference Protocol."""
        return _json(inference.server_metadata())

    async def metadata(self, request: Request) -> Response:
        """Describe the inputs and outputs of a model by the Open Inference Protocol."""
        served = self._served(request)
        return _json(inference.model_metadata(served), served)

    async def metrics(self, request: Request) -> Response:
        """Return the counters."""
        return Response(self.counts.text(self.shelf), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def openapi(self, request: Request) -> Response:
        """Describe all paths by OpenAPI."""
        return await self._work(lambda: _json(document(list(self.shelf.models.values()), self.settings)), True)


# ---- answers


def _audit_file(folder: str, place: Place | None) -> Path:
    return Path(folder) / f"worker{0 if place is None else place.number}.jsonl"


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _of(served: Served | None) -> dict[str, str]:
    return {} if served is None else {"x-model-sha256": served.sha256}


def _json(content: Any, served: Served | None = None, *, status: int = 200) -> Response:
    return json_reply(content, _of(served), status=status)


async def _refused(request: Request, error: HTTPException) -> Response:
    return problem(error.status_code, error.detail, error.headers)


async def _wrong_input(request: Request, error: PlainriskError) -> Response:
    return problem(413 if isinstance(error, TooLargeError) else 422, str(error))
