"""Sending answers: large ones in pieces, each made in a thread once the client has taken the earlier ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from anyio import to_thread
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from plainrisk.serve.requests import JSON

__all__ = ["TITLES", "Pieces", "cut", "json_reply", "problem", "rows_reply"]

PROBLEM = "application/problem+json"
AT_ONCE = 64  # rows written in the event loop; more are written in a thread, so that other requests need not wait
PIECE = 2**18  # bytes

TITLES = {
    401: "Not allowed",
    404: "Not found",
    405: "Wrong method",
    408: "Too slow",
    413: "Too large",
    415: "Wrong kind of body",
    422: "Wrong input",
    429: "Too many requests",
    500: "Error of the service",
    503: "Not now",
}


def json_reply(content: Any, headers: Mapping[str, str] | None = None, *, status: int = 200) -> Response:
    """Answer with plain data."""
    return Response(msgspec.json.encode(content), status, media_type=JSON, headers=headers)


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Answer with an error (RFC 9457)."""
    body = {"title": TITLES.get(status, "Refused"), "status": status, "detail": detail}
    return Response(msgspec.json.encode(body), status, media_type=PROBLEM, headers=headers)


class Pieces(Response):
    """An answer in pieces; if the client does not read it all in time, the connection is closed.

    Parameters
    ----------
    make : returns the piece from an offset, and the offset of the next; None after the last
    seconds : the time limit for all of it
    """

    def __init__(
        self,
        make: Callable[[int], tuple[bytes, int | None]],
        seconds: float,
        media_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(None, 200, headers, media_type)
        self.make, self.seconds = make, seconds
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer; before each piece, wait until the client has received most of the earlier ones."""
        offset: int | None = 0
        try:
            async with asyncio.timeout(self.seconds):
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                while offset is not None:
                    piece, offset = await to_thread.run_sync(self.make, offset)
                    await send({"type": "http.response.body", "body": piece, "more_body": offset is not None})
        except TimeoutError:
            raise ClientDisconnect from None  # the server closes a connection whose answer is not complete


def cut(content: bytes, at: int) -> tuple[bytes, int | None]:
    """Return a piece of bytes from an offset on, and the offset of the next piece."""
    return content[at : at + PIECE], at + PIECE if at + PIECE < len(content) else None


def rows_reply(
    head: Mapping[str, Any], answers: Any, tail: Mapping[str, Any], seconds: float, headers: Mapping[str, str]
) -> Response:
    """Answer for rows with JSON: the head, an entry per row, the tail; all at once if there are few rows."""
    n_rows = len(answers)
    if n_rows <= AT_ONCE:
        return json_reply({**head, "rows": [answers.to_dict(i) for i in range(n_rows)], **tail}, headers)

    def piece(start: int) -> tuple[bytes, int | None]:
        out = bytearray(b"" if start else msgspec.json.encode(head)[:-1] + b',"rows":[')
        stop = start
        while stop < n_rows and len(out) < PIECE:
            out += (b"," if stop else b"") + msgspec.json.encode(answers.to_dict(stop))
            stop += 1
        if stop < n_rows:
            return bytes(out), stop
        return bytes(out) + b"]," + msgspec.json.encode(tail)[1:], None

    return Pieces(piece, seconds, JSON, headers)
