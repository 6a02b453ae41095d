"""Cross validation by subtraction gives the models of plain refits: the same levels, scores and risks."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

import plainrisk as pr
from plainrisk import cross_validate
from plainrisk.errors import DataError, PlainriskWarning, StoppedEarly
from plainrisk.models.cross_validation import deal_folds
from plainrisk.models.fold_bins import fold_edges

FAST = [
    *("ARM1", "LinARM1", "DirectARM1", "ARM2", "LinARM2", "DirectARM2"),
    *("MixARM1", "MixLinARM1", "MixDirectARM1"),
]


def rows_of(X, index):
    return X[index] if isinstance(X, pl.DataFrame | np.ndarray) else X.iloc[index]


def assert_equals_refits(estimator, X, y, found):
    """Compare every fold's form and held-out risks with those of a fit on the rows outside it."""
    for k, model in enumerate(found.models):
        outside, inside = np.flatnonzero(found.fold_of != k), np.flatnonzero(found.fold_of == k)
        plain = clone(estimator).fit(rows_of(X, outside), y[outside])
        np.testing.assert_allclose(found.risk[inside], plain.predict_proba(rows_of(X, inside))[:, 1], rtol=0, atol=1e-9)
        assert_same_form(model.form_, plain.form_)
        ours, theirs = model.fit_record_, plain.fit_record_
        assert (ours.estimator, ours.parameters) == (theirs.estimator, theirs.parameters)
        assert (ours.rows, ours.base_rate) == (theirs.rows, theirs.base_rate)
        # A pool that adds up to 1 but for rounding is clipped or not by the last digit.
        assert ours.clipped == pytest.approx(theirs.clipped, abs=2 / ours.rows)
        np.testing.assert_allclose(ours.objective, theirs.objective, rtol=1e-9)


def assert_same_form(ours, theirs):
    assert (ours.schema, ours.columns, ours.classes) == (theirs.schema, theirs.columns, theirs.classes)
    assert [p.name for p in ours.parts] == [p.name for p in theirs.parts]
    assert type(ours.pool) is type(theirs.pool)
    for attribute in ("intercept", "weights"):
        np.testing.assert_allclose(getattr(ours.pool, attribute, 0), getattr(theirs.pool, attribute, 0), atol=1e-8)
    for a, b in zip(ours.parts, theirs.parts, strict=True):
        assert (a.link, list(a.shapes)) == (b.link, list(b.shapes))
        assert a.intercept == pytest.approx(b.intercept, abs=1e-9)
        for name, shape in a.shapes.items():
            other = b.shapes[name]
            assert (shape.levels, shape.weights, shape.positives) == (other.levels, other.weights, other.positives)
            np.testing.assert_allclose(shape.scores, other.scores, rtol=0, atol=1e-9)


@pytest.fixture(scope="module")
def credit():
    return pr.datasets.make_credit(1500, seed=3, n_features=8)


@pytest.mark.parametrize("name", FAST)
@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_equals_refits(credit, name):
    estimator = pr.make_classifier(name, credit.schema)
    found = cross_validate(estimator, credit.frame, credit.target, folds=4, seed=1)
    assert (found.how, found.refitted) == ("subtraction", ())
    assert_equals_refits(estimator, credit.frame, credit.target, found)


@pytest.mark.parametrize("name", ["ARM1", "DirectARM1", "MixARM1", "MixDirectARM1", "DirectARM2"])
@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_equals_refits_on_many_rows(name):
    """So many that threads share the work, and that neither cells nor pairs of features are few."""
    rows = pr.datasets.make_credit(66_000, seed=5, n_features=14)
    estimator = pr.make_classifier(name, rows.schema)
    found = cross_validate(estimator, rows.frame, rows.target, folds=2)
    assert (found.how, found.refitted) == ("subtraction", ())
    assert_equals_refits(estimator, rows.frame, rows.target, found)


