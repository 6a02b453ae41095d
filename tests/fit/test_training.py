from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import plainrisk as pr
from plainrisk.errors import DataError, PlainriskError, PlainriskWarning, SchemaError

N = 240


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"u": rng.normal(size=N).round(2), "v": rng.choice(["a", "b"], N)})
    return X, (X["u"] + rng.normal(size=N) > 0.5).to_numpy().astype(int)


FEATURES = {"u": {"direction": "increasing"}, "v": {"kind": "categorical"}}


def fit(X, y, **schema):
    return pr.AdditiveRiskModel(pr.Schema(features=FEATURES, **schema)).fit(X, y)


# ---- outcomes


@pytest.mark.parametrize(
    ("labels", "positive", "classes"),
    [
        ((0, 1), None, [0, 1]),
        ((0, 1), 1, [0, 1]),
        ((1, 0), 0, [1, 0]),
        ((False, True), None, [False, True]),
        ((False, True), True, [False, True]),
        ((True, False), False, [True, False]),
        ((True, False), "False", [True, False]),
        ((False, True), 1, [False, True]),
        ((1, 2), None, [1, 2]),
        ((2, 1), 1, [2, 1]),
        ((-1.0, 1.0), None, [-1.0, 1.0]),
        (("good", "bad"), "bad", ["good", "bad"]),
        (("bad", "good"), "good", ["bad", "good"]),
        (("good", "bad"), None, ["good", "bad"]),
        (("Fully Paid", "Charged Off"), None, ["Fully Paid", "Charged Off"]),
        (("no", "yes"), None, ["no", "yes"]),
        (("0", "1"), 1, ["0", "1"]),
        ((0, 1), "1", [0, 1]),
    ],
    ids=repr,
)  # fmt: skip
def test_classes_are_sorted_and_the_risk_is_that_of_the_positive_label(data, labels, positive, classes):
    X, y = data
    expected = fit(X, y).predict_proba(X)
    outcome = np.array(labels)[y]
    model = fit(X, outcome, positive=positive)
    assert model.classes_.tolist() == sorted(classes)
    assert (list(model.form_.classes), model.positive_) == (classes, classes[1])
    np.testing.assert_array_equal(model.predict_proba(X), expected if classes == sorted(classes) else expected[:, ::-1])
    np.testing.assert_array_equal(model.predict(X), np.array(classes)[(expected[:, 1] > 0.5).astype(int)])
    assert model.score(X, outcome) > 0.6


def test_outcomes_of_any_library(data):
    X, y = data
    words = np.where(y == 1, "yes", "no")
    expected = fit(X, y).predict_proba(X)
    for outcome in (
        words.tolist(),
        words.astype(object),
        pd.Series(words, index=np.arange(N)[::-1] + 1),
        pd.Series(words, dtype="category"),
        pd.Series(words, dtype="string"),
        pl.Series(words),
        pa.chunked_array([words.tolist()]),
    ):
        np.testing.assert_array_equal(fit(X, outcome).predict_proba(X), expected)
    for outcome in (pd.Series(y, dtype="Int64"), pd.Series(y, dtype="boolean"), y.astype(np.float32), pl.Series(y)):
        np.testing.assert_array_equal(fit(X, outcome).predict_proba(X), expected)


