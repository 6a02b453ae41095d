"""`plainrisk document`: the model document, to be completed and signed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plainrisk.cli import show, source
from plainrisk.cli.options import Column, Data, Json, Missing, ModelArgument, option
from plainrisk.document import Source, Written, check_path, gather, write_document
from plainrisk.model import RiskModel, load

if TYPE_CHECKING:
    import polars as pl

__all__ = ["document"]


def document(
    model: ModelArgument,
    data: Data,
    train: str | None = option(
        "The training rows, for the prices of rules, challengers and a second fit.", metavar="DATA"
    ),
    against: str | None = option(
        "A model file, or a column of probabilities, to compare with.", metavar="MODEL or COLUMN"
    ),
    time: str | None = option("The column of periods, such as the month.", metavar="COLUMN"),
    by: list[str] | None = option("A column of groups or segments. Repeatable.", metavar="COLUMN"),
    profile: str = option("The order of the chapters: plain, sr-26-2, ss1-23 or ai-act.", "plain", metavar="NAME"),
    output: Path | None = option(
        "The document: .docx, .md or .html; by default MODEL.docx. All its numbers are written to FILE.json.",
        None,
        "--output",
        "-o",
        metavar="FILE",
    ),
    target: Column = None,
    missing: Missing = None,
    json: Json = False,
) -> None:
    """Write the model document: measured, checked and marked where a person must complete it; a file to sign."""
    path = Path(f"{model.stem}.docx") if output is None else output
    check_path(path, profile)
    loaded, texts = load(model), [name for name in (time, *(by or ())) if name is not None]
    other = load(Path(against)) if against is not None and against.endswith(".json") else None
    models = [loaded] if other is None else [loaded, other]
    test, tested = _read(data, missing, models, texts)
    rows, trained = (None, None) if train is None else _read(train, missing, models[:1], ())
    sources = {"test": tested, "train": trained, "against": None if other is None else Source(str(against))}
    evidence = gather(
        loaded,
        test,
        train=rows,
        against=against if other is None else other,
        time=time,
        by=by or (),
        target=target,
        sources={key: one for key, one in sources.items() if one is not None},
        file=model,
    )
    with show.progress("Document", 1) as bar:
        written = write_document(evidence, path, profile=profile, progress=bar.move)
    result: dict[str, Any] = {"document": str(written.document), "numbers": str(written.numbers), "profile": profile}
    result |= {"model": str(model), "data": data, "train": train, "against": against}
    result |= {"limitations": list(written.limitations), "gaps": list(written.gaps)}
    show.result(result, json, lambda _: _tell(written))


def _read(
    data: str, missing: list[str] | None, models: Sequence[RiskModel], texts: Sequence[str]
) -> tuple[pl.DataFrame, Source]:
    """Read rows and return their origin: the hash of every file."""
    table = source.scan_source(data, missing, source.kinds_of_forms([model.form_ for model in models]), texts)
    there = [(Path(name), rows) for name, rows in table.parts if Path(name).is_file()]
    files = [{"name": path.name, "rows": rows, "sha256": _sha256(path)} for path, rows in there]
    return table.collect(), Source(there[0][0].name if len(there) == 1 else data, tuple(files))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tell(written: Written) -> None:
    grave = [one for one in written.limitations if one["severity"] == "high"]
    console = show.out()
    console.print(f"Wrote {written.document}, and all its numbers to {written.numbers}.")
    console.print(
        f"{len(written.limitations)} limitations found, {len(grave)} of them high; {len(written.gaps)} gaps for "
        f"people to complete."
    )
    for one in grave:
        console.print(f"  high: {one['text']}", soft_wrap=True)
