"""Limitations that the program finds, from the numbers of the document alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plainrisk.document.figures import (
    TINY,
    auc,
    count,
    figure,
    needs_reason,
    percent,
    points_with_ends,
    signed,
    titles_of,
    value,
    with_ends,
)
from plainrisk.schema.protected import looks_protected

__all__ = ["limitations"]

ENOUGH_OUTCOMES = 100  # of each outcome: below, calibration curves and AUC say little (Vergouwe et al. 2005)
WIDE_AUC = 0.05  # a wider interval of the AUC does not separate good models from mediocre ones
TOO_GOOD = 0.99
UNSTABLE = 0.05  # of the rows: refits change one decision in twenty, on average
OTHER_REASONS = 0.25  # of the refused: one letter in four would name another first reason
ONE_REASON = 0.8  # of the refused: letters with the same first reason explain little
MANY_OUTSIDE = 3  # of ten intervals of 95%; as many miss by chance in one model of ninety
SEVERITIES = ("high", "medium", "note")

# Severity, section and text of each.
Limitations = Iterator[tuple[str, str, str]]


def limitations(numbers: dict[str, Any]) -> list[dict[str, str]]:
    """Return severity, section and text of every limitation, the most severe first."""
    checks = (_sample, _figures, _calibration, _population, _slices, _groups, _form, _schema, _comparisons)
    limitations = [limitation for check in checks for limitation in check(numbers)]
    limitations.sort(key=lambda limitation: SEVERITIES.index(limitation[0]))
    return [dict(zip(("severity", "section", "text"), limitation, strict=True)) for limitation in limitations]


def _sample(numbers: dict[str, Any]) -> Limitations:
    test = numbers["data"]["test"]
    positives, others = test["positives"], test["rows"] - test["positives"]
    if test["seen_before"]:
        yield "high", "data", "The test rows seem to be the training rows. On new rows the model will do worse."
    if min(positives, others) == 0:
        yield "high", "performance", "The test rows have one outcome only, so ranking cannot be measured."
    elif min(positives, others) < ENOUGH_OUTCOMES:
        text = (
            f"The rarer outcome occurs in {count(min(positives, others))} test rows. With fewer than {ENOUGH_OUTCOMES} "
            "of each outcome, figures of calibration and ranking are uncertain."
        )
        yield "medium", "performance", text


def _figures(numbers: dict[str, Any]) -> Limitations:
    performance = numbers["performance"]
    ranking = performance["figures"]["auc"]
    low, high = value(ranking["low"]), value(ranking["high"])
    if low is not None and high is not None and high - low > WIDE_AUC:
        yield "note", "performance", f"The interval of the AUC is wide: {with_ends(ranking)}."
    if (value(ranking["estimate"]) or 0) > TOO_GOOD:
        yield "high", "performance", "The AUC is above 0.99: a feature may contain the outcome."
    if performance["certain_and_wrong"]:
        rows = count(len(performance["certain_and_wrong"]))
        text = f"{rows} test rows have a probability of 0 or 1 that is wrong; the log loss is infinite."
        yield "high", "performance", text


def _calibration(numbers: dict[str, Any]) -> Limitations:
    figures, bins = numbers["performance"]["figures"], numbers["performance"]["calibration"]
    gap, slope = figures["gap"], figures["slope"]
    if _excludes(gap, 0.0):
        way, size = "higher" if gap["estimate"] > 0 else "lower", f"{abs(100 * gap['estimate']):.1f} percentage points"
        text = f"The mean predicted probability is {way} than the observed rate by {size}, beyond chance."
        yield "medium", "calibration", text
    if _excludes(slope, 1.0):
        what = "too extreme" if slope["estimate"] < 1 else "not spread enough"
        yield "medium", "calibration", f"The calibration slope is {with_ends(slope)}: probabilities are {what}."
    intervals = zip(bins["predicted"], bins["low"], bins["high"], strict=True)
    outside = sum(not low <= p <= high for p, low, high in intervals)
    if outside >= MANY_OUTSIDE:
        total = len(bins["predicted"])
        yield "medium", "calibration", f"In {outside} of {total} bins the prediction is outside the 95% interval."


def _excludes(interval: dict[str, float], point: float) -> bool:
    low, high = value(interval["low"]), value(interval["high"])
    return low is not None and high is not None and not low <= point <= high


def _population(numbers: dict[str, Any]) -> Limitations:
    titles = titles_of(numbers)
    for issue in numbers["data"]["quality"]["issues"]:
        severity = {"high": "high", "moderate": "medium"}.get(issue["severity"])
        if severity is not None:  # the section on data has the others
            name = titles.get(issue["feature"], issue["feature"])
            yield severity, "data", f"{name}: {issue['message']}" if name else issue["message"]
    shifts = [] if numbers["drift"] is None else numbers["drift"]["features"]
    for size, severity in (("large", "high"), ("moderate", "medium")):
        moved = [f"{titles[s['feature']]} ({figure(s['psi'])})" for s in shifts if s["size"] == size]
        if moved:
            yield severity, "stability", f"Features with a {size} shift against training (PSI): {', '.join(moved)}."


def _groups(numbers: dict[str, Any]) -> Limitations:
    for report in numbers["groups"]:
        leading, title = report["kind"] == "leading", report["title"]
        small = [group["group"] for group in report["groups"] if group["small"]]
        if small and not leading:
            yield "note", "fairness", f"Groups of {title} too small for reliable figures: {', '.join(small)}."
        for group in (group for group in report["groups"] if not group["small"]):
            if group["below_four_fifths"] and not leading:
                ratio = f"{report['reference']} (ratio {auc(group['impact'])})"
                text = f"The approval rate of {title}: {group['group']} is below four fifths of that of {ratio}."
                yield "high", "fairness", text
            if _excludes(group["gap"], 0.0):
                gap = f"the mean prediction differs from the observed rate by {points_with_ends(group['gap'])}"
                text = f"In {title}: {group['group']}, {gap} percentage points."
                yield "medium", "segments" if leading else "fairness", text


def _slices(numbers: dict[str, Any]) -> Limitations:
    for spot in numbers["weak_spots"]["spots"]:
        if spot["weakness"] == "calibration":
            what = f"the prediction differs from the observed rate by {points_with_ends(spot['gap'])} percentage points"
        else:
            what = f"the AUC is {auc(spot['auc'])}, and the probabilities imply {figure(spot['promised'], 2)}"
        yield "high", "weak spots", f"In the slice {spot['slice']} ({count(spot['rows'])} rows), {what}."


def _form(numbers: dict[str, Any]) -> Limitations:
    certificate, fit = numbers["certificate"], numbers["model"]["fit"]
    for check in certificate["checks"]:
        if not check["holds"]:
            yield "high", "certificate", f"A property does not hold: {check['name']}. {check['detail']}"
    for difference in certificate["differences"]:
        yield "high", "certificate", f"The stored certificate differs: {difference}."
    for note in certificate["notes"]:
        yield "note", "certificate", f"{note}."
    for level in certificate["outside"]:
        if level["below_risk"] >= TINY:
            text = (
                f"{titles_of(numbers)[level['feature']]}, {level['name']}: up to {100 * level['below_risk']:.1f} "
                f"percentage points better for the applicant than the best measured level ({count(level['rows'])} "
                "training rows)."
            )
            yield "medium", "schema", text
    if fit is None:
        yield "medium", "method", "The model file does not say how the model was fitted."
        return
    if not fit["converged"]:
        yield "high", "method", f"The fit stopped before the optimum: {fit['reason']}."
    if fit["clipped"] > 0:
        yield "medium", "method", f"{percent(fit['clipped'])} of the training rows are clipped at an end of the scale."
    if fit["features_left"]:
        yield "note", "method", f"Features without evidence, which add nothing: {', '.join(fit['features_left'])}."


def _schema(numbers: dict[str, Any]) -> Limitations:
    features = [feature for feature in numbers["schema"] if feature["read"]]
    protected = [feature["title"] for feature in features if feature["protected"]]
    if protected:
        yield "high", "fairness", f"The model reads protected features: {', '.join(protected)}."
    names = {feature["title"]: looks_protected(feature["feature"]) for feature in features if not feature["protected"]}
    suspected = ", ".join(f"{title} ({looks})" for title, looks in names.items() if looks)
    if suspected:
        yield "medium", "fairness", f"Features that look protected by their names and are not marked: {suspected}."
    without = sum(feature["why"] is None and needs_reason(feature) for feature in features)
    if without:
        of_features = f"{without} feature{'s' * (without != 1)}"
        yield "note", "schema", f"No reason is stated for the modeler's requirements on {of_features}."
    cutoff = numbers["model"]["cutoff"]
    if not cutoff["stated"]:
        text = f"The policy has no cut-off. Decisions in this document are by {cutoff['value']:g}, for illustration."
        yield "medium", "performance", text


def _comparisons(numbers: dict[str, Any]) -> Limitations:
    other, refits = numbers["against"], numbers["refits"] or {}
    gaps = [
        (rival["name"], rival["differences"]["auc"]) for rival in refits.get("challengers", ()) if not rival["note"]
    ]
    if other is not None and value((ours := other["differences"]["auc"])["low"]) is not None:
        gaps.append((other["name"], {"estimate": -ours["estimate"], "low": -ours["high"], "high": -ours["low"]}))
    for name, gap in gaps:
        if (value(gap["low"]) or 0) > 0:
            yield "medium", "challengers", f"{name} ranks better on the test rows: AUC {signed(gap)}."
    for price in (refits.get("prices") or {"prices": ()})["prices"]:
        if price["clear"] and price["log_loss"]["estimate"] > 0:
            yield "note", "prices", f"The {price['what']} costs accuracy: log loss {signed(price['log_loss'])}."
    if refits.get("stability"):
        yield from _stability(refits["stability"]["refits"][0])
    yield from _first_reasons(numbers)
    again = refits.get("again")
    if again and not again.get("same_form", False):
        far = again.get("largest_move")
        moved = "" if far is None else f" A probability moves by at most {100 * far:.2f} percentage points."
        yield "medium", "implementation", f"Fitting to the training file again gives another model.{moved}"


def _stability(resampled: dict[str, Any]) -> Limitations:
    refits = "Refits to resampled training rows change"
    if resampled["decisions"] > UNSTABLE:
        yield "medium", "stability", f"{refits} the decisions on {percent(resampled['decisions'])} of the test rows."
    if resampled["reasons"] > OTHER_REASONS:
        yield "medium", "reasons", f"{refits} the first reason of {percent(resampled['reasons'])} of the refused."


def _first_reasons(numbers: dict[str, Any]) -> Limitations:
    given = numbers["reasons"]
    if given is None or not given["features"]:
        return
    most = max(given["features"], key=lambda reason: int(reason["first"]))
    share, name = most["first"] / given["refused"], titles_of(numbers)[most["feature"]]
    if share > ONE_REASON:
        better = [level for level in numbers["certificate"]["outside"] if level["below_risk"] >= TINY]
        best = [level["name"] for level in better if level["feature"] == most["feature"]]
        why = f" Its best level is not a measured value: {best[0]}." if best and given["reference"] == "best" else ""
        yield "medium", "reasons", f"{name} is the first reason of {percent(share)} of the refused.{why}"
