from __future__ import annotations

import msgspec
import numpy as np
import pytest

import plainrisk as pr
from plainrisk.errors import DataError
from plainrisk.validate.bootstrap import _Expert, _Refitter, _training, bootstrap
from plainrisk.validate.draws import Draw

pytestmark = pytest.mark.filterwarnings("ignore:.*the line is cut off", "ignore:class_weight moves the base rate")

NAMES = ["ARM1", "DirectARM1", "LinARM1", "BandARM1", "ARM2", "LinARM2", "MixARM1", "MixLinARM1", "CalibratedMixARM1"]
SMOOTH = ["SmoothARM1", "SmoothDirectARM1"]
UNNAMED = [
    ("ARM2", {"link": "linear"}),
    ("MixARM1", {"link": "linear"}),
    ("ARM2", {"shapes": "smooth"}),
    ("MixARM1", {"shapes": "smooth", "link": "bands"}),
]


@pytest.fixture(scope="module")
def credit():
    return pr.datasets.make_credit(1200, 4, backend="polars")


def refitter_of(model, X, y, weight=None):
    base = model.estimator_ if isinstance(model, pr.Linearised) else model
    return base, _Refitter.of(base, _training(base, X, y, weight))


def counts_of(found):
    """How often every distinct row occurs."""
    (arrays,) = found.cells.kept
    return arrays[-1]


@pytest.mark.parametrize(("name", "options"), [*((name, {}) for name in (*NAMES, *SMOOTH)), *UNNAMED])
def test_the_rows_themselves_give_the_model_back(credit, name, options):
    """A resample that draws every row once is the first fit."""
    model = pr.make_classifier(name, credit.schema, **options).fit(credit.frame, credit.target)
    base, found = refitter_of(model, credit.frame, credit.target)
    assert counts_of(found).sum() == 1200
    again = found.refit(None)
    np.testing.assert_allclose(again.risk(credit.frame), base.form_.risk(credit.frame), rtol=0, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"max_bins": 3, "ridge": 0.01}])
def test_a_draw_is_a_fit_with_these_weights(credit, options):
    """One refit against scikit-learn's way: fit the estimator on the drawn rows, with the same bins."""
    model = pr.AdditiveRiskModel(credit.schema, **options).fit(credit.frame, credit.target)
    _, found = refitter_of(model, credit.frame, credit.target)
    again = found.refit(Draw(3, 0))
    # The same draw as row weights: equal rows share what their cell is drawn.
    part = model.form_.parts[0]
    frame = model.form_.align(credit.frame)
    (arrays,) = found.cells.kept
    *_, target, _, key, count = arrays
    drawn = Draw(3, 0)(key, count) / count
    coded = found.experts[0].plan.coded
    levels = [shape.levels.codes(frame, name) for name, shape in part.shapes.items()]
    digits = [joint.encode([levels[j] for j in joint.features]) for joint in coded.joints]
    where = {tuple(row): i for i, row in enumerate(np.column_stack([*arrays[: len(digits)], target]).tolist())}
    at = np.array([where[tuple(row)] for row in np.column_stack([*digits, credit.target]).tolist()])
    row_weight = drawn[at]
    edges = {
        n: pr.Feature(**{**feature_fields(credit.schema.features[n]), "max_bins": None, "edges": s.levels.edges})
        if credit.schema.features[n].kind == "continuous"
        else credit.schema.features[n]
        for n, s in part.shapes.items()
    }
    schema = pr.Schema(features=edges)
    settings = {**options, "ridge": model.ridge_}
    if "class_weight" in options:
        factors = [1200 / (2 * (1200 - credit.target.sum())), 1200 / (2 * credit.target.sum())]
        settings["class_weight"] = dict(enumerate(factors))
    kept = row_weight > 0
    other = pr.AdditiveRiskModel(schema, **settings).fit(
        credit.frame.filter(kept), credit.target[kept], sample_weight=row_weight[kept]
    )
    np.testing.assert_allclose(again.risk(credit.frame.filter(kept)), other.predict_proba(credit.frame.filter(kept))[:, 1], atol=1e-5)  # fmt: skip  # noqa: E501


