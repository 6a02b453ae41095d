"""Refits against refits made by hand, and bins moved by one against rows moved by one."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import plainrisk as pr
from plainrisk.errors import DataError
from plainrisk.validate.refitting import unfitted

pytestmark = pytest.mark.filterwarnings("ignore:The model reads protected")


@pytest.fixture(scope="module")
def credit():
    made = pr.datasets.make_credit(500, 3, backend="polars")
    model = pr.make_classifier("ARM1", made.schema).fit(made.frame, made.target)
    return model, made.frame, made.target


def test_refits_are_those_made_by_hand(credit):
    model, frame, y = credit
    found = pr.stability(model, frame, y, new=frame[:200], n=2, seed=5, cutoff=0.2)
    new, flips, changed, spread = frame[:200], [], [], []
    refused = model.predict_proba(new)[:, 1] >= 0.2
    first = [r[0] if (r := reason["reasons"]) else None for reason in model.reasons(new).to_dict()]
    for k in range(2):
        rows = np.random.default_rng((5, k)).integers(500, size=500)
        again = pr.make_classifier("ARM1", model.schema).fit(frame[rows], y[rows])
        flips.append(((again.predict_proba(new)[:, 1] >= 0.2) != refused).mean())
        told = [r[0] if (r := reason["reasons"]) else None for reason in again.reasons(new).to_dict()]
        names = [[None if one is None else one["feature"] for one in side] for side in (first, told)]
        changed.append(np.mean([a != b for a, b, no in zip(*names, refused, strict=True) if no]))
        own = again.explain(new, reference="typical")
        spread.append(own.contributions[:, own.names.index("income")] if "income" in own.names else np.zeros(200))
    resampled, reordered = found.refits
    assert (resampled.decisions, resampled.decisions_most) == pytest.approx((np.mean(flips), max(flips)))
    assert resampled.reasons == pytest.approx(np.mean(changed))
    assert (reordered.decisions, reordered.reasons) == (0, 0)
    assert reordered.risk < 1e-6
    income = next(f for f in found.features if f.feature == "income")
    assert income.spread == pytest.approx(np.std(spread, axis=0, ddof=1).mean())
    ours = model.explain(new, reference="typical")
    assert income.size == pytest.approx(np.abs(ours.contributions[:, ours.names.index("income")]).mean())
    assert found.rows == 200


def test_a_bin_up_is_a_row_in_the_next_bin(credit):
    model, frame, y = credit
    found = {f.feature: f for f in pr.stability(model, frame, y, n=2, cutoff=0.2).features}
    edges = model.form_.parts[0].shapes["bureau_score"].levels.edges
    score = frame["bureau_score"].to_numpy().astype(float)
    level = np.searchsorted(edges, score)
    above = np.append(edges, edges[-1] + 1)[np.minimum(level + 1, len(edges))]
    moved = frame.with_columns(bureau_score=np.where(np.isnan(score) | (score < 0), score, above))
    refused, later = (model.predict_proba(X)[:, 1] >= 0.2 for X in (frame, moved))
    assert found["bureau_score"].up == pytest.approx((refused != later).mean(), abs=0.011)
    assert np.isnan(found["housing"].up)


def test_a_model_from_a_file_is_made_again(credit, tmp_path):
    model, frame, y = credit
    model.save(tmp_path / "m.json", cutoff=0.2)
    loaded = pr.load(tmp_path / "m.json")
    assert unfitted(loaded).get_params()["max_bins"] == model.get_params()["max_bins"]
    ours = pr.stability(model, frame, y, n=2, cutoff=0.2)
    assert pr.stability(loaded, frame, y, n=2).refits == ours.refits
    with pytest.raises(DataError, match="does not say all of how the model was fitted"):
        pr.stability(pr.RiskModel(model.form_), frame, y, n=2)
    with pytest.raises(DataError, match="n must be a whole number from 2 to 10,000, not 1"):
        pr.stability(model, frame, y, n=1)


def test_without_a_cut_off_there_are_no_decisions(credit):
    model, frame, y = credit
    done = []
    found = pr.stability(model, frame, y, n=2, progress=lambda k, total: done.append((k, total)))
    assert done == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert np.isnan([found.refits[0].decisions, found.unsteady, found.features[0].up]).all()
    assert 0 < found.refits[0].reasons < 1
    assert isinstance(found.to_frame(pl.DataFrame()), pl.DataFrame)
