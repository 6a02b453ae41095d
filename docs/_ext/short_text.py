"""llms.txt: the pages of the site in one file of text, each with its address and first sentence."""

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

# Pages made from the code, of which there are many: their index is listed, they are not.
MADE = ("reference/generated/", "gallery/plot_", "sg_execution_times", "genindex")


def first_sentence(page: nodes.document) -> str:
    """Return the first sentence of the first paragraph that is one."""
    for paragraph in page.findall(nodes.paragraph):
        words = " ".join(paragraph.astext().split())
        if len(words) > 30 and isinstance(paragraph.parent, nodes.section):
            return re.split(r"(?<=[.:])\s", words)[0]
    return ""


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the list at the end of a build."""
    if error or app.builder.format != "html":
        return
    lines = ["# plainrisk", "", "> Risk models whose parts add up, in plain probability.", ""]
    for name in sorted(app.env.found_docs, key=lambda name: (name.count("/"), name)):
        if not name.startswith(MADE):
            title = app.env.titles[name].astext()
            lines.append(f"- [{title}]({name}.html): {first_sentence(app.env.get_doctree(name))}")
    (Path(app.outdir) / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write after everything else."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