@pytest.mark.parametrize("name", ["MixARM1", "MixDirectARM1", "ARM2"])
@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_threads_change_nothing(credit, monkeypatch, name):
    """One fits what another coded, in whatever order they come."""
    estimator = pr.make_classifier(name, credit.schema)
    found = []
    for threads, few in (("1", 1 << 16), ("2", 1), ("5", 1)):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        monkeypatch.setattr("plainrisk.threads.MANY_ROWS", few)
        folds = cross_validate(estimator, credit.frame, credit.target, folds=4)
        found.append((folds.risk.tobytes(), [m.form_ for m in folds.models]))
        found[-1] += (clone(estimator).fit(credit.frame, credit.target).form_,)
    assert found[0] == found[1] == found[2]


def test_an_error_in_a_thread_ends_it(credit, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setattr("plainrisk.threads.MANY_ROWS", 1)
    frame = credit.frame.with_columns(income=pl.lit(1e39))
    with pytest.raises(DataError, match="'income': a value is too large for float32"):
        cross_validate(pr.make_classifier("MixARM1", credit.schema), frame, credit.target, folds=3)


def test_an_error_in_a_fit_comes_after_those_in_the_data(credit, monkeypatch):
    monkeypatch.setattr("plainrisk.threads.MANY_ROWS", 1)
    experts = {name: pr.AdditiveRiskModel(ridge=-1.0) for name in credit.schema.subscales}
    mixture = pr.SubscaleMixture(experts, credit.schema)
    for threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        with pytest.raises(DataError, match="ridge"):
            cross_validate(mixture, credit.frame, credit.target, folds=3)
        frame = credit.frame.with_columns(income=pl.lit(1e39))
        with pytest.raises(DataError, match="'income': a value is too large"):
            cross_validate(mixture, frame, credit.target, folds=3)


def test_a_number_inside_a_fold_may_be_next_to_its_edge():
    """Rounded to float32 it would be the edge itself, and so on the other side of it."""
    step = 2.0**-22
    x = np.tile([1.0, 1.0, 1.0 + step, 1.0 + step], 30)
    y, fold = np.tile([0, 0, 1, 1], 30), np.arange(120) % 3
    y[::7] = 1 - y[::7]
    x[np.flatnonzero(fold == 0)[0]] = 1.0 + step / 2 + 1e-12
    frame = pl.DataFrame({"x": x})
    estimator = pr.AdditiveRiskModel(pr.Schema(features={"x": {}}))
    found = cross_validate(estimator, frame, y, folds=fold)
    assert found.how == "subtraction"
    assert_equals_refits(estimator, frame, y, found)
    assert found.models[0].form_.parts[0].shapes["x"].levels.edges == (1.0 + step / 2,)


@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_more_folds_than_a_byte_can_count(credit):
    estimator = pr.make_classifier("MixDirectARM1", credit.schema)
    fold = np.arange(len(credit.target)) % 300
    found = cross_validate(estimator, credit.frame, credit.target, folds=fold)
    assert (found.how, found.fold_of.dtype, found.fold_of.tolist()) == ("subtraction", np.uint16, fold.tolist())
    for k in (0, 255, 256, 299):
        plain = clone(estimator).fit(credit.frame[np.flatnonzero(fold != k)], credit.target[fold != k])
        expected = plain.predict_proba(credit.frame[np.flatnonzero(fold == k)])[:, 1]
        np.testing.assert_allclose(found.risk[fold == k], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["ARM1", "DirectARM1", "MixARM1", "ARM2"])
@pytest.mark.parametrize("data", ["german", "heloc", "taiwan"])
@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_equals_refits_on_real_rows(data, name, data_folder, monkeypatch):
    monkeypatch.setenv("PLAINRISK_DATA", str(data_folder))
    try:
        rows = pr.datasets.load(data)
    except DataError as error:
        pytest.skip(str(error))
    estimator = pr.make_classifier(name, rows.schema)
    found = cross_validate(estimator, rows.frame, rows.target, folds=3)
    assert found.how == "subtraction"
    assert_equals_refits(estimator, rows.frame, rows.target, found)


@pytest.mark.parametrize(
    "settings",
    [
        {"penalty": "steps"},
        {"criterion": "entropy"},
        {"criterion": "quantile", "max_bins": 9},
        {"min_bin_rows": 60},
        {"ridge": 0.01, "max_bins": 3},
    ],
    ids=str,
)
@pytest.mark.parametrize("link", ["logistic", "linear"])
@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_equals_refits_with_other_settings(credit, settings, link):
    estimator = pr.AdditiveRiskModel(credit.schema, link=link, **settings)
    found = cross_validate(estimator, credit.frame, credit.target, folds=3)
    assert found.how == "subtraction"
    assert_equals_refits(estimator, credit.frame, credit.target, found)


@st.composite
def small_tables(draw):
    n = draw(st.integers(30, 60))

    def column(elements):
        return draw(st.lists(elements, min_size=n, max_size=n))

    frame = pl.DataFrame(
        {
            "tied": column(st.sampled_from([-9.0, -1.0, 0.0, 1.0, 2.0, 3.0, None])),
            "close": [v * 6e-8 for v in column(st.integers(0, 12))],
            "free": column(st.floats(-2, 2, width=32)),
            "word": column(st.sampled_from(["a", "b", "c", "rare", "other", None])),
            "rank": column(st.sampled_from(["1", "2", "10"])),
        },
        schema={"tied": pl.Float64, "close": pl.Float64, "free": pl.Float64, "word": pl.String, "rank": pl.String},
    )
    y = np.array([0, 1, 0, 1, 0, 1, *column(st.integers(0, 1))[6:]])
    return frame, y, np.array([0, 0, 1, 1, 2, 2, *column(st.integers(0, 2))[6:]])


SCHEMA = pr.Schema(
    features={
        "tied": pr.Feature(kind="continuous", direction="increasing", special_values=[-9], lower_bound=0),
        "close": pr.Feature(kind="continuous"),
        "free": pr.Feature(kind="continuous", direction="decreasing"),
        "word": pr.Feature(kind="categorical", special_values=["other"]),
        "rank": pr.Feature(kind="categorical", direction="increasing"),
    },
    subscales={"One": ("tied", "word"), "Two": ("close", "free", "rank")},
)


@settings(max_examples=25)
@given(small_tables(), st.sampled_from(["ARM1", "DirectARM1", "MixARM1", "DirectARM2"]))
@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_equals_refits_on_any_table(table, name):
    frame, y, folds = table
    # A ridge that leaves one clear optimum, however few rows a level has.
    estimator = pr.make_classifier(name, SCHEMA, ridge=0.01)
    found = cross_validate(estimator, frame, y, folds=folds)
    assert found.how == "subtraction"
    assert_equals_refits(estimator, frame, y, found)


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.integers(0, 9), st.floats(0, 1, width=32), st.integers(0, 30).map(lambda v: v * 4e-8)),
            st.integers(0, 1),
            st.integers(0, 2),
        ),
        min_size=6,
        max_size=80,
    ),
    st.integers(2, 7),
)
def test_edges_are_those_of_a_tree_on_the_rows_outside_the_fold(rows, max_bins):
    x, y, fold = (np.array(column) for column in zip(*rows, strict=True))
    x = x.astype(np.float64)
    for k, edges in enumerate(fold_edges(x, y, fold, 3, max_bins=max_bins)):
        outside = fold != k
        if len(np.unique(y[outside])) < 2:
            assert len(edges) == 0
            continue
        tree = DecisionTreeClassifier(max_leaf_nodes=max_bins).fit(x[outside, None], y[outside]).tree_
        assert edges.tolist() == sorted(tree.threshold[tree.children_left >= 0].tolist())


