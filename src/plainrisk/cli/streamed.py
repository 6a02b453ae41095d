"""`plainrisk fit --stream`: rows that are read in batches, with a bar for every pass."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from plainrisk.cli import show
from plainrisk.errors import SchemaError
from plainrisk.schema import Schema

__all__ = ["fit_stream", "stream_schema"]


def stream_schema(path: Path | None, target: str | None, positive: str | None) -> Schema:
    """Return the schema, which must say what is to be fitted: there is no first look at all rows."""
    if path is None:
        raise SchemaError("--stream needs --schema SCHEMA. Draft one from a sample: plainrisk schema infer SAMPLE.")
    schema = Schema.load(path)
    changes: dict[str, Any] = {}
    if target is not None and target != schema.target:
        changes = {"target": target, "positive": None}
    if positive is not None:
        changes["positive"] = positive
    schema = msgspec.structs.replace(schema, **changes)
    if schema.target is None:
        raise SchemaError(f"{path}: which column is the outcome? Add --target NAME, or target = ... to the schema.")
    return schema


def fit_stream(estimator: Any, data: str, schema: Schema, missing: Sequence[str]) -> dict[str, Any]:
    """Fit and return what there was to fit, as plain data."""
    from plainrisk.data import rows

    with _bars() as progress:
        source = (
            rows.csv(data, missing=missing, progress=progress)
            if data.endswith((".csv", ".csv.gz"))
            else rows.parquet(data, progress=progress)
        )
        estimator.fit(source)
    record = estimator.fit_record_
    return {
        "rows": record.rows,
        "features": len(schema.features),
        "target": schema.target,
        "positive": estimator.form_.classes[1],
        "base_rate": record.base_rate,
    }


@contextlib.contextmanager
def _bars() -> Iterator[Callable[[str, int, int], None]]:
    """Show one bar per pass over the rows."""
    with contextlib.ExitStack() as open_bars:
        advance: dict[str, Callable[[int], None]] = {}
        reached: dict[str, int] = {}

        def progress(task: str, done: int, total: int) -> None:
            if task not in advance:
                open_bars.close()  # one bar at a time
                advance.clear()
                reached.clear()
                advance[task] = open_bars.enter_context(show.progress(task.capitalize(), total))
            start = reached.get(task, 0)
            # A pass of the same name may begin anew.
            advance[task](done - start if done > start else done)
            reached[task] = done

        yield progress
