from __future__ import annotations

import itertools

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plainrisk as pr
from plainrisk.decision import refused
from plainrisk.errors import DataError
from plainrisk.explain import what_if, what_ifs
from plainrisk.explain.atoms import atoms_of, value_frame
from plainrisk.form import Alone, Bins, Categories, Line, Linear, Logistic, Part, RiskForm, Table

ADVERSE = {1: "positive", -1: "negative"}
BINS = {"age": (3, 2), "debt": (4, 3), "rent": (2, 1)}  # places, edges


def seen(form, name):
    """The bins or categories that training rows had in every part, by number."""
    shapes = [p.shapes[name] for p in form.parts if isinstance(p, Part) and name in p.shapes]
    n = shapes[0].levels.n_ordered if shapes else {"debt": 4, "rent": 3, "job": 1}[name]
    return [j for j in range(n) if all(s.weights[j] > 0 for s in shapes)]


def exhaustive(form, row, target, frozen=(), count=True, sign=1):
    """Return the cheapest (price, features) over all combinations of moves, and the best risk, by brute force."""
    values = {"age": [25.0, 35.0, 45.0], "debt": [0.0, 1.0, 2.0, 3.0], "rent": [5.0, 15.0], "job": ["a", "b", "c"]}
    used = {name for part in form.parts for name in part.features}
    options = []
    for name in form.schema.features:
        here = row[name]
        stay = [(here, 0.0, 0)]
        feature = form.schema.features[name]
        if name in used and name not in frozen and feature.actionable != "fixed":
            now = _place(name, here)
            for j in seen(form, name):
                if j == now or not _allowed(feature, now, j):
                    continue
                steps = 1 if now is None or name == "job" else abs(j - now)
                stay.append((values[name][j], steps * feature.step_cost, 1))
        options.append(stay)
    combos = list(itertools.product(*options))
    X = {name: [c[i][0] for c in combos] for i, name in enumerate(form.schema.features)}
    X = {n: np.array(v, dtype=object if n == "job" else float) for n, v in X.items()}
    risk = form.risk(X)
    price = np.array([sum(o[1] for o in c) + (1000.0 * sum(o[2] for o in c) if count else 0.0) for c in combos])
    good = ~refused(risk, target, ADVERSE[sign])
    return (float(price[good].min()) if good.any() else None), float(sign * (sign * risk).min())


def _place(name, value):
    if name == "job":
        return {"a": 0, "b": 1, "c": 2}.get(value)
    if value != value or (name == "age" and value < 0):
        return None
    return int(np.searchsorted({"age": [30, 40], "debt": [0.5, 1.5, 2.5], "rent": [10]}[name], value))


def _allowed(feature, now, to):
    if feature.actionable == "free":
        return True
    return now is not None and (to > now if feature.actionable == "up" else to < now)


rows = st.fixed_dictionaries({
    "age": st.sampled_from([25.0, 35.0, 45.0, -9.0, -1.0, np.nan]),
    "job": st.sampled_from(["a", "b", "c", None, "z"]),
    "debt": st.sampled_from([0.0, 1.0, 2.0, 3.0, np.nan]),
    "rent": st.sampled_from([5.0, 15.0, np.nan]),
})  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    row=rows,
    target=st.floats(0.02, 0.9),
    adverse=st.sampled_from(["positive", "negative"]),
    frozen=st.sets(st.sampled_from(["age", "job", "debt", "rent"]), max_size=2),
    cost=st.sampled_from(["features", "steps"]),
)
def test_the_answer_is_the_cheapest_there_is(make_form, seed, row, target, adverse, frozen, cost):
    fields = {"age": {"step_cost": 2.0, "actionable": "up"}, "debt": {"step_cost": 0.5}}
    form = make_form(seed, features=fields, adverse=adverse)
    sign = 1 if adverse == "positive" else -1
    best, furthest = exhaustive(form, row, target, frozen, cost == "features", sign)
    found = what_if(form, row, target, frozen=frozen, cost=cost, answers=1)
    assert found.reached == (best is not None)
    if refused(found.risk, target, adverse):  # else nothing needs to change, and nobody looks how far one could go
        assert found.reachable.risk == furthest
    if best is not None:
        answer = found.answers[0]
        price = answer.cost + (1000.0 * len(answer.changes) if cost == "features" else 0.0)
        assert price == pytest.approx(best, abs=1e-9)
        assert not refused(answer.risk, target, adverse)
        changed = {**row, **{c.feature: c.to_value for c in answer.changes}}
        assert answer.risk == form.risk({k: np.array([v], dtype=object if k == "job" else float) for k, v in changed.items()})[0]  # fmt: skip  # noqa: E501
        assert not set(frozen) & set(answer.features)


