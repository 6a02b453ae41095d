"""Numbers of the twin that the other tests do not compute: counts, settings, all figures of a rival, flips, limits."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from scipy import integrate, stats
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold

import plainrisk as pr

CUTOFF = 0.25
Z = stats.norm.ppf(0.975)
LIMITS = {"moderate": 0.1, "large": 0.25, "missing": 0.05, "unseen": 0.01}
LIMITS |= {"auc": None, "auc_drop": 0.05, "gap": 0.05, "approval": None, "approval_shift": 0.1}
COSTS = np.linspace(0, 1, 401)


@pytest.fixture(scope="module")
def judged(case):
    return case.test["bad"].to_numpy(), case.model.predict_proba(case.test)[:, 1]


def close(found, wanted, atol=1e-9):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=atol)


# ---- figures, of any probabilities


def ece(y, p):
    inside = np.minimum((15 * p).astype(int), 14)
    return sum(abs((y - p)[inside == k].sum()) for k in range(15)) / len(y)


def h_measure(y, p):
    """Expected minimum loss under costs of beta(2, 2), by quadrature over costs."""
    share = y.mean()
    cuts = np.r_[-1, np.unique(p)]
    goods, bads = (np.searchsorted(np.sort(p[y == k]), cuts, side="right") / (y == k).sum() for k in (0, 1))
    loss = (COSTS[:, None] * (1 - share) * (1 - goods) + (1 - COSTS[:, None]) * share * bads).min(axis=1)
    weight, worst = stats.beta(2, 2).pdf(COSTS), np.minimum(COSTS * (1 - share), (1 - COSTS) * share)
    return 1 - integrate.simpson(loss * weight, x=COSTS) / integrate.simpson(worst * weight, x=COSTS)


FIGURES = {
    "auc": roc_auc_score,
    "gini": lambda y, p: 2 * roc_auc_score(y, p) - 1,
    "h_measure": h_measure,
    "ks": lambda y, p: stats.ks_2samp(p[y == 1], p[y == 0]).statistic,
    "brier": brier_score_loss,
    "log_loss": log_loss,
    "ece": ece,
    "gap": lambda y, p: p.mean() - y.mean(),
}


def resampled(y, *risks, names):
    """Return every figure of every column of probabilities in samples of rows, (samples, risks, names)."""
    rng, found = np.random.default_rng(8), []
    for _ in range(150):
        rows = rng.integers(len(y), size=len(y))
        found.append([[FIGURES[name](y[rows], p[rows]) for name in names] for p in risks])
    return np.array(found)


def is_as_wide(found, error, rel=0.3):
    assert (found["high"] - found["low"]) / 2 == pytest.approx(Z * error, rel=rel)
    assert found["low"] <= found["estimate"] <= found["high"]


def test_figures_with_intervals_of_this_model_and_of_another(numbers, case, judged):
    y, p = judged
    other, names = case.test["other"].to_numpy(), tuple(FIGURES)
    samples = resampled(y, p, other, names=names)
    sides = (numbers["performance"]["figures"], numbers["against"]["figures"])
    for k, (figures, risk) in enumerate(zip(sides, (p, other), strict=True)):
        for j, name in enumerate(names):
            close(figures[name]["estimate"], FIGURES[name](y, risk), 1e-4 if name == "h_measure" else 1e-9)
            if samples[:, k, j].max() < 1:  # ends at the end of the scale are cut off
                is_as_wide(figures[name], samples[:, k, j].std(ddof=1))
    for j, name in enumerate(names):
        gap = numbers["against"]["differences"][name]
        close(gap["estimate"], FIGURES[name](y, p) - FIGURES[name](y, other), 1e-4 if name == "h_measure" else 1e-9)
        is_as_wide(gap, (samples[:, 0, j] - samples[:, 1, j]).std(ddof=1), rel=0.35)
    intercept = numbers["performance"]["figures"]["intercept"]
    design = sm.add_constant(np.log(p / (1 - p)))
    line = sm.GLM(y, design, family=sm.families.Binomial()).fit(tol=1e-12, cov_type="HC0")
    close([intercept["low"], intercept["high"]], line.conf_int()[0], 1e-6)


def test_figures_of_challengers(numbers, case, judged):
    y, p = judged
    (line,) = numbers["refits"]["challengers"]
    schema = case.model.form_.schema
    rival = pr.validate.challengers.RIVALS["logistic regression"].build(schema)
    fitted = rival.fit(case.train.select(list(schema.features)), case.train["bad"].to_numpy())
    risk, names = fitted.predict_proba(case.test)[:, 1], ("auc", "log_loss", "brier")
    samples = resampled(y, p, risk, names=names)
    for j, name in enumerate(names):
        close(line["figures"][name]["estimate"], FIGURES[name](y, risk))
        close(line["differences"][name]["estimate"], FIGURES[name](y, risk) - FIGURES[name](y, p))
        is_as_wide(line["figures"][name], samples[:, 1, j].std(ddof=1))
        is_as_wide(line["differences"][name], (samples[:, 1, j] - samples[:, 0, j]).std(ddof=1), rel=0.35)
    gap = line["differences"]["auc"]
    close(line["p_value"], 2 * stats.norm.sf(abs(gap["estimate"]) / ((gap["high"] - gap["low"]) / (2 * Z))), 1e-6)


# ---- counts and settings


def test_rows_classes_levels_and_cut_offs(numbers, case, judged):
    y, p = judged
    assert numbers["format"] == 1
    assert numbers["model"]["classes"] == [0, 1]
    performance, train = numbers["performance"], numbers["data"]["train"]
    assert (performance["rows"], performance["positives"], performance["certain"]) == (800, y.sum(), 0)
    close([performance["mean_risk"], performance["base_rate"]["estimate"]], [p.mean(), y.mean()])
    close([train["rows"], train["columns"], train["positives"]], [1600, case.train.width, case.train["bad"].sum()])
    trained = case.model.predict_proba(case.train)[:, 1]
    close([train["base_rate"], train["mean_risk"]], [case.train["bad"].mean(), trained.mean()])
    close(numbers["data"]["histogram"]["edges"], np.arange(21) / 20)
    assert numbers["data"]["quality"]["rows"] == 800
    assert numbers["data"]["quality"]["features"] == len(case.model.form_.features)
    monitoring, stability = numbers["monitoring"], numbers["refits"]["stability"]
    assert (monitoring["rows"], monitoring["known"], monitoring["level"]) == (800, 800, 0.99)
    assert (numbers["weak_spots"]["rows"], numbers["weak_spots"]["level"]) == (800, 0.05)
    assert (numbers["drift"]["old_rows"], numbers["drift"]["new_rows"]) == (1600, 800)
    inputs, priced = numbers["sensitivity"]["inputs"], numbers["refits"]["prices"]
    assert (inputs["rows"], inputs["change"]) == (800, 0.1)
    assert (stability["rows"], priced["rows"], priced["folds"]) == (800, 1600, 3)
    decided = [inputs, numbers["sensitivity"]["stress"], numbers["periods"], stability, *numbers["groups"]]
    assert {one["cutoff"] for one in decided} == {CUTOFF}
    levels = [performance, performance["tests"], numbers["cutoffs"], numbers["periods"], *numbers["groups"]]
    assert {one["level"] for one in levels} == {0.95}
    assert [one["known"] for one in numbers["periods"]["periods"]] == [
        one["rows"] for one in numbers["periods"]["periods"]
    ]
    assert numbers["certificate"]["thin"] == 30
    assert performance["calibration"]["weight"] == performance["calibration"]["count"]
    assert performance["tests"]["hosmer_lemeshow"]["degrees"] == 10


def test_bounds_and_limits(numbers):
    for one in numbers["schema"]:
        feature = pr.datasets.make_credit(10, 1).schema.features[one["feature"]]
        assert one["lower_bound"] == feature.lower_bound
    for place in ("periods", "drift"):
        assert {name: numbers[place]["limits"][name] for name in LIMITS} == LIMITS
    assert {name: numbers["model"]["limits"][name] for name in LIMITS} == LIMITS
    moved = {"shift": (0, 0.25), "missing": (1, 0.05), "unseen": (0, 0.01), "AUC": (1, -0.05), "gap": (0, 0.05)}
    for check in numbers["monitoring"]["checks"]:
        if check["figure"] == "approval":
            close(abs(check["limit"] - check["baseline"]), 0.1)
            continue
        from_baseline, far = moved[check["figure"]]
        close(check["limit"], (check["baseline"] if from_baseline else 0) + far)


def test_the_fit(numbers, case):
    """The objective is the log loss of the training rows and a little penalty; another fit takes as many steps."""
    fit, y = numbers["model"]["fit"], case.train["bad"].to_numpy()
    again = pr.make_classifier("ARM1", case.model.form_.schema).fit(case.train, None)
    p = case.model.predict_proba(case.train)[:, 1]
    close([fit["rows"], fit["weight"], fit["positive_weight"]], [1600, 1600, y.sum()])
    close([fit["base_rate"], fit["clipped"]], [y.mean(), np.isin(p, [0, 1]).mean()])
    (objective,), (residual,) = fit["objective"], fit["kkt"]
    assert 0 < objective - log_loss(y, p) < 0.01
    assert 0 <= residual < 1e-8
    assert list(fit["iterations"]) == [again.n_iter_]


def test_quality_of_values(numbers, case):
    for issue in numbers["data"]["quality"]["issues"]:
        close(issue["share"], issue["rows"] / 800)
        if issue["what"] == "missing":
            close(issue["trained"], case.train[issue["feature"]].null_count() / 1600)
        elif issue["feature"]:
            assert issue["trained"] == 0  # values that training never saw


def test_exports_differ_nowhere(numbers):
    for one in numbers["exports"]:
        assert one["rows"] >= 100
        assert 0 <= one["largest"] < 1e-12
        assert one["reasons"] == one["decisions"] == 0


# ---- groups, periods, shifts


def test_differences_between_groups(numbers, case, judged):
    y, p = judged
    (report,) = [one for one in numbers["groups"] if one["column"] == "branch"]
    branch, approved = case.test["branch"].to_numpy(), p < CUTOFF
    for group in report["groups"]:
        inside = branch == group["group"]
        if group["group"] == report["reference"]:
            continue
        for name, rows in (("difference", y < 2), ("opportunity_difference", y == 0)):
            gap = approved[inside & rows].mean() - approved[(branch == report["reference"]) & rows].mean()
            close(group[name]["estimate"], gap)


def test_calibration_by_period_and_grade(numbers, case, judged):
    y, p = judged
    month = case.test["month"].to_numpy()
    for one in numbers["periods"]["periods"]:
        rows = month == one["period"]
        ends = [p[rows].mean() - one["base_rate"][end] for end in ("high", "low")]
        close([one["gap"]["low"], one["gap"]["high"]], ends)
        design = sm.add_constant(np.log(p[rows] / (1 - p[rows])))
        line = sm.GLM(y[rows], design, family=sm.families.Binomial()).fit(tol=1e-12, cov_type="HC0")
        slope = one["slope"]
        close([slope["estimate"], slope["low"], slope["high"]], [line.params[1], *line.conf_int()[1]], 1e-6)
    bins = numbers["performance"]["calibration"]
    for k, grade in enumerate(numbers["performance"]["tests"]["grades"]):
        inside = (p >= bins["lower"][k]) & (p <= bins["upper"][k])
        close([grade["predicted"], grade["observed"]], [p[inside].mean(), y[inside].mean()])
        assert grade["lower"] <= p[inside].min()
        assert grade["upper"] >= p[inside].max()
        assert grade["upper"] - grade["lower"] < 0.8


def test_what_shifts_do_to_the_mean_score(numbers, case, judged):
    _, p = judged
    close(numbers["drift"]["new_risk"], p.mean())
    form = case.model.form_
    for one in numbers["drift"]["features"]:
        shape = form.parts[0].shapes[one["feature"]]
        codes = [shape.levels.codes(form.align(rows), one["feature"]) for rows in (case.train, case.test)]
        old, new = (np.array(shape.scores)[side].mean() for side in codes)
        close(one["shift"], new - old)
    (risk,) = [one for one in numbers["drift"]["subscales"] if one["subscale"] == "risk"]
    edges = np.quantile(case.model.predict_proba(case.train)[:, 1], np.arange(1, 10) / 10)
    shares = np.bincount(np.searchsorted(edges, p), minlength=10) / 800
    assert risk["psi"] == pytest.approx(((shares - 0.1) * np.log(shares / 0.1)).sum(), abs=0.01)


# ---- decisions that flip


def test_exchanged_and_rounded_values(numbers, case, judged):
    _, p = judged
    features = {one["feature"]: one for one in numbers["sensitivity"]["inputs"]["features"]}
    columns = list(case.model.form_.features)

    def flips(rows):
        return ((case.model.predict_proba(rows)[:, 1] < CUTOFF) != (p < CUTOFF)).mean()

    for name in columns:
        orders = [np.random.default_rng((0, k)).permutation(800) for k in range(5)]
        exchanged = [flips(case.test.with_columns(case.test[name][order.tolist()])) for order in orders]
        close(features[name]["shuffled"], np.mean(exchanged))
    name = "loan_amount"
    values = case.test[name].cast(pl.Float64).to_numpy()
    step = max(10.0**k for k in range(-6, 6) if (np.round(values[~np.isnan(values)] / 10.0**k, 6) % 1 == 0).all())
    assert features[name]["rounding"] == step
    moved = []
    for k in range(5):
        change = np.random.default_rng((0, k, columns.index(name))).uniform(-step / 2, step / 2, 800)
        moved.append(flips(case.test.with_columns(pl.Series(name, np.maximum(values + change, 0)).fill_nan(None))))
    close(features[name]["rounded"], np.mean(moved))


def test_decisions_under_stress(numbers, case, judged):
    """Who is refused afterward follows from the shocks that the twin names, applied row by row."""
    _, p = judged
    stress, rows = numbers["sensitivity"]["stress"], case.test
    features = case.model.form_.schema.features
    beyond = Counter()
    for shock in stress["shocks"]:
        name, _, change = shock.rpartition("=")
        feature, values = features[name], rows[name].cast(pl.Float64).to_numpy()
        floor = -np.inf if feature.lower_bound is None else feature.lower_bound
        moving = ~np.isin(values, [float(code) for code in feature.special_values]) & (values >= floor)
        after = np.where(moving, np.maximum(values + values * float(change[:-1]) / 100, floor), values)
        low, high = case.model.form_.ranges[name]
        beyond[name] = int(((values >= low) & (values <= high) & ~((after >= low) & (after <= high))).sum())
        rows = rows.with_columns(pl.Series(name, after).fill_nan(None))
    assert stress["beyond"] == {name: n for name, n in beyond.items() if n}
    after = case.model.predict_proba(rows)[:, 1]
    (whole,) = [one for one in stress["groups"] if one["group"] == "(all rows)"]
    assert sum(one["rows"] for one in stress["groups"]) % 800 == 0
    assert (whole["now_refused"], whole["now_approved"]) == (
        ((p < CUTOFF) & (after >= CUTOFF)).sum(),
        ((p >= CUTOFF) & (after < CUTOFF)).sum(),
    )
    close(whole["bad_rate"], p[p < CUTOFF].mean())


# ---- shapes, certificate, refits


def test_spans_and_gains(numbers, case):
    """On the log odds, the most that a gain of d can lower a probability is tanh(d / 4), half on each side of 50%."""
    form = case.model.form_
    for table in numbers["shapes"]["tables"]:
        assert table["n_ordered"] == form.parts[0].shapes[table["feature"]].levels.n_ordered
    explained = case.model.explain(case.test)
    for one in numbers["shapes"]["importance"]:
        contributions = explained.contributions[:, explained.names.index(one["feature"])]
        close(one["span"], contributions.max() - contributions.min())
    for one in numbers["certificate"]["outside"]:
        for risk, score in (("below_risk", "below"), ("lowers_risk", "lowers")):
            assert 0 <= one[risk] <= np.tanh(one[score] / 4) + 1e-9
            assert one[risk] >= 0.5 * np.tanh(one[score] / 4)


def test_protected_features_that_cost_more_than_a_reason_named(numbers, case, judged):
    _, p = judged
    found, said = case.model.explain(case.test, reference="best"), case.model.reasons(case.test)
    cost = dict(zip(found.names, found.contributions.T, strict=True))
    protected = [one["feature"] for one in numbers["schema"] if one["protected"] and one["read"]]
    withheld = [
        any(cost[name][row] > cost[said.named(row)[-1]][row] for name in protected)
        for row in np.flatnonzero(p >= CUTOFF)
    ]
    assert protected
    assert numbers["reasons"]["withheld"] == sum(withheld)


def test_refits_move_probabilities_reasons_and_contributions(numbers, case):
    found, schema = numbers["refits"]["stability"], case.model.form_.schema
    X, y = case.train.select(list(schema.features)), case.train["bad"].to_numpy()
    first = case.model.predict_proba(case.test)[:, 1]
    refused, moves, other, seen = first >= CUTOFF, [], [], []

    def first_reasons(form):
        """For all rows, whoever is refused: a model without a cut-off names reasons for everybody."""
        said = pr.RiskModel(form).annotate({"policy": {"cutoff": None}}).reasons(case.test)
        return [said.named(row)[:1] for row in np.flatnonzero(refused)]

    named = first_reasons(case.model.form_)
    for k in range(20):
        rows = np.random.default_rng((0, k)).integers(len(y), size=len(y))
        again = pr.make_classifier("ARM1", schema).fit(X[rows], y[rows])
        moves.append(np.abs(again.predict_proba(case.test)[:, 1] - first).mean())
        other.append(np.mean([a != b for a, b in zip(first_reasons(again.form_), named, strict=True)]))
        seen.append(again.explain(case.test, reference="typical"))
    one = found["refits"][0]
    close([one["risk"], one["reasons"], one["reasons_most"]], [np.mean(moves), np.mean(other), np.max(other)])
    ours = case.model.explain(case.test, reference="typical")
    for feature in found["features"]:
        name = feature["feature"]
        column = [dict(zip(e.names, e.contributions.T, strict=True))[name] for e in (ours, *seen)]
        close(feature["size"], np.abs(column[0]).mean())
        close(feature["spread"], np.std(column[1:], axis=0, ddof=1).mean())
        close(feature["kept"], np.mean([np.abs(c).max() > 0 for c in column[1:]]))


def test_prices_by_folds_of_scikit_learn(numbers, case):
    """A direction's price: the log loss and the AUC with it, less those without it, on the same held-out rows."""
    priced, schema = numbers["refits"]["prices"], case.model.form_.schema
    X, y = case.train.select(list(schema.features)), case.train["bad"].to_numpy()
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))

    def held_out(schema):
        risk = np.empty(len(y))
        for train, test in folds:
            fitted = pr.make_classifier("ARM1", schema).fit(X[train.tolist()], y[train])
            risk[test] = fitted.predict_proba(X[test.tolist()])[:, 1]
        return risk

    base = held_out(schema)
    close(priced["figures"]["log_loss"], log_loss(y, base))
    one = next(line for line in priced["prices"] if line["kind"] == "direction")
    fold_auc = [roc_auc_score(y[test], base[test]) for _, test in folds]
    assert priced["figures"]["auc"] == pytest.approx(np.mean(fold_auc), abs=5e-3)
    free = held_out(schema.edit(one["feature"], direction="none", missing="free"))
    loss = -np.log(np.where(y == 1, base, 1 - base)) + np.log(np.where(y == 1, free, 1 - free))
    close(one["log_loss"]["estimate"], loss.mean())
    is_as_wide(one["log_loss"], loss.std(ddof=1) / np.sqrt(len(y)), rel=0.2)
    lost = roc_auc_score(y, free) - roc_auc_score(y, base)
    assert one["auc"]["low"] - 2e-3 <= lost <= one["auc"]["high"] + 2e-3
    assert one["auc"]["estimate"] == pytest.approx(lost, abs=2e-3)


