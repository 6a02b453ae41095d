"""The sections on what is done with the model: reasons, sensitivity, limitations, certificate, code, monitoring."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plainrisk.document.background import OWNER, VALIDATOR, Commands
from plainrisk.document.blocks import Block, Bullets, Gap, Grid, Paragraph
from plainrisk.document.figures import (
    NONE,
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
    """What the refused would be told."""
    found = n["reasons"]
    if found is None:
        yield Paragraph("The model is not additive in its features, so no reasons are computed here.")
        return
    titles = {one["feature"]: (one["title"], one["reason"]) for one in n["schema"]}
    compared = "the best level of every feature" if found["reference"] == "best" else "the typical applicant"
    yield Paragraph(
        f"{count(found['refused'])} of {count(n['data']['test']['rows'])} test rows are refused. Each gets at most "
        f"{found['k']} reasons: "
        f"the features that cost most compared with {compared}"
        + (", grouped by subscale" if n["model"]["order"] == "subscale" else "")
        + "."
        + (
            f" For {count(found['withheld'])} of them a protected feature costs more than the last reason named, "
            f"and is withheld."
            if found["withheld"]
            else ""
        )
    )
    shown = sorted(found["features"], key=lambda one: -one["any"])
    yield Grid(
        "How often each feature is a reason.",
        ("feature", "words", "first reason", "among the reasons"),
        [
            (
                titles[one["feature"]][0],
                titles[one["feature"]][1] or titles[one["feature"]][0],
                _of(one["first"], found),
                _of(one["any"], found),
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


def _decisions(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    found, titles = n["sensitivity"]["inputs"], titles_of(n)
    shown = [*found["features"][:MOST_INPUTS], *found["features"][MOST_INPUTS:][-1:]]
    change = f"{found['change']:.0%}"
    yield Grid(
        f"Decisions that change at the cut-off of {percent(found['cutoff'])}.",
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
    found = n["sensitivity"]["stress"]
    shocks = [text.rpartition("=") for text in found["shocks"]]
    moved = ", ".join(f"{titles_of(n).get(name, name)} {change}" for name, _, change in shocks)
    yield Paragraph(
        f"Stress: all numbers with a direction move by a tenth against every applicant ({moved}). What follows is what "
        "the model would do; whether it would be right, no test row can say."
    )
    yield Grid(
        "Before and after the stress, all rows and groups.",
        ("group", "rows", "mean bad risk", "after", "approved", "after", "expected bad rate", "after"),
        [
            (
                one["group"],
                count(one["rows"]),
                *(percent(one[name]) for name in ("risk", "risk_after", "approval", "approval_after")),
                *(percent(one[name]) for name in ("bad_rate", "bad_rate_after")),
            )
            for one in found["groups"]
        ],
        command=run("stress", run.test, f"--shock '{found['shocks'][0]}' ..."),
        note=_beyond(found["beyond"]),
    )


def _beyond(rows: dict[str, int]) -> str:
    most = max(rows.values(), default=0)
    return (
        f"Values of up to {count(most)} rows leave the range of training, where the model was never seen."
        if most
        else ""
    )


def limitations(n: dict[str, Any], _: Commands) -> Iterator[Block]:
    """What the program found by itself."""
    found = n["limitations"]
    yield Paragraph(
        "The program looks for these limitations by fixed rules; what it cannot see is not listed. Every line "
        "needs an answer."
    )
    yield Grid(
        f"{len(found)} limitations found.",
        ("severity", "section", "limitation"),
        [(SEVERITY[one["severity"]], one["section"].capitalize(), one["text"]) for one in found],
        left=(0, 1, 2),
    )
    yield Gap(
        VALIDATOR, "further limitations, the answer to each of these, and which of them bind the use of the model"
    )


def certificate(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """What is proved, and how to check it without us."""
    found = n["certificate"]
    stored = (
        "The model file holds a certificate that says the same." if found["stored"] and not found["differences"] else ""
    )
    stored = (
        "The stored certificate says otherwise: " + "; ".join(found["differences"]) if found["differences"] else stored
    )
    yield Paragraph(
        f"{'All properties hold' if found['valid'] else 'SOME PROPERTIES DO NOT HOLD'}. They are proved from the "
        f"model file alone, "
        f"for every possible applicant, and do not depend on test rows. {stored}",
        strong=True,
    )
    yield Grid(
        "The certificate.",
        ("state", "property", "evidence"),
        [("holds" if one["holds"] else "BROKEN", one["name"], one["detail"]) for one in found["checks"]],
        command=run("certify"),
        left=(0, 1, 2),
    )
    better = [one for one in found["outside"] if one["below"] > 0]
    if better:
        yield Grid(
            "Empty fields and codes that can be better for the applicant than the best measured level.",
            ("feature", "level", "training rows", "points better, at most"),
            [
                (titles_of(n)[one["feature"]], one["level"], count(one["rows"]), f"{100 * one['below_risk']:.1f}")
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
    found = n["certificate"]["checker"]
    if found is None:
        return ""
    held = sum(one["holds"] for one in found)
    return f" When this document was made, {held} of its {len(found)} claims held."


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
    again = (n["refits"] or {}).get("again")
    if again and "error" not in again:
        same = (
            "gives the same model, to the last bit"
            if again["same_form"]
            else f"moves a probability by at most {percent(again['largest_move'], 2)}"
        )
        yield Paragraph(f"Fitting again to the training file, with the settings of the model file, {same}.")
    yield Gap(OWNER, "the system in which the model runs, how its version is controlled, and who may change it")


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
    """What is watched, beside which limits."""
    limits, figures = n["model"]["limits"], n["performance"]["figures"]
    auc, approval = figures["auc"], n["cutoffs"]["chosen"]["approval"]
    known = auc["estimate"] if limits["auc"] is None else limits["auc"]
    rate = approval["estimate"] if limits["approval"] is None else limits["approval"]
    least = NONE if value(known) is None else figure(known - limits["auc_drop"])
    psi, gap = f"{limits['moderate']:g}; {limits['large']:g}", with_ends(figures["gap"], 3, "+")
    rows = [
        ("PSI of each feature and of the probability", "see Stability", psi, "drift"),
        ("AUC", with_ends(auc), f"below {least}", "evaluate"),
        ("Mean prediction less observed rate", gap, f"beyond ±{limits['gap']:g}", "evaluate"),
        (
            "Approval rate",
            share_with_ends(approval),
            f"{percent(rate)} ± {100 * limits['approval_shift']:g} points",
            "cutoffs",
        ),
        ("Empty fields, by feature", "see Data", f"{100 * limits['missing']:g} points more", "quality"),
        ("Values that training never saw", "see Data", f"{percent(limits['unseen'])} of the rows", "quality"),
        ("Impact ratio of groups", "see Fairness", "below 0.8", "fairness"),
    ]
    yield Grid(
        "What is watched, beside the limits.",
        ("figure", "in this document", "limit", "command"),
        [(what, now, limit, run(verb, "NEW")) for what, now, limit, verb in rows],
        note="All limits but the last stand in the policy of the model file (policy.drift).",
        left=(0, 1, 2, 3),
    )
    if limits["auc"] is None:
        yield Paragraph(
            f"The policy keeps no AUC to compare with, so that of this document is used above. To keep it: plainrisk "
            f"annotate {run.model} --set policy.drift.auc={figure(auc['estimate'])}."
        )
    yield Gap(
        OWNER, "how often each figure is looked at, by whom, the limits to be set, and what follows when one is crossed"
    )
    yield Gap(OWNER, "how overrides are recorded and reviewed")


def signatures(_n: dict[str, Any], _: Commands) -> Iterator[Block]:
    """Who signs."""
    yield Paragraph(
        "Signed on the basis of this document, including the gaps that were completed and the limitations that "
        "were answered."
    )
    people = ("Developed by", "Model owner", "Validated by", "Head of validation", "Approved by")
    yield Grid(
        "Signatures.",
        ("role", "name", "date", "signature"),
        [(role, "\n\n", "", "") for role in people],
        left=(0, 1, 2, 3),
        widths=(0.2, 0.3, 0.15, 0.35),
    )
    yield Gap(VALIDATOR, "the outcome of the validation: approved, approved with conditions (list them), or rejected")