def exhaustive_by_atoms(form, row, target, frozen, count, sign):
    """The same by brute force over the atoms of every feature, which may lie between the edges of shapes."""
    options = []
    for name, atoms in atoms_of(form).items():
        feature, levels = form.schema.features[name], atoms.levels
        now = int(levels.codes(value_frame({name: [row[name]]}), name)[0])
        stay = [(row[name], 0.0, 0)]
        for j in range(levels.n_ordered) if name not in frozen and feature.actionable != "fixed" else ():
            here = now if now < levels.n_ordered else None
            if atoms.seen[j] and j != now and _allowed(feature, here, j):
                steps = 1 if here is None or name == "job" else abs(j - now)
                stay.append((atoms.values[j], steps * feature.step_cost, 1))
        options.append(stay)
    combos = list(itertools.product(*options))
    columns = dict(zip(form.features, zip(*[[o[0] for o in c] for c in combos], strict=True), strict=True))
    risk = form.risk(value_frame(columns))
    price = np.array([sum(o[1] for o in c) + (1000.0 * sum(o[2] for o in c) if count else 0.0) for c in combos])
    good = ~refused(risk, target, ADVERSE[sign])
    return (float(price[good].min()) if good.any() else None), float(sign * (sign * risk).min())


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    row=rows,
    target=st.floats(0.02, 0.9),
    adverse=st.sampled_from(["positive", "negative"]),
    frozen=st.sets(st.sampled_from(["age", "job", "debt", "rent"]), max_size=2),
    cost=st.sampled_from(["features", "steps"]),
    trees=st.booleans(),
)
def test_with_pairs_the_answer_is_the_cheapest_there_is(make_form, seed, row, target, adverse, frozen, cost, trees):
    fields = {"age": {"step_cost": 2.0, "actionable": "up"}, "debt": {"step_cost": 0.5}}
    form = make_form(seed, features=fields, pairs=True, trees=trees, adverse=adverse)
    row, frozen = {name: row[name] for name in form.features}, frozen & set(form.features)
    sign = 1 if adverse == "positive" else -1
    best, furthest = exhaustive_by_atoms(form, row, target, frozen, cost == "features", sign)
    found = what_if(form, row, target, frozen=frozen, cost=cost, answers=1)
    assert found.reached == (best is not None)
    if refused(found.risk, target, adverse):
        assert found.reachable.risk == pytest.approx(furthest, abs=1e-12)
    if best is not None:
        answer = found.answers[0]
        price = answer.cost + (1000.0 * len(answer.changes) if cost == "features" else 0.0)
        assert price == pytest.approx(best, abs=1e-9)
        assert not refused(answer.risk, target, adverse)
        changed = {**row, **{c.feature: c.to_value for c in answer.changes}}
        assert answer.risk == form.risk(value_frame({name: [value] for name, value in changed.items()}))[0]
        assert not set(frozen) & set(answer.features)


def test_with_pairs_a_target_hit_exactly_is_reached_but_for_rounding(make_form):
    row = {"age": 25.0, "job": "c", "debt": 3.0, "rent": 15.0}
    tried = 0
    for seed in range(40):
        form = make_form(seed, pairs=True)
        own = {name: row[name] for name in form.features}
        furthest = what_if(form, own, 0.0, answers=1).reachable.risk
        target = float(np.nextafter(furthest, 1))
        tried += furthest < form.risk(value_frame({name: [value] for name, value in own.items()}))[0]
        found = what_if(form, own, target, answers=1)
        assert found.reached == (target < 1), seed
        if target == 1:  # nothing is below a risk of 1
            continue
        nearly, _ = exhaustive_by_atoms(form, own, target + 1e-12, (), True, 1)
        answer = found.answers[0]
        assert answer.cost + 1000 * len(answer.changes) >= nearly
        assert answer.risk < target
    assert tried > 20


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_with_pairs_further_answers_are_the_cheapest_that_leave_something_out(make_form, seed):
    form = make_form(seed, pairs=True)
    row = {"age": 25.0, "job": "c", "debt": 3.0, "rent": 15.0}
    row = {name: row[name] for name in form.features}
    target = 0.8 * form.risk(value_frame({name: [value] for name, value in row.items()}))[0]
    found = what_if(form, row, target, answers=3).answers
    for later, answer in enumerate(found[1:], 1):
        before = [set(a.features) for a in found[:later]]
        # One feature of every answer before is held; the best such choice is this answer.
        prices = [
            exhaustive_by_atoms(form, row, target, set(held), True, 1)[0] for held in set(itertools.product(*before))
        ]
        least = min(price for price in prices if price is not None)
        assert answer.cost + 1000.0 * len(answer.changes) == pytest.approx(least, abs=1e-9)