@pytest.mark.parametrize("n", [3000, 40_000])
def test_edges_of_many_distinct_values(n):
    rng = np.random.default_rng(n)
    x = rng.gamma(2.0, size=n).astype(np.float32).astype(np.float64)
    y = (rng.random(n) < 0.1 + 0.3 * (x > 1.5) * (x < 4)).astype(np.uint8)
    fold = rng.integers(0, 5, n)
    for k, edges in enumerate(fold_edges(x, y, fold, 5, max_bins=6)):
        tree = DecisionTreeClassifier(max_leaf_nodes=6).fit(x[fold != k, None], y[fold != k]).tree_
        assert edges.tolist() == sorted(tree.threshold[tree.children_left >= 0].tolist())


# ---- folds


def test_folds_are_stratified_and_shuffled_by_the_seed(credit):
    found = cross_validate(pr.AdditiveRiskModel(credit.schema), credit.frame, credit.target, folds=4, seed=7)
    splits = StratifiedKFold(4, shuffle=True, random_state=7).split(credit.target, credit.target)
    for k, (_, inside) in enumerate(splits):
        assert np.flatnonzero(found.fold_of == k).tolist() == inside.tolist()


def test_folds_may_be_given(credit):
    folds = np.where(np.arange(len(credit.target)) % 3 == 0, "new", "old")
    found = cross_validate(pr.AdditiveRiskModel(credit.schema), credit.frame, credit.target, folds=folds)
    assert found.fold_of.tolist() == (folds == "old").astype(int).tolist()
    assert_equals_refits(pr.AdditiveRiskModel(credit.schema), credit.frame, credit.target, found)


