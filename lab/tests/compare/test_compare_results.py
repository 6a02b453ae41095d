from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import plainrisk_lab.compare as compare
from plainrisk.errors import DataError, PlainriskWarning
from plainrisk_lab.compare import Results, as_results, friedman
from plainrisk_lab.results import paired_differences

COLUMNS = {"dataset": ["HELOC", "GMSC", "German"], "ARM1": [0.79, 0.86, 0.78], "XGB": [0.79, 0.85, 0.77]}
VALUES = np.array([[0.79, 0.79], [0.86, 0.85], [0.78, 0.77]])


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(COLUMNS),
        pd.DataFrame(COLUMNS).convert_dtypes(),
        pd.DataFrame(COLUMNS).set_index("dataset"),
        pd.DataFrame(COLUMNS)[["ARM1", "dataset", "XGB"]],
        pl.DataFrame(COLUMNS),
        pa.table(COLUMNS),
        COLUMNS,
    ],
    ids=["pandas", "nullable", "index", "names in the middle", "polars", "arrow", "dict"],
)
def test_every_kind_of_table_reads_the_same(table):
    results = as_results(table)
    assert results.classifiers == ("ARM1", "XGB")
    assert results.datasets == ("HELOC", "GMSC", "German")
    np.testing.assert_array_equal(results.values, VALUES)
    assert results.values.dtype == np.float64


def test_arrays_take_names_or_get_numbers():
    named = as_results(VALUES, classifiers=["A", "B"], datasets=["x", "y", "z"])
    assert (named.classifiers, named.datasets) == (("A", "B"), ("x", "y", "z"))
    plain = as_results(VALUES.tolist())
    assert (plain.classifiers, plain.datasets) == (("C1", "C2"), ("D1", "D2", "D3"))


def test_rows_without_names_are_numbered():
    assert as_results({"A": [1, 2], "B": [3, 4]}).datasets == ("D1", "D2")
    assert as_results(pd.DataFrame({"A": [1, 2], "B": [3, 4]})).datasets == ("D1", "D2")


def test_numeric_ids_are_data_sets_when_said_so():
    frame = pl.DataFrame({"id": [31, 23], "A": [0.5, 0.6], "B": [0.7, 0.8]})
    results = as_results(frame, datasets="id")
    assert (results.classifiers, results.datasets) == (("A", "B"), ("31", "23"))


def test_classifiers_selects_and_orders():
    assert as_results(COLUMNS, classifiers=["XGB", "ARM1"]).values[1].tolist() == [0.85, 0.86]
    again = as_results(as_results(COLUMNS), classifiers=["XGB", "ARM1"])
    assert again.values[1].tolist() == [0.85, 0.86]


def test_a_frame_round_trips():
    results = as_results(COLUMNS)
    again = as_results(results.to_frame())
    assert again.datasets == results.datasets
    np.testing.assert_array_equal(again.values, results.values)


def test_results_are_frozen_and_do_not_alias_the_input():
    mine = VALUES.copy()
    results = as_results(mine)
    mine[0, 0] = 9.0
    assert results.values[0, 0] == 0.79
    with pytest.raises(ValueError, match="read-only"):
        results.values[0, 0] = 1.0


@pytest.mark.parametrize("hole", [None, float("nan")])
def test_a_missing_cell_is_named(hole):
    table = {"dataset": ["HELOC", "GMSC"], "ARM1": [0.7, 0.8], "XGB": [0.7, hole]}
    for frame in (table, pd.DataFrame(table), pl.DataFrame(table, strict=False)):
        with pytest.raises(DataError, match=r"data set 'GMSC', classifier 'XGB': the value is missing.*missing='drop'"):
            as_results(frame)


def test_drop_leaves_out_the_data_set_and_says_so():
    table = COLUMNS | {"XGB": [0.79, None, 0.77]}
    with pytest.warns(PlainriskWarning, match="1 of 3 data sets lack a value and are left out: 'GMSC'"):
        test = friedman(table, missing="drop")
    assert test.datasets == ("HELOC", "German")


def test_drop_is_silent_when_nothing_lacks():
    assert len(as_results(COLUMNS, missing="drop").datasets) == 3


