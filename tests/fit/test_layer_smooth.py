"""Smooth shapes: what is found, what is obeyed, and what merging tables costs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

import plainrisk as pr
from plainrisk.errors import DataError, PlainriskWarning
from plainrisk.fit.layer import least_rows
from plainrisk.fit.parameters import LayerSettings
from plainrisk.form import Bins


@pytest.fixture(scope="module")
def credit():
    return pr.datasets.make_credit(3000, 5, backend="pandas")


def log_loss(y, p):
    return float(-np.mean(np.log(np.where(y == 1, p, 1 - p))))


def smooth(schema=None, **options):
    return pr.AdditiveRiskModel(schema, shapes="smooth", **options)


@pytest.fixture(scope="module")
def model(credit):
    return smooth(credit.schema).fit(credit.frame, credit.target)


def test_the_evidence_is_told_for_every_group(credit, model):
    assert {group.feature for group in model.evidence_} == set(credit.schema.features)
    assert {group.kind for group in model.evidence_} == {"steps", "lower tail", "upper tail", "outside", "levels"}
    for group in model.evidence_:
        assert 0 <= group.edf <= group.size
        assert group.precision > 0
        assert group.left == (group.edf < 0.01)


def test_levels_outside_the_order_share_a_precision(model):
    outside = [group for group in model.evidence_ if group.kind == "outside"]
    assert len({group.feature for group in outside}) > 1
    assert len({group.precision for group in outside}) == 1
    assert len({group.precision for group in model.evidence_ if group.kind == "steps"}) > 1


def test_the_directions_hold_exactly(credit, model):
    for name, feature in credit.schema.features.items():
        if feature.sign:
            table = model.form_.parts[0].shapes[name]
            steps = np.diff(table.scores[: table.levels.n_ordered]) * feature.sign
            assert (steps >= 0).all()
    assert model.certify().valid


@pytest.mark.filterwarnings("ignore:.*the line is cut off")
@pytest.mark.parametrize("tolerance", [0.0, 1e-4, 1e-3])
@pytest.mark.parametrize("link", ["logistic", "linear"])
def test_merging_costs_no_more_than_the_tolerance(credit, link, tolerance):
    """On the training rows, in log loss; the squared error where the sum is the probability."""
    fine, merged = (
        smooth(credit.schema, link=link, tolerance=t).fit(credit.frame, credit.target).form_ for t in (0.0, tolerance)
    )
    y = credit.target
    losses = []
    for form in (fine, merged):
        score = form.score(credit.frame)
        losses.append(np.mean((y - score) ** 2) if link == "linear" else np.mean(np.logaddexp(0, score) - y * score))
    assert losses[1] <= losses[0] + tolerance + 1e-12
    rows = [sum(len(s.scores) for s in form.parts[0].shapes.values()) for form in (fine, merged)]
    assert rows[1] < rows[0] if tolerance else rows[1] == rows[0]


def test_a_table_has_at_most_the_rows_asked_for(credit):
    model = smooth(credit.schema, max_bins=4).fit(credit.frame, credit.target)
    tables = model.form_.parts[0].shapes.values()
    assert max(t.levels.n_ordered for t in tables if isinstance(t.levels, Bins)) == 4
    assert model.certify().valid


def test_weights_and_outcomes_of_merged_bins_add_up(credit, model):
    for table in model.form_.parts[0].shapes.values():
        assert sum(table.weights) == pytest.approx(3000)
        assert sum(table.positives) == pytest.approx(credit.target.sum())


def test_the_scores_of_codes_are_those_of_the_form(credit, model):
    """Bands are fitted to scores from codes; they must be those of the merged tables."""
    banded = pr.make_classifier("SmoothARM1", credit.schema).fit(credit.frame, credit.target)
    own = model.form_.score(credit.frame)
    np.testing.assert_allclose(banded.form_.part_scores(credit.frame)[:, 0], own, rtol=0, atol=1e-12)
    link = banded.form_.parts[0].link
    assert link.knots[0] == pytest.approx(own.min(), abs=1e-12)
    assert link.knots[-1] == pytest.approx(own.max(), abs=1e-12)


def spread_by_feature(model):
    """The standard deviation over the training rows of every feature's score."""
    shapes = model.form_.parts[0].shapes.items()
    return {name: np.sqrt(np.average(np.square(table.scores), weights=table.weights)) for name, table in shapes}


