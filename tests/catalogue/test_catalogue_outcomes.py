"""Outcomes, sample weights and class weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import plainrisk as pr


def fitted(model):
    return np.isfinite(model.form_.parts[0].intercept)


def classes(*wanted):
    return lambda model: model.classes_.tolist() == list(wanted)


def y(make):
    """Fit to outcomes made from the world's own, without a word on which is positive."""
    return lambda w: w.fit(y=make(w.y), schema=pr.Schema(features=w.schema.features))


def objects(of):
    def make(y):
        out = np.empty(len(y), dtype=object)
        out[:] = [of(v) for v in y]
        return out

    return make


OUTCOMES = {
    "booleans": (y(lambda y: y.astype(bool)), classes(False, True)),
    "texts": (y(lambda y: np.where(y == 1, "yes", "no")), classes("no", "yes")),
    "numbers 1 and 2": (y(lambda y: y + 1), classes(1, 2)),
    "numbers -1 and 1": (y(lambda y: 2 * y - 1), classes(-1, 1)),
    "a column of one": (y(lambda y: y.reshape(-1, 1)), fitted),
    "a data frame of one column": (y(lambda y: pd.DataFrame({"bad": y})), fitted),
    "a polars series": (y(lambda y: pl.Series(y)), fitted),
    "nullable booleans": (y(lambda y: pd.array(y.astype(bool), dtype="boolean")), fitted),
    "a categorical": (y(lambda y: pd.Categorical(y)), fitted),
    "one class": (y(np.zeros_like), "(Schema|Data)Error: "),
    "three classes": (y(lambda y: y + (np.arange(len(y)) % 5 == 0) * 2), "(Schema|Data)Error: "),
    "a class per row": (y(lambda y: np.arange(len(y)) + 0.125), "(Schema|Data)Error: "),
    "NaN among them": (y(lambda y: np.where(np.arange(len(y)) == 3, np.nan, y)), "(Schema|Data)Error: (missing|NaN).*"),
    "numbers as objects": (y(objects(int)), fitted),
    "None among them": (
        y(lambda y: pd.Series([None, *y[1:]], dtype=object)),
        "(Schema|Data)Error: missing|NaN|None",
    ),
    "infinity among them": (y(lambda y: np.where(np.arange(len(y)) == 3, np.inf, y)), "(Schema|Data)Error: "),
    "0 mixed with '1'": (
        y(lambda y: np.array([0 if v == 0 else "1" for v in y], dtype=object)),
        "(Schema|Data)Error: ",
    ),
    "booleans mixed with texts": (y(objects(lambda v: "SECRET-7" if v else False)), "(Schema|Data)Error: "),
    "texts that are numbers": (y(lambda y: y.astype(str)), classes("0", "1")),
    "complex numbers": (y(lambda y: y + 0j), "(Schema|Data)Error: [Cc]omplex"),
    "dates": (y(lambda y: pd.to_datetime(pd.Series(y), unit="D")), "(Schema|Data)Error: "),
    "lists": (y(objects(lambda v: [v])), "(Schema|Data)Error: "),
    "dicts": (y(objects(lambda v: {"k": v})), "(Schema|Data)Error: "),
    "a masked row": (y(lambda y: np.ma.masked_array(y, mask=np.arange(len(y)) == 3)), "(Schema|Data)Error: missing"),
    "too few": (y(lambda y: y[:-1]), "(Schema|Data)Error: 119|rows"),
    "too many": (y(lambda y: np.append(y, 1)), "(Schema|Data)Error: 121|rows"),
    "a matrix": (y(lambda y: np.c_[y, y]), "(Schema|Data)Error: "),
    "none at all": (lambda w: pr.AdditiveRiskModel().fit(w.X, None), "(Schema|Data)Error: "),
    "a number": (y(lambda y: 1), "(Schema|Data)Error: "),
    "a text": (y(lambda y: "SECRET-7"), "(Schema|Data)Error: "),
    "a name of no column": (y(lambda y: "bad"), "(Schema|Data)Error: "),
    "a generator": (lambda w: pr.AdditiveRiskModel().fit(w.X, (v for v in w.y)), "(Schema|Data)Error: "),
    "positive=7 with 0 and 1": (
        lambda w: w.fit(schema=pr.Schema(features=w.schema.features, positive=7)),
        "(Schema|Data)Error: 7.*0.*1",
    ),
    "positive='1' with 0 and 1": (lambda w: w.fit(schema=pr.Schema(features=w.schema.features, positive="1")), fitted),
    "positive=True with 0 and 1": (
        lambda w: w.fit(schema=pr.Schema(features=w.schema.features, positive=True)),
        lambda m: m.classes_.tolist() == [0, 1],
    ),
    "one row of the second class": (y(lambda y: (np.arange(len(y)) == 5).astype(int)), fitted),
    "outcomes far apart": (y(lambda y: y * 1e300), "(Schema|Data)Error: "),
    "outcomes that differ in the last digit": (
        y(lambda y: np.where(y == 1, 1.0, np.nextafter(1.0, 0.0))),
        "(Schema|Data)Error: ",
    ),
}


