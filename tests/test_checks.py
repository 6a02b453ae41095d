"""The one checker of parameters, and the places that must pass it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import plainrisk as pr
from plainrisk.checks import FLAG, NOTHING, SEED, check_parameters, mapping, number, whole, words
from plainrisk.errors import DataError, MissingExtraError, SchemaError


@pytest.mark.parametrize("value", [0, 0.5, np.float32(0.5), np.int8(0), Fraction(1, 2), np.float64(0)])
def test_numbers_of_any_kind_are_numbers(value):
    assert number(at_least=0, below=1).accepts(value)


@pytest.mark.parametrize(
    "value", [True, np.True_, "0.5", None, np.nan, np.inf, -np.inf, 1j, 10**400, [0.5], np.array([0.5]), -0.1, 1]
)
def test_all_else_is_no_number(value):
    assert not number(at_least=0, below=1).accepts(value)


@pytest.mark.parametrize("value", [2, np.uint8(3), 10**400, np.int64(2)])
def test_whole_numbers_may_have_any_size(value):
    assert whole(2).accepts(value)


@pytest.mark.parametrize("value", [1, 2.0, np.float64(2), True, "2", None, -(10**400)])
def test_all_else_is_no_whole_number(value):
    assert not whole(2).accepts(value)


def test_messages_say_what_is_allowed_what_came_and_the_nearest_word():
    table = {"a": words("auto", "cv") | number(above=0) | NOTHING}
    with pytest.raises(
        DataError,
        match=r"^who: a must be 'auto', 'cv', a finite number above 0 or None, not 'atuo'. Did you",
    ):
        check_parameters("who", {"a": "atuo"}, table)
    for value, shown in [
        (10**5000, "not a number of over 30 digits"),
        (["secret"], "not a value of type list"),
        ("x" * 500, "not 'x{39}…'"),
        (np.nan, "not nan"),
        (True, "not True"),
    ]:
        with pytest.raises(DataError, match=f"{shown}[.]$"):
            check_parameters("who", {"a": value}, table)


def test_dicts_and_flags():
    assert mapping("costs", number()).accepts({"a": 1})
    assert not mapping("costs", number()).accepts({"a": "x"})
    assert FLAG.accepts(np.False_)
    assert not FLAG.accepts(0)
    assert SEED.accepts(2**80)


# ---- classifiers: fit refuses, the constructor never does

rng = np.random.default_rng(0)
X = {"a": rng.normal(size=200), "b": rng.normal(size=200)}
y = (X["a"] + rng.normal(size=200) > 0).astype(int)
BAD_NUMBERS = ["x", np.nan, np.inf, -1, None, True, [1], 10**400]
BAD_COUNTS = ["x", np.nan, np.inf, -1, 0, 1.5, True, [1], None]
LAYER = [
    *(("ridge", value) for value in BAD_NUMBERS),
    *(("max_bins", value) for value in BAD_COUNTS if value is not None),
    *(("tolerance", value) for value in BAD_NUMBERS),
    *(("min_bin_rows", value) for value in BAD_COUNTS),
    *((name, value) for name in ("link", "shapes", "criterion") for value in ("x", None, 1, ["gini"], np.nan)),
    *(("class_weight", value) for value in ("x", 1, {0: "a"}, {0: np.nan}, {0: True}, {0: 0}, {7: 1.0}, [1, 2])),
]
CASES = [
    *((pr.AdditiveRiskModel, *case) for case in LAYER),
    *((pr.TwoLayerRiskModel, *case) for case in LAYER),
    *((pr.TwoLayerRiskModel, "estimator", value) for value in ("x", 1, pr.AdditiveRiskModel, {"a": 1}, np)),
    *((pr.NonnegativeLogisticRegression, "ridge", value) for value in BAD_NUMBERS),
    *((pr.SubscaleMixture, "learning_rate", value) for value in BAD_NUMBERS),
    *((pr.SubscaleMixture, "clip", value) for value in [*BAD_NUMBERS, 0, 0.5]),
    *((pr.SubscaleMixture, "cv", value) for value in ["x", 1, 2.5, True, np.nan]),
    *((pr.SubscaleMixture, name, value) for name in ("loss", "weights") for value in ("x", None, 1)),
    *((pr.SubscaleMixture, "estimator", value) for value in ("x", 1, pr.AdditiveRiskModel, {"a": 1})),
    *((pr.BoostedRiskModel, "max_depth", value) for value in BAD_COUNTS),
    *((pr.BoostedRiskModel, "n_estimators", value) for value in BAD_COUNTS),
    *((pr.BoostedRiskModel, "learning_rate", value) for value in BAD_NUMBERS),
    *((pr.BoostedRiskModel, "params", value) for value in ("x", 1, ["eta"])),
    *((pr.BoostedRiskModel, "monotone", value) for value in ("x", 1, None)),
]


@pytest.mark.parametrize(("kind", "name", "value"), CASES)
def test_fit_refuses_a_wrong_parameter_by_name(kind, name, value):
    model = kind(**{name: value})
    for fit in (lambda: model.fit(X, y), lambda: pr.cross_validate(model, X, y, cv=2)):
        with pytest.raises(DataError, match=f"{name}(:| must be)"):
            fit()
    assert not hasattr(model, "form_")


LINE = [
    *(("alpha", value) for value in [*BAD_NUMBERS, 0]),
    *(("epsilon", value) for value in [*BAD_NUMBERS, 0.5]),
    *(("pieces", value) for value in [*BAD_COUNTS, 31]),
]


@pytest.mark.parametrize(("name", "value"), LINE)
def test_lines_refuse_a_wrong_parameter_by_name(name, value):
    fitted = pr.AdditiveRiskModel().fit(X, y)
    frame = np.column_stack(list(X.values()))
    for make in (
        lambda: pr.Linearised(pr.AdditiveRiskModel(), **{name: value}).fit(X, y),
        lambda: pr.Linearised(LogisticRegression(), **{name: value}).fit(frame, y),
        lambda: pr.linearise(fitted, X, **{name: value}),
    ):
        with pytest.raises(DataError, match=f"{name} must be"):
            make()


@pytest.mark.parametrize("estimator", [None, "x", LogisticRegression, 3])
def test_only_a_classifier_can_be_linearised_or_cross_validated(estimator):
    with pytest.raises(DataError, match="estimator must be a classifier with fit and predict_proba"):
        pr.Linearised(estimator).fit(X, y)
    with pytest.raises(DataError, match="model must be a classifier"):
        pr.cross_validate(estimator, X, y)


def test_numbers_of_numpy_are_taken():
    model = pr.AdditiveRiskModel(ridge=np.float32(0.5), max_bins=np.int64(3), min_bin_rows=np.uint8(2)).fit(X, y)
    assert model.ridge_ == 0.5


def test_xgboost_is_refused_in_our_words():
    pytest.importorskip("xgboost")
    with pytest.raises(DataError, match="XGBoost refuses the parameters"):
        pr.BoostedRiskModel(params={"tree_method": "no such"}).fit(X, y)
    wide = {"a": X["a"] * 1e300, "b": X["b"]}
    with pytest.raises(DataError, match=r"feature 'a' has numbers beyond 3\.4e38.*logarithm"):
        pr.BoostedRiskModel(monotone=True).fit(wide, y)


# ---- functions


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1, 2**32, 2**64, 10**30, np.int64(5)])
def test_a_seed_of_any_size_shuffles_the_same_way_twice(seed):
    first, second = (pr.cross_validate(pr.AdditiveRiskModel(), X, y, cv=2, seed=seed) for _ in range(2))
    assert (first.risk == second.risk).all()
    model = pr.AdditiveRiskModel().fit(X, y)
    risks = [pr.bootstrap(model, X, y, n=2, seed=seed).risk(X).low for _ in range(2)]
    assert (risks[0] == risks[1]).all()
    assert (pr.datasets.make_credit(20, seed).target == pr.datasets.make_credit(20, seed).target).all()


def test_seeds_beyond_32_bits_differ():
    found = [pr.cross_validate(pr.AdditiveRiskModel(), X, y, cv=2, seed=s).folds[0].test for s in (2**32, 2**32 + 1, 0)]
    assert len({tuple(test) for test in found}) == 3


@pytest.mark.parametrize("seed", [-1, 1.5, "x", None, True, np.nan])
def test_what_is_no_seed_is_refused(seed):
    model = pr.AdditiveRiskModel().fit(X, y)
    for ask in (
        lambda: pr.cross_validate(model, X, y, cv=2, seed=seed),
        lambda: pr.bootstrap(model, X, y, n=2, seed=seed),
        lambda: pr.datasets.make_credit(20, seed),
    ):
        with pytest.raises(DataError, match="seed must be a whole number of at least 0"):
            ask()


@pytest.mark.parametrize("cv", [True, 1, 0, -1, 1.5, "x", None, 10**9])
def test_what_is_no_number_of_folds_is_refused(cv):
    with pytest.raises(DataError, match="cv"):
        pr.cross_validate(pr.AdditiveRiskModel(), X, y, cv=cv)


@pytest.mark.parametrize("n", [0, -1, 1.5, "x", None, True])
def test_what_is_no_number_of_refits_is_refused(n):
    with pytest.raises(DataError, match="bootstrap: n must be a whole number of at least 1"):
        pr.bootstrap(pr.AdditiveRiskModel().fit(X, y), X, y, n=n)


@pytest.mark.parametrize("name", sorted(pr.CLASSIFIERS))
def test_an_unfitted_model_says_so_everywhere(name, tmp_path):
    model = pr.make_classifier(name)
    asks = [
        lambda: model.predict_proba(X),
        lambda: model.predict(X),
        lambda: model.score(X, y),
        lambda: model.explain(X),
        lambda: model.reasons(X),
        lambda: model.what_if(X, 0.5),
        lambda: model.what_ifs(X, 0.5),
        lambda: model.overview(),
        lambda: model.drift(X),
        lambda: model.certify(),
        lambda: model.at_base_rate(0.5),
        lambda: model.save(tmp_path / "m.json"),
    ]
    if "XGB" not in name and "NNLR" not in name:
        asks.append(lambda: pr.bootstrap(model, X, y, n=2))
    for ask in asks:
        with pytest.raises(NotFittedError, match="not fitted"):
            ask()
    assert not (tmp_path / "m.json").exists()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: pr.metrics.log_loss(y, X["a"] * 0 + 0.5, clip="x"), "clip must be"),
        (lambda: pr.metrics.log_loss(y, X["a"] * 0 + 0.5, clip=True), "clip must be"),
        (lambda: pr.metrics.summary(y, X["a"] * 0 + 0.5, bins=10**12), "bins must be"),
        (lambda: pr.metrics.reliability(y, X["a"] * 0 + 0.5, bins=True), "bins must be"),
        (lambda: pr.datasets.make_credit(1.5), "n must be"),
        (lambda: pr.datasets.make_credit(True), "n must be"),
        (lambda: pr.datasets.make_credit(10, base_rate="x"), "base_rate must be"),
        (lambda: pr.datasets.make_credit(10, n_features=None), "n_features must be"),
        (lambda: pr.AdditiveRiskModel().fit(X, y).at_base_rate("x"), "base_rate must be"),
        (lambda: pr.AdditiveRiskModel().fit(X, y).certify(thin=np.nan), "thin must be"),
        (lambda: pr.cross_validate(pr.AdditiveRiskModel(), X, y, cv=[1, 2]), r"each split is a pair \(train, test\)"),
        (lambda: pr.cross_validate(pr.AdditiveRiskModel(), X, y, cv=[([0.5], [1.5])]), "by whole numbers or a mask"),
        (lambda: pr.cross_validate(pr.AdditiveRiskModel(), X, y, cv=[(range(200), [])]), "at least one on each side"),
        (lambda: pr.cross_validate(pr.AdditiveRiskModel(), X, y, cv=3, groups=[1, 2]), "one label per row"),
        (lambda: pr.cross_validate(pr.AdditiveRiskModel(), X, y, progress=3), "progress must be None or a function"),
        (lambda: pr.make_classifier(["ARM1"]), "There is no classifier"),
        (lambda: pr.make_classifier("ARM1", paper="x"), "paper must be True or False"),
        (lambda: pr.RiskModel(None), "form must be a RiskForm, not None"),
        (lambda: pr.SubscaleMixture().fit(X, y).without(["a"]), "There is no subscale"),
        (lambda: pr.metrics.roc_auc(y, np.ma.masked_less(np.full(200, 0.5), 1)), "masked rows have no value"),
        (lambda: pr.AdditiveRiskModel().fit(X, y).score(X, y[:3]), "one entry per row"),
        (lambda: pr.AdditiveRiskModel().fit(X, y).explain(X).to_dict("x"), "row must be a whole number, not 'x'"),
        (lambda: pr.AdditiveRiskModel().fit(X, y).explain(X).plot(most="x"), "most must be"),
        (lambda: pr.AdditiveRiskModel().fit(X, y).overview().plot_importance(most=0), "most must be"),
    ],
)
def test_functions_name_the_parameter(ask, message):
    with pytest.raises(DataError, match=message):
        ask()


# ---- the verbs


@pytest.fixture(scope="module")
def model():
    return pr.AdditiveRiskModel(link="linear").fit(X, y)


ONE = {name: column[:1] for name, column in X.items()}


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        *(("reasons", {"k": k}) for k in (0, -1, 1.5, "x", True, np.nan)),
        *(("what_if", {"target": 0.1, "answers": n}) for n in (0, 1.5, "x", None, True)),
        *(("what_if", {"target": t}) for t in (np.nan, -0.1, 1.1, "x", True, np.inf)),
        *((verb, {"min_rows": r}) for verb in ("explain", "reasons") for r in (np.nan, -1, "x", None, True, np.inf)),
        *(("what_if", {"target": 0.1, "min_rows": r}) for r in (np.nan, -1, "x", None, True)),
        *(("what_if", {"target": 0.1, "cost": c}) for c in ({"a": "x"}, {"a": np.nan}, {"a": -1}, {"a": True}, "x")),
        *(("what_if", {"target": 0.1, "frozen": f}) for f in ("a", 1, [1], None)),
        *(("what_if", {"target": 0.1, "values": v}) for v in ("a", 1, {"a": ["x"]}, {"a": [np.inf]})),
        *(("decide", {"k": k}) for k in (0, -1, 1.5, "x", True, np.nan)),
        ("explain", {"portfolio": "x"}),
        ("explain", {"portfolio": {name: column[:0] for name, column in X.items()}, "reference": "typical"}),
    ],
)
def test_verbs_refuse_a_wrong_option_by_name(model, verb, options):
    name = list(options)[-1] if "portfolio" not in options else "portfolio"
    asked = model.annotate(cutoff=0.3) if verb == "decide" else model
    with pytest.raises(DataError, match=rf"{name}\b.*(must be|no rows)"):
        getattr(asked, verb)(ONE, **options)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("inquiries", value) for value in ("a", 1, [1], ["zz"])),
        *(("order", value) for value in ("size", 1, [])),
        *(("cutoff", value) for value in ("x", True, 1.1, -0.1, np.nan, np.inf, [0.1])),
        *(("reasons", value) for value in (0, -1, 1.5, "x", True)),
        *(("reference", value) for value in ("worst", 1, ONE)),
        *(("letter", value) for value in ("x", {"refused": "no"}, {"refused": "{reasons} {names}"}, {"refusd": "x"})),
        *(("drift", value) for value in ({"moderate": np.nan}, {"moderate": 0.5}, {"large": 0.0}, "x")),
    ],
)
def test_a_policy_refuses_a_wrong_entry_by_name(model, field, value):
    for refuse in (
        lambda: model.annotate({"policy": {field: value}}),
        lambda: pr.Schema(features={"a": {}, "b": {}}, policy={field: value}),
    ):
        with pytest.raises(SchemaError, match=rf"policy: .*\b{field}|policy.*\brefusd"):
            refuse()


def test_without_k_and_target_the_policy_holds(model):
    stated = model.annotate({"policy": {"reasons": 1}}, cutoff=0.3)
    assert (model.reasons(ONE, None).k, stated.reasons(ONE, None).k) == (2, 1)
    with pytest.raises(DataError, match="k = 2, but the model's policy allows 1 reasons at most"):
        stated.reasons(ONE, 2)
    assert stated.what_if(ONE, None) == model.what_if(ONE, 0.3)
    for ask, verb in ((model.what_if, "what_if"), (model.what_ifs, "what_ifs"), (model.decide, "decide")):
        with pytest.raises(DataError, match=f"{verb}: the model has no cut-off to decide by"):
            ask(ONE)


def test_drift_counts_the_levels_of_its_own_model(model):
    other = pr.AdditiveRiskModel(max_bins=2).fit(X, y)
    with pytest.raises(DataError, match="a Profile counts the levels of another model"):
        model.drift(pr.explain.Profile(other.form_).add(X))
    assert model.drift(pr.explain.Profile(model.form_).add(X)).new_rows == 200


@pytest.mark.parametrize("k", [10**9, 10**30, np.int64(10**9)])
def test_there_are_as_many_reasons_as_features(model, k):
    found = model.reasons(X, k)
    assert found.k == 2
    assert found.codes.shape == (200, 2)
    assert model.what_if(ONE, 0.0001, answers=k).answers is not None


def test_no_rows_give_empty_results_or_our_error(model):
    none = {name: column[:0] for name, column in X.items()}
    assert model.predict_proba(none).shape == (0, 2)
    assert len(model.predict(none)) == 0
    assert len(model.explain(none)) == len(model.reasons(none)) == len(model.what_ifs(none, 0.1)) == 0
    for text in map(repr, (model.explain(none), model.reasons(none), model.what_ifs(none, 0.1))):
        assert "0 " in text
    for ask, message in [
        (lambda: model.overview(none), "overview: X has no rows"),
        (lambda: model.drift(none), "a sample has no rows"),
        (lambda: model.drift(X, none), "a sample has no rows"),
        (lambda: model.what_if(none, 0.1), "for one row, not 0"),
        (lambda: pr.bootstrap(model, none, y[:0]), "no rows"),
    ]:
        with pytest.raises(DataError, match=message):
            ask()
    assert pr.bootstrap(model, X, y, n=2).risk(none).low.shape == (0,)


def test_the_yardstick_needs_its_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "xgboost", None)
    with pytest.raises(MissingExtraError, match="xgboost is needed"):
        pr.BoostedRiskModel().fit(X, y)
