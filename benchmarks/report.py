"""Results in words: one Markdown page with the claims, ratios, seconds, memory, and what failed."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.claims import Results, claims
from benchmarks.methods import METHODS
from benchmarks.plan import SHAPES

OTHERS = ("growth", "pairs", "commands", "stream", "parquet")
PACKAGES = ("plainrisk", "numpy", "scikit-learn", "polars", "pandas", "xgboost-cpu", "lightgbm", "glum", "optbinning")
INTRO = """# Benchmarks

Made by `{command}` in one run, on {machine}; the load of the machine before it was {load:.1f}.

Every method runs in a fresh process with {threads} thread(s) (with one, seconds are CPU seconds, else those of the
clock). Seconds are the best of at least {repeats}; calls under
a second are repeated until a second is spent, calls over 10 s are timed once. A fit starts from raw rows: the same
numbers for all, categories among them, as a polars frame for plainrisk and a matrix for trees; but a pandas frame
for optbinning, a polars frame with text for "ARM1 (frame)", and for glum the indicators of ARM1's bins, made
outside the clock. Memory is the peak during a fit beyond what the process held before it. The time limit of a
process is {limit:.0f} s. Read the ratios, not the seconds.

Shapes: {shapes}.
"""


def write(path: Path, about: dict[str, Any], rows: Sequence[dict[str, Any]]) -> None:
    """Write the page."""
    results = Results(rows)
    shapes = results.shapes
    sizes = ", ".join(f"{shape} {rows:,} x {features}" for shape, (rows, features) in SHAPES.items())
    found = claims(results)
    met = sum(claim.verdict == "met" for claim in found)
    parts = [
        INTRO.format(**about, machine=machine(), shapes=sizes),
        "## Claims\n",
        table(
            ["claim", "target", "measured", ""],
            [[c.text, f"{c.sense} {c.target:g}{c.unit}", c.measured, c.verdict] for c in found],
        ),
        f"\n{met} of {len(found)} are met.\n",
        "## A fit as a multiple of ARM1's\n",
        grid(shapes, lambda shape, name: ratio(results, shape, name)),
        "\n## Seconds of a fit\n",
        grid(shapes, lambda shape, name: seconds(results.of("fit", shape, name))),
        "\n## Memory of a fit, MB\n",
        grid(shapes, lambda shape, name: figure(results.value("fit", shape, name, "peak_mb"))),
        "\n## Log loss on 20,000 other rows\n",
        grid(shapes, lambda shape, name: figure(results.value("fit", shape, name, "log_loss"), ".4f")),
        "\n## AUC on the rows of the fit\n",
        grid(shapes, lambda shape, name: figure(results.value("fit", shape, name, "auc"), ".4f")),
        "\n## Growth, pairs, commands and streams\n",
        table(["", "method", "measured"], [[r["shape"], r["method"], brief(r)] for r in rows if r["part"] in OTHERS]),
        "\n## The methods\n",
        "\n".join(f"- {name}: {method.says}" for name, method in METHODS.items()),
        "\n## Failures\n",
        "\n".join(f"- {r['part']} {r['shape']} {r['method']}: {r['error']}" for r in rows if "error" in r) or "None.",
    ]
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")


def grid(shapes: Sequence[str], cell: Callable[[str, str], str]) -> str:
    """Return a table with a row per method and a column per shape."""
    rows = [[name, *(cell(shape, name) for shape in shapes)] for name in METHODS]
    return table(["", *shapes], [row for row in rows if any(row[1:])])


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def ratio(results: Results, shape: str, name: str) -> str:
    own, row = results.value("fit", shape, "ARM1"), results.of("fit", shape, name)
    if not own or not ("seconds" in row or "over" in row):
        return ""
    return f"{row['seconds'] / own:.3g}" if "seconds" in row else f"> {row['over'] / own:.3g}"


def seconds(row: dict[str, Any]) -> str:
    if "seconds" in row:
        return f"{row['seconds']:.3g}"
    return f"> {row['over']:.0f}" if "over" in row else ("failed" if "error" in row else "")


def figure(value: float | None, how: str = ".3g") -> str:
    return "" if value is None else format(value, how)


def brief(row: dict[str, Any]) -> str:
    """Return a result in a line, for the terminal."""
    names = {
        "seconds": " s",
        "alone": " s without pairs",
        "peak_mb": " MB",
        "latency_us": " us",
        "interrupt_seconds": " s to stop",
        "whole_mb": " MB",
        "version_cpu": " CPU s of --version",
        "certify_cpu": " of certify",
        "explain_cpu": " of explain",
        "reasons_us": " us for reasons",
    }
    found = [f"{row[name]:.3g}{unit}" for name, unit in names.items() if name in row]
    return ", ".join([*found, *([row["error"]] if "error" in row else [])])


def machine() -> str:
    """Return cores, processor and versions; nothing that names the machine."""
    versions = []
    for name in PACKAGES:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, {', '.join(versions)}"
