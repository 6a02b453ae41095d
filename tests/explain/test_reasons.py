from __future__ import annotations

import json

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pytest

import plainrisk as pr
from plainrisk.errors import DataError, SchemaError
from plainrisk.explain import reasons
from plainrisk.explain.contributions import mean_rate
from plainrisk.explain.options import ReasonOptions
from plainrisk.explain.reasons import reasoner
from plainrisk.explain.reference import Point, Reference
from plainrisk.form import Alone, Bins, Categories, Linear, Logistic, Mixture, PairTable, Part, RiskForm, Table


def zero_reference(form):
    """The applicant for whom every shape is 0."""
    return Reference("row", tuple(Point(dict.fromkeys(part.features, 0.0), part.intercept) for part in form.parts))


def decided(form, adverse=None, protected=(), **policy):
    """The form of a lender who decided otherwise."""
    features = {name: {"protected": name in protected} for name in form.schema.features}
    schema = form.schema.annotate({"policy": policy, "features": features})
    return msgspec.structs.replace(form, schema=schema if adverse is None else schema.replace(adverse=adverse))


def by_definition(form, levels, best, i, k, sign, rate):
    """The reasons against one row of a one-part form, from the definition: sort what each feature lost."""
    lost = []
    for place, name in enumerate(form.schema.features):
        loss = sign * rate * (form.parts[0].shapes[name].scores[levels[name][i]] - best[name])
        lost.append((-loss, place, name))
    return [(name, -loss) for loss, _, name in sorted(lost) if -loss > 1e-12][:k]


def best_seen(sign):
    def find(shape):
        labels = shape.levels.labels
        kept = [j for j in range(len(labels)) if shape.weights[j] > 0 and labels[j] not in ("missing", "unseen")]
        return sign * min(sign * shape.scores[j] for j in kept)

    return find


def training_mean(shape):
    return float(np.dot(shape.weights, shape.scores) / np.sum(shape.weights))


def said_of(form, name, level):
    levels = form.parts[0].shapes[name].levels
    label, title = levels.labels[level], form.schema.title(name)
    if label == "missing":
        return f"{title}: not given"
    if levels.n_ordered <= level < levels.missing:
        return f"{title}: code {label.removeprefix('= ')}"
    return form.schema.features[name].reason or title


def refused(model, X, n, sign):
    risk = model.predict_proba(X)[:, 1]
    bad = np.flatnonzero(sign * risk > sign * 0.5)
    return X[bad[:n]]


def check_by_brute_force(model, X, sign, reference, best_score):
    form = model.form_
    assert form.schema.worse == sign
    found = reasons(decided(form), X, 4, reference=reference)  # nothing is protected
    shapes = form.parts[0].shapes
    levels = {name: shape.levels.codes(form.align(X), name).tolist() for name, shape in shapes.items()}
    best = {name: best_score(shape) for name, shape in shapes.items()}
    start = form.parts[0].intercept + sum(best.values())
    rates = mean_rate(form.last_link, np.full(len(X), start), form.score(X))[0]
    for i, rate in enumerate(rates):
        wanted = by_definition(form, levels, best, i, 4, sign, rate)
        assert list(found.named(i)) == [name for name, _ in wanted]
        np.testing.assert_allclose(found.costs[i][: len(wanted)], [loss for _, loss in wanted], rtol=1e-9, atol=1e-12)
        words = [said_of(form, name, levels[name][i]) for name, _ in wanted]
        assert list(found.words(i)) == words
    return found


@pytest.mark.filterwarnings("ignore:.*the line is cut off")
@pytest.mark.parametrize("reference", ["best", "typical"])
def test_german_reasons_are_those_of_the_definition(reference):
    """German credit predicts the good outcome, so refused applicants have a low probability."""
    d = pr.datasets.load("german", backend="polars")
    scorer = {"best": best_seen(-1), "typical": training_mean}[reference]
    for link in ("logistic", "linear"):
        model = pr.AdditiveRiskModel(d.schema, link=link).fit(d.frame, d.target)
        check_by_brute_force(model, d.frame, -1, reference, scorer)