def test_noise_hardly_moves_the_score_and_signal_does():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1500, 12)), columns=[f"x{j}" for j in range(12)])
    y = (np.sin(2 * X["x0"]) + X["x1"].abs() + rng.logistic(size=1500) > 0.8).astype(int)
    model = smooth().fit(X, y)
    spread = spread_by_feature(model)
    signal = min(spread.pop("x0"), spread.pop("x1"))
    assert signal > 0.4
    assert max(spread.values()) < 0.2 * signal
    assert np.median(list(spread.values())) < 0.05 * signal
    edf = {name: sum(g.edf for g in model.evidence_ if g.feature == name) for name in X}
    assert min(edf.pop("x0"), edf.pop("x1")) > 5
    assert np.median(list(edf.values())) < 1


def test_a_hundred_features_of_noise_cost_little():
    """Wide and thin: the schema drafted from the rows, nothing tuned."""
    rng = np.random.default_rng(0)
    first, held = (pr.datasets.make_credit(n, seed, backend="pandas") for n, seed in ((5000, 0), (20_000, 100)))
    found = {}
    for n_noise in (0, 100):
        train, test = (
            pd.concat([d.frame, pd.DataFrame(rng.normal(size=(len(d.frame), n_noise))).add_prefix("noise_")], axis=1)
            for d in (first, held)
        )
        with pytest.warns(PlainriskWarning, match="assumed to be protected because of their names.*'age'"):
            schema = pr.Schema.infer(train.assign(bad=first.target), target="bad")
        with pytest.warns(PlainriskWarning, match="protected.*'age'"):
            model = smooth(schema).fit(train, first.target)
        found[n_noise] = roc_auc_score(held.target, model.predict_proba(test)[:, 1])
    spread = spread_by_feature(model)
    noise = [spread.pop(name) for name in list(spread) if name.startswith("noise_")]
    assert len(noise) == 100
    assert np.median(noise) < 0.1 * np.median(list(spread.values()))
    assert found[100] > found[0] - 0.01


def test_fine_bins_beat_steps_on_a_curve():
    rng = np.random.default_rng(1)
    x, new = rng.normal(size=3000), rng.normal(size=3000)
    y, held = ((rng.random(3000) < 1 / (1 + np.exp(-2 * np.sin(2 * v)))).astype(int) for v in (x, new))
    steps, curve = (m.fit({"x": x}, y).predict_proba({"x": new})[:, 1] for m in (pr.AdditiveRiskModel(), smooth()))
    assert log_loss(held, curve) < log_loss(held, steps)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SmoothARM1", {}),
        ("SmoothDirectARM1", {}),
        ("ARM2", {"shapes": "smooth"}),
        ("MixARM1", {"shapes": "smooth", "link": "bands"}),
    ],
)
@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_a_stream_gives_the_model_of_memory(credit, name, options, tmp_path):
    table = credit.frame.assign(bad=credit.target)
    rows = pr.rows.Batches(
        tuple(table.columns), 3000, lambda columns: (table[list(columns)][k : k + 700] for k in range(0, 3000, 700))
    )
    made = pr.make_classifier(name, credit.schema, **options)
    streamed = clone(made).fit(rows, y="bad")
    whole = clone(made).fit(credit.frame, credit.target)
    np.testing.assert_allclose(streamed.predict_proba(table), whole.predict_proba(table), rtol=0, atol=1e-9)
    again = clone(made).fit(credit.frame, credit.target)
    for model, path in ((whole, "a.json"), (again, "b.json")):
        model.save(tmp_path / path)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


