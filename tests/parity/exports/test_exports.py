"""Every export gives the model's risk, contributions and reasons on real rows and on every edge case."""

from __future__ import annotations

import pytest

# Only comparisons, sums and products occur in these, so that every bit is the same.
STRAIGHT = ("SmoothARM1", "SmoothARM1 with pairs", "BandARM1", "DirectARM1", "LinARM2", "MixLinARM1")
MODELS = (*STRAIGHT, "CalibratedMixARM1", "ARM1")
ENGINES = ["python", "javascript", "c", "onnx", "duckdb", "sqlite", "postgres"]
ROWS = {"german": 1000, "heloc": 2000}
# Rows for engines that take long: by target, real ones and edge cases.
SLOW = {"xlsx": (30, 10), "pmml": (30, 10), "jpmml": (100, 40)}


@pytest.mark.parametrize("dataset", ROWS)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("target", ENGINES, indirect=True)
def test_real_rows_and_edge_cases(target, dataset, name, fitted, check, edge_rows):
    model, frame = fitted(dataset, name)
    edges = edge_rows(model.form_, 100)
    assert len(edges) > 50
    found = check(model, target, frame.head(ROWS[dataset]).to_dicts() + edges)
    assert found.rows == ROWS[dataset] + len(edges)
    assert found.agrees, found
    # SQLite reads some numbers of 17 digits with another last bit.
    assert found.bit_equal or name not in STRAIGHT or target == "sqlite", found


@pytest.mark.parametrize("target", SLOW, indirect=True)
def test_real_rows_and_edge_cases_of_all_models_in_slow_engines(target, fitted, check_all, edge_rows):
    """In one run of the engine."""
    real, edges = SLOW[target]
    names = [(dataset, name) for dataset in ROWS for name in MODELS]
    cases = []
    for dataset, name in names:
        model, frame = fitted(dataset, name)
        # Spreadsheets keep 15 digits.
        made = edge_rows(model.form_, edges, near=target != "xlsx")
        cases.append((model, frame.head(real).to_dicts() + made, None))
    found = check_all(target, cases)
    assert [one.rows for one in found] == [len(rows) for _, rows, _ in cases]
    assert [(*name, one) for name, one in zip(names, found, strict=True) if not one.agrees] == []
