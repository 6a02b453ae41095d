"""The files at the root of the repository that belong to the site, as pages whose links lead where they led."""

import posixpath
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
FOLDER = "docs/contributing/pages"
NAMES = ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")
LINK = re.compile(r"\[([^\]\n]+)\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)")


def moved(link: re.Match[str]) -> str:
    """Return a link as it must be written in the folder of the pages; what is not in the site is named."""
    text, target, part = link[1], link[2], link[3] or ""
    if target in NAMES:
        return f"[{text}]({target}{part})"
    if target.startswith("docs/"):
        return f"[{text}]({posixpath.relpath(target, FOLDER)}{part})"
    return f"`{target}`"


def write(app: Sphinx) -> None:
    """Write the pages where Sphinx finds them."""
    (ROOT / FOLDER).mkdir(exist_ok=True)
    for name in NAMES:
        text = (ROOT / name).read_text(encoding="utf-8")
        (ROOT / FOLDER / name).write_text(LINK.sub(moved, text), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write before pages are looked for."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
