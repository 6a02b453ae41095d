from __future__ import annotations

import sys

import pytest
from matplotlib.figure import Figure

from plainrisk.errors import DataError, MissingExtraError
from plainrisk.form import ALPHA_STAR
from plainrisk_lab.paper.alpha import squared_error
from plainrisk_lab.paper.alpha_plot import plot_alpha


def test_figure_is_saved_with_both_panels(tmp_path):
    path = tmp_path / "alpha.png"
    figure = plot_alpha(path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert len(figure.axes) == 2


def test_axes_are_drawn_into_and_mark_the_minimum():
    axes = Figure().subplots(1, 2)
    assert plot_alpha(axes) is axes[0].figure
    curve, marked = axes[0].lines
    assert marked.get_xydata().tolist() == [[ALPHA_STAR, squared_error(ALPHA_STAR)]]
    assert curve.get_ydata().min() >= squared_error(ALPHA_STAR)
    sigmoid, line = axes[1].lines
    assert sigmoid.get_ydata()[280] == 0.5
    assert line.get_xydata()[1:3].tolist() == [[-ALPHA_STAR, 0.0], [ALPHA_STAR, 1.0]]


def test_one_axes_is_not_enough():
    with pytest.raises(DataError, match="needs a path or two axes, got 1 axes"):
        plot_alpha([Figure().subplots()])


def test_missing_matplotlib_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'plainrisk\[plot\]'"):
        plot_alpha(tmp_path / "alpha.png")