def feature_fields(feature):
    return {name: getattr(feature, name) for name in feature.__struct_fields__}


def test_intervals_have_the_width_theory_gives():
    """One feature with two levels: the risk of a level is its bad rate, and its interval that of a share."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 2000).astype(float)
    y = (rng.random(2000) < np.where(x > 0, 0.3, 0.1)).astype(int)
    schema = pr.Schema(features={"x": {"edges": (0.5,)}})
    model = pr.AdditiveRiskModel(schema, link="linear", ridge=0.0).fit({"x": x}, y)
    refits = bootstrap(model, {"x": x}, y, n=600, seed=1)
    found = refits.risk({"x": [0.0, 1.0]}, level=0.9)
    for k in range(2):
        share, n = y[x == k].mean(), (x == k).sum()
        assert found.estimate[k] == pytest.approx(share)
        width = 2 * 1.645 * np.sqrt(share * (1 - share) / n)
        assert found.high[k] - found.low[k] == pytest.approx(width, rel=0.12)
        assert found.low[k] < share < found.high[k]


def test_equal_rows_are_drawn_as_rows_by_themselves(credit):
    """Weights that hardly differ keep equal rows apart; the intervals agree but for chance."""
    model = pr.AdditiveRiskModel(credit.schema.select(["income", "savings"])).fit(credit.frame, credit.target)
    apart = 1.0 + 1e-9 * np.arange(1200)
    _, cells = refitter_of(model, credit.frame, credit.target)
    _, rows = refitter_of(model, credit.frame, credit.target, apart)
    assert len(counts_of(cells)) < 100
    assert len(counts_of(rows)) == 1200
    X = credit.frame[:50]
    a = bootstrap(model, credit.frame, credit.target, n=200).risk(X)
    b = bootstrap(model, credit.frame, credit.target, n=200, sample_weight=apart).risk(X)
    assert np.corrcoef(a.high - a.low, b.high - b.low)[0, 1] > 0.9
    assert (a.high - a.low).mean() == pytest.approx((b.high - b.low).mean(), rel=0.1)


def test_everything_has_intervals(credit):
    model = pr.SubscaleMixture(pr.Linearised(pr.AdditiveRiskModel()), credit.schema).fit(credit.frame, credit.target)
    refits = bootstrap(model, credit.frame, credit.target, n=30, seed=5)
    assert len(refits) == 30
    weights = refits.weights()
    assert set(weights) == set(credit.schema.subscales)
    assert all(w.low <= w.high for w in weights.values())
    assert any(w.low < w.high for w in weights.values())
    for form in refits.forms:
        assert sum(form.pool.weights) == pytest.approx(1)
        assert [p.link for p in form.parts] == [p.link for p in model.form_.parts]
        assert pr.RiskModel(form).certify().valid  # every refit is monotone and additive too
    X = credit.frame[:20]
    pieces = refits.contributions(X, reference="typical")
    assert pieces.low.shape == (20, 12)
    assert (pieces.low <= pieces.high).all()
    shape = refits.shape("bureau_score", level=0.5)
    wider = refits.shape("bureau_score", level=0.95)
    assert (wider.low <= shape.low).all()
    assert (wider.high >= shape.high).all()
    plain = refits.to_dict()
    assert plain["refits"] == 30
    assert {p["part"] for p in plain["parts"]} == set(weights)


def test_seeds_repeat(credit):
    model = pr.AdditiveRiskModel(credit.schema, link="linear").fit(credit.frame, credit.target)
    a, b, c = (bootstrap(model, credit.frame, credit.target, n=3, seed=s) for s in (1, 1, 2))
    assert a.forms == b.forms != c.forms


def test_stacked_weights_too(credit):
    model = pr.SubscaleMixture(pr.AdditiveRiskModel(), credit.schema, weights="stacking").fit(
        credit.frame, credit.target
    )
    base, found = refitter_of(model, credit.frame, credit.target)
    again = found.refit(None)
    np.testing.assert_allclose(again.pool.weights, base.form_.pool.weights, atol=1e-8)


def test_what_cannot_be_refitted(credit):
    X, y = credit.frame, credit.target
    arm = pr.AdditiveRiskModel(credit.schema).fit(X, y)
    with pytest.raises(DataError, match="bootstrap: n must be a whole number of at least 1, not 0"):
        bootstrap(arm, X, y, n=0)
    with pytest.raises(DataError, match="the rows the model was fitted to: 1,200, not 100"):
        bootstrap(arm, X[:100], y[:100])
    with pytest.raises(DataError, match="cannot refit NonnegativeLogisticRegression"):
        bootstrap(pr.NonnegativeLogisticRegression(credit.schema).fit(X, y), X, y)
    with pytest.raises(DataError, match="Fit the mixture with cv=None"):
        bootstrap(pr.SubscaleMixture(pr.AdditiveRiskModel(), credit.schema, cv=3).fit(X, y), X, y)
    lines = pr.SubscaleMixture(pr.NonnegativeLogisticRegression(), credit.schema).fit(X, y)
    with pytest.raises(DataError, match="bootstrap keeps bins"):
        bootstrap(lines, X, y)
    refits = bootstrap(arm, X, y, n=2)
    with pytest.raises(DataError, match="level must be a finite number above 0 and below 1"):
        refits.risk(X, level=90)
    with pytest.raises(DataError, match=r"There is no feature 'incom' with levels. Did you mean 'income'"):
        refits.shape("incom")


# ---- smooth shapes


def smooth(schema, **options):
    return pr.AdditiveRiskModel(schema, shapes="smooth", **options)


def scores_of(form):
    """All scores of a form of one part: intercept, tables, cells of pairs."""
    part = form.parts[0]
    terms = [*(shape.scores for shape in part.shapes.values()), *(pair.scores for pair in part.pairs)]
    return np.concatenate([[part.intercept], *(np.ravel(scores) for scores in terms)])


@pytest.fixture(scope="module")
def paired(credit):
    model = smooth(credit.schema, pairs=4).fit(credit.frame, credit.target)
    assert model.form_.parts[0].pairs
    return model


@pytest.mark.parametrize("link", ["logistic", "linear"])
@pytest.mark.parametrize("options", [{}, {"pairs": 3}, {"class_weight": "balanced"}, {"max_bins": 3, "rules": "free"}])
def test_the_first_weights_give_the_smooth_tables_back(credit, link, options):
    model = smooth(credit.schema, link=link, **options).fit(credit.frame, credit.target)
    _, found = refitter_of(model, credit.frame, credit.target)
    again = found.refit(None)
    np.testing.assert_allclose(scores_of(again), scores_of(model.form_), rtol=0, atol=1e-6)


def test_refits_keep_bins_and_pairs(credit, paired):
    part = paired.form_.parts[0]
    refits = bootstrap(paired, credit.frame, credit.target, n=20, seed=2)
    for form in refits.forms:
        own = form.parts[0]
        assert [pair.features for pair in own.pairs] == [pair.features for pair in part.pairs]
        for name, shape in own.shapes.items():
            assert (shape.levels, shape.weights) == (part.shapes[name].levels, part.shapes[name].weights)
    for k in range(len(part.pairs)):
        cells = np.array([form.parts[0].pairs[k].scores for form in refits.forms])
        assert (cells.std(axis=0) > 0).any()


def test_a_pair_that_is_not_in_the_form_stays_away(credit, paired):
    """The scores that weigh subscales are those of the form."""
    part = paired.form_.parts[0]
    found = refitter_of(paired, credit.frame, credit.target)[1]
    plan = found.experts[0].plan
    for pairs in (part.pairs[1:], ()):
        expert = _Expert.of(msgspec.structs.replace(part, pairs=pairs), paired, plan.coded, plan.schema)
        refitted, tables = expert.fit(found.cells.rows(0), found.cells.codes[0])
        assert [pair.features for pair in refitted.pairs] == [pair.features for pair in pairs]
        form = msgspec.structs.replace(paired.form_, parts=(refitted,))
        (block,) = found.cells.risks([tables])
        risks = form.risk(credit.frame)
        np.testing.assert_allclose(np.sort(block.dense[:, 0]), np.sort(risks), rtol=0, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"shapes": "smooth"}, {"shapes": "smooth", "pairs": 2, "link": "linear"}])
def test_a_refit_fits_what_the_first_fit_chose(credit, options):
    model = pr.AdditiveRiskModel(credit.schema, **options).fit(credit.frame, credit.target)
    (expert,) = refitter_of(model, credit.frame, credit.target)[1].experts
    plan, part = expert.plan, model.form_.parts[0]
    assert plan.link == options.get("link", "logistic")
    np.testing.assert_array_equal(expert.start.point, model.solution_.point)
    assert plan.basis(plan.held).layout.n_coefficients == len(model.solution_.coefficients)
    if not options:
        assert (plan.shapes, plan.ridge, plan.known, plan.pairs) == ("steps", model.ridge_, None, None)
        return
    assert (plan.shapes, plan.ridge, plan.total) == ("smooth", None, 1200.0)
    assert plan.known.groups == model.evidence_
    assert {name: len(cuts) for name, cuts in plan.cuts.items() if cuts}
    pairs = () if plan.pairs is None else plan.pairs.pairs
    assert list(pairs) == [pair.features for pair in part.pairs]
    assert len(pairs) == options.get("pairs", 0)


def test_every_refit_obeys_the_directions_in_tables_and_pairs(credit, paired):
    features, checked = credit.schema.features, 0
    for form in bootstrap(paired, credit.frame, credit.target, n=20, seed=3).forms:
        assert pr.RiskModel(form).certify().valid
        part = form.parts[0]
        terms = [((name,), (shape.levels,), shape.scores) for name, shape in part.shapes.items()]
        terms += [(pair.features, pair.levels, pair.scores) for pair in part.pairs]
        for names, levels, scores in terms:
            for axis, (name, own) in enumerate(zip(names, levels, strict=True)):
                if features[name].sign:
                    inside = np.take(scores, range(own.n_ordered), axis)
                    assert (np.diff(inside, axis=axis) * features[name].sign >= 0).all()
                    checked += len(names) == 2
    assert checked


def some_missing(risk):
    """Rows whose measured risk rises from 0.1 to 0.5, and a tenth of them empty, of a risk of their own."""
    rng = np.random.default_rng(7)
    x = rng.random(1500)
    empty = rng.random(1500) < 0.1
    y = (rng.random(1500) < np.where(empty, risk, 0.1 + 0.4 * x)).astype(int)
    return {"x": np.where(empty, np.nan, x)}, y


@pytest.mark.parametrize("risk", [0.02, 0.15])
@pytest.mark.parametrize("direction", ["increasing", "none"])
@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_a_rule_is_kept_in_every_refit(risk, direction):
    """Empty fields of less risk are held in the model; those of little more come out better in some draws alone."""
    X, y = some_missing(risk)
    schema = pr.Schema(features={"x": {"kind": "continuous", "direction": direction, "missing": "not_better"}})
    margins = {}
    for rules in ("schema", "free"):
        model = smooth(schema, rules=rules).fit(X, y)
        shape = model.form_.parts[0].shapes["x"]
        n, at = shape.levels.n_ordered, shape.levels.labels.index("missing")
        refits = bootstrap(model, X, y, n=40)
        margins[rules] = np.array(
            [f.parts[0].shapes["x"].scores[at] - min(f.parts[0].shapes["x"].scores[:n]) for f in refits.forms]
        )
        _, found = refitter_of(model, X, y)
        np.testing.assert_allclose(scores_of(found.refit(None)), scores_of(model.form_), rtol=0, atol=1e-6)
    assert (margins["free"] < 0).any()
    assert (margins["schema"] >= 0).all()


@pytest.mark.parametrize("link", ["logistic", "linear"])
def test_refits_spread_about_as_the_posterior_says(link):
    """They are narrower: shrinking draws every refit to the same place, which the posterior counts as not known."""
    credit = pr.datasets.make_credit(1500, 1, backend="polars")
    model = smooth(credit.schema, link=link, intervals=True).fit(credit.frame, credit.target)
    refits = bootstrap(model, credit.frame, credit.target, n=60)
    ours, theirs = (np.std([scores_of(f) for f in r.forms], axis=0) for r in (refits, model.posterior(400)))
    known = theirs > 1e-9
    assert known.sum() > 20
    assert 0.5 < np.median(ours[known] / theirs[known]) < 2.0


def test_intervals_read_pairs(credit, paired):
    refits = bootstrap(paired, credit.frame, credit.target, n=20, seed=4)
    X, pair = credit.frame[:30], paired.form_.parts[0].pairs[0]
    name = paired.form_.parts[0].term_names[-len(paired.form_.parts[0].pairs)]
    shape = refits.shape(name)
    np.testing.assert_array_equal(shape.estimate, np.ravel(pair.scores))
    assert (shape.low < shape.high).any()
    risk = refits.risk(X)
    assert (risk.low < risk.high).all()
    pieces = refits.contributions(X, reference="typical")
    assert pieces.low.shape == pieces.estimate.shape
    whole = [form.score(X) for form in refits.forms]
    for form, score in zip(refits.forms, whole, strict=True):
        terms = form.parts[0].terms(form.align(X), form.schema)
        assert name in terms
        np.testing.assert_allclose(form.parts[0].intercept + sum(terms.values()), score, atol=1e-12)


def test_smooth_seeds_repeat(credit, paired):
    a, b, c = (bootstrap(paired, credit.frame, credit.target, n=2, seed=s) for s in (1, 1, 2))
    assert a.forms == b.forms != c.forms


def test_smooth_refits_with_sample_weights(credit):
    weight = np.random.default_rng(0).integers(0, 4, 1200).astype(float)
    model = smooth(credit.schema, pairs=2).fit(credit.frame, credit.target, sample_weight=weight)
    _, found = refitter_of(model, credit.frame, credit.target, weight)
    assert counts_of(found).sum() == np.count_nonzero(weight)
    again = found.refit(None)
    np.testing.assert_allclose(scores_of(again), scores_of(model.form_), rtol=0, atol=1e-6)
    with pytest.raises(DataError, match="needs the rows the model was fitted to"):
        bootstrap(model, credit.frame, credit.target, n=2)
    with pytest.raises(DataError, match="needs the rows and weights the model was fitted to: the levels of feature"):
        bootstrap(model, credit.frame, credit.target, n=2, sample_weight=2.0 * weight)
    even = smooth(credit.schema).fit(credit.frame, credit.target)
    rows, ones = (bootstrap(even, credit.frame, credit.target, n=2, sample_weight=w) for w in (None, np.ones(1200)))
    for a, b in zip(rows.forms, ones.forms, strict=True):
        np.testing.assert_allclose(scores_of(a), scores_of(b), rtol=0, atol=1e-8)


def test_a_mixture_of_steps_and_smooth_shapes(credit):
    names = list(credit.schema.subscales)
    experts = {n: smooth(None) if k % 2 else pr.AdditiveRiskModel() for k, n in enumerate(names)}
    model = pr.SubscaleMixture(experts, credit.schema).fit(credit.frame, credit.target)
    base, found = refitter_of(model, credit.frame, credit.target)
    again = found.refit(None)
    np.testing.assert_allclose(again.risk(credit.frame), base.form_.risk(credit.frame), rtol=0, atol=1e-9)


# ---- draws


def test_draws_have_the_distribution_of_counts_and_know_nothing_of_each_other():
    keys = np.arange(20_000, dtype=np.uint64)
    for count in (1, 2, 30, 5_000):
        times = [Draw(0, k)(keys, np.full(20_000, count)) for k in range(3)]
        for one in times:
            # Poisson: the mean has a standard error of sqrt(count / n), the variance of about count * sqrt(2 / n).
            assert abs(one.mean() - count) < 4 * np.sqrt(count / 20_000)
            assert one.var() == pytest.approx(count, rel=0.05)
        others = [*times[1:], Draw(1, 0)(keys, np.full(20_000, count)), times[0][::-1], np.roll(times[0], 1)]
        assert all(abs(np.corrcoef(times[0], other)[0, 1]) < 0.03 for other in others)
    assert (Draw(0, 0)(keys, np.ones(20_000)) == 0).mean() == pytest.approx(np.exp(-1), abs=0.015)


@pytest.fixture(scope="module")
def places(credit, tmp_path_factory):
    """The same rows in memory in another order, in batches, in Parquet and in CSV files."""
    folder = tmp_path_factory.mktemp("places")
    table = credit.frame.with_columns(bad=credit.target, weight=1.0 + np.arange(1200) % 3)
    table.write_parquet(folder / "rows.parquet")
    table.write_csv(folder / "rows.csv")

    def read(columns):
        return (table[start : start + 170].select(columns) for start in range(0, 1200, 170))

    return table, {
        "another order": table.sample(fraction=1.0, shuffle=True, seed=3),
        "batches": pr.rows.Batches(tuple(table.columns), 1200, read),
        "parquet": pr.rows.parquet(folder / "rows.parquet", batch_rows=500),
        "csv": pr.rows.csv(folder / "rows.csv", batch_rows=333),
    }


@pytest.mark.parametrize(
    ("name", "options", "groups"),
    [
        ("ARM1", {}, 1),
        ("SmoothARM1", {"pairs": 2}, 5),
        ("ARM2", {"class_weight": "balanced"}, 2),
        ("MixLinARM1", {}, 1),
        ("MixARM1", {"weights": "stacking"}, 3),
    ],
)
def test_refits_are_the_same_wherever_the_rows_live(credit, places, name, options, groups, monkeypatch):
    monkeypatch.setattr("plainrisk.validate.draws._GROUP_ROWS", -(-1200 // groups))
    table, others = places
    model = pr.make_classifier(name, credit.schema, **options)
    model.fit(credit.frame, credit.target, sample_weight=table["weight"].to_numpy())
    X = credit.frame[:100]
    here = bootstrap(model, credit.frame, credit.target, n=3, seed=5, sample_weight=table["weight"].to_numpy()).risk(X)
    for place, rows in others.items():
        if place == "another order":
            y, weight = rows["bad"].to_numpy(), rows["weight"].to_numpy()
        else:
            y, weight = "bad", "weight"
        there = bootstrap(model, rows, y, n=3, seed=5, sample_weight=weight).risk(X)
        np.testing.assert_allclose(there.low, here.low, rtol=0, atol=1e-9)
        np.testing.assert_allclose(there.high, here.high, rtol=0, atol=1e-9)


def test_rows_elsewhere_must_be_those_of_the_fit(credit, places):
    model = pr.AdditiveRiskModel(credit.schema).fit(credit.frame, credit.target)
    with pytest.raises(DataError, match="y must be the name of a column when rows come in batches"):
        bootstrap(model, places[1]["batches"], credit.target, n=2)
    rows = pr.rows.Batches(tuple(places[0].columns), 400, lambda columns: iter([places[0][:400].select(columns)]))
    with pytest.raises(DataError, match="the rows the model was fitted to: 1,200, not 400"):
        bootstrap(model, rows, "bad", n=2)
