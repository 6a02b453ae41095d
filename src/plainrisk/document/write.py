"""Writing a document, and the JSON with all its numbers beside it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from plainrisk.checks import NOTHING, check_parameters, instance
from plainrisk.data.reader import suffix_of
from plainrisk.document.background import Commands, option
from plainrisk.document.blocks import Manuscript, gaps_of
from plainrisk.document.collect import collect
from plainrisk.document.evidence import Source, gather
from plainrisk.document.manuscript import manuscript
from plainrisk.document.profiles import profile_of
from plainrisk.document.text import to_html, to_markdown
from plainrisk.document.word import require_docx, to_docx
from plainrisk.files import output_target, replacing
from plainrisk.model import FormMethods

__all__ = ["WRITES", "Written", "check_path", "twin_of", "write_document"]

WRITERS: Mapping[str, Callable[[Manuscript], bytes]] = {
    ".docx": to_docx,
    ".md": lambda found: to_markdown(found).encode(),
    ".html": lambda found: to_html(found).encode(),
}
WRITES = tuple(WRITERS)


@dataclass(frozen=True)
class Written:
    """What was written.

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
    """Return where the numbers of a document stand: beside it, model.docx.json for model.docx."""
    path = Path(path)
    return path.with_name(f"{path.name}.json")


def check_path(path: str | Path, profile: str) -> None:
    """Say before any work if a document could not be written."""
    profile_of(profile)
    suffix_of(Path(path), WRITES, "write")
    for target in (path, twin_of(path)):
        output_target(target)
    if Path(path).suffix.lower() == ".docx":
        require_docx()


def write_document(
    model: FormMethods,
    path: str | Path,
    data: Any,
    y: Any = None,
    *,
    train: Any = None,
    train_y: Any = None,
    against: Any = None,
    time: str | None = None,
    by: Sequence[str] = (),
    target: str | None = None,
    profile: str = "plain",
    sources: dict[str, Source] | None = None,
    file: Path | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Written:
    """Write the document of a model; see `FormMethods.document`.

    Parameters
    ----------
    sources : where rows came from, by "test", "train" and "against", for the commands and hashes in the document
    file : the model's file
    progress : called with what is done, the steps done and all steps
    """
    model._require_form()
    check_parameters("document", {"time": time}, {"time": NOTHING | instance("the name of a column", str)})
    check_path(path, profile)
    columns = [by] if isinstance(by, str) else list(by)
    given = {"train": train, "train_y": train_y, "against": against, "time": time, "by": columns, "target": target}
    evidence = gather(model, data, y, **given, sources=sources, file=file)
    numbers = collect(evidence, progress or (lambda *_: None))
    names = sources or {}
    named = {key: shlex.quote(names[key].name) for key in ("test", "train") if key in names}
    asked = [("train", names["train"].name if "train" in names else None), ("time", time)]
    asked += [("against", evidence.against[0] if evidence.against else None), *(("by", name) for name in columns)]
    asked += [("column", target), ("profile", profile if profile != "plain" else None)]
    options = tuple(option(name, word) for name, word in asked if word is not None)
    run = Commands("MODEL" if file is None else shlex.quote(file.name), **named, options=options)
    document = manuscript(numbers, profile_of(profile), run)
    gaps = tuple(gap.text for gap in gaps_of(document.blocks))
    content = WRITERS[Path(path).suffix.lower()](document)
    numbers = {**numbers, "profile": profile, "gaps": list(gaps)}
    _write(twin_of(path), msgspec.json.format(msgspec.json.encode(numbers), indent=1) + b"\n")
    _write(path, content)
    return Written(Path(path), twin_of(path), tuple(numbers["limitations"]), gaps)


def _write(path: str | Path, content: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(content)
