from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import plainrisk as pr
from plainrisk.errors import DataError
from plainrisk.explain import compare_reasons, reason_stability, reasons
from plainrisk.models.bootstrap import bootstrap

pytestmark = pytest.mark.filterwarnings("ignore:.*the line is cut off")


@pytest.fixture(scope="module")
def credit():
    return pr.datasets.make_credit(1500, 8, backend="polars")


def test_agreement_by_hand(credit):
    model = pr.AdditiveRiskModel(credit.schema).fit(credit.frame, credit.target)
    base = model.reasons(credit.frame, 3)
    other = model.reasons(credit.frame, 3, reference="typical")
    found = compare_reasons(base, other)
    sets = [(set(base.named(i)), set(other.named(i))) for i in range(len(base))]
    assert found.changed == pytest.approx(np.mean([a != b for a, b in sets]))
    firsts = [base.named(i)[:1] != other.named(i)[:1] for i in range(len(base))]
    assert found.first_changed == pytest.approx(np.mean(firsts))
    assert found.kept == pytest.approx(sum(len(a & b) for a, b in sets) / sum(len(a) for a, _ in sets))
    same = compare_reasons(base, base)
    assert (same.changed, same.first_changed, same.kept) == (0.0, 0.0, 1.0)


def test_the_report(credit):
    model = pr.AdditiveRiskModel(credit.schema, link="linear").fit(credit.frame, credit.target)
    logistic = pr.AdditiveRiskModel(credit.schema).fit(credit.frame, credit.target)
    risk = model.predict_proba(credit.frame)[:, 1]
    refused = credit.frame.filter(risk > 0.3)
    refits = bootstrap(model, credit.frame, credit.target, n=10)
    report = reason_stability(
        model.form_, refused, refits=refits.forms, models={"logistic": logistic.form_}, rules=["typical"], k=3
    )
    assert [(r.what, r.times) for r in report.rows] == [("refits", 10), ("logistic", 1), ("reference=typical", 1)]
    each = [compare_reasons(reasons(model.form_, refused, 3), reasons(f, refused, 3)).changed for f in refits.forms]
    assert report.rows[0].changed == pytest.approx(np.mean(each))
    assert 0 < report.rows[0].changed < 1
    assert report.applicants == len(refused)
    assert list(report.to_frame(pd.DataFrame())["what"]) == ["refits", "logistic", "reference=typical"]
    assert "first_changed" in str(report)
    assert report.to_dict()["rows"][1]["what"] == "logistic"


def test_between_models_of_other_subscales(credit):
    """Candidates are compared by name, whatever their number."""
    one = pr.AdditiveRiskModel(credit.schema).fit(credit.frame, credit.target)
    few = pr.AdditiveRiskModel(credit.schema.select(["income", "bureau_score"])).fit(credit.frame, credit.target)
    found = compare_reasons(one.reasons(credit.frame, 2), few.reasons(credit.frame, 2))
    assert 0 < found.changed <= 1
    with pytest.raises(DataError, match="Use the same rows"):
        compare_reasons(one.reasons(credit.frame, 2), few.reasons(credit.frame[:5], 2))


def test_nobody_has_reasons(credit):
    model = pr.AdditiveRiskModel(credit.schema).fit(credit.frame, credit.target)
    nobody = model.reasons(credit.frame[:0])
    assert compare_reasons(nobody, nobody).kept == 1.0