@pytest.mark.filterwarnings("ignore:.*the line is cut off")
@pytest.mark.parametrize("link", ["logistic", "linear"])
def test_weights_may_count_like_rows(credit, link):
    options = {"link": link, "min_bin_rows": 1, "weights": "counts"}
    twice = smooth(credit.schema, **options).fit(pd.concat([credit.frame] * 2), np.tile(credit.target, 2))
    heavy = smooth(credit.schema, **options).fit(credit.frame, credit.target, sample_weight=np.full(3000, 2.0))
    np.testing.assert_allclose(twice.form_.score(credit.frame), heavy.form_.score(credit.frame), rtol=0, atol=1e-8)
    plain = smooth(credit.schema, **options).fit(credit.frame, credit.target)
    edf = [sum(group.edf for group in m.evidence_) for m in (plain, heavy)]
    assert edf[1] > edf[0] + 1  # twice the evidence


@pytest.mark.filterwarnings("ignore:.*the line is cut off")
@pytest.mark.parametrize("options", [{}, {"link": "linear"}, {"pairs": 2}])
def test_the_unit_of_weights_does_not_matter(credit, options):
    weight = np.random.default_rng(0).uniform(0.2, 2.0, 3000)
    weight /= weight.mean()
    risks = [
        smooth(credit.schema, **options).fit(credit.frame, credit.target, sample_weight=scale * weight)
        .form_.score(credit.frame)
        for scale in (1.0, 1 / 3000, 1000.0)
    ]  # fmt: skip
    for other in risks[1:]:
        np.testing.assert_allclose(other, risks[0], rtol=0, atol=1e-7)


def test_equal_weights_are_no_weights(credit):
    plain = smooth(credit.schema).fit(credit.frame, credit.target)
    heavy = smooth(credit.schema).fit(credit.frame, credit.target, sample_weight=np.full(3000, 7.0))
    np.testing.assert_allclose(heavy.form_.score(credit.frame), plain.form_.score(credit.frame), rtol=0, atol=1e-7)


@pytest.mark.filterwarnings("ignore:class_weight moves")
def test_class_weights_move_the_intercept(credit):
    plain = smooth(credit.schema).fit(credit.frame, credit.target)
    balanced = smooth(credit.schema, class_weight="balanced").fit(credit.frame, credit.target)
    assert balanced.predict_proba(credit.frame)[:, 1].mean() > plain.predict_proba(credit.frame)[:, 1].mean() + 0.1


@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_bins_written_into_a_schema_are_not_merged_again(credit):
    first = pr.make_classifier("SmoothARM1", credit.schema).fit(credit.frame, credit.target)
    schema = first.schema_with_bins()
    again = pr.make_classifier("SmoothARM1", schema).fit(credit.frame, credit.target)
    stated = {name: tuple(f.edges) for name, f in schema.features.items() if f.edges is not None}
    assert max(map(len, stated.values())) > 2
    found = again.form_.parts[0].shapes
    assert {name: found[name].levels.edges for name in stated} == stated
    assert again.certify().valid


def test_the_schema_s_edges_are_kept_and_its_max_bins_is_for_steps(credit):
    schema = pr.Schema(features={"age": {"edges": (30.0, 50.0)}, "bureau_score": {"max_bins": 2}})
    model = smooth(schema, tolerance=0.0).fit(credit.frame, credit.target)
    shapes = model.form_.parts[0].shapes
    assert shapes["age"].levels.edges == (30.0, 50.0)
    assert shapes["bureau_score"].levels.n_ordered > 10


def test_large_offsets_lose_nothing():
    rng = np.random.default_rng(3)
    x = rng.normal(size=1000)
    y = (x + rng.logistic(size=1000) > 0).astype(int)
    near, far = (smooth().fit({"x": v}, y).predict_proba({"x": v}) for v in (x, x + 1e9))
    np.testing.assert_allclose(near, far, rtol=0, atol=1e-3)


