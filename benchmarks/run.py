"""Time plainrisk beside its rivals: python -m benchmarks.run [--shapes S1 S2] [--methods ARM1 XGBoost] [--quick]

Every method runs in a fresh process, best of three (once where a run takes over 30 s), all with the same number of
threads. What takes little goes on for a second, which is told beside. Failures and time-outs are rows. Results are
kept as they come: a run that was stopped goes on where it was, --fresh starts anew. Times are of one machine in one
run: read the ratios, not the seconds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import launch, machine, memory, plan, report, store
from benchmarks.adapters import METHODS
from benchmarks.plan import Task, Wanted

QUICK_SHAPES = ("S1", "S2", "HELOC")
QUICK_ROWS = 100_000
TIMEOUT = 240.0
THREADS = 2
SHARE_OF_MEMORY = 0.85


class Runner:
    """Tasks one after the other, with their results in a file."""

    def __init__(self, options: argparse.Namespace, wanted: Wanted) -> None:
        self.options, self.wanted = options, wanted
        self.done = {} if options.fresh else store.kept(options.store)
        if options.fresh:
            options.store.unlink(missing_ok=True)
        self.limits = launch.Limits(options.timeout, memory.total() * SHARE_OF_MEMORY, options.threads)
        self.faults: dict[str, str | None] = {}
        self.imports: dict[str, dict[str, Any]] = {}

    def run(self) -> None:
        """Run all that has no final row yet, and tell of each as it ends."""
        todo = list(plan.tasks(self.wanted))
        for number, task in enumerate(todo, 1):
            known = self.done.get(task.key)
            if known is not None and store.is_final(known):
                continue
            print(f"[{number}/{len(todo)}] {task.part} {task.at} {task.method} ... ", end="", flush=True)
            started = time.perf_counter()
            row = {"key": task.key, **task.as_dict(), **self.measure(task)}
            self.done[task.key] = row
            store.add(self.options.store, row)
            print(f"{report.brief(row)} [{time.perf_counter() - started:.0f} s]", flush=True)

    def measure(self, task: Task) -> dict[str, Any]:
        """Return the measurements of one task, or why there are none."""
        reason = plan.reason_not_to(task, self.wanted, self.done)
        if reason is not None:
            return {"error": reason}
        known = plan.measured_already(task, self.done)
        if known is not None:
            return known
        if task.part == "import":
            self.imports = self.imports or launch.import_times(plan.IMPORTS, self.options.threads)
            return self.imports[task.method]
        if task.part == "parquet":
            return self.measure_parquet(task)
        fault = self.fault_of(task.data)
        if fault is not None:
            return {"error": f"not run: no data: {fault}"}
        return launch.run_task(self.settings(task), self.limits)

    def settings(self, task: Task) -> dict[str, Any]:
        """Return what the worker is told."""
        return {
            **task.as_dict(),
            "folder": str(self.options.cache.resolve() / task.data),
            "repeats": self.options.repeats,
            "train_rows": min(plan.TRAIN_ROWS, self.wanted.rows(plan.SCORE_ROWS)),
            "explain_rows": plan.EXPLAIN_ROWS,
        }

    def fault_of(self, name: str) -> str | None:
        """Make rows if need be, and return why they are missing, or None."""
        if name not in self.faults:
            self.faults[name] = launch.make_data(self.options.cache.resolve() / name, name)
        return self.faults[name]

    def measure_parquet(self, task: Task) -> dict[str, Any]:
        """Make Parquet files in pieces, and fit from them."""
        rows = self.wanted.rows(plan.PARQUET_ROWS)
        folder = self.options.cache.resolve() / f"parquet-{rows}"
        made = subprocess.run(
            [sys.executable, "-m", "benchmarks.parquet_rows", str(folder), str(rows)], cwd=launch.ROOT, check=False
        )
        if made.returncode:
            return {"error": "the rows could not be made"}
        settings = {**task.as_dict(), "pieces": str(folder / "*.parquet"), "schema": str(folder / "schema.json")}
        limits = launch.Limits(self.options.parquet_timeout, self.limits.megabytes, self.limits.threads)
        return launch.run_task(settings, limits)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shapes = [*plan.SHAPES, *plan.REAL]
    parser.add_argument("--shapes", nargs="+", choices=shapes, metavar="SHAPE", help=f"of {', '.join(shapes)}")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS), metavar="METHOD")
    parts = [p for p in plan.PARTS if p != "parquet"]
    parser.add_argument("--parts", nargs="+", choices=plan.PARTS, default=parts, help="default: all but parquet")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=TIMEOUT, help="seconds per method and shape")
    parser.add_argument("--parquet-timeout", type=float, default=3600.0, help="seconds for the fit from Parquet files")
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--output", type=Path, default=Path("docs/benchmarks"), help="where tables and plots go")
    parser.add_argument("--store", type=Path, help="where finished rows are kept")
    parser.add_argument("--cache", type=Path, default=Path("out/benchmark-data"), help="where the timed rows are kept")
    parser.add_argument("--growth-page", type=Path, help="where the page on growth goes")
    parser.add_argument("--fresh", action="store_true", help="forget finished rows")
    parser.add_argument("--quick", action="store_true", help="small shapes, once each, 60 s at most")
    parser.add_argument("--report-only", action="store_true", help="make tables and plots from the finished rows")
    parser.add_argument("--scale", type=float, default=1.0, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.quick:
        options.shapes = options.shapes or list(QUICK_SHAPES)
        options.repeats, options.timeout = 1, min(options.timeout, 60.0)
    options.shapes = options.shapes or shapes
    official = options.scale == 1.0 and not options.quick
    name = "benchmarks" if official else f"benchmarks-{'quick' if options.quick else f'scale-{options.scale:g}'}"
    options.store = options.store or Path(f"out/{name}.jsonl")
    if not official and options.output == Path("docs/benchmarks"):
        options.output = Path("out") / name
    options.growth_page = options.growth_page or (
        Path("docs/growth.md") if options.output == Path("docs/benchmarks") else options.output / "growth.md"
    )
    return options


def command(options: argparse.Namespace) -> str:
    """Return the command line that gives the same results, without places on this machine."""
    said = ["python -m benchmarks.run"]
    said += ["--quick"] if options.quick else []
    said += [f"--scale {options.scale:g}"] if options.scale != 1 else []
    said += [f"--timeout {options.timeout:g}"] if options.timeout != TIMEOUT and not options.quick else []
    said += [f"--threads {options.threads}"] if options.threads != THREADS else []
    return " ".join(said)


def main() -> None:
    options = parse()
    most = QUICK_ROWS if options.quick else plan.SWEEP_ROWS[-1]
    wanted = Wanted(options.shapes, options.methods, options.parts, options.scale, most)
    runner = Runner(options, wanted)
    if not options.report_only:
        runner.run()
    about = {
        "command": command(options),
        "threads": options.threads,
        "repeats": options.repeats,
        "timeout": options.timeout,
        "scale": options.scale,
        "machine": machine.describe(),
    }
    rows = list(runner.done.values())
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "results.json").write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")
    for path in report.write(options.output, options.growth_page, about, rows):
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
