"""Prices of rules: a wrong rule costs accuracy, a true one does not, and all are compared on the same folds."""

from __future__ import annotations

import json
import math

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import plainrisk as pr
from plainrisk.errors import DataError, SchemaError
from plainrisk.intervals import UNKNOWN, Range
from plainrisk.validate.crossval import cross_validate
from plainrisk.validate.prices import Price, Prices, changes_of, price_changes

N = 1500


def make_rows(seed=0):
    """Risk rises with `late` and falls with `income`; an empty `late` is far better than any measured one."""
    rng = np.random.default_rng(seed)
    late, income = rng.integers(0, 6, N).astype(float), rng.normal(0, 1, N)
    empty, code = rng.random(N) < 0.2, rng.random(N) < 0.1
    score = np.where(empty, -5.0, 0.5 * late - 1.5) - income
    y = (rng.random(N) < 1 / (1 + np.exp(-score))).astype(int)
    columns = {"late": np.where(empty, np.nan, late), "income": np.where(code, -9.0, income)}
    columns["job"] = rng.choice(["clerk", "cook"], N)
    return pl.DataFrame(columns), y


def schema_of(late="increasing", income="decreasing", **rules):
    features = {
        "late": {"direction": late, "missing": "free", **rules},
        "income": {"direction": income, "special_values": [-9]},
        "job": {"kind": "categorical"},
    }
    return pr.Schema(target="bad", features=features)


@pytest.fixture(scope="module")
def rows():
    return make_rows()


def arm(schema, **options):
    return pr.AdditiveRiskModel(schema, **options)


# ---- what rules cost


def test_a_wrong_direction_costs_accuracy_and_a_true_one_does_not(rows):
    found = pr.prices(arm(schema_of(income="increasing")), *rows, cv=3)
    wrong, true = found["direction of income (increasing)"], found["direction of late (increasing)"]
    assert wrong.log_loss.low > 0.02
    assert wrong.auc.low > 0.02
    assert (wrong.clear, wrong.kind, wrong.feature) == (True, "direction", "income")
    assert true.log_loss.low <= 0
    assert abs(true.log_loss.estimate) < 0.005
    together = found["both directions"]
    assert together.log_loss.estimate == pytest.approx(wrong.log_loss.estimate, abs=0.005)
    estimates = [price.log_loss.estimate for price in found]
    assert estimates == sorted(estimates, reverse=True)
    assert found.verdict.startswith("What costs accuracy beyond chance: ")
    assert "direction of income (increasing) (" in found.verdict


@pytest.mark.parametrize("rule", ["not_better", "worst", "neutral"])
def test_a_rule_against_the_data_costs_accuracy(rows, rule):
    words = {"not_better": "not better", "worst": "counts as the worst", "neutral": "has no effect"}
    found = pr.prices(arm(schema_of(missing=rule)), *rows, cv=3)
    price = found[f"empty late {words[rule]}"]
    assert price.log_loss.low > 0
    assert (price.kind, price.feature) == ("rule", "late")


def test_a_true_direction_of_synthetic_credit_data_costs_nothing():
    credit = pr.datasets.make_credit(2000, seed=1)
    schema = credit.schema.select(["bureau_score", "late_payments"])
    found = pr.prices(pr.make_classifier("SmoothARM1", schema), credit.frame, credit.target)
    assert found["direction of late_payments (increasing)"].log_loss.low <= 0
    wrong = schema.edit("late_payments", direction="decreasing")
    found = pr.prices(pr.make_classifier("SmoothARM1", wrong), credit.frame, credit.target)
    assert found["direction of late_payments (decreasing)"].log_loss.low > 0


@pytest.mark.filterwarnings("ignore:.*no evidence for any feature")
def test_pairs_that_are_true_have_a_price_and_leaving_them_out_has_the_same():
    rng = np.random.default_rng(3)
    X = {name: rng.normal(size=2000) for name in ("a", "b")}
    y = (rng.random(2000) < 1 / (1 + np.exp(-2 * np.sign(X["a"] * X["b"])))).astype(int)
    model = pr.make_classifier("SmoothARM1", pr.Schema(features={"a": {}, "b": {}}))
    (without,) = pr.prices(model, X, y, cv=3)
    (having,) = pr.prices(model.set_params(pairs="auto"), X, y, cv=3)
    assert (without.what, having.what) == ("no pairs", "no pairs (the model has some)")
    assert without.log_loss.low > 0.1
    for figure in ("log_loss", "auc"):
        ends = (list(vars(getattr(price, figure)).values()) for price in (without, having))
        np.testing.assert_allclose(*ends, atol=1e-12)


# ---- on the same folds