def test_heloc_reasons_are_those_of_the_definition(data_folder, monkeypatch):
    monkeypatch.setenv("PLAINRISK_DATA", str(data_folder))
    d = pr.datasets.load("heloc", backend="polars")
    model = pr.AdditiveRiskModel(d.schema).fit(d.frame, d.target)
    X = refused(model, d.frame, 1000, 1)
    assert len(X) == 1000
    check_by_brute_force(model, X, 1, "best", best_seen(1))
    check_by_brute_force(model, X, 1, "typical", training_mean)
    # In bands the rate is another, and the order stays.
    banded = pr.linearise(model, d.frame, pieces=3)
    flat, curved = (m.reasons(X) for m in (banded, model))
    np.testing.assert_array_equal(flat.codes, curved.codes)


# ---- one small form, worked by hand


def table(levels, scores, weights=None):
    n = len(levels)
    return Table(levels=levels, scores=tuple(scores), weights=weights or (5.0,) * n, positives=(1.0,) * n)


def small_form(features=None, scores=None, **schema):
    features = features or {name: {"reason": f"{name} is too high"} for name in "abcdef"}
    scores = scores or {"a": 0.05, "b": 0.10, "c": 0.15, "d": 0.02, "e": 0.0, "f": -0.2}
    shapes = {name: table(Bins((0.0,)), (0.0, scores[name], 0.0)) for name in features}
    part = Part(name="all", intercept=0.3, shapes=shapes, link=Linear())
    return RiskForm(
        schema=pr.Schema(features=features, **schema),
        columns=tuple(features),
        classes=(0, 1),
        parts=(part,),
        pool=Alone(),
    )


HIGH = dict.fromkeys("abcdef", 1.0)
LOW = dict.fromkeys("abcdef", -1.0)


def test_only_what_counts_against_the_applicant_is_a_reason():
    found = reasons(small_form(), HIGH, 6, reference=LOW)
    assert found.named(0) == ("c", "b", "a", "d")  # e does nothing, f helps
    assert found.costs[0][:4].tolist() == pytest.approx([0.15, 0.10, 0.05, 0.02])
    assert found.codes[0, 4:].tolist() == [-1, -1]
    assert reasons(small_form(), HIGH, 2, reference=LOW).named(0) == ("c", "b")
    assert reasons(decided(small_form(), adverse="negative"), HIGH, 2, reference=LOW).named(0) == ("f",)


def test_against_the_best_the_own_best_level_is_no_reason():
    found = reasons(small_form(), {**HIGH, "f": -1.0}, 6)
    assert found.named(0) == ("f", "c", "b", "a", "d")
    assert found.costs[0][0] == pytest.approx(0.2)  # 0 instead of -0.2


def test_a_table_has_nothing_where_there_is_no_reason():
    data = pr.datasets.load("german")
    model = pr.make_classifier("ARM1", data.schema).fit(data.frame, data.target)
    reasons = model.reasons(data.frame, k=len(data.schema.features))
    table = reasons.to_frame()
    missing = 0
    for j in range(reasons.codes.shape[1]):
        said = [j < len(reasons.words(i)) for i in range(len(reasons))]
        assert [text is not None for text in table[f"reason_{j + 1}"]] == said
        assert [name is not None for name in table[f"feature_{j + 1}"]] == said
        missing += said.count(False)
    assert missing > 0


def test_against_a_given_applicant():
    form = small_form()
    found = reasons(form, HIGH, 4, reference={**LOW, "c": 1.0})
    assert found.named(0) == ("b", "a", "d")
    assert found.reference == "row"


def test_ties_go_by_the_schemas_order():
    scores = dict.fromkeys("abcdef", 0.1)
    found = reasons(small_form(scores=scores), HIGH, 3, reference=LOW)
    assert found.named(0) == ("a", "b", "c")
    turned = {name: {} for name in "fedcba"}
    assert reasons(small_form(turned, scores), HIGH, 3, reference=LOW).named(0) == ("f", "e", "d")


