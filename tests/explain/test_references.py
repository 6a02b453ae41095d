from __future__ import annotations

import itertools

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pytest

import plainrisk as pr
from plainrisk.errors import DataError, PlainriskWarning
from plainrisk.explain import explain
from plainrisk.explain.atoms import atoms_of, value_frame
from plainrisk.explain.reference import make_reference
from plainrisk.form import Alone, Bands, Bins, Layer, Line, Linear, Logistic, Part

SEEDS = range(40)


def column(found, name):
    return found.contributions[:, found.names.index(name)]


def as_row(X, i):
    return {name: [values[i]] for name, values in X.items()}


@pytest.mark.parametrize("seed", SEEDS)
def test_against_a_row_everything_adds_up_to_the_difference(make_form, every_row, seed):
    form = make_form(seed)
    risk, score = form.risk(every_row), form.score(every_row)
    for i in (0, 101, 449):
        found = explain(form, every_row, reference=as_row(every_row, i))
        np.testing.assert_allclose(found.constant, risk[i], rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.total, risk, rtol=0, atol=1e-12)
        assert np.abs(found.contributions[i]).max() == 0  # the row itself differs in nothing
        if isinstance(form.last_link, Logistic):
            in_log_odds = explain(form, every_row, reference=as_row(every_row, i), unit="log odds")
            np.testing.assert_allclose(in_log_odds.constant, score[i], rtol=0, atol=1e-12)
            np.testing.assert_allclose(in_log_odds.total, score, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("reference", ["typical", "best"])
def test_sums_are_exact_whatever_the_reference(make_form, every_row, seed, reference):
    form = make_form(seed)
    found = explain(form, every_row, reference=reference)
    np.testing.assert_allclose(found.total, form.risk(every_row), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.risk, form.risk(every_row))
    assert len(np.unique(found.constant)) == 1  # one reference, one risk
    assert 0 <= found.constant[0] <= 1


def test_the_typical_applicant_is_the_default(make_form, every_row):
    default, typical = (explain(make_form(5), every_row, **options) for options in ({}, {"reference": "typical"}))
    assert default.reference == "typical"
    np.testing.assert_array_equal(default.contributions, typical.contributions)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_feature_that_does_not_differ_contributes_nothing(make_form, every_row, seed):
    form = make_form(seed)
    row = as_row(every_row, 33)
    found = explain(form, every_row, reference=row)
    for key, feature in enumerate(found.features):
        if feature is not None:
            here = row[feature][0]
            same = np.array([v is here or v == here or (v != v and here != here) for v in every_row[feature]])
            assert np.abs(found.contributions[same, key]).max() == 0


def test_the_chord_shares_in_proportion_to_the_scores(make_form, every_row):
    """Through any one link the contributions of two features stand as their score differences do."""
    form = next(f for f in map(make_form, SEEDS) if isinstance(f.pool, Alone) and isinstance(f.parts[0].link, Logistic))
    log_odds = explain(form, every_row, reference=as_row(every_row, 7), unit="log odds")
    found = explain(form, every_row, reference=as_row(every_row, 7))
    assert found.bends.any()
    assert not log_odds.bends.any()
    rate = (found.risk - found.risk[7]) / np.where(
        np.abs(gap := log_odds.total - log_odds.total[7]) < 1e-9, np.nan, gap
    )
    expected = log_odds.contributions * rate[:, None]
    np.testing.assert_allclose(found.contributions[~np.isnan(rate)], expected[~np.isnan(rate)], rtol=0, atol=1e-12)


def test_inside_one_band_contributions_are_at_the_bands_rate(make_form, every_row):
    form = next(f for f in map(make_form, SEEDS) if isinstance(f.pool, Alone) and isinstance(f.parts[0].link, Bands))
    link = form.parts[0].link
    found = explain(form, every_row, reference=as_row(every_row, 0))
    score = form.score(every_row)
    np.testing.assert_array_equal(found.band, link.band(score))
    np.testing.assert_array_equal(found.rate, link.derivative(score))
    same = (found.band == found.band[0]) & (found.rate == found.rate[0])
    assert same.any()
    assert not same.all()
    terms = form.parts[0].terms(form.align(every_row), form.schema)
    for name, values in terms.items():
        np.testing.assert_array_equal(column(found, name)[same], ((values - values[0]) * found.rate[0])[same])
    np.testing.assert_array_equal(found.bends, ~same)


def test_clipping_lowers_the_rate_of_all_features_alike(make_form, every_row):
    """Defect: against the best levels a waterfall had a step "best cut off at 1: +131.2"."""
    form = next(
        f
        for f in map(make_form, SEEDS)
        if isinstance(f.pool, Alone) and isinstance(f.parts[0].link, Linear) and f.parts[0].link.low > 0
    )
    link, score = form.parts[0].link, form.score(every_row)
    inside = int(np.flatnonzero(link.derivative(score) > 0)[0])
    found = explain(form, every_row, reference=as_row(every_row, inside))
    clipped = link.derivative(score) == 0
    np.testing.assert_array_equal(found.bends, clipped)
    assert clipped.any()
    assert not clipped.all()
    run = np.where(clipped, score - score[inside], 1.0)
    rate = np.where(clipped, (found.risk - found.risk[inside]) / run, link.slope)
    assert (rate[clipped] < link.slope).all()
    terms = form.parts[0].terms(form.align(every_row), form.schema)
    for name, values in terms.items():
        np.testing.assert_allclose(column(found, name), rate * (values - values[inside]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_best_is_the_best_level_training_saw(make_form, sign):
    checked = 0
    for seed in SEEDS:
        form = make_form(seed, adverse="positive" if sign > 0 else "negative")
        if not isinstance(form.pool, Alone):
            continue
        rows = {"age": [25.0], "job": ["a"], "debt": [0.0], "rent": [5.0]}
        typical = explain(form, rows, reference="typical")
        best = explain(form, rows, reference="best")
        assert sign * best.constant[0] <= sign * typical.risk[0] + 1e-12
        scores = []
        for shape in form.parts[0].shapes.values():
            n = len(shape.levels)
            outside = {"missing", "unseen"}
            kept = [j for j in range(n) if shape.weights[j] > 0 and shape.levels.labels[j] not in outside]
            scores.append(sign * min(sign * shape.scores[j] for j in kept))
        reached = form.parts[0].link.value(np.array([form.parts[0].intercept + sum(scores)]))
        assert best.constant[0] == pytest.approx(float(reached[0]), abs=1e-12)
        checked += 1
    assert checked > 5


def test_the_typical_applicant_is_the_mean_of_the_training_rows_or_of_a_portfolio():
    d = pr.datasets.make_credit(2000, 1)
    model = pr.AdditiveRiskModel(d.schema).fit(d.frame, d.target)
    trained = model.explain(d.frame, reference="typical")
    given = model.explain(d.frame, reference="typical", portfolio=d.frame)
    np.testing.assert_allclose(trained.contributions, given.contributions, rtol=0, atol=1e-9)
    scores = model.explain(d.frame, portfolio=d.frame, unit="log odds")
    np.testing.assert_allclose(scores.contributions.mean(axis=0), 0, atol=1e-9)
    other = model.explain(d.frame, reference="typical", portfolio=d.frame[:100], unit="log odds")
    assert np.abs(other.contributions[:100].mean(axis=0)).max() < 1e-9


def line_form(form, weights):
    line = Line(slope=1.0, center=2.5, levels=Bins(()), scores=(0.0, 3.0), weights=weights, positives=(1.0, 0.0))
    part = Part(name="all", intercept=0.0, shapes={"debt": line}, link=Linear(slope=0.1, offset=0.4))
    return msgspec.structs.replace(form, parts=(part,), pool=Alone())


def test_lines_need_rows_to_look_at(make_form):
    X = {"debt": [1.0, 2.0, 3.0]}
    form = line_form(make_form(0), (0.0, 0.0))
    with pytest.raises(DataError, match=r"since feature 'debt' has no training counts. Pass portfolio=rows"):
        explain(form, X, reference="typical")
    with pytest.raises(DataError, match=r"since feature 'debt' enters as a line .*portfolio"):
        explain(form, X, reference="best")
    typical = explain(form, X, reference="typical", portfolio=X)
    assert typical.contributions.ravel().tolist() == pytest.approx([-0.1, 0, 0.1])
    best = explain(form, X, reference="best", portfolio=X)
    assert best.contributions.ravel().tolist() == pytest.approx([0, 0.1, 0.2])


def test_a_line_with_counts_is_typical_at_its_training_mean(make_form):
    """The line is centered on the mean of its nine measured rows; the one missing value scores 3."""
    found = explain(line_form(make_form(0), (9.0, 1.0)), {"debt": [2.5]}, reference="typical")
    assert found.contributions.ravel().tolist() == pytest.approx([-0.03])


def test_the_typical_applicant_of_fitted_lines_needs_no_portfolio():
    d = pr.datasets.make_credit(2000, 1)
    model = pr.NonnegativeLogisticRegression(d.schema, ridge="auto").fit(d.frame, d.target)
    trained = model.explain(d.frame, reference="typical")
    given = model.explain(d.frame, reference="typical", portfolio=d.frame)
    np.testing.assert_allclose(trained.contributions, given.contributions, rtol=0, atol=1e-9)


# ---- pairs


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("reference", ["typical", "best", "row"])
def test_a_pair_is_one_piece_and_everything_adds_up(make_form, every_row, seed, reference):
    form = make_form(seed, pairs=True)
    options = {"reference": as_row(every_row, 77) if reference == "row" else reference}
    found = explain(form, every_row, **options)
    np.testing.assert_allclose(found.total, form.risk(every_row), rtol=0, atol=1e-12)
    for part in form.parts:
        own = [
            f
            for s, f in zip(found.subscales, found.features, strict=True)
            if isinstance(form.pool, Alone) or s == part.name
        ]
        assert own == [*part.shapes, *(f"{u} × {v}" for u, v in (pair.features for pair in part.pairs))]
    u, v = form.parts[0].pairs[0].features
    assert found.value(5, f"{u} × {v}") == f"{found.value(5, u)} × {found.value(5, v)}"
    given = explain(form, every_row, portfolio=every_row)
    np.testing.assert_allclose(given.total, form.risk(every_row), rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("adverse", ["positive", "negative"])
def test_the_best_of_pairs_is_the_best_of_all_combinations(make_form, seed, adverse):
    form = make_form(seed, pairs=True, adverse=adverse)
    if not isinstance(form.pool, Alone):
        return
    atoms = atoms_of(form)
    values = [[v for v, seen in zip(a.values, a.seen, strict=True) if seen] for a in atoms.values()]
    rows = list(itertools.product(*values))
    columns = dict(zip(atoms, map(list, zip(*rows, strict=True)), strict=True))
    scores = form.score(value_frame(columns))
    found = explain(form, value_frame(columns), reference="best")
    best = scores.min() if adverse == "positive" else scores.max()
    assert found.constant[0] == pytest.approx(float(form.last_link.value(np.array([best]))[0]), abs=1e-12)


def test_too_many_connected_features_are_searched_one_by_one_with_a_warning(make_form, every_row, monkeypatch):
    monkeypatch.setattr("plainrisk.explain.elimination.MOST_STATES", 3)
    for seed in SEEDS:
        form = make_form(seed, pairs=True)
        with pytest.warns(PlainriskWarning, match="searched for one feature after the other. There may be better"):
            best = make_reference(form, "best")
        found = explain(form, every_row, reference=best)
        np.testing.assert_allclose(found.total, form.risk(every_row), rtol=0, atol=1e-12)
        # No feature alone can be moved to a better level of those training saw.
        for name, atoms in atoms_of(form).items():
            if isinstance(form.pool, Alone):
                shape = form.parts[0].shapes.get(name)
                moves = np.zeros(len(atoms.values)) if shape is None else atoms.scores(shape)
                gone = 0.0 if shape is None else best.points[0].terms[name]
                for _, axis, pair in form.parts[0].pairs_with(name):
                    table = np.asarray(pair.scores) if axis == 0 else np.asarray(pair.scores).T
                    other = int(np.argmax(best.points[0].shares[pair.name][1 - axis]))
                    moves = moves + table[atoms.levels_in(pair.levels[axis]), other]
                    gone += best.points[0].terms[pair.name]
                assert (moves[atoms.seen] >= gone - 1e-12).all()


# ---- trees


def test_tree_experts_against_a_portfolio(make_form, every_row):
    form = next(f for f in (make_form(s, trees=True) for s in SEEDS) if isinstance(f.pool, Layer))
    X = {k: v[::50] for k, v in every_row.items()}
    found = explain(form, X, reference="typical", portfolio=X)
    np.testing.assert_allclose(found.total, form.risk(X), rtol=0, atol=1e-12)
    with pytest.raises(DataError, match=r"part 'trees' is a sum of trees. Pass portfolio=rows"):
        explain(form, X)


# ---- handing on


def test_frames_and_dicts(make_form, every_row):
    form = make_form(2)
    found = explain(form, every_row, reference="best")
    for like in (pd.DataFrame(), pl.DataFrame()):
        wide = found.to_frame(like)
        assert type(wide) is type(like)
        assert len(wide) == 450
        names = [n for n in wide.columns if n not in ("risk", "band", "rate")]
        total = sum(np.asarray(wide[n]) for n in names)
        np.testing.assert_allclose(total, found.total, rtol=0, atol=1e-12)
    plain = found.to_dict(5)
    inside = sum(s["contribution"] for s in plain["subscales"])
    assert plain["constant"] + inside == pytest.approx(found.total[5])
    for subscale in plain["subscales"]:
        assert sum(f["contribution"] for f in subscale["features"]) == pytest.approx(subscale["contribution"])
    assert len(found.to_dict()) == 450
    with pytest.raises(DataError, match="There is no row 450"):
        found.to_dict(450)


def test_values_are_shown_as_the_applicant_gave_them(make_form):
    found = explain(make_form(2), {"age": [31.0], "job": [None], "debt": [0.25], "rent": [7.0]})
    assert [found.value(0, n) for n in ("age", "job", "debt", None)] == ["31", "missing", "0.25", ""]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reference": "mean"}, "reference must be 'typical', 'best', 'zero' or a row, not 'mean'"),
        ({"reference": "constant"}, "reference must be 'typical', 'best', 'zero' or a row, not 'constant'"),
        ({"unit": "odds"}, "unit must be 'probability' or 'log odds'"),
        ({"split": "treeshap"}, "there is no option 'split'"),
        ({"adverse": "positive"}, "there is no option 'adverse'"),
        ({"reference": {"age": [1, 2], "job": ["a", "b"], "debt": [1, 1], "rent": [1, 1]}}, "must be one row, not 2"),
    ],
)
def test_what_makes_no_sense_is_refused(make_form, every_row, options, message):
    with pytest.raises(DataError, match=message):
        explain(make_form(1), every_row, **options)


def test_an_error_names_the_row_of_the_data():
    d = pr.datasets.make_credit(500, 1)
    model = pr.AdditiveRiskModel(d.schema).fit(d.frame, d.target)
    n = 70_000
    X = {name: np.resize(np.asarray(d.frame[name].to_numpy(), dtype=object), n) for name in d.frame.columns}
    X["income"] = X["income"].astype(float)
    X["income"][65_000] = np.inf
    with pytest.raises(DataError, match=r"row 65000"):
        model.explain(X)
