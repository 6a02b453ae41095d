from __future__ import annotations

import io
import itertools

import numpy as np
import pytest

import plainrisk as pr
from plainrisk.errors import DataError
from plainrisk.explain import plots
from plainrisk.explain.groups import compare_groups
from plainrisk.explain.plots import DOWN, UP, draw_pair, draw_shape
from plainrisk.form import Bins, Categories, PairTable
from plainrisk.validate.bootstrap import bootstrap

mpl = pytest.importorskip("matplotlib")
mpl.use("Agg")
pytestmark = pytest.mark.filterwarnings("ignore:.*the line is cut off")


@pytest.fixture(scope="module")
def credit():
    return pr.datasets.make_credit(1500, 5, backend="polars")


@pytest.fixture(scope="module")
def model(credit):
    return pr.AdditiveRiskModel(credit.schema, link="linear", ridge=0.01).fit(credit.frame, credit.target)


def drawn(ax):
    """Lay the figure out, so that everything is really drawn."""
    ax.figure.draw_without_rendering()
    return ax


def bars(ax):
    return [p for p in ax.patches if p.get_width() != 0]


def color(patch):
    return mpl.colors.to_hex(patch.get_facecolor()).upper()


def test_a_waterfall_goes_from_the_reference_to_the_risk(model, credit):
    found = model.explain(credit.frame[:50])
    row = int(np.argmax(found.risk))
    ax = drawn(found.plot(row, most=5))
    steps = bars(ax)
    ends = [(p.get_x(), p.get_x() + p.get_width()) for p in steps]
    assert ends[0][0] == pytest.approx(found.constant[row])
    assert ends[-1][1] == pytest.approx(found.risk[row])
    for (_, before), (after, _) in itertools.pairwise(ends):
        assert after == pytest.approx(before)
    for patch in steps:
        assert color(patch) == (UP if patch.get_width() > 0 else DOWN)
    labels = [t.get_text() for t in ax.get_yticklabels()]
    assert labels[0].startswith("typical: ")
    assert labels[-1] == f"risk: {found.risk[row]:.1%}"
    assert any(text.endswith(" more") for text in labels)
    assert len(labels) == 5 + 3
    largest = found.names[int(np.argmax(np.abs(found.contributions[row])))]
    assert labels[1] == " = ".join(found.in_words(row, largest))
    assert largest not in labels[1]  # the label, not the column


def test_a_waterfall_says_where_a_link_bends(model, credit):
    found = model.explain(credit.frame)
    cut = int(np.argmax(found.bends))
    straight = int(np.argmin(found.bends))
    titles = [drawn(found.plot(row)).get_title(loc="left") for row in (cut, straight)]
    assert titles == ["pieces at the mean slope between the two", ""]
    labels = [t.get_text() for t in drawn(found.plot(cut)).get_yticklabels()]
    assert not any("cut off" in label for label in labels)


def test_axes_have_units(model, credit):
    found = model.explain(credit.frame[:5], reference="typical")
    assert "% points" in drawn(found.plot(0, kind="bars")).get_xlabel()
    assert drawn(found.plot(0)).get_xticklabels()[0].get_text().endswith("%")
    curved = pr.AdditiveRiskModel(credit.schema).fit(credit.frame, credit.target)
    assert drawn(curved.explain(credit.frame[:5], unit="log odds").plot(0)).get_xlabel() == "log odds"
    assert drawn(curved.explain(credit.frame[:5]).plot(0)).get_xticklabels()[0].get_text().endswith("%")


def test_bars_on_two_levels(model, credit):
    found = model.explain(credit.frame[:5], reference="best")
    ax = drawn(found.plot(2, kind="bars"))
    widths = {t.get_text(): p.get_width() for t, p in zip(ax.get_yticklabels(), ax.patches, strict=True)}
    for name, amount in found.by_subscale.items():
        assert widths[name] == pytest.approx(amount[2])
    heavy = [t.get_text() for t in ax.get_yticklabels() if t.get_fontweight() == "bold"]
    assert set(heavy) == set(found.by_subscale)


