"""The rows that are timed: made or loaded once, kept in a folder, and read from it by every fresh process.

    python -m benchmarks.data FOLDER NAME

A name is `credit-ROWSxFEATURES` (synthetic) or that of a public data set. The folder of a name holds the frame as it
is (words are words), the same rows as a matrix of float64 in which words are their places in the list of categories,
the outcomes, and the schema of each.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

SEED = 0


@dataclass(frozen=True)
class Data:
    """Rows in a folder, read when they are asked for.

    Attributes
    ----------
    folder : where they are
    rows, features : only so many of the first ones, or None for all
    as_matrix : whether methods that read frames shall be given the matrix instead
    subscales : this many equal groups of features instead of the schema's, or None
    max_bins : bins per feature for methods that take them
    """

    folder: Path
    rows: int | None = None
    features: int | None = None
    as_matrix: bool = False
    subscales: int | None = None
    max_bins: int = 5

    @cached_property
    def target(self) -> Any:
        """The outcomes, 0 or 1."""
        return np.load(self.folder / "target.npy", mmap_mode="r")[: self.rows].copy()

    @cached_property
    def frame(self) -> Any:
        """The rows as a polars data frame."""
        import polars

        # Parquet, not arrow's own file: that is mapped, and pages first read in a fit would count as its memory.
        path = self.folder / "frame.parquet"
        return polars.read_parquet(path, n_rows=self.rows, columns=self._names).rechunk()

    @cached_property
    def matrix(self) -> Any:
        """The rows as float64, one row after the other; missing is NaN."""
        stored = np.load(self.folder / "matrix.npy", mmap_mode="r")
        return np.array(stored[: self.rows, : self.features], order="C")

    @cached_property
    def schema(self) -> Any:
        """What is known of the columns of the frame."""
        return self._schema("schema.json")

    @cached_property
    def matrix_schema(self) -> Any:
        """What is known of the columns of the matrix."""
        return self._schema("matrix-schema.json")

    def tree_matrix(self) -> Any:
        """Return the matrix as boosted trees like it: float32, and NaN for codes that are no measurements."""
        X = self.matrix.astype(np.float32)
        for j, feature in enumerate(self.matrix_schema.features.values()):
            if feature.kind != "continuous":
                continue
            if feature.lower_bound is not None:
                X[X[:, j] < feature.lower_bound, j] = np.nan
            for code in feature.special_values:
                X[X[:, j] == code, j] = np.nan
        return X

    def head(self, rows: int) -> Data:
        """Return the first rows alone."""
        return replace(self, rows=min(rows, len(self.target)))

    @cached_property
    def _names(self) -> list[str]:
        from plainrisk import Schema

        return list(Schema.load(self.folder / "schema.json").features)[: self.features]

    def _schema(self, file: str) -> Any:
        from plainrisk import Schema

        known = Schema.load(self.folder / file)
        if self.features is not None:
            known = known.select(self._names)
        if self.subscales is not None:
            groups = np.array_split(np.array(self._names), self.subscales)
            parts = {f"Part {k + 1}": tuple(map(str, group)) for k, group in enumerate(groups)}
            known = Schema(features=known.features, subscales=parts, target=known.target, positive=known.positive)
        return known


def make(folder: Path, name: str) -> None:
    """Write the rows of a name into a folder, unless they are there."""
    import plainrisk as pr

    if (folder / "ready").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    size = re.fullmatch(r"credit-(\d+)x(\d+)", name)
    if size:
        data = pr.datasets.make_credit(int(size[1]), SEED, n_features=int(size[2]), backend="polars")
    else:
        data = pr.datasets.load(name, backend="polars")
    matrix, coded = as_numbers(data.frame, data.schema.features)
    np.save(folder / "matrix.npy", matrix)
    del matrix
    np.save(folder / "target.npy", np.asarray(data.target, dtype=np.uint8))
    data.frame.write_parquet(folder / "frame.parquet", compression="lz4", row_group_size=len(data.frame))
    data.schema.save(folder / "schema.json")
    known = pr.Schema(
        features=coded, subscales=data.schema.subscales, target=data.schema.target, positive=data.schema.positive
    )
    known.save(folder / "matrix-schema.json")
    (folder / "ready").touch()


def as_numbers(frame: Any, features: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return a polars frame as a matrix, words by their places, and the features that describe it."""
    import msgspec
    import polars

    matrix = np.empty(frame.shape)
    coded = dict(features)
    for j, (name, feature) in enumerate(features.items()):
        column = frame[name]
        if column.dtype == polars.String:
            words = [str(c) for c in feature.categories or sorted(column.drop_nulls().unique())]
            column = column.cast(polars.Enum(words)).to_physical()
            numbers = tuple(range(len(words)))
            coded[name] = msgspec.structs.replace(feature, categories=numbers, reasons={})
        matrix[:, j] = column.cast(polars.Float64).fill_null(np.nan).to_numpy()
    return matrix, coded


if __name__ == "__main__":
    make(Path(sys.argv[1]), sys.argv[2])
