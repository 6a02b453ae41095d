"""Middleware around every request: key, rate limit, time, counters, and a log without applicants' data."""

from __future__ import annotations

import itertools
import logging
import re
import secrets
import time
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from plainrisk.serve.replies import problem

if TYPE_CHECKING:
    from plainrisk.serve.app import Service

__all__ = ["Watch"]

LOG = logging.getLogger("plainrisk.serve")

OPEN_PATHS = ("/health/live", "/health/ready", "/v2/health/live", "/v2/health/ready")
TURN = 1000  # answers after which one of several workers closes a connection, so that its client may reach another
REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")


class Watch:
    """The outermost layer, which turns every error inside it into an answer."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service, self._answers = app, service, itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status, headers = time.perf_counter(), 0, dict(scope["headers"])
        given = headers.get(b"x-request-id", b"")
        request = given.decode() if REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        key = self.service.keys.name_of(headers.get(b"authorization", b"")) if self.service.keys.wanted else None
        scope.setdefault("state", {}).update(request=request, key=key)

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *self._headers(start, request)]
            await send(message)

        try:
            refusal = self._refuse(scope, key)
            await (self.app if refusal is None else refusal)(scope, receive, sent)
        except ClientDisconnect:
            status = 499
        except Exception:
            LOG.exception("request %s failed", request)
            if not status:
                await problem(500, "Something went wrong inside the service; its log says what.")(scope, receive, sent)
        self._note(scope, status, time.perf_counter() - start)

    def _refuse(self, scope: Scope, key: str | None) -> Response | None:
        """Return the refusal of a request without a valid key or beyond the rate limit; None if it is answered."""
        if scope["path"] in OPEN_PATHS:
            return None
        if key is None and self.service.keys.wanted:
            refusal = problem(401, "The API key is missing or wrong: send it as 'Authorization: Bearer KEY'.")
            for scheme in ("Bearer", "Basic"):  # browsers use the second
                refusal.headers.append("www-authenticate", f'{scheme} realm="plainrisk"')
            return refusal
        if not self.service.rate.allows(key or ""):
            return problem(429, "There are too many requests with this key. Wait for a second.", {"retry-after": "1"})
        return None

    def _headers(self, start: float, request: str) -> list[tuple[bytes, bytes]]:
        spent = f"app;dur={1000 * (time.perf_counter() - start):.3f}".encode()
        headers = [(b"server-timing", spent), (b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
        headers.append((b"x-request-id", request.encode()))
        # A few long-lived connections may all have reached one worker.
        is_last = self.service.several and next(self._answers) % TURN == 0
        return [*headers, (b"connection", b"close")] if is_last or self.service.draining else headers

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route, state = scope.get("route"), scope["state"]
        path = route.path if route is not None else "(unknown)"
        self.service.counts.requests.labels(path, str(status)).inc()
        self.service.counts.seconds.labels(path).observe(seconds)
        rows, client = state.get("rows"), scope.get("client")
        rows_text = "" if rows is None else f" {rows:,} rows"
        who = f"{client[0] if client else '-'} {state['key'] or '-'} {state['request']}"
        LOG.info("%s %s %s %d%s %.1f ms", who, scope["method"], path, status, rows_text, 1000 * seconds)
