"""Scorecards against brute force: points, their rounding, weights of evidence, directions."""

from __future__ import annotations

import itertools
import math

import msgspec
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import plainrisk as pr
from plainrisk.errors import DataError
from plainrisk.explain.atoms import atoms_of, value_frame
from plainrisk.form import Alone, Bands, Bins, Categories, Linear, Logistic, PairTable, Part, RiskForm, Table
from plainrisk.model import RiskModel

FEW = ("Duration in month", "Credit history", "Age in years")


@pytest.fixture(scope="module")
def german():
    return pr.datasets.load("german", backend="pandas")


@pytest.fixture(scope="module")
def few(german):
    """Three features, so that all combinations of levels can be looked at."""
    features = {name: german.schema.features[name] for name in FEW}
    features["Duration in month"] = msgspec.structs.replace(features["Duration in month"], direction="decreasing")
    schema = msgspec.structs.replace(german.schema, features=features, subscales={})
    return german.frame[list(FEW)], german.target, schema


def fit(few, name, adverse=None, **options):
    frame, target, schema = few
    schema = schema if adverse is None else schema.replace(adverse=adverse)
    return pr.make_classifier(name, schema, **options).fit(frame, target)


def all_rows(form):
    """Return every combination of the levels of all features."""
    atoms = atoms_of(form)
    rows = itertools.product(*(a.values for a in atoms.values()))
    return value_frame(dict(zip(atoms, zip(*rows, strict=True), strict=True)))


@pytest.mark.parametrize(("name", "options"), [("ARM1", {}), ("SmoothARM1", {}), ("SmoothARM1", {"pairs": 2})])
@pytest.mark.parametrize("adverse", ["positive", "negative"])
@pytest.mark.parametrize("decimals", [0, 2])
def test_points_are_those_of_the_scores_but_for_rounding(few, name, options, adverse, decimals):
    model = fit(few, name, adverse, **options)
    card = model.scorecard(points=500, odds=20, pdo=40, decimals=decimals)
    rows = all_rows(model.form_)
    good = model.form_.score(rows) * (-1 if adverse == "positive" else 1)
    exact = 500 + 40 / math.log(2) * (good - math.log(20))
    error = np.abs(card.score(rows) - exact).max()
    # The bound is attained: it is no larger than it must be.
    assert error == pytest.approx(card.rounding, abs=1e-9)
    assert 0 < card.rounding <= 0.5 * 10.0**-decimals * len({row.feature for row in card.rows})
    assert np.abs(card.risk(card.score(rows)) - Logistic().value(model.form_.score(rows))).max() <= card.rounding_risk


def test_more_points_are_less_risk_and_double_the_odds(few):
    card = fit(few, "ARM1", "positive").scorecard()
    np.testing.assert_allclose(card.risk([600, 620, 580]), [1 / 51, 1 / 101, 1 / 26])
    np.testing.assert_allclose(fit(few, "ARM1", "negative").scorecard().risk([600, 620]), [50 / 51, 100 / 101])


def test_the_gap_between_bands_and_sigmoid_is_the_largest_there_is(few):
    model = fit(few, "SmoothARM1")
    card = model.scorecard()
    score = model.form_.score(all_rows(model.form_))
    grid = np.linspace(score.min(), score.max(), 100_001)
    gap = np.abs(model.form_.last_link.value(grid) - Logistic().value(grid)).max()
    assert 0 < gap <= card.band_gap == pytest.approx(gap, abs=1e-8)
    assert "differ by at most" in card.facts()[2]
    assert fit(few, "ARM1").scorecard().band_gap == 0.0


def test_the_gap_counts_where_bands_are_clipped():
    shape = Table(levels=Bins((0.0,)), scores=(-9.0, 9.0, 0.0), weights=(1.0, 1.0, 0.0), positives=(0.0, 1.0, 0.0))
    form = of_shapes({"a": shape}, link=Bands((-2.0, 0.0, 2.5), (0.1, 0.5, 0.93)))
    grid = np.linspace(-9, 9, 1_000_001)
    gap = np.abs(form.last_link.value(grid) - Logistic().value(grid)).max()
    assert gap <= RiskModel(form).scorecard().band_gap == pytest.approx(gap, abs=1e-5)


@pytest.mark.parametrize("name", ["DirectARM1", "LinARM1", "SmoothDirectARM1", "MixLinARM1", "LinARM2"])
@pytest.mark.parametrize("decimals", [None, 0, 3])
@pytest.mark.filterwarnings("ignore:.*cut off")
def test_points_of_lines_are_the_risk_in_percent(german, name, decimals):
    model = pr.make_classifier(name, german.schema).fit(german.frame, german.target)
    card = model.scorecard(decimals=decimals)
    assert (card.unit, card.decimals) == ("probability", 1 if decimals is None else decimals)
    points, risk = card.score(german.frame), model.predict_proba(german.frame)[:, 1]
    assert np.abs(points / 100 - risk).max() <= card.rounding_risk + 1e-12
    assert card.rounding_risk <= 0.005 * 10.0**-card.decimals * (len({(r.part, r.feature) for r in card.rows}) + 3)
    # Add up by hand what stands on the card.
    units = points[:50] * 10**card.decimals
    np.testing.assert_allclose(units, units.round(), atol=1e-6)
    np.testing.assert_allclose(by_hand(card, model.form_, german.frame[:50]), points[:50], atol=1e-9)


