"""Time plainrisk beside its rivals: python -m benchmarks.run [--quick] [--shapes S1 S2] [--methods ARM1 XGBoost]

Every method runs in a fresh process, all in one run: times are of one machine, so read the ratios. The page is
docs/benchmarks/README.md; a quick run (S1 and S2, fewer rows to score) writes to out/benchmarks-quick instead.
A run takes about half an hour. The fit of 50 million rows of Parquet takes long and much disk, so it runs only when
asked for: --parts parquet. Pairs of features are timed on the public data that `plainrisk data list` finds.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from benchmarks import launch, report
from benchmarks.methods import METHODS
from benchmarks.plan import PARTS, SHAPES, TRAIN_ROWS, Task, tasks


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, help="default: all")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD")
    parser.add_argument("--parts", nargs="+", choices=PARTS, help="default: all but parquet")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=200.0, help="seconds per method and shape")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--scale", type=float, default=1.0, help="make rows fewer, for a trial")
    parser.add_argument("--output", type=Path, help="the folder of the page")
    parser.add_argument("--cache", type=Path, default=Path("out/benchmark-data"), help="where the rows are kept")
    parser.add_argument("--quick", action="store_true", help="S1 and S2, one run each, 60 s at most")
    options = parser.parse_args(arguments)
    if options.quick:
        options.shapes = options.shapes or ["S1", "S2"]
        options.parts = options.parts or ["fit", "score", "wide", "pairs", "commands"]
        options.repeats, options.limit = 1, min(options.limit, 60.0)
    trial = options.quick or options.scale != 1.0
    options.output = options.output or Path("out/benchmarks-quick" if trial else "docs/benchmarks")
    options.shapes = options.shapes or list(SHAPES)
    options.parts = options.parts or [part for part in PARTS if part != "parquet"]
    return options


def measure(task: Task, options: argparse.Namespace) -> dict[str, Any]:
    """Return a task and what it measured, or why it did not."""
    folder = options.cache.resolve() / task.data
    problem = launch.make_data(folder, task.data)
    if problem is not None:
        return {**vars(task), "error": f"no data: {problem}"}
    told = {**vars(task), "folder": str(folder), "repeats": options.repeats, "train_rows": TRAIN_ROWS}
    limit = {"stream": 3, "parquet": 30}.get(task.part, 1) * options.limit
    return {**vars(task), **launch.run_task(told, limit, options.threads)}


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    rows = []
    for task in tasks(options.shapes, options.methods, options.parts, options.scale):
        print(f"{task.part} {task.shape} {task.method} ... ", end="", flush=True)
        rows.append(measure(task, options))
        print(report.brief(rows[-1]), flush=True)
    command = "make bench" if not options.quick else "make bench BENCH=--quick"
    about = {
        "command": command,
        "load": load,
        "threads": options.threads,
        "repeats": options.repeats,
        "limit": options.limit,
    }
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "results.json").write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")
    report.write(options.output / "README.md", about, rows)
    print(f"wrote {options.output / 'README.md'}")


if __name__ == "__main__":
    main()