@pytest.mark.parametrize(("call", "expected"), OUTCOMES.values(), ids=OUTCOMES)
def test_outcomes(judge, call, expected):
    judge(call, expected)


def weighed(make, name="ARM1"):
    return lambda w: w.fit(sample_weight=make(len(w.y)), name=name)


WEIGHTS = {
    "ones": (weighed(np.ones), fitted),
    "whole numbers": (weighed(lambda n: np.arange(n)), fitted),
    "booleans": (weighed(lambda n: np.arange(n) % 2 == 0), fitted),
    "one number for all": (weighed(lambda n: 2.0), fitted),
    "zeros": (weighed(np.zeros), "DataError: weight"),
    "negative": (weighed(lambda n: np.where(np.arange(n) == 4, -1.0, 1.0)), "DataError: weight.*(row 4|negative)"),
    "NaN": (weighed(lambda n: np.where(np.arange(n) == 4, np.nan, 1.0)), "DataError: weight"),
    "infinity": (weighed(lambda n: np.where(np.arange(n) == 4, np.inf, 1.0)), "DataError: weight"),
    "None among them": (weighed(lambda n: np.array([None, *[1.0] * (n - 1)], dtype=object)), "DataError: weight"),
    "texts": (weighed(lambda n: np.array(["1"] * n)), "DataError: weight"),
    "objects that are texts": (weighed(lambda n: np.array(["SECRET-7"] * n, dtype=object)), "DataError: weight"),
    "complex": (weighed(lambda n: np.ones(n, complex)), "DataError: weight"),
    "dates": (weighed(lambda n: np.zeros(n, "M8[D]")), "DataError: weight"),
    "masked": (weighed(lambda n: np.ma.masked_array(np.ones(n), mask=np.arange(n) == 3)), "DataError: weight"),
    "too few": (weighed(lambda n: np.ones(n - 1)), "DataError: weight"),
    "a matrix": (weighed(lambda n: np.ones((n, 2))), "DataError: weight"),
    "a dict": (weighed(lambda n: {0: 1.0}), "DataError: weight"),
    "a text": (weighed(lambda n: "balanced"), "DataError: weight"),
    "as large as numbers are": (weighed(lambda n: np.full(n, 1e308)), "DataError: weight"),
    "subnormal": (weighed(lambda n: np.full(n, 5e-324)), "DataError: weight"),
    "all weight on one class": (lambda w: w.fit(sample_weight=w.y.astype(float)), "DataError: weight|outcome"),
    "of trees": (weighed(lambda n: np.array(["1"] * n), "XGB"), "DataError: weight"),
    "of mixtures": (weighed(lambda n: np.full(n, np.nan), "MixARM1"), "DataError: weight"),
}


@pytest.mark.parametrize(("call", "expected"), WEIGHTS.values(), ids=WEIGHTS)
def test_sample_weights(judge, call, expected):
    judge(call, expected)


def class_weight(value):
    return lambda w: w.fit(class_weight=value)


CLASS_WEIGHTS = {
    "balanced": (class_weight("balanced"), fitted),
    "by label": (class_weight({0: 1.0, 1: 5.0}), fitted),
    "one label": (class_weight({1: 5.0}), fitted),
    "another word": (class_weight("balance"), "DataError: class_weight.*balanced"),
    "a text weight": (class_weight({0: "a"}), "DataError: class_weight"),
    "a negative weight": (class_weight({0: -1.0}), "DataError: class_weight"),
    "a NaN weight": (class_weight({1: float("nan")}), "DataError: class_weight"),
    "an infinite weight": (class_weight({1: float("inf")}), "DataError: class_weight"),
    "no weight at all": (class_weight({0: 0.0, 1: 0.0}), "DataError: weight"),
    "one class without weight": (class_weight({1: 0.0}), "DataError: weight|outcome"),
    "a label that is none": (class_weight({7: 1.0}), "DataError: class_weight"),
    "a list": (class_weight([1.0, 2.0]), "DataError: class_weight"),
    "a number": (class_weight(2.0), "DataError: class_weight"),
    "None as a weight": (class_weight({0: None}), "DataError: class_weight"),
}


@pytest.mark.parametrize(("call", "expected"), CLASS_WEIGHTS.values(), ids=CLASS_WEIGHTS)
def test_class_weights(judge, call, expected):
    judge(call, expected)
