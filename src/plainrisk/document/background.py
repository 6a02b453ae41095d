"""The sections on what the model is for and made of: purpose, data, what the modeller required."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from plainrisk.document.blocks import Block, Bullets, Gap, Grid, Paragraph
from plainrisk.document.figures import NONE, count, percent, titles_of

__all__ = [
    "OWNER",
    "VALIDATOR",
    "Commands",
    "data",
    "identity",
    "note",
    "option",
    "purpose",
    "schema",
]

OWNER, VALIDATOR = "the model owner", "the validator"
# What may stand about the model in its file, by the name it has there, with what it should say.
ABOUT = {
    "purpose": "what the model is for, and which decisions it supports",
    "owner": "who owns the model",
    "developer": "who developed it, and when",
    "version": "the version of the model, and what changed since the last",
    "approval": "who approved it, when, and on which conditions",
    "materiality": "the model's materiality: portfolio, exposure, decisions a year, and the tier of the inventory",
    "intended use": "products, channels, applicants and decisions it may be used for",
    "limits": "for whom and for what it must not be used, and what overrides are allowed",
}
# What may stand there for the other sections.
NOTES = {
    "data": "origin of the data, period, definition of the outcome and its window, how rows were sampled",
    "exclusions": "what was excluded before these files were made, refused applicants included: how many rows, and why",
    "design": "which other designs were considered, and why this one was chosen",
    "system": "the system in which the model runs, how its version is controlled, and who may change it",
    "monitoring plan": "how often each figure is looked at, by whom, the limits to be set, and what follows when one "
    "is crossed",
    "overrides": "how overrides are recorded and reviewed",
}
RULES = {
    "not_better": "not better",
    "worst": "as the worst",
    "neutral": "no effect",
    "error": "refused",
    "free": "own effect",
}
MOST_VALUES = 25


def note(name: str) -> Gap:
    """Return the gap that a text in the model file fills."""
    return Gap(OWNER, f"{name} ({(ABOUT | NOTES)[name]})", name)


@dataclass(frozen=True)
class Commands:
    """The words that stand for files in commands, and the options that the document was asked for with."""

    model: str = "MODEL"
    test: str = "TEST"
    train: str = "TRAIN"
    options: tuple[str, ...] = ()

    def __call__(self, verb: str, *words: str) -> str:
        """Return a command of the model."""
        return " ".join(("plainrisk", verb, self.model, *words))


def option(name: str, word: object) -> str:
    """Return an option of a command, as a shell reads it.

    >>> option("by", "Age in years")
    "--by 'Age in years'"
    """
    return f"--{name} {shlex.quote(str(word))}"


def purpose(n: dict[str, Any], _: Commands) -> Iterator[Block]:
    """The owner's statements about the model, with gaps to fill in where there are none."""
    about, model = n["model"]["about"], n["model"]
    yield Paragraph(f"The model gives the probability that {model['outcome']}. Decisions follow from it by a cut-off.")
    yield _decision(n)
    yield from map(note, ABOUT)
    shown_elsewhere = {"name", *ABOUT, *NOTES, *(name.replace(" ", "_") for name in (ABOUT | NOTES))}
    others = [f"{name}: {text}" for name, text in about.items() if name not in shown_elsewhere]
    if others:
        yield Bullets(others)
    yield Paragraph(
        "These texts stand in the model file and are covered by its hash: plainrisk annotate MODEL --about "
        '"materiality=...".'
    )


def _decision(n: dict[str, Any]) -> Block:
    cutoff, side = n["model"]["cutoff"], "below" if n["model"]["adverse"] == "positive" else "at or above"
    if cutoff["stated"]:
        return Paragraph(
            f"Applicants are approved whose probability is {side} the cut-off of {percent(cutoff['value'])}."
        )
    return Gap(OWNER, f"the cut-off. The model file states none; this document tries {percent(cutoff['value'])}")


