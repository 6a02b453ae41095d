"""Formulas as MathML, which every browser draws by itself: no script is loaded for them."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

# What LaTeX knows and docutils does not; brackets of MathML grow by themselves.
_SPELLED = {r"\\[bB]ig(?![a-zA-Z])": "", r"\\tfrac(?![a-zA-Z])": r"\\frac", r"\\dots(?![a-zA-Z])": r"\\ldots"}


def mathml(node: nodes.Element, *, as_block: bool) -> str:
    """Return a formula as MathML."""
    tex = node.astext()
    for command, spelled in _SPELLED.items():
        tex = re.sub(command, spelled, tex)
    return tex2mathml(tex, as_block=as_block)


def inline(page: Any, node: nodes.math) -> None:
    """Write a formula within a sentence."""
    page.body.append(mathml(node, as_block=False))
    raise nodes.SkipNode


def block(page: Any, node: nodes.math_block) -> None:
    """Write a formula on lines of its own."""
    page.body.append(f'<div class="math">{mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer under the name that conf.py gives."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
