"""How cost grows: measured exponents, and the page that says what a billion rows would take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.results import Results

TEMPLATE = Path(__file__).with_name("growth_page.md")
SWEEPS = ("rows", "features", "bins", "subscales")
BILLION = 1_000_000_000
DISK_MB = 500.0  # per second, read in sequence: an ordinary solid-state disk
FEATURES = 30


@dataclass(frozen=True)
class Curve:
    """One method along one sweep: sizes and seconds."""

    method: str
    sizes: tuple[float, ...]
    seconds: tuple[float, ...]

    @property
    def exponent(self) -> float | None:
        """The slope of log seconds on log size, by least squares over the upper half of the range."""
        return exponent(self.sizes, self.seconds)

    def extended(self, size: float) -> float | None:
        """Return the seconds at a size beyond the last one, by the exponent, or by 1 where that is less."""
        power = self.exponent
        if power is None:
            return None
        return float(self.seconds[-1] * (size / self.sizes[-1]) ** max(power, 1.0))


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float | None:
    """Return b of seconds = a size^b, fitted in logs to the sizes in the upper half of their range in logs.

    >>> round(exponent([1, 10, 100, 1000], [5.0, 5.0, 30.0, 300.0]), 3)
    1.0
    """
    x, y = np.log(np.asarray(sizes, dtype=float)), np.log(np.asarray(seconds, dtype=float))
    if len(x) < 2:
        return None
    upper = x >= (x.min() + x.max()) / 2 - 1e-12
    if upper.sum() < 2:
        return None
    return float(np.polyfit(x[upper], y[upper], 1)[0])


def curves(results: Results, sweep: str) -> list[Curve]:
    """Return what was measured along a sweep, method by method."""
    found: dict[str, dict[float, float]] = {}
    for row in results.part("growth"):
        name, _, size = row["at"].partition("=")
        if name == sweep and "seconds" in row:
            found.setdefault(row["method"], {})[float(size)] = row["seconds"]
    return [Curve(m, tuple(sorted(points)), tuple(points[s] for s in sorted(points))) for m, points in found.items()]


def page(results: Results, about: dict[str, Any]) -> str:
    """Return the page on growth."""
    return TEMPLATE.read_text().format(
        command=about["command"],
        threads=about["threads"],
        cores=about["machine"]["cores"],
        trial="" if about["scale"] == 1 else f"**A trial at {about['scale']:g} of the rows.**\n\n",
        exponents=_exponents(results),
        ranges=_ranges(results),
        points="\n\n".join(_points(results, sweep) for sweep in SWEEPS if curves(results, sweep)),
        billion=_billion(results),
        passes=_passes(results),
        disk=DISK_MB,
    )


def _exponents(results: Results) -> str:
    by_sweep = {sweep: {c.method: c.exponent for c in curves(results, sweep)} for sweep in SWEEPS}
    methods = list(dict.fromkeys(m for found in by_sweep.values() for m in found))
    lines = ["| | rows | features | bins | subscales |", "| --- | --- | --- | --- | --- |"]
    for method in methods:
        powers = [by_sweep[sweep].get(method) for sweep in SWEEPS]
        lines.append(f"| {method} | " + " | ".join("" if p is None else f"{p:.2f}" for p in powers) + " |")
    return "\n".join(lines)


def _ranges(results: Results) -> str:
    """Say what was varied, and what was held."""
    held = {
        "rows": "30 features",
        "features": "the rows of the feature sweep",
        "bins": "30 features and the same rows",
        "subscales": "24 features in equal groups, and the same rows",
    }
    wide = next((r["data"] for r in results.part("growth") if r["at"].startswith("features=")), "")
    held["features"] = f"{int(wide.partition('-')[2].partition('x')[0]):,} rows" if wide else held["features"]
    said = []
    for sweep, at in held.items():
        sizes = [s for c in curves(results, sweep) for s in c.sizes]
        if sizes:
            said.append(f"- {sweep}: {min(sizes):,.0f} to {max(sizes):,.0f}, at {at}")
    return "\n".join(said)


def _points(results: Results, sweep: str) -> str:
    found = curves(results, sweep)
    sizes = sorted({s for c in found for s in c.sizes})
    lines = [f"| {sweep} | " + " | ".join(c.method for c in found) + " |", "| --- " * (len(found) + 1) + "|"]
    for size in sizes:
        known = [dict(zip(c.sizes, c.seconds, strict=True)).get(size) for c in found]
        lines.append(f"| {size:,.0f} | " + " | ".join("" if s is None else f"{s:.3g}" for s in known) + " |")
    return "\n".join(lines)


def _billion(results: Results) -> str:
    lines = [
        "| | most rows measured | seconds | rows per second | exponent | a billion rows, extrapolated |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for curve in curves(results, "rows"):
        size, seconds, power = curve.sizes[-1], curve.seconds[-1], curve.exponent
        long = curve.extended(BILLION)
        lines.append(
            f"| {curve.method} | {size:,.0f} | {seconds:.3g} | {size / seconds:,.0f} | "
            f"{'' if power is None else f'{power:.2f}'} | {'' if long is None else duration(long)} |"
        )
    return "\n".join(lines)


def _passes(results: Results) -> str:
    """Say what is read how often, in bytes, from the bytes of packed codes and the solver's steps."""
    packed = packed_bytes()
    raw = 8.0 * FEATURES
    steps = [
        int(row["iterations"])
        for row in results.part("fit")
        if row["method"] == "ARM1" and row.get("iterations") and row["at"] in ("S4", "S5")
    ]
    file, once = reading(2 * raw + 8), reading(packed)
    said = [
        f"| the file: outcomes, then values, then codes | 3 | {raw:.0f} as numbers of 8 bytes | {file} |",
        f"| packed codes, DirectARM1: the pair counts | 1 | {packed} | {once} |",
    ]
    if steps:
        most = max(steps)
        said.append(
            f"| packed codes, ARM1: the solver's steps, as many as on 2 to 10 million rows | about {most} | {packed} | "
            f"{reading(most * packed)} |"
        )
    head = ["| what is read | times | bytes per row | reading a billion rows |", "| --- | --- | --- | --- |"]
    measured = [r for r in results.part("parquet") if "seconds" in r and r.get("rows")]
    rates = [
        f"Measured from Parquet files: {r['method']} on {r['rows']:,} rows in {duration(r['seconds'])}, "
        f"{r['whole_mb']:,.0f} MB in all; a billion rows at that rate: "
        f"{duration(r['seconds'] * BILLION / r['rows'])} (extrapolated)."
        for r in measured
    ]
    return "\n".join([*head, *said, *(["", *rates] if rates else [])])


def reading(per_row: float) -> str:
    """Return how long a billion rows of so many bytes take to read."""
    return duration(per_row * BILLION / DISK_MB / 2**20)


def packed_bytes() -> int:
    """Return the bytes per row of 30 features as packed codes, counted on synthetic rows."""
    import plainrisk as pr
    from plainrisk.models.fitting import Design, encode_rows
    from plainrisk.models.training import read_training

    data = pr.datasets.make_credit(20_000, 0, n_features=FEATURES)
    training = read_training(data.frame, data.target, data.schema, None, None)
    design = Design.of(encode_rows(training, max_bins=5), training)
    return sum(int(p.codes.dtype.itemsize) for p in design.packs)


def duration(seconds: float) -> str:
    """Return seconds in the unit that a person would choose.

    >>> duration(5400.0)
    '1.5 hours'
    """
    for limit, unit, name in ((120, 1, "seconds"), (7200, 60, "minutes"), (172800, 3600, "hours")):
        if seconds < limit and not (name == "minutes" and seconds >= 5400):
            return f"{seconds / unit:.2g} {name}" if seconds / unit < 100 else f"{seconds / unit:.0f} {name}"
    return f"{seconds / 86400:.2g} days"