def test_the_subscale_that_cost_most_comes_first():
    form = small_form(subscales={"one": ("a", "c", "f"), "two": ("b", "d")})
    grouped = decided(form, order="subscale")
    found = reasons(grouped, HIGH, 3, reference=LOW)
    # Subscale one: 0.05 + 0.15 - 0.2 = 0; two: 0.12. The three reasons are c, b and a in any order.
    assert found.named(0) == ("b", "c", "a")
    assert found.subscales[found.codes[0, 0]] == "two"
    assert found.subscale_costs[0].tolist() == pytest.approx([0.12, 0.0, 0.0])
    assert [r["subscale_cost"] for r in found.to_dict(0)["reasons"]] == pytest.approx([0.12, 0.0, 0.0])
    without_f = reasons(grouped, {**HIGH, "f": -1.0}, 3, reference=LOW)
    assert without_f.named(0) == ("c", "a", "b")
    assert reasons(form, HIGH, 3, reference=LOW).subscale_costs is None
    assert reasons(form, HIGH, 3, reference=LOW).named(0) == ("c", "b", "a")


def test_protected_features_are_never_named_and_that_is_reported():
    form = small_form()
    both = {name: [HIGH[name], LOW[name]] for name in HIGH}
    found = reasons(decided(form, protected=["c", "e"]), both, 2, reference=LOW)
    assert found.named(0) == ("b", "a")
    assert found.protected == ("c", "e")
    assert found.withheld.tolist() == [1, 0]
    assert found.to_dict(0)["withheld"] == 1
    assert "withheld" in found.columns()
    small = reasons(decided(form, protected=["d"]), HIGH, 2, reference=LOW)
    assert small.withheld.tolist() == [0], "d costs less than the two that are named"


def test_the_same_words_are_said_once():
    features = {name: {"reason": "Debt is too high" if name in "abd" else name} for name in "abcdef"}
    found = reasons(small_form(features), HIGH, 4, reference=LOW)
    assert found.words(0) == ("Debt is too high", "c")
    assert found.costs[0][:2].tolist() == pytest.approx([0.05 + 0.10 + 0.02, 0.15])
    assert found.named(0) == ("a", "c")


def test_an_inquiry_is_a_further_reason():
    form = small_form()
    assert reasons(decided(form, inquiries=["d", "a"]), HIGH, 2, reference=LOW).named(0) == ("c", "b", "a")
    asked = decided(form, inquiries=["a"])
    assert reasons(asked, HIGH, 3, reference=LOW).named(0) == ("c", "b", "a"), "it is named already"
    assert reasons(decided(form, inquiries=["f"]), HIGH, 2, reference=LOW).named(0) == ("c", "b"), "it helps"
    with pytest.raises(SchemaError, match="inquiries names 'a', which is protected"):
        decided(asked, protected=["a"])


def test_words_per_bin_per_special_value_and_per_category():
    features = {
        "age": {
            "special_values": [-9],
            "reason": "Age",
            "reasons": {"-9": "No record of age", "x <= 30": "Too young", "missing": "Age is missing"},
        },
        "job": {"kind": "categorical", "categories": ["a", "b"], "reason": "Job", "reasons": {"b": "Job is unstable"}},
    }
    shapes = {
        "age": table(Bins((30.0, 50.0), (-9.0,)), (0.2, 0.1, 0.0, 0.3, 0.15)),
        "job": table(Categories(("a", "b"), 2), (0.05, 0.12, 0.0, 0.04)),
    }
    part = Part(name="all", intercept=0.1, shapes=shapes, link=Linear())
    schema = pr.Schema(features=features)
    form = RiskForm(schema=schema, columns=("age", "job"), classes=(0, 1), parts=(part,), pool=Alone())
    X = {"age": [25.0, 40.0, -9.0, np.nan], "job": ["b", "a", "z", "b"]}
    found = reasons(form, X, 2, reference=zero_reference(form))
    assert [found.words(i) for i in range(4)] == [
        ("Too young", "Job is unstable"),
        ("Age", "Job"),
        ("No record of age", "Job"),
        ("Age is missing", "Job is unstable"),
    ]
    lost = {"x <= 31": "Too young"}
    wrong = msgspec.structs.replace(schema.features["age"], reasons=lost)
    broken = msgspec.structs.replace(form, schema=pr.Schema(features={**schema.features, "age": wrong}))
    with pytest.raises(SchemaError, match=r"words for 'x <= 31', which is no level .* Did you mean 'x <= 30'"):
        reasons(broken, X)


