"""The page in the browser and Python say the same of the same applicants, to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plainrisk as pr
from plainrisk.data.frame import as_frame
from plainrisk.report.collect import row_values

ROWS, SEARCHES = 1000, 10

ASK = """([rows, cutoff, searches]) => {
  const engine = globalThis.plainrisk;
  const model = engine.prepare(JSON.parse(document.getElementById("payload").textContent));
  const pieces = (said) => Object.fromEntries(said.parts.flatMap((p) => p.terms.map((t) => [t.name, t.value])));
  return {
    risks: rows.map((row) => engine.risk(model, row)),
    pieces: rows.map((row) => pieces(engine.explain(model, row))),
    reasons: rows.map((row) => engine.reasons(model, row).map((r) => r.text)),
    found: rows.slice(0, searches).map((row) => engine.whatIf(model, row, cutoff).answers),
  };
}"""


@pytest.fixture(scope="session")
def heloc() -> Any:
    try:
        return pr.datasets.load("heloc")
    except pr.errors.DataError as error:
        if "is not on this machine" not in str(error):
            raise
        pytest.skip("heloc is not on this machine: set PLAINRISK_DATA to the folder that holds it")


def compare(seen: Any, model: Any, frame: Any, adverse: Any, cutoff: float) -> None:
    form, rows = model.form_, as_frame(frame)
    rows = rows.rows(np.arange(ROWS))
    columns = {name: row_values(form, rows, name) for name in form.features}
    plain = [{name: column[i] for name, column in columns.items()} for i in range(ROWS)]
    said = seen.page.evaluate(ASK, [plain, cutoff, SEARCHES])
    first = frame[:ROWS]
    assert np.array_equal(said["risks"], form.risk(rows))
    explained = model.explain(first)
    page_pieces = np.array([[pieces[name] for name in explained.features] for pieces in said["pieces"]])
    assert np.array_equal(page_pieces, explained.contributions)
    reasons = model.reasons(first, adverse=adverse).to_dict()
    assert said["reasons"] == [[r["reason"] for r in one["reasons"]] for one in reasons]
    for i, answers in enumerate(said["found"]):
        python = model.what_if(frame[i : i + 1], target=cutoff, adverse=adverse).answers
        changes = [[(c["feature"], c["to"]) for c in answer["changes"]] for answer in answers]
        assert changes == [[(c.feature, c.to_value) for c in answer.changes] for answer in python]


def test_german(open_page: Callable[..., Any], german_page: Path, model: Any, german: Any) -> None:
    compare(open_page(german_page), model, german.frame, "negative", 0.8)


def test_heloc(open_page: Callable[..., Any], written: Callable[..., Path], heloc: Any) -> None:
    pairs = [("PercentTradesNeverDelq", "MaxDelq2PublicRecLast12M")]
    model = pr.make_classifier("SmoothARM1", heloc.schema, pairs=pairs).fit(heloc.frame, heloc.target)
    compare(open_page(written("heloc", model, title="HELOC")), model, heloc.frame, "positive", 0.3)
