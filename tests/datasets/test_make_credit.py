"""Synthetic applications: reproducible, with the stated truth and the traits of real data."""

from __future__ import annotations

import itertools

import narwhals as nw
import numpy as np
import pytest
from scipy.special import logit

from plainrisk import datasets
from plainrisk.data.frame import as_frame
from plainrisk.datasets import make_credit
from plainrisk.datasets.registry import schema_of
from plainrisk.datasets.synthetic import TEMPLATES
from plainrisk.errors import DataError

FEATURES = schema_of("synthetic").features


def test_every_feature_has_its_template():
    assert list(FEATURES) == list(TEMPLATES)


@pytest.fixture(scope="module")
def credit():
    return make_credit(70_000, seed=3)


@pytest.fixture(scope="module")
def columns(credit):
    """The frame's columns as arrays: NaN for missing numbers, the position in the list for categories."""
    return _columns(credit)


def _columns(credit):
    frame = nw.from_native(credit.frame, eager_only=True)
    out = {}
    for name, feature in credit.schema.features.items():
        values = frame[name].to_list()
        if feature.kind == "categorical":
            place = {label: i for i, label in enumerate(feature.categories)} | {None: -1}
            out[name] = np.array([place[v] for v in values])
        else:
            out[name] = np.array([np.nan if v is None else v for v in values], dtype=float)
    return out


def test_the_same_seed_gives_the_same_rows():
    first, again, other = make_credit(500, seed=1), make_credit(500, seed=1), make_credit(500, seed=2)
    assert first.frame.equals(again.frame)
    np.testing.assert_array_equal(first.target, again.target)
    assert not first.frame.equals(other.frame)


@pytest.mark.parametrize("n_features", [1, 10, 12, 23, 30, 90])
def test_any_number_of_features(n_features):
    made = make_credit(300, n_features=n_features)
    frame = nw.from_native(made.frame, eager_only=True)
    assert frame.shape == (300, n_features)
    assert frame.columns == list(made.schema.features)
    assert sorted(f for members in made.schema.subscales.values() for f in members) == sorted(frame.columns)
    assert all(feature.reason for feature in made.schema.features.values())


def test_repeated_kinds_are_drawn_afresh():
    frame = nw.from_native(make_credit(300, n_features=24).frame, eager_only=True)
    assert frame["loan_amount"].to_list() != frame["loan_amount_2"].to_list()


@pytest.mark.parametrize("backend", ["polars", "pandas", "pyarrow"])
def test_every_library_gets_the_same_rows(backend):
    pytest.importorskip(backend)
    made, usual = make_credit(400, backend=backend), make_credit(400)
    assert nw.from_native(made.frame, eager_only=True).implementation.value == backend
    np.testing.assert_array_equal(made.truth, usual.truth)
    frame, other = as_frame(made.frame), as_frame(usual.frame)
    for name, feature in made.schema.features.items():
        if feature.kind == "categorical":
            assert frame.labels(name).labels == other.labels(name).labels
            np.testing.assert_array_equal(frame.labels(name).codes, other.labels(name).codes)
        else:
            np.testing.assert_array_equal(frame.numbers(name), other.numbers(name))
    assert (frame.labels("purpose").codes == -1).any()
    assert np.isnan(frame.numbers("income")).any()


def true_score(columns):
    """The sum of the effects of the values that stand in the data, codes included."""
    total = 0.0
    for template, values in zip(itertools.cycle(TEMPLATES.values()), columns.values(), strict=False):
        coded = [np.isnan(values) if np.isnan(code.value) else values == code.value for code in template.codes]
        regular = ~np.any([np.zeros(len(values), dtype=bool), *coded], axis=0)
        effect = np.select(coded, [code.effect for code in template.codes], 0.0) if coded else np.zeros(len(values))
        effect[regular] = template.effect(values[regular])
        total = total + effect
    return total