def test_words_that_two_levels_share_are_merged_where_both_apply():
    features = {n: {"special_values": [-9], "reason": n, "reasons": {"-9": "No record"}} for n in ("u", "v")}
    levels = Bins((0.0,), (-9.0,))
    shapes = {n: table(levels, (0.0, 0.1, 0.2, 0.0)) for n in features}
    part = Part(name="all", intercept=0.1, shapes=shapes, link=Linear())
    form = RiskForm(
        schema=pr.Schema(features=features), columns=("u", "v"), classes=(0, 1), parts=(part,), pool=Alone()
    )
    found = reasons(form, {"u": [-9.0, -9.0, 1.0], "v": [-9.0, 1.0, -9.0]}, 2, reference=zero_reference(form))
    assert [found.words(i) for i in range(3)] == [("No record",), ("No record", "v"), ("No record", "u")]
    assert found.costs[0][0] == pytest.approx(0.4)


# ---- any form


@pytest.mark.parametrize("seed", range(25))
def test_any_form_gives_its_largest_losses(make_form, every_row, seed):
    """The losses are the contributions of `explain`; a feature in two subscales counts once, with both."""
    form = make_form(seed)
    row = {"age": [25.0], "job": ["b"], "debt": [2.0], "rent": [5.0]}
    explained = form_explained(form, every_row, row)
    found = reasons(form, every_row, 3, reference=row)
    for i in range(0, 450, 7):
        sums = {}
        for name, amount in zip(explained.features, explained.contributions[i], strict=True):
            sums[name] = sums.get(name, 0.0) + amount
        place = list(form.schema.features).index
        wanted = sorted((n for n, v in sums.items() if v > 1e-12), key=lambda n: (-sums[n], place(n)))[:3]
        lost = [sums[n] for n in wanted]
        np.testing.assert_allclose(found.costs[i][: len(lost)], lost, rtol=0, atol=1e-12)
        if len(set(np.round(lost, 12))) == len(lost):
            assert list(found.named(i)) == wanted


def form_explained(form, X, row):
    return pr.RiskModel(form).explain(X, reference=row)


def test_experts_of_trees_are_named_by_their_subscale(make_form, every_row):
    form = next(f for f in (make_form(s, trees=True) for s in range(40)) if isinstance(f.pool, Mixture))
    row = {"age": [25.0], "job": ["b"], "debt": [2.0], "rent": [5.0]}
    whole = reasons(form, every_row, 4, reference=row)
    assert "trees" in whole.candidates


def test_a_pair_is_shared_between_its_features_by_shapleys_rule():
    scores = np.array([[0.0, 0.02, 0.0], [0.05, 0.25, 0.0], [0.0, 0.0, 0.0]])
    counts = tuple(map(tuple, (np.array([[3.0, 1.0, 0.0], [2.0, 2.0, 0.0], [0.0] * 3])).tolist()))
    pair = PairTable(
        features=("a", "b"),
        levels=(Bins((0.0,)), Bins((0.0,))),
        scores=tuple(map(tuple, scores.tolist())),
        weights=counts,
        positives=counts,
    )
    part = Part(
        name="all", intercept=0.1, shapes={"a": table(Bins((0.0,)), (0.0, 0.03, 0.0))}, pairs=(pair,), link=Linear()
    )
    schema = pr.Schema(features={"a": {}, "b": {}})
    form = RiskForm(schema=schema, columns=("a", "b"), classes=(0, 1), parts=(part,), pool=Alone())
    high = {"a": 1.0, "b": 1.0}
    found = reasons(form, high, reference={"a": -1.0, "b": -1.0})
    # a: 0.03 of its own, and half of (0.05 - 0) + (0.25 - 0.02); b: half of (0.02 - 0) + (0.25 - 0.05)
    assert found.named(0) == ("a", "b")
    assert found.costs[0, :2].tolist() == pytest.approx([0.03 + 0.14, 0.11])
    assert found.words(0) == ("a", "b")
    # Against the typical applicant each f at the reference is a mean over the training rows.
    mean = (1 * 0.02 + 2 * 0.05 + 2 * 0.25) / 8
    of_a = ((5 * 0.05 + 3 * 0.25) / 8 - mean) / 2 + (0.25 - (4 * 0.02 + 4 * 0.25) / 8) / 2
    typical = reasons(form, high, reference="typical")
    assert dict(zip(typical.named(0), typical.costs[0], strict=False)) == pytest.approx(
        {"a": 0.03 - 0.01 + of_a, "b": 0.25 - mean - of_a}
    )


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("reference", ["best", "typical", "row"])
def test_reasons_of_pairs_name_features_only_and_add_up(make_form, every_row, seed, reference):
    form = make_form(seed, pairs=True)
    given = {"age": [25.0], "job": ["b"], "debt": [2.0], "rent": [5.0]}
    explain = reasoner(form, ReasonOptions(reference=given if reference == "row" else reference)).explainer
    found = explain.explain(every_row)
    assert set(found.features) == set(form.features)
    np.testing.assert_allclose(found.total, form.risk(every_row), rtol=0, atol=1e-12)
    if reference == "row":  # whoever does not differ in a feature is not told of it
        for name, column in zip(found.features, found.contributions.T, strict=True):
            same = np.array([v == given[name][0] for v in every_row[name]])
            np.testing.assert_allclose(column[same], 0.0, atol=1e-15)