@pytest.mark.parametrize("weighted", [False, True])
def test_a_price_is_the_paired_difference_on_the_same_folds(rows, weighted):
    X, y = rows
    weight = np.random.default_rng(0).uniform(0.5, 2, N) if weighted else None
    schema = schema_of(income="increasing")
    found = pr.prices(arm(schema), X, y, cv=3, seed=4, sample_weight=weight)
    models = [arm(schema), arm(schema.edit("income", direction="none", missing="free"))]
    kept, lifted = (cross_validate(m, X, y, cv=3, seed=4, sample_weight=weight) for m in models)
    direct = pr.evaluate(kept.risk, None, y, against=lifted.risk, sample_weight=weight, seed=4).differences
    price = found["direction of income (increasing)"]
    np.testing.assert_allclose(list(vars(price.log_loss).values()), list(vars(direct["log_loss"]).values()))
    gap = direct["auc"]
    np.testing.assert_allclose(list(vars(price.auc).values()), [-gap.estimate, -gap.high, -gap.low], atol=1e-12)
    assert found.figures == pytest.approx({"log_loss": kept.pooled["log_loss"], "auc": kept.pooled["auc"]})
    again = pr.prices(arm(schema), X, y, cv=3, seed=4, sample_weight=weight)
    assert again.to_dict() == found.to_dict()


def test_weights_and_seeds_count(rows):
    X, y = rows
    weight = np.random.default_rng(0).uniform(0.1, 5, N)
    plain, weighted, shuffled = (
        pr.prices(arm(schema_of()), X, y, cv=2, **options).figures["log_loss"]
        for options in ({}, {"sample_weight": weight}, {"seed": 1})
    )
    assert len({plain, weighted, shuffled}) == 3


def test_text_labels_and_a_good_outcome(rows):
    X, y = rows
    labels, opposite = np.where(y == 1, "bad", "good"), {"increasing": "decreasing", "decreasing": "increasing"}
    schema = schema_of(missing="not_better").replace(positive="bad")
    numbers = pr.prices(arm(schema_of(missing="not_better"), ridge=0.0), X, y, cv=2)
    texts = pr.prices(arm(schema, ridge=0.0), X.with_columns(bad=pl.Series(labels)), cv=2)
    assert texts.to_dict() == numbers.to_dict()
    turned = {n: {"direction": opposite.get(f.direction, "none")} for n, f in schema.features.items()}
    for name, fields in turned.items():
        schema = schema.edit(name, **fields)
    good = pr.prices(arm(schema.replace(positive="good", adverse="negative"), ridge=0.0), X, labels, cv=2)
    price, same = good["empty late not better"].log_loss, numbers["empty late not better"].log_loss
    assert price.low > 0
    assert price.estimate == pytest.approx(same.estimate, abs=1e-9)


