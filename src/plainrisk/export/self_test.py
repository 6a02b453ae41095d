"""The self-test of an export: rows made from the form's levels, and the model's answers for them."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plainrisk.export.code import side_of
from plainrisk.export.expression import Cells, Input, Labels, Program, walk

__all__ = ["TEST_ROWS", "WORKBOOK_ROWS", "Row", "SelfTest", "make_rows"]

Row = tuple[float | str | None, ...]
TEST_ROWS = 100
WORKBOOK_ROWS = 20  # every row of a workbook is computed whenever it is opened


@dataclass(frozen=True)
class SelfTest:
    """Rows with the model's answers.

    Attributes
    ----------
    rows : a value per input
    answers : per row, an entry per output of the program: a number, a text, or None where there is none
    """

    rows: Sequence[Row]
    answers: Sequence[list[float | str | None]]


def make_rows(
    program: Program, refuses: Callable[[Mapping[str, Any]], str | None], count: int = TEST_ROWS
) -> list[Row]:
    """Return rows at, next to and far from all cuts, with all labels, missing and unseen; the same every time.

    Parameters
    ----------
    refuses : returns the feature for which a row is refused; the row then gets another value of it
    count : the number of rows
    """
    tables: dict[str, list[Cells | Labels]] = {i.id: [] for i in program.inputs}
    for e in (e for step in program.steps for e in walk(step.value)):
        if isinstance(e, Cells | Labels):
            tables.setdefault(e.x.id, []).append(e)
    values = {i.feature: list(_values(i, tables[i.id])) for i in program.inputs}
    pick = random.Random(0)
    rows: list[Row] = []
    for n in range(count):
        # The first rows use the values in order, so that short lists are covered completely.
        row = {name: v[n % len(v)] if n < 20 else v[int(pick.random() * len(v))] for name, v in values.items()}
        for _ in range(100 * len(row)):
            name = refuses(row)
            if name is None:
                rows.append(tuple(row.values()))
                break
            row[name] = values[name][int(pick.random() * len(values[name]))]
    return rows


def _values(i: Input, tables: Sequence[Cells | Labels]) -> Iterator[float | str | None]:
    if i.is_text:
        labels = dict.fromkeys(label for e in tables if isinstance(e, Labels) for label in e.values)
        yield from labels
        yield from (None, next(f"{'un' * n}seen" for n in range(1, 99) if f"{'un' * n}seen" not in labels))
        return
    # Spreadsheets compare 15 digits, so a cut is tested as they write it, and no other number next to it.
    cuts = sorted({side_of(cut, e.open)[1] for e in tables if isinstance(e, Cells) for cut in e.cuts})
    yield from (None, 0.0)
    if cuts:
        yield from (cuts[0] - 1.0, cuts[-1] + 1.0)
    for cut, after in itertools.pairwise([*cuts, math.inf]):
        yield cut
        middle = cut / 2 + min(after, cut + 2.0) / 2
        if middle - cut > 1e-9 * abs(cut) and after - middle > 1e-9 * abs(after):
            yield middle
