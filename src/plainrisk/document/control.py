"""The sections on what is done with the model: reasons, sensitivity, limitations, certificate, code, monitoring."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plainrisk.document.background import OWNER, VALIDATOR, Commands, note, option
from plainrisk.document.blocks import Block, Bullets, Gap, Grid, Paragraph
from plainrisk.document.figures import (
    NONE,
    TINY,
    count,
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
SEVERITY = {"high": "High", "medium": "Medium", "note": "Note"}


def reasons(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """The reasons that refused applicants would receive."""
    given = n["reasons"]
    if given is None:
        yield Paragraph("The model is not additive in its features, so no reasons are computed here.")
        return
    titles = {one["feature"]: (one["title"], one["reason"]) for one in n["schema"]}
    compared = "the best level of every feature" if given["reference"] == "best" else "the typical applicant"
    yield Paragraph(
        f"{count(given['refused'])} of {count(n['data']['test']['rows'])} test rows are refused. Each gets at most "
        f"{given['k']} reasons: "
        f"the features that cost most compared with {compared}"
        + (", grouped by subscale" if n["model"]["order"] == "subscale" else "")
        + "."
        + (
            f" For {count(given['withheld'])} of them a protected feature costs more than the last reason named, "
            f"and is withheld."
            if given["withheld"]
            else ""
        )
        + _steady_reasons(n)
    )
    shown = sorted(given["features"], key=lambda one: -one["any"])
    yield Grid(
        "How often each feature is a reason.",
        ("feature", "words", "first reason", "among the reasons"),
        [
            (
                titles[one["feature"]][0],
                titles[one["feature"]][1] or titles[one["feature"]][0],
                _of(one["first"], given),
                _of(one["any"], given),
            )
            for one in shown
        ],
        command=run("reasons", run.test, "-o reasons.csv"),
        note="Words: of measured values; empty fields and codes have words of their own.",
        left=(0, 1),
    )
    wordless = [titles[one["feature"]][0] for one in shown if titles[one["feature"]][1] is None]
    if wordless:
        yield Gap(OWNER, f"words for a reason that an applicant understands, for: {', '.join(wordless)}")


def _steady_reasons(n: dict[str, Any]) -> str:
    steady = (n["refits"] or {}).get("stability")
    if steady is None:
        return ""
    return (
        f" If the model is fitted again to resampled training rows, the first reason is another one for "
        f"{percent(steady['refits'][0]['reasons'])} of them on average."
    )


def _of(part: int, found: dict[str, Any]) -> str:
    return percent(part / found["refused"] if found["refused"] else None)


def sensitivity(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """Which features move the probability."""
    titles = titles_of(n)
    shown = [one for one in n["shapes"]["importance"] if one["mean"] is not None][:20]
    unit = shown[0]["unit"] if shown else "probability"
    scale, digits = (100, 1) if unit == "probability" else (1, 3)
    yield Grid(
        "How much each feature moves the probability of the test rows.",
        ("feature", "mean effect", "from the least to the largest effect"),
        [
            (
                titles.get(one["feature"] or one["subscale"], one["feature"] or one["subscale"]),
                figure(scale * one["mean"], digits),
                figure(scale * one["span"], digits),
            )
            for one in shown
        ],
        command=run("explain", run.test, "-o contributions.csv"),
        note=f"In {'percentage points' if unit == 'probability' else unit}; mean of the absolute contributions.",
    )
    yield from _decisions(n, run)
    if n["sensitivity"]["stress"] is not None:
        yield from _stress(n, run)
    else:
        command = run("stress", run.test, "--shock FEATURE=-10%")
        yield Gap(VALIDATOR, f"a stress that suits the portfolio; no measured number has a direction ({command})")


def _decisions(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    inputs, titles = n["sensitivity"]["inputs"], titles_of(n)
    shown = [*inputs["features"][:MOST_INPUTS], *inputs["features"][MOST_INPUTS:][-1:]]
    change = f"{inputs['change']:.0%}"
    yield Grid(
        f"Decisions that change at the cut-off of {percent(inputs['cutoff'])}.",
        ("feature", "exchanged", f"{change} more", f"{change} less", "approval, more", "approval, less", "rounded"),
        [
            (
                titles.get(one["feature"], one["feature"]),
                *(percent(one[name]) for name in ("shuffled", "up", "down")),
                *(points(one[name]) for name in ("approval_up", "approval_down")),
                percent(one["rounded"]),
            )
            for one in shown
        ],
        command=run("stress", run.test),
        note="Exchanged: applicants get each other's values. Rounded: values move within the digit they are rounded "
        "to. Approval: change of its rate in percentage points.",
    )


def _stress(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    stress = n["sensitivity"]["stress"]
    sides: dict[str, list[str]] = {"+": [], "-": []}
    for name, _, change in (text.rpartition("=") for text in stress["shocks"]):
        sides[change[0]].append(titles_of(n).get(name, name))
    words = {"-": "a tenth lower", "+": "a tenth higher"}
    moved = "; ".join(f"{words[side]}: {', '.join(names)}" for side, names in sides.items() if names)
    yield Paragraph(
        f"Stress: all numbers with a direction move by a tenth against every applicant ({moved}). What follows is what "
        "the model would do; whether it would be right, no test row can say."
    )
    by = [one["feature"] for one in n["schema"] if one["protected"]][:1] if len(stress["groups"]) > 1 else []
    groups = [option("by", name) for name in by]
    yield Grid(
        "Before and after the stress, all rows and groups.",
        ("group", "rows", "bad rate expected", "after", "approved", "after", "of the approved", "after"),
        [
            (
                one["group"],
                count(one["rows"]),
                *(percent(one[name]) for name in ("risk", "risk_after", "approval", "approval_after")),
                *(percent(one[name]) for name in ("bad_rate", "bad_rate_after")),
            )
            for one in stress["groups"]
        ],
        command=run("stress", run.test, *(option("shock", shock) for shock in stress["shocks"]), *groups),
        note=" ".join(["Expected: the mean probability of the adverse outcome.", _beyond(stress["beyond"])]),
    )


def _beyond(rows: dict[str, int]) -> str:
    most = max(rows.values(), default=0)
    return (
        f"Up to {count(most)} rows then have a value beyond all that training saw, where nothing is known of the model."
        if most
        else ""
    )


def limitations(n: dict[str, Any], _: Commands) -> Iterator[Block]:
    """What the program found by itself."""
    listed = n["limitations"]
    yield Paragraph(
        "The program looks for these limitations by fixed rules; what it cannot see is not listed. Every line "
        "needs an answer."
    )
    yield Grid(
        f"{len(listed)} limitations found.",
        ("severity", "section", "limitation"),
        [(SEVERITY[one["severity"]], one["section"].capitalize(), one["text"]) for one in listed],
        left=(0, 1, 2),
    )
    yield Gap(
        VALIDATOR, "further limitations, the answer to each of these, and which of them bind the use of the model"
    )


def certificate(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """What is proved, and how to check it without us."""
    certified = n["certificate"]
    stored = (
        "The model file holds a certificate that says the same."
        if certified["stored"] and not certified["differences"]
        else ""
    )
    stored = (
        "The stored certificate says otherwise: " + "; ".join(certified["differences"])
        if certified["differences"]
        else stored
    )
    yield Paragraph(
        f"{'All properties hold' if certified['valid'] else 'SOME PROPERTIES DO NOT HOLD'}. They are proved from the "
        f"model file alone, "
        f"for every possible applicant, and do not depend on test rows. {stored}",
        strong=True,
    )
    yield Grid(
        "The certificate.",
        ("state", "property", "evidence"),
        [("holds" if one["holds"] else "BROKEN", one["name"], one["detail"]) for one in certified["checks"]],
        command=run("certify"),
        left=(0, 1, 2),
    )
    better = [one for one in certified["outside"] if one["below_risk"] >= TINY]
    if better:
        yield Grid(
            "Empty fields and codes that can be better for the applicant than the best measured level.",
            ("feature", "level", "training rows", "points better, at most"),
            [
                (titles_of(n)[one["feature"]], one["name"], count(one["rows"]), f"{100 * one['below_risk']:.1f}")
                for one in better
            ],
            command=run("certify"),
            left=(0, 1),
        )
    yield Paragraph("To check this without trusting the program that wrote it:")
    yield Bullets(_checks(n, run))


def _checks(n: dict[str, Any], run: Commands) -> list[str]:
    file = n["model"]["file"]
    digest = "" if file is None else f" It must be {file['sha256']}."
    return [
        f"Compute the hash of the model file: sha256sum {run.model}.{digest}",
        (
            f"Write verify.py (plainrisk certify {run.model} --checker verify.py), read it (it is one file of plain "
            f"Python), and run it anywhere: python verify.py {run.model}. It checks hashes and claims again, by code "
            f"of its own.{_checker(n)}"
        ),
        f"Give the claims to a solver: plainrisk certify {run.model} --smt model.smt2, then z3 model.smt2.",
        (
            "Take the annex with all levels, add up the scores of an applicant by hand, and compare the probability "
            "with that of the system."
        ),
        (
            f"Run the exported SQL or Python in an environment of yours (plainrisk export {run.model} -o score.sql "
            f"--dialect sqlite). Neither "
            "needs this program."
        ),
    ]


def _checker(n: dict[str, Any]) -> str:
    claims = n["certificate"]["checker"]
    if claims is None:
        return ""
    held = sum(one["holds"] for one in claims)
    return f" When this document was made, {held} of its {len(claims)} claims held."


def implementation(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """Whether code that was exported gives the same answers."""
    yield Grid(
        "Exports, written and run when this document was made.",
        ("file", "run by", "rows", "largest difference", "reasons", "decisions", "agrees"),
        [_export(one) for one in n["exports"]],
        command=run("export", "-o score.sql --dialect sqlite --check"),
        note="Rows are made from the levels of the model. Reasons, decisions: rows that differ.",
        left=(0, 1, 6),
    )
    hashes = [(one["file"], one["sha256"]) for one in n["exports"] if "sha256" in one]
    yield Grid("Exports, by their SHA-256.", ("file", "SHA-256"), hashes, left=(0, 1))
    yield note("system")


def _export(one: dict[str, Any]) -> tuple[str, ...]:
    if "error" in one:
        return (one["file"], one["error"], "", "", "", "", "not run")
    differ = (count(one["reasons"]), count(one["decisions"]))
    return (
        one["file"],
        one["engine"],
        count(one["rows"]),
        "0" if one["largest"] == 0 else f"{one['largest']:.0e}",
        *differ,
        "yes" if one["agrees"] else "NO",
    )


def monitoring(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """What is monitored, and against which limits."""
    watched = n["monitoring"]
    yield Paragraph(
        f"One command looks at all of this. It ends with 5 if a limit is crossed and chance does not explain it at "
        f"{percent(watched['level'], 0)}, and adds a line to the history, which --plot draws: "
        f"{run('monitor', 'NEW', '--history looks.jsonl')}"
    )
    yield Grid(
        "What is watched, in the test rows and beside the limits.",
        ("figure", "in the test rows", "compared with", "crossed", "state"),
        list(_watched(n)),
        command=run("monitor", run.test),
        note="Intervals are of 99%. Limits stand in the policy of the model file (policy.drift). Of features, that "
        "which is furthest; all are looked at.",
        left=(0, 1, 2, 3, 4),
    )
    if n["model"]["limits"]["auc"] is None:
        auc = figure(n["performance"]["figures"]["auc"]["estimate"])
        yield Paragraph(
            "The policy states no AUC, so an AUC is compared with what the probabilities of the rows promise. To "
            f"compare with that of this document: plainrisk annotate {run.model} --set policy.drift.auc={auc}"
        )
    yield Paragraph(f"Groups are not among these limits; to look at them: {run('fairness', 'NEW', '--by COLUMN')}")
    yield note("monitoring plan")
    yield note("overrides")


# What a check of features is called, and of the probability.
WATCHED = {
    "shift": "PSI",
    "missing": "Empty fields",
    "unseen": "Values that training never saw",
    "AUC": "AUC",
    "gap": "Mean prediction less observed rate",
    "approval": "Approval rate",
}


def _watched(n: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield one line per figure of the probability, and for every other figure the feature that is furthest."""
    for figure_of, title in WATCHED.items():
        checks = [one for one in n["monitoring"]["checks"] if one["figure"] == figure_of]
        of_probability = [one for one in checks if not one["feature"]]
        others = sorted((one for one in checks if one["feature"]), key=lambda one: -_excess(one))[:1]
        for one in [*of_probability, *others]:
            what = titles_of(n)[one["feature"]] if one["feature"] else "the probability"
            yield (f"{title} of {what}" if figure_of in ("shift", "missing", "unseen") else title, *_check(one))


