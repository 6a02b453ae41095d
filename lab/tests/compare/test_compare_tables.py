from __future__ import annotations

import sys

import numpy as np
import polars as pl
import pytest

from plainrisk_lab.compare import (
    as_results,
    bayesian_signed_rank,
    critical_difference_diagram,
    effect_sizes,
    friedman,
    hodges_lehmann_table,
    wilcoxon_holm,
)
from plainrisk_lab.tables import Table, Tabular

VALUES = {"A_1": [0.9, 0.8, 0.7, 0.6], "B|2": [0.8, 0.7, 0.6, 0.7]}


class Sample(Tabular):
    def _table(self):
        rows = [["x & y", -0.00001, float("nan")], ["p|q\\", 2.0, -1.5]]
        return Table(("name", "first", "second"), rows, frozenset({(1, 2)}), note="50% of *all*")


def test_markdown():
    assert Sample().to_markdown() == (
        "| name | first | second |\n"
        "| --- | ---: | ---: |\n"
        "| x & y | 0.0000 |  |\n"
        "| p\\|q\\\\ | 2.0000 | **-1.5000** |\n"
        "\n"
        "50% of \\*all\\*\n"
    )


def test_latex():
    assert Sample().to_latex() == (
        "\\begin{tabular}{lrr}\n"
        "\\toprule\n"
        "name & first & second \\\\\n"
        "\\midrule\n"
        "x \\& y & 0.0000 &  \\\\\n"
        "p\\textbar{}q\\textbackslash{} & 2.0000 & \\textbf{$-$1.5000} \\\\\n"
        "\\bottomrule\n"
        "\\multicolumn{3}{l}{\\footnotesize 50\\% of *all*} \\\\\n"
        "\\end{tabular}\n"
    )


@pytest.mark.parametrize(
    "result",
    [
        friedman(VALUES),
        wilcoxon_holm(VALUES),
        hodges_lehmann_table(VALUES),
        effect_sizes(VALUES),
        bayesian_signed_rank(*VALUES.values(), samples=100),
        critical_difference_diagram(VALUES),
    ],
    ids=lambda result: type(result).__name__,
)
def test_every_result_is_a_table_three_ways(result):
    frame = result.to_frame()
    width = len(frame.columns)
    lines = result.to_markdown().splitlines()
    assert [cell.strip() for cell in lines[0].replace("\\|", "/").strip("|").split("|")] == [
        str(name).replace("|", "/") for name in frame.columns
    ]
    body = result.to_latex().split("\\midrule\n")[1].split("\\bottomrule")[0].strip().splitlines()
    assert len(body) == len(frame) == sum(line.startswith("|") for line in lines) - 2
    assert all(line.count("&") == width - 1 for line in body)


def test_text_is_aligned_and_marks_significant_cells():
    assert repr(Sample()).splitlines() == [
        "name    first    second",
        "x & y  0.0000",
        "p|q\\   2.0000  -1.5000*",
        "50% of *all*",
    ]


def test_a_printed_result_stays_short():
    rng = np.random.default_rng(0)
    table = {f"classifier {j}": rng.normal(size=100) for j in range(40)}
    for test in (friedman, wilcoxon_holm, hodges_lehmann_table, effect_sizes, critical_difference_diagram, as_results):
        text = repr(test(table))
        assert len(text) < 3_000
        assert "all of them in to_frame()" in text


def test_polars_when_there_is_no_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    frame = friedman(VALUES).to_frame()
    assert isinstance(frame, pl.DataFrame)
    assert frame["average rank"].to_list() == pytest.approx([1.25, 1.75])


def test_frames_hold_numbers_in_full():
    result = friedman({"A": np.arange(7.0), "B": np.arange(7.0)[::-1]})
    assert result.to_frame()["average rank"].tolist() == result.ranks.tolist()
