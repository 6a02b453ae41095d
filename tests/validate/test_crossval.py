"""Cross validation gives the models and the numbers of a loop over scikit-learn's folds."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.model_selection import GroupKFold, KFold, RepeatedStratifiedKFold, StratifiedKFold, TimeSeriesSplit

import plainrisk as pr
from plainrisk import cross_validate
from plainrisk.errors import DataError, PlainriskWarning, StoppedEarly
from plainrisk.fit.splits import splits_of

quiet = pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")


@pytest.fixture(scope="module")
def credit():
    return pr.datasets.make_credit(900, seed=3, n_features=8)


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 2))
    return X, np.where(X[:, 0] + rng.normal(size=200) > 0, "yes", "no")


def rows_of(X, index):
    return X[index] if isinstance(X, pl.DataFrame | np.ndarray) else X.iloc[index]


def assert_equals_refits(estimator, X, y, found, splits, weight=None):
    """Compare every fold's risks and scores with those of a fit on its training rows."""
    for k, (fold, (train, test)) in enumerate(zip(found.folds, splits, strict=True)):
        weights = {} if weight is None else {"sample_weight": weight[train]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PlainriskWarning)
            plain = clone(estimator).fit(rows_of(X, train), y[train], **weights)
        positive = getattr(plain, "positive_", plain.classes_[1])
        risk = plain.predict_proba(rows_of(X, test))[:, list(plain.classes_).index(positive)]
        np.testing.assert_array_equal(fold.test, test)
        np.testing.assert_allclose(fold.risk, risk, rtol=0, atol=1e-12)
        outcome, own = y[test] == positive, None if weight is None else weight[test]
        assert found.scores["auc"][k] == pytest.approx(roc_auc_score(outcome, risk, sample_weight=own), abs=1e-12)
        # Infinite where a model is certain and wrong.
        assert found.scores["log_loss"][k] == pytest.approx(pr.metrics.log_loss(outcome, risk, own), rel=1e-9)
        wanted = brier_score_loss(outcome, risk, sample_weight=own)
        assert found.scores["brier"][k] == pytest.approx(wanted, rel=1e-12)


@quiet
@pytest.mark.parametrize("name", ["ARM1", "LinARM1", "BandARM1", "NNLR", "ARM2", "MixARM1", "DirectARM1"])
def test_a_number_of_folds_is_a_loop_over_scikit_learn_s(credit, name):
    estimator = pr.make_classifier(name, credit.schema)
    found = cross_validate(estimator, credit.frame, credit.target, cv=4, seed=1)
    splits = StratifiedKFold(4, shuffle=True, random_state=1).split(credit.target, credit.target)
    assert_equals_refits(estimator, credit.frame, credit.target, found, splits)
    assert not hasattr(estimator, "form_"), "the given model is cloned, not fitted"


@quiet
@pytest.mark.parametrize("name", ["ARM1", "CalibratedMixARM1", "MonoXGB"])
def test_the_models_of_the_folds_are_whole_models(credit, name):
    """Their forms and their records are those of a fit on the same rows."""
    if "XGB" in name:
        pytest.importorskip("xgboost")
    estimator = pr.make_classifier(name, credit.schema)
    train, test = np.arange(500), np.arange(500, 900)
    (model,) = cross_validate(estimator, credit.frame, credit.target, cv=[(train, test)]).models
    plain = clone(estimator).fit(credit.frame[train], credit.target[train])
    assert model.form_ == plain.form_
    assert model.fit_record_ == plain.fit_record_
    assert model.n_features_in_ == plain.n_features_in_
    assert model.feature_names_in_.tolist() == plain.feature_names_in_.tolist()


@pytest.mark.parametrize(
    "cv",
    [
        KFold(3, shuffle=True, random_state=2),
        GroupKFold(3),
        TimeSeriesSplit(3),
        RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0),
    ],
    ids=lambda cv: type(cv).__name__,
)
def test_any_splitter(credit, cv):
    groups = np.arange(900) // 7 % 20 if isinstance(cv, GroupKFold) else None
    estimator = pr.AdditiveRiskModel(credit.schema)
    found = cross_validate(estimator, credit.frame, credit.target, cv=cv, groups=groups)
    splits = list(cv.split(credit.frame, credit.target, groups))
    assert_equals_refits(estimator, credit.frame, credit.target, found, splits)
    held_out = np.zeros(900)
    np.add.at(held_out, np.concatenate([test for _, test in splits]), 1)
    np.testing.assert_array_equal(np.isnan(found.risk), held_out == 0)
    if held_out.max() == 2:  # the mean of both repetitions
        each = [np.concatenate([f.risk[f.test == 5] for f in found.folds])]
        assert found.risk[5] == pytest.approx(np.mean(each), rel=1e-12)


