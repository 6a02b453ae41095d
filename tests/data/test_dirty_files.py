"""Dirty files, one per kind of dirt and one with all: drafted, fitted, scored, served and streamed as clean ones."""

from __future__ import annotations

import csv
import json
import warnings

import numpy as np
import polars as pl
import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

import plainrisk as pr
from plainrisk.cli.app import app
from plainrisk.schema import Schema
from plainrisk.serve import Settings, make_app

N = 600


def amount(x):
    return "" if x is None else f"${x:,.2f}"


def decimal_comma(x):
    return "" if x is None else f"{x:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".")


def with_nulls(text):
    return lambda x: text if x is None else repr(x)


# How each column is written, by kind of dirt; and the rule that the draft must state.
DIRT = {
    "NA": ({"income": with_nulls("NA")}, {"income": {"null_values": ["NA"]}}),
    "question mark": ({"income": with_nulls("?")}, {"income": {"null_values": ["?"]}}),
    "n/a and N/A": (
        {"income": lambda x: "n/a" if x is None else repr(x), "job": lambda x: "N/A" if x is None else x},
        {"income": {"null_values": ["n/a"]}, "job": {"kind": "categorical", "null_values": ["N/A"]}},
    ),
    "dash": ({"income": with_nulls("-")}, {"income": {"null_values": ["-"]}}),
    "blank": ({"income": with_nulls("  ")}, {"income": {"null_values": [""]}}),
    "a question mark among categories": (
        {"job": lambda x: " ?" if x is None else x},
        {"job": {"kind": "categorical", "null_values": ["?"]}},
    ),
    "currency": ({"income": amount}, {"income": {"read": "amount"}}),
    "thousands": (
        {"income": lambda x: "NA" if x is None else f"{x:,.2f}"},
        {"income": {"read": "amount", "null_values": ["NA"]}},
    ),
    "percent": ({"rate": lambda x: "" if x is None else f"{x}%"}, {"rate": {"read": "percent"}}),
    "decimal commas": (
        {"income": decimal_comma, "rate": lambda x: "" if x is None else f"{x} %".replace(".", ",")},
        {"income": {"read": "decimal_comma"}, "rate": {"read": "decimal_comma"}},
    ),
    "a word among numbers": ({"income": with_nulls("refused")}, {"income": {"null_values": ["refused"]}}),
    "all at once": (
        {
            "income": lambda x: "missing" if x is None else f"USD {x:,.2f}",
            "rate": lambda x: "--" if x is None else f"{x} %",
            "job": lambda x: "?" if x is None else x,
        },
        {
            "income": {"read": "amount", "null_values": ["missing"]},
            "rate": {"read": "percent", "null_values": ["--"]},
            "job": {"kind": "categorical", "null_values": ["?"]},
        },
    ),
}


@pytest.fixture(scope="module")
def rows():
    """Clean rows as columns; None for missing."""
    rng = np.random.default_rng(5)
    income = np.exp(rng.normal(8, 0.6, N)).round(2)
    rate = rng.uniform(3, 40, N).round(1)
    job = rng.choice(["clerk", "smith", "cook"], N)
    bad = rng.random(N) < 1 / (1 + np.exp(0.0005 * income - 0.05 * rate + 1 - (job == "cook")))
    columns = {"income": income.tolist(), "rate": rate.tolist(), "job": job.tolist()}
    for name, values in columns.items():
        columns[name] = [None if hole else value for value, hole in zip(values, rng.random(N) < 0.1, strict=True)]
        columns[name][0] = None
    return {**columns, "bad": bad.astype(int).tolist()}


@pytest.fixture(scope="module")
def clean(rows):
    """The risks of a model of the clean rows, and its levels."""
    schema = Schema(target="bad", features={"income": {}, "rate": {}, "job": {"kind": "categorical"}})
    model = pr.make_classifier("SmoothARM1", schema)
    model.fit(pl.DataFrame(rows))
    return model


def written(path, rows, ways):
    """Write rows as a file, some columns in the given ways."""
    columns = {name: [ways.get(name, with_nulls(""))(x) for x in rows[name]] for name in ("income", "rate")}
    columns["job"] = [ways.get("job", lambda x: x or "")(x) for x in rows["job"]]
    columns["bad"] = rows["bad"]
    with path.open("w", newline="") as file:
        csv.writer(file).writerow(columns)
        csv.writer(file).writerows(zip(*columns.values(), strict=True))
    return columns


def run(*words):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = CliRunner().invoke(app, [str(word) for word in words])
    assert found.exit_code == 0, found.output + found.stderr
    return found


