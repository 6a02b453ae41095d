"""The sections on purpose, data and schema, and the table that identifies what is documented."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from plainrisk.document.blocks import OWNER, Block, Bullets, Gap, Grid, Paragraph, table
from plainrisk.document.figures import NONE, count, needs_reason, percent, titles_of

__all__ = ["Commands", "data", "identity", "note", "option", "purpose", "schema"]

# Texts that the model file may hold, by their names there, and what each should say.
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
# Texts for the other sections.
NOTES = {
    "data": "origin of the data, period, definition of the outcome and its window, how rows were sampled",
    "exclusions": "what was excluded before these files were made, refused applicants included: how many rows, and why",
    "design": "which other designs were considered, and why this one was chosen",
    "system": "the system in which the model runs, how its version is controlled, and who may change it",
    "monitoring plan": "how often each figure is checked, by whom, the limits to be set, and what follows when one is "
    "crossed",
    "overrides": "how overrides are recorded and reviewed",
}
RULES = {
    "not_better": "not better",
    "worst": "as the worst",
    "neutral": "no effect",
    "error": "refused",
    "free": "own effect",
}
MOST_ISSUES = 25
TO_COMPLETE = "[to be completed]"


def note(name: str) -> Gap:
    """Return the gap that a text in the model file fills."""
    return Gap(OWNER, f"{name} ({(ABOUT | NOTES)[name]})", name)


@dataclass(frozen=True)
class Commands:
    """The names of the files in commands, and the options of the command that writes this document."""

    model: str = "MODEL"
    test: str = "TEST"
    train: str = "TRAIN"
    options: tuple[str, ...] = ()

    def __call__(self, verb: str, *words: str) -> str:
        """Return a command for the model."""
        return " ".join(("plainrisk", verb, self.model, *words))


def option(name: str, word: object) -> str:
    """Return an option of a command, quoted for a shell.

    >>> option("by", "Age in years")
    "--by 'Age in years'"
    """
    return f"--{name} {shlex.quote(str(word))}"


def purpose(n: dict[str, Any], _: Commands) -> Iterator[Block]:
    """The owner's statements about the model, with gaps where there are none."""
    about, model = n["model"]["about"], n["model"]
    yield Paragraph(f"The model gives the probability that {model['outcome']}. Decisions follow from it by a cut-off.")
    yield _decision(n)
    yield from map(note, ABOUT)
    shown_elsewhere = {"name", *ABOUT, *NOTES, *(name.replace(" ", "_") for name in (ABOUT | NOTES))}
    others = [f"{name}: {text}" for name, text in about.items() if name not in shown_elsewhere]
    if others:
        yield Bullets(others)
    yield Paragraph(
        'These texts are in the model file and covered by its hash: plainrisk annotate MODEL --about "materiality=...".'
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
    names = {"test": n["data"]["test"], "training": n["data"]["train"]}
    samples = [{"sample": name, **sample} for name, sample in names.items() if sample]
    columns = (
        ("sample", "sample", str),
        ("file", "name", str),
        ("rows", "rows", count),
        ("columns", "columns", count),
        ("with the outcome", "positives", count),
        ("rate", "base_rate", percent),
        ("mean prediction", "mean_risk", percent),
    )
    yield table(
        "Rows that this document was computed from.",
        columns,
        samples,
        command=run("evaluate", run.test),
        note="Every row has an outcome and a probability: the document is not written if a row cannot be used.",
        left=(0, 1),
    )
    files = [file for sample in samples for file in sample["files"]]
    if files:
        hashes = (("file", "name", str), ("rows", "rows", count), ("SHA-256", "sha256", str))
        yield table("Files, by their SHA-256.", hashes, files, command="sha256sum FILE", left=(0, 2))
    fit = n["model"]["fit"]
    if fit is not None:
        yield Paragraph(
            f"The model was fitted to {count(fit['rows'])} rows with an observed rate of {percent(fit['base_rate'])}. "
            + _same_rows(n)
        )
    yield from _fields(n, run)
    yield from _values(n, run)


def _fields(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """How many values are missing or codes."""
    shares = {"empty_test": "empty", "empty_train": "in training", "codes_test": "codes", "codes_train": "in training"}
    shown = [field for field in n["data"]["fields"] if any(field[share] for share in shares)]
    if not shown:
        yield Paragraph("No feature has an empty field or a code, neither in the test rows nor in training.")
        return
    yield table(
        "Empty fields and codes, as shares of the rows.",
        (("feature", "feature", titles_of(n).__getitem__), *((header, key, percent) for key, header in shares.items())),
        shown,
        command=run("quality", run.test),
        note="Codes: special values and values below the bound of the schema. Other features have neither.",
    )


def _same_rows(n: dict[str, Any]) -> str:
    if n["refits"] is None:
        return "The training file was not given, so its figures come from the counts in the model file."
    same = n["refits"]["same_rows"]
    return f"The training file given {'agrees' if same else 'DOES NOT agree'} with the counts in the model file."


def _values(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    issues, titles = n["data"]["quality"]["issues"], titles_of(n)
    if not issues:
        yield Paragraph(
            "There are no problems in the test rows, compared with training: no value of another type, outside the "
            "range or of an unseen category, no field that is empty more often, no repeated rows."
        )
        return
    columns = (
        ("severity", "severity", str),
        ("feature", "feature", lambda name: titles.get(name, name) or "(rows)"),
        ("rows", "rows", count),
        ("share", "share", percent),
        ("problem", "message", str),
    )
    more = len(issues) - MOST_ISSUES
    yield table(
        "Quality of the test rows against the model.",
        columns,
        issues[:MOST_ISSUES],
        command=run("quality", run.test),
        note=f"... and {more} more issues, in the JSON file next to this document." if more > 0 else "",
        left=(0, 1, 4),
    )


def schema(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """The modeler's requirements for each feature, and their reasons."""
    features = [feature for feature in n["schema"] if feature["read"]]
    directed = sum(feature["direction"] != "none" for feature in features)
    yield Paragraph(
        f"The model reads {len(features)} features. For {directed} of them the modeler states a direction, which the "
        "model keeps for every possible applicant (see the certificate)."
    )
    columns = (
        ("feature", "", _named),
        ("direction", "direction", lambda direction: direction.replace("none", NONE)),
        ("empty fields and codes", "", _codes),
        (
            "marks and edits",
            "",
            lambda feature: "; ".join(["protected"] * feature["protected"] + feature["edits"]) or NONE,
        ),
        ("reason", "", lambda feature: feature["why"] or (TO_COMPLETE if needs_reason(feature) else NONE)),
    )
    yield table(
        "Requirements for each feature.",
        columns,
        features,
        command=run("annotate"),
        note="Decreasing: a higher value never raises the probability. Not better: never better for the applicant than "
        "the best measured level. Own effect: fitted without a rule.",
        left=(0, 1, 2, 3, 4),
    )
    without = [feature["title"] for feature in features if feature["why"] is None and needs_reason(feature)]
    if without:
        named = ", ".join(without) if len(without) <= 6 else f"{len(without)} features, as marked in the table"
        yield Gap(OWNER, f'the reason for the requirements on {named} (why = "..." in the schema)')


def _named(feature: dict[str, Any]) -> str:
    """Return what people call a feature, and its column if that is another name."""
    title, name = feature["title"], feature["feature"]
    return str(title) if title == name else f"{title} ({name})"


def _codes(feature: dict[str, Any]) -> str:
    by_rule = {feature["missing"] or "free": ["empty"]}
    for code in feature["special_values"]:
        by_rule.setdefault(feature["special_rules"].get(code, "free"), []).append(code)
    if feature["lower_bound"] is not None:
        by_rule.setdefault(feature["below_bound"] or "free", []).append(f"below {feature['lower_bound']:g}")
    return "; ".join(f"{', '.join(levels)}: {RULES[rule]}" for rule, levels in by_rule.items())


def identity(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """Names and hashes of what is documented."""
    model, test, about = n["model"], n["data"]["test"], n["model"]["about"]
    file = model["file"] or {"name": "", "sha256": ""}
    lines = {
        "Model": model["name"],
        "Version": about.get("version", TO_COMPLETE),
        "Owner": about.get("owner", TO_COMPLETE),
        "Type": model["what"],
        "Form, SHA-256": model["form_sha256"],
        "Model file": file["name"],
        "File, SHA-256": file["sha256"],
        "Test rows": f"{test['name']}, {count(test['rows'])} rows",
        "Written by": f"plainrisk {n['plainrisk']}",
        "Command": run("document", run.test, *run.options),
    }
    yield Grid("What this document is about.", ("", ""), [line for line in lines.items() if line[1]], left=(0, 1))
