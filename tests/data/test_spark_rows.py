"""Rows of a Spark table, asked through a stand-in for its DataFrame: what is sent, merged, cached and refused.

The stand-in has partitions and no Spark, so that all classifiers can be fitted in many of them; `tests/spark` does the
same with Spark itself, for a few.
"""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import plainrisk as pr
from plainrisk.data import spark_rows
from plainrisk.data.folds import Folds
from plainrisk.data.frame import as_frame
from plainrisk.data.spark_rows import SparkRows
from plainrisk.errors import DataError, PlainriskError, PlainriskWarning

cloudpickle = pytest.importorskip("pyspark.cloudpickle", reason="pip install 'plainrisk[spark]'")

OURS = [name for name in pr.CLASSIFIERS if "XGB" not in name]


class Table:
    """What is asked of a DataFrame: every function goes to its partitions as bytes, as it would to other machines."""

    def __init__(self, parts, log=None):
        self.parts, self.log = parts, [] if log is None else log
        self.columns = parts[0].column_names

    def selectExpr(self, *expressions):
        def column(part, number, expression):
            name, _, alias = expression.partition(" as ")
            if name.startswith("array("):
                each = [part[own.strip("`")] for own in name[len("array(") : -1].split(", ")]
                assert len({column.type for column in each}) == 1
                return alias, pa.array([list(row) for row in zip(*(c.to_pylist() for c in each), strict=True)])
            if name == "spark_partition_id()":
                return alias, pa.array([number] * part.num_rows, pa.int32())
            if name == "0":
                return alias, pa.array([0] * part.num_rows, pa.int32())
            if " div " in name:
                name, _, width = name.partition(" div ")
                return alias, pa.array([value // int(width) for value in part[name].to_pylist()], pa.int32())
            return (alias or name).strip("`"), part[name.strip("`")]

        each = [dict(column(part, n, e) for e in expressions) for n, part in enumerate(self.parts)]
        return Table([pa.table(columns) for columns in each], self.log)

    @property
    def dtypes(self):
        kinds = {"int64": "bigint", "int32": "int", "uint8": "tinyint", "int8": "tinyint"}
        return [(field.name, kinds.get(str(field.type), str(field.type))) for field in self.parts[0].schema]

    def mapInArrow(self, function, schema):
        assert schema == "part int, item int, blob binary"
        function = cloudpickle.loads(cloudpickle.dumps(function))
        return Table([_joined(function(iter(part.to_batches(max_chunksize=100)))) for part in self.parts], self.log)

    def groupBy(self, *keys):
        grouped = Table(self.parts, self.log)
        grouped.keys = keys
        return grouped

    def applyInArrow(self, function, schema):
        assert schema == "part int, item int, blob binary"
        function = cloudpickle.loads(cloudpickle.dumps(function))
        records = [record for part in self.parts for record in part.to_pylist()]
        found = []
        for key in sorted({tuple(r[name] for name in self.keys) for r in records}, reverse=True):
            group = [r for r in records if tuple(r[name] for name in self.keys) == key][::-1]
            assert self.keys == ("item",) or len(group) <= spark_rows._MERGED
            found.append(function(pa.Table.from_pylist(group)))
        return Table(found if self.keys == ("item",) else [pa.concat_tables(found)], self.log)

    def repartition(self, tasks, column):
        """Deal the rows out by what a column holds, and forget their order."""
        whole = self.toArrow()[::-1]
        home = np.array(whole[column].to_pylist(), int) * 7 % tasks
        self.log.append(f"{len(self.parts)} to {tasks}")
        return Table([whole.filter(home == k) for k in range(tasks)], self.log)

    def sortWithinPartitions(self, *columns):
        return Table([part.sort_by([(c, "ascending") for c in columns]) for part in self.parts], self.log)

    def persist(self):
        self.log.append("persist")
        return self

    def unpersist(self):
        self.log.append("unpersist")

    def limit(self, n):
        return Table([self.toArrow()[:n]], self.log)

    def toArrow(self):
        return pa.concat_tables(self.parts)


def _joined(batches):
    batches = list(batches)
    empty = pa.schema([("part", pa.int32()), ("item", pa.int32()), ("blob", pa.binary())])
    return pa.Table.from_batches(batches, empty)


def spark_table(table: pl.DataFrame, parts: int, *, shuffled: bool = True) -> Table:
    """The rows in so many partitions of different sizes, of which some may be empty."""
    arrow = table.to_arrow()
    rng = np.random.default_rng(parts)
    order = rng.permutation(len(arrow)) if shuffled else np.arange(len(arrow))
    home = np.sort(rng.integers(0, parts, len(arrow)) ** 2 // parts) if parts > 1 else np.zeros(len(arrow))
    return Table([arrow.take(order[home == k]) for k in range(parts)])


def rows_of(df: Table, **options) -> SparkRows:
    return SparkRows(df, tuple(df.columns), kinds=dict(df.dtypes), **options)


@pytest.fixture(scope="module")
def german():
    data = pr.datasets.load("german", backend="polars")
    return data, data.frame.with_columns(bad=data.target, exposure=np.arange(data.frame.height) % 3)


@pytest.fixture(scope="module")
def holes():
    """Missing numbers and categories, special values, a category of one row."""
    rng = np.random.default_rng(5)
    n = 1_500
    age, job = rng.integers(20, 70, n).astype(float), rng.choice(["a", "b", "c"], n).astype(object)
    income = np.round(rng.lognormal(3, 1, n), 2)
    risk = 1 / (1 + np.exp(1 + 0.4 * np.log(income) - 0.02 * (age - 45) * (income < 20)))
    bad = rng.random(n) < np.where(rng.random(n) < 0.1, 0.5, risk)
    age[rng.random(n) < 0.1], income[rng.random(n) < 0.1], job[rng.random(n) < 0.1] = np.nan, -9.0, None
    job[7] = "rare one"
    schema = pr.Schema(
        target="bad",
        features={
            "age": {"kind": "continuous", "missing": "not_better"},
            "income": {"kind": "continuous", "direction": "decreasing", "special_values": [-9]},
            "job": {"kind": "categorical", "rare": 0.01},
        },
        subscales={"Person": ["age", "job"], "Money": ["income"]},
    )
    frame = pl.DataFrame({"age": age, "income": income, "job": job.tolist()}, nan_to_null=True)
    return schema, frame.with_columns(bad=pl.Series(bad.astype(np.int64)), weight=rng.integers(1, 4, n))


def fold_of(schema, table, n_folds, group=None, seed=(0, 0)):
    """The fold of every row, by a group or by features and outcome."""
    if group is not None:
        return Folds(n_folds, texts=(group,), seed=seed)(as_frame(table))
    numbers = tuple(name for name, feature in schema.features.items() if feature.kind == "continuous")
    texts = (*(name for name in schema.features if name not in numbers), "bad")
    return Folds(n_folds, numbers, texts, seed=seed)(as_frame(table))


def fitted(model, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)
        return model.fit(*arguments, **options)


def same(one, other, table):
    np.testing.assert_allclose(one.predict_proba(table), other.predict_proba(table), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", OURS)
def test_every_model_is_the_one_in_memory(german, name):
    data, table = german
    df = spark_table(table, 7)
    there = fitted(pr.make_classifier(name, data.schema), rows_of(df), "bad")
    here = fitted(pr.make_classifier(name, data.schema), data.frame, data.target)
    same(there, here, table)
    assert there.fit_record_.rows == here.fit_record_.rows == 1_000
    assert there.fit_record_.clipped == pytest.approx(here.fit_record_.clipped, abs=1e-12)
    assert df.log.count("persist") == df.log.count("unpersist") > 0


@pytest.mark.parametrize(("name", "parts"), [("ARM1", 1), ("ARM1", 40), ("MixLinARM1", 64)])
def test_partitions_do_not_matter(german, name, parts, monkeypatch):
    """Few are merged here, many where they are, and very many in several rounds; codes of small ones come together."""
    if parts == 40:
        monkeypatch.setattr(spark_rows, "_MERGED", 3)
        monkeypatch.setattr(spark_rows, "_TASK_ROWS", 100)
    data, table = german
    here = fitted(pr.make_classifier(name, data.schema), data.frame, data.target)
    there = [fitted(pr.make_classifier(name, data.schema), rows_of(spark_table(table, parts)), "bad") for _ in range(2)]
    same(there[0], here, table)
    assert there[0].form_ == there[1].form_, "the same partitions give the same bytes"


def test_codes_of_small_partitions_come_together(german):
    data, table = german
    df = spark_table(table, 40)
    rows = rows_of(df)
    assert rows.count() == 1_000
    assert rows.passes == 1
    fitted(pr.make_classifier("ARM1", data.schema), rows, "bad")
    assert [said for said in df.log if " to " in said] == ["40 to 1"]


@pytest.mark.parametrize("name", ["NNLR", "SmoothARM1", "ARM2"])
def test_holes_special_values_and_weights(holes, name):
    schema, table = holes
    y, w = table["bad"].to_numpy(), table["weight"].to_numpy()
    X = table.select("age", "income", "job")
    there = fitted(pr.make_classifier(name, schema), rows_of(spark_table(table, 7), weight="weight"))
    same(there, fitted(pr.make_classifier(name, schema), X, y, sample_weight=w), X)


def test_pairs_and_intervals(holes):
    schema = holes[0].edit("age", missing="free")
    table = holes[1]
    X = table.select("age", "income", "job")
    options = {"shapes": "smooth", "pairs": [("age", "income")], "intervals": True}
    there = fitted(pr.AdditiveRiskModel(schema, **options), rows_of(spark_table(table.drop("weight"), 5)))
    here = fitted(pr.AdditiveRiskModel(schema, **options), X, table["bad"].to_numpy())
    same(there, here, X)
    assert [p.features for p in there.form_.parts[0].pairs] == [p.features for p in here.form_.parts[0].pairs] != []
    np.testing.assert_allclose(there.fit_record_.covariance, here.fit_record_.covariance, rtol=1e-6, atol=1e-9)


def test_a_model_is_measured_where_the_rows_are(holes, monkeypatch):
    schema, table = holes
    X, y, w = table.select("age", "income", "job"), table["bad"].to_numpy(), table["weight"].to_numpy()
    model = fitted(pr.make_classifier("SmoothARM1", schema), X, y)
    rows, by_name = rows_of(spark_table(table, 7)), {"y": "bad", "sample_weight": "weight"}
    for there, here in (
        (pr.evaluate(model, rows), pr.evaluate(model, X, y)),
        (pr.evaluate(model, rows, **by_name), pr.evaluate(model, X, y, sample_weight=w)),
    ):
        assert (there.rows, there.positives, there.seen_before) == (here.rows, here.positives, True)
        for name, figure in here.figures.items():
            assert there[name].estimate == pytest.approx(figure.estimate, abs=1e-9)
            width = (there[name].high - there[name].low) / (figure.high - figure.low)
            exact = name in ("auc", "gini", "slope", "intercept")
            assert width == pytest.approx(1, abs=1e-9 if exact else 0.3), "another bootstrap of the same rows"
        assert there.calibration.columns() == {k: pytest.approx(v) for k, v in here.calibration.columns().items()}
        assert (there.tests is None) == (here.tests is None)
    assert there.tests is None
    grades = pr.evaluate(model, rows, grades=[0.3]).tests
    assert vars(grades.grades[0]) == pytest.approx(vars(pr.evaluate(model, X, y, grades=[0.3]).tests.grades[0]))

    costs = {"gain_good": 0.1, "cutoff": 0.4}
    there = pr.cutoffs(model, rows, amount="weight", **costs, **by_name)
    here = pr.cutoffs(model, X, y, amount=w, sample_weight=w, **costs)
    for one, other in ((there.best, here.best), (there.chosen, here.chosen)):
        assert vars(one.profit) == pytest.approx(vars(other.profit))
        assert vars(one.bad_rate) == pytest.approx(vars(other.bad_rate))

    there = pr.drift(model, rows, "bad", old=rows_of(spark_table(table[:500], 3)), old_y="bad")
    here = pr.drift(model, X, y, old=X[:500], old_y=y[:500])
    assert [f.psi for f in there.features] == pytest.approx([f.psi for f in here.features])
    assert vars(there.auc_change) == pytest.approx(vars(here.auc_change))
    assert there.new_performance.rows == 1_500

    monkeypatch.setattr("plainrisk.form.risks.MOST_RISKS", 128)
    with pytest.warns(PlainriskWarning, match=r"distinct probabilities\. Those that agree to one part in"):
        coarse = [pr.evaluate(model, rows_of(spark_table(table, parts)), "bad") for parts in (1, 40)]
    assert coarse[0].figures["ks"] == coarse[1].figures["ks"]
    assert coarse[0]["auc"].estimate == pytest.approx(pr.evaluate(model, X, y)["auc"].estimate, abs=1e-2)
    assert coarse[0].mean_risk == pytest.approx(model.predict_proba(X)[:, 1].mean(), abs=1e-12)


def test_what_measuring_stored_rows_refuses(holes):
    schema, table = holes
    X, y = table.select("age", "income", "job"), table["bad"].to_numpy()
    model, rows = fitted(pr.make_classifier("ARM1", schema), X, y), rows_of(spark_table(table, 3))
    with pytest.raises(DataError, match="against and by need rows in memory"):
        pr.evaluate(model, rows, by="job")
    with pytest.raises(DataError, match="y must be the name of a column"):
        pr.cutoffs(model, rows, y)
    with pytest.raises(DataError, match="by a model of plainrisk alone"):
        pr.evaluate(y * 0.5, rows, "bad")
    with pytest.raises(DataError, match="no column 'worse'"):
        pr.drift(model, rows, "worse")
    with pytest.raises(DataError, match="evaluate: there are no rows"):
        pr.evaluate(model, rows_of(spark_table(table[:0], 1)), "bad")
    gone = table.with_columns(bad=pl.when(pl.int_range(pl.len()) == 600).then(None).otherwise("bad"))
    with pytest.raises(DataError, match=r"has no outcome.*partition"):
        pr.evaluate(model, rows_of(spark_table(gone, 3)), "bad")


@pytest.mark.parametrize("options", [{"weights": "stacking"}, {"class_weight": "balanced"}])
def test_mixtures_that_are_weighed_otherwise(german, options):
    data, table = german
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)
        models = [pr.SubscaleMixture(schema=data.schema, **options) for _ in range(2)]
        there = models[0].fit(rows_of(spark_table(table.drop("exposure"), 7)), "bad")
        here = models[1].fit(data.frame, data.target)
    assert there.weights_ == pytest.approx(here.weights_, abs=1e-9)


@pytest.mark.parametrize("group", [None, "Age in years"])
def test_folds_are_dealt_by_what_rows_hold(german, group):
    """Whatever the partitions, as in memory with these folds; rows of a group are in one."""
    data, table = german
    home = fold_of(data.schema, table, 3, group)
    ages = [set(table.filter(home == k)["Age in years"]) for k in range(3)]
    assert (not ages[0] & ages[1]) == (group is not None)
    splits = [(np.flatnonzero(home != k), np.flatnonzero(home == k)) for k in range(3)]
    model = pr.SubscaleMixture(schema=data.schema, cv=splits, calibrate=True)
    here = fitted(model, data.frame, data.target)
    for parts in (spark_table(table.drop("exposure"), n) for n in (7, 40)):
        there = fitted(pr.SubscaleMixture(schema=data.schema, cv=3, calibrate=True), rows_of(parts, group=group), "bad")
        assert there.weights_ == pytest.approx(here.weights_, abs=1e-9)
        same(there, here, table)
        assert parts.log.count("persist") == parts.log.count("unpersist") > 0


@pytest.mark.parametrize("group", [None, "Age in years"])
def test_cross_validation_is_the_same_wherever_rows_live(german, group, tmp_path):
    """In files, in partitions, and in memory with these folds, which are those of a mixture."""
    data, table = german
    table = table.drop("exposure")
    table.write_parquet(tmp_path / "german.parquet")
    table.write_csv(tmp_path / "german.csv")
    home = fold_of(data.schema, table, 3, group)
    splits = [(np.flatnonzero(home != k), np.flatnonzero(home == k)) for k in range(3)]
    model = pr.make_classifier("SmoothARM1", data.schema)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)
        here = pr.cross_validate(model, data.frame, data.target, cv=splits)
        df = spark_table(table, 7)
        for rows, options in (
            (pr.rows.parquet(tmp_path / "german.parquet", batch_rows=137), {"groups": group}),
            (pr.rows.csv(tmp_path / "german.csv", batch_rows=300), {"groups": group}),
            (rows_of(df, group=group), {}),
        ):
            there = pr.cross_validate(model, rows, "bad", cv=3, **options)
            for name, values in here.scores.items():
                np.testing.assert_allclose(there.scores[name], values, rtol=0, atol=1e-9)
            assert there.pooled == pytest.approx(here.pooled, abs=1e-9)
            assert [fold.n_rows for fold in there.folds] == [len(fold.test) for fold in here.folds]
            for one, other in zip(there.models, here.models, strict=True):
                same(one, other, table)
    assert df.log.count("persist") == df.log.count("unpersist") == 3


def test_cross_validation_with_weights_holes_and_folds_inside(holes, tmp_path):
    """Rows of weight 0 are no rows; a model that deals folds of its own deals them otherwise."""
    schema, table = holes
    table = table.with_columns(weight=pl.col("weight") - 1)
    table.write_parquet(tmp_path / "holes.parquet")
    mixture = pr.SubscaleMixture(schema=schema, cv=3)
    places = (pr.rows.parquet(tmp_path / "holes.parquet"), rows_of(spark_table(table, 5), weight="weight"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)
        found = [pr.cross_validate(mixture, rows, cv=3, seed=4, sample_weight="weight") for rows in places]
    assert found[0].pooled == pytest.approx(found[1].pooled, abs=1e-9)
    counted = table.filter(pl.col("weight") > 0)
    assert found[0].rows.sum() == counted.height
    assert found[0].weight.sum() == counted["weight"].sum()
    weights = [[model.weights_["Money"] for model in one.models] for one in found]
    assert weights[0] == pytest.approx(weights[1], abs=1e-9)


@pytest.mark.parametrize(
    ("name", "few"), [("ARM1", True), ("MixLinARM1", True), ("SmoothARM1", False), ("MixARM1", False)]
)
def test_refits_of_the_bootstrap_are_those_of_memory(german, name, few, monkeypatch):
    """Distinct rows come to memory if they are few; else they stay, in groups, and are drawn where they are."""
    monkeypatch.setattr("plainrisk.validate.draws._GROUP_ROWS", 200)
    if not few:
        monkeypatch.setattr(spark_rows, "_FEW_ROWS", 500)
    data, table = german
    model = fitted(pr.make_classifier(name, data.schema), data.frame, data.target)
    here = pr.bootstrap(model, data.frame, data.target, n=2, seed=3).risk(table)
    for parts in (1, 7):
        df = spark_table(table, parts)
        rows = rows_of(df)
        there = pr.bootstrap(model, rows, "bad", n=2, seed=3).risk(table)
        np.testing.assert_allclose(there.low, here.low, rtol=0, atol=1e-9)
        np.testing.assert_allclose(there.high, here.high, rtol=0, atol=1e-9)
        assert (rows.passes < 10) == few
        assert df.log.count("persist") == 2
        assert df.log.count("unpersist") >= 2


def test_an_error_in_a_partition_of_a_bootstrap_names_the_feature(holes):
    schema, table = holes
    model = fitted(pr.AdditiveRiskModel(schema), table.select("age", "income", "job"), table["bad"].to_numpy())
    spoilt = table.with_columns(income=pl.when(pl.int_range(pl.len()) == 1_400).then(np.inf).otherwise("income"))
    df = spark_table(spoilt, 5, shuffled=False)
    with pytest.raises(DataError, match=r"'income' holds infinity.*partition \d+"):
        pr.bootstrap(model, rows_of(df), "bad", n=2)
    assert df.log.count("persist") <= df.log.count("unpersist")


def test_folds_without_rows_are_refused(german):
    data, table = german
    with pytest.raises(DataError, match="a fold of the cross validation has no rows"):
        fitted(pr.SubscaleMixture(schema=data.schema, cv=900), rows_of(spark_table(table, 2), group="bad"), "bad")


def test_what_is_no_sum_is_refused_with_the_reason(german):
    data, table = german
    df = spark_table(table, 3)
    by_number = pr.SubscaleMixture(schema=data.schema, cv=[(np.arange(500), np.arange(500, 1_000))])
    for model in (pr.make_classifier("XGB", data.schema), by_number):
        with pytest.raises(DataError, match=r"needs rows one by one.*boosted trees.*a sample in memory"):
            fitted(model, rows_of(df), "bad")
    assert df.log.count("persist") == df.log.count("unpersist")


def test_an_error_in_a_partition_names_the_feature_and_frees_the_cache(holes):
    schema, table = holes
    spoilt = table.with_columns(income=pl.when(pl.int_range(pl.len()) == 1_400).then(np.inf).otherwise("income"))
    df = spark_table(spoilt, 40, shuffled=False)
    with pytest.raises(DataError, match=r"'income' holds infinity.*partition \d+"):
        fitted(pr.AdditiveRiskModel(schema), rows_of(df))
    assert df.log.count("persist") == df.log.count("unpersist")


def test_an_error_while_codes_are_made_is_told_too(german):
    data, table = german
    df = spark_table(table, 3)

    class Broken(Table):
        """The rows of the pass that codes them are others than those that were counted."""

        def mapInArrow(self, function, schema):
            if "Keep(" in str([cell.cell_contents for cell in function.__closure__]):
                column = pa.array([np.inf] * self.parts[1].num_rows)
                at = self.parts[1].column_names.index("Credit amount")
                self.parts[1] = self.parts[1].set_column(at, "Credit amount", column)
            return super().mapInArrow(function, schema)

        def selectExpr(self, *expressions):
            return Broken(super().selectExpr(*expressions).parts, self.log)

    by_themselves = SparkRows(Broken(df.parts, df.log), tuple(df.columns))  # no column travels with others
    with pytest.raises(DataError, match="'Credit amount'"):
        fitted(pr.make_classifier("ARM1", data.schema), by_themselves, "bad")
    assert df.log.count("persist") == df.log.count("unpersist") == 1


@pytest.mark.parametrize("kind", ["continuous", "categorical"])
@pytest.mark.parametrize(
    ("values", "named"),
    [
        (pa.array([[("a", 1)]] * 60, pa.map_(pa.string(), pa.int64())), "map<string, int64"),
        (pa.array([[1, 2]] * 60), "List"),
        (pa.array([{"a": 1}] * 60), "Struct"),
        (pa.array([b"a"] * 60), "Binary"),
    ],
)
def test_a_column_of_no_use_is_named_with_its_type(kind, values, named):
    columns = pa.table({"x": np.arange(60.0), "bad": np.arange(60) % 2, "f": values})
    schema = pr.Schema(features={"x": {"kind": "continuous"}, "f": {"kind": kind}})
    with pytest.raises(PlainriskError, match=rf"column 'f' holds values of type {named}.*, neither numbers nor text"):
        fitted(pr.make_classifier("ARM1", schema), rows_of(Table([columns[:20], columns[20:]])), "bad")


def test_outcomes_that_are_missing_or_mixed(german):
    data, table = german
    gone = table.with_columns(bad=pl.when(pl.int_range(pl.len()) == 600).then(None).otherwise("bad"))
    with pytest.raises(DataError, match=r"target 'bad' is missing in row"):
        fitted(pr.AdditiveRiskModel(data.schema), rows_of(spark_table(gone, 4)), "bad")
    parts = [table[:500].to_arrow(), table[500:].with_columns(pl.col("bad").cast(pl.String)).to_arrow()]
    with pytest.raises(DataError, match="changes between numbers and text"):
        fitted(pr.AdditiveRiskModel(data.schema), rows_of(Table(parts)), "bad")
    with pytest.raises(DataError, match="there is only one class"):
        fitted(pr.AdditiveRiskModel(data.schema), rows_of(spark_table(table.filter(data.target == 1), 4)), "bad")
    with pytest.raises(DataError, match="There are no rows to fit"):
        fitted(pr.AdditiveRiskModel(data.schema), rows_of(spark_table(table[:0], 1)), "bad")


def test_many_values_have_a_stated_resolution_that_no_partitions_change(monkeypatch):
    monkeypatch.setattr("plainrisk.bins.edges.MOST_VALUES", 256)
    data = pr.datasets.make_credit(3_000, 1, n_features=12)
    table = data.frame.with_columns(bad=data.target)
    found = []
    for parts in (5, 40):
        with pytest.warns(PlainriskWarning, match="more than 256 distinct values. Bin edges there are exact to one"):
            found.append(pr.AdditiveRiskModel(data.schema).fit(rows_of(spark_table(table, parts)), "bad"))
    levels = [[shape.levels for shape in model.form_.parts[0].shapes.values()] for model in found]
    assert levels[0] == levels[1]


def test_a_missing_column_and_a_wrong_table_are_named(german):
    data, table = german
    with pytest.raises(DataError, match="no column 'Credit amount'"):
        fitted(pr.AdditiveRiskModel(data.schema), rows_of(spark_table(table.drop("Credit amount"), 2)), "bad")
    with pytest.raises(DataError, match="takes a DataFrame of Spark 4, not DataFrame"):
        pr.rows.spark(table)
    with pytest.raises(DataError, match="sample_weight names no column: 'exposures'"):
        pr.rows.spark(spark_table(table, 2), "exposures")


def test_what_spark_raises_is_said_in_one_line():
    from plainrisk.data.spark_errors import raised_by_spark

    said = {
        "ModuleNotFoundError: No module named 'plainrisk'": "no plainrisk .*venv-pack",
        "[PYTHON_VERSION_MISMATCH] Python in worker has different version": "another Python.*PYSPARK_PYTHON",
        "[JAVA_GATEWAY_EXITED] Java gateway process exited": "Java 17 or newer",
        "Job 3 cancelled because of user": "was canceled",
        "Connection refused": "connection was lost",
        "[PATH_ALREADY_EXISTS] Path file:/scored already exists": "Name another, or remove it; without a file _SUCCESS",
        'Traceback\n  File "x.py"\nValueError: no such thing\n\tat org': "failed: ValueError: no such thing",
    }
    for text, message in said.items():
        with pytest.raises(PlainriskError, match=rf"Spark, fitting: .*{message}"), raised_by_spark("fitting"):
            raise RuntimeError(text)
    with pytest.raises(KeyError, match="mine"), raised_by_spark("fitting"):
        raise KeyError("mine")