def test_a_target_hit_exactly_is_reached(make_form, every_row):
    """Targets that are the risk of some combination of levels, to the last bit, in every kind of form."""
    rng = np.random.default_rng(5)
    for seed in range(40):
        form = make_form(seed)
        row = {"age": 25.0, "job": "c", "debt": 3.0, "rent": 15.0}
        measured = every_row
        inside = (measured["age"] > 0) & np.isin(measured["job"].astype(str), ["a", "b", "c"])
        inside &= ~np.isnan(measured["debt"]) & ~np.isnan(measured["rent"])
        hit = float(rng.choice(form.risk({k: v[inside] for k, v in measured.items()})))
        target = float(np.nextafter(hit, 1))  # a risk at the cut-off is refused, one just below it is approved
        best, _ = exhaustive(form, row, target)
        found = what_if(form, row, target, answers=1)
        assert found.reached == (best is not None), seed
        if best is not None:
            answer = found.answers[0]
            assert answer.cost + 1000 * len(answer.changes) == best


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), row=rows, target=st.floats(0.05, 0.8))
def test_parts_of_trees_too(make_form, seed, row, target):
    form = make_form(seed, trees=True)
    if isinstance(form.pool, Alone):
        return
    jobs = [["a", "b", "c"][j] for j in seen(form, "job")]
    free = {"debt": [0.0, 1.0, 2.0, 3.0], "rent": [5.0, 11.0, 15.0], "job": jobs}
    found = what_if(form, row, target, frozen=["age"], answers=1)
    combos = list(itertools.product(*([row[n], *v] for n, v in free.items())))
    X = {n: np.array([c[i] for c in combos], dtype=object if n == "job" else float) for i, n in enumerate(free)}
    risk = form.risk({**X, "age": np.full(len(combos), row["age"])})
    moved = sum(np.array([c[i] is not combos[0][i] for c in combos]).astype(int) for i in range(3))
    good = risk <= target
    assert found.reached == bool(good.any())
    if good.any():
        assert len(found.answers[0].changes) == moved[good].min()
        assert found.answers[0].risk <= target


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), row=rows, target=st.floats(0.05, 0.8))
def test_further_answers_are_the_cheapest_that_leave_something_out(make_form, seed, row, target):
    form = make_form(seed)
    found = what_if(form, row, target, answers=4)
    sets = [set(a.features) for a in found.answers]
    prices = [a.cost + 1000 * len(a.changes) for a in found.answers]
    assert prices == sorted(prices)
    for i, later in enumerate(sets):
        for earlier in sets[:i]:
            assert not earlier <= later
    if found.answers and found.answers[0].changes:
        # The next answer holds some feature of each earlier one: the cheapest over all such choices.
        holds = itertools.product(*sets)
        more = [exhaustive(form, row, target, set(h))[0] for h in holds]
        reachable = [p for p in more if p is not None]
        again = what_if(form, row, target, answers=5)
        following = again.answers[len(sets) :]
        assert bool(following) == bool(reachable) or len(sets) < 4
        if following:
            nxt = following[0]
            assert nxt.cost + 1000 * len(nxt.changes) == pytest.approx(min(reachable))


def one_feature(levels, scores, kind="continuous", link=None, **fields):
    table = Table(levels=levels, scores=scores, weights=(5.0,) * len(levels), positives=(1.0,) * len(levels))
    return RiskForm(
        schema=pr.Schema(features={"u": {"kind": kind, **fields}}),
        columns=("u",),
        classes=(0, 1),
        parts=(Part(name="all", intercept=0.0, shapes={"u": table}, link=link or Linear()),),
        pool=Alone(),
    )


def test_a_concrete_number_inside_the_bin_is_given():
    form = one_feature(Bins((64.5, 71.5)), (0.9, 0.5, 0.1, 0.0))
    up = what_if(form, {"u": 60}, 0.2).answers[0].changes[0]
    assert (up.value, up.to_value, up.to_level, up.steps) == (60.0, 72.0, "x > 71.5", 2)
    falling = one_feature(Bins((64.5, 71.5)), (0.1, 0.5, 0.9, 0.0))
    assert what_if(falling, {"u": 80.25}, 0.2).answers[0].changes[0].to_value == 64.5
    assert what_if(falling, {"u": 80}, 0.2).answers[0].changes[0].to_value == 64.0


