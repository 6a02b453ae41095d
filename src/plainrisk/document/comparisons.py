"""The sections that compare: with challengers, another model, the model without its rules, and fitted again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plainrisk.document.background import VALIDATOR, Commands, option
from plainrisk.document.blocks import Block, Bullets, Gap, Grid, Heading, Paragraph
from plainrisk.document.figures import count, figure, percent, titles_of, with_ends
from plainrisk.document.outcomes import LABELS

__all__ = ["challengers", "prices", "steadiness"]

MOST_PRICES = 30
MOST_FEATURES = 20


def challengers(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """What others would use, fitted to the same rows, and the model that was given to compare with."""
    refits, other = n["refits"], n["against"]
    if other is not None:
        yield from _against(other, n, run)
    if refits is None:
        yield Paragraph("Challengers are fitted to the training rows. They were not given (--train FILE).")
        return
    ours = n["performance"]["figures"]
    lines = [
        (
            "this model",
            figure(ours["auc"]["estimate"], 4),
            "",
            figure(ours["log_loss"]["estimate"], 4),
            "",
            figure(ours["brier"]["estimate"], 4),
        )
    ]
    for one in refits["challengers"]:
        if one["note"]:
            lines.append((one["name"], one["note"], "", "", "", ""))
            continue
        auc, loss, brier = (one["figures"][name]["estimate"] for name in ("auc", "log_loss", "brier"))
        gaps = one["differences"]
        lines.append(
            (
                one["name"],
                figure(auc, 4),
                with_ends(gaps["auc"], 4, "+"),
                figure(loss, 4),
                with_ends(gaps["log_loss"], 4, "+"),
                figure(brier, 4),
            )
        )
    yield Grid(
        "Challengers as they come, fitted to the same training rows, on the test rows.",
        ("model", "AUC", "less this model", "log loss", "less this model", "Brier score"),
        lines,
        command=f"plainrisk fit {run.train} --schema {run.model} --challengers --test {run.test} -o again.json",
        note="Paired intervals of 95%. "
        + " ".join(f"{one['name']}: {one['settings']}." for one in refits["challengers"] if not one["note"])
        + " Challengers keep no direction and no rule.",
    )
    yield Gap(VALIDATOR, "whether a challenger that is ahead would be acceptable, and if not, why")


def _against(other: dict[str, Any], n: dict[str, Any], run: Commands) -> Iterator[Block]:
    yield Heading(3, f"Compared with {other['name']}")
    ours, figures = n["performance"]["figures"], ("auc", "ks", "brier", "log_loss", "ece", "slope")
    yield Grid(
        f"This model and {other['name']} on the same test rows.",
        ("figure", "this model", other["name"], "difference"),
        [
            (
                LABELS[f],
                figure(ours[f]["estimate"]),
                figure(other["figures"][f]["estimate"]),
                with_ends(other["differences"][f], 3, "+"),
            )
            for f in figures
        ],
        command=run("evaluate", run.test, option("against", other["name"])),
        note=f"DeLong's test of equal AUC: p = {figure(other['p_value'], 4)}. Intervals are paired.",
    )
    words = {
        "approved_by_both": "approved by both",
        "only_by_this": "approved by this model only",
        "only_by_other": "approved by the other only",
    }
    words["refused_by_both"] = "refused by both"
    yield Grid(
        f"Decisions at the same cut-off of {percent(n['model']['cutoff']['value'])}.",
        ("decision", "rows", "observed rate"),
        [
            (words[one["which"]], count(one["rows"]), percent(one["positives"] / one["rows"] if one["rows"] else None))
            for one in other["decisions"]
        ],
    )
    if other["diff"] is not None:
        yield Paragraph(
            f"{_what_differs(other['diff']['moved'], n)} On the test rows, from {other['name']} to this model:"
        )
        yield Bullets(other["diff"]["lines"])


def _what_differs(moved: list[str], n: dict[str, Any]) -> str:
    if not moved:
        return "The effect of no feature differs."
    if set(moved) >= set(n["model"]["features"]):
        return "The effects of all features differ."
    names = [titles_of(n).get(name, name) for name in moved]
    return f"The effects of {len(moved)} features or pairs differ: {', '.join(names)}."


def prices(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """What directions and rules cost in accuracy."""
    refits = n["refits"]
    if refits is None or refits["prices"] is None:
        why = (
            "They were not given (--train FILE)."
            if refits is None
            else refits.get("why_no_prices", "The file does not say how to fit it again.")
        )
        yield Paragraph(f"Prices come from fitting the model without each rule, which needs the training rows. {why}")
        return
    priced = refits["prices"]
    yield Paragraph(priced["verdict"], strong=True)
    rows, titles = priced["prices"], titles_of(n)
    yield Grid(
        f"Prices of directions and rules, on {priced['folds']} folds of the training rows.",
        ("rule", "log loss added", "AUC lost", "clear"),
        [
            (
                one["what"].replace(one["feature"] or "", titles.get(one["feature"], one["feature"] or ""), 1),
                one["note"] or with_ends(one["log_loss"], 4, "+"),
                with_ends(one["auc"], 4, "+"),
                "yes" if one["clear"] else "",
            )
            for one in rows[:MOST_PRICES]
        ],
        command=f"plainrisk fit {run.train} --schema {run.model} --cv {priced['folds']} --prices -o again.json",
        note=" ".join(
            [
                "Positive: the rule costs accuracy. Paired intervals of 95%; clear: the interval leaves out 0.",
                *priced["notes"],
            ]
        ),
        left=(0, 3),
    )


def steadiness(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """What changes if the model is fitted again: to the same rows, to resampled rows, in another order."""
    refits = n["refits"]
    if refits is None:
        yield Paragraph("Whether fitting again gives the same model needs the training rows. They were not given.")
        return
    steady, again = refits["stability"], refits["again"]
    if again and "error" not in again:
        same = (
            "gives the same model, to the last bit"
            if again["same_form"]
            else f"moves a probability by at most {percent(again['largest_move'], 2)}"
        )
        yield Paragraph(f"Fitting again to the training file, with the settings of the model file, {same}.")
    if steady is None:
        yield Paragraph("The model cannot be fitted again from its file, or is not additive, so it was not resampled.")
        return
    command = run("stability", run.train, f"--new {run.test}", f"--cutoff {steady['cutoff']:g}")
    yield Paragraph(
        f"{percent(steady['unsteady'])} of {count(steady['rows'])} test rows are decided otherwise by more than one of "
        "ten refits to resampled training rows. Bins, smoothness and everything else are chosen anew in each refit."
    )
    yield Grid(
        "The model beside refits, on the test rows.",
        ("refits to", "refits", "mean move in points", "decisions that flip", "at most", "first reasons", "at most"),
        [
            (
                one["kind"],
                count(one["refits"]),
                figure(100 * one["risk"], 2),
                *(percent(one[name]) for name in ("decisions", "decisions_most", "reasons", "reasons_most")),
            )
            for one in steady["refits"]
        ],
        command=command,
        note="First reasons: of refused applicants whose first reason is another. At most: in the refit with most.",
    )
    yield from _steady_features(steady, n, command)


def _steady_features(steady: dict[str, Any], n: dict[str, Any], command: str) -> Iterator[Block]:
    scale, unit = (100, "points") if steady["unit"] == "probability" else (1, steady["unit"])
    titles = titles_of(n)
    yield Grid(
        "How steady each contribution is, and what moving every value to the next bin does.",
        ("feature", f"mean effect ({unit})", "spread over refits", "kept", "one bin up", "one bin down"),
        [
            (
                titles.get(one["feature"], one["feature"]),
                *(figure(scale * one[name], 1 if scale > 1 else 3) for name in ("size", "spread")),
                *(percent(one[name], 0 if name == "kept" else 1) for name in ("kept", "up", "down")),
            )
            for one in steady["features"][:MOST_FEATURES]
        ],
        command=command,
        note="Kept: the share of refits in which the feature plays a part. One bin up, down: decisions that flip.",
    )