@pytest.mark.parametrize("kind", DIRT)
@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_a_dirty_file_is_read_as_the_clean_one_everywhere(kind, rows, clean, tmp_path):
    ways, rules = DIRT[kind]
    data, toml, file = tmp_path / "dirty.csv", tmp_path / "s.toml", tmp_path / "m.json"
    columns = written(data, rows, ways)
    risks = clean.predict_proba(pl.DataFrame(rows))[:, 1]
    # Clean columns have their types; those that are written in some way are text, empty where a file has nothing.
    asked = [
        {n: (columns[n][i] or None) if n in ways else rows[n][i] for n in ("income", "rate", "job")} for i in range(N)
    ]
    frame = pl.DataFrame({**{n: [row[n] for row in asked] for n in asked[0]}, "bad": rows["bad"]})

    run("schema", "infer", data, "--column", "bad", "-o", toml)
    schema = Schema.load(toml)
    assert {name: schema.features[name] for name in rules} == Schema(features=rules).features
    assert [p for p in schema.check(frame) if p.severity == "error"] == []
    run("schema", "check", data, "--schema", toml)

    run("fit", data, "--schema", toml, "--cv", "0", "-o", file)
    model = pr.load(file)
    assert model.form_.parts == clean.form_.parts, "the same levels and scores"
    for table in (frame, frame.to_pandas(), frame.to_arrow()):
        np.testing.assert_array_equal(model.predict_proba(table)[:, 1], risks)
    assert pr.make_classifier("SmoothARM1", schema).fit(frame).form_.parts == clean.form_.parts

    run("score", file, data, "-o", tmp_path / "risks.csv")
    np.testing.assert_array_equal(pl.read_csv(tmp_path / "risks.csv")["risk"].to_numpy(), risks)

    with TestClient(make_app(Settings(models=(str(file),))), "http://localhost") as client:
        served = client.post("/score", json={"rows": asked}).json()["rows"]
        alone = client.post("/score", json={"rows": asked[:1]}).json()["rows"]
    np.testing.assert_array_equal([row["risk"] for row in served], risks)
    assert alone[0]["risk"] == risks[0], "no answer depends on the other rows"

    streamed = pr.make_classifier("SmoothARM1", schema).fit(pr.rows.csv(data, batch_rows=100), y="bad")
    np.testing.assert_allclose(streamed.predict_proba(asked)[:, 1], risks, rtol=0, atol=1e-9)


@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_fit_drafts_and_reads_dirt_without_a_schema_too(rows, clean, tmp_path):
    data, file = tmp_path / "dirty.csv", tmp_path / "m.json"
    written(data, rows, DIRT["all at once"][0])
    run("fit", data, "--column", "bad", "--cv", "0", "-o", file)
    assert pr.load(file).form_.parts == clean.form_.parts


@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_what_a_rule_cannot_read_is_an_error_with_feature_and_row(rows, tmp_path):
    data, toml, file = tmp_path / "dirty.csv", tmp_path / "s.toml", tmp_path / "m.json"
    written(data, rows, DIRT["percent"][0])
    run("schema", "infer", data, "--column", "bad", "-o", toml)
    run("fit", data, "--schema", toml, "--cv", "0", "-o", file)
    lines = data.read_text().splitlines()
    lines[5] = "1000.0,twelve,cook,1"
    data.write_text("\n".join(lines) + "\n")
    message = "feature 'rate' is continuous but holds text in row 4 that its rule does not read (read = 'percent')"
    for words in (
        ("fit", data, "--schema", toml, "-o", tmp_path / "n.json"),
        ("fit", data, "--schema", toml, "--stream", "--cv", "0", "-o", tmp_path / "n.json"),
        ("score", file, data, "-o", tmp_path / "risks.csv"),
    ):
        found = CliRunner().invoke(app, [str(word) for word in words])
        assert found.exit_code == 2
        assert message in " ".join(found.stderr.split())
    checked = CliRunner().invoke(app, ["schema", "check", str(data), "--schema", str(toml), "--json"])
    assert any(message in problem["message"] for problem in json.loads(checked.stdout)["problems"])
    row = {"income": 1000.0, "rate": "twelve", "job": "cook"}
    with TestClient(make_app(Settings(models=(str(file),))), "http://localhost") as client:
        answer = client.post("/score", json={"rows": [row]})
    assert answer.status_code == 422
    assert "feature 'rate' is continuous but holds text in row 0" in answer.json()["detail"]
