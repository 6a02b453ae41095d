"""A data set in memory, in the data frame library at hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
import numpy as np
import numpy.typing as npt

from plainrisk.datasets.tables import Column
from plainrisk.errors import DataError, MissingExtraError
from plainrisk.schema import Schema

__all__ = ["Backend", "Dataset", "to_frame"]

Backend = Literal["polars", "pandas", "pyarrow"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """Features, outcome and what is known of them.

    Attributes
    ----------
    name, title, source, licence, citation, note : str
    frame : data frame of the features alone, in schema order; missing values are null (NaN in pandas)
    target : array of 0 and 1; 1 is the outcome that ``schema.target`` names
    schema : what is known of the features
    expected_rows, expected_positive_rate : what the full data set holds, where it is known
    after_the_fact : features that were known only after the loan was made
    partial : whether this is a known incomplete copy
    path : the file that was read
    truth : the true probability of each row, of synthetic data only
    """

    name: str
    title: str
    frame: Any = field(repr=False)
    target: npt.NDArray[np.uint8] = field(repr=False)
    schema: Schema = field(repr=False)
    source: str
    licence: str
    citation: str = field(repr=False)
    note: str = field(default="", repr=False)
    expected_rows: int | None = None
    expected_positive_rate: float | None = None
    after_the_fact: tuple[str, ...] = ()
    partial: bool = False
    path: Path | None = None
    truth: npt.NDArray[np.float64] | None = field(default=None, repr=False)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.target)

    @property
    def positive_rate(self) -> float:
        """The share of rows whose outcome is 1."""
        return float(self.target.mean())

    def with_target(self) -> Any:
        """Return the frame with the target as its last column, under the name that the schema gives it."""
        frame = nw.from_native(self.frame, eager_only=True)
        name = str(self.schema.target)
        target = nw.new_series(name, self.target, backend=frame.implementation)
        return frame.with_columns(target).to_native()

    def select(self, names: Iterable[str]) -> Dataset:
        """Return the data set with these features alone.

        >>> from plainrisk.datasets import load
        >>> load("german").select(["Age in years", "Housing"]).frame.columns
        ['Age in years', 'Housing']
        """
        keep = list(names)
        for name in keep:
            if name not in self.schema.features:
                raise DataError(f"Datasets: {self.name} has no feature {name!r}.")
        frame = nw.from_native(self.frame, eager_only=True)[keep].to_native()
        after = tuple(name for name in self.after_the_fact if name in keep)
        return replace(self, frame=frame, schema=self.schema.select(keep), after_the_fact=after)

    def without_hindsight(self) -> Dataset:
        """Return the data set without the features that were known only after the loan was made."""
        return self.select(name for name in self.schema.features if name not in self.after_the_fact)


def to_frame(columns: Mapping[str, Column], backend: Backend | None = None) -> Any:
    """Return a data frame: polars if it is installed, else pandas, else an arrow table."""
    known: tuple[Backend, ...] = ("polars", "pandas", "pyarrow")
    if backend is not None and backend not in known:
        raise DataError(f"Datasets: backend must be 'polars', 'pandas' or 'pyarrow', not {backend!r}.")
    library = next((b for b in (known if backend is None else (backend,)) if find_spec(b)), None)
    if library is None:
        wanted = backend or "polars"
        raise MissingExtraError(f"{wanted} is needed for this and is not installed: pip install {wanted}")
    words = {name for name, column in columns.items() if column.dtype == object}
    data = {name: column.tolist() if name in words else column for name, column in columns.items()}
    frame = nw.from_dict(data, backend=library)
    # A column of missing words alone has no type of its own.
    casts = [nw.col(name).cast(nw.String) for name in words if frame.schema[name] != nw.String]
    if library != "pandas":
        casts += [nw.col(name).fill_nan(None) for name, column in columns.items() if column.dtype.kind == "f"]
    return frame.with_columns(casts).to_native() if casts else frame.to_native()