def _excess(check: dict[str, Any]) -> float:
    return float(check["value"] - (value(check["baseline"]) or 0.0))


def _check(check: dict[str, Any]) -> tuple[str, ...]:
    """Write a figure, what it is compared with, its limit and its state."""
    ends = {"estimate": check["value"], **check}
    base, limit = value(check["baseline"]), check["limit"]
    if check["figure"] in ("missing", "unseen", "approval"):
        least = 2 * (base or 0.0) - limit if check["figure"] == "approval" else None
        beyond = f"above {percent(limit)}" if least is None else f"outside {percent(min(least, limit))} to "
        beyond += "" if least is None else percent(max(least, limit))
        return share_with_ends(ends), NONE if base is None else percent(base), beyond, check["state"]
    if check["figure"] == "gap":
        return with_ends(ends, 3, "+"), "0", f"beyond ±{limit:g}", check["state"]
    side = "below" if check["figure"] == "AUC" else "from"
    return with_ends(ends), figure(base), f"{side} {figure(limit)}", check["state"]


def signatures(_n: dict[str, Any], _: Commands) -> Iterator[Block]:
    """Who signs."""
    yield Paragraph(
        "Signed on the basis of this document, including the gaps that were completed and the limitations that "
        "were answered."
    )
    yield Gap(VALIDATOR, "the outcome of the validation: approved, approved with conditions (list them), or rejected")
    people = ("Developed by", "Model owner", "Validated by", "Head of validation", "Approved by")
    yield Grid(
        "Signatures.",
        ("role", "name", "date", "signature"),
        [(role, "\n\n", "", "") for role in people],
        left=(0, 1, 2, 3),
        widths=(0.2, 0.3, 0.15, 0.35),
    )