@pytest.mark.parametrize("labels", [np.arange(N), [f"A{k}" for k in range(N)], pd.date_range("2024", periods=N)])
def test_the_labels_of_the_rows_in_another_order_are_refused(data, labels):
    X, y = data[0].set_axis(labels), pd.Series(data[1], labels, name="bad")
    turned, model = y[::-1], fit(X, y)
    np.testing.assert_array_equal(fit(X, turned.loc[X.index]).predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(fit(X, y.set_axis(range(7, N + 7))).predict_proba(X), model.predict_proba(X))
    for call in (
        lambda y: fit(X, y),
        lambda y: fit(X, y.to_frame()),
        lambda y: model.score(X, y),
        lambda y: model.drift(X, y=y),
        lambda y: pr.evaluate(model, X, y),
        lambda y: pr.cross_validate(pr.AdditiveRiskModel(), X, y),
    ):
        with pytest.raises(DataError, match=r"y has the index of X in another order.*y\.loc\[X\.index\]"):
            call(turned)
    for name in ("sample_weight", "groups"):
        with pytest.raises(DataError, match=rf"{name} has the index of X in another order"):
            pr.cross_validate(pr.AdditiveRiskModel(), X, y, **{name: turned + 1})


def test_labels_that_repeat_or_have_levels_are_compared_too(data):
    X, y = data[0].set_axis(np.arange(N) // 2), pd.Series(data[1])
    fit(X, y.set_axis(X.index))
    fit(X, y)  # the labels are others
    two = pd.MultiIndex.from_product([range(N // 2), ["a", "b"]])
    for rows in (X, X.set_axis(two)):
        with pytest.raises(DataError, match="y has the index of X in another order"):
            fit(rows, y.set_axis(rows.index[::-1]))
    fit(X.set_axis(two), y)


def test_the_schemas_target_column_is_the_outcome(data):
    X, y = data
    expected = fit(X, y).predict_proba(X)
    for frame in (X.assign(bad=y), pl.from_pandas(X).with_columns(bad=pl.Series(y)), {**X.to_dict("list"), "bad": y}):
        model = fit(frame, None, target="bad")
        np.testing.assert_array_equal(model.predict_proba(X), expected)
    words = X.assign(bad=np.where(y == 1, "b", "g"))
    assert fit(words, None, target="bad", positive="b").form_.classes == ("g", "b")


@pytest.mark.parametrize(
    ("outcome", "schema", "message"),
    [
        (None, {}, "y is None"),
        (None, {"target": "bad"}, "no target column named by the schema"),
        (np.arange(N) % 3, {}, "Only binary classification is supported.*3 labels"),
        (np.arange(N) / 7, {}, "Unknown label type: continuous"),
        (np.ones(N, dtype=int), {}, "only one class: 1"),
        (np.full(N, "x"), {}, "only one class: x"),
        (np.where(np.arange(N) == 7, np.nan, np.arange(N) % 2), {}, "Input y contains NaN"),
        (np.array([None, "a", "b"] * (N // 3), dtype=object), {}, "missing values"),
        (np.array([float("nan"), "a", "b"] * (N // 3), dtype=object), {}, "missing values"),
        (pd.Series([pd.NA, 0, 1] * (N // 3), dtype="Int64"), {}, "y contains"),
        (pd.Series([None, "a", "b"] * (N // 3), dtype="string"), {}, "y contains"),
        (pl.Series([None, "a", "b"] * (N // 3)), {}, "y contains"),
        ([0, "1"] * (N // 2), {}, "y mixes numbers and text: row 1 is not of the type of row 0"),
        (pd.Series([0, 0, "1"] * (N // 3), dtype=object), {}, "y mixes numbers and text: row 2"),
        (np.ma.array(np.arange(N) % 2, mask=np.arange(N) == 7), {}, "missing values, first in row 7"),
        (np.ma.array(np.arange(N) % 2.0, mask=np.arange(N) == 7), {}, "Input y contains NaN"),
        (np.arange(N) % 2, {"positive": 7}, "positive label '7' is not in the target, whose outcomes are '0', '1'"),
        (np.arange(N) % 2, {"positive": -0.5}, "positive label '-0.5' is not in the target"),
        (np.arange(N - 1) % 2, {}, f"X has {N} rows, y {N - 1}"),
        (np.zeros((N, 2)), {}, "1d array"),
        (np.where(np.arange(N) % 2, "good", "bad"), {"positive": "badd"}, "whose outcomes are 'bad', 'good'"),
    ],
    ids=lambda v: None if not isinstance(v, str) else v[:30],
)  # fmt: skip
def test_outcomes_that_can_not_be_used_are_refused(data, outcome, schema, message):
    X, _ = data
    with pytest.raises((DataError, SchemaError), match=message):
        fit(X, outcome, **schema)


# ---- weights


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(N), "every sample_weight is zero"),
        (-np.ones(N), "not negative; row 0 is not"),
        (np.where(np.arange(N) == 5, np.nan, 1.0), "row 5 is not"),
        (np.where(np.arange(N) == 5, np.inf, 1.0), "row 5 is not"),
        (np.ones(N - 1), f"1D array with {N} entries"),
        (np.ones((N, 1)), f"1D array with {N} entries"),
        (np.full(N, 1e308), "add up to inf. Scale them"),
        (np.full(N, 1e-320), "Scale them"),
        (np.full(N, "1.5"), "sample_weight must hold numbers, not text"),
        (np.full(N, 1 + 1j), "sample_weight must hold numbers, not complex128"),
        (np.array([1, "2", 3] * (N // 3), dtype=object), "sample_weight must hold numbers, not object"),
        (np.ma.array(np.ones(N), mask=np.arange(N) == 5), "row 5 is not"),
        (pd.Series([1, None, 1] * (N // 3), dtype="Int64"), "row 1 is not"),
    ],
)  # fmt: skip
def test_weights_that_can_not_be_used_are_refused(data, weight, message):
    with pytest.raises(DataError, match=message):
        pr.AdditiveRiskModel().fit(*data, sample_weight=weight)


def test_a_class_that_has_no_weight_is_no_class(data):
    X, y = data
    with pytest.raises(DataError, match="only one class among the rows with a weight: 0"):
        pr.AdditiveRiskModel().fit(X, y, sample_weight=1 - y)


def test_one_weight_for_all_changes_the_total_only(data):
    X, y = data
    model = pr.AdditiveRiskModel(ridge=0.01).fit(X, y, sample_weight=2.0)
    assert model.fit_record_.weight == 2 * N
    np.testing.assert_allclose(
        model.predict_proba(X), pr.AdditiveRiskModel(ridge=0.01).fit(X, y).predict_proba(X), atol=1e-9
    )


# ---- class weights

ESTIMATORS = {
    "ARM1": pr.AdditiveRiskModel,
    "NNLR": pr.NonnegativeLogisticRegression,
    "ARM2": pr.TwoLayerRiskModel,
}


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_class_weights_are_row_weights_and_the_user_is_told_once(data, kind):
    X, y = data
    with pytest.warns(PlainriskWarning, match=r"base rate from [\d.]+% to 50.0%.*wrong by design") as caught:
        balanced = ESTIMATORS[kind](ridge=0.01, class_weight="balanced").fit(X, y)
    assert len(caught) == 1
    factors = N / (2 * np.bincount(y))
    by_rows = ESTIMATORS[kind](ridge=0.01).fit(X, y, sample_weight=factors[y])
    np.testing.assert_allclose(balanced.predict_proba(X), by_rows.predict_proba(X), atol=1e-10)
    with pytest.warns(PlainriskWarning, match="wrong by design") as caught:
        given = ESTIMATORS[kind](ridge=0.01, class_weight={0: factors[0], 1: factors[1]}).fit(X, y)
    assert len(caught) == 1
    np.testing.assert_allclose(given.predict_proba(X), by_rows.predict_proba(X), atol=1e-10)


@pytest.mark.filterwarnings("ignore:.*cut off")
@pytest.mark.parametrize("name", ["SmoothDirectARM1", "SmoothARM1", "NNLR"])
@pytest.mark.filterwarnings("ignore:.*no evidence for any feature")
def test_class_weights_that_leave_an_outcome_less_than_a_row_are_called_of_no_use(data, name):
    X, y = data
    model = pr.make_classifier(name, class_weight={0: 1000, 1: 0.0001})
    words = rf"They are of no use: outcome '1' weighs as little as \S+ rows of {len(y):,}, so no feature may count"
    with pytest.warns(PlainriskWarning, match=words):
        model.fit(X, y)
    for weight in (1e-4, 1.0, 1e4):  # of all rows: it is shares that matter
        with pytest.warns(PlainriskWarning, match="wrong by design") as caught:
            pr.make_classifier(name, class_weight={0: 5, 1: 1}).fit(X, y, sample_weight=np.full(len(y), weight))
        assert not any("of no use" in str(w.message) for w in caught)


def test_equal_class_weights_are_no_news(data):
    X, y = data
    model = pr.AdditiveRiskModel(ridge=0.01, class_weight={0: 3.0, 1: 3.0}).fit(X, y)  # warnings are errors here
    np.testing.assert_allclose(
        model.predict_proba(X), pr.AdditiveRiskModel(ridge=0.01).fit(X, y).predict_proba(X), atol=1e-9
    )


@pytest.mark.parametrize("labels", [(0, 1), (False, True), ("0", "1"), (0.0, 1.0)], ids=repr)
def test_class_weights_find_their_label_whatever_its_type(data, labels):
    X, y = data
    with pytest.warns(PlainriskWarning, match="wrong by design"):
        model = pr.AdditiveRiskModel(class_weight={1: 2.0}).fit(X, np.array(labels)[y])
    assert model.fit_record_.positive_weight == 2 * y.sum()


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ("balance", "None, 'balanced' or a dict"),
        (2.0, "None, 'balanced' or a dict"),
        ({"1 ": 2.0}, "no outcome '1 '"),
        ({1: 0.0}, "the weight of outcome '1' must be a finite number above 0, not 0.0"),
        ({1: -2.0}, "above 0"),
        ({0: float("nan")}, "above 0"),
        ({0: "a"}, "the weight of outcome '0' must be a finite number above 0, not 'a'"),
        ({0: None}, "the weight of outcome '0' must be a finite number above 0"),
        ({0: True}, "the weight of outcome '0' must be a finite number above 0"),
    ],
)  # fmt: skip
def test_class_weights_that_can_not_be_used_are_refused(data, class_weight, message):
    with pytest.raises(DataError, match=message):
        pr.AdditiveRiskModel(class_weight=class_weight).fit(*data)


# ---- the prior correction


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_at_base_rate_takes_balanced_training_back(kind):
    rng = np.random.default_rng(0)
    n = 20_000
    X = rng.normal(size=(n, 2)).round(1)
    truth = 1 / (1 + np.exp(3 - X @ [1.0, 0.7]))
    y = (rng.random(n) < truth).astype(int)
    with pytest.warns(PlainriskWarning, match="wrong by design"):
        model = ESTIMATORS[kind](class_weight="balanced").fit(X, y)
    printed, corrected = model.predict_proba(X)[:, 1], model.at_base_rate().predict_proba(X)[:, 1]
    error = 4 * np.sqrt(y.mean() / n)  # four standard errors of the rate
    assert printed.mean() > 0.3
    assert abs(corrected.mean() - y.mean()) < 2 * error
    np.testing.assert_array_equal(np.argsort(corrected, kind="stable"), np.argsort(printed, kind="stable"))
    half = model.at_base_rate(y.mean() / 2).predict_proba(X)[:, 1]
    odds = (half / (1 - half)) / (corrected / (1 - corrected))
    rate = y.mean()
    np.testing.assert_allclose(odds, (rate / 2 / (1 - rate / 2)) / (rate / (1 - rate)), rtol=1e-9)
    again = model.at_base_rate().at_base_rate()
    np.testing.assert_allclose(again.predict_proba(X)[:, 1], corrected, rtol=1e-12)
    assert model.at_base_rate().certify().valid


def test_at_base_rate_without_class_weights_changes_nothing(data):
    X, y = data
    model = pr.AdditiveRiskModel().fit(X, y)
    np.testing.assert_allclose(model.at_base_rate().predict_proba(X), model.predict_proba(X), rtol=1e-12)


def corrected(risk, trained, wanted):
    """Bayes' rule: the odds are multiplied by the ratio of the odds of the two base rates."""
    odds = risk / (1 - risk) * wanted / (1 - wanted) / (trained / (1 - trained))
    return np.where(risk == 1, 1.0, odds / (1 + odds))


@pytest.mark.parametrize("name", ["SmoothARM1", "BandARM1", "LinARM1", "DirectARM1", "LinARM2", "CalibratedMixARM1"])
@pytest.mark.parametrize("rate", [0.02, 0.3, 0.97])
@pytest.mark.filterwarnings("ignore:.*cut off")
def test_lines_and_bands_are_corrected_within_what_is_stated(name, rate):
    credit = pr.datasets.make_credit(2_000, seed=3)
    model = pr.make_classifier(name, credit.schema).fit(credit.frame, credit.target)
    moved = model.at_base_rate(rate)
    risk, found = (m.predict_proba(credit.frame)[:, 1] for m in (model, moved))
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = corrected(risk, credit.target.mean(), rate)
    assert np.abs(found - exact).max() <= 0.005
    order = np.argsort(risk, kind="stable")
    assert (np.diff(found[order]) >= 0).all()
    assert moved.certify().valid
    back = moved.at_base_rate(credit.target.mean()).predict_proba(credit.frame)[:, 1]
    assert np.abs(corrected(back, credit.target.mean(), rate) - found).max() <= 0.01


def test_scores_behind_corrected_bands_are_log_odds_at_the_new_base_rate():
    credit = pr.datasets.make_credit(2_000, seed=3)
    model = pr.make_classifier("SmoothARM1", credit.schema).fit(credit.frame, credit.target)
    corrected = model.at_base_rate(0.1)
    # Where the odds are multiplied by k, a risk moves by at most max(k, 1/k) times as much; bands follow within 0.005.
    before = credit.target.mean()
    k = 0.1 / 0.9 / (before / (1 - before))
    assert corrected.scorecard().band_gap <= model.scorecard().band_gap / k + 0.005


@pytest.mark.filterwarnings("ignore:.*cut off")
def test_a_clipped_line_and_a_mixture_have_no_prior_correction():
    credit = pr.datasets.make_credit(500, seed=3)
    clipped = pr.Linearised(pr.AdditiveRiskModel(credit.schema), epsilon=0.01).fit(credit.frame, credit.target)
    with pytest.raises(DataError, match=r"cut off at 0.01 and 0.99 .* Fit with epsilon=0"):
        clipped.at_base_rate(0.1)
    mixture = pr.make_classifier("MixARM1", credit.schema).fit(credit.frame, credit.target)
    with pytest.raises(PlainriskError, match="a mixture that is not calibrated has no link to correct"):
        mixture.at_base_rate(0.1)


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.5, 2.0, float("nan")])
def test_a_base_rate_is_between_zero_and_one(data, rate):
    with pytest.raises(PlainriskError, match="base_rate must be a finite number above 0 and below 1"):
        pr.AdditiveRiskModel().fit(*data).at_base_rate(rate)


# ---- rows and schema


def test_rows_that_do_not_fit_the_schema_are_refused(data):
    X, y = data
    with pytest.raises(DataError, match="no rows to fit"):
        fit(X.iloc[:0], y[:0])
    with pytest.raises(SchemaError, match="'v' is not in the data"):
        fit(X[["u"]], y)
    with pytest.raises(ValueError, match=r"'u'.*text"):
        fit(X.assign(u="x"), y)


def test_without_a_schema_kinds_follow_the_types(data):
    X, y = data
    X = X.assign(w=pd.Categorical(np.arange(N) % 3), flag=np.arange(N) % 2 == 0, count=np.arange(N) % 5)
    schema = pr.AdditiveRiskModel().fit(X, y).form_.schema
    kinds = {name: f.kind for name, f in schema.features.items()}
    assert kinds == {
        "u": "continuous", "v": "categorical", "w": "categorical", "flag": "categorical", "count": "continuous"
    }  # fmt: skip
    assert all(f.sign == 0 for f in schema.features.values())


def test_columns_beside_the_schema_are_ignored(data):
    X, y = data
    more = X.assign(name="x", other=np.inf)
    model = fit(more, y)
    np.testing.assert_array_equal(model.predict_proba(X), fit(X, y).predict_proba(X))
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == ["u", "v", "name", "other"]


@pytest.mark.parametrize("width", [1, 2, 3])
def test_rows_without_names_do_not_fit_a_schema(data, width):
    """Not even if they are as many as the features: columns are never matched by position."""
    _, y = data
    rows = np.zeros((N, width))
    models = [
        pr.AdditiveRiskModel(pr.Schema(features=FEATURES)),
        pr.NonnegativeLogisticRegression(pr.Schema(features=FEATURES)),
        pr.TwoLayerRiskModel(schema=pr.Schema(features=FEATURES)),
        pr.SubscaleMixture(schema=pr.Schema(features=FEATURES)),
        pr.Linearised(pr.AdditiveRiskModel(pr.Schema(features=FEATURES))),
    ]
    for model in models:
        for X in (rows, rows.tolist()):
            with pytest.raises(
                DataError, match=r"no column names.*columns=\[\.\.\.\].*set_output\(transform=\"pandas\"\)"
            ):
                model.fit(X, y)


def test_a_pipeline_that_keeps_names_fits_a_schema(data):
    X, y = data
    schema = pr.Schema(features={"u": FEATURES["u"]})
    steps = make_pipeline(StandardScaler(), pr.AdditiveRiskModel(schema))
    with pytest.raises(DataError, match="no column names"):
        steps.fit(X[["u"]], y)
    steps.set_output(transform="pandas").fit(X[["u"]], y)
    scaled = (X[["u"]] - X["u"].mean()) / X["u"].std(ddof=0)
    expected = pr.AdditiveRiskModel(schema).fit(scaled, y).predict_proba(scaled)
    np.testing.assert_allclose(steps.predict_proba(X[["u"]]), expected, atol=1e-9)


def test_rows_without_names_need_no_schema(data):
    X, y = data
    model = pr.AdditiveRiskModel().fit(X[["u"]].to_numpy(), y)
    assert not hasattr(model, "feature_names_in_")
    expected = pr.AdditiveRiskModel().fit(X[["u"]], y).predict_proba(X[["u"]])
    np.testing.assert_array_equal(model.predict_proba(X[["u"]].to_numpy()), expected)


def test_rows_without_weight_are_not_even_seen():
    """A category in between that has no weight is no category: it is unseen, not the mean of its neighbors."""
    schema = pr.Schema(features={"g": {"kind": "categorical", "direction": "increasing"}})
    X = pd.DataFrame({"g": np.repeat(["1", "2", "3"], 80)})
    y = np.concatenate([np.arange(80) % 4 == 0, np.ones(80), np.arange(80) % 4 > 0]).astype(int)
    weight = np.where(X["g"] == "2", 0.0, 1.0)
    model = pr.AdditiveRiskModel(schema).fit(X, y, sample_weight=weight)
    dropped = pr.AdditiveRiskModel(schema).fit(X[weight > 0], y[weight > 0])
    assert model.form_ == dropped.form_
    assert model.fit_record_.rows == 160
    assert model.form_.parts[0].shapes["g"].levels.categories == ("1", "3")
