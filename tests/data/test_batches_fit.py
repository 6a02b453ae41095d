"""Models fitted to batches are those fitted to the rows in memory."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest

import plainrisk as pr
from plainrisk.data.rows import Batches
from plainrisk.errors import DataError, PlainriskWarning


def in_batches(frame: pl.DataFrame, size: int, progress=None) -> Batches:
    def read(columns):
        return (frame[start : start + size].select(columns) for start in range(0, frame.height, size))

    return Batches(tuple(frame.columns), frame.height, read, progress)


@pytest.fixture(scope="module")
def german():
    data = pr.datasets.load("german", backend="polars")
    return data, data.frame.with_columns(bad=data.target, exposure=np.arange(data.frame.height) % 3)


@pytest.fixture(scope="module")
def credit():
    data = pr.datasets.make_credit(3_000, 1, n_features=12)
    return data, data.frame.with_columns(bad=data.target)


def fitted(model, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)
        return model.fit(*arguments, **options)


@pytest.mark.parametrize("name", pr.CLASSIFIERS)
def test_every_model_is_the_one_in_memory(german, name):
    data, table = german
    streamed = fitted(pr.make_classifier(name, data.schema), in_batches(table, 137), "bad")
    whole = fitted(pr.make_classifier(name, data.schema), data.frame, data.target)
    np.testing.assert_allclose(streamed.predict_proba(table), whole.predict_proba(table), atol=1e-9)
    ours, theirs = streamed.fit_record_, whole.fit_record_
    assert (ours.rows, ours.weight, ours.positive_weight) == (theirs.rows, theirs.weight, theirs.positive_weight)
    assert ours.clipped == pytest.approx(theirs.clipped, abs=1e-12)
    for a, b in zip(streamed.form_.parts, whole.form_.parts, strict=True):
        for feature, shape in getattr(a, "shapes", {}).items():
            assert shape.levels == b.shapes[feature].levels
            assert shape.weights == b.shapes[feature].weights


@pytest.mark.parametrize("name", ["ARM1", "DirectARM1", "MixARM1", "ARM2", "NNLR", "BandARM1", "MonoXGB"])
def test_with_weights_and_balanced_classes(german, name):
    data, table = german
    kept = table["exposure"].to_numpy() > 0
    for options, weight in (({}, "exposure"), ({"class_weight": "balanced"}, None)):
        streamed, whole = (pr.make_classifier(name, data.schema, **options) for _ in range(2))
        fitted(streamed, in_batches(table, 300), "bad", sample_weight=weight)
        fitted(whole, data.frame, data.target, sample_weight=None if weight is None else table[weight].to_numpy())
        np.testing.assert_allclose(streamed.predict_proba(table), whole.predict_proba(table), atol=1e-9)
        assert streamed.fit_record_.rows == (int(kept.sum()) if weight else table.height)


@pytest.mark.parametrize(
    "options",
    [{"cv": 3}, {"weights": "stacking"}, {"cv": 3, "weights": "stacking"}, {"cv": 3, "calibrate": True}],
)
def test_a_mixture_weighs_its_experts_alike(german, options):
    data, table = german
    streamed, whole = (pr.SubscaleMixture(schema=data.schema, **options) for _ in range(2))
    fitted(streamed, in_batches(table, 300), "bad")
    fitted(whole, data.frame, data.target)
    assert streamed.weights_ == pytest.approx(whole.weights_, abs=1e-9)
    np.testing.assert_allclose(streamed.predict_proba(table), whole.predict_proba(table), atol=1e-9)


def test_parquet_and_csv_files(credit, tmp_path):
    data, table = credit
    for k in range(3):
        table[k * 1000 : (k + 1) * 1000].write_parquet(tmp_path / f"part{k}.parquet")
    table.write_csv(tmp_path / "all.csv")
    whole = pr.AdditiveRiskModel(data.schema).fit(data.frame, data.target)
    for rows in (
        pr.rows.parquet(str(tmp_path / "*.parquet"), batch_rows=700),
        pr.rows.parquet([tmp_path / f"part{k}.parquet" for k in range(3)]),
        pr.rows.csv(tmp_path / "all.csv", batch_rows=700),
    ):
        assert len(rows) == 3_000
        streamed = pr.AdditiveRiskModel(data.schema).fit(rows, "bad")
        np.testing.assert_allclose(streamed.predict_proba(table), whole.predict_proba(table), atol=1e-9)


def test_the_target_comes_from_the_schema_and_kinds_from_the_columns(credit):
    _, table = credit
    told = pr.Schema(target="bad", features={"x": {}})
    rows = in_batches(table.select("bad", x=pl.col(table.columns[0])), 1000)
    assert pr.AdditiveRiskModel(told).fit(rows).feature_names_in_.tolist() == ["x"]
    assert list(pr.AdditiveRiskModel().fit(rows, "bad").form_.schema.features) == ["x"]


def test_a_spool_on_disk_gives_the_same_model(credit, monkeypatch):
    data, table = credit
    held = pr.AdditiveRiskModel(data.schema).fit(in_batches(table, 500), "bad")
    monkeypatch.setattr("plainrisk.data.spool.IN_MEMORY", 1000)
    spooled = pr.AdditiveRiskModel(data.schema).fit(in_batches(table, 500), "bad")
    assert spooled.form_ == held.form_


def test_many_values_share_buckets_and_the_user_is_told(credit, monkeypatch):
    data, table = credit
    monkeypatch.setattr("plainrisk.bins.edges.MOST_VALUES", 256)
    with pytest.warns(PlainriskWarning, match=r"more than 256 distinct values. Bin edges there are exact to one part"):
        streamed = pr.AdditiveRiskModel(data.schema).fit(in_batches(table, 500), "bad")
    other = fitted(pr.AdditiveRiskModel(data.schema), in_batches(table, 1100), "bad")
    assert [s.levels for s in other.form_.parts[0].shapes.values()] == [
        s.levels for s in streamed.form_.parts[0].shapes.values()
    ]
    whole = pr.AdditiveRiskModel(data.schema).fit(data.frame, data.target)
    assert np.abs(streamed.predict_proba(table) - whole.predict_proba(table)).mean() < 0.02


def test_empty_batches_are_no_batches(credit):
    data, table = credit
    pieces = [table[:0], table[:1000], table[:0], table[1000:], table[:0]]
    rows = Batches(tuple(table.columns), table.height, lambda columns: (piece.select(columns) for piece in pieces))
    streamed = pr.AdditiveRiskModel(data.schema).fit(rows, "bad")
    whole = pr.AdditiveRiskModel(data.schema).fit(data.frame, data.target)
    np.testing.assert_allclose(streamed.predict_proba(table), whole.predict_proba(table), atol=1e-9)


def test_progress_counts_every_row_of_every_pass(credit):
    data, table = credit
    seen = []
    rows = in_batches(table, 1000, lambda task, done, total: seen.append((task, done, total)))
    pr.AdditiveRiskModel(data.schema).fit(rows, "bad")
    tasks = list(dict.fromkeys(task for task, _, _ in seen))
    assert tasks == ["reading outcomes", "finding bins", "coding rows"]
    for task in tasks[1:]:
        assert [done for name, done, _ in seen if name == task] == [1000, 2000, 3000]


class TestErrors:
    def test_no_such_file(self, tmp_path):
        with pytest.raises(DataError, match="no file matches"):
            pr.rows.parquet(tmp_path / "*.parquet")

    def test_not_a_parquet_file(self, tmp_path):
        path = tmp_path / "x.parquet"
        path.write_text("a,b\n1,2\n")
        with pytest.raises(DataError, match=r"x\.parquet cannot be read"):
            pr.rows.parquet(path)

    def test_batches_of_no_rows(self, tmp_path):
        path = tmp_path / "x.csv"
        path.write_text("a,b\n1,2\n")
        with pytest.raises(DataError, match="batch_rows must be a whole number of at least 1, not 0"):
            pr.rows.csv(path, batch_rows=0)

    def test_the_outcome_must_be_a_column(self, credit):
        data, table = credit
        with pytest.raises(DataError, match="y must be the name of a column when rows come in batches, not ndarray"):
            pr.AdditiveRiskModel(data.schema).fit(in_batches(table, 500), data.target)
        with pytest.raises(DataError, match=r"y names no column: 'bat'\. Did you mean 'bad'"):
            pr.AdditiveRiskModel(data.schema).fit(in_batches(table, 500), "bat")

    def test_a_missing_outcome_is_named_by_its_row(self, credit):
        data, table = credit
        holes = table.with_columns(bad=pl.when(pl.int_range(3000) == 1234).then(None).otherwise(pl.col("bad")))
        with pytest.raises(DataError, match="'bad' is missing in row 1,234"):
            pr.AdditiveRiskModel(data.schema).fit(in_batches(holes, 500), "bad")

    def test_a_bad_number_is_named_by_its_row(self, credit):
        data, table = credit
        name = next(n for n, f in data.schema.features.items() if f.kind == "continuous")
        bad = table.with_columns(pl.when(pl.int_range(3000) == 1234).then(np.inf).otherwise(pl.col(name)).alias(name))
        with pytest.raises(DataError, match=rf"{name}.*infinity \(row 1234\)"):
            pr.AdditiveRiskModel(data.schema).fit(in_batches(bad, 500), "bad")

    def test_more_than_two_outcomes(self, credit):
        data, table = credit
        three = table.with_columns(bad=pl.int_range(3000) // 1000)
        with pytest.raises(DataError, match="multiclass: it has 3 labels"):
            pr.AdditiveRiskModel(data.schema).fit(in_batches(three, 500), "bad")
        with pytest.raises(DataError, match="only one class"):
            pr.AdditiveRiskModel(data.schema).fit(in_batches(table.with_columns(bad=1), 500), "bad")

    def test_an_outcome_that_changes_its_type_between_batches(self, credit):
        data, table = credit
        text = table.with_columns(pl.col("bad").cast(pl.String))
        pieces = [table[:1000], text[1000:]]
        rows = Batches(tuple(table.columns), 3_000, lambda columns: (piece.select(columns) for piece in pieces))
        with pytest.raises(DataError, match="'bad' changes between numbers and text; the batch from row 1,000 on"):
            pr.AdditiveRiskModel(data.schema).fit(rows, "bad")

    def test_an_outcome_that_mixes_types_in_a_batch(self, credit):
        data, table = credit
        columns = {name: table[name].to_list() for name in table.columns}
        columns["bad"] = [*columns["bad"][:-1], "1"]
        rows = Batches(tuple(columns), 3_000, lambda names: iter([{name: columns[name] for name in names}]))
        with pytest.raises(DataError, match="'bad' mixes numbers and text: row 2,999"):
            pr.AdditiveRiskModel(data.schema).fit(rows, "bad")

    def test_files_that_changed_between_passes(self, credit):
        data, table = credit
        rows = Batches(tuple(table.columns), 3_001, in_batches(table, 500).read)
        with pytest.raises(DataError, match="3,000 rows were read where there were 3,001"):
            pr.AdditiveRiskModel(data.schema).fit(rows, "bad")

    def test_models_that_need_all_rows_say_so(self, credit):
        from sklearn.linear_model import LogisticRegression

        data, table = credit
        rows = in_batches(table, 500)
        with pytest.raises(DataError, match="needs all rows in memory"):
            pr.SubscaleMixture(LogisticRegression(), data.schema).fit(rows, "bad")

    def test_rows_in_batches_can_not_be_scored(self, credit):
        data, table = credit
        model = pr.AdditiveRiskModel(data.schema).fit(data.frame, data.target)
        with pytest.raises(DataError, match="rows in batches can be fitted, no more"):
            model.predict_proba(in_batches(table, 500))
