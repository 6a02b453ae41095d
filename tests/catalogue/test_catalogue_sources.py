"""Models of other libraries, data sets by name, synthetic data and streams of files."""

from __future__ import annotations

import copy
import gzip

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import plainrisk as pr
from plainrisk import datasets

NAN, INF = float("nan"), float("inf")
D = "(Data|Schema|Plainrisk)Error: "
E = "ExtractionError: "


def logistic(w, **attributes):
    """A logistic regression on the numbers of the world, with attributes that somebody changed."""
    model = copy.deepcopy(w.logistic)
    for name, value in attributes.items():
        setattr(model, name, value)
    return model


def extract(*args, **attributes):
    return lambda w: pr.extract_form(logistic(w, **attributes), *args)


def scored(form):
    risk = form.risk({"a": [1.0, 1e300], "b": [2.0, -1e300]})
    return ((risk >= 0) & (risk <= 1)).all()


class Hostile:
    """A model whose attributes raise."""

    def __getattr__(self, name):
        raise RuntimeError("SECRET-7")


def hist(w, **options):
    return HistGradientBoostingClassifier(max_iter=3, **options).fit(w.X[["a", "b"]], w.y)


EXTRACTION = {
    "None": (lambda w: pr.extract_form(None), E + "NoneType"),
    "a number": (lambda w: pr.extract_form(3), E + "int"),
    "a text": (lambda w: pr.extract_form("model.pkl"), E + "str"),
    "a class": (lambda w: pr.extract_form(LogisticRegression), E + "class"),
    "a function": (lambda w: pr.extract_form(len), E),
    "an object whose attributes raise": (lambda w: pr.extract_form(Hostile()), E + "Hostile"),
    "a model that is not fitted": (lambda w: pr.extract_form(LogisticRegression()), E + "not fitted"),
    "a regression": (lambda w: pr.extract_form(LinearRegression().fit(w.X[["a"]], w.y)), E + "LinearRegression"),
    "a pipeline without steps fitted": (
        lambda w: pr.extract_form(make_pipeline(StandardScaler(), LogisticRegression())),
        E + "not fitted",
    ),
    "coefficients of NaN": (extract(coef_=np.array([[NAN, 1.0]])), E + "finite|NaN"),
    "coefficients of infinity": (extract(coef_=np.array([[INF, 1.0]])), E + "finite|infinit"),
    "coefficients of 1e300": (extract(coef_=np.array([[1e300, 1.0]])), scored),
    "coefficients of 1e-320": (extract(coef_=np.array([[1e-320, 1.0]])), scored),
    "coefficients of text": (extract(coef_=np.array([["x", "y"]])), E),
    "coefficients of another shape": (extract(coef_=np.array([1.0, 2.0])), E),
    "too few coefficients": (extract(coef_=np.array([[1.0]])), E),
    "coefficients that are None": (extract(coef_=None), E),
    "complex coefficients": (extract(coef_=np.array([[1j, 1.0]])), E),
    "an intercept of NaN": (extract(intercept_=np.array([NAN])), E + "intercept"),
    "an intercept of 1e300": (extract(intercept_=np.array([1e300])), E + "finite|within|large"),
    "an empty intercept": (extract(intercept_=np.array([])), E),
    "an intercept of text": (extract(intercept_="x"), E),
    "classes that are one": (extract(classes_=np.array([1])), E + "outcome|class"),
    "classes that are three": (extract(classes_=np.array([0, 1, 2])), E + "outcome|class"),
    "classes that are None": (extract(classes_=None), E),
    "columns that are too many": (lambda w: pr.extract_form(logistic(w), w.given(np.zeros((3, 5)))), E + "columns"),
    "rows without a column": (lambda w: pr.extract_form(logistic(w), w.X[["a"]]), E + "'b'"),
    "no rows": (lambda w: pr.extract_form(logistic(w), w.X[["a", "b"]].head(0)), scored),
    "one row": (lambda w: pr.extract_form(logistic(w), w.X[["a", "b"]].head(1)), scored),
    "rows that are all missing": (lambda w: pr.extract_form(logistic(w), w.X[["a", "b"]] * NAN), scored),
    "rows that are constant": (lambda w: pr.extract_form(logistic(w), w.X[["a", "b"]] * 0.0), scored),
    "rows of text": (
        lambda w: pr.extract_form(logistic(w), pd.DataFrame({"a": ["SECRET-7"], "b": ["x"]})),
        "(Extraction|Data|Schema)Error: 'a'",
    ),
    "rows of infinity": (
        lambda w: pr.extract_form(logistic(w), pd.DataFrame({"a": [INF], "b": [1.0]})),
        "(Extraction|Data|Schema)Error: 'a'",
    ),
    "rows that are no table": (lambda w: pr.extract_form(logistic(w), 3), "(Extraction|Data)Error: "),
    "outcomes without rows": (lambda w: pr.extract_form(logistic(w), y=w.y), "(Extraction|Data)Error: "),
    "outcomes of one class": (lambda w: pr.extract_form(logistic(w), w.X[["a", "b"]], y=np.ones(120)), scored),
    "outcomes of other labels": (
        lambda w: pr.extract_form(logistic(w), w.X[["a", "b"]], y=np.full(120, "SECRET-7")),
        "(Extraction|Data)Error: ",
    ),
    "too few outcomes": (
        lambda w: pr.extract_form(logistic(w), w.X[["a", "b"]], y=w.y[:3]),
        "(Extraction|Data)Error: ",
    ),
    "weights of NaN": (
        lambda w: pr.extract_form(logistic(w), w.X[["a", "b"]], y=w.y, sample_weight=np.full(120, NAN)),
        "(Extraction|Data)Error: weight",
    ),
    "a schema of other features": (
        lambda w: pr.extract_form(logistic(w), schema=pr.Schema(features={"zz": {}})),
        scored,
    ),
    "a schema that makes a number a category": (
        lambda w: pr.extract_form(logistic(w), schema=pr.Schema(features={"a": {"kind": "categorical"}, "b": {}})),
        lambda form: scored(form) and form.schema.features["a"].kind == "continuous",
    ),
    "a scaler of a constant column": (
        lambda w: pr.extract_form(
            make_pipeline(StandardScaler(), LogisticRegression()).fit(w.X[["a"]].assign(b=3.0), w.y)
        ),
        scored,
    ),
    "trees of one feature": (lambda w: pr.extract_form(hist(w, max_depth=1)), scored),
    "trees of many features": (lambda w: pr.extract_form(hist(w)), scored),
    "a reader that is no function": (lambda w: pr.register_extractor("x.Y", 3), "(Extraction|Data|Plainrisk)Error: "),
    "a type that is no type": (lambda w: pr.register_extractor(3, len), "(Extraction|Data|Plainrisk)Error: "),
    "linearise with alpha of NaN": (lambda w: pr.linearise(w.model("ARM1"), w.X, alpha=NAN), D + "alpha"),
    "linearise of no rows": (lambda w: pr.linearise(w.model("ARM1"), w.X.head(0), pieces=3), D + "rows"),
    "linearise of lines": (lambda w: pr.linearise(logistic(w), w.X[["a", "b"]].fillna(1)).form_, scored),
}