@pytest.mark.parametrize(
    ("folds", "message"),
    [
        (1, "folds must be from 2 to"),
        (10**6, "the rows of the rarer outcome"),
        (np.zeros(1500), "got shape .1500,. with 1 distinct"),
        (np.arange(20), "the fold of each of the 1,500 rows"),
    ],
)
def test_impossible_folds(credit, folds, message):
    with pytest.raises(DataError, match=message):
        cross_validate(pr.AdditiveRiskModel(credit.schema), credit.frame, credit.target, folds=folds)


def test_a_fold_with_all_rows_of_an_outcome(credit):
    with pytest.raises(DataError, match="without fold 0 there is one outcome only"):
        cross_validate(pr.AdditiveRiskModel(credit.schema), credit.frame, credit.target, folds=credit.target)


def test_many_folds():
    y = np.tile([0, 1], 300)
    assert np.bincount(deal_folds(y, 300)).tolist() == [2] * 300


# ---- where subtraction does not apply


@pytest.mark.parametrize(
    "estimator",
    [
        pr.AdditiveRiskModel(ridge="cv", link="linear"),
        pr.AdditiveRiskModel(class_weight="balanced"),
        pr.Linearised(pr.AdditiveRiskModel(), pieces=3),
        pr.SubscaleMixture(weights="stacking"),
        pr.SubscaleMixture(LogisticRegression()),
        pr.NonnegativeLogisticRegression(),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_others_are_refitted(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    found = cross_validate(estimator, X, y, folds=3)
    assert (found.how, found.refitted) == ("refits", (0, 1, 2))
    assert_equals_refits(estimator, X, y, found)


def test_weights_are_taken_to_the_fits_and_scores(credit):
    weight = np.linspace(0.5, 2.0, len(credit.target))
    estimator = pr.AdditiveRiskModel(credit.schema)
    found = cross_validate(estimator, credit.frame, credit.target, folds=3, sample_weight=weight)
    outside, inside = found.fold_of != 0, found.fold_of == 0
    plain = clone(estimator).fit(credit.frame.filter(outside), credit.target[outside], weight[outside])
    assert found.risk[inside].tolist() == plain.predict_proba(credit.frame.filter(inside))[:, 1].tolist()
    wanted = roc_auc_score(credit.target[inside], found.risk[inside], sample_weight=weight[inside])
    assert (found.how, found.scores["auc"][0]) == ("refits", pytest.approx(wanted))


def test_any_classifier():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 2))
    y = np.where(X[:, 0] + rng.normal(size=200) > 0, "yes", "no")
    found = cross_validate(LogisticRegression(), X, y, folds=4)
    assert found.how == "refits"
    assert all(isinstance(model, LogisticRegression) for model in found.models)
    inside = found.fold_of == 2
    assert found.risk[inside].tolist() == found.models[2].predict_proba(X[inside])[:, 1].tolist()
    with pytest.raises(DataError, match="Pass y"):
        cross_validate(LogisticRegression(), X)


def test_without_a_finite_optimum_folds_are_refitted():
    X = np.arange(60.0)[:, None]
    y = (X[:, 0] > 30).astype(int)
    estimator = pr.AdditiveRiskModel(ridge=0.0)
    with pytest.warns(StoppedEarly, match="of the 3 folds"):
        found = cross_validate(estimator, X, y, folds=3)
    assert (found.how, found.refitted) == ("refits", (0, 1, 2))


def test_clipping_is_said_once(credit):
    estimator = pr.AdditiveRiskModel(credit.schema, link="linear")
    with pytest.warns(PlainriskWarning, match="the line is cut off at 0 or 1 for") as said:
        found = cross_validate(estimator, credit.frame, credit.target, folds=3)
    assert len(said) == 1
    worst = max(model.fit_record_.clipped for model in found.models)
    assert f"{worst:.0%}" in str(said[0].message)


def test_an_unseen_level_is_an_error_where_the_schema_says_so():
    schema = pr.Schema(features={"word": pr.Feature(kind="categorical", unseen="error")})
    frame = pl.DataFrame({"word": ["a"] * 20 + ["b"] * 20 + ["once"]})
    y = np.tile([0, 1], 21)[:41]
    with pytest.raises(DataError, match=r"Fold 3: .*'word'"):
        cross_validate(pr.AdditiveRiskModel(schema), frame, y, folds=np.append(np.arange(40) // 2 % 2, 2))


# ---- what comes back


def test_scores_are_those_of_the_held_out_rows(credit):
    found = cross_validate(pr.AdditiveRiskModel(credit.schema), credit.frame, credit.target, folds=4)
    wanted = [roc_auc_score(credit.target[found.fold_of == k], found.risk[found.fold_of == k]) for k in range(4)]
    np.testing.assert_allclose(found.scores["auc"], wanted)
    assert found.mean["auc"] == pytest.approx(np.mean(wanted))
    assert found.sd["auc"] == pytest.approx(np.std(wanted, ddof=1))
    assert f"auc      {np.mean(wanted):.4f} ± {np.std(wanted, ddof=1):.4f}" in found.summary().splitlines()
    assert found.seconds > 0
    frame = found.to_frame(credit.frame)
    assert frame.columns == ["fold", "auc", "log_loss", "brier", "ece"]
    assert frame["auc"].to_list() == found.scores["auc"].tolist()


def test_the_target_may_be_a_column(credit):
    frame = credit.frame.with_columns(pl.Series("bad", credit.target))
    schema = pr.Schema(features=credit.schema.features, subscales=credit.schema.subscales, target="bad")
    found = cross_validate(pr.SubscaleMixture(schema=schema), frame, folds=3)
    assert_equals_refits(pr.SubscaleMixture(schema=schema), frame, credit.target, found)


@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_pandas_and_named_outcomes(credit):
    frame = credit.frame.to_pandas()
    y = np.where(credit.target == 1, "bad", "good")
    estimator = pr.AdditiveRiskModel(pr.Schema(features=credit.schema.features, positive="bad"), link="linear")
    found = cross_validate(estimator, frame, y, folds=3)
    assert found.models[0].form_.classes == ("good", "bad")
    assert_equals_refits(estimator, frame, y, found)
