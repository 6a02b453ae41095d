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
