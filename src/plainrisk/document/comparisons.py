"""The sections that compare the model: with challengers, another model, itself without a rule, and its refits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plainrisk.document.background import Commands, option
from plainrisk.document.blocks import VALIDATOR, Block, Bullets, Gap, Grid, Heading, Paragraph, table
from plainrisk.document.figures import count, decimals, effects_in, figure, percent, signed, titles_of, with_ends
from plainrisk.report import LABELS

__all__ = ["challengers", "prices", "steadiness"]

DECISIONS = {
    "approved_by_both": "approved by both",
    "only_by_this": "approved by this model only",
    "only_by_other": "approved by the other only",
    "refused_by_both": "refused by both",
}
MOST_PRICES = 30
MOST_FEATURES = 20


def challengers(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """Common alternatives, fitted to the same rows, and the other model that was given."""
    refits, other = n["refits"], n["against"]
    if other is not None:
        yield from _against(other, n, run)
    if refits is None:
        yield Paragraph("Challengers are fitted to the training rows. They were not given (--train FILE).")
        return
    lines = [
        _challenger({"name": "this model", "figures": n["performance"]["figures"], "differences": None, "note": ""})
    ]
    lines += [_challenger(rival) for rival in refits["challengers"]]
    yield Grid(
        "Challengers at their default settings, fitted to the same training rows, on the test rows.",
        ("model", "AUC", "less this model", "log loss", "less this model", "Brier score"),
        lines,
        command=f"plainrisk fit {run.train} --schema {run.model} --challengers --test {run.test} -o again.json",
        note="Paired intervals of 95%. "
        + " ".join(f"{rival['name']}: {rival['settings']}." for rival in refits["challengers"] if not rival["note"])
        + " Challengers keep no direction and no rule.",
    )
    yield Gap(VALIDATOR, "whether a challenger that is ahead would be acceptable, and if not, why")


def _challenger(line: dict[str, Any]) -> tuple[str, ...]:
    if line["note"]:
        return (line["name"], line["note"], "", "", "", "")
    auc, loss, brier = (decimals(line["figures"][name]["estimate"]) for name in ("auc", "log_loss", "brier"))
    gaps = line["differences"]
    auc_gap, loss_gap = ("", "") if gaps is None else (signed(gaps["auc"]), signed(gaps["log_loss"]))
    return (line["name"], auc, auc_gap, loss, loss_gap, brier)


def _against(other: dict[str, Any], n: dict[str, Any], run: Commands) -> Iterator[Block]:
    yield Heading(3, f"Compared with {other['name']}")
    columns = (
        ("figure", "", LABELS.__getitem__),
        ("this model", "", lambda name: figure(n["performance"]["figures"][name]["estimate"])),
        (other["name"], "", lambda name: figure(other["figures"][name]["estimate"])),
        ("difference", "", lambda name: with_ends(other["differences"][name], 3, "+")),
    )
    yield table(
        f"This model and {other['name']} on the same test rows.",
        columns,
        ("auc", "ks", "brier", "log_loss", "ece", "slope"),
        command=run("evaluate", run.test, option("against", other["name"])),
        note=f"DeLong's test of equal AUC: p = {decimals(other['p_value'])}. Intervals are paired.",
    )
    rate = ("observed rate", "", lambda side: percent(side["positives"] / side["rows"] if side["rows"] else None))
    yield table(
        f"Decisions at the same cut-off of {percent(n['model']['cutoff']['value'])}.",
        (("decision", "which", DECISIONS.__getitem__), ("rows", "rows", count), rate),
        other["decisions"],
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
    """The cost of directions and rules in accuracy."""
    refits = n["refits"]
    if refits is None or refits["prices"] is None:
        why = "They were not given (--train FILE)."
        if refits is not None:
            why = refits.get("why_no_prices", "The file does not say how to fit it again.")
        yield Paragraph(f"Prices come from fitting the model without each rule, which needs the training rows. {why}")
        return
    priced, titles = refits["prices"], titles_of(n)
    yield Paragraph(priced["verdict"], strong=True)

    def rule(price: dict[str, Any]) -> str:
        feature = price["feature"] or ""
        return str(price["what"]).replace(feature, titles.get(feature, feature), 1)

    columns = (
        ("rule", "", rule),
        ("log loss added", "", lambda price: price["note"] or signed(price["log_loss"])),
        ("AUC lost", "auc", signed),
        ("clear", "clear", lambda clear: "yes" * clear),
    )
    note = "Positive: the rule costs accuracy. Paired intervals of 95%; clear: the interval excludes 0."
    yield table(
        f"Prices of directions and rules, on {priced['folds']} folds of the training rows.",
        columns,
        priced["prices"][:MOST_PRICES],
        command=f"plainrisk fit {run.train} --schema {run.model} --cv {priced['folds']} --prices -o again.json",
        note=" ".join([note, *priced["notes"]]),
        left=(0, 3),
    )


def steadiness(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """What changes if the model is refitted: to the same rows, to resampled rows, in another order."""
    refits = n["refits"]
    if refits is None:
        yield Paragraph("Whether fitting again gives the same model needs the training rows. They were not given.")
        return
    steady, again = refits["stability"], refits["again"]
    if again and "error" not in again:
        same = "gives the same model, to the last bit"
        if not again["same_form"]:
            same = f"moves a probability by at most {percent(again['largest_move'], 2)}"
        yield Paragraph(f"Fitting again to the training file, with the settings of the model file, {same}.")
    if steady is None:
        yield Paragraph("The model cannot be fitted again from its file, or is not additive, so it was not resampled.")
        return
    command = run("stability", run.train, f"--new {run.test}", f"--cutoff {steady['cutoff']:g}")
    yield Paragraph(
        f"The decisions on {percent(steady['unsteady'])} of {count(steady['rows'])} test rows flip in more than 10% of "
        "the refits to resampled training rows. Bins, smoothness and everything else are chosen anew in each refit."
    )
    columns = (
        ("refits to", "kind", str),
        ("refits", "refits", count),
        ("mean move in points", "risk", lambda move: figure(100 * move, 2)),
        ("decisions that flip", "decisions", percent),
        ("at most", "decisions_most", percent),
        ("first reasons", "reasons", percent),
        ("at most", "reasons_most", percent),
    )
    yield table(
        "The model and its refits, on the test rows.",
        columns,
        steady["refits"],
        command=command,
        note="First reasons: the share of refused applicants whose first reason changes. At most: in the worst refit.",
    )
    (effect, unit), titles = effects_in(steady["unit"]), titles_of(n)
    feature_columns = (
        ("feature", "feature", lambda name: titles.get(name, name)),
        (f"mean effect ({unit})", "size", effect),
        ("spread over refits", "spread", effect),
        ("kept", "kept", lambda share: percent(share, 0)),
        ("one bin up", "up", percent),
        ("one bin down", "down", percent),
    )
    yield table(
        "How stable each contribution is, and the effect of moving every value to the next bin.",
        feature_columns,
        steady["features"][:MOST_FEATURES],
        command=command,
        note="Kept: the share of refits in which the model uses the feature. One bin up, down: decisions that flip.",
    )
