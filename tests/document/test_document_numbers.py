"""Every number of the document against an independent computation."""

from __future__ import annotations

import hashlib

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from scipy.stats import ks_2samp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from statsmodels.stats.proportion import proportion_confint

import plainrisk as pr
from plainrisk.explain.atoms import atoms_of

CUTOFF = 0.25


@pytest.fixture(scope="module")
def judged(case):
    return case.test["bad"].to_numpy(), case.model.predict_proba(case.test)[:, 1]


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9)


def test_performance(numbers, judged):
    y, p = judged
    found = {name: one["estimate"] for name, one in numbers["performance"]["figures"].items()}
    close(found["auc"], roc_auc_score(y, p))
    close(found["gini"], 2 * roc_auc_score(y, p) - 1)
    close(found["ks"], ks_2samp(p[y == 1], p[y == 0]).statistic)
    close(found["brier"], brier_score_loss(y, p))
    close(found["log_loss"], log_loss(y, p))
    close(found["gap"], p.mean() - y.mean())
    edges = np.minimum((15 * p).astype(int), 14)
    close(found["ece"], sum(abs((y - p)[edges == k].sum()) for k in range(15)) / len(y))
    design = sm.add_constant(np.log(p / (1 - p)))
    line = sm.GLM(y, design, family=sm.families.Binomial()).fit(tol=1e-12, cov_type="HC0")
    close([found["intercept"], found["slope"]], line.params)
    slope = numbers["performance"]["figures"]["slope"]
    np.testing.assert_allclose([slope["low"], slope["high"]], line.conf_int()[1], rtol=0, atol=1e-6)
    rate = numbers["performance"]["base_rate"]
    close([rate["low"], rate["high"]], proportion_confint(y.sum(), len(y), method="wilson"))


def test_calibration_bins(numbers, judged):
    y, p = judged
    z = ((y - p) * (1 - 2 * p)).sum() / np.sqrt(((1 - 2 * p) ** 2 * p * (1 - p)).sum())
    close(numbers["performance"]["tests"]["spiegelhalter"]["statistic"], z)
    bins = numbers["performance"]["calibration"]
    assert sum(bins["count"]) == len(y)
    for k in range(len(bins["count"])):
        inside = (p >= bins["lower"][k]) & (p <= bins["upper"][k])
        assert inside.sum() == bins["count"][k]
        close([bins["predicted"][k], bins["observed"][k]], [p[inside].mean(), y[inside].mean()])
        close([bins["low"][k], bins["high"][k]], proportion_confint(y[inside].sum(), inside.sum(), method="wilson"))


def test_the_cut_off(numbers, judged):
    y, p = judged
    found, approved = numbers["cutoffs"]["chosen"], p < CUTOFF
    assert numbers["model"]["cutoff"] == {"value": CUTOFF, "stated": True}
    close(found["approval"]["estimate"], approved.mean())
    close(found["bad_rate"]["estimate"], y[approved].mean())
    close(found["bads_refused"]["estimate"], (~approved)[y == 1].mean())
    close(found["goods_refused"]["estimate"], (~approved)[y == 0].mean())
    for one in numbers["cutoffs"]["cutoffs"]:
        close(one["approval"]["estimate"], (p < one["cutoff"]).mean())


def test_rows_and_values(numbers, case, judged):
    y, p = judged
    found, test = numbers["data"]["test"], case.test
    assert (found["rows"], found["positives"], found["columns"]) == (len(y), y.sum(), test.width)
    close([found["base_rate"], found["mean_risk"]], [y.mean(), p.mean()])
    assert not found["seen_before"]
    assert numbers["data"]["train"]["seen_before"]
    issues = numbers["data"]["quality"]["issues"]
    for name in case.model.form_.features:
        if case.model.form_.schema.features[name].kind != "continuous":
            continue
        old, new = (measured(case, rows, name) for rows in (case.train, test))
        beyond = ((new < old.min()) | (new > old.max())).sum()
        said = [one["rows"] for one in issues if (one["feature"], one["what"]) == (name, "out of range")]
        assert said == ([beyond] if beyond else [])
    histogram = numbers["data"]["histogram"]
    for side, wanted in (("positive", p[y == 1]), ("other", p[y == 0])):
        assert histogram[side] == np.histogram(wanted, 20, (0, 1))[0].tolist()


