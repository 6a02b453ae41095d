"""Many synthetic rows as Parquet files, made in pieces: python -m benchmarks.parquet_rows FOLDER ROWS"""

from __future__ import annotations

import sys
from pathlib import Path

PIECE = 1_000_000
FEATURES = 30


def make(folder: Path, rows: int) -> None:
    """Write the files that are missing; every piece has a seed of its own."""
    import plainrisk as pr

    folder.mkdir(parents=True, exist_ok=True)
    for k, start in enumerate(range(0, rows, PIECE)):
        path = folder / f"rows-{k:04d}.parquet"
        if path.exists():
            continue
        data = pr.datasets.make_credit(min(PIECE, rows - start), k, n_features=FEATURES, backend="polars")
        draft = path.with_suffix(".draft")
        data.with_target().write_parquet(draft, compression="lz4")
        draft.rename(path)
        data.schema.save(folder / "schema.json")


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]))
