"""From numbers to a manuscript: the first page, then the chapters of a profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from plainrisk.document.background import Commands, identity
from plainrisk.document.blocks import Block, Bullets, Gap, Grid, Heading, Manuscript, Paragraph, Picture, gaps_of
from plainrisk.document.figures import count, percent, share_with_ends, with_ends
from plainrisk.document.profiles import Profile

__all__ = ["manuscript"]


def manuscript(numbers: dict[str, Any], profile: Profile, run: Commands) -> Manuscript:
    """Return the document of some numbers."""
    model = numbers["model"]
    chapters = [_filled(block, model["about"]) for block in profile.blocks(numbers, run)]
    return Manuscript(
        title=model["name"],
        subtitle=profile.title,
        header=f"{model['name']}  ·  form {model['form_sha256'][:16]}",
        footer=f"plainrisk {numbers['plainrisk']}",
        blocks=list(_numbered([*_first_page(numbers, profile, chapters, run), *chapters])),
    )


def _filled(block: Block, about: Mapping[str, str]) -> Block:
    """Replace a gap by the text that the model file holds for it."""
    if not isinstance(block, Gap):
        return block
    text = about.get(block.name) or about.get(block.name.replace(" ", "_"))
    return Paragraph(f"{block.name.capitalize()}: {text}") if text else block


def _numbered(blocks: Sequence[Block]) -> Iterator[Block]:
    """Number chapters, their sections, tables and pictures."""
    chapter = section = tables = pictures = 0
    for block in blocks:
        if isinstance(block, Heading) and block.level == 1:
            chapter, section = chapter + 1, 0
            yield replace(block, text=f"{chapter}. {block.text}")
        elif isinstance(block, Heading) and block.level == 2 and chapter:
            section += 1
            yield replace(block, text=f"{chapter}.{section} {block.text}")
        elif isinstance(block, Grid):
            tables += 1
            yield replace(block, caption=f"Table {tables}. {block.caption}")
        elif isinstance(block, Picture):
            pictures += 1
            yield replace(block, caption=f"Figure {pictures}. {block.caption}")
        else:
            yield block


def _first_page(n: dict[str, Any], profile: Profile, chapters: Sequence[Block], run: Commands) -> Iterator[Block]:
    yield from identity(n, run)
    yield Heading(2, "Summary")
    yield from _summary(n, chapters)
    yield Heading(2, "How to read this document")
    if profile.basis:
        yield Paragraph(profile.basis)
    yield Paragraph(
        "Every figure was computed from the model and the rows named above; nothing was typed in. The line under a "
        "table is the command that prints the same figures; a table without one comes from the command above. Text in "
        "square brackets is for a person to complete; texts in the model file replace it. All figures are also in the "
        "JSON file next to this document. The form is the part of the model file that gives the probabilities: files "
        "with the same form give everybody the same probability."
    )
    yield Bullets([chapter["title"] for chapter in profile.chapters])


def _summary(n: dict[str, Any], chapters: Sequence[Block]) -> Iterator[Block]:
    performance, chosen = n["performance"], n["cutoffs"]["chosen"]
    figures, cutoff = performance["figures"], percent(n["model"]["cutoff"]["value"])
    severe = [limitation["text"] for limitation in n["limitations"] if limitation["severity"] == "high"]
    valid = n["certificate"]["valid"] and not n["certificate"]["differences"]
    lines = {
        "Test rows, observed rate": f"{count(performance['rows'])}, {share_with_ends(performance['base_rate'])}",
        "AUC": with_ends(figures["auc"]),
        "Calibration slope": with_ends(figures["slope"]),
        "Mean prediction less observed rate": with_ends(figures["gap"], 3, "+"),
        f"Approved at the cut-off of {cutoff}": share_with_ends(chosen["approval"]),
        "Bad rate among the approved": share_with_ends(chosen["bad_rate"]),
        "Certificate": "all properties hold" if valid else "DOES NOT HOLD",
        "Limitations found by the program": f"{len(n['limitations'])}, {len(severe)} of them high",
        "Gaps that people must complete": count(len(list(gaps_of(chapters)))),
    }
    yield Grid("The model at a glance.", ("", ""), list(lines.items()), left=(0, 1))
    if severe:
        yield Paragraph("Limitations of high severity:", strong=True)
        yield Bullets(severe)
