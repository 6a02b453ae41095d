"""Check that contributions add up to the risk, for every row of the data sets and every classifier.

    python scripts/exact_sums.py                      every data set on this machine, every classifier
    python scripts/exact_sums.py --data german heloc --classifiers SmoothARM1

Each classifier is fitted to at most 20,000 rows from all over a data set, and explains all rows of it from the typical
applicant, and then the first hundred again with every number at 1e20 and at -1e20. The largest gap must be at most
1e-12. Data sets other than German credit are read from the folder PLAINRISK_DATA.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

import plainrisk as pr
from plainrisk.explain.reference import knows_typical

FITTED, BATCH, FAR, MOST = 20_000, 10_000, (1e20, -1e20), 1e-12


def main() -> int:
    """Print the largest gap of every data set and classifier; return 1 if one is too large."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--data", nargs="+", default=pr.datasets.names())
    parser.add_argument("--classifiers", nargs="+", default=list(pr.CLASSIFIERS))
    args = parser.parse_args()
    worst = 0.0
    for name in args.data:
        try:
            data = pr.datasets.load(name, backend="polars")
        except pr.errors.DataError as error:
            print(f"{name}: skipped. {error}")
            continue
        gaps = {one: largest_gap(one, data) for one in args.classifiers}
        worst = max(worst, *gaps.values())
        print(
            f"{name}, {data.frame.height:,} rows: {max(gaps.values()):.1e} ({max(gaps, key=gaps.__getitem__)})",
            flush=True,
        )
    print(f"the largest gap: {worst:.1e}")
    return int(not worst <= MOST)


def largest_gap(classifier: str, data: Any) -> float:
    """Return the largest distance of a row's risk from the sum of its contributions."""
    every = -(-data.frame.height // FITTED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pr.errors.PlainriskWarning)
        model = pr.make_classifier(classifier, data.schema)
        model.fit(data.frame[::every], np.asarray(data.target)[::every])
        # Lines and trees do not know who is typical.
        known = {} if knows_typical(model.form_) else {"portfolio": data.frame.head(BATCH)}
        return max(_gap(model, rows, known) for rows in _batches(data.frame))


def _batches(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    yield from frame.iter_slices(BATCH)
    for far in FAR:
        yield frame.head(100).with_columns(pl.lit(far).alias(c) for c in frame.columns if frame[c].dtype.is_numeric())


def _gap(model: Any, rows: pl.DataFrame, known: dict[str, Any]) -> float:
    found = model.explain(rows, **known)
    total = found.constant + found.contributions.sum(axis=1)
    return float(np.abs(total - model.predict_proba(rows)[:, 1]).max())


if __name__ == "__main__":
    sys.exit(main())
