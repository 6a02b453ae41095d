"""The decision page of German credit, fitted while the site is built and shown inside it."""

from pathlib import Path
from typing import Any

import polars as pl
from sphinx.application import Sphinx

import plainrisk as pr

NAME = "decision-page.html"


def write(app: Sphinx) -> None:
    """Fit the default model and write its page beside the pages of the site."""
    folder = Path(app.outdir)
    folder.mkdir(parents=True, exist_ok=True)
    german = pr.datasets.load("german", backend="polars")
    model = pr.make_classifier("SmoothARM1", german.schema).fit(german.frame, german.target)
    rows = german.frame.with_columns(pl.Series(german.schema.target, german.target))
    model.report(folder / NAME, rows, applicants=12, title="German credit")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the page for builders of HTML."""
    app.connect("builder-inited", lambda app: write(app) if app.builder.format == "html" else None)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