@pytest.mark.parametrize("n_features", [5, 12, 40])
def test_the_truth_is_a_function_of_what_stands_in_the_data(n_features):
    made = make_credit(2_000, seed=4, n_features=n_features)
    score = true_score(_columns(made))
    slope, intercept = np.polyfit(score, logit(made.truth), 1)
    np.testing.assert_allclose(logit(made.truth), intercept + slope * score, atol=1e-9)
    assert 0.2 < slope < 1 + 1e-9


@pytest.mark.parametrize("base_rate", [0.03, 0.15, 0.5])
def test_the_base_rate_is_the_one_asked_for(base_rate):
    made = make_credit(60_000, seed=9, base_rate=base_rate)
    assert made.truth.mean() == pytest.approx(base_rate, abs=0.004)
    spread = np.sqrt((made.truth * (1 - made.truth)).sum())
    assert abs(made.target.sum() - made.truth.sum()) < 4 * spread


def test_outcomes_follow_the_truth(credit):
    for part in np.array_split(np.argsort(credit.truth), 10):
        expected, seen = credit.truth[part], credit.target[part].sum()
        assert abs(seen - expected.sum()) < 4.5 * np.sqrt((expected * (1 - expected)).sum())


@pytest.mark.parametrize("name", TEMPLATES)
def test_effects_obey_the_schema(name, columns):
    template, values = TEMPLATES[name], columns[name]
    codes = [code.value for code in template.codes]
    regular = np.unique(values[~np.isin(values, codes) & ~np.isnan(values)])
    steps = np.diff(template.effect(regular.astype(template.dtype)))
    sign = FEATURES[name].sign
    if sign:
        assert (sign * steps >= 0).all()
        assert (sign * steps > 0).any()
    else:
        assert (steps > 0).any()
        assert (steps < 0).any()


@pytest.mark.parametrize("name", TEMPLATES)
def test_codes_come_as_often_as_stated_and_are_declared(name, columns):
    template, values = TEMPLATES[name], columns[name]
    for code in template.codes:
        found = np.isnan(values) if np.isnan(code.value) else values == code.value
        assert found.mean() == pytest.approx(code.share, rel=0.15)
        feature = FEATURES[name]
        declared = code.value in feature.special_values
        below = feature.lower_bound is not None and code.value < feature.lower_bound
        missing = np.isnan(code.value) or (feature.kind == "categorical" and code.value == -1)
        assert declared or below or missing


def test_the_data_have_the_traits_of_real_data(credit, columns):
    distinct = {name: len(np.unique(values)) for name, values in columns.items()}
    assert distinct["inquiries"] < 40  # ties
    assert distinct["debt_ratio"] > 60_000  # none
    assert np.nanmax(columns["debt_ratio"]) > 50 * np.nanmedian(columns["debt_ratio"])  # a heavy tail
    assert set(columns["debt_ratio"][columns["debt_ratio"] < 0]) == {-0.5, -1.5}
    ordered = credit.schema.features["savings"]
    assert (ordered.kind, ordered.direction, len(ordered.categories)) == ("categorical", "decreasing", 4)
    known = (columns["bureau_score"] > 0) & (columns["late_payments"] >= 0)
    assert np.corrcoef(columns["bureau_score"][known], columns["late_payments"][known])[0, 1] < -0.1


def test_more_features_do_not_make_it_easier():
    few, many = make_credit(20_000), make_credit(20_000, n_features=60)
    assert logit(many.truth).std() == pytest.approx(logit(few.truth).std(), rel=0.05)


def test_the_age_effect_is_a_u():
    effect = TEMPLATES["age"].effect(np.array([18.0, 48.0, 90.0]))
    assert effect[1] < min(effect[0], effect[2])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n": 0}, "n must be a whole number of at least 1, not 0"),
        ({"n": 5, "seed": -1}, "seed must be a whole number of at least 0, not -1"),
        ({"n": 5, "n_features": 0}, "n_features must be a whole number of at least 1, not 0"),
        ({"n": 5, "base_rate": 1.0}, r"base_rate must be a finite number above 0 and below 1, not 1\.0"),
    ],
)
def test_senseless_arguments_are_refused(arguments, words):
    with pytest.raises(DataError, match=words):
        datasets.make_credit(**arguments)
