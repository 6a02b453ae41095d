"""Time fits from a raw frame: python -m benchmarks.run [--shapes S1,S2] [--json out.json]

Each method runs in a fresh process with one thread, best of three; failures and time-outs are rows. Times are of one
machine in one run: read the ratios, not the seconds.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

SHAPES = {"S1": (10_000, 23), "S2": (150_000, 10), "S3": (100_000, 90), "S4": (2_000_000, 30)}
TIMEOUT = 240


def plainrisk_fit(name: str) -> Callable[[Any], Any]:
    def fit(data: Any) -> Any:
        import plainrisk as pr

        return pr.make_classifier(name, data.schema).fit(data.frame, data.target)

    return fit


def slsqp(data: Any) -> Any:
    """The paper's way: SLSQP on dense indicators of the same bins, run to convergence."""
    import numpy as np

    from plainrisk.estimators.fitting import Design, encode_rows
    from plainrisk.estimators.training import read_training
    from plainrisk.solve.reference import minimise_slsqp

    training = read_training(data.frame, data.target, data.schema, None, None)
    encoded = encode_rows(training, max_bins=5)
    design = Design.of(encoded, training)
    dense = np.hstack([c.matrix[codes] for c, codes in zip(design.columns, encoded.codes, strict=True)])
    ridge = 1 / (2 * len(data.target))
    return minimise_slsqp(
        dense, data.target.astype(float), ridge=ridge, lower=design.lower, tolerance=1e-12, max_iterations=2000
    )


METHODS: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "ARM1": (plainrisk_fit("ARM1"), tuple(SHAPES)),
    "DirectARM1": (plainrisk_fit("DirectARM1"), tuple(SHAPES)),
    "MixARM1": (plainrisk_fit("MixARM1"), tuple(SHAPES)),
    "ARM2": (plainrisk_fit("ARM2"), tuple(SHAPES)),
    "XGBoost, paper's parameters, monotone": (plainrisk_fit("MonoXGB"), tuple(SHAPES)),
    "SLSQP on indicators, converged": (slsqp, ("S1",)),
}


def refit_cells(rows: int = 1_000_000) -> dict[str, Any]:
    """Refit a four-feature subscale from cells: what a bootstrap or a monthly update pays."""
    import plainrisk as pr
    from plainrisk.estimators.fitting import Design, encode_rows, fit_logistic
    from plainrisk.estimators.training import read_training

    data = pr.datasets.make_credit(rows, 0)
    schema = data.schema.select(list(data.schema.features)[:4])
    training = read_training(data.frame, data.target, schema, None, None)
    design = Design.of(encode_rows(training, max_bins=5), training)
    cells = len(design.block)
    fit_logistic(design, 1 / (2 * rows))
    seconds = min(_timed(lambda: fit_logistic(design, 1 / (2 * rows))) for _ in range(5))
    return {"shape": f"{rows:,} rows as {cells:,} cells", "method": "refit of 4 features", "seconds": seconds}


def _timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def child(shape: str, method: str) -> None:
    """Fit one method on one shape and print a JSON line."""
    import plainrisk as pr

    warnings.simplefilter("ignore")
    rows, features = SHAPES[shape]
    data = pr.datasets.make_credit(rows, 0, n_features=features)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fit = METHODS[method][0]
    seconds = min(_timed(lambda: fit(data)) for _ in range(3 if rows < 1_000_000 else 2))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": seconds, "extra_mb": (peak - before) / 1024}))


def measure(shape: str, method: str) -> dict[str, Any]:
    """Run a method in a fresh process; a failure is a row."""
    row: dict[str, Any] = {"shape": shape, "method": method}
    command = [sys.executable, "-m", "benchmarks.run", "--child", shape, method]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        import os

        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT, check=True, env={**os.environ, **threads}
        )
        return row | json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return row | {"failure": f"not done in {TIMEOUT} s"}
    except subprocess.CalledProcessError as error:
        return row | {"failure": error.stderr.strip().splitlines()[-1][:120]}


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as Markdown, with the time as a multiple of ARM1's."""
    base = {r["shape"]: r["seconds"] for r in rows if r["method"] == "ARM1" and "seconds" in r}
    lines = ["| shape | method | seconds | times ARM1 | MB beyond the data |", "| --- | --- | --- | --- | --- |"]
    for r in rows:
        if "failure" in r:
            lines.append(f"| {r['shape']} | {r['method']} | {r['failure']} | | |")
            continue
        ratio = f"{r['seconds'] / base[r['shape']]:.2f}" if r["shape"] in base else ""
        memory = f"{r['extra_mb']:.0f}" if "extra_mb" in r else ""
        lines.append(f"| {r['shape']} | {r['method']} | {r['seconds']:.4f} | {ratio} | {memory} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return
    wanted = options.shapes.split(",")
    rows = [measure(shape, method) for shape in wanted for method, (_, on) in METHODS.items() if shape in on]
    rows.append(refit_cells())
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
