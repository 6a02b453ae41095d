"""Rows that cannot be scored are set aside with their errors, so that one of them does not refuse a whole file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plainrisk.cli import tables
from plainrisk.data.reader import text_in
from plainrisk.errors import DataError
from plainrisk.form import RiskForm
from plainrisk.form.beyond import unusable_rows

if TYPE_CHECKING:
    import polars as pl

__all__ = ["TEXT_IN", "Rejects"]

TEXT_IN = "feature that holds text"  # the column in which the reader notes it
MOST = 100_000  # rows set aside; where there are more, the whole file is probably wrong


class Rejects:
    """The rows of a table that cannot be used.

    Parameters
    ----------
    form : that is to score the rows
    number : the column that numbers the rows
    kept : from a batch to the columns that tell which rows they are
    """

    def __init__(self, form: RiskForm, number: str, kept: Callable[[pl.DataFrame], list[pl.Series]]) -> None:
        self._form, self._number, self._kept = form, number, kept
        self._tables: list[pl.DataFrame] = []

    def __len__(self) -> int:
        return sum(table.height for table in self._tables)

    def computed(self, batch: pl.DataFrame, compute: Callable[[pl.DataFrame], Any]) -> tuple[pl.DataFrame, Any]:
        """Return the usable rows of a batch, and the results for them."""
        texts = {i: text_in(name) for i, name in enumerate(batch[TEXT_IN]) if name is not None}
        usable, errors = _without(batch, texts), texts
        try:
            results = compute(usable)
        except DataError:
            errors = unusable_rows(self._form, batch, int(batch[self._number][0])) | texts
            if len(errors) == len(texts):
                raise
            usable = _without(batch, errors)
            results = compute(usable)
        self._note(batch, errors)
        return usable, results

    def _note(self, batch: pl.DataFrame, errors: dict[int, str]) -> None:
        import polars as pl

        if not errors:
            return
        at = sorted(errors)
        rows = batch[at]
        messages = pl.Series("error", [errors[i] for i in at])
        self._tables.append(pl.DataFrame([rows[self._number].alias("row"), *self._kept(rows), messages]))
        if len(self) > MOST:
            raise DataError(
                f"More than {MOST:,} rows cannot be used, so the whole file is probably wrong. In row "
                f"{rows[self._number][0]:,}: {errors[at[0]]}"
            )

    def write(self, path: Path, like: Sequence[pl.Series]) -> None:
        """Write them in the order of the rows; `like` are the columns to keep of no rows, for a table without any."""
        import polars as pl

        none = pl.DataFrame([pl.Series("row", [], pl.get_index_type()), *like, pl.Series("error", [], pl.String)])
        tables.write_lazy(pl.concat([none, *self._tables]).sort("row").lazy(), path)


def _without(batch: pl.DataFrame, errors: Mapping[int, str]) -> pl.DataFrame:
    """Return the rows that have no error."""
    return batch[[i for i in range(batch.height) if i not in errors]] if errors else batch
