"""The gallery and the notebooks: every program and every cell runs; notebooks are committed without outputs."""

from __future__ import annotations

import json
import runpy
from importlib.util import find_spec
from pathlib import Path

import pytest

plt = pytest.importorskip("matplotlib.pyplot")

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted((ROOT / "examples").glob("plot_*.py"))
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
# What a program needs beside the package, where it is not there in every environment.
NEEDED = {"plot_14_challengers.py": ("xgboost", "pandas"), "plot_15_export.py": ("duckdb",)}


def test_the_gallery_has_what_its_head_says():
    assert len(PROGRAMS) == 15
    assert "Fifteen" in (ROOT / "examples" / "GALLERY_HEADER.rst").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_of_the_gallery_draws(path, tmp_path, monkeypatch):
    for name in NEEDED.get(path.name, ()):
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path))
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    for figure in figures:
        figure.draw_without_rendering()
        assert any(axes.has_data() for axes in figure.axes)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_as_it_was_written(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert cells[0]["cell_type"] == "markdown"
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells if cell["cell_type"] == "code")


KERNEL = ("nbclient", "nbformat", "ipykernel", "pandas")


@pytest.mark.skipif(
    any(find_spec(name) is None for name in KERNEL), reason=f"runs a notebook: needs {', '.join(KERNEL)}"
)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    import nbclient
    import nbformat

    monkeypatch.delenv("MPLBACKEND")  # the kernel's own shows pictures
    book = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(book, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    kinds = {kind for cell in book.cells for out in cell.get("outputs", []) for kind in out.get("data", {})}
    assert {"text/plain", "image/png"} <= kinds


def test_there_are_three_notebooks():
    assert [path.stem for path in NOTEBOOKS] == ["scikit_learn", "scorecard", "validator"]
