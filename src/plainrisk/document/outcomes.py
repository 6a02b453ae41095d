"""The sections on how the model did: performance, calibration, groups, time, shifts, challengers, prices of rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from plainrisk.document import pictures
from plainrisk.document.background import OWNER, VALIDATOR, Commands, option
from plainrisk.document.blocks import Block, Gap, Grid, Heading, Paragraph
from plainrisk.document.figures import (
    count,
    figure,
    percent,
    points,
    points_with_ends,
    share_with_ends,
    titles_of,
    value,
    with_ends,
)

__all__ = ["LABELS", "calibration", "fairness", "performance", "periods", "segments", "stability", "weak_spots"]

LABELS = {
    "auc": "AUC",
    "gini": "Gini",
    "h_measure": "H-measure",
    "ks": "KS",
    "brier": "Brier score",
    "log_loss": "Log loss",
    "ece": "Expected calibration error",
    "gap": "Mean prediction less observed rate",
    "slope": "Calibration slope",
    "intercept": "Calibration intercept",
}
WORTH = {
    "auc": "1 is perfect ranking, 0.5 none",
    "gini": "2 AUC - 1",
    "h_measure": "costs of wrong decisions by beta(2, 2); 1 is perfect",
    "ks": "largest distance of the two distributions",
    "brier": "mean squared error; 0 is perfect",
    "log_loss": "0 is perfect",
    "ece": "15 equal-width bins; 0 is perfect",
    "gap": "0 if calibrated in the large",
    "slope": "1 if calibrated; below 1: too extreme",
    "intercept": "0 if calibrated",
}


def performance(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """All figures with intervals, the spread of probabilities, and what the cut-off does."""
    measured = n["performance"]
    yield Paragraph(
        f"{count(measured['rows'])} test rows, observed rate {share_with_ends(measured['base_rate'])}, mean prediction "
        f"{percent(measured['mean_risk'])}. Intervals are of {measured['level']:.0%}."
    )
    yield Grid(
        "Figures of the model on the test rows.",
        ("figure", "value", "interval", "how to read it"),
        [(LABELS[name], figure(r["estimate"]), _interval(r), WORTH[name]) for name, r in measured["figures"].items()],
        command=run("evaluate", run.test),
        note=" ".join(
            [*measured["notes"], "AUC and Gini: DeLong; slope and intercept: sandwich; the others: bootstrap."]
        ),
        left=(0, 3),
    )
    yield pictures.histogram(n["data"]["histogram"], n["model"]["outcome"])
    yield from _cutoffs(n, run)


def _interval(found: Mapping[str, Any]) -> str:
    return "–" if value(found["low"]) is None else f"{figure(found['low'])} to {figure(found['high'])}"


def _cutoffs(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    table, chosen = n["cutoffs"], n["cutoffs"]["chosen"]
    cutoff = n["model"]["cutoff"]
    owner = "of the policy" if cutoff["stated"] else "tried, since the policy has none"
    yield Paragraph(
        f"The cut-off {owner} is {percent(cutoff['value'])}. It approves {share_with_ends(chosen['approval'])} of "
        f"the test rows; the "
        f"bad rate among them is {share_with_ends(chosen['bad_rate'])}. It refuses "
        f"{share_with_ends(chosen['bads_refused'])} of the "
        f"bad and {share_with_ends(chosen['goods_refused'])} of the good."
    )
    yield pictures.cutoffs(table, chosen)
    yield Grid(
        "Cut-offs at even steps of approval.",
        ("cut-off", "approved", "bad rate of the approved", "bad refused", "good refused"),
        [
            (
                percent(one["cutoff"], 2),
                percent(one["approval"]["estimate"]),
                share_with_ends(one["bad_rate"]),
                percent(one["bads_refused"]["estimate"]),
                percent(one["goods_refused"]["estimate"]),
            )
            for one in table["cutoffs"][1::2]
        ],
        command=run("cutoffs", run.test, f"--cutoff {cutoff['value']:g}"),
        note="Bad is the adverse outcome. Intervals are of 95% (Wilson), each at a fixed cut-off.",
        left=(),
    )
    if not cutoff["stated"]:
        yield Gap(OWNER, "how the cut-off is set: costs, prices, appetite for risk")


def segments(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """The same figures inside groups that were asked for, and along the feature that matters most."""
    for report in n["groups"]:
        if report["kind"] == "protected":
            continue
        why = ", the feature that matters most" if report["kind"] == "leading" else ""
        yield Grid(
            f"By {report['title']}{why}.",
            ("segment", "rows", "observed rate", "mean prediction", "gap in points", "AUC"),
            [
                (
                    _named(group),
                    count(group["rows"]),
                    share_with_ends(group["base_rate"]),
                    percent(group["mean_risk"]),
                    points_with_ends(group["gap"]),
                    with_ends(group["auc"], 2),
                )
                for group in report["groups"]
            ],
            command=run("evaluate", run.test, option("by", report["column"])),
            note="Inside the levels of a feature of the model the AUC is lower than over all rows, since that "
            "feature no longer "
            "ranks."
            if report["kind"] == "leading"
            else "",
        )
    yield Paragraph("Other segments: plainrisk document ... --by COLUMN, repeatable.")


def _named(group: Mapping[str, Any]) -> str:
    return f"{group['group']} (small)" if group["small"] else str(group["group"])


def periods(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """Figures by period."""
    by_period = n["periods"]
    if by_period is None:
        yield Gap(VALIDATOR, "performance over time. No column of periods was given (--time COLUMN)")
        return
    column = by_period["column"]
    yield pictures.periods(by_period["periods"], column)
    yield Grid(
        f"By {column}.",
        (column, "rows", "observed rate", "mean prediction", "gap in points", "AUC", "approved", "PSI"),
        [
            (
                _named({"group": one["period"], **one}),
                count(one["rows"]),
                share_with_ends(one["base_rate"]),
                percent(one["mean_risk"]),
                points(one["gap"]["estimate"]),
                with_ends(one["auc"], 2),
                percent(one["approval"]["estimate"]),
                figure(one["psi"], 3),
            )
            for one in by_period["periods"]
        ],
        command=run("periods", run.test, option("time", column)),
        note=f"PSI: of the probability, against {by_period['against']}. An index of few rows is large by chance.",
    )


def calibration(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """Whether a probability of 10% means 10%."""
    bins, figures = n["performance"]["calibration"], n["performance"]["figures"]
    yield Paragraph(
        f"Mean prediction less observed rate: {points_with_ends(figures['gap'])} percentage points. Calibration "
        f"slope: "
        f"{with_ends(figures['slope'])}, intercept {with_ends(figures['intercept'])}. Expected calibration error: "
        f"{with_ends(figures['ece'])}."
    )
    tests = n["performance"]["tests"]
    chi, z = tests["hosmer_lemeshow"], tests["spiegelhalter"]
    yield Paragraph(
        f"Tests that all probabilities are right: Hosmer and Lemeshow {figure(chi['statistic'], 2)} in "
        f"{chi['degrees']} groups, "
        f"p = {figure(chi['p_value'], 4)}; Spiegelhalter z = {figure(z['statistic'], 2)}, p = "
        f"{figure(z['p_value'], 4)}. Large samples "
        "reject gaps that nobody would mind, so read the gaps first."
    )
    yield pictures.calibration(bins)
    columns = (bins[name] for name in ("lower", "upper", "count", "predicted", "observed", "low", "high"))
    lines = [
        (
            percent(a, 2),
            percent(b, 2),
            count(rows),
            percent(p),
            percent(o),
            f"{percent(low)} to {percent(high)}".replace("% to ", "\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}"),
            figure(grade["p_value"]),
            "" if low <= p <= high else "prediction too high" if p > high else "prediction too low",
        )
        for a, b, rows, p, o, low, high, grade in zip(*columns, tests["grades"], strict=True)
    ]
    shown = 8 if any(line[7] for line in lines) else 7
    header = ("prediction from", "to", "rows", "mean prediction", "observed rate", "interval", "Jeffreys p", "remark")
    yield Grid(
        "Predicted and observed rates in ten bins of about equal size.",
        header[:shown],
        [line[:shown] for line in lines],
        command=run("evaluate", run.test),
        note="Jeffreys p: of the test that the prediction is not too low. In four of ten calibrated models, one or "
        "more of the ten intervals miss by chance.",
        left=(7,),
    )


def stability(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """How far the test rows are from the training rows."""
    drifted = n["drift"]
    if drifted is None:
        yield Paragraph(
            "The model file counts no training rows, so shifts cannot be measured without the training file (--train)."
        )
        return
    yield pictures.drift(drifted, titles_of(n))
    moved = [one for one in drifted["features"] if one["size"] != "small"]
    unit = "points" if drifted["unit"] == "probability" else drifted["unit"]
    limits = drifted["limits"]
    yield Paragraph(
        f"{len(moved)} of {len(drifted['features'])} features have a moderate or large shift (population stability "
        f"index from "
        f"{limits['moderate']:g} and {limits['large']:g} on)."
    )
    shown = (moved or drifted["features"])[:12]
    yield Grid(
        "Shifts of features between training and test rows, the largest first.",
        ("feature", "PSI", "size", f"effect on the mean {'probability (points)' if unit == 'points' else unit}"),
        [
            (
                titles_of(n)[one["feature"]],
                figure(one["psi"], 4),
                one["size"],
                points(one["shift"], 2) if unit == "points" else figure(one["shift"], 4, "+"),
            )
            for one in shown
        ],
        command=run("drift", run.test, *(["--old", run.train] if n["refits"] is not None else [])),
        note="" if unit == "points" else "Score: the sum before it is turned into a probability.",
        left=(0, 2),
    )
    for one in drifted["subscales"]:
        if one["subscale"] == "risk":
            yield Paragraph(
                f"The probability itself: PSI {figure(one['psi'], 4)} ({one['size']}), mean "
                f"{percent(one['old_risk'])} in training, "
                f"{percent(one['new_risk'])} in the test rows."
            )


def weak_spots(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """The slices in which the model is worse than on the whole, beyond chance."""
    search = n["weak_spots"]
    looked = f"{count(search['tested'])} slices of the test rows were looked at: groups of one column, and of two"
    others = {report["column"] for report in n["groups"] if report["kind"] == "asked"} - set(n["model"]["features"])
    command = run("weak-spots", run.test, *(option("more", name) for name in sorted(others)))
    alike = f"The chance of naming a slice where there is nothing to name is at most {search['level']:.0%}."
    if not search["spots"]:
        yield Paragraph(
            f"No slice is worse than the whole beyond chance (the worst: p = {figure(search['p_value'], 2)}). "
            f"{looked}. {alike} To look again: {command}"
        )
        return
    yield Paragraph(f"{looked}. {alike}")
    yield Grid(
        "Slices in which calibration or ranking is worse than on the whole.",
        ("slice", "weakness", "rows", "mean prediction", "observed rate", "AUC", "AUC promised", "p"),
        [
            (
                spot["slice"],
                spot["weakness"],
                count(spot["rows"]),
                percent(spot["predicted"]),
                share_with_ends(spot["observed"]),
                with_ends(spot["auc"], 2),
                figure(spot["promised"], 2),
                figure(spot["p_value"]),
            )
            for spot in search["spots"]
        ],
        command=command,
        note="AUC promised: what the probabilities of the slice would give if they were right.",
        left=(0, 1),
    )


def fairness(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """Groups by protected features and by columns that were asked for."""
    reports = [report for report in n["groups"] if report["kind"] != "leading"]
    read = [one["title"] for one in n["schema"] if one["protected"] and one["read"]]
    yield Paragraph(
        f"The model reads these protected features: {', '.join(read)}. They are never named as a reason or as advice."
        if read
        else "The model reads no feature that its schema marks as protected."
    )
    if not reports:
        yield Gap(
            VALIDATOR,
            "groups to compare. The model reads no protected feature, and no column of groups was given (--by COLUMN)",
        )
        return
    for report in reports:
        yield Heading(3, f"By {report['title']}")
        if len(report["groups"]) <= 12:
            yield pictures.groups(report)
        yield Grid(
            f"Approval by {report['title']}, compared with {report['reference']}.",
            (
                "group",
                "rows",
                "approved",
                "impact ratio",
                "good approved",
                "observed rate",
                "gap in points",
            ),
            [
                (
                    _named(group),
                    count(group["rows"]),
                    share_with_ends(group["approval"]),
                    with_ends(group["impact"], 2) + (" *" if group["below_four_fifths"] else ""),
                    percent(group["opportunity"]["estimate"]),
                    percent(group["base_rate"]["estimate"]),
                    points(group["gap"]["estimate"]),
                )
                for group in report["groups"]
            ],
            command=run("fairness", run.test, option("by", report["column"]), f"--cutoff {report['cutoff']:g}"),
            note="Impact ratio: approval rate over that of the reference group; * below four fifths. Good approved: "
            "approval rate of those with the good outcome. Gap: mean prediction less observed rate.",
        )
    yield Gap(VALIDATOR, "whether differences between groups are explained by risk, and which alternatives were tried")
