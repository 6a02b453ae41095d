"""Pictures of a document, in greys and line styles that survive a copying machine; matplotlib is loaded to draw one."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plainrisk.document.blocks import Picture
from plainrisk.document.figures import value
from plainrisk.errors import missing_extra

__all__ = ["calibration", "cutoffs", "drift", "groups", "histogram", "periods", "png", "shapes"]

WIDTH, DPI = 6.5, 160  # of the text, in inches
MOST_LABELS = 7  # of the levels of one feature; the annex has all
INK, MIDDLE, PALE = "#1A1A1A", "#707070", "#C4C4C4"
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


def histogram(found: Mapping[str, Any], outcome: str) -> Picture:
    """Show how predicted probabilities are spread, by outcome."""

    def draw(figure: Any) -> None:
        ax, edges = figure.subplots(), np.array(found["edges"])
        named = (("positive", f"outcome: {outcome}", INK, None), ("other", "the other outcome", PALE, "//"))
        for side, label, colour, hatch in reversed(named):
            share = np.array(found[side]) / max(sum(found[side]), 1)
            ax.bar(
                edges[:-1],
                share,
                np.diff(edges),
                align="edge",
                label=_shorter(label, 60),
                color="none" if side == "positive" else colour,
                edgecolor=INK,
                linewidth=1.3 if side == "positive" else 0.4,
                hatch=hatch,
            )
        ax.set(xlabel="predicted probability", ylabel="share of each outcome", xlim=(0, 1))
        figure.legend(*ax.get_legend_handles_labels(), loc="outside upper right", ncols=2, frameon=False)

    return Picture("Predicted probabilities by outcome.", draw, 2.3)


def calibration(found: Mapping[str, Sequence[float]]) -> Picture:
    """Show predicted against observed rates with intervals."""

    def draw(figure: Any) -> None:
        ax = figure.subplots()
        predicted, observed = np.array(found["predicted"]), np.array(found["observed"])
        end = min(1.0, 1.05 * max(*found["predicted"], *found["high"]))
        ax.plot([0, end], [0, end], color=MIDDLE, linewidth=1, linestyle="--", label="predicted = observed")
        ends = [observed - np.array(found["low"]), np.array(found["high"]) - observed]
        ax.errorbar(
            predicted,
            observed,
            yerr=np.maximum(ends, 0),
            fmt="o",
            color=INK,
            markersize=4,
            capsize=3,
            linewidth=1,
            label="a tenth of the rows, 95% interval",
        )
        ax.set(
            xlim=(0, end), ylim=(0, end), xlabel="mean predicted probability", ylabel="observed rate", aspect="equal"
        )
        figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)

    return Picture("Calibration: predicted and observed rates in ten bins.", draw, 2.9)


def cutoffs(found: Mapping[str, Any], chosen: Mapping[str, Any]) -> Picture:
    """Show what cut-offs do."""

    def draw(figure: Any) -> None:
        ax, lines = figure.subplots(), sorted(found["cutoffs"], key=lambda one: one["approval"]["estimate"])
        x = [one["approval"]["estimate"] for one in lines]
        named = {"bad_rate": ("bad rate of the approved", "-"), "bads_refused": ("share of the bad refused", "--")}
        for name, (label, style) in named.items():
            ax.plot(x, [value(one[name]["estimate"]) for one in lines], style, color=INK, label=label)
        ax.axvline(chosen["approval"]["estimate"], color=MIDDLE, linestyle=":", label="the cut-off of this document")
        ax.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="share approved", ylabel="share")
        figure.legend(*ax.get_legend_handles_labels(), loc="outside upper right", ncols=3, frameon=False)

    return Picture("What cut-offs do: bad rate and refusals by the share approved.", draw, 2.3)


def periods(found: Sequence[Mapping[str, Any]], column: str) -> Picture:
    """Show AUC, and predicted and observed rates, by period."""

    def draw(figure: Any) -> None:
        top, bottom = figure.subplots(2, 1, sharex=True)
        x = np.arange(len(found))
        auc = [value(one["auc"]["estimate"]) for one in found]
        _with_ends(top, x, [one["auc"] for one in found], "o-")
        top.set(ylabel="AUC")
        top.set_ylim(max(0.0, min((a for a in auc if a is not None), default=0.5) - 0.15), 1.0)
        _with_ends(bottom, x, [one["base_rate"] for one in found], "o", "observed")
        bottom.plot(x, [one["mean_risk"] for one in found], "--", color=MIDDLE, label="predicted")
        bottom.set(ylabel="rate")
        bottom.set_xticks(x, [_shorter(one["period"], 12) for one in found], rotation=45 if len(x) > 8 else 0, **PLAIN)
        bottom.set_xlabel(column, **PLAIN)
        figure.legend(*bottom.get_legend_handles_labels(), loc="outside upper right", ncols=2, frameon=False)

    return Picture(f"AUC, and predicted and observed rates, by {column}; bars are intervals of 95%.", draw, 3.0)


def _with_ends(ax: Any, x: Any, found: Sequence[Mapping[str, Any]], style: str, label: str = "") -> None:
    middle = np.array([math.nan if value(one["estimate"]) is None else one["estimate"] for one in found])
    ends = [[math.nan if value(one[end]) is None else one[end] for one in found] for end in ("low", "high")]
    far = np.nan_to_num([middle - np.array(ends[0]), np.array(ends[1]) - middle])
    ax.errorbar(
        x, middle, yerr=np.maximum(far, 0), fmt=style, color=INK, markersize=4, capsize=2, linewidth=1, label=label
    )


def drift(found: Mapping[str, Any], titles: Mapping[str, str], most: int = 20) -> Picture:
    """Show the indices of features, with the limits of the policy."""
    shown = found["features"][:most]

    def draw(figure: Any) -> None:
        ax, y = figure.subplots(), np.arange(len(shown))
        ax.barh(y, [one["psi"] for one in shown], color=PALE, edgecolor=INK, linewidth=0.5)
        for name, style in (("moderate", ":"), ("large", "--")):
            ax.axvline(
                found["limits"][name], color=INK, linestyle=style, label=f"{name} shift: {found['limits'][name]:g}"
            )
        ax.set_yticks(y, [_shorter(titles[one["feature"]], 36) for one in shown], **PLAIN)
        ax.invert_yaxis()
        ax.set_xlabel("population stability index")
        figure.legend(loc="outside upper right", ncols=2, frameon=False)

    return Picture("How far the test rows are from the training rows, by feature.", draw, 0.9 + 0.16 * len(shown))


def groups(found: Mapping[str, Any]) -> Picture:
    """Show approval rates of groups with intervals."""

    def draw(figure: Any) -> None:
        ax, y = figure.subplots(), np.arange(len(found["groups"]))
        shares = [one["approval"] for one in found["groups"]]
        middle = np.array([one["estimate"] for one in shares])
        far = [middle - [one["low"] for one in shares], [one["high"] for one in shares] - middle]
        ax.errorbar(middle, y, xerr=np.maximum(far, 0), fmt="o", color=INK, markersize=4, capsize=3, linewidth=1)
        ax.set_yticks(y, [_shorter(one["group"], 36) for one in found["groups"]], **PLAIN)
        ax.set(xlim=(0, 1), xlabel="share approved")
        ax.invert_yaxis()
        ax.margins(y=0.2)

    title = found["title"]
    return Picture(f"Approval by {title}, with intervals of 95%.", draw, 0.8 + 0.28 * len(found["groups"]))


def shapes(tables: Sequence[Mapping[str, Any]], titles: Sequence[str]) -> Picture:
    """Show what the levels of some features do to the probability of a typical applicant."""

    def draw(figure: Any) -> None:
        axes = np.ravel(figure.subplots(math.ceil(len(tables) / 2), 2, squeeze=False))
        for ax in axes[len(tables) :]:
            ax.set_visible(False)
        for ax, table, title in zip(axes, tables, titles, strict=False):
            _draw_shape(ax, table, title)

    return Picture(
        "What the features that matter most do to the probability of a typical applicant, in percentage points. Black: "
        "measured levels in their order; grey: empty fields and codes. Where levels are many, some are named.",
        draw,
        0.3 + 1.45 * math.ceil(len(tables) / 2),
    )


def _draw_shape(ax: Any, table: Mapping[str, Any], title: str) -> None:
    amounts = table["score"] if table["effect"] is None else [100 * e for e in table["effect"]]
    shown = [j for j, rows in enumerate(table["rows"]) if rows > 0 and value(amounts[j]) is not None]
    inside = [j < table["n_ordered"] for j in shown]
    ax.bar(
        range(len(shown)),
        [amounts[j] for j in shown],
        color=[INK if own else PALE for own in inside],
        edgecolor=INK,
        linewidth=0.5,
    )
    ax.axhline(0, color=INK, linewidth=0.6)
    labelled = range(0, len(shown), math.ceil(len(shown) / MOST_LABELS))
    names = [_shorter(table["names"][shown[k]], 22) for k in labelled]
    ax.set_xticks(labelled, names, rotation=30, ha="right", fontsize=6, **PLAIN)
    ax.set_title(_shorter(title, 42), fontsize=8, loc="left", **PLAIN)