def specials(case, name):
    return [float(code) for code in case.model.form_.schema.features[name].special_values]


def measured(case, rows, name):
    values = rows[name].cast(pl.Float64).drop_nulls().to_numpy()
    bound = case.model.form_.schema.features[name].lower_bound
    codes = np.isin(values, specials(case, name)) | (values < (-np.inf if bound is None else bound))
    return values[~np.isnan(values) & ~codes]


def test_groups(numbers, case, judged):
    y, p = judged
    (report,) = [one for one in numbers["groups"] if one["column"] == "branch"]
    assert report["reference"] == "north"
    share = {name: (p < CUTOFF)[rows].mean() for name, rows in members(case, "branch").items()}
    assert len(report["groups"]) == 3
    for group in report["groups"]:
        rows = members(case, "branch")[group["group"]]
        assert group["rows"] == len(rows)
        close(group["approval"]["estimate"], share[group["group"]])
        close(group["impact"]["estimate"], share[group["group"]] / share["north"])
        close(group["opportunity"]["estimate"], (p < CUTOFF)[rows][y[rows] == 0].mean())
        close(group["gap"]["estimate"], p[rows].mean() - y[rows].mean())
        close(group["auc"]["estimate"], roc_auc_score(y[rows], p[rows]))


def members(case, column):
    values = case.test[column].to_numpy()
    return {str(name): np.flatnonzero(values == name) for name in np.unique(values)}


def test_periods(numbers, case, judged):
    y, p = judged
    assert [one["period"] for one in numbers["periods"]["periods"]] == ["2024-01", "2024-02", "2024-03"]
    for one in numbers["periods"]["periods"]:
        rows = members(case, "month")[one["period"]]
        assert one["rows"] == len(rows)
        close(one["auc"]["estimate"], roc_auc_score(y[rows], p[rows]))
        close([one["base_rate"]["estimate"], one["mean_risk"]], [y[rows].mean(), p[rows].mean()])
        close(one["approval"]["estimate"], (p[rows] < CUTOFF).mean())


def test_shifts(numbers, case):
    form = case.model.form_
    for one in numbers["drift"]["features"]:
        levels = form.parts[0].shapes[one["feature"]].levels
        old, new = (
            np.maximum(np.bincount(levels.codes(form.align(rows), one["feature"]), minlength=len(levels)), 0.5)
            / len(rows)
            for rows in (case.train, case.test)
        )
        seen = (np.array(one["old"]) > 0) | (np.array(one["new"]) > 0)
        close(one["psi"], ((new - old) * np.log(new / old))[seen].sum())


def test_weak_spots_sensitivity_and_stress_are_those_of_the_functions(numbers, case, judged):
    y, p = judged
    given = case.test.drop("other")
    spots = pr.weak_spots(case.model, given, y, columns=["branch"])
    assert numbers["weak_spots"]["tested"] == spots.tested
    assert [one["slice"] for one in numbers["weak_spots"]["spots"]] == [spot.slice for spot in spots.spots]
    worse = {"increasing": 10.0, "decreasing": -10.0}  # percent
    moved, features = case.test, case.model.form_.schema.features
    for name, feature in features.items():
        if feature.kind == "continuous" and feature.sign:
            values = case.test[name].cast(pl.Float64).to_numpy()
            moving = np.isin(values, measured(case, case.test, name))
            floor = -np.inf if feature.lower_bound is None else feature.lower_bound
            after = np.where(moving, np.maximum(values + values * worse[feature.direction] / 100, floor), values)
            moved = moved.with_columns(pl.Series(name, after))
    (rows, *_) = numbers["sensitivity"]["stress"]["groups"]
    after = case.model.predict_proba(moved)[:, 1]
    close([rows["approval"], rows["approval_after"]], [(p < CUTOFF).mean(), (after < CUTOFF).mean()])
    close([rows["risk"], rows["risk_after"]], [p.mean(), after.mean()])
    close(rows["bad_rate_after"], after[after < CUTOFF].mean())


