"""Writing a document, and next to it a JSON file with all its numbers."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from plainrisk.data.reader import suffix_of
from plainrisk.document.background import Commands, option
from plainrisk.document.blocks import Manuscript, gaps_of
from plainrisk.document.collect import collect
from plainrisk.document.evidence import Evidence
from plainrisk.document.manuscript import manuscript
from plainrisk.document.profiles import profile_of
from plainrisk.document.text import to_html, to_markdown
from plainrisk.document.word import require_docx, to_docx
from plainrisk.files import output_target, write_texts

__all__ = ["WRITES", "Written", "check_path", "twin_of", "write_document"]

WRITERS: Mapping[str, Callable[[Manuscript], bytes]] = {
    ".docx": to_docx,
    ".md": lambda document: to_markdown(document).encode(),
    ".html": lambda document: to_html(document).encode(),
}
WRITES = tuple(WRITERS)


@dataclass(frozen=True)
class Written:
    """A document that was written.

    Attributes
    ----------
    document, numbers : the two files
    limitations : found by the program, each with `severity`, `section` and `text`
    gaps : what people must complete
    """

    document: Path
    numbers: Path
    limitations: tuple[dict[str, str], ...]
    gaps: tuple[str, ...]


def twin_of(path: str | Path) -> Path:
    """Return the path of a document's numbers, next to the document: model.docx.json for model.docx."""
    path = Path(path)
    return path.with_name(f"{path.name}.json")


def check_path(path: str | Path, profile: str) -> None:
    """Raise before any work starts if a document cannot be written."""
    profile_of(profile)
    suffix_of(Path(path), WRITES, "write")
    for target in (path, twin_of(path)):
        output_target(target)
    if Path(path).suffix.lower() == ".docx":
        require_docx()


def write_document(
    evidence: Evidence,
    path: str | Path,
    *,
    profile: str = "plain",
    progress: Callable[[str, int, int], None] | None = None,
) -> Written:
    """Write the document of a model; see `FormMethods.document`."""
    check_path(path, profile)
    numbers = collect(evidence, progress or (lambda *_: None))
    document = manuscript(numbers, profile_of(profile), _commands(evidence, profile))
    gaps = tuple(gap.text for gap in gaps_of(document.blocks))
    content = WRITERS[Path(path).suffix.lower()](document)
    numbers = {**numbers, "profile": profile, "gaps": list(gaps)}
    twin = msgspec.json.format(msgspec.json.encode(numbers), indent=1) + b"\n"
    write_texts({twin_of(path): twin, path: content})
    return Written(Path(path), twin_of(path), tuple(numbers["limitations"]), gaps)


def _commands(evidence: Evidence, profile: str) -> Commands:
    """Return the names and options in the commands of the document."""
    train = None if evidence.train is None else evidence.train.source.name
    words: dict[str, str | None] = {
        "train": train,
        "time": evidence.time[0] if evidence.time else None,
        "against": evidence.against[0] if evidence.against else None,
        "column": evidence.target,
        "profile": None if profile == "plain" else profile,
    }
    options = [option(name, word) for name, word in words.items() if word is not None]
    return Commands(
        "MODEL" if evidence.file is None else shlex.quote(evidence.file.name),
        shlex.quote(evidence.test.source.name),
        shlex.quote(train or "TRAIN"),
        (*options, *(option("by", name) for name in evidence.by)),
    )