def test_pairs_of_rows(credit):
    old, new = np.arange(900) < 600, np.arange(900) >= 600
    estimator = pr.AdditiveRiskModel(credit.schema)
    found = cross_validate(estimator, credit.frame, credit.target, cv=[(old, new)])
    split = [(np.flatnonzero(old), np.flatnonzero(new))]
    assert_equals_refits(estimator, credit.frame, credit.target, found, split)
    assert np.isnan(found.sd["auc"]), "one fold has no spread"
    assert found.pooled["auc"] == pytest.approx(found.mean["auc"])


def test_groups_stay_together(credit):
    groups = np.arange(900) // 7 % 40
    found = cross_validate(pr.AdditiveRiskModel(credit.schema), credit.frame, credit.target, cv=3, groups=groups)
    for fold in found.folds:
        outside = np.setdiff1d(np.arange(900), fold.test)
        assert not set(groups[fold.test]) & set(groups[outside])
    np.testing.assert_array_equal(np.sort(np.concatenate([f.test for f in found.folds])), np.arange(900))


@quiet
@pytest.mark.parametrize("link", ["logistic", "linear"])
def test_weights_are_taken_to_the_fits_and_scores(credit, link):
    weight = np.linspace(0.5, 2.0, 900)
    estimator = pr.AdditiveRiskModel(credit.schema, link=link)
    found = cross_validate(estimator, credit.frame, credit.target, cv=3, sample_weight=weight)
    splits = StratifiedKFold(3, shuffle=True, random_state=0).split(credit.target, credit.target)
    if link == "logistic":
        assert_equals_refits(estimator, credit.frame, credit.target, found, splits, weight)
    wanted = roc_auc_score(credit.target, found.risk, sample_weight=weight)
    assert found.pooled["auc"] == pytest.approx(wanted, abs=1e-12)


@quiet
def test_class_weights_are_for_the_fits_only(credit):
    estimator = pr.AdditiveRiskModel(credit.schema, class_weight={0: 1.0, 1: 5.0})
    found = cross_validate(estimator, credit.frame, credit.target, cv=3)
    splits = list(StratifiedKFold(3, shuffle=True, random_state=0).split(credit.target, credit.target))
    assert_equals_refits(estimator, credit.frame, credit.target, found, splits)
    assert found.pooled["brier"] == pytest.approx(brier_score_loss(credit.target, found.risk), rel=1e-9)


@quiet
def test_balanced_classes_are_those_of_the_rows_that_are_fitted(credit):
    """Folds may differ in their base rates, above all in time."""
    estimator = pr.AdditiveRiskModel(credit.schema, class_weight="balanced")
    order = np.argsort(credit.target, kind="stable")
    some = np.concatenate([order[:200], order[-100:]])
    rest = np.setdiff1d(np.arange(900), some)
    found = cross_validate(estimator, credit.frame, credit.target, cv=[(np.sort(some), rest)])
    assert_equals_refits(estimator, credit.frame, credit.target, found, [(np.sort(some), rest)])


@pytest.mark.parametrize(
    "estimator",
    [LogisticRegression(), RandomForestClassifier(n_estimators=5, random_state=0)],
    ids=lambda e: type(e).__name__,
)
def test_any_classifier(numbers, estimator):
    X, y = numbers
    found = cross_validate(estimator, X, y, cv=4)
    assert all(type(model) is type(estimator) for model in found.models)
    assert found.target.tolist() == (y == "yes").astype(int).tolist()
    splits = StratifiedKFold(4, shuffle=True, random_state=0).split(X, y)
    assert_equals_refits(estimator, X, y, found, splits)


def test_a_foreign_classifier_gets_weights_and_data_frames(credit):
    frame = credit.frame.select("income", "utilization").to_pandas().fillna(0.0)
    weight = np.linspace(0.5, 2.0, 900)
    found = cross_validate(LogisticRegression(), frame, credit.target, cv=3, sample_weight=weight)
    splits = StratifiedKFold(3, shuffle=True, random_state=0).split(frame, credit.target)
    assert_equals_refits(LogisticRegression(), frame, credit.target, found, splits, weight)
    assert found.models[0].feature_names_in_.tolist() == ["income", "utilization"]


@quiet
def test_a_foreign_classifier_inside_ours(credit):
    names = ["income", "utilization"]
    schema = pr.Schema(features={n: {} for n in names}, subscales={"one": names[:1], "two": names[1:]})
    frame = credit.frame.select(names).to_pandas().fillna(0.0)
    estimator = pr.SubscaleMixture(LogisticRegression(), schema)
    found = cross_validate(estimator, frame, credit.target, cv=3)
    splits = StratifiedKFold(3, shuffle=True, random_state=0).split(frame, credit.target)
    assert_equals_refits(estimator, frame, credit.target, found, splits)