def data(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """Files, rows, outcomes and the quality of values."""
    yield note("data")
    yield note("exclusions")
    samples = [(what, n["data"][key]) for what, key in (("test", "test"), ("training", "train")) if n["data"][key]]
    yield Grid(
        "Rows that this document was computed from.",
        ("sample", "file", "rows", "columns", "with the outcome", "rate", "mean prediction"),
        [
            (
                what,
                one["name"],
                count(one["rows"]),
                count(one["columns"]),
                count(one["positives"]),
                percent(one["base_rate"]),
                percent(one["mean_risk"]),
            )
            for what, one in samples
        ],
        command=run("evaluate", run.test),
        note="Every row has an outcome and was scored: a row that cannot be used stops the document.",
        left=(0, 1),
    )
    hashes = [(file["name"], count(file["rows"]), file["sha256"]) for _, one in samples for file in one["files"]]
    if hashes:
        yield Grid(
            "Files, by their SHA-256.", ("file", "rows", "SHA-256"), hashes, command="sha256sum FILE", left=(0, 2)
        )
    fit = n["model"]["fit"]
    if fit is not None:
        yield Paragraph(
            f"The model was fitted to {count(fit['rows'])} rows with an observed rate of {percent(fit['base_rate'])}. "
            + _same_rows(n)
        )
    yield from _fields(n, run)
    yield from _values(n, run)


def _fields(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """How often values are missing, and how often a code stands in their place."""
    shares, titles = ("empty_test", "empty_train", "codes_test", "codes_train"), titles_of(n)
    shown = [one for one in n["data"]["fields"] if any(one[share] for share in shares)]
    if not shown:
        yield Paragraph("No feature has an empty field or a code, neither in the test rows nor in training.")
        return
    yield Grid(
        "Empty fields and codes, as shares of the rows.",
        ("feature", "empty", "in training", "codes", "in training"),
        [(titles[one["feature"]], *(percent(one[share]) for share in shares)) for one in shown],
        command=run("quality", run.test),
        note="Codes: special values and values below the bound of the schema. Other features have neither.",
    )


def _same_rows(n: dict[str, Any]) -> str:
    if n["refits"] is None:
        return "The training file was not given, so what is said of it comes from counts in the model file."
    same = n["refits"]["same_rows"]
    return f"The training file given {'agrees' if same else 'DOES NOT agree'} with the counts in the model file."


def _values(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    quality, titles = n["data"]["quality"], titles_of(n)
    if not quality["issues"]:
        yield Paragraph(
            "Nothing is wrong with the test rows, compared with what training saw: no value of another type, beyond "
            "the range or of an unseen category, no field that is empty more often, no repeated rows."
        )
        return
    yield Grid(
        "Quality of the test rows against the model.",
        ("severity", "feature", "rows", "share", "what"),
        [
            (
                one["severity"],
                titles.get(one["feature"], one["feature"]) or "(rows)",
                count(one["rows"]),
                percent(one["share"]),
                one["message"],
            )
            for one in quality["issues"][:MOST_VALUES]
        ],
        command=run("quality", run.test),
        note=_rest(quality["issues"], MOST_VALUES, "issues"),
        left=(0, 1, 4),
    )


def _rest(lines: list[Any], most: int, noun: str) -> str:
    return f"... and {len(lines) - most} more {noun}, in the JSON beside this document." if len(lines) > most else ""


def schema(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """What the modeller required, feature by feature, and why."""
    features = [one for one in n["schema"] if one["read"]]
    directed = [one for one in features if one["direction"] != "none"]
    yield Paragraph(
        f"The model reads {len(features)} features. For {len(directed)} of them the modeller states a direction, which "
        "the model keeps for every possible applicant (see the certificate)."
    )
    yield Grid(
        "What is required of each feature.",
        ("feature", "direction", "empty fields and codes", "marks and edits", "reason"),
        [
            (_named(one), one["direction"].replace("none", NONE), _codes(one), _marks(one), _why(one))
            for one in features
        ],
        command=run("annotate"),
        note="Decreasing: a higher value never raises the probability. Not better: never better for the applicant than "
        "the best measured level. Own effect: as the data say.",
        left=(0, 1, 2, 3, 4),
    )
    unsaid = [one["title"] for one in features if one["why"] is None and _needs_reason(one)]
    if unsaid:
        named = ", ".join(unsaid) if len(unsaid) <= 6 else f"{len(unsaid)} features, as marked in the table"
        yield Gap(OWNER, f'the reason for what is required of {named} (why = "..." in the schema)')


def _needs_reason(one: dict[str, Any]) -> bool:
    return bool(one["direction"] != "none" or one["protected"] or one["edits"] or one["special_rules"])


def _named(one: dict[str, Any]) -> str:
    """Return what people call a feature, and its column where that is another name."""
    return str(one["title"]) if one["title"] == one["feature"] else f"{one['title']} ({one['feature']})"


def _codes(one: dict[str, Any]) -> str:
    by_rule = {one["missing"] or "free": ["empty"]}
    for code in one["special_values"]:
        by_rule.setdefault(one["special_rules"].get(code, "free"), []).append(code)
    if one["lower_bound"] is not None:
        by_rule.setdefault(one["below_bound"] or "free", []).append(f"below {one['lower_bound']:g}")
    return "; ".join(f"{', '.join(levels)}: {RULES[rule]}" for rule, levels in by_rule.items())


def _marks(one: dict[str, Any]) -> str:
    return "; ".join([*(["protected"] if one["protected"] else []), *one["edits"]]) or NONE


def _why(one: dict[str, Any]) -> str:
    if one["why"]:
        return str(one["why"])
    return "[to be completed]" if _needs_reason(one) else NONE


def identity(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """What is documented: names and hashes."""
    model, test = n["model"], n["data"]["test"]
    lines = [("Model", model["name"]), ("Version", model["about"].get("version", "[to be completed]"))]
    lines += [("Owner", model["about"].get("owner", "[to be completed]")), ("What it is", model["what"])]
    lines += [("Form, SHA-256", model["form_sha256"])]
    if model["file"] is not None:
        lines += [("Model file", model["file"]["name"]), ("File, SHA-256", model["file"]["sha256"])]
    lines += [
        ("Test rows", f"{test['name']}, {count(test['rows'])} rows"),
        ("Written by", f"plainrisk {n['plainrisk']}"),
        ("Command", run("document", run.test, *run.options)),
    ]
    yield Grid("What this document is about.", ("", ""), lines, left=(0, 1))