def test_decisions_flip_as_every_value_moves_to_the_next_bin(numbers, case, judged):
    """By the scores of the bins alone: the log odds of every row, less the score of its bin, plus that of the next."""
    _, p = judged
    form = case.model.form_
    for one in numbers["refits"]["stability"]["features"]:
        shape = form.parts[0].shapes[one["feature"]]
        if form.schema.features[one["feature"]].kind == "categorical":
            continue
        codes, last = shape.levels.codes(form.align(case.test), one["feature"]).astype(int), shape.levels.n_ordered - 1
        for name, step in (("up", 1), ("down", -1)):
            moved = np.where(codes <= last, np.clip(codes + step, 0, last), codes)
            scores = np.array(shape.scores)
            after = 1 / (1 + np.exp(-(np.log(p / (1 - p)) - scores[codes] + scores[moved])))
            close(one[name], ((after < CUTOFF) != (p < CUTOFF)).mean())


def test_the_worst_slice_is_as_likely_by_chance_in_other_samples(numbers, case, judged):
    """499 samples by another seed: the standard error of a probability is at most 0.022."""
    y, _ = judged
    other = pr.weak_spots(case.model, case.test.drop("other"), y, columns=["branch"], seed=1)
    assert numbers["weak_spots"]["p_value"] == pytest.approx(other.p_value, abs=0.1)
