"""Cross validation of rows that are not in memory; `tests/data/test_spark_rows.py` compares places."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

import plainrisk as pr
from plainrisk.data.folds import Folds
from plainrisk.data.frame import as_frame
from plainrisk.errors import DataError

pytestmark = pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")


@pytest.fixture(scope="module")
def credit():
    return pr.datasets.make_credit(900, seed=3, n_features=6)


@pytest.fixture(scope="module")
def rows(credit, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "credit.parquet"
    table = credit.frame.with_columns(bad=credit.target, customer=pl.int_range(900) // 3)
    table.write_parquet(path)
    return pr.rows.parquet(path, batch_rows=200)


def test_every_fold_is_a_fit_without_it(credit, rows):
    said = []
    model = pr.make_classifier("ARM1", credit.schema)
    found = pr.cross_validate(model, rows, "bad", cv=4, progress=lambda *done: said.append(done))
    assert said == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert not hasattr(model, "form_")
    held_out = [fold.n_rows for fold in found.folds]
    assert [900 - one.fit_record_.rows for one in found.models] == held_out
    assert found.mean["auc"] == pytest.approx(found.scores["auc"].mean())
    assert repr(found).startswith("CrossValidation: 4 folds, 900 rows\nauc ")
    assert repr(found.folds[0]) == f"Fold({held_out[0]} held-out rows, AdditiveRiskModel)"
    frame = found.to_frame(credit.frame)
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == ["fold", "auc", "log_loss", "brier", "ece"]
    assert frame["auc"].to_list() == found.scores["auc"].tolist()


def test_seeds_deal_otherwise_and_the_same_seed_the_same(credit, rows):
    model = pr.make_classifier("DirectARM1", credit.schema)
    one, again, other = (pr.cross_validate(model, rows, "bad", 3, seed).pooled for seed in (1, 1, 2))
    assert one == again != other


def test_kinds_come_from_the_columns_without_a_schema(credit, rows):
    table = credit.frame.with_columns(bad=credit.target)
    stored = pr.rows.Batches(tuple(table.columns), 900, lambda columns: iter([table.select(columns)]))
    found = pr.cross_validate(pr.AdditiveRiskModel(), stored, "bad", cv=3)
    assert list(found.models[0].form_.schema.features) == credit.frame.columns
    with pytest.raises(DataError, match="without a schema the group would be a feature"):
        pr.cross_validate(pr.AdditiveRiskModel(), rows, "bad", cv=3, groups="customer")


def test_boosted_trees_of_files_are_validated_too(credit, rows):
    pytest.importorskip("xgboost", reason="pip install 'plainrisk[boost]'")
    found = pr.cross_validate(pr.make_classifier("XGB", credit.schema), rows, "bad", cv=2)
    assert found.mean["auc"] > 0.6


def test_certain_and_wrong_rows_are_counted(credit, rows):
    found = pr.cross_validate(pr.make_classifier("DirectARM1", credit.schema), rows, "bad", cv=3)
    wrong = [int(found.rows[(found.risk == end) & (found.target != end)].sum()) for end in (0, 1)]
    assert sum(wrong) > 0
    assert found.certain_and_wrong.startswith(
        f"{wrong[0]:,} rows of the positive outcome got probability 0, and {wrong[1]}"
    )


def test_what_is_refused_says_why(credit, rows):
    model = pr.make_classifier("ARM1", credit.schema)
    inner = pr.SubscaleMixture(schema=credit.schema, cv=[(np.arange(400), np.arange(400, 600))])
    for wrong, message in (
        ({"cv": KFold(3)}, "cv must be a whole number"),
        ({"cv": 1}, "cv must be a whole number"),
        ({"cv": 900}, "a fold of the cross validation has no rows"),
        ({"groups": "custmer"}, "groups names no column: 'custmer'. Did you mean 'customer'"),
        ({"groups": np.arange(900)}, "groups must be the name of a column"),
        ({"time": "customer"}, "time needs rows in memory"),
        ({"sample_weight": np.ones(900)}, "sample_weight must be the name of a column"),
        ({"y": credit.target}, "y must be the name of a column"),
        ({"model": LogisticRegression()}, "by a model of ours"),
        ({"model": inner}, "Fold 1 of 3: Data: this needs rows one by one, by their number"),
    ):
        with pytest.raises(DataError, match=message):
            pr.cross_validate(**{"model": model, "X": rows, "y": "bad", "cv": 3} | wrong)
    with pytest.raises(DataError, match="so there is no risk for each of them"):
        pr.cross_validate(model, rows, "bad", cv=2).to_frame(rows=True)


def test_a_fold_that_cannot_be_fitted_is_named(credit):
    table = credit.frame.with_columns(bad=pl.int_range(900) >= 300, side=pl.int_range(900) // 300)
    stored = pr.rows.Batches(tuple(table.columns), 900, lambda columns: iter([table.select(columns)]))
    homes = [set(Folds(2, texts=("side",), seed=(seed, 0))(as_frame(table[:300]))) for seed in range(20)]
    others = [set(Folds(2, texts=("side",), seed=(seed, 0))(as_frame(table[300:]))) for seed in range(20)]
    seed = next(k for k in range(20) if not homes[k] & others[k])
    with pytest.raises(DataError, match=r"Fold \d of 2: .*there is only one class in 'bad'"):
        pr.cross_validate(pr.AdditiveRiskModel(credit.schema), stored, "bad", 2, seed, "side")
