from __future__ import annotations

import numpy as np
import pytest

from plainrisk.errors import ExtractionError
from plainrisk.explain import certify
from plainrisk.extract import extract_form
from plainrisk.form import Curve, Line, Table

pygam = pytest.importorskip("pygam")
s, f, l, te = pygam.s, pygam.f, pygam.l, pygam.te  # noqa: E741


@pytest.fixture(scope="module")
def rows(credit):
    return credit.X[["age", "income", "delays", "region"]].astype(float)


def predictor(model, X):
    return model._linear_predictor(np.asarray(X, dtype=float))


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_splines_factors_and_lines(credit, rows, order, rng):
    terms = s(0, n_splines=8, spline_order=order) + s(1) + l(2) + f(3)
    model = pygam.LogisticGAM(terms).fit(rows.to_numpy(), credit.y)
    form = extract_form(model, rows)
    kinds = [type(shape) for shape in form.parts[0].shapes.values()]
    assert kinds == [Curve, Curve, Line, Table]
    # Inside, at the edge knots, and far beyond them, where pyGAM goes on straight.
    far = rows.copy()
    far["age"] = rng.uniform(-300, 400, len(rows))
    far["income"] = rng.normal(0, 1e5, len(rows))
    far.loc[far.index[:2], "age"] = [rows.age.min(), rows.age.max()]
    for X in (rows, far):
        np.testing.assert_allclose(form.score(X), predictor(model, X), rtol=1e-11, atol=1e-9)
    bare = extract_form(model)
    np.testing.assert_allclose(bare.score(rows.to_numpy()), predictor(model, rows), rtol=0, atol=1e-10)


def test_a_feature_in_two_terms_has_one_shape(credit, rows):
    model = pygam.LogisticGAM(s(0, n_splines=6) + l(0) + f(3, coding="dummy")).fit(rows.to_numpy(), credit.y)
    form = extract_form(model, rows)
    np.testing.assert_allclose(form.score(rows), predictor(model, rows), rtol=0, atol=1e-10)
    assert list(form.schema.features) == ["age", "region"]


def test_a_monotone_spline_is_certified(credit, rows):
    from plainrisk.schema import Schema

    model = pygam.LogisticGAM(s(0, constraints="monotonic_dec", spline_order=1, n_splines=6)).fit(
        rows[["age"]].to_numpy(), credit.y
    )
    schema = Schema(features={"age": {"direction": "decreasing"}})
    assert certify(extract_form(model, rows[["age"]], schema=schema)).valid
    wrong = Schema(features={"age": {"direction": "increasing"}})
    assert not certify(extract_form(model, rows[["age"]], schema=wrong)).valid


def test_refusals(credit, rows):
    X, y = rows.to_numpy(), credit.y
    with pytest.raises(ExtractionError, match=r"tensor term te\(\)"):
        extract_form(pygam.LogisticGAM(te(0, 1, n_splines=4)).fit(X, y))
    with pytest.raises(ExtractionError, match="by="):
        extract_form(pygam.LogisticGAM(s(0, by=2)).fit(X, y))
    with pytest.raises(ExtractionError, match="basis 'cp'"):
        extract_form(pygam.LogisticGAM(s(0, basis="cp")).fit(X, y))
    with pytest.raises(ExtractionError, match="not fitted"):
        extract_form(pygam.LogisticGAM())
    with pytest.raises(ExtractionError, match="Use LogisticGAM"):
        extract_form(pygam.LinearGAM(s(0)).fit(X, y))
    with pytest.raises(ExtractionError, match="not whole numbers"):
        extract_form(pygam.LogisticGAM(f(3)).fit(X + 0.25, y))
