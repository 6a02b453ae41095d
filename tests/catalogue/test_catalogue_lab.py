"""The lab: tables of a comparison, study plans, and the commands it adds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from plainrisk_lab import compare as comparison
from plainrisk_lab import study

D = "(Data|Schema|Plainrisk)Error: "
NAN, INF = float("nan"), float("inf")
P = np.linspace(0.01, 0.99, 40)
RESULTS = pd.DataFrame({"data": [f"d{k}" for k in range(8)], "A": P[:8], "B": P[8:16], "C": P[16:24]})
PREDICTIONS = pd.DataFrame({"row": range(400), "bad": np.arange(400) % 2, "A": np.linspace(0, 1, 400), "B": 0.5})


def compare(table=RESULTS, name="friedman", **options):
    return lambda w: getattr(comparison, name)(w.given(table), **options)


COMPARISONS = {
    "one classifier": (compare(RESULTS[["data", "A"]]), D),
    "one data set": (compare(RESULTS.head(1)), D),
    "no data sets": (compare(RESULTS.head(0)), D),
    "values of NaN": (compare(RESULTS.assign(A=NAN)), D),
    "values of infinity": (compare(RESULTS.assign(A=INF)), D),
    "values of text": (compare(RESULTS.assign(A="SECRET-7")), D),
    "all equal": (compare(RESULTS.assign(A=0.5, B=0.5, C=0.5)), lambda test: test.p_value == 1.0),
    "a data set twice": (compare(RESULTS.assign(data="d")), D),
    "predictions": (compare(PREDICTIONS), D + "predictions|rows"),
    "predictions in pairs": (compare(PREDICTIONS, "wilcoxon_holm"), D + "predictions|rows"),
    "nothing": (compare(None), D),
    "a text": (compare("results.csv"), D),
    "an unknown word for missing": (compare(missing="ignore"), D + "missing"),
    "an alpha of 2": (compare(name="wilcoxon_holm", alpha=2.0), D + "alpha"),
    "an alpha of NaN": (compare(name="wilcoxon_holm", alpha=NAN), D + "alpha"),
    "an unknown zero method": (compare(name="wilcoxon_holm", zero_method="prat"), D + "zero_method"),
    "p values beyond 1": (lambda w: comparison.holm([0.1, 1.5]), D),
    "p values of NaN": (lambda w: comparison.holm([0.1, NAN]), D),
    "no p values": (lambda w: comparison.holm([]), lambda p: len(p) == 0),
    "unequal lengths": (lambda w: comparison.bayesian_signed_rank([0.1, 0.2], [0.1]), D),
    "a rope of -1": (lambda w: comparison.bayesian_signed_rank(P[:8], P[8:16], rope=-1.0), D + "rope"),
    "no samples": (lambda w: comparison.bayesian_signed_rank(P[:8], P[8:16], samples=0), D + "samples"),
    "a seed of -1": (lambda w: comparison.bayesian_signed_rank(P[:8], P[8:16], seed=-1), D + "seed"),
}


@pytest.mark.parametrize(("call", "expected"), COMPARISONS.values(), ids=COMPARISONS)
def test_comparisons(judge, call, expected):
    judge(call, expected)


def plan(text, name="p.toml"):
    return lambda w: study.load_plan(w.file(name, text))


GOOD = 'name = "p"\ndatasets = ["german"]\nclassifiers = ["ARM1"]\n'
PLANS = {
    "no file": (lambda w: study.load_plan("none.toml"), D + "none.toml"),
    "another ending": (plan(GOOD, "p.json"), D + "toml"),
    "an empty file": (plan(""), D + "p.toml"),
    "broken TOML": (plan("name ="), D + "p.toml"),
    "not UTF-8": (plan(b'name = "\xff"'), D + "p.toml"),
    "a path with a NUL": (lambda w: study.load_plan("a\0.toml"), D),
    "a folder": (lambda w: study.load_plan(w.folder), D),
    "deep nesting": (plan("x = " + "[" * 600 + "]" * 600), D + "p.toml"),
    "a key of 100,000 dots": (plan("a." * 100_000 + "a = 1"), D + "p.toml"),
    "a number of 5,000 digits": (plan(GOOD + f"seed = {'9' * 5000}"), D + "p.toml"),
    "an endless device": (lambda w: study.load_plan("/dev/zero"), D),
    "no metrics": (plan(GOOD + "metrics = []"), D + "metric"),
    "an unknown metric": (plan(GOOD + 'metrics = ["acuracy"]'), D + "acuracy"),
    "a metric twice": (plan(GOOD + 'metrics = ["auc", "auc"]'), D),
    "no data sets": (plan(GOOD.replace('["german"]', "[]")), D + "data set"),
    "no classifiers": (plan(GOOD.replace('["ARM1"]', "[]")), D + "classifier"),
    "an unknown data set": (plan(GOOD.replace("german", "germn")), D + "germn"),
    "an unknown classifier": (plan(GOOD.replace("ARM1", "ARMY")), D + "ARMY"),
    "a classifier twice": (plan(GOOD.replace('["ARM1"]', '["ARM1", "ARM1"]')), D + "ARM1"),
    "an unknown key": (plan(GOOD + "folds = 3"), D + "folds"),
    "1 fold": (plan(GOOD + "cv = 1"), D + "cv|fold"),
    "-1 folds": (plan(GOOD + "cv = -1"), D + "cv|fold"),
    "10**12 folds": (plan(GOOD + "cv = 1000000000000"), D + "cv"),
    "2.5 folds": (plan(GOOD + "cv = 2.5"), D + "cv"),
    "a seed of -1": (plan(GOOD + "seed = -1"), D + "seed"),
    "a seed of text": (plan(GOOD + 'seed = "x"'), D + "seed"),
    "a name that is a number": (plan(GOOD.replace('"p"', "3")), D + "name"),
    "an empty name": (plan(GOOD.replace('"p"', '""')), D + "name"),
    "escapes in the name": (plan(GOOD.replace('"p"', '"\\u001b[2J"') + "cv = 1"), D),
    "escapes in a data set": (plan(GOOD.replace("german", "\\u001b[2J")), D),
    "a file without a schema": (plan(GOOD.replace('["german"]', '[{name = "x", file = "x.csv"}]')), D + "schema"),
}


@pytest.mark.parametrize(("call", "expected"), PLANS.values(), ids=PLANS)
def test_plans(judge, call, expected):
    judge(call, expected)


COMMANDS = {
    "results": ("compare {results.csv}", 0, "ARM1"),
    "predictions for results": ("compare {predictions.csv}", 2, "predictions|rows"),
    "a table of rows for results": ("compare {good.csv}", 2, ""),
    "results that are none": ("compare {none.csv}", 2, "none.csv"),
    "results that are empty": ("compare {empty.csv}", 2, "empty.csv"),
    "an alpha of NaN": ("compare {results.csv} --alpha nan", 2, "alpha"),
    "an alpha of 2": ("compare {results.csv} --alpha 2", 2, "alpha"),
    "an unknown zero method": ("compare {results.csv} --zero-method x", 2, "zero"),
    "a diagram of another ending": ("compare {results.csv} -o d.docx", 2, "svg"),
    "a plan that is none": ("study run {none.toml}", 2, "none.toml"),
    "a plan without metrics": ("study run {no_metrics.toml} -j 0", 2, "metric"),
    "a deep plan": ("study run {deep_plan.toml} -j 0", 2, "deep_plan.toml"),
    "a plan of dots": ("study run {dots.toml} -j 0", 2, "dots.toml"),
    "a plan that is a schema": ("study run {schema.toml} -j 0", 2, "schema.toml"),
    "a store that is a table": ("study status --store {good.csv}", 2, "good.csv"),
    "a store that is none": ("study report --store none.db", 2, "none.db"),
    "a store that is a folder": ("study status --store {parts}", 2, "parts"),
    "a store in a missing folder": ("study run {plan.toml} -j 0 --store no/such.db", 2, "no"),
}


@pytest.mark.parametrize(("words", "code", "expected"), COMMANDS.values(), ids=COMMANDS)
def test_commands_of_the_lab(command, words, code, expected):
    command(words, code, expected)