def test_reasons_are_those_of_the_refused(numbers, case, judged):
    _, p = judged
    found, refused = numbers["reasons"], np.flatnonzero(p >= CUTOFF)
    assert found["refused"] == len(refused)
    said = case.model.reasons(case.test)
    first = [said.named(row)[0] for row in refused if said.named(row)]
    every = [name for row in refused for name in said.named(row)]
    for one in found["features"]:
        assert (one["first"], one["any"]) == (first.count(one["feature"]), every.count(one["feature"]))
    assert found["named"] == {str(k): sum(len(said.named(row)) == k for row in refused) for k in range(found["k"] + 1)}


def test_importance_is_the_mean_contribution(numbers, case):
    explained = case.model.explain(case.test)
    mean = dict(zip(explained.names, np.abs(explained.contributions).mean(axis=0), strict=True))
    for one in numbers["shapes"]["importance"]:
        close(one["mean"], mean[one["feature"]])


def test_the_example_is_what_the_model_says(numbers, case):
    found, form = numbers["example"], case.model.form_
    atoms = atoms_of(form)
    close(found["sum"], found["intercept"] + sum(one["score"] for one in found["terms"]))
    row = {}
    for one in found["terms"]:
        shape = form.parts[0].shapes[one["feature"]]
        level = int(np.argmax(shape.weights))
        levels = atoms[one["feature"]].levels_in(shape.levels)
        row[one["feature"]] = atoms[one["feature"]].values[int(np.flatnonzero(levels == level)[0])]
    close(found["risk"], case.model.predict_proba(row)[0, 1])


def test_a_column_of_probabilities_is_a_model_to_compare_with(numbers, case, judged):
    y, p = judged
    other, found = case.test["other"].to_numpy(), numbers["against"]
    close(found["figures"]["auc"]["estimate"], roc_auc_score(y, other))
    close(found["differences"]["brier"]["estimate"], brier_score_loss(y, p) - brier_score_loss(y, other))
    ours, theirs = p < CUTOFF, other < CUTOFF
    counts = {one["which"]: (one["rows"], one["positives"]) for one in found["decisions"]}
    assert counts["only_by_this"] == ((ours & ~theirs).sum(), y[ours & ~theirs].sum())
    assert sum(rows for rows, _ in counts.values()) == len(y)


def test_challengers_are_fitted_to_the_training_rows(numbers, case, judged):
    y, p = judged
    (line,) = numbers["refits"]["challengers"]
    schema = case.model.form_.schema
    kinds = [name for name, feature in schema.features.items() if feature.kind == "categorical"]
    assert line["note"] == ""
    if not kinds and not any(case.train[name].null_count() for name in schema.features):
        matrix = [rows.select(list(schema.features)).to_numpy() for rows in (case.train, case.test)]
        fitted = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(matrix[0], case.train["bad"])
        close(line["figures"]["auc"]["estimate"], roc_auc_score(y, fitted.predict_proba(matrix[1])[:, 1]))
    rival = pr.validate.challengers.RIVALS["logistic regression"].build(schema)
    risk = rival.fit(case.train.select(list(schema.features)), case.train["bad"].to_numpy()).predict_proba(case.test)[
        :, 1
    ]
    close(line["figures"]["auc"]["estimate"], roc_auc_score(y, risk))
    close(line["differences"]["log_loss"]["estimate"], log_loss(y, risk) - log_loss(y, p))


def test_the_fit_can_be_done_again_and_rules_are_priced(numbers, case):
    found = numbers["refits"]
    assert found["same_rows"]
    assert found["again"] == {"same_form": True, "largest_move": 0.0}
    schema = case.model.form_.schema
    priced = pr.prices(pr.make_classifier("ARM1", schema), case.train, case.train["bad"].to_numpy(), cv=3)
    assert [one["what"] for one in found["prices"]["prices"]] == [one.what for one in priced]
    close([one["log_loss"]["estimate"] for one in found["prices"]["prices"]], [one.log_loss.estimate for one in priced])


def test_hashes_and_exports(numbers, case):
    assert numbers["model"]["file"]["sha256"] == hashlib.sha256(case.file.read_bytes()).hexdigest()
    assert [one["agrees"] for one in numbers["exports"]] == [True, True]
    assert numbers["certificate"]["valid"]
    assert numbers["certificate"]["stored"]
    assert numbers["certificate"]["differences"] == []