@pytest.mark.parametrize("n_rows", [3, 10, 40])
@pytest.mark.filterwarnings("ignore:.*no evidence for any feature")
def test_few_rows(n_rows):
    X = pd.DataFrame({"a": np.arange(n_rows) % 7, "b": list("xyz" * n_rows)[:n_rows]})
    model = smooth().fit(X, np.arange(n_rows) % 2)
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("n_rows", [150, 200])
@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_few_rows_are_no_constant(n_rows):
    few, many = pr.datasets.make_credit(n_rows, seed=0), pr.datasets.make_credit(3000, seed=1)
    model = pr.make_classifier("SmoothARM1", few.schema).fit(few.frame, few.target)
    assert pr.evaluate(model, many.frame, many.target)["auc"].estimate > 0.65


@pytest.mark.parametrize("n_rows", [50, 2000])
@pytest.mark.filterwarnings("ignore:.*may be a leak")
def test_a_direct_fit_without_an_error_is_a_fit(n_rows, rng):
    y = rng.integers(0, 2, n_rows)
    X = pd.DataFrame({"same": y, "noise": rng.normal(size=n_rows)})
    risk = pr.make_classifier("SmoothDirectARM1").fit(X, y).predict_proba(X)[:, 1]
    assert risk == pytest.approx(y, abs=0.01)


def test_more_features_than_rows():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 150))
    y = (X[:, 0] > 0).astype(int)
    model = smooth().fit(X, y)
    risk = model.predict_proba(X)[:, 1]
    assert risk[y == 1].mean() > risk[y == 0].mean() + 0.3
    spread = spread_by_feature(model)
    assert max(spread, key=spread.get) == "x0"
    fresh = rng.normal(size=(2000, 150))
    assert roc_auc_score(fresh[:, 0] > 0, model.predict_proba(fresh)[:, 1]) > 0.95


def test_a_bin_holds_a_sensible_number_of_rows():
    assert [least_rows(LayerSettings(), n) for n in (1, 99, 1000, 20_000)] == [1, 1, 10, 50]
    assert least_rows(LayerSettings(min_bin_rows=7), 10**6) == 7


@pytest.mark.parametrize("shapes", ["steps", "smooth"])
@pytest.mark.parametrize("least", ["auto", 200])
def test_no_bin_of_a_few_rows(credit, shapes, least):
    form = pr.AdditiveRiskModel(shapes=shapes, min_bin_rows=least).fit(credit.frame, credit.target).form_
    for table in form.parts[0].shapes.values():
        if isinstance(table.levels, Bins):
            assert min(table.weights[: table.levels.n_ordered]) >= (30 if least == "auto" else least)


def test_the_floor_of_rows_is_no_floor_of_the_fit(credit):
    """Fine bins are fitted below the floor; only the tables that people read are merged up to it."""
    rough, fine = (smooth(credit.schema, min_bin_rows=n).fit(credit.frame, credit.target) for n in (400, 1))
    assert rough.solution_.objective == fine.solution_.objective
    rows = [sum(len(s.scores) for s in m.form_.parts[0].shapes.values()) for m in (rough, fine)]
    assert rows[0] < rows[1]


# ---- intervals


def test_the_draws_have_the_covariance_of_the_coefficients():
    """One feature without order: the posterior is normal, and its draws have its moments."""
    rng = np.random.default_rng(6)
    x = rng.integers(0, 4, 2000)
    y = (rng.random(2000) < np.array([0.1, 0.2, 0.4, 0.6])[x]).astype(int)
    model = smooth(intervals=True, tolerance=0.0).fit({"x": x.astype(float)}, y)
    draws = model.posterior(4000, seed=1)
    risk = np.array([form.score({"x": np.arange(4.0)}) for form in draws.forms])
    # Nearly the maximum likelihood: the log odds of each level have the variance 1 / (n p (1 - p)).
    for level in range(4):
        n, p = (x == level).sum(), y[x == level].mean()
        assert risk[:, level].std() == pytest.approx(1 / np.sqrt(n * p * (1 - p)), rel=0.12)
    np.testing.assert_allclose(risk.mean(axis=0), model.form_.score({"x": np.arange(4.0)}), atol=0.02)


