"""Whatever stands in a cell at scoring time, the answer is a risk or one clear error."""

from __future__ import annotations

import datetime
import decimal
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plainrisk as pr
from plainrisk.errors import DataError, PlainriskWarning

FEATURES = {
    "size": {"direction": "increasing", "special_values": (-9,), "lower_bound": 0.0},
    "free": {},
    "job": {"kind": "categorical"},
    "grade": {"kind": "categorical", "direction": "decreasing", "special_values": ("none",)},
}


def fitted(unseen="neutral"):
    rng = np.random.default_rng(5)
    n = 300
    X = pd.DataFrame({
        "size": np.where(rng.random(n) < 0.1, -9.0, rng.normal(size=n).round(1)),
        "free": rng.normal(size=n).round(1),
        "job": rng.choice(["cook", "clerk"], n),
        "grade": rng.choice(["1", "2", "3", "none"], n),
    })  # fmt: skip
    y = (X["free"] + (X["job"] == "cook") + rng.normal(size=n) > 0.5).astype(int)
    schema = pr.Schema(
        features={name: {**f, "unseen": unseen} for name, f in FEATURES.items()},
        subscales={"a": ("size", "job"), "b": ("free", "grade")},
    )
    models = [
        pr.AdditiveRiskModel(schema),
        pr.AdditiveRiskModel(schema, link="linear"),
        pr.NonnegativeLogisticRegression(schema),
        pr.TwoLayerRiskModel(schema=schema),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)
        return [model.fit(X, y) for model in models]


NEUTRAL, STRICT = fitted(), fitted("error")
FAR = 1.7976931348623157e308

cells = st.one_of(
    st.none(),
    st.text(max_size=6),
    st.integers(),
    st.sampled_from([10**400, -(10**400), 2**63, 2**64, FAR, -FAR, 5e-324, -0.0, 1e16, 123456789012345678]),
    st.floats(),
    st.booleans(),
    st.binary(max_size=3),
    st.sampled_from([
        np.nan, np.inf, -np.inf, pd.NA, pd.NaT, np.float32(0.5), np.int8(3), np.str_("cook"), np.bool_(True),
        datetime.date(2020, 2, 29), datetime.datetime(2020, 1, 1), pd.Timestamp("2020"), datetime.timedelta(1),
        decimal.Decimal("1.5"), decimal.Decimal("NaN"), 1j, "nan", "None", "NaN", "inf", "1e400", "", " 1", "missing",
        "unseen", "cook ", "Cook", "\x00", "1", 1, 1.0, "none", "-9", -9,
    ]),
)  # fmt: skip


@st.composite
def tables(draw):
    """Some rows that are as usual but for one column of anything, as a dict, a frame or one row."""
    n = draw(st.integers(1, 4))
    good = {"size": [1.0] * n, "free": [0.5] * n, "job": ["cook"] * n, "grade": ["2"] * n}
    name = draw(st.sampled_from(list(good)))
    column = draw(st.lists(cells, min_size=n, max_size=n))
    kind = draw(st.sampled_from(["dict", "pandas", "one row"]))
    if kind == "one row":
        return {k: v[0] for k, v in good.items()} | {name: column[0]}
    table = good | {name: column}
    if kind == "dict":
        return table
    return pd.DataFrame({k: pd.Series(v, dtype=object if k == name else None) for k, v in table.items()})


def check(model, table):
    try:
        risk = model.predict_proba(table)
    except DataError:
        return
    assert np.isfinite(risk).all()
    assert ((risk >= 0) & (risk <= 1)).all()
    np.testing.assert_allclose(risk.sum(axis=1), 1.0, rtol=1e-15)
    found = model.explain(table)
    assert np.isfinite(found.contributions).all()


@settings(max_examples=150, deadline=None)
@given(tables())
def test_any_cell_gives_a_risk_or_a_data_error(table):
    for model in (*NEUTRAL, STRICT[0]):
        check(model, table)


@pytest.mark.parametrize("model", NEUTRAL, ids=lambda m: f"{type(m).__name__} {getattr(m, 'link', '')}")
def test_an_unseen_level_is_exactly_neutral(model):
    """A level that training never saw adds 0, the mean of a table; it is not the risk of any seen level."""
    X = {"size": [np.nan], "free": [np.nan], "job": ["astronaut"], "grade": [None]}
    for part in model.form_.parts:
        terms = part.terms(model.form_.align(X), model.form_.schema)
        assert all(value.tolist() == [0.0] for value in terms.values())
        assert part.score(model.form_.align(X), model.form_.schema).tolist() == [part.intercept]


def test_the_mean_effect_of_a_table_is_zero():
    for model in (NEUTRAL[0], NEUTRAL[1], NEUTRAL[3]):
        for part in model.form_.parts:
            for shape in part.shapes.values():
                assert np.dot(shape.weights, shape.scores) / np.sum(shape.weights) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("model", STRICT, ids=lambda m: f"{type(m).__name__} {getattr(m, 'link', '')}")
@pytest.mark.parametrize(
    ("name", "value", "level"),
    [("job", "astronaut", "unseen"), ("job", None, "missing"), ("free", np.nan, "missing"), ("grade", "4", "unseen")],
)  # fmt: skip
def test_a_strict_schema_refuses_an_unseen_level_by_name_and_row(model, name, value, level):
    good = {"size": [1.0] * 3, "free": [0.5] * 3, "job": ["cook"] * 3, "grade": ["2"] * 3}
    assert model.predict_proba(good).shape == (3, 2)
    bad = good | {name: [good[name][0], value, good[name][0]]}
    with pytest.raises(DataError, match=rf"feature '{name}', row 1: level '{level}' was not in the training data"):
        model.predict_proba(bad)


@pytest.mark.parametrize("name", FEATURES)
def test_a_missing_column_is_named(name):
    row = {"size": 1.0, "free": 0.5, "job": "cook", "grade": "2"}
    del row[name]
    for model in NEUTRAL:
        with pytest.raises(DataError, match=f"feature '{name}' is not in the data"):
            model.predict_proba(row)