# ---- errors and warnings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": 1}, "cv must be 2 folds or more, not 1"),
        ({"cv": 10**6}, "the rarer outcome has only"),
        ({"cv": "ten"}, "cv must be a number of folds"),
        ({"cv": []}, "cv yields no splits"),
        ({"sample_weight": np.arange(900.0)}, r"some sample_weight is 0\. Drop those rows first"),
        ({"sample_weight": np.zeros(900)}, "sample_weight is"),
        ({"sample_weight": np.ones(3)}, "1D array with 900 entries"),
    ],
)
def test_what_can_not_be_cross_validated_is_named(credit, options, message):
    with pytest.raises(DataError, match=message):
        cross_validate(pr.AdditiveRiskModel(credit.schema), credit.frame, credit.target, **options)


def test_one_outcome_in_the_rows_to_fit(credit):
    good, bad = np.flatnonzero(credit.target == 0), np.flatnonzero(credit.target == 1)
    model = pr.AdditiveRiskModel(credit.schema)
    with pytest.raises(DataError, match="Fold 1 of 1: the rows to fit have one outcome only"):
        cross_validate(model, credit.frame, credit.target, cv=[(good, bad)])
    with pytest.raises(DataError, match="only one class"):
        cross_validate(pr.AdditiveRiskModel(), credit.frame, np.zeros(900, int))


def test_no_outcome(numbers):
    with pytest.raises(DataError, match="requires y to be passed"):
        cross_validate(LogisticRegression(), numbers[0])


def test_rows_without_names_do_not_fit_a_schema(credit):
    rows = np.zeros((900, len(credit.schema.features)))
    with pytest.raises(DataError, match=r"no column names.*set_output\(transform=\"pandas\"\)"):
        cross_validate(pr.AdditiveRiskModel(credit.schema), rows, credit.target)


