"""Smooth shapes: what is found, what is obeyed, and what joining tables costs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import plainrisk as pr
from plainrisk.form import Bins
from plainrisk.models.arm import LayerSettings
from plainrisk.models.smooth import fine_bins


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
    assert {group.kind for group in model.evidence_} == {"steps", "outside", "levels"}
    for group in model.evidence_:
        assert 0 <= group.edf <= group.size
        assert group.precision > 0
        assert group.left == (group.edf == 0)


def test_the_directions_hold_exactly(credit, model):
    for name, feature in credit.schema.features.items():
        if feature.sign:
            table = model.form_.parts[0].shapes[name]
            steps = np.diff(table.scores[: table.levels.n_ordered]) * feature.sign
            assert (steps >= 0).all()
    assert model.certify().valid


@pytest.mark.parametrize("tolerance", [0.0, 1e-4, 1e-3])
@pytest.mark.parametrize("link", ["logistic", "linear"])
def test_joining_costs_no_more_than_the_tolerance(credit, link, tolerance):
    """On the training rows, in log loss; the squared error where the sum is the probability."""
    fine, joined = (
        smooth(credit.schema, link=link, tolerance=t).fit(credit.frame, credit.target).form_ for t in (0.0, tolerance)
    )
    y = credit.target
    losses = []
    for form in (fine, joined):
        score = form.score(credit.frame)
        losses.append(np.mean((y - score) ** 2) if link == "linear" else np.mean(np.logaddexp(0, score) - y * score))
    assert losses[1] <= losses[0] + tolerance + 1e-12
    rows = [sum(len(s.scores) for s in form.parts[0].shapes.values()) for form in (fine, joined)]
    assert rows[1] < rows[0] if tolerance else rows[1] == rows[0]


def test_a_table_has_at_most_the_rows_asked_for(credit):
    model = smooth(credit.schema, max_bins=4).fit(credit.frame, credit.target)
    tables = model.form_.parts[0].shapes.values()
    assert max(t.levels.n_ordered for t in tables if isinstance(t.levels, Bins)) == 4
    assert model.certify().valid


def test_weights_and_outcomes_of_joined_bins_add_up(credit, model):
    for table in model.form_.parts[0].shapes.values():
        assert sum(table.weights) == pytest.approx(3000)
        assert sum(table.positives) == pytest.approx(credit.target.sum())


def test_the_scores_of_codes_are_those_of_the_form(credit, model):
    """Bands are fitted to scores from codes; they must be those of the joined tables."""
    banded = pr.make_classifier("SmoothARM1", credit.schema).fit(credit.frame, credit.target)
    own = banded.estimator_.form_.score(credit.frame)
    np.testing.assert_allclose(own, model.form_.score(credit.frame), rtol=0, atol=1e-12)
    link = banded.form_.parts[0].link
    assert link.knots[0] == pytest.approx(own.min(), abs=1e-12)
    assert link.knots[-1] == pytest.approx(own.max(), abs=1e-12)


def test_noise_leaves_and_signal_stays():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1500, 12)), columns=[f"x{j}" for j in range(12)])
    y = (np.sin(2 * X["x0"]) + X["x1"].abs() + rng.logistic(size=1500) > 0.8).astype(int)
    model = smooth().fit(X, y)
    left = {group.feature for group in model.evidence_ if group.left}
    assert not left & {"x0", "x1"}
    assert len(left) >= 4
    for name in left:
        assert len(model.form_.parts[0].shapes[name].levels.edges) == 0
        assert set(model.form_.parts[0].shapes[name].scores) == {0.0}


def test_fine_bins_beat_steps_on_a_curve():
    rng = np.random.default_rng(1)
    x, new = rng.normal(size=3000), rng.normal(size=3000)
    y, held = ((rng.random(3000) < 1 / (1 + np.exp(-2 * np.sin(2 * v)))).astype(int) for v in (x, new))
    steps, curve = (m.fit({"x": x}, y).predict_proba({"x": new})[:, 1] for m in (pr.AdditiveRiskModel(), smooth()))
    assert log_loss(held, curve) < log_loss(held, steps)


@pytest.mark.parametrize("name", ["SmoothARM1", "SmoothARM2", "SmoothDirectARM1", "MixSmoothARM1"])
@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_a_stream_gives_the_model_of_memory(credit, name, tmp_path):
    table = credit.frame.assign(bad=credit.target)
    rows = pr.rows.Batches(
        tuple(table.columns), 3000, lambda columns: (table[list(columns)][k : k + 700] for k in range(0, 3000, 700))
    )
    streamed = pr.make_classifier(name, credit.schema).fit(rows, y="bad")
    whole = pr.make_classifier(name, credit.schema).fit(credit.frame, credit.target)
    np.testing.assert_allclose(streamed.predict_proba(table), whole.predict_proba(table), rtol=0, atol=1e-9)
    again = pr.make_classifier(name, credit.schema).fit(credit.frame, credit.target)
    for model, path in ((whole, "a.json"), (again, "b.json")):
        model.save(tmp_path / path)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_weights_count_like_rows(credit):
    twice = smooth(credit.schema, min_bin_rows=1).fit(pd.concat([credit.frame] * 2), np.tile(credit.target, 2))
    heavy = smooth(credit.schema, min_bin_rows=1).fit(credit.frame, credit.target, sample_weight=np.full(3000, 2.0))
    np.testing.assert_allclose(twice.predict_proba(credit.frame), heavy.predict_proba(credit.frame), rtol=0, atol=1e-9)


@pytest.mark.filterwarnings("ignore:class_weight moves")
def test_class_weights_move_the_intercept(credit):
    plain = smooth(credit.schema).fit(credit.frame, credit.target)
    balanced = smooth(credit.schema, class_weight="balanced").fit(credit.frame, credit.target)
    assert balanced.predict_proba(credit.frame)[:, 1].mean() > plain.predict_proba(credit.frame)[:, 1].mean() + 0.1


def test_the_schema_s_edges_are_kept_and_its_max_bins_is_for_steps(credit):
    schema = pr.Schema(features={"age": {"edges": (30.0, 50.0)}, "bureau_score": {"max_bins": 2}})
    model = smooth(schema, tolerance=0.0).fit(credit.frame, credit.target)
    shapes = model.form_.parts[0].shapes
    assert shapes["age"].levels.edges == (30.0, 50.0)
    assert shapes["bureau_score"].levels.n_ordered > 20


def test_large_offsets_lose_nothing():
    rng = np.random.default_rng(3)
    x = rng.normal(size=1000)
    y = (x + rng.logistic(size=1000) > 0).astype(int)
    near, far = (smooth().fit({"x": v}, y).predict_proba({"x": v}) for v in (x, x + 1e9))
    np.testing.assert_allclose(near, far, rtol=0, atol=1e-3)


@pytest.mark.parametrize("n_rows", [3, 10, 40])
def test_few_rows(n_rows):
    X = pd.DataFrame({"a": np.arange(n_rows) % 7, "b": list("xyz" * n_rows)[:n_rows]})
    model = smooth().fit(X, np.arange(n_rows) % 2)
    assert np.isfinite(model.predict_proba(X)).all()


def test_more_features_than_rows():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 150))
    y = (X[:, 0] > 0).astype(int)
    risk = smooth().fit(X, y).predict_proba(X)[:, 1]
    assert risk[y == 1].mean() > risk[y == 0].mean() + 0.3


def test_bins_are_fewer_on_wide_data_and_hold_a_sensible_number_of_rows():
    assert [fine_bins(n) for n in (1, 31, 32, 100, 250, 3000)] == [64, 64, 62, 20, 8, 8]
    assert [LayerSettings().min_rows(n) for n in (1, 99, 1000, 20_000)] == [1, 1, 10, 50]
    assert LayerSettings(min_bin_rows=7).min_rows(10**6) == 7


@pytest.mark.parametrize("shapes", ["steps", "smooth"])
def test_no_bin_of_a_few_rows(credit, shapes):
    form = pr.AdditiveRiskModel(shapes=shapes).fit(credit.frame, credit.target).form_
    for table in form.parts[0].shapes.values():
        if isinstance(table.levels, Bins):
            assert min(table.weights[: table.levels.n_ordered]) >= 30
