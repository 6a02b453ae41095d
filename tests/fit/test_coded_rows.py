"""Coded rows: levels, codes and counts are those of every feature read by itself, in every kind of table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import plainrisk as pr
from plainrisk.bins import LevelFinder, level_contrast
from plainrisk.errors import DataError, PlainriskWarning, SchemaError
from plainrisk.fit.basis import Basis, centered, table_part
from plainrisk.fit.coding import code_rows, learn_levels, scores_by_code
from plainrisk.fit.training import read_training
from plainrisk.form import Bins, Categories, Logistic
from plainrisk.schema import Feature, Schema
from plainrisk.solve import LogisticLoss, minimize

HALF = 3.0 + 2.0**-23  # halfway between two float32 that a bin's edge may separate
FEATURES = {
    "plain": Feature(),
    "coded": Feature(special_values=(-9, -8), lower_bound=0.0),
    "bounded": Feature(lower_bound=0.1),
    "edges": Feature(edges=(0.0, 1.5)),
    "many": Feature(max_bins=20),
    "listed": Feature(kind="categorical", categories=(0, 1, 2)),
    "found": Feature(kind="categorical"),
}


def matrix_of(rng, n):
    x = rng.normal(1.0, 1.0, (n, len(FEATURES)))
    x[:, 1] = rng.choice([-9.0, -8.0, -1.0, np.nan, 0.0, 1.0, 2.5, 4.0], n)
    x[:, 2] = np.abs(x[:, 2])
    x[:, 5:] = rng.integers(0, 4, (n, 2))
    x[rng.random(n) < 0.1, 0] = np.nan
    x[rng.random(n) < 0.1, 5] = np.nan
    return x, (rng.random(n) < 0.1 + 0.2 * (x[:, 4] > 1) + 0.2 * (x[:, 2] > 1)).astype(int)


def by_feature(training, **options):
    """Levels, codes and counts of one feature after the other, from the rows as they are."""
    target, weight = training.target, training.weight
    mass = np.ones(len(target)) if weight is None else weight
    for name, feature in training.schema.features.items():
        finder = LevelFinder(name, feature, **options)
        finder.add(training.frame, target, weight)
        levels = finder.finish()
        codes = levels.codes(training.frame, name)
        total = [mass[codes == k].sum() for k in range(len(levels))]
        positive = [mass[(codes == k) & (target == 1)].sum() for k in range(len(levels))]
        yield levels, codes, total, positive


def codes_of(coded):
    """The levels of every row, feature by feature, read back from the joint codes."""
    blocks = list(coded.rows)
    out = {}
    for k, joint in enumerate(coded.joints):
        code = np.concatenate([block.codes[k] for block in blocks])
        out |= {j: levels[code] for j, levels in zip(joint.features, joint.levels, strict=True)}
    return [out[j] for j in range(len(coded.names))]


def check(coded, expected):
    found = zip(coded.levels, codes_of(coded), coded.weights, coded.positives, strict=True)
    for (levels, codes, weights, positives), (own, own_codes, total, positive) in zip(found, expected, strict=True):
        assert levels == own
        np.testing.assert_array_equal(codes, own_codes)
        np.testing.assert_allclose(weights, total, rtol=1e-12)
        np.testing.assert_allclose(positives, positive, rtol=1e-12)


TABLES = {
    "pandas": lambda x: pd.DataFrame(x, columns=list(FEATURES)),
    "pandas, float32": lambda x: pd.DataFrame(x.astype(np.float32), columns=list(FEATURES)),
    "polars": lambda x: pl.DataFrame(x, schema=list(FEATURES), nan_to_null=True),
    "columns": lambda x: dict(zip(FEATURES, np.asfortranarray(x).T, strict=True)),
    "big endian": lambda x: dict(zip(FEATURES, x.astype(">f8").T, strict=True)),
    "whole numbers": lambda x: pl.DataFrame(np.nan_to_num(x * 4).astype(np.int32), schema=list(FEATURES)),
}


@pytest.mark.parametrize("criterion", ["gini", "entropy", "quantile"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("table", TABLES)
def test_rows_coded_together_are_rows_coded_by_feature(rng, table, weighted, criterion):
    x, y = matrix_of(rng, 700)
    weight = rng.integers(1, 4, 700) / 2 if weighted else None
    training = read_training(TABLES[table](x), y, Schema(features=FEATURES), weight, None)
    options = {"max_bins": 4, "criterion": criterion, "min_rows": 3}
    coded = code_rows(training, learn_levels(training, **options))
    check(coded, by_feature(training, **options))
    assert sum(len(levels.edges) for levels in coded.levels if isinstance(levels, Bins)) > 10
    assert coded.names == tuple(FEATURES)


def test_a_matrix_without_a_schema(rng):
    x, y = matrix_of(rng, 300)
    for rows in (x, np.asfortranarray(x), x.astype(np.float32)):
        training = read_training(rows, y, None, None, None)
        check(code_rows(training, learn_levels(training)), by_feature(training))


@pytest.mark.parametrize("threads", ["1", "3"])
def test_threads_change_nothing(rng, monkeypatch, threads):
    x, y = matrix_of(rng, 500)
    training = read_training(TABLES["pandas"](x), y, Schema(features=FEATURES), None, None)
    expected = list(by_feature(training, max_bins=5))
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    monkeypatch.setattr("plainrisk.threads.MANY_ROWS", 1)
    check(code_rows(training, learn_levels(training)), expected)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([HALF, -HALF, 3.0, 3.0 + 2**-22, 1.0, -9.0, 2.0**25 + 3]), st.booleans()), min_size=4
    )
)
def test_a_number_that_is_rounded_stays_on_its_side_of_an_edge(rows):
    """An edge may lie where float32 has no number; numbers halfway between two are compared as they are."""
    x, y = {"u": [v for v, _ in rows], "v": [1.0] * len(rows)}, np.array([b for _, b in rows]).astype(int)
    assume(len(set(y)) == 2)
    features = {"u": Feature(special_values=(-9,)), "v": Feature()}
    training = read_training(x, y, Schema(features=features), None, None)
    check(code_rows(training, learn_levels(training)), by_feature(training))


def test_numbers_that_single_precision_merges_stay_apart():
    low, high = np.float32(3 + 2**-22), np.float32(3 + 2**-21)
    between = float(low) / 2 + float(high) / 2
    assert np.float32(between) == high
    x = np.array([low, low, low, high, high, between], np.float64)[:, None]
    training = read_training(x, [0, 0, 0, 1, 1, 1], None, None, None)
    coded = code_rows(training, learn_levels(training, max_bins=2))
    assert float(low) <= coded.levels[0].edges[0] < between
    assert codes_of(coded)[0].tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("offset", [0.0, 2e8, 1e9, 1e15])
@pytest.mark.parametrize("criterion", ["gini", "quantile"])
def test_an_offset_loses_nothing(rng, offset, criterion):
    x, y = rng.integers(0, 400, 3000), rng.integers(0, 2, 3000)
    training = read_training((x + offset)[:, None], y, None, None, None)
    plain = read_training(x.astype(float)[:, None], y, None, None, None)
    settings = {"max_bins": 5, "criterion": criterion}
    found = codes_of(code_rows(training, learn_levels(training, **settings)))[0]
    assert found.tolist() == codes_of(code_rows(plain, learn_levels(plain, **settings)))[0].tolist()


def test_values_that_no_tree_separates_are_told(rng):
    x = (np.arange(60) * 1e-10)[:, None]
    training = read_training(x, np.arange(60) // 30, None, None, None)
    with pytest.warns(PlainriskWarning, match=r"'x0' all lie within 1e-7"):
        learn_levels(training)


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize(
    ("number", "message"),
    [
        (np.inf, r"feature 'x0' holds infinity \(row 5\)"),
        (-np.inf, r"feature 'x0' holds infinity \(row 5\)"),
    ],
)
def test_numbers_that_cannot_be_used_are_named(rng, number, message, columns):
    x = rng.normal(size=(50, columns))
    x[5, 0] = x[3, -1] = number
    x[3, 0] = 0.0
    training = read_training(x, np.arange(50) % 2, None, None, None)
    with pytest.raises(DataError, match=message):
        learn_levels(training)


def test_given_edges_take_large_numbers_but_not_infinity():
    schema = Schema(features={"u": Feature(edges=(0.0, 1.5))})

    def code(values):
        training = read_training({"u": values}, [0, 1, 0, 1], schema, None, None)
        return codes_of(code_rows(training, learn_levels(training)))[0].tolist()

    assert code([1.0, 1e39, -1e39, 2.0]) == [1, 2, 0, 2]
    with pytest.raises(SchemaError, match=r"feature 'u' holds infinity \(row 1\)"):
        code([1.0, np.inf, -1e39, 2.0])


def test_infinity_is_an_unseen_category():
    schema = Schema(features={"u": Feature(kind="categorical", categories=(0, 1))})
    training = read_training({"u": [0.0, np.inf, 1.0, np.nan]}, [0, 1, 0, 1], schema, None, None)
    coded = code_rows(training, learn_levels(training))
    assert coded.levels[0] == Categories(("0", "1"), 2)
    assert codes_of(coded)[0].tolist() == [0, 3, 1, 2]


# ---- from codes to scores


@pytest.fixture
def basis(rng):
    x, y = matrix_of(rng, 700)
    training = read_training(TABLES["pandas"](x), y, Schema(features=FEATURES), rng.random(700), None)
    coded = code_rows(training, learn_levels(training, max_bins=3))
    signs = [1, -1, 0, 1, 0, 0, 0]
    contrasts = [
        level_contrast(w, lv.n_ordered, s) for w, lv, s in zip(coded.weights, coded.levels, signs, strict=True)
    ]
    return training, Basis(coded, {}, tuple(contrasts))


def solved(basis):
    return minimize(LogisticLoss(basis.layout, basis.coded.rows), ridge=0.01, lower=basis.lower)


def scores_of_rows(coded, intercept, tables):
    """The scores of rows, added up from the tables of their joint codes."""
    blocks = list(coded.rows)
    return intercept + sum(
        table[np.concatenate([block.codes[k] for block in blocks])] for k, table in enumerate(tables)
    )


def test_scores_by_level_add_up_to_scores_by_row(basis):
    training, basis = basis
    solution = solved(basis)
    scores = basis.level_scores(solution.coefficients)
    wanted = solution.intercept + sum(s[c] for s, c in zip(scores, codes_of(basis.coded), strict=True))
    for tables in (basis.layout.tables(solution.coefficients), scores_by_code(basis.coded, scores)):
        found = scores_of_rows(basis.coded, solution.intercept, tables)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)
    assert len(wanted) == training.n_rows


def test_the_part_gives_the_scores_of_the_coefficients_and_every_shape_is_centered(basis):
    training, basis = basis
    solution = solved(basis)
    part = table_part(basis, solution.intercept, solution.coefficients, Logistic(), training.schema)
    form = pr.form.RiskForm(
        schema=training.schema, columns=training.names, classes=(0, 1), parts=(part,), pool=pr.form.Alone()
    )
    wanted = scores_of_rows(basis.coded, solution.intercept, basis.layout.tables(solution.coefficients))
    np.testing.assert_allclose(form.score(training.frame), wanted, rtol=0, atol=1e-12)
    for shape in part.shapes.values():
        assert np.dot(shape.scores, shape.weights) == pytest.approx(0.0, abs=1e-9)
        assert sum(shape.weights) == pytest.approx(training.total)


def test_cells_are_the_distinct_rows(rng):
    n = 5000
    X = {"a": rng.choice(["x", "y", "z"], n), "b": rng.integers(0, 3, n).astype(float)}
    y, weight = rng.integers(0, 2, n), rng.integers(1, 4, n) / 2
    training = read_training(X, y, None, weight, None)
    coded = code_rows(training, learn_levels(training))
    contrasts = tuple(level_contrast(w, lv.n_ordered, 0) for w, lv in zip(coded.weights, coded.levels, strict=True))
    basis = Basis(coded, {}, contrasts)
    assert basis.rows.totals[0] == 9
    assert basis.rows.totals[1:] == pytest.approx((weight.sum(), (weight * y).sum()))
    point = rng.normal(size=1 + basis.layout.n_coefficients)
    values = [LogisticLoss(basis.layout, rows).value_and_gradient(point) for rows in (coded.rows, basis.rows)]
    assert values[0][0] == pytest.approx(values[1][0], rel=1e-12)
    np.testing.assert_allclose(values[0][1], values[1][1], rtol=0, atol=1e-12)


# ---- centering


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-9, 9), st.sampled_from([0.0, 1.0, 0.3, 7.0])), min_size=1, max_size=9),
    st.integers(0, 9),
)
def test_centered_scores_have_mean_0_and_keep_their_order(levels, n_ordered):
    scores, weights = (np.array(column) for column in zip(*levels, strict=True))
    assume(weights.any())
    n_ordered = min(n_ordered, len(scores))
    scores[:n_ordered] = np.sort(scores[:n_ordered])
    shifted, mean = centered(scores, weights, n_ordered)
    assert mean == pytest.approx(np.average(scores, weights=weights), abs=1e-12)
    assert np.average(shifted, weights=weights) == pytest.approx(0.0, abs=1e-12)
    assert (np.diff(shifted[:n_ordered]) >= 0).all(), "exactly monotone"
    unseen = np.arange(len(scores)) >= (n_ordered if weights[:n_ordered].any() else 0)
    np.testing.assert_array_equal(np.array(shifted)[unseen & (weights == 0)], 0.0)