def test_an_unseen_level_is_an_error_where_the_schema_says_so():
    schema = pr.Schema(features={"word": pr.Feature(kind="categorical", unseen="error")})
    frame = pl.DataFrame({"word": ["a"] * 20 + ["b"] * 20 + ["once"]})
    y = np.tile([0, 1], 21)[:41]
    fold = np.append(np.arange(40) // 2 % 2, 2)
    cv = [(fold != k, fold == k) for k in range(3)]
    with pytest.raises(DataError, match=r"Fold 3 of 3: .*'word'"):
        cross_validate(pr.AdditiveRiskModel(schema), frame, y, cv=cv)


def test_a_fold_without_a_finite_optimum_is_told():
    X = np.arange(60.0)[:, None]
    with pytest.warns(StoppedEarly, match="no finite optimum"):
        found = cross_validate(pr.AdditiveRiskModel(ridge=0.0), X, (X[:, 0] > 30).astype(int), cv=3)
    assert np.isfinite(found.risk).all()


# ---- what comes back


def test_scores_are_those_of_the_held_out_rows(credit):
    found = cross_validate(pr.AdditiveRiskModel(credit.schema), credit.frame, credit.target, cv=4)
    wanted = [roc_auc_score(credit.target[fold.test], fold.risk) for fold in found.folds]
    np.testing.assert_allclose(found.scores["auc"], wanted)
    assert found.mean["auc"] == pytest.approx(np.mean(wanted))
    assert found.sd["auc"] == pytest.approx(np.std(wanted, ddof=1))
    assert found.pooled["auc"] == pytest.approx(roc_auc_score(credit.target, found.risk))
    line = f"auc      {np.mean(wanted):.4f} ± {np.std(wanted, ddof=1):.4f}, pooled {found.pooled['auc']:.4f}"
    assert line in found.summary().splitlines()
    assert all(fold.seconds > 0 for fold in found.folds)
    frame = found.to_frame(credit.frame)
    assert frame.columns == ["fold", "auc", "log_loss", "brier", "ece"]
    assert frame["auc"].to_list() == found.scores["auc"].tolist()
    assert type(found.to_frame(credit.frame.to_pandas())).__module__.startswith("pandas")


def test_held_out_risks_go_back_to_their_rows(credit):
    model, order = pr.AdditiveRiskModel(credit.schema), np.random.default_rng(0).permutation(900)
    X, y = credit.frame.to_pandas().iloc[order], pd.Series(credit.target).iloc[order]
    found = cross_validate(model, X, y, cv=3)
    frame = found.to_frame(rows=True)
    pd.testing.assert_index_equal(frame.index, X.index)
    np.testing.assert_array_equal(frame["risk"], found.risk)
    np.testing.assert_array_equal(X.join(frame).sort_index()["target"], credit.target)
    assert len(found.to_frame()) == 3
    assert isinstance(cross_validate(model, credit.frame, credit.target, cv=3).to_frame(rows=True), pl.DataFrame)


def test_a_foreign_model_sees_the_cells_of_a_row_together():
    """Columns that pandas keeps as objects are put beside others by position, whatever the labels."""
    n = 80
    X = pd.DataFrame(
        {"a": np.arange(n) % 2, "b": np.array(list(map(bytes, [[k % 2] for k in range(n)])), dtype=object)}
    )

    class Checked(LogisticRegression):
        def fit(self, X, y):
            self.check(X)
            return super().fit(X[["a"]], y)

        def predict_proba(self, X):
            self.check(X)
            return super().predict_proba(X[["a"]])

        def check(self, X):
            assert [cell[0] for cell in X["b"]] == list(X["a"])

    for labels in (np.random.default_rng(3).permutation(n), np.arange(n) // 5):
        found = cross_validate(Checked(), X.set_axis(labels), np.arange(n) // 2 % 2, cv=4)
        assert len(found.folds) == 4


def test_repr_is_short(credit):
    found = cross_validate(pr.AdditiveRiskModel(credit.schema), credit.frame, credit.target, cv=3)
    assert repr(found).splitlines()[0] == "CrossValidation: 3 folds, 900 rows"
    assert len(repr(found).splitlines()) == 5
    assert repr(found.folds[0]) == "Fold(300 held-out rows, AdditiveRiskModel)"


def test_progress_is_told_after_every_fold(credit):
    told = []
    model = pr.AdditiveRiskModel(credit.schema)
    cross_validate(model, credit.frame, credit.target, cv=3, progress=lambda done, of: told.append((done, of)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_the_target_may_be_a_column(credit):
    frame = credit.frame.with_columns(pl.Series("bad", credit.target))
    schema = pr.Schema(features=credit.schema.features, subscales=credit.schema.subscales, target="bad")
    found = cross_validate(pr.AdditiveRiskModel(schema), frame, cv=3)
    splits = StratifiedKFold(3, shuffle=True, random_state=0).split(credit.target, credit.target)
    assert_equals_refits(pr.AdditiveRiskModel(schema), frame, credit.target, found, splits)


def test_pandas_and_named_outcomes(credit):
    frame = credit.frame.to_pandas()
    y = np.where(credit.target == 1, "bad", "good")
    estimator = pr.AdditiveRiskModel(pr.Schema(features=credit.schema.features, positive="bad"))
    found = cross_validate(estimator, frame, y, cv=3)
    assert found.models[0].form_.classes == ("good", "bad")
    assert found.target.tolist() == credit.target.tolist()
    splits = StratifiedKFold(3, shuffle=True, random_state=0).split(frame, credit.target)
    assert_equals_refits(estimator, frame, y, found, splits)


@pytest.mark.parametrize("name", ["ARM1", "MixARM1"])
def test_threads_change_nothing(credit, monkeypatch, name):
    estimator = pr.make_classifier(name, credit.schema)
    found = []
    for threads, few in (("1", 1 << 16), ("2", 1), ("5", 1)):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        monkeypatch.setattr("plainrisk.threads.MANY_ROWS", few)
        folds = cross_validate(estimator, credit.frame, credit.target, cv=3)
        found.append((folds.risk.tobytes(), [m.form_ for m in folds.models]))
    assert found[0] == found[1] == found[2]


def test_what_free_levels_do_is_said_of_the_model_alone():
    credit = pr.datasets.make_credit(4000, 0)
    model = pr.AdditiveRiskModel(credit.schema)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", PlainriskWarning)
        cross_validate(model, credit.frame, credit.target, cv=3)
    assert not [one for one in said if "every measured level" in str(one.message)]
    rows = int((credit.frame["late_payments"] == -8).sum())
    with pytest.warns(PlainriskWarning, match=rf"'late_payments' = -8 \({rows} rows"):
        model.fit(credit.frame, credit.target)


def test_rows_that_no_fold_holds_out_are_told(credit):
    found = cross_validate(pr.AdditiveRiskModel(credit.schema), credit.frame, credit.target, cv=2, time=np.arange(900))
    assert repr(found).startswith("CrossValidation: 2 folds, 900 rows, 600 of them held out\n")


def test_splits_by_hand_have_no_groups_and_masks_are_whole():
    target = np.array([0, 1] * 10)
    by_hand = [(np.arange(10), np.arange(10, 20))]
    with pytest.raises(DataError, match="groups have no effect"):
        splits_of(target, by_hand, groups=np.arange(20))
    with pytest.raises(DataError, match="a mask must have one entry for each of the 20 rows, not 3"):
        splits_of(target, [(np.array([True, False, True]), np.arange(10, 20))])


def test_fewer_groups_than_folds_are_counted(credit):
    with pytest.raises(DataError, match=r"10 folds need at least 10 groups.*There are 4\..*at most 4 folds"):
        cross_validate(pr.AdditiveRiskModel(credit.schema), credit.frame, credit.target, groups=np.arange(900) % 4)