# ---- handing on


def test_as_frame_and_json():
    X = pd.DataFrame([HIGH, LOW])
    found = reasons(small_form(), X, 2, reference=LOW)
    for like in (pd.DataFrame(), pl.DataFrame()):
        frame = found.to_frame(like)
        assert type(frame) is type(like)
        assert frame["reason_1"][0] == "c is too high"
        assert frame["feature_2"][0] == "b"
        assert list(frame.columns) == ["risk", *(f"{a}_{j}" for j in (1, 2) for a in ("reason", "feature", "cost"))]
    plain = json.loads(json.dumps(found.to_dict()))
    assert [r["reason"] for r in plain[0]["reasons"]] == ["c is too high", "b is too high"]
    assert plain[1]["reasons"] == []
    assert "decision" not in plain[0], "there is no cut-off to decide by"


def test_letters_go_by_the_decision():
    """Defect: a letter of refusal was written to whoever was approved."""
    form = decided(small_form(), cutoff=0.4)
    refused = reasons(form, HIGH, 2, reference=LOW)  # 0.42
    assert refused.to_dict(0)["decision"] == "refused"
    assert "Principal reasons for this decision:\n\n  1. c is too high\n  2. b is too high\n" in refused.letter()
    assert "with another application" in refused.letter()
    assert "with the strongest applications" in reasons(form, HIGH, 2).letter()
    approved = reasons(form, LOW, 2)
    assert approved.to_dict(0)["decision"] == "approved"
    assert "is approved" in approved.letter()
    assert "too high" not in approved.letter()
    nothing = reasons(decided(form, protected="abcdef"), HIGH, 2, reference=LOW)
    assert "we will explain" in nothing.letter()
    own = decided(form, letter={"refused": "Abgelehnt: {reasons}", "approved": "Ja"})
    assert reasons(own, HIGH, 1, reference=LOW).letter() == "Abgelehnt:   1. c is too high"
    assert reasons(own, LOW, 1, reference=LOW).letter() == "Ja"
    with pytest.raises(DataError, match="There is no row 2"):
        refused.letter(2)
    with pytest.raises(DataError, match="letter: the model has no cut-off"):
        reasons(small_form(), HIGH).letter()


@pytest.mark.parametrize("adverse", ["positive", "negative"])
def test_the_refused_are_those_of_one_comparison(adverse):
    """A probability at the cut-off: of the bad outcome it refuses, of the good one it approves."""
    form = small_form(scores={"a": 0.2, "b": 0.0, "c": 0.0, "d": 0.0, "e": 0.0, "f": 0.0})
    risk = float(form.risk(HIGH)[0])
    model = pr.RiskModel(decided(form, adverse=adverse, cutoff=risk))
    assert model.decide(HIGH).refused.tolist() == [adverse == "positive"]
    higher = pr.RiskModel(decided(form, adverse=adverse, cutoff=np.nextafter(risk, 1)))
    assert higher.decide(HIGH).refused.tolist() == [adverse == "negative"]