def test_intervals_cover_what_they_say():
    """Credible intervals of a smooth shape cover a known truth about as often as they say, over the whole curve."""
    covered = []
    for seed in range(12):
        rng = np.random.default_rng(100 + seed)
        X = {name: rng.uniform(-2, 2, 1500) for name in ("a", "b")}
        truth = np.sin(2 * X["a"]) + 0.5 * X["b"] - 0.5
        y = (rng.random(1500) < 1 / (1 + np.exp(-truth))).astype(int)
        model = smooth(intervals=True, tolerance=0.0).fit(X, y)
        found = model.posterior(300, seed=seed).risk(X, level=0.9)
        risk = 1 / (1 + np.exp(-truth))
        covered.append(np.mean((found.low <= risk) & (risk <= found.high)))
    assert 0.86 <= np.mean(covered) <= 0.99  # a random walk is rougher than the truth here, so they are wide


@pytest.mark.parametrize("name", ["SmoothARM1", "SmoothDirectARM1"])
@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_intervals_stand_in_the_model_file_and_are_the_same_every_time(credit, name, tmp_path):
    model = pr.make_classifier(name, credit.schema, intervals=True).fit(credit.frame, credit.target)
    model.save(tmp_path / "m.json")
    loaded = pr.load(tmp_path / "m.json")
    rows = credit.frame[:20]
    one, two = (m.posterior(50).risk(rows) for m in (model, loaded))
    np.testing.assert_array_equal(one.low, two.low)
    assert ((one.low <= one.estimate) & (one.estimate <= one.high)).mean() > 0.9
    shape = loaded.posterior(50).shape("bureau_score")
    assert shape.low.shape == (len(loaded.form_.parts[0].shapes["bureau_score"].scores),)


def test_models_without_covariance_say_so(credit, model):
    with pytest.raises(DataError, match=r"intervals=True, or use pr\.bootstrap"):
        model.posterior()
    with pytest.raises(DataError, match="intervals need smooth shapes"):
        pr.AdditiveRiskModel(intervals=True).fit(credit.frame, credit.target)


# ---- pairs


@pytest.fixture(scope="module")
def interacting():
    rng = np.random.default_rng(8)
    n = 6000
    X = pd.DataFrame({
        "up": np.where(rng.random(n) < 0.05, np.nan, rng.normal(size=n)),
        "down": rng.normal(size=n),
        "free": rng.normal(size=n),
        "job": rng.choice(["a", "b", "c", "d"], n),
    })  # fmt: skip
    score = 1.2 * ((X["up"] > 0) & (X["down"] < 0)) + 1.5 * (X["free"] > 0) * X["job"].isin(["a", "b"]) - 1.5
    y = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)
    schema = pr.Schema(
        features={
            "up": {"direction": "increasing"},
            "down": {"direction": "decreasing"},
            "free": {},
            "job": {"kind": "categorical"},
        }
    )
    return X, y, schema


def test_pairs_that_are_there_are_found(interacting):
    X, y, schema = interacting
    model = smooth(schema, pairs="auto").fit(X, y)
    assert {frozenset(pair.features) for pair in model.form_.parts[0].pairs} == {
        frozenset(("up", "down")),
        frozenset(("free", "job")),
    }
    ranked = model.pair_evidence_
    assert len(ranked) == 6
    assert [one.is_evident for one in ranked] == [True, True, False, False, False, False]
    plain = smooth(schema).fit(X, y)
    assert log_loss(y, model.predict_proba(X)[:, 1]) < log_loss(y, plain.predict_proba(X)[:, 1]) - 0.01
    assert pr.suggest_pairs(plain, X, y)[0].features == ranked[0].features


