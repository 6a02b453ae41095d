"""`plainrisk fit` with groups, time, weights, several models and a test file."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import plainrisk as pr


@pytest.fixture(scope="module")
def files(credit, tmp_path_factory):
    """Training rows with a customer, a month and a weight, and a test file."""
    folder = tmp_path_factory.mktemp("validation")
    rng = np.random.default_rng(6)
    n = credit.frame.height
    train = credit.frame.with_columns(
        customer=pl.Series(rng.integers(0, 200, n)),
        month=pl.Series([f"2023-{k % 8 + 1:02}" for k in range(n)]),
        w=pl.Series(rng.uniform(0.5, 2, n)),
    )
    made = pr.datasets.make_credit(400, 9, backend="polars")
    test = made.frame.with_columns(pl.Series("bad", made.target), w=pl.Series(rng.uniform(0.5, 2, 400)))
    train.write_csv(folder / "train.csv")
    test.write_csv(folder / "test.csv")
    return folder / "train.csv", folder / "test.csv", train, test


def fit(run, credit, file, output, *words):
    result = run("fit", file, "--schema", credit.schema_file, "-o", output, "--model", "ARM1", *words, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (("--group", "customer"), lambda train: {"groups": train["customer"].cast(pl.String).to_numpy()}),
        (("--time", "month"), lambda train: {"time": train["month"].to_numpy()}),
        (("--weight", "w"), lambda train: {"sample_weight": train["w"].to_numpy()}),
    ],
    ids=["group", "time", "weight"],
)
def test_folds_and_weights_are_those_of_the_library(run, credit, files, tmp_path, words, options):
    file, _, train, _ = files
    found = fit(run, credit, file, tmp_path / "m.json", "--cv", "4", *words)["cv"]
    X, y = train.select(list(credit.schema.features)), train["bad"].to_numpy()
    expected = pr.cross_validate(pr.AdditiveRiskModel(credit.schema), X, y, cv=4, **options(train))
    assert found["auc"]["values"] == pytest.approx(expected.scores["auc"].tolist())
    assert found["pooled_ece"] == pytest.approx(expected.pooled["ece"])
    assert (found["group"], found["time"]) == (
        "customer" if "--group" in words else None,
        "month" if "--time" in words else None,
    )
    weights = {"sample_weight": train["w"].to_numpy()} if "--weight" in words else {}
    model = pr.AdditiveRiskModel(credit.schema).fit(X, y, **weights)
    np.testing.assert_array_equal(pr.load(tmp_path / "m.json").predict_proba(X), model.predict_proba(X))


def test_the_table_says_how_rows_were_split_and_shows_the_pooled_ece(run, credit, files, tmp_path):
    file = files[0]
    words = ("fit", file, "--schema", credit.schema_file, "-o", tmp_path / "m.json", "--model", "ARM1", "--cv", "4")
    forward = run(*words, "--time", "month").stdout
    assert "4 runs of 'month', each held out from all earlier rows" in forward
    assert "rows of one 'customer' together" in run(*words, "--group", "customer").stdout
    shown, facts = run(*words).stdout, json.loads(run(*words, "--json").stdout)
    assert f"{facts['cv']['pooled_ece']:.4f}" in shown
    assert f"{facts['cv']['ece']['mean']:.4f} ±" not in shown
    assert "ECE: of all held-out risks together" in shown


def test_these_columns_are_no_features_of_an_inferred_schema(run, files, tmp_path):
    words = ("fit", files[0], "--column", "bad", "--cv", "0", "-o", tmp_path / "m.json")

    def features(*more):
        assert run(*words, *more).exit_code == 0
        return set(pr.load(tmp_path / "m.json").form_.schema.features)

    every = features()
    assert {"w", "age"} <= every
    assert features("--weight", "w") == every - {"w"}
    assert features("--time", "age") == every - {"age"}
    assert features("--group", "age", "--weight", "w") == every - {"age", "w"}


def test_several_models_in_one_table(run, credit, files, tmp_path):
    file, test, train, rows = files
    more = ("--model", "BandARM1", "--cv", "3", "--test", test, "--weight", "w")
    found = fit(run, credit, file, tmp_path / "m.json", *more)
    assert list(found["models"]) == ["ARM1", "BandARM1"]
    assert found["model"] == "ARM1"
    assert found["cv"] == found["models"]["ARM1"]["cv"]
    weight = train["w"].to_numpy()
    X, y = train.select(list(credit.schema.features)), train["bad"].to_numpy()
    models = {n: pr.make_classifier(n, credit.schema).fit(X, y, sample_weight=weight) for n in found["models"]}
    first, other = (pr.evaluate(m, rows, sample_weight=rows["w"].to_numpy()) for m in models.values())
    tested = {name: one["test"] for name, one in found["models"].items()}
    assert tested["ARM1"]["figures"]["auc"] == vars(first["auc"])
    assert tested["BandARM1"]["figures"]["brier"] == vars(other["brier"])
    assert tested["BandARM1"]["against"]["figures"]["auc"] == vars(first["auc"])
    saved = pr.load(tmp_path / "m.json")
    np.testing.assert_array_equal(saved.predict_proba(rows), models["ARM1"].predict_proba(rows))
    words = ("fit", file, "--schema", credit.schema_file, "-o", tmp_path / "m.json", "--model", "ARM1")
    shown = run(*words, "--model", "BandARM1", "--cv", "3", "--test", test).stdout
    assert f"Test file {test}: 400 rows" in shown
    assert "AUC of BandARM1 less that of ARM1: " in shown


def test_a_test_file_without_cross_validation_and_of_a_stream(run, credit, files, tmp_path):
    file, test, _, rows = files
    found = fit(run, credit, file, tmp_path / "m.json", "--cv", "0", "--test", test)
    assert "cv" not in found
    expected = vars(pr.evaluate(pr.load(tmp_path / "m.json"), rows)["auc"])
    assert found["models"]["ARM1"]["test"]["figures"]["auc"] == expected
    streamed = fit(run, credit, file, tmp_path / "s.json", "--stream", "--test", test)
    assert streamed["models"]["ARM1"]["test"]["figures"]["auc"] == pytest.approx(expected)


def test_a_stream_takes_weights(run, credit, files, tmp_path):
    file, _, _, rows = files
    for name, words in {"all": (), "batches": ("--stream",)}.items():
        fit(run, credit, file, tmp_path / f"{name}.json", "--cv", "0", "--weight", "w", *words)
    risks = [pr.load(tmp_path / f"{name}.json").predict_proba(rows) for name in ("all", "batches")]
    np.testing.assert_allclose(*risks, rtol=0, atol=1e-9)
    fit(run, credit, file, tmp_path / "even.json", "--cv", "0")
    assert np.abs(pr.load(tmp_path / "even.json").predict_proba(rows) - risks[0]).max() > 1e-3


def test_a_stream_is_cross_validated_where_its_rows_are(run, credit, files, tmp_path):
    file = files[0]
    options = ("--stream", "--cv", "3", "--seed", "2", "--group", "customer", "--weight", "w")
    found = fit(run, credit, file, tmp_path / "m.json", *options)["cv"]
    schema = pr.Schema.load(credit.schema_file)
    expected = pr.cross_validate(
        pr.make_classifier("ARM1", schema), pr.rows.csv(file), None, 3, 2, "customer", sample_weight="w"
    )
    assert found["auc"]["values"] == expected.scores["auc"].tolist()
    assert found["pooled_ece"] == expected.pooled["ece"]
    assert (found["folds"], found["dealt_by"]) == (3, "hash")
    words = ("fit", file, "--schema", credit.schema_file, "-o", tmp_path / "m.json", "--model", "ARM1")
    shown = " ".join(run(*words, "--stream", "--cv", "3").stdout.split())
    assert "over 3 folds, by the rows' content, seed 0" in shown
    assert "cv" not in fit(run, credit, file, tmp_path / "m.json", "--stream")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--group", "custmer"), "--group 'custmer' is not in the data. Did you mean 'customer'?"),
        (("--group", "customer", "--time", "month"), "--group and --time cannot both be given"),
        (("--time", "month"), "cv=10: the rows have 8 distinct times, which allow at most 7 folds"),
        (("--time", "housing", "--cv", "3"), "time: must hold numbers, dates, or text such as 2024-03"),
        (("--weight", "month"), "error: --weight 'month': must hold numbers, and row 0 (counting from 0) holds"),
        (("--test", "none.csv"), "none.csv"),
        (("--model", "ARM3"), "There is no classifier 'ARM3'"),
        (("--stream", "--time", "month"), "--stream reads rows in batches and takes no --time"),
        (("--stream", "--group", "customer"), "--group is for folds, and --stream has them with --cv"),
        (
            ("--stream", "--cv", "3", "--group", "custmer"),
            "groups names no column: 'custmer'. Did you mean 'customer'?",
        ),
        (("--stream", "--model", "ARM2"), "takes only one --model"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_written(run, credit, files, tmp_path, words, message):
    output = tmp_path / "m.json"
    result = run("fit", files[0], "--schema", credit.schema_file, "-o", output, "--model", "ARM1", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not output.exists()