@pytest.mark.parametrize(("call", "expected"), EXTRACTION.values(), ids=EXTRACTION)
def test_extraction(judge, call, expected):
    judge(call, expected)


PACKED = gzip.compress(b"a,b\n1,2\n")


def from_file(content, **options):
    """Load a data set from a file that is not what it should be."""

    def call(w):
        w.file(datasets.info("gmsc").files[0], content)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PLAINRISK_DATA", ".")
            return datasets.load("gmsc", **options)

    return call


def credit(*args, **options):
    return lambda w: datasets.make_credit(*args, **options)


HEAD = b"SeriousDlqin2yrs,RevolvingUtilizationOfUnsecuredLines,age\n"
DATASETS = {
    "an unknown name": (lambda w: datasets.load("germn"), D + "germn.*german"),
    "a name that is None": (lambda w: datasets.load(None), D + "None"),
    "a name that is a list": (lambda w: datasets.load(["german"]), D),
    "a name that is a path": (lambda w: datasets.load("../german.csv"), D),
    "an unknown backend": (lambda w: datasets.load("german", backend="spark"), D + "backend"),
    "a backend that is a list": (lambda w: datasets.load("german", backend=["pandas"]), D + "backend"),
    "check of an unknown name": (lambda w: datasets.check(["germn"]), D + "germn"),
    "check of a text": (lambda w: datasets.check("german"), D),
    "a selection of no feature": (lambda w: datasets.load("german").select(["zz"]), D + "'zz'"),
    "an empty selection": (lambda w: datasets.load("german").select([]).schema.features, lambda f: not f),
    "an empty file": (from_file(b""), D),
    "a header alone": (from_file(HEAD), D),
    "other columns": (from_file(b"p,q\n1,2\n"), D),
    "too few columns": (from_file(HEAD + b"1,0.5,SECRET-7\n"), D),
    "a ragged line": (from_file(HEAD + b"1,0.5\n0,0.5,1,2,3,4\n"), D),
    "bytes": (from_file(b"\x00\xff\xfe" * 50), D),
    "not UTF-8": (from_file(HEAD + b"1,0.5,\xff\xfe\n"), D),
    "a gzip that is none": (from_file(PACKED), D),
    "any file without verification": (from_file(b"p,q\n1,2\n", verify=False), D),
    "no rows": (credit(0), D + "n "),
    "-5 rows": (credit(-5), D + "n "),
    "1.5 rows": (credit(1.5), D + "n "),
    "rows of text": (credit("10"), D + "n "),
    "rows of NaN": (credit(NAN), D + "n "),
    "one row": (credit(1), lambda d: d.n_rows == 1),
    "a seed of -1": (credit(10, -1), D + "seed"),
    "a seed of 0.5": (credit(10, 0.5), D + "seed"),
    "a seed of text": (credit(10, "x"), D + "seed"),
    "a seed of 2**70": (credit(10, 2**70), lambda d: d.n_rows == 10),
    "no features": (credit(10, n_features=0), D + "n_features"),
    "2.5 features": (credit(10, n_features=2.5), D + "n_features"),
    "a base rate of 0": (credit(10, base_rate=0.0), D + "base_rate"),
    "a base rate of 2": (credit(10, base_rate=2.0), D + "base_rate"),
    "a base rate of NaN": (credit(10, base_rate=NAN), D + "base_rate"),
    "a base rate of text": (credit(10, base_rate="x"), D + "base_rate"),
    "a synthetic backend": (credit(10, backend="spark"), D + "backend"),
}