def test_a_column_of_nothing_is_a_classifier_not_a_name():
    with pytest.raises(DataError, match="data set 'a', classifier 'B': the value is missing \\(1 more"):
        as_results(pl.DataFrame({"d": ["a", "b"], "B": [None, None], "C": [1.0, 2.0]}))


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ([1.0, 2.0], {}, "a data frame, a dict of lists or a 2-d array of numbers.*got list"),
        ("auc.csv", {}, "got str"),
        (VALUES, {"classifiers": ["A"]}, "3 data sets and 1 classifiers are named.*shape \\(3, 2\\)"),
        (VALUES, {"classifiers": ["A", "A"]}, "classifier 'A' appears 2 times. Rename one"),
        (VALUES, {"datasets": ["x", "x", "y"]}, "data set 'x' appears 2 times.*average repeats"),
        (VALUES, {"datasets": "x"}, "an array has no column 'x'"),
        (VALUES[:, :1], {}, "at least 2 classifiers; got 1"),
        (VALUES[:1], {}, "at least 2 data sets; got 1"),
        (np.array([[0.1, np.inf], [1, 2]]), {}, "data set 'D1', classifier 'C2': the value is infinite"),
        (
            VALUES,
            {"missing": "dorp"},
            "missing must be 'raise' or 'drop', not 'dorp'. Did you mean 'drop'",
        ),
        (COLUMNS, {"classifiers": ["ARM2", "XGB"]}, "no classifier 'ARM2'. Did you mean 'ARM1'"),
        (Results(VALUES, ("A", "B"), ("x", "y", "z")), {"classifiers": ["Q"]}, "no classifier 'Q'"),
        (COLUMNS | {"note": ["a", "b", "c"]}, {}, "column 'note' holds text, and 'dataset' already names"),
        (
            COLUMNS | {"ARM1": [0.1, np.inf, 0.2]},
            {},
            "classifier 'ARM1' holds a value that is not a finite number",
        ),
        (pl.LazyFrame(COLUMNS), {}, "lazy frame"),
        (
            pd.DataFrame(COLUMNS | {"dataset": ["a", None, "b"]}),
            {},
            "row 1 has no data set name in column 'dataset'",
        ),
    ],
)
def test_errors_say_what_to_do(table, options, message):
    with pytest.raises(DataError, match=message):
        as_results(table, **options)


def test_differences_of_decimals_tie():
    # In binary 0.3 - 0.2 < 0.2 - 0.1: the two must be one rank.
    assert 0.3 - 0.2 != 0.2 - 0.1
    first, second = paired_differences([0.3, 0.2], [0.2, 0.1])
    assert first == second


def test_differences_of_binary_numbers_are_exact():
    a = np.array([5.0, 7.25, 1e6])
    np.testing.assert_array_equal(paired_differences(a, a / 2), a / 2)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([1.0, 2.0], [1.0], "a has 2 and b has 1 values"),
        ([[1.0]], [1.0], "a must be a list of numbers; got an array of shape \\(1, 1\\)"),
        ([1.0, float("nan")], [1.0, 2.0], "a\\[1\\] is nan. Leave out that pair"),
        ([], [], "a must be a list of numbers"),
    ],
)
def test_pairs_that_are_none(a, b, message):
    with pytest.raises(DataError, match=message):
        paired_differences(a, b)


def test_the_public_names():
    assert compare.__all__ == sorted(compare.__all__)
    assert all(hasattr(compare, name) for name in compare.__all__)


def test_importing_it_loads_no_plotting_and_no_frames():
    code = (
        "import sys, plainrisk\n"
        "before = set(sys.modules)\n"
        "import plainrisk_lab.compare\n"
        "heavy = {'matplotlib', 'pandas', 'polars', 'pyarrow', 'xgboost'}\n"
        "print(sorted(heavy & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_many_rows_without_names_are_taken_for_predictions():
    values = np.random.default_rng(0).random((300, 2))
    outcome = (values[:, 0] > 0.5).astype(int)
    names = [f"set {i}" for i in range(300)]
    for table, options in [
        (values, {}),
        ({"A": values[:, 0], "B": values[:, 1]}, {}),
        (pd.DataFrame(values, columns=["A", "B"], index=range(5, 305)), {}),
        ({"id": names, "A": values[:, 0], "bad": outcome}, {}),
    ]:
        with pytest.raises(DataError, match="looks like predictions for the 300 rows of one data set"):
            as_results(table, **options)
    assert len(as_results(values, datasets=names).datasets) == 300
    assert len(as_results(values[:200]).datasets) == 200
    assert len(as_results({"id": names, "A": values[:, 0], "B": values[:, 1]}).datasets) == 300


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: compare.wilcoxon_holm({"A": [1, 2], "B": [2, 1]}, alpha="x"), "alpha must be"),
        (lambda: compare.wilcoxon_holm({"A": [1, 2], "B": [2, 1]}, alpha=np.nan), "alpha must be"),
        (lambda: compare.bayesian_signed_rank([1, 2], [2, 1], rope="x"), "rope must be"),
        (lambda: compare.bayesian_signed_rank([1, 2], [2, 1], samples=1.5), "samples must be"),
        (lambda: compare.friedman({"A": [1, 2], "B": [2, 1]}, "x"), "higher_is_better must be True or False"),
        (lambda: compare.holm(["x"]), "p_values must be a list of numbers"),
        (lambda: compare.holm([np.nan]), "p_values must be probabilities"),
        (lambda: compare.hodges_lehmann(["x"], [1]), "a must be a list of numbers"),
        (lambda: compare.as_results({"A": [1, 2], "B": [2, 1]}, datasets=3), "datasets must be None or a list"),
        (lambda: compare.bayesian_signed_rank([0.1, 0.2], [0.2, 0.1], seed=-1), "seed must be a whole number"),
        (lambda: compare.bayesian_signed_rank([0.1, 0.2], [0.2, 0.1], seed=None), "seed must be a whole number"),
    ],
)
def test_what_is_no_parameter_is_refused(ask, message):
    with pytest.raises(DataError, match=message):
        ask()


def test_results_print_escapes():
    table = {"a\x1b[2Jb": [0.5, 0.7, 0.6], "B": [0.4, 0.6, 0.7]}
    for shown in (as_results(table), compare.critical_difference_diagram(table)):
        assert "\x1b" not in repr(shown)
        assert "\\u001b[2J" in repr(shown)
