"""How the pictures of the gallery look: plain axes, sharp on any screen."""

from typing import Any

STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "figure.constrained_layout.use": True,
    "legend.frameon": False,
    "savefig.dpi": 150,
}


def reset(gallery: Any, name: str) -> None:
    """Set the style anew before each program; sphinx-gallery calls it."""
    import matplotlib as mpl

    mpl.rcdefaults()
    mpl.rcParams.update(STYLE)
