from __future__ import annotations

import functools
import re
import xml.etree.ElementTree as ElementTree
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from plainrisk.errors import DataError, MissingExtraError
from plainrisk_lab.compare import critical_difference_diagram
from plainrisk_lab.diagram import SIZES, Text, build_layout, shapes, text_width
from plainrisk_lab.rank_tests import maximal_cliques

SVG = "{http://www.w3.org/2000/svg}"


@functools.cache
def drawn_width(text, size, bold=False):
    """The width matplotlib really draws, independent of the layout's own estimate."""
    font = FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")
    return TextPath((0, 0), text, size=size, prop=font).get_extents().width if text.strip() else 0.0


def boxes(layout):
    """Every text on the picture as (left, top, right, bottom)."""
    found = []
    for shape in shapes(layout):
        if isinstance(shape, Text):
            width = drawn_width(shape.text, SIZES.font, shape.bold)
            left = shape.x - {"start": 0.0, "middle": 0.5, "end": 1.0}[shape.anchor] * width
            found.append((left, shape.y - 0.8 * SIZES.font, left + width, shape.y + 0.25 * SIZES.font))
    return found


def assert_legible(layout):
    texts = boxes(layout)
    for left, top, right, bottom in texts:
        assert left >= 0
        assert top >= 0
        assert right <= layout.width
        assert bottom <= layout.height
    for a, b in combinations(texts, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], (a, b)


def random_layout(seed, k, levels):
    """Ranks with many ties, and the cliques of a random graph."""
    rng = np.random.default_rng(seed)
    ranks = 1 + (k - 1) * rng.integers(0, levels + 1, size=k) / levels
    names = [f"{'wWm iL_'[i % 7] * int(rng.integers(1, 9))}{i}" for i in range(k)]
    differs = np.abs(ranks[:, None] - ranks[None, :]) + rng.normal(scale=0.5, size=(k, k)) > 0.3 * k
    cliques = [c for c in maximal_cliques(~(differs | differs.T)) if len(c) > 1]
    title = "W" * int(rng.integers(0, 80))
    return build_layout(names, ranks, [[names[i] for i in c] for c in cliques], title, ["note " * 20])


@pytest.mark.parametrize("k", range(2, 41))
def test_no_two_texts_overlap(k):
    for levels in (1, 3, 1000):
        assert_legible(random_layout(k, k, levels))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(3, 40), levels=st.sampled_from([1, 2, 5, 40, 10**6]))
def test_stems_keep_apart_and_in_order(seed, k, levels):
    layout = random_layout(seed, k, levels)
    slots = [label.slot_x for label in layout.labels]
    assert np.diff(slots).min() >= SIZES.gap - 1e-9
    assert slots[0] >= layout.axis[0] - 1e-9
    assert slots[-1] <= layout.axis[1] + 1e-9
    assert np.all(np.diff([label.rank_x for label in layout.labels]) >= 0)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(3, 25), levels=st.sampled_from([2, 5, 10**6]))
def test_no_line_of_a_label_crosses_a_stem(seed, k, levels):
    for a in (labels := random_layout(seed, k, levels).labels):
        low, high = sorted((a.slot_x, a.end_x))
        crossed = [b.name for b in labels if b is not a and low < b.slot_x < high and b.y >= a.y]
        assert crossed == []


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(3, 25))
def test_dots_are_the_members_and_bars_keep_apart(seed, k):
    layout = random_layout(seed, k, 10)
    name_at = {label.slot_x: label.name for label in layout.labels}
    for bar in layout.bars:
        assert [name_at[x] for x in bar.dots] == list(bar.members)
        assert list(bar.dots) == sorted(bar.dots)
    for a, b in combinations(layout.bars, 2):
        assert a.y != b.y or a.dots[-1] < b.dots[0] - SIZES.gap or b.dots[-1] < a.dots[0] - SIZES.gap
    below = min(label.y for label in layout.labels)
    assert all(layout.axis_y < bar.y < below for bar in layout.bars)


def test_a_stem_stands_at_its_rank_and_ticks_at_theirs():
    layout = build_layout(list("ABCD"), np.array([1.0, 2.0, 3.5, 3.5]), [])
    ticks = {tick.text: tick.x for tick in layout.ticks if tick.text}
    places = {label.name: label.rank_x for label in layout.labels}
    assert places["A"] == pytest.approx(ticks["1"])
    assert places["B"] == pytest.approx(ticks["2"])
    assert places["C"] == pytest.approx((ticks["3"] + ticks["4"]) / 2)
    assert ticks["1"] < ticks["2"]


def test_all_ranks_alike():
    layout = build_layout(list("ABC"), np.full(3, 2.0), [list("ABC")])
    assert_legible(layout)
    assert [tick.text for tick in layout.ticks if tick.text] == ["1", "1.5", "2", "2.5", "3"]