def test_intervals_are_drawn(model, credit):
    refits = bootstrap(model, credit.frame, credit.target, n=8)
    view = model.overview()
    top, bottom = view.plot("bureau_score", refits=refits)
    drawn(top)
    interval = refits.effects("bureau_score")
    segments = np.array([s for c in top.collections for s in c.get_segments()])
    shown = [j for j in range(len(interval.low)) if view.shape("bureau_score").rows[j] > 0]
    np.testing.assert_allclose(sorted(segments[:, 0, 1]), sorted(interval.low[shown]))
    np.testing.assert_allclose(sorted(segments[:, 1, 1]), sorted(interval.high[shown]))
    assert bottom.texts[0].get_text().endswith("%")
    assert "rows" in bottom.get_ylabel()
    found = model.explain(credit.frame[:3], reference="typical")
    spread = refits.contributions(credit.frame[:3], reference="typical")
    assert len(drawn(found.plot(1, interval=spread)).lines) > len(drawn(found.plot(1)).lines)


def test_weights_with_intervals(model, credit):
    mixed = pr.SubscaleMixture(pr.AdditiveRiskModel(), credit.schema).fit(credit.frame, credit.target)
    refits = bootstrap(mixed, credit.frame, credit.target, n=5)
    ax = drawn(mixed.overview().plot_weights(refits))
    names = sorted(mixed.weights_, key=lambda name: -mixed.weights_[name])
    assert [t.get_text() for t in ax.get_yticklabels()] == names
    assert ax.lines[0].get_xdata()[0] == pytest.approx(mixed.weights_[names[0]])
    assert len(ax.lines) == 2 * len(names)
    with pytest.raises(DataError, match="no subscale weights"):
        model.overview().plot_weights()


def test_categories_without_order_are_not_joined(model):
    view = model.overview()
    joined = {name: len(view.plot(name)[0].lines) for name in ("purpose", "bureau_score", "savings")}
    assert joined["purpose"] == joined["bureau_score"] - 1
    assert joined["savings"] == joined["bureau_score"]  # its categories have a direction


def test_the_others(model, credit):
    view = model.overview()
    names = [t.get_text() for t in drawn(view.plot_importance(most=3)).get_yticklabels()]
    assert names == [i.feature for i in view.importance[:3]]
    ax = drawn(model.drift(credit.frame[:300], credit.frame).plot())
    assert "population stability index" in ax.get_xlabel()
    risk = model.predict_proba(credit.frame)[:, 1]
    groups = compare_groups(credit.target, risk, credit.frame["housing"], cutoff=0.2)
    assert len(drawn(groups.plot()).get_yticklabels()) == len(groups.groups)


@pytest.mark.parametrize("size", [(4.0, 3.0), (7.0, 5.0), (14.0, 9.0)])
def test_any_size(model, credit, size):
    """Labels are cut to the room there is, and nothing warns."""
    from matplotlib.figure import Figure

    german = pr.datasets.load("german", backend="polars")
    long_names = pr.AdditiveRiskModel(german.schema, link="linear").fit(german.frame, german.target)
    ax = Figure(figsize=size, layout="constrained").subplots()
    found = long_names.explain(german.frame[:3], reference="best")
    drawn(found.plot(0, kind="bars", ax=ax))
    room = 5.5 * size[0]
    assert max(len(t.get_text()) for t in ax.get_yticklabels()) <= max(18, room)
    valued = [t.get_text() for t in ax.get_yticklabels() if "= " in t.get_text()]
    assert len(valued) == 20  # a value is never cut off
    axes = Figure(figsize=size, layout="constrained").subplots(2, 1, sharex=True)
    drawn(draw_shape(long_names.overview().shape("Purpose"), axes=axes)[0])


def test_what_cannot_be_drawn(model, credit):
    found = model.explain(credit.frame[:3])
    with pytest.raises(DataError, match="kind must be 'waterfall' or 'bars'"):
        found.plot(0, kind="pie")
    with pytest.raises(DataError, match="There is no row 3"):
        found.plot(3)


# ---- names that are hard to draw

