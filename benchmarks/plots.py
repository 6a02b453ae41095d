"""Cost against rows and against features, on logarithmic axes, as SVG and PNG."""

from __future__ import annotations

from pathlib import Path

from benchmarks.adapters import METHODS
from benchmarks.growth import Curve, curves
from benchmarks.results import Results

OWN_COLOURS = ("#0b5394", "#3d85c6", "#6fa8dc", "#1c4587")
RIVAL_COLOURS = ("#b45f06", "#e69138", "#7f6000", "#990000")
SIZES = {"rows": "30 features", "features": "100,000 rows"}


def draw(folder: Path, results: Results) -> list[Path]:
    """Draw what was measured; return the files."""
    written: list[Path] = []
    for sweep, fixed in SIZES.items():
        found = [c for c in curves(results, sweep) if len(c.sizes) > 1]
        if found:
            written += _draw(folder / f"cost-{sweep}", found, sweep, fixed)
    return written


def _draw(path: Path, found: list[Curve], sweep: str, fixed: str) -> list[Path]:
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "plainrisk"  # the same numbers give the same file
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
    own, rivals = iter(OWN_COLOURS * 3), iter(RIVAL_COLOURS * 3)
    for curve in found:
        ours = METHODS[curve.method].ours
        power = curve.exponent
        label = curve.method if power is None else f"{curve.method} (power {power:.2f})"
        style = "o-" if ours else "s--"
        axes.loglog(
            curve.sizes, curve.seconds, style, color=next(own if ours else rivals), ms=4, lw=1.8 if ours else 1.2,
            label=label,
        )  # fmt: skip
    axes.set(xlabel=f"{sweep} ({fixed})", ylabel="seconds of one fit", title=f"Cost of a fit against {sweep}")
    axes.grid(alpha=0.3, which="both", lw=0.5)
    axes.legend(fontsize=8, frameon=False)
    files = [path.with_suffix(".svg"), path.with_suffix(".png")]
    figure.savefig(files[0], metadata={"Date": None})
    figure.savefig(files[1], dpi=150)
    plt.close(figure)
    return files
