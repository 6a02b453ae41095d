"""From a payload to HTML. Nothing is computed here.

The page is built once (`make page`), so the hashes of its script and style, and thus its security policy, are the same
for every model. The payload is in an element that browsers do not execute.
"""

from __future__ import annotations

import functools
import html
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import msgspec

__all__ = ["frame", "page"]

_PAYLOAD = '<script type="application/json" id="payload">'
_TITLE = "<title>plainrisk</title>"


@functools.cache
def _template() -> str:
    return files("plainrisk.report").joinpath("page.html").read_text(encoding="utf-8")


def page(payload: Mapping[str, Any]) -> str:
    """Return the page that shows a payload; the same payload gives the same text.

    >>> "<b>" in page({"title": "<b>", "models": []}).split("<body>")[0]
    False
    """
    # Only "<" can end a script element or begin a comment in it; JSON may escape it.
    text = msgspec.json.encode(payload).decode().replace("<", "\\u003c")
    title = f"<title>{html.escape(str(payload['title']))}</title>"
    head, mark, tail = _template().partition(_PAYLOAD)
    return head.replace(_TITLE, title) + mark + text + tail


def frame(payload: Mapping[str, Any], height: int = 720) -> str:
    """Return the page in a sandboxed frame for notebooks: it can run its own script, and nothing else."""
    inside = html.escape(page(payload))
    return (
        f'<iframe sandbox="allow-scripts" title="{html.escape(str(payload["title"]))}" width="100%" '
        f'height="{height}" frameborder="0" srcdoc="{inside}"></iframe>'
    )