def test_special_values_are_no_targets_but_may_be_left():
    form = one_feature(Bins((10.0,), (-9.0,)), (0.5, 0.3, 0.0, 0.0))
    assert not what_if(form, {"u": 5.0}, 0.1).reached  # -9 would do, but nobody can choose to have no record
    good = msgspec.structs.replace(form, schema=form.schema.replace(adverse="negative"))
    left = what_if(good, {"u": -9.0}, 0.2).answers[0].changes[0]
    assert (left.level, left.to_level, left.steps) == ("= -9", "x <= 10", 1)
    up = pr.Schema(features={"u": {"actionable": "up"}}, adverse="negative")
    held = msgspec.structs.replace(form, schema=up)
    assert not what_if(held, {"u": -9.0}, 0.4).reached


def test_the_best_that_can_be_reached_is_told():
    form = one_feature(Bins((10.0, 20.0)), (0.9, 0.6, 0.4, 0.0))
    found = what_if(form, {"u": 5.0}, 0.1)
    assert not found.reached
    assert found.reachable.risk == pytest.approx(0.4)
    assert "cannot be reached; the best is u: 5 -> 21 (risk 0.4000)" in str(found)


def test_nothing_needs_to_change():
    form = one_feature(Bins((10.0,)), (0.1, 0.6, 0.0))
    found = what_if(form, {"u": 5.0}, 0.2)
    assert found.answers[0].changes == ()
    assert "nothing needs to change" in str(found)


def test_steps_cost_what_the_schema_says():
    schema = pr.Schema(features={"a": {}, "b": {"step_cost": 3.0}})
    table = Table(levels=Bins((1.0,)), scores=(0.4, 0.0, 0.0), weights=(5.0,) * 3, positives=(1.0,) * 3)
    part = Part(name="all", intercept=0.1, shapes={"a": table, "b": table}, link=Linear())
    form = RiskForm(schema=schema, columns=("a", "b"), classes=(0, 1), parts=(part,), pool=Alone())
    row = {"a": 0.0, "b": 0.0}
    assert what_if(form, row, 0.6).answers[0].features == ("a",)
    dear = form.schema.annotate({"features": {"a": {"step_cost": 4.0}}})
    answer = what_if(msgspec.structs.replace(form, schema=dear), row, 0.6).answers[0]
    assert (answer.features, answer.cost) == (("b",), 3.0)
    assert [a.features for a in what_if(form, row, 0.6).answers] == [("a",), ("b",)]


def test_lines_move_by_values_that_are_given():
    line = Line(slope=-0.1, center=0.0, levels=Bins(), scores=(0.0, 0.0), weights=(9.0, 0.0), positives=(1.0, 0.0))
    form = one_feature(Bins(), (0.0, 0.0))
    part = msgspec.structs.replace(form.parts[0], shapes={"u": line}, intercept=0.5)
    form = msgspec.structs.replace(form, parts=(part,))
    assert not what_if(form, {"u": 1.0}, 0.2).reached
    answer = what_if(form, {"u": 1.0}, 0.2, values={"u": [2.0, 3.5, 4.0]}).answers[0]
    assert (answer.changes[0].to_value, answer.changes[0].steps) == (3.5, 2)


def test_categories_without_training_rows_are_no_targets():
    levels = Categories(("a", "b", "c"), 3)
    form = one_feature(levels, (0.9, 0.2, 0.0, 0.0, 0.0), kind="categorical")
    table = msgspec.structs.replace(form.parts[0].shapes["u"], weights=(5.0, 5.0, 0.0, 0.0, 0.0))
    form = msgspec.structs.replace(form, parts=(msgspec.structs.replace(form.parts[0], shapes={"u": table}),))
    assert what_if(form, {"u": "a"}, 0.3).answers[0].changes[0].to_value == "b"
    assert not what_if(form, {"u": "a"}, 0.1).reached


