"""The application: routes, limits, keys, counters, and errors that name the field and show nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import msgspec
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from plainrisk.errors import PlainriskError
from plainrisk.serve import inference
from plainrisk.serve.answers import about, answer
from plainrisk.serve.counts import Counts
from plainrisk.serve.openapi import document
from plainrisk.serve.requests import ARROW, JSON, VERBS, TooLargeError, arrow_of, rows_of_arrow
from plainrisk.serve.served import Served, Shelf
from plainrisk.serve.settings import Settings

__all__ = ["make_app"]

LOG = logging.getLogger("plainrisk.serve")

PROBLEM = "application/problem+json"
AT_ONCE = 64  # rows worked on where requests are read; more go to a thread, so that others need not wait
THREADS = 4  # threads of one process for large requests
RELOAD_SECONDS = 1.0
OPEN_PATHS = ("/health/live", "/health/ready", "/v2/health/live", "/v2/health/ready")


def make_app(settings: Settings, shelf: Shelf | None = None) -> Starlette:
    """Return the service as an ASGI application.

    Parameters
    ----------
    settings : Settings
    shelf : the models; by default those of the settings, read when the application starts

    Examples
    --------
    >>> app = make_app(Settings(models=("model.json",)))
    >>> "/score" in [route.path for route in app.routes]
    True
    """
    service = Service(settings, shelf or Shelf(settings.models))
    app = Starlette(
        routes=list(service.routes()),
        lifespan=service.lifespan,
        middleware=[
            Middleware(Watch, service=service),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(settings.hosts), www_redirect=False),
        ],
        exception_handlers={HTTPException: _refused, PlainriskError: _wrong_input},  # type: ignore[dict-item]
    )
    app.state.service = service
    return app


class Service:
    """The handlers, and what they share."""

    def __init__(self, settings: Settings, shelf: Shelf) -> None:
        self.settings, self.shelf, self.counts = settings, shelf, Counts()
        self.draining, self.limiter = False, CapacityLimiter(THREADS)

    def routes(self) -> list[Route]:
        """Return all paths."""
        verbs = [
            Route(f"{prefix}/{verb}", self._verb(verb), methods=["POST"])
            for verb in VERBS
            for prefix in ("", "/models/{model}")
        ]
        seen = [
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
        return [*verbs, infer, *(Route(path, handler, methods=["GET"]) for path, handler in seen)]

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Read the models before the first request, and look for new ones until the last."""
        if not self.shelf.ready:
            self.shelf.open()
        for served in self.shelf.models.values():
            self._tell(served)
        watching = asyncio.create_task(self._reload())
        try:
            yield
        finally:
            watching.cancel()

    async def _reload(self) -> None:
        while True:
            await asyncio.sleep(RELOAD_SECONDS)
            for name, error in await to_thread.run_sync(lambda: list(self.shelf.refresh())):
                self.counts.reloads.labels(name, "failed" if error else "done").inc()
                if error is None:
                    self._tell(self.shelf.models[name])
                else:
                    LOG.error("model %s was not replaced: %s", name, error)

    def _tell(self, served: Served) -> None:
        self.counts.models.labels(served.name, served.sha256).set(1)
        LOG.info("model %s answers, form %s, certificate valid", served.name, served.sha256[:12])

    # ---- what is asked

    def _verb(self, verb: str) -> Callable[[Request], Awaitable[Response]]:
        most = self.settings.max_rows if verb != "what-if" else max(1, self.settings.max_rows // 100)

        async def handle(request: Request) -> Response:
            served, body = self._served(request), await self._body(request)
            arrow = _kind(request) == ARROW
            if arrow and verb == "what-if":
                raise HTTPException(415, "what-if needs a target beside the rows: send JSON.")
            asked: Any = VERBS[verb]() if arrow else served.requests.read(verb, body)
            rows = rows_of_arrow(body) if arrow else asked.rows
            n_rows, options = len(rows), asked.options()
            self._refuse_many(n_rows, most)
            table = rows if arrow else served.requests.table(rows)
            found = await self._work(lambda: answer(served, options, table), n_rows > AT_ONCE or verb == "what-if")
            self.counts.rows.labels(served.name, verb).inc(n_rows)
            request.state.rows = n_rows
            if ARROW in request.headers.get("accept", ""):
                return Response(arrow_of(found.columns()), media_type=ARROW, headers=_of(served))
            return _json({"model": served.identity, "rows": found.to_dict()}, served)

        return handle

    async def infer(self, request: Request) -> Response:
        """Answer a request of the Open Inference Protocol."""
        served, asked = self._served(request), inference.read_inference(await self._body(request))
        n_rows = max((len(tensor.data) for tensor in asked.inputs), default=0)
        self._refuse_many(n_rows, self.settings.max_rows)
        found = await self._work(lambda: inference.infer(served, asked), n_rows > AT_ONCE)
        self.counts.rows.labels(served.name, "infer").inc(n_rows)
        request.state.rows = n_rows
        return _json(found, served)

    def _refuse_many(self, n_rows: int, most: int) -> None:
        if n_rows > most:
            raise TooLargeError(f"{n_rows:,} rows are more than the {most:,} this service takes at once.")

    async def _work(self, task: Callable[[], Any], large: bool) -> Any:
        """Do a small task here, a large one in a thread; one that takes too long is given up."""
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
        found = self.shelf.first if name is None else self.shelf.models.get(name)
        if found is None:
            raise HTTPException(404, f"There is no such model. Known: {', '.join(self.shelf.models)}.")
        return found

    # ---- what is looked at

    async def page(self, request: Request) -> Response:
        """Show the decision page."""
        served = self._served(request)
        html = await to_thread.run_sync(lambda: served.page)
        return Response(html, media_type="text/html; charset=utf-8", headers=_of(served))

    async def model(self, request: Request) -> Response:
        """Tell what is known of a model."""
        served = self._served(request)
        return _json(about(served), served)

    async def live(self, request: Request) -> Response:
        """Say that the process answers."""
        return _json({"live": True})

    async def ready(self, request: Request) -> Response:
        """Say whether requests should be sent here: all models certified, and no signal to stop."""
        ready = self.shelf.ready and not self.draining
        return _json({"ready": ready}, status=200 if ready else 503)

    async def model_ready(self, request: Request) -> Response:
        """Say whether one model answers."""
        served = self._served(request)
        return _json({"name": served.name, "ready": True}, served)

    async def server(self, request: Request) -> Response:
        """Tell what this server is, in the words of the Open Inference Protocol."""
        return _json(inference.server_metadata())

    async def metadata(self, request: Request) -> Response:
        """Tell the inputs and outputs of a model, in the words of the Open Inference Protocol."""
        served = self._served(request)
        return _json(inference.model_metadata(served), served)

    async def metrics(self, request: Request) -> Response:
        """Tell the counters."""
        return Response(self.counts.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def openapi(self, request: Request) -> Response:
        """Describe all of this."""
        return _json(document(list(self.shelf.models.values()), self.settings))


class Watch:
    """Around every request: the key, the clock, the counters and one line of log without an applicant's data."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; whatever goes wrong inside is an answer, too."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0
        scope.setdefault("state", {})

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *self._headers(start)]
            await send(message)

        try:
            if self._allowed(scope):
                await self.app(scope, receive, sent)
            else:
                await _problem(401, "The API key is missing or wrong: send it as 'Authorization: Bearer KEY'.")(
                    scope, receive, sent
                )
        except ClientDisconnect:
            status = 499
        except Exception:
            LOG.exception("a request failed")
            if not status:
                await _problem(500, "Something went wrong inside the service; its log says what.")(scope, receive, sent)
        self._note(scope, status, time.perf_counter() - start)

    def _allowed(self, scope: Scope) -> bool:
        key = self.service.settings.key
        if key is None or scope["path"] in OPEN_PATHS:
            return True
        scheme, _, sent = dict(scope["headers"]).get(b"authorization", b"").partition(b" ")
        # RFC 9110: the name of a scheme is read without regard to case.
        return scheme.lower() == b"bearer" and hmac.compare_digest(sent, key.encode())

    def _headers(self, start: float) -> list[tuple[bytes, bytes]]:
        spent = f"app;dur={1000 * (time.perf_counter() - start):.3f}".encode()
        found = [(b"server-timing", spent), (b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
        return [*found, (b"connection", b"close")] if self.service.draining else found

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = scope.get("route")
        path = route.path if route is not None else "(unknown)"
        self.service.counts.requests.labels(path, str(status)).inc()
        self.service.counts.seconds.labels(path).observe(seconds)
        rows = scope["state"].get("rows")
        told = "" if rows is None else f" {rows:,} rows"
        LOG.info("%s %s %d%s %.1f ms", scope["method"], path, status, told, 1000 * seconds)


# ---- answers


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _of(served: Served | None) -> dict[str, str]:
    return {} if served is None else {"x-model-sha256": served.sha256}


def _json(content: Any, served: Served | None = None, *, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status, media_type=JSON, headers=_of(served))


def _problem(status: int, detail: str) -> Response:
    body = {"title": _TITLES.get(status, "Refused"), "status": status, "detail": detail}
    return Response(msgspec.json.encode(body), status, media_type=PROBLEM)


_TITLES = {
    401: "Not allowed",
    404: "Not found",
    405: "Wrong method",
    408: "Too slow",
    413: "Too large",
    415: "Wrong kind of body",
    422: "Wrong input",
    500: "Error of the service",
    503: "Not now",
}


async def _refused(request: Request, error: HTTPException) -> Response:
    found = _problem(error.status_code, error.detail)
    for name, value in (error.headers or {}).items():
        found.headers[name] = value
    return found


async def _wrong_input(request: Request, error: PlainriskError) -> Response:
    return _problem(413 if isinstance(error, TooLargeError) else 422, str(error))
