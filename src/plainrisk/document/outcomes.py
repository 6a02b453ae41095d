"""The sections on the model's results: performance, calibration, segments, periods, shifts, weak spots, fairness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from plainrisk.document import pictures
from plainrisk.document.background import Commands, option
from plainrisk.document.blocks import OWNER, VALIDATOR, Block, Gap, Grid, Heading, Paragraph, table
from plainrisk.document.figures import (
    auc,
    count,
    decimals,
    figure,
    percent,
    points,
    points_with_ends,
    share_with_ends,
    titles_of,
    value,
    with_ends,
)
from plainrisk.report import LABELS

__all__ = ["calibration", "fairness", "performance", "periods", "segments", "stability", "weak_spots"]

# How to read each figure.
READINGS = {
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
ROWS = ("rows", "rows", count)
RATE = ("observed rate", "base_rate", share_with_ends)
PREDICTION = ("mean prediction", "mean_risk", percent)
AUC = ("AUC", "auc", auc)


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
        [
            (LABELS[name], figure(range_["estimate"]), _interval(range_), READINGS[name])
            for name, range_ in measured["figures"].items()
        ],
        command=run("evaluate", run.test),
        note=" ".join([*measured["notes"], "AUC and Gini: DeLong; slope and intercept: sandwich; others: bootstrap."]),
        left=(0, 3),
    )
    yield pictures.histogram(n["data"]["histogram"], n["model"]["outcome"])
    yield from _cutoffs(n, run)


def _interval(range_: Mapping[str, Any]) -> str:
    return "–" if value(range_["low"]) is None else f"{figure(range_['low'])} to {figure(range_['high'])}"


def _cutoffs(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    cutoff, chosen = n["model"]["cutoff"], n["cutoffs"]["chosen"]
    source = "of the policy" if cutoff["stated"] else "tried, since the policy has none,"
    names = ("approval", "bad_rate", "bads_refused", "goods_refused")
    approval, bad_rate, bads, goods = (share_with_ends(chosen[name]) for name in names)
    yield Paragraph(
        f"The cut-off {source} is {percent(cutoff['value'])}. It approves {approval} of the test rows; the bad rate "
        f"among them is {bad_rate}. It refuses {bads} of the bad and {goods} of the good."
    )
    yield pictures.cutoffs(n["cutoffs"], chosen)
    columns = (
        ("cut-off", "cutoff", partial(percent, digits=2)),
        ("approved", "approval.estimate", percent),
        ("bad rate of the approved", "bad_rate", share_with_ends),
        ("bad refused", "bads_refused.estimate", percent),
        ("good refused", "goods_refused.estimate", percent),
    )
    yield table(
        "Cut-offs at even steps of approval.",
        columns,
        n["cutoffs"]["cutoffs"][1::2],
        command=run("cutoffs", run.test, f"--cutoff {cutoff['value']:g}"),
        note="Bad is the adverse outcome. Intervals are of 95% (Wilson), each at a fixed cut-off.",
        left=(),
    )
    if not cutoff["stated"]:
        yield Gap(OWNER, "how the cut-off is set: costs, prices, appetite for risk")


def segments(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """The same figures in the groups that were asked for, and by the feature that matters most."""
    columns = (("segment", "", _named), ROWS, RATE, PREDICTION, ("gap in points", "gap", points_with_ends), AUC)
    for report in n["groups"]:
        if report["kind"] == "protected":
            continue
        leading = report["kind"] == "leading"
        note = "Within a level of a feature the AUC is lower than over all rows, since the feature no longer ranks."
        yield table(
            f"By {report['title']}{', the feature that matters most' * leading}.",
            columns,
            report["groups"],
            command=run("evaluate", run.test, option("by", report["column"])),
            note=note * leading,
        )
    yield Paragraph("Other segments: plainrisk document ... --by COLUMN, repeatable.")


def _named(group: Mapping[str, Any]) -> str:
    name = group.get("group", group.get("period"))
    return f"{name} (small)" if group["small"] else str(name)


def periods(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """Figures by period."""
    by_period = n["periods"]
    if by_period is None:
        yield Gap(VALIDATOR, "performance over time. No column of periods was given (--time COLUMN)")
        return
    column = by_period["column"]
    yield pictures.periods(by_period["periods"], column)
    gap = ("gap in points", "gap.estimate", points)
    approved, psi = ("approved", "approval.estimate", percent), ("PSI", "psi", figure)
    yield table(
        f"By {column}.",
        ((column, "", _named), ROWS, RATE, PREDICTION, gap, AUC, approved, psi),
        by_period["periods"],
        command=run("periods", run.test, option("time", column)),
        note=f"PSI: of the probability, against {by_period['against']}. An index of few rows is large by chance.",
    )


def calibration(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """Whether a probability of 10% means 10%."""
    bins, figures = n["performance"]["calibration"], n["performance"]["figures"]
    slope, intercept, ece = (with_ends(figures[name]) for name in ("slope", "intercept", "ece"))
    yield Paragraph(
        f"Mean prediction less observed rate: {points_with_ends(figures['gap'])} percentage points. Calibration slope: "
        f"{slope}, intercept {intercept}. Expected calibration error: {ece}."
    )
    tests = n["performance"]["tests"]
    chi, z = tests["hosmer_lemeshow"], tests["spiegelhalter"]
    yield Paragraph(
        f"Tests that all probabilities are right: Hosmer-Lemeshow {figure(chi['statistic'], 2)} in "
        f"{chi['degrees']} groups, p = {decimals(chi['p_value'])}; Spiegelhalter z = {figure(z['statistic'], 2)}, p = "
        f"{decimals(z['p_value'])}. In large samples the tests reject gaps too small to matter, so read the gaps "
        "first."
    )
    yield pictures.calibration(bins)
    names = ("lower", "upper", "count", "predicted", "observed", "low", "high")
    records = [dict(zip(names, line, strict=True)) for line in zip(*map(bins.get, names), strict=True)]
    records = [{**record, "jeffreys": grade["p_value"]} for record, grade in zip(records, tests["grades"], strict=True)]
    columns: list[Any] = [
        ("prediction from", "lower", partial(percent, digits=2)),
        ("to", "upper", partial(percent, digits=2)),
        ("rows", "count", count),
        ("mean prediction", "predicted", percent),
        ("observed rate", "observed", percent),
        ("interval", "", _limits),
        ("Jeffreys p", "jeffreys", figure),
    ]
    if any(map(_remark, records)):
        columns.append(("remark", "", _remark))
    yield table(
        "Predicted and observed rates in ten bins of about equal size.",
        columns,
        records,
        command=run("evaluate", run.test),
        note="Jeffreys p: of the test that the prediction is not too low. In four of ten calibrated models, one or "
        "more of the ten intervals miss by chance.",
        left=(7,),
    )


def _limits(bin_: Mapping[str, float]) -> str:
    return f"{percent(bin_['low'])} to {percent(bin_['high'])}".replace("% to ", "\xa0to\xa0")


def _remark(bin_: Mapping[str, float]) -> str:
    if bin_["low"] <= bin_["predicted"] <= bin_["high"]:
        return ""
    return "prediction too high" if bin_["predicted"] > bin_["high"] else "prediction too low"


def stability(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """The distance between the test rows and the training rows."""
    drifted = n["drift"]
    if drifted is None:
        yield Paragraph("The model file has no counts of training rows, so shifts need the training file (--train).")
        return
    yield pictures.drift(drifted, titles_of(n))
    moved, limits = [shift for shift in drifted["features"] if shift["size"] != "small"], drifted["limits"]
    yield Paragraph(
        f"{len(moved)} of {len(drifted['features'])} features have a moderate shift (a population stability index of "
        f"at least {limits['moderate']:g}) or a large one (at least {limits['large']:g})."
    )
    in_points = drifted["unit"] == "probability"
    write = partial(points, digits=2) if in_points else partial(figure, digits=4, sign="+")
    effect = f"effect on the mean {'probability (points)' if in_points else drifted['unit']}"
    yield table(
        "Shifts of features between training and test rows, the largest first.",
        (
            ("feature", "feature", titles_of(n).__getitem__),
            ("PSI", "psi", decimals),
            ("size", "size", str),
            (effect, "shift", write),
        ),
        (moved or drifted["features"])[:12],
        command=run("drift", run.test, *(["--old", run.train] if n["refits"] is not None else [])),
        note="" if in_points else "Score: the sum before it is turned into a probability.",
        left=(0, 2),
    )
    for shift in drifted["subscales"]:
        if shift["subscale"] == "risk":
            yield Paragraph(
                f"The probability itself: PSI {decimals(shift['psi'])} ({shift['size']}), mean "
                f"{percent(shift['old_risk'])} in training, {percent(shift['new_risk'])} in the test rows."
            )


def weak_spots(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """The slices in which the model is worse than overall, beyond chance."""
    search = n["weak_spots"]
    tested = f"{count(search['tested'])} slices of the test rows were tested: groups of one column, and of two"
    others = {report["column"] for report in n["groups"] if report["kind"] == "asked"} - set(n["model"]["features"])
    command = run("weak-spots", run.test, *(option("more", name) for name in sorted(others)))
    chance = f"If nothing is wrong, a slice is named with a probability of at most {search['level']:.0%}."
    if not search["spots"]:
        yield Paragraph(
            f"No slice is worse than all rows together beyond chance (the worst: p = {figure(search['p_value'], 2)}). "
            f"{tested}. {chance} To repeat the search: {command}"
        )
        return
    yield Paragraph(f"{tested}. {chance}")
    columns = (
        ("slice", "slice", str),
        ("weakness", "weakness", str),
        ROWS,
        ("mean prediction", "predicted", percent),
        ("observed rate", "observed", share_with_ends),
        AUC,
        ("AUC expected", "promised", partial(figure, digits=2)),
        ("p", "p_value", figure),
    )
    yield table(
        "Slices in which calibration or ranking is worse than overall.",
        columns,
        search["spots"],
        command=command,
        note="AUC expected: the AUC if the probabilities of the slice are right.",
        left=(0, 1),
    )


def fairness(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """Groups of protected features, and of the columns that were asked for."""
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
    columns = (
        ("group", "", _named),
        ROWS,
        ("approved", "approval", share_with_ends),
        ("impact ratio", "", _impact),
        ("good approved", "opportunity.estimate", percent),
        ("observed rate", "base_rate.estimate", percent),
        ("gap in points", "gap.estimate", points),
    )
    for report in reports:
        yield Heading(3, f"By {report['title']}")
        if len(report["groups"]) <= 12:
            yield pictures.groups(report)
        yield table(
            f"Approval by {report['title']}, compared with {report['reference']}.",
            columns,
            report["groups"],
            command=run("fairness", run.test, option("by", report["column"]), f"--cutoff {report['cutoff']:g}"),
            note="Impact ratio: approval rate over that of the reference group; * below four fifths. Good approved: "
            "approval rate of those with the good outcome. Gap: mean prediction less observed rate.",
        )
    yield Gap(VALIDATOR, "whether differences between groups are explained by risk, and which alternatives were tried")


def _impact(group: Mapping[str, Any]) -> str:
    return auc(group["impact"]) + (" *" if group["below_four_fifths"] else "")