def test_pairs_are_monotone_wherever_a_feature_has_a_direction(interacting):
    X, y, schema = interacting
    model = smooth(schema, pairs=[("down", "up"), ("up", "free"), ("up", "job")]).fit(X, y)
    assert {pair.features for pair in model.form_.parts[0].pairs} <= {("up", "down"), ("up", "free"), ("up", "job")}
    values = np.linspace(-3, 3, 25)
    rows = pd.MultiIndex.from_product(
        [values, [-2.0, 0.0, 2.0], [-1.0, 1.0, np.nan], ["a", "c", None]], names=["up", "down", "free", "job"]
    ).to_frame(index=False)
    risk = model.predict_proba(rows)[:, 1].reshape(25, -1)
    assert (np.diff(risk, axis=0) >= 0).all()
    swapped = rows.rename(columns={"up": "down", "down": "up"})
    risk = model.predict_proba(swapped)[:, 1].reshape(25, -1)
    assert (np.diff(risk, axis=0) <= 0).all()
    assert model.certify().valid


@pytest.mark.parametrize("link", ["logistic", "linear"])
def test_pairs_on_a_stream_and_in_bands(interacting, link):
    X, y, schema = interacting
    table = X.assign(bad=y)
    rows = pr.rows.Batches(
        tuple(table.columns), len(table), lambda names: (table[list(names)][k : k + 2500] for k in range(0, 6000, 2500))
    )
    streamed = smooth(schema, link=link, pairs=2).fit(rows, y="bad")
    whole = smooth(schema, link=link, pairs=2).fit(X, y)
    assert len(whole.form_.parts[0].pairs) == 2
    np.testing.assert_allclose(streamed.predict_proba(X), whole.predict_proba(X), rtol=0, atol=1e-9)
    if link == "logistic":
        banded = pr.make_classifier("SmoothARM1", schema, pairs=2).fit(X, y)
        np.testing.assert_allclose(banded.form_.score(X), whole.form_.score(X), rtol=0, atol=1e-12)


def test_intervals_know_pairs(interacting):
    X, y, schema = interacting
    model = smooth(schema, pairs=2, intervals=True).fit(X, y)
    found = model.posterior(100).risk(X[:50])
    assert (found.low < found.high).all()


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("up", "wrong")], "pairs: there is no feature 'wrong'"),
        ([("up", "up")], "are one feature"),
        ([("up", "down"), ("down", "up")], "named twice"),
        ("all", "pairs must be"),
        (0, "pairs must be"),
        ([("up",)], "pairs must be"),
    ],
)
def test_pairs_that_cannot_be_are_refused(interacting, pairs, message):
    X, y, schema = interacting
    with pytest.raises(DataError, match=message):
        smooth(schema, pairs=pairs).fit(X, y)


def test_steps_have_no_pairs(interacting):
    X, y, schema = interacting
    with pytest.raises(DataError, match="pairs need smooth shapes"):
        pr.AdditiveRiskModel(schema, pairs="auto").fit(X, y)


@pytest.mark.parametrize("link", ["logistic", "linear"])
@pytest.mark.parametrize("values", [[1.0] * 60, [np.nan] * 60, ["x"] * 60])
def test_a_feature_that_never_varies_leaves_the_base_rate(link, values):
    X, y = pd.DataFrame({"a": values}), np.arange(60) % 3 == 0
    with pytest.warns(PlainriskWarning, match="no evidence for any feature"):
        model = smooth(link=link, pairs="auto").fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / 3, atol=1e-6)
    with pytest.warns(PlainriskWarning, match="no evidence for any feature"):
        bands = pr.make_classifier("SmoothARM1").fit(X, y)
    np.testing.assert_allclose(bands.predict_proba(X)[:, 1], 1 / 3, atol=1e-6)
