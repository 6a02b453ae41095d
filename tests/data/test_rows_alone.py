"""The answer to a row does not depend on the other rows of its file, its batch or its request."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plainrisk as pr
from plainrisk.cli.runner import COPY, RowReader
from plainrisk.data.frame import as_frame
from plainrisk.serve.requests import Requests

WRITTEN = [
    "01",
    "1",
    "1.0",
    "1e2",
    "1E2",
    "100",
    "-0",
    "true",
    "TRUE",
    "False",
    "",
    "NA",
    "NaN",
    " a ",
    "a",
    'q"q',
    "1,5",
]
NUMBERS = ["01", "1", "1.0", "1e2", "+3", ".5", "-0", "true", "FALSE", "", "NaN", "99999999999999999999"]
TYPED = [True, False, 1, 0, 1.0, 2.5, 100, "1", "01", "True", "true", "a", None, 2**53 + 1]

rows = st.lists(st.tuples(st.sampled_from(WRITTEN), st.sampled_from(NUMBERS), st.sampled_from(WRITTEN)), min_size=1)


@pytest.fixture(scope="module")
def form():
    """A form that knows most of the codes, each with a risk of its own."""
    codes = sorted({"True" if c == "true" else c for c in WRITTEN} - {"", "NA", "TRUE", "1E2"})
    n = 40 * len(codes)
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "code": [codes[i % len(codes)] for i in range(n)],
            "x": [float(i % 101) for i in range(n)],
            "flag": [bool(rng.integers(2)) for _ in range(n)],
        }
    )
    kinds = {"code": {"kind": "categorical"}, "x": {}, "flag": {"kind": "categorical"}}
    risk = 0.1 + 0.7 * np.array([codes.index(c) for c in frame["code"]]) / len(codes) + 0.1 * frame["flag"].to_numpy()
    fitted = pr.AdditiveRiskModel(pr.Schema(features=kinds)).fit(frame, (rng.random(n) < risk).astype(int))
    return fitted.form_


def write(path: Path, given: list[tuple[str, str, str]], order: list[int]) -> None:
    """Write a file; a field of each row is quoted if it must be, and those of every other row always."""
    with path.open("w", newline="") as file:
        file.write("code,x,flag\n")
        for k in order:
            csv.writer(file, quoting=csv.QUOTE_ALL if k % 2 else csv.QUOTE_MINIMAL).writerow(given[k])


def read_by_command(path: Path, form: pr.form.RiskForm) -> list[tuple[float, str | None, str | None]]:
    """Return the risks of a file and the columns to keep, as a command reads them."""
    reader = RowReader(str(path), [form], None, {"code": "--keep", "x": "--keep"})
    found: list[tuple[float, str | None, str | None]] = []
    reader.each(lambda b: found.extend(zip(form.risk(b), b[COPY + "code"], b[COPY + "x"], strict=True)))
    return found


@settings(max_examples=40)
@given(rows, st.data())
def test_of_a_file(form, tmp_path_factory, given, data):
    folder = tmp_path_factory.mktemp("rows")
    order = data.draw(st.permutations(range(len(given))))
    some = order[: data.draw(st.integers(1, len(order)))]
    write(folder / "some.csv", given, some)
    found = read_by_command(folder / "some.csv", form)
    stream = pr.rows.csv(folder / "some.csv", text=["code", "flag"], batch_rows=data.draw(st.integers(1, 5)))
    risks = np.concatenate([form.risk(batch) for batch in stream.read_as(form.schema.kinds).batches()])
    assert risks.tolist() == [risk for risk, _, _ in found]
    for place, k in enumerate(some):
        write(folder / "one.csv", given, [k])
        assert read_by_command(folder / "one.csv", form) == [found[place]]
        assert found[place][1:] == tuple(text or None for text in given[k][:2])


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(TYPED), st.sampled_from([1, 2.5, None]), st.sampled_from(TYPED)), min_size=1))
def test_of_a_request_and_of_a_frame(form, given):
    requests = Requests(form, {})
    asked = [dict(zip(("code", "x", "flag"), row, strict=True)) for row in given]

    def risks(part):
        return form.risk(requests.table(requests.read("score", json.dumps({"rows": part}).encode()).rows)).tolist()

    alone = [risks([row])[0] for row in asked]
    assert risks(asked) == alone
    assert form.risk(as_frame(asked)).tolist() == alone
