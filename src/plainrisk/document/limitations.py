"""Limitations that the program finds by itself, from the numbers of the document alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plainrisk.document.figures import TINY, count, figure, percent, points_with_ends, titles_of, value, with_ends
from plainrisk.schema.protected import looks_protected

__all__ = ["limitations"]

ENOUGH_OUTCOMES = 100  # of each outcome: below, calibration curves and AUC say little (Vergouwe et al. 2005)
WIDE_AUC = 0.05  # an interval of the AUC that is wider does not tell good models from middling ones
TOO_GOOD = 0.99
UNSTEADY = 0.05  # of the rows: refits decide one of twenty otherwise, on average
OTHER_REASONS = 0.25  # of the refused: one in four letters would name another first reason
ONE_REASON = 0.8  # of the refused: letters with the same first reason hardly tell applicants apart
MANY_OUTSIDE = 3  # of ten intervals of 95%; as many miss by chance once in ninety models
GRAVITY = {"high": "high", "moderate": "medium"}

Found = Iterator[tuple[str, str, str]]


def limitations(numbers: dict[str, Any]) -> list[dict[str, str]]:
    """Return every limitation found: how grave it is, in which section, and in words; the gravest first."""
    checks = (_sample, _figures, _calibration, _population, _slices, _groups, _form, _schema, _comparisons)
    found = [one for check in checks for one in check(numbers)]
    order = {"high": 0, "medium": 1, "note": 2}
    return [
        {"severity": severity, "section": section, "text": text}
        for severity, section, text in sorted(found, key=lambda one: order[one[0]])
    ]


def _sample(numbers: dict[str, Any]) -> Found:
    test = numbers["data"]["test"]
    positives, others = test["positives"], test["rows"] - test["positives"]
    if test["seen_before"]:
        yield "high", "data", "The test rows seem to be the training rows. On new rows the model will do less well."
    if min(positives, others) == 0:
        yield "high", "performance", "The test rows have one outcome only, so ranking cannot be measured."
    elif min(positives, others) < ENOUGH_OUTCOMES:
        yield (
            "medium",
            "performance",
            (
                f"The rarer outcome occurs in {count(min(positives, others))} test rows. With fewer than "
                f"{ENOUGH_OUTCOMES} of each outcome, figures of calibration and ranking are uncertain."
            ),
        )


def _figures(numbers: dict[str, Any]) -> Found:
    performance = numbers["performance"]
    auc = performance["figures"]["auc"]
    low, high = value(auc["low"]), value(auc["high"])
    if low is not None and high is not None and high - low > WIDE_AUC:
        yield "note", "performance", f"The interval of the AUC is wide: {with_ends(auc)}."
    if (value(auc["estimate"]) or 0) > TOO_GOOD:
        yield "high", "performance", "The AUC is above 0.99: a feature may know the outcome."
    if performance["certain_and_wrong"]:
        rows = count(len(performance["certain_and_wrong"]))
        yield (
            "high",
            "performance",
            f"{rows} test rows have a probability of 0 or 1 that is wrong; the log loss is infinite.",
        )


def _calibration(numbers: dict[str, Any]) -> Found:
    figures, bins = numbers["performance"]["figures"], numbers["performance"]["calibration"]
    gap, slope = figures["gap"], figures["slope"]
    if _leaves_out(gap, 0.0):
        way = "higher" if gap["estimate"] > 0 else "lower"
        yield (
            "medium",
            "calibration",
            (
                f"The mean predicted probability is {way} than the observed rate by {abs(100 * gap['estimate']):.1f} "
                "percentage points, beyond chance."
            ),
        )
    if _leaves_out(slope, 1.0):
        what = "too extreme" if slope["estimate"] < 1 else "not spread enough"
        yield "medium", "calibration", f"The calibration slope is {with_ends(slope)}: probabilities are {what}."
    outside = sum(
        not low <= p <= high for p, low, high in zip(bins["predicted"], bins["low"], bins["high"], strict=True)
    )
    if outside >= MANY_OUTSIDE:
        total = len(bins["predicted"])
        yield "medium", "calibration", f"In {outside} of {total} bins the prediction is outside the 95% interval."


def _leaves_out(found: dict[str, float], point: float) -> bool:
    low, high = value(found["low"]), value(found["high"])
    return low is not None and high is not None and not low <= point <= high


def _population(numbers: dict[str, Any]) -> Found:
    for issue in numbers["data"]["quality"]["issues"]:
        if issue["severity"] == "low":
            continue  # the section on data has them
        name = titles_of(numbers).get(issue["feature"], issue["feature"])
        yield GRAVITY[issue["severity"]], "data", f"{name}: {issue['message']}" if name else issue["message"]
    drift, titles = numbers["drift"], titles_of(numbers)
    for size, severity in (("large", "high"), ("moderate", "medium")):
        moved = (
            []
            if drift is None
            else [
                f"{titles[one['feature']]} ({figure(one['psi'])})" for one in drift["features"] if one["size"] == size
            ]
        )
        if moved:
            yield severity, "stability", f"Features with a {size} shift against training (PSI): {', '.join(moved)}."


def _groups(numbers: dict[str, Any]) -> Found:
    for report in numbers["groups"]:
        small = [group["group"] for group in report["groups"] if group["small"]]
        if small and report["kind"] != "leading":
            yield "note", "fairness", f"Groups of {report['title']} too small for firm figures: {', '.join(small)}."
        for group in report["groups"]:
            if group["small"]:
                continue
            if group["below_four_fifths"] and report["kind"] != "leading":
                yield (
                    "high",
                    "fairness",
                    (
                        f"The approval rate of {report['title']}: {group['group']} is below four fifths of that of "
                        f"{report['reference']} (ratio {with_ends(group['impact'], 2)})."
                    ),
                )
            if _leaves_out(group["gap"], 0.0):
                yield (
                    "medium",
                    "segments" if report["kind"] == "leading" else "fairness",
                    (
                        f"In {report['title']}: {group['group']}, the mean prediction differs from the observed rate "
                        f"by {points_with_ends(group['gap'])} percentage points."
                    ),
                )


def _slices(numbers: dict[str, Any]) -> Found:
    for spot in numbers["weak_spots"]["spots"]:
        if spot["weakness"] == "calibration":
            what = f"the prediction differs from the observed rate by {points_with_ends(spot['gap'])} percentage points"
        else:
            what = (
                f"the AUC is {with_ends(spot['auc'], 2)}, and the probabilities promise {figure(spot['promised'], 2)}"
            )
        yield "high", "weak spots", f"In the slice {spot['slice']} ({count(spot['rows'])} rows), {what}."


def _form(numbers: dict[str, Any]) -> Found:
    certificate, fit = numbers["certificate"], numbers["model"]["fit"]
    for check in certificate["checks"]:
        if not check["holds"]:
            yield "high", "certificate", f"A property does not hold: {check['name']}. {check['detail']}"
    for difference in certificate["differences"]:
        yield "high", "certificate", f"The stored certificate says otherwise: {difference}."
    for note in certificate["notes"]:
        yield "note", "certificate", f"{note}."
    for level in certificate["outside"]:
        if level["below_risk"] >= TINY:
            where = f"{titles_of(numbers)[level['feature']]}, {level['name']}"
            yield (
                "medium",
                "schema",
                (
                    f"{where}: up to {100 * level['below_risk']:.1f} percentage points better for the applicant than "
                    f"the best measured level ({count(level['rows'])} training rows)."
                ),
            )
    if fit is None:
        yield "medium", "method", "The model file does not say how the model was fitted."
        return
    if not fit["converged"]:
        yield "high", "method", f"The fit stopped before the optimum: {fit['reason']}."
    if fit["clipped"] > 0:
        yield "medium", "method", f"{percent(fit['clipped'])} of the training rows are cut off at an end of the scale."
    if fit["features_left"]:
        yield "note", "method", f"Features without evidence, which add nothing: {', '.join(fit['features_left'])}."


def _schema(numbers: dict[str, Any]) -> Found:
    features = [one for one in numbers["schema"] if one["read"]]
    protected = [one["title"] for one in features if one["protected"]]
    if protected:
        yield "high", "fairness", f"The model reads protected features: {', '.join(protected)}."
    suspected = [
        f"{one['title']} ({looks_protected(one['feature'])})"
        for one in features
        if not one["protected"] and looks_protected(one["feature"])
    ]
    if suspected:
        yield (
            "medium",
            "fairness",
            f"Features that look protected by their names and are not marked: {', '.join(suspected)}.",
        )
    unsaid = [one["title"] for one in features if one["why"] is None and _is_stated(one)]
    if unsaid:
        yield "note", "schema", f"No reason is stated for what the modeller required of {len(unsaid)} features."
    if not numbers["model"]["cutoff"]["stated"]:
        tried = numbers["model"]["cutoff"]["value"]
        yield (
            "medium",
            "performance",
            f"The policy has no cut-off. Decisions in this document are by {tried:g}, for the purpose.",
        )


def _is_stated(feature: dict[str, Any]) -> bool:
    """Whether anything was required of a feature that needs a reason."""
    ruled = feature["missing"] not in (None, "free") or feature["special_rules"] or feature["below_bound"]
    return bool(feature["direction"] != "none" or ruled or feature["protected"] or feature["edits"])


def _comparisons(numbers: dict[str, Any]) -> Found:
    other, refits = numbers["against"], numbers["refits"] or {}
    rivals = [*refits.get("challengers", ()), *([] if other is None else [_as_rival(other)])]
    for one in rivals:
        gap = one.get("differences", {}).get("auc")
        if gap is not None and (value(gap["low"]) or 0) > 0:
            yield "medium", "challengers", f"{one['name']} ranks better on the test rows: AUC {with_ends(gap, 4, '+')}."
    for price in (refits.get("prices") or {"prices": ()})["prices"]:
        if price["clear"] and price["log_loss"]["estimate"] > 0:
            yield (
                "note",
                "prices",
                f"The {price['what']} costs accuracy: log loss {with_ends(price['log_loss'], 4, '+')}.",
            )
    yield from _steadiness(refits.get("stability"))
    yield from _alike(numbers)
    again = refits.get("again")
    if again and not again.get("same_form", False):
        far = again.get("largest_move")
        moved = "" if far is None else f" A probability moves by at most {100 * far:.2f} percentage points."
        yield "medium", "implementation", f"Fitting to the training file again gives another model.{moved}"


def _steadiness(steady: dict[str, Any] | None) -> Found:
    resampled = None if steady is None else steady["refits"][0]
    if resampled is None:
        return
    refit = "Fitted again to resampled training rows, the model"
    if resampled["decisions"] > UNSTEADY:
        yield "medium", "stability", f"{refit} decides {percent(resampled['decisions'])} of the test rows otherwise."
    if resampled["reasons"] > OTHER_REASONS:
        refused = percent(resampled["reasons"])
        yield "medium", "reasons", f"{refit} gives {refused} of the refused another first reason."


def _alike(numbers: dict[str, Any]) -> Found:
    given = numbers["reasons"]
    if given is None or not given["features"]:
        return
    most = max(given["features"], key=lambda one: one["first"])
    share, name = most["first"] / given["refused"], titles_of(numbers)[most["feature"]]
    if share > ONE_REASON:
        best = [one["name"] for one in numbers["certificate"]["outside"] if _is_best(one, most["feature"])]
        why = f" Its best level is no measured value: {best[0]}." if best and given["reference"] == "best" else ""
        yield "medium", "reasons", f"{name} is the first reason of {percent(share)} of the refused.{why}"


def _is_best(level: dict[str, Any], feature: str) -> bool:
    return bool(level["feature"] == feature and level["below_risk"] >= TINY)


def _as_rival(other: dict[str, Any]) -> dict[str, Any]:
    """Turn the differences round: those of the other model are what a challenger's are."""
    turned = {
        name: {"estimate": -gap["estimate"], "low": -gap["high"], "high": -gap["low"]}
        for name, gap in other["differences"].items()
        if value(gap["low"]) is not None
    }
    return {"name": other["name"], "differences": turned}