def test_decisions_give_reasons_to_the_refused_alone():
    model = pr.RiskModel(decided(small_form(), cutoff=0.4, protected=["c"]))
    found = model.decide(pd.DataFrame([HIGH, LOW]), k=2)
    columns = found.columns()
    assert list(columns)[:3] == ["risk", "decision", "reason_1"]
    assert columns["decision"].tolist() == ["refused", "approved"]
    assert columns["feature_1"].tolist() == ["b", None]
    assert columns["withheld"].tolist() == [1, 0]
    assert np.isnan(columns["cost_1"][1])
    assert found.to_dict(1) == {**found.to_dict(1), "decision": "approved", "reasons": [], "withheld": 0}
    assert "1 refused" in repr(found)
    with pytest.raises(DataError, match="decide: the policy compares applicants with 'best'"):
        model.decide(pd.DataFrame([HIGH, LOW]), reference=LOW)
    with pytest.raises(DataError, match="decide: the model has no cut-off"):
        pr.RiskModel(small_form()).decide(HIGH)


def test_a_call_asks_for_fewer_reasons_than_the_policy_never_for_more():
    form = decided(small_form(), reasons=2)
    assert reasons(form, HIGH, reference=LOW).named(0) == ("c", "b")
    assert reasons(form, HIGH, 1, reference=LOW).named(0) == ("c",)
    with pytest.raises(DataError, match="k = 3, but the model's policy allows 2"):
        reasons(form, HIGH, 3)
    assert len(reasons(small_form(), HIGH, 6, reference=LOW).codes[0]) == 6, "where none is stated, any number"


def test_the_policy_says_what_applicants_are_compared_with():
    assert reasons(decided(small_form(), reference="typical"), HIGH).reference == "typical"
    assert reasons(decided(small_form(), reference="typical"), HIGH, reference="best").reference == "best"


