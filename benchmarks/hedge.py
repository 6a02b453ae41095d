"""SubscaleHedge on many rows: one pass over given risks, and the memory of one block.

    python -m benchmarks.hedge [--rows 10000000] [--subscales 14] [--json PATH]

The risks arrive block by block, as from a file or a query, and are never held together. Seconds are those of adding up
the losses; making the risks is not counted. Memory is what the pass needs beyond the block it is handed. The algorithm
as written, a loop over the rows, is timed on the first 100,000 of them, beside the closed form on the same rows.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Iterator

from benchmarks.table_text import markdown, one_thread, write_json

one_thread()

import numpy as np  # noqa: E402

from plainrisk.solve.hedge import (  # noqa: E402
    hedge_weights,
    hedge_weights_in_sequence,
    learning_rate,
    row_losses,
    summed_losses,
)

BLOCK = 1 << 17
LOOP_ROWS = 100_000
COLUMNS = [
    ("what", "what", ""),
    ("rows", "rows", ",d"),
    ("seconds", "seconds", ".3f"),
    ("rows per second", "rate", ",.0f"),
    ("MB beyond the block", "megabytes", ".1f"),
]


def blocks(rows: int, subscales: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield risks and outcomes; experts differ in how much of the truth they see."""
    rng = np.random.default_rng(0)
    sees = np.linspace(0.2, 1.2, subscales)
    for start in range(0, rows, BLOCK):
        n = min(BLOCK, rows - start)
        truth = rng.normal(-1.0, 1.0, n)
        target = (rng.random(n) < 1.0 / (1.0 + np.exp(-truth))).astype(np.uint8)
        score = sees * truth[:, None] + 0.5 * rng.normal(size=(n, subscales))
        yield 1.0 / (1.0 + np.exp(-score)), target


def stream(rows: int, subscales: int) -> tuple[float, np.ndarray]:
    """Return the seconds of the pass, and the weights."""
    losses, seconds = np.zeros(subscales), 0.0
    for risks, target in blocks(rows, subscales):
        started = time.perf_counter()
        losses += summed_losses(risks, target)
        seconds += time.perf_counter() - started
    started = time.perf_counter()
    weights = hedge_weights(losses, learning_rate("paper", subscales, rows))
    return seconds + time.perf_counter() - started, weights


def memory(subscales: int) -> float:
    """Return the megabytes that the pass takes beyond its block, at the peak."""
    risks, target = next(blocks(BLOCK, subscales))
    tracemalloc.start()
    summed_losses(risks, target)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--subscales", type=int, default=14)
    parser.add_argument("--json", metavar="PATH", help="also write the table's rows to this file")
    chosen = parser.parse_args()

    seconds, weights = stream(chosen.rows, chosen.subscales)
    few = min(LOOP_ROWS, chosen.rows)
    risks, target = next(blocks(few, chosen.subscales))
    eta = learning_rate("paper", chosen.subscales, few)
    started = time.perf_counter()
    closed = hedge_weights(summed_losses(risks, target), eta)
    closed_seconds = time.perf_counter() - started
    started = time.perf_counter()
    loop = hedge_weights_in_sequence(row_losses(risks, target), eta)
    loop_seconds = time.perf_counter() - started

    megabytes = memory(chosen.subscales)
    rows = [
        {"what": "closed form, streamed", "rows": chosen.rows, "seconds": seconds, "megabytes": megabytes},
        {"what": "closed form", "rows": few, "seconds": closed_seconds, "megabytes": megabytes},
        {"what": "row by row, as written", "rows": few, "seconds": loop_seconds},
    ]
    for row in rows:
        row["rate"] = row["rows"] / row["seconds"]
    print(markdown(rows, COLUMNS))
    block = BLOCK * chosen.subscales * 8 / 2**20
    print(
        f"\nA block holds {BLOCK:,} rows, {block:.1f} MB. The loop takes {loop_seconds / closed_seconds:.0f} times as"
    )
    print(f"long on the same rows; the weights differ by {np.abs(closed - loop).max():.1e}.")
    extra = {"ratio": loop_seconds / closed_seconds, "difference": float(np.abs(closed - loop).max())}
    write_json(chosen.json, [*rows, {"what": "row by row / closed form", **extra, "weights": weights.tolist()}])


if __name__ == "__main__":
    main()