def test_many_rows_are_the_rows_one_by_one(make_form, every_row):
    form = make_form(3)
    X = {k: v[::17] for k, v in every_row.items()}
    many = what_ifs(form, X, 0.3)
    frame = many.to_frame()
    for i in range(0, len(many), 5):
        one = what_if(form, {k: [v[i]] for k, v in X.items()}, 0.3, answers=1)
        assert many[i] == one or str(many[i]) == str(one)
        assert frame["reached"][i] == one.reached
    assert len(frame) == len(many) == len(X["age"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": 1.5}, "target must be None or a probability"),
        ({"frozen": ["agee"]}, "frozen: there is no feature 'agee'. Did you mean 'age'"),
        ({"frozen": "age"}, "frozen must be a list of features"),
        ({"cost": "cheap"}, "cost must be 'features' or 'steps', not 'cheap'"),
        ({"cost": {"age": 1.0}}, "cost must be 'features' or 'steps'"),
        ({"answers": 0}, "answers must be a whole number of at least 1"),
        ({"adverse": "positive"}, "there is no option 'adverse'"),
        ({"values": {"u": [1]}}, "values: there is no feature 'u'"),
    ],
)
def test_what_makes_no_sense_is_refused(make_form, options, message):
    row = {"age": 25.0, "job": "a", "debt": 3.0, "rent": 15.0}
    with pytest.raises(DataError, match=message):
        what_if(make_form(1), row, **{"target": 0.1, **options})


def test_one_row_at_a_time(make_form, every_row):
    with pytest.raises(DataError, match="for one row, not 450"):
        what_if(make_form(1), every_row, 0.1)


@pytest.mark.filterwarnings("ignore:.*the line is cut off")
def test_models_answer_and_their_answers_score(rng):
    d = pr.datasets.make_credit(3000, 3)
    for name in ("ARM1", "LinARM2", "MixLinARM1", "BandARM1"):
        model = pr.make_classifier(name, d.schema).fit(d.frame, d.target)
        risk = model.predict_proba(d.frame)[:, 1]
        target = float(np.quantile(risk, 0.3))
        worst = np.argsort(risk)[-10:]
        found = model.what_ifs(d.frame[worst], target)
        for row, one in zip(worst.tolist(), found.rows, strict=True):
            assert one.risk == risk[row]
            if one.reached:
                changed = {n: [d.frame[n][row]] for n in d.frame.columns}
                changed |= {c.feature: [c.to_value] for c in one.answers[0].changes}
                assert model.predict_proba(changed)[0, 1] == one.answers[0].risk <= target


def test_logistic_targets_are_exact_at_the_last_bit():
    form = one_feature(Bins((1.0,)), (0.3, 0.1, 0.0), link=Logistic())
    target = float(form.risk({"u": [2.0]})[0])
    assert what_if(form, {"u": 0.5}, float(np.nextafter(target, 1))).reached
    assert not what_if(form, {"u": 0.5}, target).reached, "a risk at the cut-off is refused"


def test_the_target_is_the_models_cutoff_and_answers_are_approved():
    d = pr.datasets.load("german", backend="polars")
    model = pr.AdditiveRiskModel(d.schema).fit(d.frame, d.target)
    decided = model.decide(d.frame)
    rows = np.flatnonzero(decided.refused)[:40].tolist()
    found = model.what_ifs(d.frame[rows])
    assert {one.target for one in found.rows} == {model.cutoff}
    protected = set(d.schema.protected)
    assert len(protected) == 3
    reached = 0
    for row, one in zip(rows, found.rows, strict=True):
        for answer in one.answers if one.reached else ():
            changed = {name: [d.frame[name][row]] for name in d.frame.columns}
            changed |= {change.feature: [change.to_value] for change in answer.changes}
            assert not model.decide(changed).refused[0]
            assert not protected & set(answer.features)
            reached += 1
    assert reached > 30


def test_a_target_laxer_than_the_cutoff_is_refused(make_form):
    row = {"age": 25.0, "job": "a", "debt": 3.0, "rent": 15.0}
    form = make_form(1, policy={"cutoff": 0.3})
    assert what_if(form, row, 0.2).target == 0.2
    with pytest.raises(DataError, match="target"):
        what_if(form, row, 0.4)
    with pytest.raises(DataError, match="what_if: the model has no cut-off"):
        what_if(make_form(1), row)


def test_a_protected_feature_cannot_be_freed():
    form = one_feature(Bins((10.0,)), (0.9, 0.1, 0.0))
    fixed = msgspec.structs.replace(form, schema=form.schema.annotate({"features": {"u": {"protected": True}}}))
    assert what_if(form, {"u": 5.0}, 0.5).reached
    assert not what_if(fixed, {"u": 5.0}, 0.5).reached
    with pytest.raises(DataError, match="'u' is protected and cannot change"):
        what_if(fixed, {"u": 5.0}, 0.5, values={"u": [20.0]})
    with pytest.raises(pr.errors.SchemaError, match="protected"):
        form.schema.annotate({"features": {"u": {"protected": True, "actionable": "up"}}})
