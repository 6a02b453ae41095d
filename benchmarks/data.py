"""The rows that are timed: made once, kept in a folder, and read from it by every fresh process.

    python -m benchmarks.data FOLDER NAME

A name is `credit-ROWSxFEATURES` (synthetic applications), `wide-ROWSxFEATURES` (numbers, of which five matter),
`parquet-ROWSxFEATURES` (synthetic applications in many files, for rows that do not fit memory) or `own-NAME`, data that
the user has.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

SEED = 0
HELD_OUT = 20_000  # rows that no fit sees
PIECE = 1_000_000  # rows of one Parquet file


@dataclass(frozen=True)
class Data:
    """Rows in a folder, read when they are asked for; `rows` limits them to the first ones."""

    folder: Path
    rows: int | None = None

    @cached_property
    def target(self) -> Any:
        """The outcomes, 0 or 1."""
        return np.load(self.folder / "target.npy")[: self.rows].copy()

    @cached_property
    def matrix(self) -> Any:
        """The rows as float64, row by row; missing is NaN, a category is its index in the schema's list."""
        return np.array(np.load(self.folder / "matrix.npy", mmap_mode="r")[: self.rows], order="C")

    @cached_property
    def frame(self) -> Any:
        """The rows as a polars frame, with categories as text."""
        import polars

        # Parquet, not arrow's own file: that is mapped, and pages first read in a fit would count as its memory.
        return polars.read_parquet(self.folder / "frame.parquet", n_rows=self.rows).rechunk()

    @cached_property
    def schema(self) -> Any:
        """What is known of the columns of the frame."""
        from plainrisk import Schema

        return Schema.load(self.folder / "schema.json")

    @cached_property
    def matrix_schema(self) -> Any:
        """What is known of the columns of the matrix."""
        from plainrisk import Schema

        return Schema.load(self.folder / "matrix-schema.json")

    @property
    def held_out(self) -> Data:
        """Other rows of the same kind, which no fit sees."""
        return Data(self.folder / "held-out")

    def head(self, rows: int) -> Data:
        """Return the first rows alone."""
        return replace(self, rows=min(rows, len(self.target)))


def make(folder: Path, name: str) -> None:
    """Write the rows of a name into a folder, unless they are there."""
    if (folder / "ready").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    kind, _, what = name.partition("-")
    if kind == "own":
        take_own(folder, what)
    else:
        rows, features = map(int, what.split("x"))
        {"credit": make_credit, "wide": make_wide, "parquet": make_parquet}[kind](folder, rows, features)
    (folder / "ready").touch()


def make_credit(folder: Path, rows: int, features: int) -> None:
    write_credit(folder, rows, features, SEED)
    write_credit(folder / "held-out", HELD_OUT, features, SEED + 1)


def write_credit(folder: Path, rows: int, features: int, seed: int) -> None:
    import plainrisk as pr

    folder.mkdir(exist_ok=True)
    data = pr.datasets.make_credit(rows, seed, n_features=features, backend="polars")
    matrix, coded = as_numbers(data.frame, data.schema.features)
    np.save(folder / "matrix.npy", matrix)
    np.save(folder / "target.npy", np.asarray(data.target, dtype=np.uint8))
    data.frame.write_parquet(folder / "frame.parquet", compression="lz4", row_group_size=rows)
    data.schema.save(folder / "schema.json")
    known = data.schema
    known = pr.Schema(features=coded, subscales=known.subscales, target=known.target, positive=known.positive)
    known.save(folder / "matrix-schema.json")


def make_wide(folder: Path, rows: int, features: int) -> None:
    import plainrisk as pr

    rng = np.random.default_rng(SEED)
    matrix = rng.normal(size=(rows, features))
    chance = 1.0 / (1.0 + np.exp(-matrix[:, :5].sum(axis=1)))
    np.save(folder / "matrix.npy", matrix)
    np.save(folder / "target.npy", (rng.random(rows) < chance).astype(np.uint8))
    known = {f"x{j}": pr.Feature(direction="increasing" if j % 2 else "none") for j in range(features)}
    pr.Schema(features=known, target="bad", positive=1).save(folder / "matrix-schema.json")


def make_parquet(folder: Path, rows: int, features: int) -> None:
    """Write files of a million rows, each with a seed of its own, so that memory stays small."""
    import plainrisk as pr

    for k, start in enumerate(range(0, rows, PIECE)):
        data = pr.datasets.make_credit(min(PIECE, rows - start), k, n_features=features, backend="polars")
        data.with_target().write_parquet(folder / f"rows-{k:04d}.parquet", compression="lz4")
        data.schema.save(folder / "schema.json")


def take_own(folder: Path, name: str) -> None:
    """Copy the rows of a public data set from where `plainrisk data list` finds it."""
    import plainrisk as pr

    data = pr.datasets.load(name, backend="polars")
    np.save(folder / "target.npy", np.asarray(data.target))
    data.frame.write_parquet(folder / "frame.parquet", compression="lz4")
    data.schema.save(folder / "schema.json")


def as_numbers(frame: Any, features: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return a polars frame as a matrix, categories by their index, and the features that describe it."""
    import msgspec
    import polars

    matrix, coded = np.empty(frame.shape), dict(features)
    for j, (name, feature) in enumerate(features.items()):
        column = frame[name]
        if column.dtype == polars.String:
            words = [str(c) for c in feature.categories or sorted(column.drop_nulls().unique())]
            column = column.cast(polars.Enum(words)).to_physical()
            coded[name] = msgspec.structs.replace(feature, categories=tuple(range(len(words))), reasons={})
        matrix[:, j] = column.cast(polars.Float64).fill_null(np.nan).to_numpy()
    return matrix, coded


if __name__ == "__main__":
    make(Path(sys.argv[1]), sys.argv[2])
