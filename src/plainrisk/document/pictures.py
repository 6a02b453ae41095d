"""Pictures of a document, in grays and line styles that survive a copier; matplotlib is loaded to draw one."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plainrisk._types import Floats
from plainrisk.document.blocks import Picture
from plainrisk.document.figures import value
from plainrisk.errors import missing_extra

__all__ = ["calibration", "cutoffs", "drift", "groups", "histogram", "periods", "png", "shapes"]

WIDTH, DPI = 6.5, 160  # of the text, in inches
MOST_LABELS = 7  # of the levels of one feature; the annex has all
INK, MIDDLE, PALE = "#1A1A1A", "#707070", "#C4C4C4"
MARKS: Mapping[str, Any] = {"color": INK, "markersize": 4, "linewidth": 1}  # of error bars
BARS: Mapping[str, Any] = {"edgecolor": INK, "linewidth": 0.5}
PLAIN: Mapping[str, Any] = {"parse_math": False}  # a name such as $x^{2$ is not a formula
STYLE: Any = {"font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "plainrisk"}


def png(picture: Picture) -> bytes:
    """Draw a picture; the same numbers give the same bytes."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise missing_extra("matplotlib", "document") from None
    with mpl.rc_context(STYLE):
        drawn = Figure(figsize=(WIDTH, picture.height), layout="constrained")
        FigureCanvasAgg(drawn)
        picture.draw(drawn)
        file = io.BytesIO()
        drawn.savefig(file, format="png", dpi=DPI, metadata={"Software": None})
    return file.getvalue()


def _shorter(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def histogram(counts: Mapping[str, Any], outcome: str) -> Picture:
    """Show the distribution of predicted probabilities by outcome."""

    def draw(figure: Any) -> None:
        ax, edges = figure.subplots(), np.array(counts["edges"])
        styles: dict[str, dict[str, Any]] = {
            "other": {"label": "the other outcome", "color": PALE, "linewidth": 0.4, "hatch": "//"},
            "positive": {"label": _shorter(f"outcome: {outcome}", 60), "color": "none", "linewidth": 1.3},
        }
        for side, style in styles.items():
            share = np.array(counts[side]) / max(sum(counts[side]), 1)
            ax.bar(edges[:-1], share, np.diff(edges), align="edge", edgecolor=INK, **style)
        ax.set(xlabel="predicted probability", ylabel="share of each outcome", xlim=(0, 1))
        figure.legend(*ax.get_legend_handles_labels(), loc="outside upper right", ncols=2, frameon=False)

    return Picture("Predicted probabilities by outcome.", draw, 2.3)


def calibration(bins: Mapping[str, Sequence[float]]) -> Picture:
    """Show predicted against observed rates with intervals."""

    def draw(figure: Any) -> None:
        ax = figure.subplots()
        end = min(1.0, 1.05 * max(*bins["predicted"], *bins["high"]))
        ax.plot([0, end], [0, end], color=MIDDLE, linewidth=1, linestyle="--", label="predicted = observed")
        names = {"estimate": "observed", "low": "low", "high": "high"}
        lines = zip(*(bins[name] for name in names.values()), strict=True)
        middle, reach = _reach([dict(zip(names, line, strict=True)) for line in lines])
        label = "a tenth of the rows, 95% interval"
        ax.errorbar(bins["predicted"], middle, yerr=reach, fmt="o", capsize=3, label=label, **MARKS)
        labels = {"xlabel": "mean predicted probability", "ylabel": "observed rate"}
        ax.set(xlim=(0, end), ylim=(0, end), aspect="equal", **labels)
        figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)

    return Picture("Calibration: predicted and observed rates in ten bins.", draw, 2.9)


def cutoffs(table: Mapping[str, Any], chosen: Mapping[str, Any]) -> Picture:
    """Show the effects of cut-offs."""

    def draw(figure: Any) -> None:
        ax, lines = figure.subplots(), sorted(table["cutoffs"], key=lambda line: float(line["approval"]["estimate"]))
        x = [line["approval"]["estimate"] for line in lines]
        for name, label, style in (
            ("bad_rate", "bad rate of the approved", "-"),
            ("bads_refused", "share of the bad refused", "--"),
        ):
            ax.plot(x, [value(line[name]["estimate"]) for line in lines], style, color=INK, label=label)
        ax.axvline(chosen["approval"]["estimate"], color=MIDDLE, linestyle=":", label="the cut-off of this document")
        ax.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="share approved", ylabel="share")
        figure.legend(*ax.get_legend_handles_labels(), loc="outside upper right", ncols=3, frameon=False)

    return Picture("Effects of cut-offs: bad rate and refusals by the share approved.", draw, 2.3)


