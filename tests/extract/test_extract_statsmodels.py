from __future__ import annotations

import numpy as np
import pytest

import plainrisk as pr
from plainrisk.errors import ExtractionError
from plainrisk.extract import extract_form

sm = pytest.importorskip("statsmodels.api")
smf = pytest.importorskip("statsmodels.formula.api")

BINOMIAL = sm.families.Binomial()


@pytest.fixture(scope="module")
def rows(credit):
    return (credit.numbers - credit.numbers.mean()) / credit.numbers.std()


@pytest.mark.parametrize("kind", ["logit", "l1", "glm", "elastic net"])
def test_the_score_is_the_linear_predictor(credit, rows, kind):
    X = sm.add_constant(rows)
    results = {
        "logit": lambda: sm.Logit(credit.y, X).fit(disp=0),
        "l1": lambda: sm.Logit(credit.y, X).fit_regularized(alpha=3.0, disp=0),
        "glm": lambda: sm.GLM(credit.y, X, family=BINOMIAL).fit(),
        "elastic net": lambda: sm.GLM(credit.y, X, family=BINOMIAL).fit_regularized(alpha=0.01),
    }[kind]()
    expected = X.to_numpy() @ np.asarray(results.params)
    with_constant, without, bare = (extract_form(results, Z) for Z in (X, rows, None))
    np.testing.assert_allclose(with_constant.score(rows), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(without.score(rows), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(bare.score(X), expected, rtol=0, atol=1e-12)
    assert with_constant.columns == ("const", "age", "income", "delays")
    assert without.columns == ("age", "income", "delays")
    assert "const" not in bare.schema.features


def test_the_results_inside_the_wrapper(credit, rows):
    results = sm.Logit(credit.y, sm.add_constant(rows)).fit(disp=0)
    assert extract_form(results._results) == extract_form(results)


def test_arrays_and_a_constant_of_another_size(credit, rows):
    X = np.column_stack([rows.to_numpy(), np.full(len(rows), 2.0)])
    results = sm.Logit(credit.y, X).fit(disp=0)
    form = extract_form(results, rows)
    np.testing.assert_allclose(form.score(rows), X @ results.params, rtol=0, atol=1e-12)
    no_constant = sm.Logit(credit.y, rows.to_numpy()).fit(disp=0)
    form = extract_form(no_constant, rows.to_numpy())
    np.testing.assert_allclose(form.score(rows.to_numpy()), rows.to_numpy() @ no_constant.params, rtol=0, atol=1e-12)


def test_a_formula_of_plain_columns(credit):
    data = credit.X.assign(bad=credit.y, thousands=credit.X.income / 1000)
    results = smf.logit("bad ~ age + thousands", data).fit(disp=0)
    expected = results.predict(data, which="linear")
    np.testing.assert_allclose(extract_form(results, data).score(data), expected, rtol=0, atol=1e-12)
    with pytest.raises(ExtractionError, match=r"its formula makes the column 'C\(job\)\[T"):
        extract_form(smf.logit("bad ~ age + C(job)", data).fit(disp=0))


def test_refusals(credit, rows):
    X = sm.add_constant(rows)
    with pytest.raises(ExtractionError, match=r"its link is probit.*pr.linearise\(model\)"):
        extract_form(sm.Probit(credit.y, X).fit(disp=0))
    cauchy = sm.families.Binomial(sm.families.links.Cauchy())
    with pytest.raises(ExtractionError, match="Binomial with a Cauchy link"):
        extract_form(sm.GLM(credit.y, X, family=cauchy).fit())
    with pytest.raises(ExtractionError, match="Poisson with a Log link"):
        extract_form(sm.GLM(credit.y, X, family=sm.families.Poisson()).fit())
    with pytest.raises(ExtractionError, match="MNLogit cannot be read"):
        extract_form(sm.MNLogit(credit.X.region, X).fit(disp=0))
    with pytest.raises(ExtractionError, match="Logit cannot be read: it is not fitted"):
        extract_form(sm.Logit(credit.y, X))
    with pytest.raises(ExtractionError, match="fitted with an offset"):
        extract_form(sm.GLM(credit.y, X, family=BINOMIAL, offset=np.ones(len(X))).fit())


@pytest.mark.parametrize(("link", "sigmoid"), [("Probit", "probit"), ("CLogLog", "cloglog")])
def test_other_links_are_linearised_by_their_own_line(credit, rows, link, sigmoid):
    X = sm.add_constant(rows)
    family = sm.families.Binomial(getattr(sm.families.links, link)())
    results = sm.GLM(credit.y, X, family=family).fit()
    line = pr.best_line(sigmoid)
    model = pr.linearise(results, X)
    score = np.asarray(results.predict(X, which="linear"))
    wanted = np.clip((score - line.lower) / (line.upper - line.lower), 0, 1)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], wanted, rtol=0, atol=1e-12)
    assert model.clipped_ == pytest.approx(np.mean((wanted == 0) | (wanted == 1)), abs=1e-12)
    turned = pr.linearise(results, X, schema=pr.Schema(positive=0))
    np.testing.assert_allclose(turned.predict_proba(X)[:, list(turned.classes_).index(0)], 1 - wanted, atol=1e-12)
    with pytest.raises(pr.errors.DataError, match="has one best line"):
        pr.linearise(results, X, pieces=3)