def test_blocks_do_not_matter():
    d = pr.datasets.make_credit(400, 2)
    model = pr.AdditiveRiskModel(d.schema).fit(d.frame, d.target)
    many = pl.concat([d.frame] * 170)  # more than two blocks
    assert len(many) > 2**16
    asked = model.annotate({"policy": {"inquiries": ["inquiries"]}})
    one, all_of_them = asked.reasons(d.frame), asked.reasons(many)
    np.testing.assert_array_equal(np.tile(one.codes, (170, 1)), all_of_them.codes)
    np.testing.assert_array_equal(np.tile(one.costs, (170, 1)), all_of_them.costs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be None or a whole number of at least 1"),
        ({"k": 2.5}, "k must be None or a whole number"),
        ({"reference": "worst"}, "reference must be 'best', 'typical', a row or None"),
        ({"reference": "constant"}, "reference must be 'best', 'typical', a row or None"),
        ({"against": "best"}, "there is no option 'against'"),
        ({"barred": []}, "there is no option 'barred'"),
        ({"adverse": "positive"}, "there is no option 'adverse'"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(DataError, match=message):
        reasons(small_form(), HIGH, **options)


def test_logistic_losses_are_pieces_of_the_probability():
    form = small_form()
    curved = msgspec.structs.replace(form, parts=(msgspec.structs.replace(form.parts[0], link=Logistic()),))
    found = reasons(curved, HIGH, 2, reference=LOW)
    assert found.unit == "probability"
    rate = (found.risk[0] - curved.risk(LOW)[0]) / 0.12  # the scores of all features add up to 0.12
    assert found.costs[0].tolist() == pytest.approx([0.15 * rate, 0.10 * rate])


def test_default_words_for_what_is_no_measurement():
    """Defect: the reason for a missing value was the feature's name, or words that speak of a value."""
    features = {
        "DEBTINC": {"special_values": [-9, -8], "lower_bound": 0},
        "CLNO": {"reason": "Too many credit lines", "special_values": [-9]},
        "JOB": {"kind": "categorical", "categories": ["a"], "special_values": ["none"]},
        "AGE": {"reasons": {"missing": "Age was not given"}},
    }
    shapes = {
        "DEBTINC": table(Bins((30.0,), (-9.0, -8.0), 0.0), (0.0, 0.04, 0.04, 0.04, 0.04, 0.04)),
        "CLNO": table(Bins((5.0,), (-9.0,)), (0.0, 0.03, 0.03, 0.03)),
        "JOB": table(Categories(("a", "none"), 1), (0.0, 0.02, 0.02, 0.02)),
        "AGE": table(Bins((40.0,)), (0.0, 0.01, 0.01)),
    }
    part = Part(name="all", intercept=0.1, shapes=shapes, link=Linear())
    schema = pr.Schema(features=features)
    form = RiskForm(schema=schema, columns=tuple(features), classes=(0, 1), parts=(part,), pool=Alone())
    X = {
        "DEBTINC": [np.nan, -9.0, -3.0, 50.0],
        "CLNO": [np.nan, -9.0, 9.0, 9.0],
        "JOB": [None, "none", "z", "a"],
        "AGE": [np.nan, 50.0, 50.0, 50.0],
    }
    found = reasons(form, X)
    assert [found.words(i) for i in range(4)] == [
        ("DEBTINC: not given", "CLNO: not given", "JOB: not given", "Age was not given"),
        ("DEBTINC: code -9", "CLNO: code -9", "JOB: none", "AGE"),
        ("DEBTINC is below 0", "Too many credit lines", "JOB", "AGE"),
        ("DEBTINC", "Too many credit lines", "AGE"),
    ]
    assert "  1. DEBTINC: not given\n" in reasons(decided(form, cutoff=0.01), X).letter(0)


def test_default_words_beside_trees(make_form):
    form = next(f for f in (make_form(s, trees=True) for s in range(40)) if isinstance(f.pool, Mixture))
    row = {"age": [25.0], "job": ["b"], "debt": [2.0], "rent": [5.0]}
    X = {"age": [np.nan], "job": [None], "debt": [np.nan], "rent": [np.nan]}
    for adverse in ("positive", "negative"):
        found = reasons(decided(form, adverse=adverse), X, 4, reference=row)
        for name, text in zip(found.named(0), found.words(0), strict=True):
            assert text == (name if name == "trees" else f"{name}: not given")


# ---- one applicant at a time


@pytest.mark.parametrize("name", ["SmoothARM1", "MixARM1", "NNLR"])
def test_reasons_of_one_row_are_those_it_has_in_any_company(name):
    german = pr.datasets.load("german", backend="polars")
    numbers = [n for n, f in german.schema.features.items() if f.kind == "continuous"]
    frame, schema = german.frame, german.schema
    if name == "NNLR":  # lines; the best of one needs rows, so the typical applicant is asked for
        frame, schema = frame.select(numbers), pr.Schema(features={n: schema.features[n] for n in numbers})
    reference = "typical" if name == "NNLR" else "best"
    model = pr.make_classifier(name, schema).fit(frame, german.target)
    rows = frame[:40].with_columns(pl.when(pl.arange(40) % 7 == 0).then(None).otherwise(pl.col(numbers[0])))
    found = model.reasons(rows.rename({}), reference=reference)
    for i, row in enumerate(rows.to_dicts()):
        alone = model.reasons(row, reference=reference)
        assert alone.words(0) == found.words(i)
        np.testing.assert_array_equal(alone.costs[0], found.costs[i])
        assert alone.risk[0] == found.risk[i]


def test_options_are_not_mixed_up_between_calls():
    german = pr.datasets.load("german", backend="polars")
    model = pr.AdditiveRiskModel(german.schema).fit(german.frame, german.target)
    row = german.frame[:1]
    first = model.reasons(row, k=2)
    protected = model.annotate({"features": {name: {"protected": True} for name in first.named(0)}})
    assert not set(protected.reasons(row, k=2).named(0)) & set(first.named(0))
    for k in range(1, 12):  # more than are kept
        assert len(model.reasons(row, k=k).codes[0]) == k
    assert model.reasons(row, k=2).words(0) == first.words(0)


def test_trees_that_read_a_protected_feature_are_never_named(make_form, every_row):
    """An expert of trees is one candidate: naming it would name what it reads."""
    form = next(f for f in (make_form(s, trees=True) for s in range(40)) if isinstance(f.pool, Mixture))
    row = {"age": [25.0], "job": ["b"], "debt": [2.0], "rent": [5.0]}
    trees = next(part for part in form.parts if part.name == "trees")
    for name in trees.features:
        found = reasons(decided(form, protected=[name]), every_row, 9, reference=row)
        assert not {"trees", name} & {n for i in range(len(found)) for n in found.named(i)}
        assert {"trees", name} >= set(found.protected) > {name} - {name}
