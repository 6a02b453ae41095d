"""Rows that cannot be scored, each with its error, where a request asks for the answers to the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plainrisk.errors import DataError
from plainrisk.form.beyond import unusable_rows
from plainrisk.serve.served import Served

__all__ = ["Sifted", "errors_of"]


def errors_of(served: Served, rows: Sequence[Any]) -> dict[int, str]:
    """Return, by position, why a row cannot be scored: it could not be read, or the model refuses it."""
    unread = {i: str(row) for i, row in enumerate(rows) if isinstance(row, DataError)}
    # A row that could not be read is replaced by a valid one, so that row numbers in messages are right.
    valid = served.requests.row(served.requests.example)
    readable = [valid if i in unread else row for i, row in enumerate(rows)]
    errors = unusable_rows(served.model.form_, served.requests.table(readable)) | unread
    if len(errors) == len(rows):
        raise DataError(f"No row can be scored. The first: {errors[0]}")
    return errors


@dataclass(frozen=True)
class Sifted:
    """The answers for some rows, with errors in place of the others."""

    answers: Any
    errors: Mapping[int, str]
    _at: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        answered = (i for i in range(len(self)) if i not in self.errors)
        object.__setattr__(self, "_at", {i: k for k, i in enumerate(answered)})

    def __len__(self) -> int:
        return len(self.answers) + len(self.errors)

    def to_dict(self, row: int) -> dict[str, Any]:
        """Return one row as plain data."""
        error = self.errors.get(row)
        return self.answers.to_dict(self._at[row]) if error is None else {"error": error}