NAMES = {
    "mathematics": "$x^{2$",
    "commands": r"\frac{a}{b} $\alpha$",
    "underscore": "_a",
    "percent": "50%_of & # ~",
    "long": "a" * 500,
    "long value": "a = " + "b" * 500,
    "line breaks": "two\nlines\ttab",
    "control": "a\x1b[2J\u202eb\ud800",
    "right to left": "دخل سنوي",
    "emoji": "👩‍👩‍👧 income",
    "space": " ",
}


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.filterwarnings("ignore:Matplotlib currently does not support")
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_names_are_drawn_as_text(name):
    rng = np.random.default_rng(0)
    X = {name: rng.normal(size=300), "c": rng.choice([name, "x"], 300)}
    y = (X[name] + rng.normal(size=300) > 0).astype(int)
    schema = pr.Schema(features={name: {}, "c": {"kind": "categorical"}}, subscales={name: [name], "rest": ["c"]})
    mixture = pr.SubscaleMixture(pr.AdditiveRiskModel(link="linear"), schema).fit(X, y)
    explained = mixture.explain(X)
    overview = mixture.overview()
    table = overview.shape("c")
    axes = [
        explained.plot(0),
        explained.plot(0, kind="bars"),
        plots.draw_shape(table)[0],
        plots.draw_shape(overview.shape(name))[0],
        plots.draw_importance(overview),
        plots.draw_weights(overview.weights),
        mixture.plot_weights(X, y),
        mixture.drift(X).plot(),
        compare_groups(y, mixture.predict_proba(X)[:, 1], X["c"], cutoff=0.5).plot(),
    ]
    for ax in axes:
        ax.figure.savefig(io.BytesIO(), format="png")
        for one in ax.figure.axes:
            assert len(one.get_title(loc="left")) <= 70
            assert all(len(label.get_text()) < 110 for label in one.get_yticklabels())
    shown = [text.get_text() for text in axes[6].get_legend().get_texts()]
    assert len(shown) == 2
    assert shown[0] == plots.short(name)


def test_an_empty_name_is_drawn_as_two_quotes():
    assert plots.short("") == plots.short(" ") == "''"
    assert plots.short("$x$") == "$x$"


def test_a_pair_is_a_heat_map_with_counts_in_its_cells():
    levels = (Bins((1.0,)), Categories(("$x^{2$", "b"), 2))  # three and four levels; none is missing, one is unseen
    weights = ((1500.0, 0.0, 0.0, 0.0), (20.0, 30.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0))
    scores = ((0.5, 0.0, 0.0, 0.0), (-0.25, 0.1, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0))
    pair = PairTable(features=("$u_{1", "v"), levels=levels, scores=scores, weights=weights, positives=weights)
    ax = drawn(draw_pair(pair))
    assert [t.get_text() for t in ax.texts] == ["+0.50\n1,500", "0", "-0.25\n20", "+0.10\n30"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["x <= 1", "x > 1"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["$x^{2$", "b"]
    assert ax.get_ylabel() == "$u_{1"
    assert ax.get_title("left").startswith("$u_{1 × v: score (log odds)")
    shown = ax.images[0].get_array()
    assert shown.mask.tolist() == [[False, True], [False, False]], "cells without rows stay white"
    assert drawn(draw_pair(pair, "probability")).texts[0].get_text() == "+50.0\n1,500"


def test_the_overview_draws_a_pair_as_a_heat_map():
    credit = pr.datasets.make_credit(600, seed=2)
    income, late = (np.asarray(credit.frame[name], float) for name in ("income", "late_payments"))
    # Late payments count where the income is low.
    target = credit.target * ((income < np.nanmedian(income)) | (late == 0))
    model = pr.AdditiveRiskModel(credit.schema, shapes="smooth", pairs=[("income", "late_payments")])
    found = model.fit(credit.frame, target).overview()
    name = next(t.feature for t in found.shapes if t.pair is not None)
    ax = drawn(found.plot(name))
    table = found.shape(name)
    assert table.pair is not None
    assert ax.images[0].get_array().count() == np.count_nonzero(table.rows)
    assert "pair" not in found.to_dict()["shapes"][0]
