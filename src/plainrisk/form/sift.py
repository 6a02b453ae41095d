"""Which rows a form cannot score, and why: for those who want the others nevertheless."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from plainrisk.data.frame import as_frame
from plainrisk.errors import DataError
from plainrisk.form.form import RiskForm

__all__ = ["unusable_rows"]


def unusable_rows(form: RiskForm, rows: Any, first: int = 0) -> dict[int, str]:
    """Return, by position, why rows cannot be scored; rows without a problem are left out.

    Many rows raise the same error as one bad row among them, so halves are tried until single rows are left.

    Parameters
    ----------
    form : that is to score them
    rows : any table that has the columns of the form
    first : where they start in all rows, for messages

    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german", backend="polars")
    >>> form = pr.AdditiveRiskModel(german.schema).fit(german.frame, german.target).form_
    >>> rows = german.frame[:3].to_dicts()
    >>> unusable_rows(form, [rows[0], {**rows[1], "Credit amount": float("inf")}, rows[2]], first=10)
    {1: "Data: feature 'Credit amount' holds infinity (row 11). Make it missing, ..."}
    """
    frame = replace(as_frame(rows), first=first)
    found: dict[int, str] = {}
    pieces = [(0, frame.n_rows)]
    while pieces:
        start, stop = pieces.pop()
        try:
            form.risk(frame.take(start, stop))
        except DataError as error:
            if stop - start == 1:
                found[start] = str(error)
            else:
                middle = (start + stop) // 2
                pieces += [(middle, stop), (start, middle)]
    return found
