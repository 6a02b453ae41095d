from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from scipy.stats import friedmanchisquare

from plainrisk_lab.compare import critical_difference_diagram


@pytest.fixture
def wide(tmp_path):
    rng = np.random.default_rng(5)
    base = np.linspace(0.6, 0.9, 14)
    noise = {name: 0.01 * rng.normal(size=14) for name in ("A", "B", "C")}
    lift = {"A": 0.10, "B": 0.0, "C": 0.0}
    frame = pl.DataFrame({"dataset": [f"d{i}" for i in range(14)], **{k: base + lift[k] + noise[k] for k in noise}})
    frame.write_csv(tmp_path / "wide.csv")
    return frame


def test_the_tests_are_the_librarys(run, wide, tmp_path) -> None:
    result = run("compare", tmp_path / "wide.csv", "-o", tmp_path / "d.svg", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    columns = [wide[name].to_numpy() for name in "ABC"]
    np.testing.assert_allclose(found["friedman"]["statistic"], friedmanchisquare(*columns).statistic, atol=1e-9)
    assert next(iter(found["ranks"])) == "A"
    assert {(p["better"], p["significant"]) for p in found["pairs"] if "A" in (p["better"], p["worse"])} == {
        ("A", True)
    }
    assert found["cliques"] == [[name for name in found["ranks"] if name != "A"]]
    expected = critical_difference_diagram(wide, title="auc")
    assert (tmp_path / "d.svg").read_text() == expected.svg


def test_the_paper_in_the_terminal(run, paper_folder) -> None:
    text = run("compare", paper_folder / "auc.csv").stdout
    assert "Friedman chi2 = 201.1378; Iman and Davenport F(11, 253) = 73.5923" in text


def test_long_tables_are_averaged_over_folds(run, wide, tmp_path) -> None:
    long = wide.unpivot(index="dataset", variable_name="classifier", value_name="value")
    folds = [
        long.with_columns(pl.col("value") + d, fold=pl.lit(d), metric=pl.lit(m))
        for d in (-0.125, 0.125)
        for m in ("auc", "ece")
    ]
    pl.concat(folds).sample(fraction=1.0, shuffle=True, seed=1).write_parquet(tmp_path / "long.parquet")
    long_ranks = json.loads(run("compare", tmp_path / "long.parquet", "--json").stdout)["ranks"]
    assert long_ranks == json.loads(run("compare", tmp_path / "wide.csv", "--json").stdout)["ranks"]
    lower = json.loads(run("compare", tmp_path / "long.parquet", "--metric", "ece", "--json").stdout)
    assert lower["higher_is_better"] is False
    assert lower["ranks"]["A"] == 3.0
    wrong = run("compare", tmp_path / "long.parquet", "--metric", "acu")
    assert wrong.exit_code == 2
    assert "there is no metric 'acu'. Did you mean 'auc'?" in wrong.stderr


def test_a_fold_that_is_not_there_is_said(run, wide, tmp_path) -> None:
    long = wide.unpivot(index="dataset", variable_name="classifier", value_name="auc")
    pl.concat([long, long])[:-1].write_csv(tmp_path / "long.csv")
    result = run("compare", tmp_path / "long.csv")
    assert result.exit_code == 0
    assert "the cells are means of 1 to 2 values" in result.stderr


def test_an_empty_cell(run, wide, tmp_path) -> None:
    wide[3, "B"] = None
    wide.write_csv(tmp_path / "gap.csv")
    result = run("compare", tmp_path / "gap.csv")
    assert result.exit_code == 2
    assert "data set 'd3', classifier 'B': no value" in result.stderr
    dropped = run("compare", tmp_path / "gap.csv", "--drop-incomplete", "--json")
    assert "left out: 'd3'" in dropped.stderr
    assert json.loads(dropped.stdout)["data_sets"] == 13


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--metric", "profit"), "Is a high profit good or bad? Add --higher or --lower"),
        (("--zero-method", "prat"), "Did you mean 'pratt'?"),
        (("--alpha", "5"), "alpha must be a finite number above 0 and below 1"),
        (("-o", "d.gif"), ".csv.gz, .svg, .png, .pdf or .tex"),
    ],
)
def test_wrong_options(run, wide, tmp_path, words, message) -> None:
    result = run("compare", tmp_path / "wide.csv", *words)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_direction_may_be_given(run, wide, tmp_path) -> None:
    words = ("compare", tmp_path / "wide.csv", "--metric", "profit", "--json")
    up, down = (json.loads(run(*words, way).stdout)["ranks"] for way in ("--higher", "--lower"))
    assert up["A"] == 1.0
    assert down["A"] == 3.0


def test_predictions_are_not_taken_for_results(run, tmp_path) -> None:
    """Thousands of rows of one data set would be as many data sets, and every difference significant."""
    rng = np.random.default_rng(0)
    n = 5960
    risks = {"arm": rng.random(n).round(6), "xgb": rng.random(n).round(6)}
    outcome = {"bad": rng.integers(0, 2, n)}
    for first in ({"row": range(n)}, {"id": [f"A{i:05}" for i in range(n)]}):
        pl.DataFrame({**first, **outcome, **risks}).write_csv(tmp_path / "p.csv")
        done = run("compare", tmp_path / "p.csv")
        assert done.exit_code == 2
        assert "looks like predictions for the 5,960 rows of one data set" in done.stderr
        assert "column 'bad' holds zeros and ones only" in done.stderr
        assert "plainrisk.metrics" in done.stderr
    pl.DataFrame({"row": range(n), **risks}).write_csv(tmp_path / "p.csv")
    assert "no column names data sets" in run("compare", tmp_path / "p.csv").stderr
    pl.DataFrame(risks).write_csv(tmp_path / "p.csv")
    assert "the first column must name the data sets" in run("compare", tmp_path / "p.csv").stderr


def test_data_sets_may_be_numbered(run, wide, tmp_path) -> None:
    ranks = json.loads(run("compare", tmp_path / "wide.csv", "--json").stdout)["ranks"]
    numbered = wide.with_columns(dataset=pl.int_range(1, 15))
    numbered.write_csv(tmp_path / "n.csv")
    numbered.unpivot(index="dataset", variable_name="classifier", value_name="value").write_csv(tmp_path / "long.csv")
    for name in ("n.csv", "long.csv"):
        found = json.loads(run("compare", tmp_path / name, "--json").stdout)
        assert (found["ranks"], found["data_sets"]) == (ranks, 14)