def by_hand(card, form, frame):
    total = np.full(len(frame), card.base)
    for part, own in zip(card.parts, form.parts, strict=True):
        points = np.full(len(frame), part.base)
        for name, shape in own.shapes.items():
            table = [row.points for row in card.rows if (row.part, row.feature) == (part.name, name)]
            if table:
                points += np.array(table)[shape.levels.codes(form.align(frame), name)]
        total += np.clip(points, part.low, part.high)
    return np.clip(total, card.low, card.high)


@pytest.mark.parametrize("adverse", ["positive", "negative"])
def test_weights_of_evidence_are_those_of_the_rows(few, adverse):
    frame, target, _ = few
    model = fit(few, "ARM1", adverse)
    card = model.scorecard()
    bad = np.asarray(target) == (adverse == "positive")
    codes = model.form_.parts[0].shapes["Credit history"].levels.codes(model.form_.align(frame), "Credit history")
    value = 0.0
    for code, row in enumerate(r for r in card.rows if r.feature == "Credit history"):
        here = codes == code
        assert row.rows == here.sum()
        assert row.bad == (here & bad).sum()
        if not here.any():
            assert (row.woe, row.iv, row.bad_rate) == (None, None, None)
            continue
        good_share, bad_share = (here & ~bad).sum() / (~bad).sum(), (here & bad).sum() / bad.sum()
        assert row.woe == pytest.approx(math.log(good_share / bad_share))
        assert row.bad_rate == pytest.approx((here & bad).sum() / here.sum())
        value += (good_share - bad_share) * math.log(good_share / bad_share)
    assert card.information_values["Credit history"] == pytest.approx(value)


# ---- directions


def feature_of(levels, direction):
    if isinstance(levels, Bins):
        return pr.Feature(kind="continuous", direction=direction)
    return pr.Feature(kind="categorical", direction=direction, categories=levels.categories)


def of_shapes(shapes, pairs=(), link=None, **directions):
    features = {n: feature_of(shape.levels, directions.get(n, "none")) for n, shape in shapes.items()}
    part = Part(name="all", intercept=0.0, shapes=shapes, link=link or Logistic(), pairs=pairs)
    return RiskForm(
        schema=pr.Schema(features=features), columns=tuple(shapes), classes=(0, 1), parts=(part,), pool=Alone()
    )


def test_directions_hold_on_the_rounded_points(few):
    model = fit(few, "SmoothARM1")
    card = model.scorecard(pdo=1)  # so coarse that levels become equal
    points = [row.points for row in card.rows if row.feature == "Duration in month"]
    ordered = points[: model.form_.parts[0].shapes["Duration in month"].levels.n_ordered]
    assert (np.diff(ordered) <= 0).all(), "the model predicts the good outcome"
    assert any(np.diff(ordered) == 0)
    assert [check.name for check in card.checks] == ["monotone in Duration in month"]


def test_a_pair_whose_rounding_breaks_a_direction_is_refused():
    # The shape rises by 0.3 points and the pair falls by 0.2: their sum rises, but 0 and -1 after rounding do not.
    point = math.log(2) / 20
    counts = (5.0, 5.0, 0.0)
    a = Table(levels=Bins((0.0,)), scores=(0.0, 0.3 * point, 0.0), weights=counts, positives=(1.0, 2.0, 0.0))
    b = Table(levels=Bins((0.0,)), scores=(0.0, 0.0, 0.0), weights=counts, positives=(1.0, 2.0, 0.0))
    table = ((0.0, 0.6 * point, 0.0), (0.0, 0.4 * point, 0.0), (0.0, 0.0, 0.0))
    pair = PairTable(
        features=("a", "b"), levels=(Bins((0.0,)), Bins((0.0,))), scores=table, weights=table, positives=table
    )
    model = RiskModel(of_shapes({"a": a, "b": b}, (pair,), a="increasing"))
    assert model.certify().valid
    with pytest.raises(DataError, match=r"after rounding the model is not monotone in a: .*decimals=1"):
        model.scorecard()
    assert model.scorecard(decimals=1).checks[0].holds


# ---- lines


