"""New rows beside the limits of the model: each figure by its own function, limits by the policy, histories."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import plainrisk as pr
from plainrisk.errors import DataError, SchemaError
from plainrisk.validate.weak_spots import promised_auc


@pytest.fixture(scope="module")
def credit():
    made = pr.datasets.make_credit(3000, 3, backend="polars")
    model = pr.make_classifier("ARM1", made.schema).fit(made.frame[:2000], made.target[:2000]).annotate(cutoff=0.2)
    return model, made.frame[2000:].with_columns(pl.Series("bad", made.target[2000:]))


def by_name(found):
    return {check.name: check for check in found.checks}


def test_figures_are_those_of_their_own_functions(credit):
    model, frame = credit
    found = pr.monitor(model, frame)
    checks, moved, measured = by_name(found), pr.drift(model, frame), pr.evaluate(model, frame)
    assert found.crossed == ()
    assert checks["shift"].value == moved.risk.psi
    assert {f.feature: checks[f"shift of {f.feature}"].value for f in moved.features} == {
        f.feature: f.psi for f in moved.features
    }
    auc, gap = checks["AUC"], checks["gap"]
    assert auc.value == measured["auc"].estimate
    assert auc.low == pr.evaluate(model, frame, level=0.99)["auc"].low
    assert auc.baseline == promised_auc(model.predict_proba(frame)[:, 1])
    assert auc.limit == pytest.approx(auc.baseline - 0.05)
    assert gap.value == pytest.approx(measured["gap"].estimate)
    assert checks["approval"].value == pr.cutoffs(model, frame).chosen.approval.estimate
    assert checks["approval"].baseline == model.fit_record_.risks.share_below(0.2)
    assert (found.rows, found.known) == (1000, 1000)


def test_what_moves_crosses_a_limit_unless_rows_are_few(credit):
    model, frame = credit
    poor = frame.sort("bureau_score").head(400)
    assert {"shift", "shift of bureau_score", "approval"} <= set(pr.monitor(model, poor).crossed)
    turned = frame.with_columns(bad=1 - pl.col("bad"))
    crossed = pr.monitor(model, turned)
    assert {"AUC", "gap"} <= set(crossed.crossed)
    assert [c.state for c in crossed.checks] == sorted(
        (c.state for c in crossed.checks), key=["crossed", "watch", "too few rows", "within"].index
    )
    few = by_name(pr.monitor(model, frame[:25]))
    assert "too few rows" in {check.state for check in few.values()}
    assert few["shift"].state != "crossed"
    holes = frame.with_columns(income=pl.when(pl.arange(1000) % 4 == 0).then(None).otherwise(pl.col("income")))
    odd = holes.with_columns(
        housing=pl.when(pl.arange(1000) % 9 == 0).then(pl.lit("boat")).otherwise(pl.col("housing"))
    )
    crossed = pr.monitor(model, odd).crossed
    assert {"missing of income", "unseen of housing"} <= set(crossed)


def test_nothing_is_crossed_by_chance(credit):
    """Ten samples of rows like those of training; a larger share of false alarms than this has a chance of 1%."""
    model, _ = credit
    made = pr.datasets.make_credit(4000, 17, backend="polars")
    alarms = [pr.monitor(model, made.frame[k : k + 200], made.target[k : k + 200]).crossed for k in range(0, 2000, 200)]
    assert sum(map(bool, alarms)) <= 1, alarms


def test_the_policy_says_what_is_much(credit):
    model, frame = credit
    strict = {"policy": {"drift": {"auc": 0.99, "auc_drop": 0.01, "gap": 0.0, "approval": 0.1, "approval_shift": 0.05}}}
    found = by_name(pr.monitor(model.annotate(strict), frame))
    assert (found["AUC"].baseline, found["AUC"].limit, found["AUC"].state) == (0.99, pytest.approx(0.98), "crossed")
    assert (found["approval"].baseline, found["approval"].state) == (0.1, "crossed")
    assert found["approval"].limit == pytest.approx(0.15)
    with pytest.raises(SchemaError, match="the drift limit auc_drop must be from 0 to 1, not 2"):
        model.annotate({"policy": {"drift": {"auc_drop": 2.0}}})


def test_a_history_grows_and_is_drawn(credit, tmp_path):
    model, frame = credit
    path = tmp_path / "looks.jsonl"
    for month in range(3):
        found = pr.monitor(model, frame[300 * month : 300 * (month + 1)], label=f"2026-0{month + 1}", history=path)
    kept = [json.loads(line) for line in path.read_text().splitlines()]
    assert [look["label"] for look in kept] == ["2026-01", "2026-02", "2026-03"]
    assert kept == list(found.history)
    assert kept[2]["checks"]["shift"]["value"] == by_name(found)["shift"].value
    axes = found.plot()
    assert [ax.get_title("left") for ax in axes] == ["shift", "AUC", "gap", "approval"]
    np.testing.assert_allclose(axes[0].lines[0].get_ydata(), [look["checks"]["shift"]["value"] for look in kept])
    path.write_text(path.read_text() + "{}\n")
    before = path.read_text()
    with pytest.raises(DataError, match=r"looks\.jsonl: line 4 was not written by monitor"):
        pr.monitor(model, frame, history=path)
    assert path.read_text() == before


def test_without_outcomes_or_a_cut_off_there_is_less(credit):
    model, frame = credit
    blind = by_name(pr.monitor(model.at_base_rate(0.15), frame.drop("bad")))
    assert not {"AUC", "gap", "approval", "shift"} & set(blind)
    assert "missing of income" in blind
    with pytest.raises(DataError, match="monitor: needs a model of plainrisk"):
        pr.monitor(np.full(10, 0.1), None)
