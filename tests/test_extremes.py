"""Numbers beyond all reason, and things of the wrong kind: an error of ours that says what to do."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold

import plainrisk as pr
from plainrisk.errors import DataError, ModelFileError, SchemaError


@pytest.fixture(scope="module")
def german():
    return pr.datasets.load("german", backend="pandas")


@pytest.fixture(scope="module")
def model(german):
    return pr.make_classifier("ARM1", german.schema).fit(german.frame, german.target)


def test_a_special_value_beyond_all_floats():
    with pytest.raises(SchemaError, match=r"'a'.*over 300 digits is beyond 2\*\*53"):
        pr.Schema(features={"a": {"kind": "continuous", "special_values": [10**400]}})


@pytest.mark.parametrize("weight", [1e200, 5e-324])
def test_weights_whose_squares_are_no_numbers(german, model, weight):
    with pytest.raises(DataError, match=r"sample_weight: the weights add up to .* Scale them to about 1 per row"):
        pr.evaluate(model, german.frame, german.target, sample_weight=np.full(1000, weight))


def test_amounts_whose_squares_are_no_numbers(german, model):
    with pytest.raises(DataError, match=r"amount: 1e\+300 is beyond 1e\+99"):
        pr.cutoffs(model, german.frame, german.target, amount=np.full(1000, 1e300), gain_good=0.1)


@pytest.mark.parametrize("model", [None, pr.make_classifier("SmoothARM1")], ids=["None", "unfitted"])
def test_pairs_are_suggested_for_a_fitted_model(german, model):
    with pytest.raises(DataError, match="suggest_pairs: give a fitted model"):
        pr.suggest_pairs(model, german.frame, german.target)


def test_a_splitter_is_no_class(german, model):
    with pytest.raises(DataError, match=r"cv must be a number of folds.* Make one: KFold\(\.\.\.\)"):
        pr.cross_validate(model, german.frame, german.target, cv=KFold)


def test_a_frame_without_columns():
    with pytest.raises(DataError, match="There are no columns to fit"):
        pr.make_classifier("ARM1").fit(pd.DataFrame(index=range(4)), [0, 1, 0, 1])


def test_a_billion_draws(german):
    smooth = pr.make_classifier("SmoothARM1", german.schema, intervals=True).fit(german.frame, german.target)
    with pytest.raises(DataError, match="posterior: n must be a whole number from 2 to 100,000"):
        smooth.posterior(10**9)


def test_rows_that_are_nothing():
    with pytest.raises(DataError, match="rows: files must be a file or a list, not None"):
        pr.rows.parquet(None)
    with pytest.raises(DataError, match=r"rows\.Batches: names must be a list, not None"):
        pr.rows.Batches(None, 3, len)


def test_a_file_that_says_it_is_of_format_1(model, tmp_path):
    path = tmp_path / "model.json"
    model.save(path)
    content = json.loads(path.read_text())
    content["format"], content["fit"]["base_rate"] = 1, 0.5
    path.write_text(json.dumps(content))
    with pytest.raises(ModelFileError, match="no file of format 1 has a hash of its content"):
        pr.load(path)
