"""Intervals, tests, indices and shares of the document against independent computations."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from scipy import integrate, optimize, stats
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

import plainrisk as pr

CUTOFF = 0.25
Z = stats.norm.ppf(0.975)


@pytest.fixture(scope="module")
def judged(case):
    return case.test["bad"].to_numpy(), case.model.predict_proba(case.test)[:, 1]


def close(found, wanted, atol=1e-9):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=atol)


def is_wilson(found, successes, n):
    wanted = [successes / n, *proportion_confint(successes, n, method="wilson")]
    close([found["estimate"], found["low"], found["high"]], wanted)


def pairs_of(y, p):
    """Return who ranks above whom: (positives, others), ties as one half."""
    above, below = p[y == 1][:, None], p[y == 0][None, :]
    return (above > below) + (above == below) / 2


def delong(y, *risks):
    """Return AUCs and their covariance, from every pair of a positive and another row."""
    pairs = [pairs_of(y, p) for p in risks]
    sides = [np.array([one.mean(axis=axis) for one in pairs]) for axis in (1, 0)]
    covariance = sum(np.atleast_2d(np.cov(side)) / side.shape[1] for side in sides)
    return [one.mean() for one in pairs], covariance


def is_delong(found, y, p):
    (auc,), covariance = delong(y, p)
    half = Z * np.sqrt(covariance[0, 0]) / (auc * (1 - auc))
    ends = 1 / (1 + np.exp(-(np.log(auc / (1 - auc)) + np.array([-half, half]))))
    close([found["estimate"], found["low"], found["high"]], [auc, *ends])


# ---- performance


def test_ranking(numbers, judged):
    y, p = judged
    figures = numbers["performance"]["figures"]
    is_delong(figures["auc"], y, p)
    close([figures["gini"][end] for end in ("low", "high")], [2 * figures["auc"][end] - 1 for end in ("low", "high")])
    share, costs = y.mean(), np.linspace(0, 1, 4001)
    cuts = np.r_[-1, np.unique(p)]
    goods, bads = (np.array([(p[y == k] <= cut).mean() for cut in cuts]) for k in (0, 1))
    loss = [(c * (1 - share) * (1 - goods) + (1 - c) * share * bads).min() for c in costs]
    weight = stats.beta(2, 2).pdf(costs)
    worst = np.minimum(costs * (1 - share), (1 - costs) * share)
    h = 1 - integrate.simpson(loss * weight, x=costs) / integrate.simpson(worst * weight, x=costs)
    close(figures["h_measure"]["estimate"], h, atol=1e-5)


def test_intervals_by_resampling_are_as_wide_as_the_means_vary(numbers, judged):
    """Means of rows have a standard error of their own; 200 samples find it within a tenth or two."""
    y, p = judged
    terms = {"brier": (y - p) ** 2, "gap": p - y, "log_loss": -np.log(np.where(y == 1, p, 1 - p))}
    for name, term in terms.items():
        found = numbers["performance"]["figures"][name]
        half = Z * term.std(ddof=1) / np.sqrt(len(y))
        close((found["high"] + found["low"]) / 2, found["estimate"])
        assert (found["high"] - found["low"]) / 2 == pytest.approx(half, rel=0.25)


def test_tests_of_calibration(numbers, judged):
    y, p = judged
    tests, bins = numbers["performance"]["tests"], numbers["performance"]["calibration"]
    observed, expected = (np.array([v[g].sum() for g in np.array_split(np.argsort(p), 10)]) for v in (y, p))
    rows = np.array([len(g) for g in np.array_split(p, 10)])
    statistic = ((observed - expected) ** 2 / (expected * (1 - expected / rows))).sum()
    close(tests["hosmer_lemeshow"]["statistic"], statistic)
    close(tests["hosmer_lemeshow"]["p_value"], stats.chi2.sf(statistic, 10))
    z = tests["spiegelhalter"]
    close(z["p_value"], 2 * stats.norm.sf(abs(z["statistic"])))
    for k, grade in enumerate(tests["grades"]):
        inside = (p >= bins["lower"][k]) & (p <= bins["upper"][k])
        posterior = stats.beta(y[inside].sum() + 0.5, (1 - y[inside]).sum() + 0.5)
        assert (grade["rows"], grade["positives"]) == (inside.sum(), y[inside].sum())
        close([grade["low"], grade["high"]], posterior.interval(0.95))
        close(grade["p_value"], posterior.cdf(p[inside].mean()))


def test_cut_offs(numbers, judged):
    y, p = judged
    found = numbers["cutoffs"]
    assert len(found["cutoffs"]) == 20
    for one in (found["chosen"], *found["cutoffs"]):
        approved = p < one["cutoff"]
        is_wilson(one["approval"], approved.sum(), len(y))
        is_wilson(one["bad_rate"], y[approved].sum(), approved.sum())
        is_wilson(one["bads_refused"], (y[~approved] == 1).sum(), (y == 1).sum())
        is_wilson(one["goods_refused"], (y[~approved] == 0).sum(), (y == 0).sum())


# ---- groups and periods


def test_groups(numbers, case, judged):
    y, p = judged
    (report,) = [one for one in numbers["groups"] if one["column"] == "branch"]
    branch, approved = case.test["branch"].to_numpy(), p < CUTOFF
    first = branch == "north"
    reference = [approved[first].sum(), first.sum()]
    for group in report["groups"]:
        rows = branch == group["group"]
        is_wilson(group["approval"], approved[rows].sum(), rows.sum())
        is_wilson(group["base_rate"], y[rows].sum(), rows.sum())
        good = rows & (y == 0)
        is_wilson(group["opportunity"], approved[good].sum(), good.sum())
        is_delong(group["auc"], y[rows], p[rows])
        ends = [p[rows].mean() - group["base_rate"][end] for end in ("high", "low")]
        close([group["gap"]["low"], group["gap"]["high"]], ends)
        assert group["small"] == (rows.sum() < 30 or min(y[rows].sum(), (1 - y[rows]).sum()) < 5)
        assert group["below_four_fifths"] == (group["impact"]["estimate"] < 0.8)
        if group["group"] == "north":
            continue
        counts = [approved[rows].sum(), rows.sum()]
        is_newcombe(group["difference"], counts, reference)
        good_of_first = first & (y == 0)
        is_newcombe(
            group["opportunity_difference"],
            [approved[good].sum(), good.sum()],
            [approved[good_of_first].sum(), good_of_first.sum()],
        )
        is_ratio(group["impact"], counts, reference)


def is_newcombe(found, a, b):
    close([found["low"], found["high"]], confint_proportions_2indep(*a, *b, method="newcomb", compare="diff"))


def is_ratio(found, a, b):
    """The limits of Donner and Zou solve their equation; it is solved here by bisection."""
    (p, q), ends = [x / n for x, n in (a, b)], [proportion_confint(x, n, method="wilson") for x, n in (a, b)]
    lower = optimize.brentq(lambda r: (p - r * q) ** 2 - (p - ends[0][0]) ** 2 - r**2 * (ends[1][1] - q) ** 2, 0, p / q)
    far = 20 * p / q
    upper = optimize.brentq(
        lambda r: (p - r * q) ** 2 - (ends[0][1] - p) ** 2 - r**2 * (q - ends[1][0]) ** 2, p / q, far
    )
    close([found["low"], found["high"]], [lower, upper])


def test_segments_of_the_feature_that_matters_most(numbers, case, judged):
    y, p = judged
    (report,) = [one for one in numbers["groups"] if one["kind"] == "leading"]
    codes = levels_of(case, report["column"], case.test)
    filled = [codes == level for level in range(codes.max() + 1) if (codes == level).any()]
    for group, rows in zip(report["groups"], filled, strict=True):
        assert group["rows"] == rows.sum()
        close([group["base_rate"]["estimate"], group["mean_risk"]], [y[rows].mean(), p[rows].mean()])


def levels_of(case, name, rows):
    form = case.model.form_
    return form.parts[0].shapes[name].levels.codes(form.align(rows), name).astype(int)


def index(old, new):
    """Return the population stability index of two samples of levels; half a row where a level has none."""
    levels = range(max(old.max(), new.max()) + 1)
    shares = [
        [max((codes == k).sum(), 0.5) / len(codes) for k in levels if k in old or k in new] for codes in (old, new)
    ]
    return sum((b - a) * np.log(b / a) for a, b in zip(*shares, strict=True))


def test_periods(numbers, case, judged):
    y, p = judged
    month = case.test["month"].to_numpy()
    ours = {
        name: [levels_of(case, name, rows) for rows in (case.train, case.test)] for name in case.model.form_.features
    }
    deciles = np.quantile(case.model.predict_proba(case.train)[:, 1], np.linspace(0.1, 0.9, 9))
    old = np.searchsorted(deciles, case.model.predict_proba(case.train)[:, 1])
    for one in numbers["periods"]["periods"]:
        rows = month == one["period"]
        is_wilson(one["base_rate"], y[rows].sum(), rows.sum())
        is_wilson(one["approval"], (p[rows] < CUTOFF).sum(), rows.sum())
        is_delong(one["auc"], y[rows], p[rows])
        close(one["gap"]["estimate"], p[rows].mean() - y[rows].mean())
        for name, psi in one["features"].items():
            close(psi, index(ours[name][0], ours[name][1][rows]))
        # The probability is kept in narrow cells, whose ends are not quite the deciles.
        assert one["psi"] == pytest.approx(index(old, np.searchsorted(deciles, p[rows])), abs=0.03)


# ---- shifts, fields, levels


def test_shares_of_levels(numbers, case):
    for one in numbers["drift"]["features"]:
        for side, rows in (("old", case.train), ("new", case.test)):
            codes = levels_of(case, one["feature"], rows)
            close(one[side], np.bincount(codes, minlength=len(one[side])) / len(codes))
        close(sum(one["parts"]), one["psi"])
    for one in numbers["drift"]["subscales"]:
        if one["subscale"] == "risk":
            means = [case.model.predict_proba(rows)[:, 1].mean() for rows in (case.train, case.test)]
            close([one["old_risk"], one["new_risk"]], means)


def test_empty_fields_and_codes(numbers, case):
    features = case.model.form_.schema.features
    assert [one["feature"] for one in numbers["data"]["fields"]] == list(case.model.form_.features)
    for one in numbers["data"]["fields"]:
        feature = features[one["feature"]]
        for side, rows in (("test", case.test), ("train", case.train)):
            values = rows[one["feature"]]
            empty = values.is_null() | (values.is_nan() if values.dtype.is_float() else False)
            close(one[f"empty_{side}"], empty.mean())
            coded = values.cast(pl.String).is_in([str(code) for code in feature.special_values])
            if feature.kind == "continuous":
                coded = values.cast(pl.Float64).is_in([float(code) for code in feature.special_values])
                if feature.lower_bound is not None:
                    coded = coded | (values < feature.lower_bound)
            close(one[f"codes_{side}"], coded.fill_null(value=False).mean())


def test_levels(numbers, case):
    bad = case.train["bad"].to_numpy()
    for table in numbers["shapes"]["tables"]:
        codes = levels_of(case, table["feature"], case.train)
        close(table["rows"], np.bincount(codes, minlength=len(table["rows"])))
        close(table["bad"], np.bincount(codes, bad, minlength=len(table["rows"])))
        filled = np.array(table["rows"]) > 0
        rates = np.array([np.nan if rate is None else rate for rate in table["bad_rate"]])
        close(rates[filled], np.array(table["bad"])[filled] / np.array(table["rows"])[filled])
        # Effects are against one typical applicant, so that of a level is that of its score alone.
        order = np.argsort(table["score"])
        assert (np.diff(np.array(table["effect"])[order]) >= -1e-12).all()
        close(np.average(table["score"], weights=table["rows"]), 0, atol=0.05)


def test_what_codes_can_win(numbers, case):
    """A level outside the order, against the best and the worst measured level: of one part, the scores say it."""
    shapes = case.model.form_.parts[0].shapes
    for one in numbers["certificate"]["outside"]:
        shape = shapes[one["feature"]]
        n, score = shape.levels.n_ordered, shape.scores[shape.levels.labels.index(one["level"])]
        seen = [s for s, w in zip(shape.scores[:n], shape.weights[:n], strict=True) if w > 0]
        close([one["below"], one["lowers"]], [max(min(seen) - score, 0), max(max(seen) - score, 0)])
        assert one["rows"] == shape.weights[shape.levels.labels.index(one["level"])]


# ---- comparisons


def test_differences_of_auc(numbers, case, judged):
    y, p = judged
    other = case.test["other"].to_numpy()
    (ours, theirs), covariance = delong(y, p, other)
    error = np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    found = numbers["against"]["differences"]["auc"]
    close([found["estimate"], found["low"], found["high"]], ours - theirs + np.array([0, -Z, Z]) * error)
    close(numbers["against"]["p_value"], 2 * stats.norm.sf(abs(ours - theirs) / error))


def test_the_model_is_as_steady_as_refits_say(numbers, case):
    found, schema = numbers["refits"]["stability"], case.model.form_.schema
    X, y = case.train.select(list(schema.features)), case.train["bad"].to_numpy()
    refused = case.model.predict_proba(case.test)[:, 1] >= CUTOFF
    flips = []
    for k in range(20):
        rows = np.random.default_rng((0, k)).integers(len(y), size=len(y))
        again = pr.make_classifier("ARM1", schema).fit(X[rows], y[rows])
        flips.append((again.predict_proba(case.test)[:, 1] >= CUTOFF) != refused)
    resampled, reordered = found["refits"]
    close([resampled["decisions"], resampled["decisions_most"]], [np.mean(flips), np.mean(flips, axis=1).max()])
    close(found["unsteady"], (np.mean(flips, axis=0) > 0.1).mean())
    assert (resampled["refits"], reordered["refits"], reordered["decisions"]) == (20, 2, 0)


def test_what_is_watched(numbers, case, judged):
    y, p = judged
    checks = {(one["figure"], one["feature"]): one for one in numbers["monitoring"]["checks"]}
    z = stats.norm.ppf(0.995)
    approval = checks["approval", ""]
    ends = proportion_confint((p < CUTOFF).sum(), len(p), alpha=0.01, method="wilson")
    close([approval["value"], approval["low"], approval["high"]], [(p < CUTOFF).mean(), *ends])
    trained = case.model.predict_proba(case.train)[:, 1]
    assert approval["baseline"] == pytest.approx((trained < CUTOFF).mean(), abs=0.01)
    auc, ((ours,), covariance) = checks["AUC", ""], delong(y, p)
    half = z * np.sqrt(covariance[0, 0]) / (ours * (1 - ours))
    close(auc["low"], 1 / (1 + np.exp(half - np.log(ours / (1 - ours)))), atol=1e-6)
    above = (p[:, None] > p[None, :]) + (p[:, None] == p[None, :]) / 2  # a positive row above another one
    close(auc["baseline"], (p @ above @ (1 - p)) / (p.sum() * (1 - p).sum()), atol=1e-3)
    shifts = {one["feature"]: one["psi"] for one in numbers["drift"]["features"]}
    for name in case.model.form_.features:
        assert checks["shift", name]["value"] == pytest.approx(shifts[name], abs=1e-9)


def test_moved_inputs(numbers, case, judged):
    _, p = judged
    features = {one["feature"]: one for one in numbers["sensitivity"]["inputs"]["features"]}
    for name, change in itertools.product(("income", "loan_amount"), (("up", 1.1), ("down", 0.9))):
        moved = case.test.with_columns(pl.col(name) * change[1])
        after = case.model.predict_proba(moved)[:, 1]
        close(features[name][change[0]], ((after < CUTOFF) != (p < CUTOFF)).mean())
        close(features[name][f"approval_{change[0]}"], (after < CUTOFF).mean() - (p < CUTOFF).mean())
