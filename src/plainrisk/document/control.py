"""The sections on the use of the model: reasons, sensitivity, limitations, certificate, exports, monitoring."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plainrisk.document.background import Commands, note, option
from plainrisk.document.blocks import OWNER, VALIDATOR, Block, Bullets, Gap, Grid, Paragraph, table
from plainrisk.document.figures import (
    TINY,
    count,
    effects_in,
    figure,
    percent,
    points,
    share_with_ends,
    titles_of,
    value,
    with_ends,
)

__all__ = ["certificate", "implementation", "limitations", "monitoring", "reasons", "sensitivity", "signatures"]

MOST_INPUTS = 12


def reasons(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """The reasons that refused applicants would receive."""
    given = n["reasons"]
    if given is None:
        yield Paragraph("The model is not additive in its features, so no reasons are computed here.")
        return
    compared = "the best level of every feature" if given["reference"] == "best" else "the typical applicant"
    grouped = ", grouped by subscale" if n["model"]["order"] == "subscale" else ""
    sentences = [
        f"{count(given['refused'])} of {count(n['data']['test']['rows'])} test rows are refused.",
        f"Each gets at most {given['k']} reasons: the features that cost most compared with {compared}{grouped}.",
    ]
    if given["withheld"]:
        withheld = f"For {count(given['withheld'])} of them a protected feature costs more than the last reason named,"
        sentences.append(f"{withheld} and is withheld.")
    steady = (n["refits"] or {}).get("stability")
    if steady is not None:
        changed = percent(steady["refits"][0]["reasons"])
        refits = "In refits to resampled training rows, the first reason changes for"
        sentences.append(f"{refits} {changed} of them on average.")
    yield Paragraph(" ".join(sentences))
    schema = {feature["feature"]: feature for feature in n["schema"]}
    shown = [
        {**schema[line["feature"]], **line} for line in sorted(given["features"], key=lambda line: -int(line["any"]))
    ]

    def share(rows: int) -> str:
        return percent(rows / given["refused"] if given["refused"] else None)

    columns = (
        ("feature", "title", str),
        ("words", "", lambda feature: feature["reason"] or feature["title"]),
        ("first reason", "first", share),
        ("among the reasons", "any", share),
    )
    yield table(
        "How often each feature is a reason.",
        columns,
        shown,
        command=run("reasons", run.test, "-o reasons.csv"),
        note="Words: for measured values; empty fields and codes have words of their own.",
        left=(0, 1),
    )
    wordless = [feature["title"] for feature in shown if feature["reason"] is None]
    if wordless:
        yield Gap(OWNER, f"words for a reason that an applicant understands, for: {', '.join(wordless)}")


def sensitivity(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """The features with the largest effect on the probability."""
    titles = titles_of(n)
    shown = [line for line in n["shapes"]["importance"] if line["mean"] is not None][:20]
    effect, unit = effects_in(shown[0]["unit"] if shown else "probability")

    def title(line: dict[str, Any]) -> str:
        name = str(line["feature"] or line["subscale"])
        return titles.get(name, name)

    yield table(
        "How much each feature moves the probability of the test rows.",
        (
            ("feature", "", title),
            ("mean effect", "mean", effect),
            ("from the least to the largest effect", "span", effect),
        ),
        shown,
        command=run("explain", run.test, "-o contributions.csv"),
        note=f"In {'percentage points' if unit == 'points' else unit}; mean of the absolute contributions.",
    )
    inputs = n["sensitivity"]["inputs"]
    change = f"{inputs['change']:.0%}"
    columns = (
        ("feature", "feature", lambda name: titles.get(name, name)),
        ("shuffled", "shuffled", percent),
        (f"{change} more", "up", percent),
        (f"{change} less", "down", percent),
        ("approval, more", "approval_up", points),
        ("approval, less", "approval_down", points),
        ("rounded", "rounded", percent),
    )
    yield table(
        f"Decisions that change at the cut-off of {percent(inputs['cutoff'])}.",
        columns,
        [*inputs["features"][:MOST_INPUTS], *inputs["features"][MOST_INPUTS:][-1:]],
        command=run("stress", run.test),
        note="Shuffled: values are exchanged among applicants at random. Rounded: values move within the digit they "
        "are rounded to. Approval: change of its rate in percentage points.",
    )
    if n["sensitivity"]["stress"] is not None:
        yield from _stress(n, run)
    else:
        command = run("stress", run.test, "--shock FEATURE=-10%")
        yield Gap(VALIDATOR, f"a stress that suits the portfolio; no measured number has a direction ({command})")


def _stress(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    stress = n["sensitivity"]["stress"]
    sides: dict[str, list[str]] = {"+": [], "-": []}
    for name, _, change in (text.rpartition("=") for text in stress["shocks"]):
        sides[change[0]].append(titles_of(n).get(name, name))
    words = {"-": "a tenth lower", "+": "a tenth higher"}
    moved = "; ".join(f"{words[side]}: {', '.join(names)}" for side, names in sides.items() if names)
    yield Paragraph(
        f"Stress: all numbers with a direction move by a tenth against every applicant ({moved}). The table shows what "
        "the model would do; no test row can show whether it would be right."
    )
    by = [feature["feature"] for feature in n["schema"] if feature["protected"]][:1] * (len(stress["groups"]) > 1)
    words_of_command = [*(option("shock", shock) for shock in stress["shocks"]), *(option("by", name) for name in by)]
    names = ("risk", "risk_after", "approval", "approval_after", "bad_rate", "bad_rate_after")
    headers = ("bad rate expected", "after", "approved", "after", "of the approved", "after")
    shares = ((header, name, percent) for header, name in zip(headers, names, strict=True))
    beyond, legend = max(stress["beyond"].values(), default=0), "Expected: the mean probability of the adverse outcome."
    if beyond:
        legend += (
            f" Up to {count(beyond)} rows then have a value outside the range of training, where the model is untested."
        )
    yield table(
        "Before and after the stress, all rows and groups.",
        (("group", "group", str), ("rows", "rows", count), *shares),
        stress["groups"],
        command=run("stress", run.test, *words_of_command),
        note=legend,
    )


def limitations(n: dict[str, Any], _: Commands) -> Iterator[Block]:
    """The limitations that the program found."""
    yield Paragraph(
        "The program looks for these limitations by fixed rules, and cannot see all of them. Every line needs an "
        "answer."
    )
    yield table(
        f"{len(n['limitations'])} limitations found.",
        (("severity", "severity", str.capitalize), ("section", "section", str.capitalize), ("limitation", "text", str)),
        n["limitations"],
        left=(0, 1, 2),
    )
    yield Gap(
        VALIDATOR, "further limitations, the answer to each of these, and which of them restrict the use of the model"
    )


def certificate(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """The properties that are proved, and how to check them without this program."""
    certified, stored = n["certificate"], ""
    if certified["differences"]:
        stored = "The stored certificate differs: " + "; ".join(certified["differences"])
    elif certified["stored"]:
        stored = "The certificate in the model file is the same."
    verdict = "All properties hold" if certified["valid"] else "SOME PROPERTIES DO NOT HOLD"
    yield Paragraph(
        f"{verdict}. They are proved from the model file alone, for every possible applicant, and do not depend on "
        f"test rows. {stored}",
        strong=True,
    )
    state = ("state", "holds", lambda holds: "holds" if holds else "BROKEN")
    yield table(
        "The certificate.",
        (state, ("property", "name", str), ("evidence", "detail", str)),
        certified["checks"],
        command=run("certify"),
        left=(0, 1, 2),
    )
    better = [level for level in certified["outside"] if level["below_risk"] >= TINY]
    if better:
        columns = (
            ("feature", "feature", titles_of(n).__getitem__),
            ("level", "name", str),
            ("training rows", "rows", count),
            ("points better, at most", "below_risk", lambda gain: f"{100 * gain:.1f}"),
        )
        yield table(
            "Empty fields and codes that can be better for the applicant than the best measured level.",
            columns,
            better,
            command=run("certify"),
            left=(0, 1),
        )
    yield Paragraph("To check this without trusting the program that wrote it:")
    yield Bullets(_checks(n, run))


def _checks(n: dict[str, Any], run: Commands) -> list[str]:
    file, claims = n["model"]["file"], n["certificate"]["checker"]
    digest = "" if file is None else f" It must be {file['sha256']}."
    held = ""
    if claims is not None:
        held = (
            f" When this document was made, {sum(claim['holds'] for claim in claims)} of its {len(claims)} claims held."
        )
    return [
        f"Compute the hash of the model file: sha256sum {run.model}.{digest}",
        (
            f"Write verify.py (plainrisk certify {run.model} --checker verify.py), read it (it is one file of plain "
            f"Python), and run it anywhere: python verify.py {run.model}. It checks hashes and claims with its own "
            f"code.{held}"
        ),
        f"Give the claims to a solver: plainrisk certify {run.model} --smt model.smt2, then z3 model.smt2.",
        (
            "Take the annex with all levels, add up the scores of an applicant by hand, and compare the probability "
            "with that of the system."
        ),
        (
            f"Run the exported SQL or Python in your own environment (plainrisk export {run.model} -o score.sql "
            "--dialect sqlite). Neither needs this program."
        ),
    ]


def implementation(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """Whether exported code gives the same answers."""
    yield Grid(
        "Exports, written and run when this document was made.",
        ("file", "run by", "rows", "largest difference", "reasons", "decisions", "agrees"),
        list(map(_export, n["exports"])),
        command=run("export", "-o score.sql --dialect sqlite --check"),
        note="Rows are made from the levels of the model. Reasons, decisions: rows that differ.",
        left=(0, 1, 6),
    )
    hashes = [(export["file"], export["sha256"]) for export in n["exports"] if "sha256" in export]
    yield Grid("Exports, by their SHA-256.", ("file", "SHA-256"), hashes, left=(0, 1))
    yield note("system")


def _export(export: dict[str, Any]) -> tuple[str, ...]:
    if "error" in export:
        return (export["file"], export["error"], "", "", "", "", "not run")
    largest = "0" if export["largest"] == 0 else f"{export['largest']:.0e}"
    rows, *differ = (count(export[name]) for name in ("rows", "reasons", "decisions"))
    return (export["file"], export["engine"], rows, largest, *differ, "yes" if export["agrees"] else "NO")


def monitoring(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """The figures that are monitored, and their limits."""
    level = percent(n["monitoring"]["level"], 0)
    yield Paragraph(
        f"One command checks all of this. It exits with code 5 if a limit is crossed beyond chance (at {level}), and "
        f"appends the result to the history, which --plot draws: {run('monitor', 'NEW', '--history history.jsonl')}"
    )
    yield Grid(
        "Monitored figures in the test rows, and their limits.",
        ("figure", "in the test rows", "compared with", "crossed", "state"),
        list(_watched(n)),
        command=run("monitor", run.test),
        note="Intervals are of 99%. The limits are in the policy of the model file (policy.drift). All features are "
        "checked; the one that is furthest off is shown.",
        left=(0, 1, 2, 3, 4),
    )
    if n["model"]["limits"]["auc"] is None:
        auc = figure(n["performance"]["figures"]["auc"]["estimate"])
        yield Paragraph(
            "The policy states no AUC, so an AUC is compared with the one that the probabilities of the rows imply. To "
            f"compare with that of this document: plainrisk annotate {run.model} --set policy.drift.auc={auc}"
        )
    yield Paragraph(f"There are no limits for groups; to compare them: {run('fairness', 'NEW', '--by COLUMN')}")
    yield note("monitoring plan")
    yield note("overrides")


# Checks by their titles; the first three are of the probability or of a feature.
WATCHED = {
    "shift": "PSI",
    "missing": "Empty fields",
    "unseen": "Unseen values",
    "AUC": "AUC",
    "gap": "Mean prediction less observed rate",
    "approval": "Approval rate",
}


def _watched(n: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield one line per figure of the probability, and one for the feature that is furthest off."""
    for name, title in WATCHED.items():
        checks = [check for check in n["monitoring"]["checks"] if check["figure"] == name]
        of_features = [check for check in checks if check["feature"]]
        furthest = sorted(of_features, key=lambda check: (value(check["baseline"]) or 0.0) - check["value"])[:1]
        for check in [*(check for check in checks if not check["feature"]), *furthest]:
            what = titles_of(n)[check["feature"]] if check["feature"] else "the probability"
            yield (f"{title} of {what}" if name in ("shift", "missing", "unseen") else title, *_check(check))