@pytest.mark.parametrize("name", ["LinNNLR", "NNLR"])
@pytest.mark.parametrize("decimals", [None, 2])
@pytest.mark.filterwarnings("ignore:.*the line is cut off")
def test_a_line_has_points_per_unit(german, name, decimals):
    model = pr.make_classifier(name, german.schema).fit(german.frame, german.target)
    card = model.scorecard(decimals=decimals)
    rows = [row for row in card.rows if row.feature == "Duration in month"]
    assert rows[0].level == "per month"
    part = model.form_.parts[0]
    slope = part.shapes["Duration in month"].slope
    wanted = 100 * slope * part.link.slope if name == "LinNNLR" else slope * 20 / np.log(2)
    assert rows[0].points == pytest.approx(wanted, abs=0.5 / 72 * 10**-card.decimals)
    # By hand: the base, the points of categories, and points per unit times the values.
    total = np.full(len(german.frame), card.base + sum(p.base for p in card.parts))
    for feature, shape in part.shapes.items():
        own = {row.level: row.points for row in card.rows if row.feature == feature}
        column = german.frame[feature]
        if hasattr(shape, "slope"):
            level, points = next(iter(own.items()))
            units = 1000.0 if "1,000" in level else 1.0
            total += points / units * column.to_numpy().astype(float)
        else:
            total += np.array([own[label] for label in column])
    np.testing.assert_allclose(
        np.clip(total, card.low, card.high), card.score(german.frame), atol=0.51 * 10**-card.decimals
    )
    risk = model.form_.risk(german.frame)
    assert np.abs(card.risk(card.score(german.frame)) - risk).max() <= card.rounding_risk
    assert "Points per unit are multiplied by the value" in " ".join(card.facts())


# ---- what has no card


def test_a_model_read_without_outcomes_claims_no_bad_rates(german):
    X = german.frame[["Duration in month", "Age in years"]]
    regression = LogisticRegression(max_iter=1000).fit(X, german.target)
    blind = pr.linearise(regression, X)
    assert {(row.bad, row.bad_rate, row.woe, row.iv) for row in blind.scorecard().rows} == {(None, None, None, None)}
    assert np.isnan(blind.overview().shape("Age in years").bad_rate).all()
    axes = blind.overview().plot("Age in years")
    assert not np.ravel(axes)[-1].texts
    seeing = RiskModel.from_fitted(regression, X, y=german.target).scorecard()
    line = seeing.rows[0]
    # All rows are on the line: there is nothing to compare their share of bad outcomes with.
    assert (line.rows, line.bad, line.woe, line.iv) == (1000, 700, None, None)
    assert seeing.information_values == {"Duration in month": 0.0, "Age in years": 0.0}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("MixARM1", "combined after curved links or bands"),
        ("ARM2", "such as 'MixLinARM1' or 'LinARM2'"),
    ],
)
def test_what_does_not_add_up_is_refused_with_the_nearest_way(german, name, message):
    model = pr.make_classifier(name, german.schema).fit(german.frame, german.target)
    with pytest.raises(DataError, match=message):
        model.scorecard()


def test_trees_have_no_card():
    with pytest.raises(DataError, match="trees have no points"):
        pr.load("tests/golden/MonoXGB.format2.model.json").scorecard()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pdo": 0}, "pdo must be a finite number above 0"),
        ({"odds": -1}, "odds must be a finite number above 0"),
        ({"points": math.nan}, "points must be a finite number"),
        ({"decimals": 7}, "decimals must be None or a whole number from 0 to 6"),
    ],
)
def test_parameters_are_checked(few, options, message):
    with pytest.raises(DataError, match=message):
        fit(few, "ARM1").scorecard(**options)


def test_the_scale_of_log_odds_is_refused_for_lines():
    with pytest.raises(DataError, match="points, odds and pdo are for log odds"):
        RiskModel(of_shapes({"a": UNORDERED}, link=Linear())).scorecard(pdo=30)


def test_bands_that_follow_no_sigmoid_are_refused(few):
    with pytest.raises(DataError, match="so its scores are no log odds"):
        fit(few, "DirectARM1").at_base_rate(0.1).scorecard()


# ---- files

UNORDERED = Table(
    levels=Categories(("=1+1", "own|rent"), 0),
    scores=(-0.1, 0.2, 0.0, 0.0),
    weights=(2.0, 3.0, 0.0, 0.0),
    positives=(1.0, 1.0, 0.0, 0.0),
)


def test_lines_are_the_names_the_base_and_every_level(few):
    card = fit(few, "DirectARM1").scorecard()
    names, base, *lines = card.lines()
    assert dict(zip(names, base, strict=True))["feature"] == "(base)"
    assert base[-1] == card.parts[0].base
    assert [line[names.index("level")] for line in lines] == [row.level for row in card.rows]
    assert [line[-1] for line in lines] == [row.points for row in card.rows]


def test_markdown_keeps_a_bar_in_a_level():
    card = RiskModel(of_shapes({"home": UNORDERED})).scorecard()
    assert "own\\|rent" in card.to_markdown()


def test_markdown_is_a_table_with_the_facts(few):
    card = fit(few, "SmoothARM1").scorecard()
    text = card.to_markdown().splitlines()
    assert text[0] == "| feature | level | rows | bad | bad_rate | woe | iv | points |"
    assert len([line for line in text if line.startswith("| ")]) == len(card.rows) + 2
    assert [line[2:] for line in text if line.startswith("- ")] == card.facts()
    assert all(row.level in str(card) for row in card.rows)