def test_a_member_that_is_passed_over_has_no_dot():
    layout = build_layout(list("ABC"), np.array([1.0, 2.0, 3.0]), [("C", "A")])
    (bar,) = layout.bars
    assert bar.members == ("A", "C")
    middle = next(label.slot_x for label in layout.labels if label.name == "B")
    assert bar.dots[0] < middle < bar.dots[1]
    assert middle not in bar.dots


@pytest.mark.parametrize(
    "text", ["ARM1", "MixMonoXGB", "WWWW", "illicit", "naïve Жук", "a & b < c", "LC_12 (x=3)", "—…"]
)
def test_text_is_never_wider_than_estimated(text):
    assert drawn_width(text, 12.0) <= text_width(text) <= 2.2 * drawn_width(text, 12.0)


def awkward_table():
    rng = np.random.default_rng(0)
    names = ["A & <b>", 'say "hi"', "50%_of$", "line\nbreak\x00", "x" * 60]
    return dict(zip(names, rng.normal(size=(5, 20)) + np.arange(5)[:, None], strict=True))


def test_svg_is_well_formed_and_complete():
    diagram = critical_difference_diagram(awkward_table(), title="Ranks <of> & names")
    root = ElementTree.fromstring(diagram.svg)
    assert root.tag == SVG + "svg"
    texts = [element.text for element in root.iter(SVG + "text")]
    assert {"A & <b>", 'say "hi"', "50%_of$", "line break", "x" * 60, "Ranks <of> & names"} <= set(texts)
    assert len(list(root.iter(SVG + "circle"))) == sum(len(c) for c in diagram.posthoc.cliques)
    told = [element.text for element in root.iter(SVG + "title")]
    assert len(told) == len(diagram.posthoc.cliques)
    assert diagram._repr_svg_() == diagram.svg


def test_the_best_is_on_the_left():
    diagram = critical_difference_diagram(awkward_table(), higher_is_better=True)
    assert diagram.layout.labels[0].name == "x" * 60
    assert diagram.layout.labels[0].anchor == "end"
    turned = critical_difference_diagram(awkward_table(), higher_is_better=False)
    assert turned.layout.labels[0].name == "A & <b>"


def test_tikz_is_balanced_and_escaped():
    diagram = critical_difference_diagram(awkward_table())
    tikz = diagram.tikz
    assert r"50\%\_of\$" in tikz
    assert r"A \& \textless{}b\textgreater{}" in tikz
    unescaped = re.sub(r"\\[{}]", "", tikz)
    assert unescaped.count("{") == unescaped.count("}")
    commands = [line for line in tikz.splitlines() if line.startswith((r"\draw", r"\fill", r"\node"))]
    assert all(line.endswith(";") for line in commands)
    assert sum(line.startswith(r"\node") for line in commands) == len(boxes(diagram.layout))
    assert sum(line.startswith(r"\fill") for line in commands) == sum(map(len, diagram.posthoc.cliques))


@pytest.mark.parametrize(
    ("suffix", "start"),
    [("svg", b"<svg"), ("PNG", b"\x89PNG"), ("pdf", b"%PDF"), ("tex", b"% needs \\usepackage{tikz}")],
)
def test_save(tmp_path, suffix, start):
    table = awkward_table()
    diagram = critical_difference_diagram(table, title="cost in $ and $")
    first = diagram.save(tmp_path / f"first.{suffix}")
    second = diagram.save(str(tmp_path / f"second.{suffix}"))
    assert first.read_bytes().startswith(start)
    assert first.read_bytes() == second.read_bytes()


def test_the_figure_has_the_size_and_the_texts_of_the_layout():
    diagram = critical_difference_diagram(awkward_table())
    figure = diagram.figure()
    assert figure.get_size_inches() * 96 == pytest.approx([diagram.layout.width, diagram.layout.height])
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == [shape.text for shape in shapes(diagram.layout) if isinstance(shape, Text)]
    # A name with two dollar signs is a name, not mathematics.
    assert not any(text.get_parse_math() for text in figure.axes[0].texts)


def test_save_names_the_formats(tmp_path):
    diagram = critical_difference_diagram(awkward_table())
    with pytest.raises(DataError, match=r"ending must be '\.svg', '\.png', '\.pdf' or '\.tex', not '\.jpg'"):
        diagram.save(tmp_path / "x.jpg")


def test_without_matplotlib_svg_still_works(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    diagram = critical_difference_diagram(awkward_table())
    diagram.save(tmp_path / "x.svg")
    with pytest.raises(MissingExtraError, match=r"matplotlib is needed.*plainrisk\[plot\]"):
        diagram.save(tmp_path / "x.png")


def test_table_lists_groups():
    base = np.linspace(0.6, 0.9, 12)
    table = {"A": base + 0.05, "B": base + 0.04 * np.sin(40 * base), "C": base}
    diagram = critical_difference_diagram(table)
    assert diagram.posthoc.singles == ("A",)
    rows = diagram.to_markdown().splitlines()
    assert rows[2].startswith("| A | 1.0")
    assert rows[2].endswith("|  |")
    assert rows[3].endswith("| 1 |")
    assert rows[4].endswith("| 1 |")