def test_groups_stay_together_and_the_reader_is_told(rows):
    found = pr.prices(arm(schema_of()), *rows, cv=2, groups=np.arange(N) // 3)
    assert "too short" in repr(found)
    later = pr.prices(arm(schema_of()), *rows, cv=2, time=np.arange(N) // 500)
    assert (later.rows, later.folds, later.notes) == (1000, 2, ())


# ---- which rules there are


def changes(model, X):
    return {change.what: change for change in changes_of(model, X)}


def test_only_rules_that_some_row_meets_are_priced(rows):
    X, _ = rows
    schema = schema_of(missing="not_better").edit("income", special_values=[-9, -8], lower_bound=-2.0)
    rules = {"-9": "worst", "-8": "worst"}
    schema = schema.edit("income", special_rules=rules, below_bound="neutral", missing="error")
    schema = schema.edit("job", special_values=["cook", "boss"], special_rules={"cook": "not_better", "boss": "worst"})
    found = changes(arm(schema), X)
    assert list(found) == [
        "direction of late (increasing)",
        "direction of income (decreasing)",
        "both directions",
        "empty late not better",
        "income = -9 counts as the worst",
        "income < -2 has no effect",
        "job = cook not better",
        "all 4 rules for empty and special fields",
    ]
    lifted = {what: change.model.schema.features for what, change in found.items()}
    assert lifted["income = -9 counts as the worst"]["income"].special_rules == {"-9": "free", "-8": "free"}
    assert lifted["income < -2 has no effect"]["income"].below_bound == "free"
    assert lifted["job = cook not better"]["income"].special_rules["-9"] == "worst"
    assert all(features["income"].missing == "error" for features in lifted.values())
    late = lifted["direction of late (increasing)"]["late"]
    assert (late.direction, late.missing) == ("none", "not_better")


def test_the_rule_that_comes_with_a_direction_stays_without_it(rows):
    schema = pr.Schema(features={"late": {"direction": "increasing"}, "income": {}})
    found = changes(arm(schema), rows[0])
    assert list(found) == ["direction of late (increasing)", "empty late not better"]
    assert found["direction of late (increasing)"].model.schema.features["late"].missing == "not_better"
    assert found["empty late not better"].model.schema.features["late"].direction == "increasing"


def test_rules_that_no_row_meets_change_no_risk(rows):
    X, y = rows[0].with_columns(pl.col("late").fill_nan(0)), rows[1]
    schema = schema_of(missing="worst")
    risks = [cross_validate(arm(schema_of(missing=rule)), X, y, cv=2).risk for rule in ("worst", "free")]
    np.testing.assert_array_equal(*risks)
    assert not [what for what in changes(arm(schema), X) if "late" in what and "direction" not in what]


def test_texts_are_read_as_the_schema_says(rows):
    X = rows[0].select(late=pl.col("late").cast(pl.String).replace("NaN", "?"))
    schema = pr.Schema(features={"late": {"missing": "worst", "null_values": ["?"]}})
    assert list(changes(arm(schema), X)) == ["empty late counts as the worst"]


def test_an_ordered_category_that_applicants_can_move_in_loses_its_order(rows):
    job = {"kind": "categorical", "categories": ["cook", "clerk"], "direction": "increasing", "actionable": "up"}
    (change,) = changes_of(arm(pr.Schema(features={"job": job})), rows[0])
    assert change.model.schema.features["job"].direction == "none"
    found = pr.prices(arm(pr.Schema(features={"job": job})), *rows, cv=2)
    assert found.prices[0].note == ""


@pytest.mark.parametrize(
    "model",
    [
        pr.AdditiveRiskModel(pr.Schema(features={"late": {}, "income": {}})),
        pr.AdditiveRiskModel(),
        pr.BoostedRiskModel(schema_of(missing="worst")),
        pr.Linearised(pr.AdditiveRiskModel(pr.Schema(features={"late": {}})), pieces=3),
    ],
    ids=["free schema", "no schema", "trees keep none", "inside"],
)
def test_no_rules_no_prices(rows, model):
    X, y = rows[0].select("late", "income"), rows[1]
    assert changes_of(model, X) == ()
    if not isinstance(model, pr.BoostedRiskModel):
        found = pr.prices(model, X, y, cv=2)
        assert len(found) == 0
        assert repr(found) == found.verdict
        assert found.verdict.startswith("There is nothing to price")
        assert len(found.to_frame()) == 0
        assert found.to_dict()["prices"] == []


def test_rules_that_the_model_lifts_have_no_price(rows):
    assert list(changes(arm(schema_of(missing="worst"), rules="free"), rows[0])) == [
        "direction of late (increasing)",
        "direction of income (decreasing)",
        "both directions",
    ]


SUBSCALES = {"Past": ["late"], "Means": ["income", "job"]}


@pytest.mark.filterwarnings("ignore:BoostedRiskModel. trees read special values as plain numbers")
@pytest.mark.filterwarnings("ignore:.*the line is cut off")
@pytest.mark.parametrize("name", sorted(pr.CLASSIFIERS))
def test_every_classifier_with_directions_has_their_prices(rows, name):
    if "XGB" in name:
        pytest.importorskip("xgboost")
    schema = schema_of(income="increasing", missing="not_better").replace(subscales=SUBSCALES)
    found = pr.prices(pr.make_classifier(name, schema), *rows, cv=2)
    assert [price.note for price in found] == [""] * len(found)
    what = {price.what for price in found}
    if name in ("XGB", "MixXGB"):
        assert not what
        return
    assert {"direction of late (increasing)", "direction of income (increasing)", "both directions"} <= what
    assert ("empty late not better" in what) == ("XGB" not in name)
    assert ("no pairs" in what) == ("Smooth" in name)
    assert found["direction of income (increasing)"].auc.low > 0


def test_experts_of_a_mixture_by_name(rows):
    schema = schema_of(missing="not_better").replace(subscales=SUBSCALES)
    smooth = pr.AdditiveRiskModel(shapes="smooth")
    mixture = pr.SubscaleMixture({"Past": pr.AdditiveRiskModel(), "Means": smooth}, schema)
    found = changes(mixture, rows[0])
    assert {"empty late not better", "no pairs"} <= set(found)
    experts = found["no pairs"].model.estimator
    assert (experts["Past"].pairs, experts["Means"].pairs, smooth.pairs) == (None, "auto", None)
    foreign = pr.SubscaleMixture({"Past": LogisticRegression(), "Means": smooth}, schema)
    assert "empty late not better" not in changes(foreign, rows[0])


# ---- how it goes on


def test_a_fitted_model_is_left_as_it_is(rows):
    model = arm(schema_of()).fit(*rows)
    form, schema = model.form_, model.schema
    pr.prices(model, *rows, cv=2)
    assert model.form_ is form
    assert model.schema is schema


def test_progress_counts_all_fits_and_an_interrupt_ends_it(rows):
    told = []
    pr.prices(arm(schema_of()), *rows, cv=2, progress=lambda *state: told.append(state))
    assert [done for _, done, _ in told] == list(range(1, 9))
    assert {total for _, _, total in told} == {8}
    assert told[0][0] == "the model as it is"
    assert told[-1][0] == "both directions"

    def interrupt(what, done, total):
        if done == 3:
            raise KeyboardInterrupt("now")

    with pytest.raises(KeyboardInterrupt, match="now"):
        pr.prices(arm(schema_of()), *rows, cv=2, progress=interrupt)


def test_a_change_that_cannot_be_fitted_is_listed_last_with_the_reason(rows):
    X, y = rows
    model = arm(schema_of(income="increasing"))

    def validate(other, step):
        if other.schema.features["late"].direction == "none":
            raise ValueError("no optimum")
        return cross_validate(other, X, y, cv=2)

    found = price_changes(cross_validate(model, X, y, cv=2), changes_of(model, X), validate)
    assert [price.note for price in found] == ["", "not fitted: no optimum", "not fitted: no optimum"]
    assert "not fitted: no optimum" in repr(found)
    assert not found.prices[-1].clear


def test_what_cannot_be_priced_is_refused(rows):
    X, y = rows
    with pytest.raises(DataError, match="prices: model must be a classifier of plainrisk"):
        pr.prices(LogisticRegression(), X, y)
    with pytest.raises(DataError, match=r"prices: some sample_weight is 0\. Drop"):
        pr.prices(arm(schema_of()), X, y, sample_weight=np.zeros(N))
    with pytest.raises(SchemaError, match="feature 'lates' is not in the data"):
        pr.prices(arm(pr.Schema(features={"lates": {}})), X, y)
    with pytest.raises(DataError, match="cv must be 2 folds or more"):
        pr.prices(arm(schema_of()), X, y, cv=1)


# ---- what is shown


def price_of(what, low, high, note=""):
    return Price(what, "direction", what, Range((low + high) / 2, low, high), Range(0.0, 0.0, 0.0), note)


def test_the_table_and_the_verdict():
    listed = (price_of("a", 0.01, 0.03), price_of("b", -0.01, 0.01), price_of("c", -0.02, -0.01))
    found = Prices((*listed, Price("d", "rule", "d", UNKNOWN, UNKNOWN, "not fitted: x")), {"auc": 0.7}, 100, 5)
    assert found.verdict == "What costs accuracy beyond chance: a (0.0200 of log loss). 1 of them improves it."
    assert found.columns()["clear"] == [True, False, True, False]
    assert list(found.columns()) == [
        *("what", "log_loss", "log_loss_low", "log_loss_high", "auc", "auc_low", "auc_high", "clear", "note"),
    ]
    assert found.to_frame(pl.DataFrame())["what"].to_list() == ["a", "b", "c", "d"]
    assert json.loads(json.dumps(found.to_dict()))["prices"][0]["log_loss"]["low"] == 0.01
    assert "+0.0200 (+0.0100, +0.0300)" in repr(found)
    assert Prices(listed[1:2], {}, 9, 2).verdict == "Nothing costs accuracy beyond chance."


def test_of_many_intervals_some_are_clear_by_chance():
    found = Prices(tuple(price_of(str(k), 0.01, 0.03) for k in range(40)), {}, 100, 5)
    assert found.notes == ("Of 40 intervals of 95%, about 2 leave out 0 by chance alone.",)
    assert found.verdict.endswith(" and 37 more.")


def test_an_infinite_log_loss_is_clear_if_the_rule_makes_it():
    endless = Price("a", "direction", "a", Range(math.inf, math.nan, math.nan), UNKNOWN)
    assert endless.clear
    assert endless.sign == 1
    assert not Price("a", "direction", "a", UNKNOWN, UNKNOWN).clear


# ---- real data


def test_directions_of_home_equity_loans_are_nearly_free(data_folder, monkeypatch):
    if not (data_folder / "heloc.csv.gz").exists():
        pytest.skip("heloc is not on this machine: set PLAINRISK_DATA to the folder that holds it")
    monkeypatch.setenv("PLAINRISK_DATA", str(data_folder))
    heloc = pr.datasets.load("heloc")
    found = pr.prices(pr.AdditiveRiskModel(heloc.schema), heloc.frame, heloc.target, cv=2)
    assert found["all 16 directions"].log_loss.high < 0.002