def periods(lines: Sequence[Mapping[str, Any]], column: str) -> Picture:
    """Show AUC, and predicted and observed rates, by period."""

    def draw(figure: Any) -> None:
        top, bottom = figure.subplots(2, 1, sharex=True)
        x = np.arange(len(lines))
        auc, reach = _reach([line["auc"] for line in lines])
        top.errorbar(x, auc, yerr=reach, fmt="o-", capsize=2, **MARKS)
        top.set(ylabel="AUC", ylim=(max(0.0, min(auc[~np.isnan(auc)], default=0.5) - 0.15), 1.0))
        rate, reach = _reach([line["base_rate"] for line in lines])
        bottom.errorbar(x, rate, yerr=reach, fmt="o", capsize=2, label="observed", **MARKS)
        bottom.plot(x, [line["mean_risk"] for line in lines], "--", color=MIDDLE, label="predicted")
        bottom.set(ylabel="rate")
        names = [_shorter(line["period"], 12) for line in lines]
        bottom.set_xticks(x, names, rotation=45 if len(x) > 8 else 0, **PLAIN)
        bottom.set_xlabel(column, **PLAIN)
        figure.legend(*bottom.get_legend_handles_labels(), loc="outside upper right", ncols=2, frameon=False)

    return Picture(f"AUC, and predicted and observed rates, by {column}; bars are intervals of 95%.", draw, 3.0)


def _reach(ranges: Sequence[Mapping[str, Any]]) -> tuple[Floats, Floats]:
    """Return estimates, and how far their intervals reach below and above."""
    values = [[math.nan if value(r[name]) is None else r[name] for r in ranges] for name in ("estimate", "low", "high")]
    middle, low, high = np.array(values)
    return middle, np.maximum(np.nan_to_num([middle - low, high - middle]), 0)


def drift(shifts: Mapping[str, Any], titles: Mapping[str, str], most: int = 20) -> Picture:
    """Show the indices of features, with the limits of the policy."""
    shown = shifts["features"][:most]

    def draw(figure: Any) -> None:
        ax, y = figure.subplots(), np.arange(len(shown))
        ax.barh(y, [shift["psi"] for shift in shown], color=PALE, **BARS)
        for name, style in (("moderate", ":"), ("large", "--")):
            limit = shifts["limits"][name]
            ax.axvline(limit, color=INK, linestyle=style, label=f"{name} shift: {limit:g}")
        ax.set_yticks(y, [_shorter(titles[shift["feature"]], 36) for shift in shown], **PLAIN)
        ax.invert_yaxis()
        ax.set_xlabel("population stability index")
        figure.legend(loc="outside upper right", ncols=2, frameon=False)

    return Picture("How far the test rows are from the training rows, by feature.", draw, 0.9 + 0.16 * len(shown))


def groups(report: Mapping[str, Any]) -> Picture:
    """Show approval rates of groups with intervals."""

    def draw(figure: Any) -> None:
        ax, y = figure.subplots(), np.arange(len(report["groups"]))
        middle, reach = _reach([group["approval"] for group in report["groups"]])
        ax.errorbar(middle, y, xerr=reach, fmt="o", capsize=3, **MARKS)
        ax.set_yticks(y, [_shorter(group["group"], 36) for group in report["groups"]], **PLAIN)
        ax.set(xlim=(0, 1), xlabel="share approved")
        ax.invert_yaxis()
        ax.margins(y=0.2)

    caption = f"Approval by {report['title']}, with intervals of 95%."
    return Picture(caption, draw, 0.8 + 0.28 * len(report["groups"]))


def shapes(tables: Sequence[Mapping[str, Any]], titles: Sequence[str]) -> Picture:
    """Show the effects of the levels of some features on the probability of a typical applicant."""

    def draw(figure: Any) -> None:
        axes = np.ravel(figure.subplots(math.ceil(len(tables) / 2), 2, squeeze=False))
        for ax in axes[len(tables) :]:
            ax.set_visible(False)
        for ax, table, title in zip(axes, tables, titles, strict=False):
            _draw_shape(ax, table, title)

    return Picture(
        "Effects of the features that matter most on the probability of a typical applicant, in percentage points. "
        "Black: measured levels in their order; gray: empty fields and codes. If there are many levels, some are "
        "named.",
        draw,
        0.3 + 1.45 * math.ceil(len(tables) / 2),
    )


def _draw_shape(ax: Any, table: Mapping[str, Any], title: str) -> None:
    amounts = table["score"] if table["effect"] is None else [100 * e for e in table["effect"]]
    shown = [j for j, rows in enumerate(table["rows"]) if rows > 0 and value(amounts[j]) is not None]
    colors = [INK if j < table["n_ordered"] else PALE for j in shown]
    ax.bar(range(len(shown)), [amounts[j] for j in shown], color=colors, **BARS)
    ax.axhline(0, color=INK, linewidth=0.6)
    labeled = range(0, len(shown), math.ceil(len(shown) / MOST_LABELS))
    names = [_shorter(table["names"][shown[k]], 22) for k in labeled]
    ax.set_xticks(labeled, names, rotation=30, ha="right", fontsize=6, **PLAIN)
    ax.set_title(_shorter(title, 42), fontsize=8, loc="left", **PLAIN)