@pytest.mark.parametrize(("call", "expected"), DATASETS.values(), ids=DATASETS)
def test_datasets(judge, call, expected):
    judge(call, expected)


def stream(files, kind="csv", name="ARM1", **options):
    """Fit to rows that are read from files of the world in batches."""

    def call(w):
        found = [str(w.folder / f) for f in files] if isinstance(files, list | tuple) else str(w.folder / files)
        return pr.make_classifier(name, w.schema).fit(getattr(pr.rows, kind)(found, **options))

    return call


def fitted(model):
    return np.isfinite(model.form_.parts[0].intercept)


def write_parts(w, *frames):
    names = []
    for k, frame in enumerate(frames):
        frame.write_parquet(f"{k}.parquet")
        names.append(f"{k}.parquet")
    return pr.make_classifier("ARM1", w.schema).fit(pr.rows.parquet(names))


def table(w):
    return pl.from_pandas(w.X.assign(bad=w.y))


STREAMS = {
    "a good file": (stream("good.csv"), fitted),
    "a packed file": (stream("good.csv.gz"), fitted),
    "windows line ends": (stream("crlf.csv"), fitted),
    "a byte-order mark": (stream("bom.csv"), fitted),
    "a line break in quotes": (stream("quoted_newline.csv"), fitted),
    "batches of 7 rows": (stream("good.csv", batch_rows=7), fitted),
    "too many fields": (stream("too_many_fields.csv"), D + "too_many_fields.csv.*3"),
    "too few fields": (stream("too_few_fields.csv"), D + "too_few_fields.csv.*3"),
    "a truncated line": (stream("truncated.csv"), D + "truncated.csv"),
    "two columns of one name": (stream("two_a.csv"), D + "two_a.csv.*'a'"),
    "no rows": (stream("header.csv"), D + "header.csv|rows"),
    "nothing": (stream("empty.csv"), D + "empty.csv"),
    "a NUL": (stream("nul.csv"), D + "nul.csv"),
    "not UTF-8": (stream("latin1.csv"), D + "latin1.csv.*(UTF|utf)-8"),
    "UTF-16": (stream("utf16.csv"), D + "utf16.csv"),
    "a quote that never closes": (stream("open_quote.csv"), D + "open_quote.csv"),
    "text among numbers": (stream("words.csv"), D + "'a'"),
    "infinity": (stream("infinite.csv"), D + "'a'"),
    "a gzip cut in its header": (stream("cut_in_header.csv.gz"), D + "cut_in_header"),
    "a gzip cut in the middle": (stream("cut.csv.gz"), D + "cut.csv.gz"),
    "a gzip that is none": (stream("not_gzip.csv.gz"), D + "not_gzip"),
    "no such file": (stream("none.csv"), D + "none.csv"),
    "no file at all": (stream([]), D),
    "a pattern that finds nothing": (stream("none*.csv"), D + "none"),
    "files with other columns": (stream("parts/*.csv"), D + "'c'|2.csv"),
    "outcomes that change type": (stream("types/*.parquet", "parquet"), D + "bad|2.parquet|type"),
    "a Parquet file that is text": (stream("text.parquet", "parquet"), D + "text.parquet"),
    "half a Parquet file": (stream("cut.parquet", "parquet"), D + "cut.parquet"),
    "a Parquet file without rows": (stream("no_rows.parquet", "parquet"), D + "no_rows.parquet|rows"),
    "a Parquet file of lists": (stream("lists.parquet", "parquet"), D + "'a'"),
    "a CSV file as Parquet": (stream("good.csv", "parquet"), D + "good.csv"),
    "a Parquet file as CSV": (stream("good.parquet"), D + "good.parquet"),
    "a folder": (stream("a_folder.csv"), D + "a_folder"),
    "an empty file among others": (lambda w: write_parts(w, table(w), table(w).head(0)), fitted),
    "an empty file first": (lambda w: write_parts(w, table(w).head(0), table(w)), fitted),
    "a column that changes type": (
        lambda w: write_parts(w, table(w), table(w).with_columns(a=pl.lit("SECRET-7"))),
        D + "'a'|1.parquet",
    ),
    "whole numbers, then fractions": (
        lambda w: write_parts(w, table(w).with_columns(pl.col("b").cast(pl.Int64)), table(w)),
        fitted,
    ),
    "batches of 0 rows": (stream("good.csv", batch_rows=0), D + "batch_rows"),
    "batches of 1.5 rows": (stream("good.csv", batch_rows=1.5), D + "batch_rows"),
    "batches of text": (stream("good.csv", batch_rows="x"), D + "batch_rows"),
    "outcomes beside a stream": (
        lambda w: pr.make_classifier("ARM1", w.schema).fit(pr.rows.csv(str(w.folder / "good.csv")), w.y),
        D,
    ),
    "a stream without a schema": (
        lambda w: pr.AdditiveRiskModel().fit(pr.rows.csv(str(w.folder / "good.csv"))),
        D + "y must be the name",
    ),
    "a stream without its target": (stream("no_target.csv"), D + "'bad'"),
    "a stream for trees": (stream("good.csv", name="XGB"), fitted),
    "missing as a number": (stream("good.csv", missing=3), D + "missing"),
}


@pytest.mark.parametrize(("call", "expected"), STREAMS.values(), ids=STREAMS)
def test_streams(judge, call, expected):
    judge(call, expected)
