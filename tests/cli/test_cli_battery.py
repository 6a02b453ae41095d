"""The commands of the battery say what the library says, and write what they show."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import plainrisk as pr


@pytest.fixture(scope="module")
def later(credit, tmp_path_factory):
    """Later rows in a file, and a model with a cut-off."""
    folder, rng = tmp_path_factory.mktemp("later"), np.random.default_rng(6)
    made = pr.datasets.make_credit(500, 9, backend="polars")
    frame = made.frame.with_columns(
        pl.Series("bad", made.target),
        day=pl.Series([f"2024-{k % 7 + 1:02d}-15" for k in range(500)]),
        mob=pl.Series(rng.integers(1, 30, 500)),
    )
    frame.write_csv(folder / "later.csv")
    pr.load(credit.model_file).save(folder / "model.json", cutoff=0.2)
    return folder / "model.json", folder / "later.csv", frame


def plain(found):
    """A result as JSON has it."""
    return json.loads(json.dumps(found.to_dict()).replace("NaN", "null").replace("Infinity", "null"))


def told(result):
    """What a command printed as JSON."""
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_periods(run, later, tmp_path):
    model, file, frame = later
    words = ("periods", model, file, "--time", "day", "--every", "quarter", "--months", "mob")
    expected = pr.periods(pr.load(model), frame, time="day", every="quarter", months="mob")
    found = told(run(*words, "--json", "-o", tmp_path / "p.csv"))
    assert {name: found[name] for name in plain(expected)} == plain(expected)
    written = pl.read_csv(tmp_path / "p.csv")
    assert written["period"].to_list() == ["2024-Q1", "2024-Q2", "2024-Q3"]
    assert written["psi of income"].to_list() == pytest.approx(expected.columns()["psi of income"])
    shown = run(*words).stdout
    for text in ("shifts against the training rows", "2024-Q3", "largest psi", "months on book", "small shift"):
        assert text in shown
    assert "--time 'dya' is not in the data. Did you mean 'day'" in run(*words[:4], "dya").stderr


def test_quality(run, later, tmp_path):
    model, file, frame = later
    lines = file.read_text().splitlines()
    lines[3] = lines[3].replace(lines[3].split(",")[0], "x", 1)
    (tmp_path / "bad.csv").write_text("\n".join([*lines, lines[1]]) + "\n")
    found = told(run("quality", model, tmp_path / "bad.csv", "--json", "-o", tmp_path / "q.csv"))
    high = [issue for issue in found["issues"] if issue["severity"] == "high"]
    assert [(issue["feature"], issue["what"]) for issue in high] == [(frame.columns[0], "type")]
    assert pl.read_csv(tmp_path / "q.csv")["what"].to_list() == [issue["what"] for issue in found["issues"]]
    assert "repeated rows" in run("quality", model, tmp_path / "bad.csv").stdout
    whole = told(run("quality", model, file, "--json"))
    assert whole["issues"] == plain(pr.quality(pr.load(model), frame))["issues"]


def test_stress_and_sensitivity(run, later, tmp_path):
    model, file, frame = later
    words = ("stress", model, file, "--shock", "income=-10%", "--shock", "loan_amount=+500", "--by", "age=30,50")
    loaded = pr.load(model)
    expected = pr.stress(loaded, frame, ["income=-10%", "loan_amount=+500"], by="age", bands=[30, 50])
    found = told(run(*words, "--json", "-o", tmp_path / "s.csv"))
    assert {name: found[name] for name in plain(expected)} == plain(expected)
    assert pl.read_csv(tmp_path / "s.csv")["group"].to_list() == ["(all rows)", "below 30", "30 to 49", "50 and over"]
    assert "expected bad rate" in run(*words).stdout
    moved = told(run("stress", model, file, "--cutoff", "0.3", "--json"))
    assert moved["features"] == plain(pr.sensitivity(loaded, frame, cutoff=0.3))["features"]
    assert "shuffled" in run("stress", model, file).stdout
    assert "--by needs a change" in run("stress", model, file, "--by", "age").stderr
    assert "the sign is needed" in run("stress", model, file, "--shock", "income=500").stderr


def test_weak_spots(run, later, tmp_path):
    model, file, frame = later
    turned = frame.with_columns(
        region=pl.Series(["north", "south"] * 250),
        bad=pl.when(pl.arange(500) % 2 == 0).then(1).otherwise(pl.col("bad")),
    )
    turned.write_csv(tmp_path / "turned.csv")
    words = ("weak-spots", model, tmp_path / "turned.csv", "--more", "region")
    found = told(run(*words, "--json", "-o", tmp_path / "w.csv"))
    assert found == {**found, **plain(pr.weak_spots(pr.load(model), turned, columns=["region"]))}
    assert found["spots"][0]["columns"] == ["region"]
    assert pl.read_csv(tmp_path / "w.csv")["slice"][0] == found["spots"][0]["slice"]
    assert "weak in" in run(*words).stdout
    assert "No weak spot" in run("weak-spots", model, file, "--no-pairs", "--min-rows", "80", "--alpha", "0.001").stdout


def test_groups_and_a_challenger_column(run, later, tmp_path):
    model, file, frame = later
    loaded = pr.load(model)
    other = (loaded.predict_proba(frame)[:, 1] * 0.9).round(6)
    frame.with_columns(other=pl.Series(other)).write_csv(tmp_path / "other.csv")
    words = ("evaluate", model, tmp_path / "other.csv", "--against", "other", "--by", "age=30,50", "--by", "housing")
    found = told(run(*words, "--json"))
    expected = pr.evaluate(loaded, frame, against=other, by=("age", "housing"), bands={"age": [30, 50]})
    assert found["p_value"] == expected.p_value
    assert found["groups"].keys() == expected.groups.keys()
    assert "must hold a probability from 0 to 1" in run(*words[:4], "age").stderr
    assert "othr" in run(*words[:4], "othr").stderr
    fair = told(run("fairness", model, file, "--by", "age=30,50", "--json"))
    assert fair["groups"] == plain(pr.fairness(loaded, frame, by="age", bands=[30, 50]))["groups"]


def test_stability(run, credit, later, tmp_path):
    model, file, frame = later
    words = ("stability", model, credit.csv, "--new", file, "--refits", "2", "--seed", "4")
    expected = pr.stability(pr.load(model), credit.frame, credit.frame["bad"], new=frame, n=2, seed=4)
    found = told(run(*words, "--json", "-o", tmp_path / "s.csv"))
    assert {name: found[name] for name in plain(expected)} == plain(expected)
    assert pl.read_csv(tmp_path / "s.csv")["feature"].to_list() == [f.feature for f in expected.features]
    assert "rows in another order" in run(*words).stdout


def test_overrides(run, later, tmp_path):
    model, _, frame = later
    officer = np.where(np.arange(500) % 5 == 0, "refused", "approved")
    frame.with_columns(officer=pl.Series(officer)).write_csv(tmp_path / "o.csv")
    words = ("overrides", model, tmp_path / "o.csv", "--decision", "officer")
    found = told(run(*words, "--json", "-o", tmp_path / "t.csv"))
    expected = pr.overrides(pr.load(model), frame, decisions=officer)
    assert {name: found[name] for name in plain(expected)} == plain(expected)
    assert pl.read_csv(tmp_path / "t.csv")["rows"].to_list() == [cell.rows for cell in expected.cells]
    assert "kappa" in run(*words).stdout
    assert "no decision is 'yes'" in run(*words, "--approved", "yes").stderr


def test_monitor_ends_with_5_where_a_limit_is_crossed(run, later, tmp_path):
    strict, file, frame = later
    model = tmp_path / "model.json"  # fitted to few rows, it promises too much
    pr.load(strict).annotate({"policy": {"drift": {"auc_drop": 0.3}}}).save(model)
    words = ("monitor", model, file, "--history", tmp_path / "looks.jsonl", "--label", "2026-10")
    quiet = run(*words, "--json", "-o", tmp_path / "m.csv", "--plot", tmp_path / "m.png")
    assert told(quiet)["crossed"] == []
    expected = pr.monitor(pr.load(model), frame, label="2026-10")
    assert told(quiet)["checks"] == plain(expected)["checks"]
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")
    assert pl.read_csv(tmp_path / "m.csv")["figure"][0] == expected.checks[0].figure
    frame.sort("bureau_score").head(200).write_csv(tmp_path / "poor.csv")
    crossed = run("monitor", model, tmp_path / "poor.csv", *words[3:5], "--json")
    assert crossed.exit_code == 5
    assert "shift" in json.loads(crossed.stdout)["crossed"]
    looks = [json.loads(line) for line in (tmp_path / "looks.jsonl").read_text().splitlines()]
    assert [look["label"] for look in looks] == ["2026-10", str(tmp_path / "poor.csv")]
    assert "limits crossed" in run("monitor", model, tmp_path / "poor.csv").stdout
    assert ".png" in run("monitor", model, file, "--plot", tmp_path / "m.txt").stderr
