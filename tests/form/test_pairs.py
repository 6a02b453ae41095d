"""Pairs of features in a part: what they add, what is refused, and the file."""

from __future__ import annotations

import hashlib
import json
import math

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pytest

from plainrisk.errors import DataError, ModelFileError
from plainrisk.form import (
    Alone,
    Bins,
    Categories,
    Logistic,
    PairTable,
    Part,
    RiskForm,
    Table,
    form_hash,
    read_model,
    write_model,
)
from plainrisk.schema import Schema

AGE, JOB = Bins((30.0,), (-9.0,), 0.0), Categories(("a", "b"), 2)  # 5 and 4 levels
SCORES = tuple(tuple(round(0.1 * a - 0.07 * b + 0.03 * a * b, 3) for b in range(4)) for a in range(5))
ONES = ((1.0,) * 4,) * 5


def pair(features=("age", "job"), levels=(AGE, JOB), scores=SCORES, weights=ONES, positives=ONES):
    return PairTable(features=features, levels=levels, scores=scores, weights=weights, positives=positives)


def flipped(features=("job", "age")):
    turned = [tuple(zip(*table, strict=True)) for table in (SCORES, ONES, ONES)]
    return pair(features, (JOB, AGE), *turned)


def part(pairs=None, **fields):
    debt = Table(levels=Bins((1.0,)), scores=(-0.5, 0.5, 0.1), weights=(1.0, 1.0, 1.0), positives=(0.0, 1.0, 0.0))
    pairs = (pair(),) if pairs is None else pairs
    return Part(
        **{"name": "all", "intercept": 0.2, "shapes": {"debt": debt}, "link": Logistic(), **fields}, pairs=pairs
    )


def form(*, unseen="neutral", **fields):
    features = {"age": {"unseen": unseen}, "job": {"kind": "categorical", "unseen": unseen}, "debt": {}}
    return RiskForm(
        schema=Schema(features=features),
        columns=("age", "job", "debt"),
        classes=(0, 1),
        parts=(part(**fields),),
        pool=Alone(),
    )


def test_a_pair_adds_the_score_of_its_cell():
    X = {"age": [20.0, 40.0, -9.0, -1.0, math.nan], "job": ["a", "b", None, "z", "a"], "debt": [0.0, 2.0, 0, 2, None]}
    debt = np.array([-0.5, 0.5, -0.5, 0.5, 0.1])
    wanted = 0.2 + debt + [SCORES[a][b] for a, b in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 0)]]
    model = form()
    assert model.parts[0].features == ("debt", "age", "job")
    assert model.parts[0].term_names == ("debt", "age × job")
    for frame in (pd.DataFrame(X), pl.DataFrame(X, strict=False)):
        np.testing.assert_array_equal(model.score(frame), wanted)
        np.testing.assert_array_equal(model.parts[0].score(model.align(frame), model.schema), wanted)
    rows = [dict(zip(X, row, strict=True)) for row in zip(*X.values(), strict=True)]
    np.testing.assert_array_equal([model.risk(row)[0] for row in rows], Logistic().value(wanted))


def test_the_order_of_the_two_features_does_not_matter():
    X = pd.DataFrame({"age": [20.0, 40.0, np.nan], "job": ["a", "z", "b"], "debt": [0.0, 2.0, 1.0]})
    np.testing.assert_array_equal(form(pairs=(flipped(),)).score(X), form().score(X))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"age": math.inf, "job": "a", "debt": 0.0}, "age"),
        ({"age": "old", "job": "a", "debt": 0.0}, "age"),
        ({"job": "a", "debt": 0.0}, "feature 'age' is not in the data"),
    ],
)
def test_values_that_no_table_takes_no_pair_takes(row, message):
    with pytest.raises(DataError, match=message):
        form().risk(row)
    with pytest.raises(DataError, match=message):
        form().risk(pd.DataFrame([row]))


def test_a_level_is_unseen_if_no_combination_with_it_was_seen():
    weights = np.ones((5, 4))
    weights[2] = 0.0  # age = -9
    weights[:, 3] = 0.0  # a job of which training knew nothing
    weights[0, 0] = 0.0  # both levels were seen, though not together
    strict = form(unseen="error", pairs=(pair(weights=tuple(map(tuple, weights.tolist()))),))
    good = {"age": 20.0, "job": "a", "debt": 0.0}
    assert strict.risk(good) == form().risk(good)
    for bad, message in (({"age": -9.0}, "'age', row 1: level '= -9'"), ({"job": "z"}, "'job', row 1: level 'unseen'")):
        rows = pd.DataFrame([good, {**good, **bad}])
        with pytest.raises(DataError, match=message):
            strict.risk(rows)
        with pytest.raises(DataError, match="was not in the training data"):
            strict.risk({**good, **bad})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": ("age", "age")}, "a pair needs two features, not 'age' twice"),
        ({"scores": SCORES[:4]}, "the scores of the pair 'age × job' must be 5 rows of 4 numbers"),
        ({"weights": (*ONES[:4], (1.0,))}, "the weights of the pair 'age × job' must be 5 rows of 4 numbers"),
        ({"positives": ()}, "the positives of the pair"),
        ({"scores": (*SCORES[:4], (0.0, math.nan, 0.0, 0.0))}, "must be within 1e.100"),
        ({"scores": (*SCORES[:4], (0.0, math.inf, 0.0, 0.0))}, "must be within 1e.100"),
    ],
)
def test_impossible_pairs_are_refused(change, message):
    with pytest.raises(ModelFileError, match=message):
        pair(**change)


def test_impossible_parts_are_refused():
    with pytest.raises(ModelFileError, match="has the pair 'job × age' twice"):
        part(pairs=(pair(), flipped()))
    with pytest.raises(ModelFileError, match="two terms of part 'all' have the same name"):
        part(shapes={"age × job": part().shapes["debt"]})
    with pytest.raises(ModelFileError, match="part 'all' uses 'wage', which the schema does not know"):
        form(pairs=(pair(features=("age", "wage")),))
    with pytest.raises(ModelFileError, match="'age × debt' needs levels of a continuous feature for 'debt'"):
        form(pairs=(pair(features=("age", "debt")),))


def test_a_form_without_pairs_is_written_as_before_there_were_any():
    text = msgspec.json.encode(part(pairs=()))
    assert "pairs" not in json.loads(text)
    assert form_hash(form(pairs=())) == hashlib.sha256(msgspec.json.encode(form(pairs=()))).hexdigest()
    assert form_hash(form(pairs=())) != form_hash(form())


def test_a_file_keeps_pairs_and_its_hash_covers_them(tmp_path):
    path = tmp_path / "model.json"
    write_model(path, form())
    content = read_model(path)
    assert content.form == form()
    path.write_text(path.read_text(encoding="utf-8").replace("0.55", "0.56", 1), encoding="utf-8")
    with pytest.raises(ModelFileError, match="changed after it was written"):
        read_model(path)