def _check(check: dict[str, Any]) -> tuple[str, ...]:
    """Write a figure, what it is compared with, its limit and its state."""
    ends = {"estimate": check["value"], **check}
    base, limit = value(check["baseline"]), check["limit"]
    if check["figure"] in ("missing", "unseen", "approval"):
        beyond = f"above {percent(limit)}"
        if check["figure"] == "approval":
            beyond = "outside " + " to ".join(map(percent, sorted((limit, 2 * (base or 0.0) - limit))))
        return share_with_ends(ends), percent(base), beyond, check["state"]
    if check["figure"] == "gap":
        return with_ends(ends, 3, "+"), "0", f"beyond ±{limit:g}", check["state"]
    side = "below" if check["figure"] == "AUC" else "at least"
    return with_ends(ends), figure(base), f"{side} {figure(limit)}", check["state"]


def signatures(_n: dict[str, Any], _: Commands) -> Iterator[Block]:
    """Lines for signatures."""
    yield Paragraph("Signed on the basis of this document, with its gaps completed and its limitations answered.")
    yield Gap(VALIDATOR, "the outcome of the validation: approved, approved with conditions (list them), or rejected")
    people = ("Developed by", "Model owner", "Validated by", "Head of validation", "Approved by")
    yield Grid(
        "Signatures.",
        ("role", "name", "date", "signature"),
        [(role, "\n\n", "", "") for role in people],
        left=(0, 1, 2, 3),
        widths=(0.2, 0.3, 0.15, 0.35),
    )
