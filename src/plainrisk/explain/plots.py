"""Pictures of explanations, shapes, weights and drift; matplotlib is loaded when one is drawn.

Colors are Okabe and Ito's, which color-blind readers can distinguish; signs, marks and words repeat what they say.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from plainrisk._types import Floats
from plainrisk.errors import DataError
from plainrisk.figures import new_axes
from plainrisk.text import one_line

if TYPE_CHECKING:
    from plainrisk.explain.explanation import Explanation
    from plainrisk.explain.groups import GroupReport
    from plainrisk.explain.monitor import Drift
    from plainrisk.explain.overview import Overview, ShapeTable
    from plainrisk.explain.uncertainty import Interval
    from plainrisk.form import PairTable
    from plainrisk.intervals import Range

__all__ = [
    "draw_bars",
    "draw_drift",
    "draw_groups",
    "draw_importance",
    "draw_pair",
    "draw_series",
    "draw_shape",
    "draw_waterfall",
    "draw_weight_path",
    "draw_weights",
]

UP, DOWN, TOTAL, NEUTRAL = "#D55E00", "#0072B2", "#333333", "#8C8C8C"
PALE = {UP: "#F3C6A5", DOWN: "#A6CBE3"}
COLORS = (DOWN, UP, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", ":", "-.")  # for readers who see no colors

PLAIN: Mapping[str, Any] = {"parse_math": False, "usetex": False}  # a name such as $x^{2$ is not a formula

_Step = tuple[str, float, tuple[float, float] | None]  # label, amount, interval


def draw_waterfall(
    found: Explanation, row: int, *, most: int = 12, interval: Interval | None = None, ax: Any = None
) -> Any:
    """Draw the way from the reference to the risk of one row; whiskers if intervals of contributions are given."""
    steps = _steps(found, row, most, interval)
    ax = new_axes(7.0, 1.7 + 0.34 * len(steps)) if ax is None else ax
    at = float(found.constant[row])
    start = f"{at:.1%}" if found.unit == "probability" else f"{at:+.2f}"
    labels = [f"{found.reference}: {start}", *(s[0] for s in steps)]
    for i, (_, amount, ends) in enumerate(steps, 1):
        color = UP if amount > 0 else DOWN
        ax.barh(i, amount, left=at, color=color, height=0.62)
        ax.plot([at, at], [i - 1.31, i + 0.31], color=NEUTRAL, linewidth=0.8, zorder=0)
        reach = max(at, at + amount)
        if ends is not None:
            ax.plot([at + e for e in ends], [i, i], color=TOTAL, linewidth=1.2, marker="|", markersize=6)
            reach = max(reach, at + ends[1])
        at += amount
        note(ax, signed(amount, found.unit), reach, i)
    last = len(steps) + 1
    ax.plot([at, at], [last - 1.31, last + 0.31], color=NEUTRAL, linewidth=0.8, zorder=0)
    for y, x in ((0, float(found.constant[row])), (last, at)):
        ax.plot([x], [y], marker="D", color=TOTAL, markersize=6)
    name_rows(ax, [*labels, f"risk: {found.risk[row]:.1%}"], bold=[last])
    ax.use_sticky_edges = False
    ax.margins(x=0.14)
    unit_axis(ax, found.unit, "risk" if found.unit == "probability" else "log odds")
    if found.bends is not None and found.bends[row]:
        ax.set_title("pieces at the mean slope between the two", loc="left", fontsize=9, color=NEUTRAL)
    return ax


def _steps(found: Explanation, row: int, most: int, interval: Interval | None) -> list[_Step]:
    """Return the steps of a waterfall: the largest first, small ones together."""
    amounts = found.contributions[row]
    order = [int(j) for j in np.argsort(-np.abs(amounts), kind="stable") if amounts[j] != 0]
    steps: list[_Step] = []
    for j in order[:most]:
        label, feature = found.names[j], found.features[j]
        if feature is not None:  # a name may begin with its subscale
            title, value = found.in_words(row, feature)
            label = with_value(label.removesuffix(feature) + title, value)
        ends = None if interval is None else (float(interval.low[row, j]), float(interval.high[row, j]))
        steps.append((label, float(amounts[j]), ends))
    if order[most:]:
        steps.append((f"{len(order) - most} more", float(amounts[order[most:]].sum()), None))
    return steps


def draw_bars(found: Explanation, row: int, *, ax: Any = None) -> Any:
    """Draw one row's contributions on two levels: subscales, and the features in them."""
    groups = sorted(found.to_dict(row)["subscales"], key=lambda g: -abs(g["contribution"]))
    n = len(groups) + sum(len(g["features"]) for g in groups if len(g["features"]) > 1)
    ax = new_axes(7.0, 1.2 + 0.27 * n) if ax is None else ax
    labels, y = [], 0
    heads = []
    for group in groups:
        total = group["contribution"]
        color = UP if total > 0 else DOWN
        ax.barh(y, total, color=PALE[color], edgecolor=color, linewidth=1.0, height=0.8)
        note(ax, signed(total, found.unit), total, y, left=total < 0, bold=True)
        labels.append(group["subscale"])
        heads.append(y)
        y += 1
        inside = group["features"] if len(group["features"]) > 1 else []
        for feature in sorted(inside, key=lambda f: -abs(f["contribution"])):
            amount = feature["contribution"]
            ax.barh(y, amount, color=UP if amount > 0 else DOWN, height=0.5)
            note(ax, signed(amount, found.unit), amount, y, left=amount < 0)
            labels.append(with_value(*found.in_words(row, feature["feature"])))
            y += 1
    ax.axvline(0, color=TOTAL, linewidth=0.8)
    name_rows(ax, labels, bold=heads)
    ax.use_sticky_edges = False
    ax.margins(x=0.22)
    unit_axis(ax, found.unit, f"contribution against {found.reference}", signed=True)
    return ax


def draw_shape(table: ShapeTable, interval: Interval | None = None, *, axes: Any = None) -> Any:
    """Draw one feature: the effect of every level, with intervals, above its training rows and bad rates."""
    shown = [j for j in range(len(table.labels)) if table.rows[j] > 0 or j < table.n_ordered]
    shown = [j for j in shown if table.score[j] == table.score[j] or (j == 0 and table.curve is not None)]
    if not shown:
        raise DataError(f"There is nothing to draw of {table.feature!r}: its values are unknown. Use overview(X).")
    if axes is None:
        axes = new_axes(max(4.5, 1.6 + 0.75 * len(shown)), 4.4, 2, (2, 1))
    top, bottom = axes
    x = np.arange(len(shown)) + np.array([0.4 * (j >= table.n_ordered) for j in shown])
    y = table.score[shown] if table.effect is None else table.effect[shown]
    ordered = [i for i, j in enumerate(shown) if j < table.n_ordered]
    labels = [table.labels[j] for j in shown]
    if table.curve is not None:
        values, effects = table.curve
        labels[0] = f"{values[0]:.4g} to {values[-1]:.4g}"
        top.plot(np.linspace(-0.45, 0.45, len(values)), effects, color=DOWN, linewidth=1.6)
        y[0] = np.nan  # no dot: the line is drawn
    elif table.ordered:
        top.plot(x[ordered], y[ordered], color=DOWN, linewidth=1.2, drawstyle="steps-mid")
    top.plot(x, y, "o", color=DOWN, markersize=6)
    if interval is not None:
        ends = np.abs(np.stack([interval.low[shown] - y, interval.high[shown] - y]))
        top.errorbar(x, y, yerr=ends, fmt="none", ecolor=TOTAL, elinewidth=1.2, capsize=4)
    top.axhline(0, color=NEUTRAL, linewidth=0.8)
    top.set_title(short(table.feature, 60), loc="left", fontsize=10, **PLAIN)
    unit_axis(top, table.unit if table.effect is None else "probability", "effect", axis="y", signed=True)
    tidy(top, "y")
    _draw_counts(bottom, x, table, shown, labels)
    return axes


def _draw_counts(ax: Any, x: Any, table: ShapeTable, shown: list[int], labels: list[str]) -> None:
    ax.bar(x, table.rows[shown], color="#BDBDBD", width=0.7)
    for at, j in zip(x, shown, strict=True):
        if not np.isnan(table.bad_rate[j]):
            ax.text(at, table.rows[j], f"{table.bad_rate[j]:.0%}", ha="center", va="bottom", fontsize=8)
    name_levels(ax, x, labels)
    ax.set_ylabel("training rows,\nbad rate", fontsize=8)
    ax.margins(y=0.22)
    tidy(ax, "y")


def draw_pair(pair: PairTable, unit: str = "log odds", *, ax: Any = None) -> Any:
    """Draw a pair as a heat map: its score in every cell, above the training rows there; returns the axes.

    Special levels without training rows are left out, and cells without training rows stay white.
    """
    weights = np.asarray(pair.weights)
    rows, columns = (
        np.flatnonzero((pair.level_weights(axis) > 0) | (np.arange(len(levels)) < levels.n_ordered))
        for axis, levels in enumerate(pair.levels)
    )
    cells = np.ix_(rows, columns)
    counts, scores = weights[cells], np.asarray(pair.scores)[cells]
    ax = new_axes(2.5 + 0.95 * len(columns), 1.8 + 0.5 * len(rows)) if ax is None else ax
    from matplotlib.colors import LinearSegmentedColormap

    colors = LinearSegmentedColormap.from_list("pair", [DOWN, "white", UP])
    limit = float(np.abs(scores).max(initial=0.0)) or 1.0
    ax.imshow(np.where(counts > 0, scores, np.nan), cmap=colors, vmin=-limit, vmax=limit, aspect="auto")
    for (i, j), score in np.ndenumerate(scores):
        text = f"{signed(score, unit)}\n{counts[i, j]:,.0f}" if counts[i, j] > 0 else "0"
        dark = counts[i, j] > 0 and abs(score) > 0.6 * limit
        ax.text(j, i, text, ha="center", va="center", fontsize=8, color="white" if dark else TOTAL)
    first, second = pair.features
    name_levels(ax, np.arange(len(columns)), [pair.levels[1].labels[j] for j in columns])
    ax.set_yticks(range(len(rows)), [short(pair.levels[0].labels[i], 22) for i in rows], fontsize=8, **PLAIN)
    ax.set_xlabel(short(second, 60), **PLAIN)
    ax.set_ylabel(short(first, 60), **PLAIN)
    points = "% points" if unit == "probability" else unit
    ax.set_title(f"{short(pair.name, 50)}: score ({points}), training rows", loc="left", fontsize=10, **PLAIN)
    return ax


def draw_importance(found: Overview, *, most: int = 20, ax: Any = None) -> Any:
    """Draw mean absolute contributions, and thin lines for their whole span."""
    shown = [i for i in found.importance if i.mean == i.mean][:most]
    if not shown:
        raise DataError("There is nothing to draw: curves, trees and lines without counts need rows. Use overview(X).")
    ax = new_axes(6.5, 1.2 + 0.3 * len(shown)) if ax is None else ax
    y = np.arange(len(shown))
    ax.plot([[0] * len(shown), [i.span for i in shown]], [y, y], color=NEUTRAL, linewidth=1.5, zorder=1)
    ax.barh(y, [i.mean for i in shown], color=DOWN, height=0.62, zorder=2)
    ax.plot([], [], color=NEUTRAL, linewidth=1.5, label="span from the best level to the worst")
    ax.plot([], [], color=DOWN, linewidth=6, label="mean absolute contribution")
    name_rows(ax, [i.feature or i.subscale for i in shown])
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False, fontsize=8, borderaxespad=0)
    unit = shown[0].unit
    unit_axis(ax, unit, "contribution", signed=False)
    return ax


def draw_weights(weights: Mapping[str, float], intervals: Mapping[str, Interval] | None = None, ax: Any = None) -> Any:
    """Draw the weights of the subscales, the heaviest first, with intervals if there are any."""
    if not weights:
        raise DataError("There is nothing to draw: a model of one part has no subscale weights.")
    names = sorted(weights, key=lambda name: -weights[name])
    ax = new_axes(6.0, 1.2 + 0.32 * len(names)) if ax is None else ax
    for y, name in enumerate(names):
        ax.plot([weights[name]], [y], "o", color=DOWN, markersize=7)
        if intervals is not None:
            ends = [float(intervals[name].low), float(intervals[name].high)]
            ax.plot(ends, [y, y], color=TOTAL, linewidth=1.2, marker="|", markersize=7)
    name_rows(ax, names)
    ax.set_xlim(0, None)
    ax.margins(y=0.1)
    ax.set_xlabel("weight of the subscale (no unit)")
    return ax


def draw_weight_path(path: Floats, names: Sequence[str], ax: Any = None) -> Any:
    """Draw the weights of subscales, (rows + 1, subscales), against the number of rows seen; returns the axes."""
    ax = new_axes(7.0, 4.0) if ax is None else ax
    rows = np.unique(np.linspace(0, len(path) - 1, 2000).astype(np.intp))  # more can not be seen
    for j in range(len(names)):
        ax.plot(rows, path[rows, j], STYLES[j % len(STYLES)], color=COLORS[j % len(COLORS)], label=f"{j}")
    ax.set(xlabel="rows seen", ylabel="weight", ylim=(0, None), xlim=(0, max(1, len(path) - 1)))
    legend = ax.legend(fontsize="small", ncols=1 + len(names) // 12, loc="upper left", bbox_to_anchor=(1.01, 1))
    # As labels of lines, names with a leading underscore would be left out.
    for text, line, name in zip(legend.get_texts(), ax.lines[-len(names) :], names, strict=True):
        text.set(text=short(name), **PLAIN)
        line.set_label(name)
    return ax


def draw_drift(found: Drift, *, most: int = 25, ax: Any = None) -> Any:
    """Draw the population stability index of every feature and subscale, with the limits of the policy."""
    rows = [*((f.feature, f.psi) for f in found.features), *((f"[{s.subscale}]", s.psi) for s in found.subscales)]
    rows = sorted(rows, key=lambda r: -r[1])[:most]
    ax = new_axes(6.5, 1.3 + 0.28 * len(rows)) if ax is None else ax
    for y, (_, psi) in enumerate(rows):
        color, hatch = {"large": (UP, "//"), "moderate": ("#E69F00", ""), "small": (DOWN, "")}[found.limits.size(psi)]
        ax.barh(y, psi, color=color, height=0.62, hatch=hatch, edgecolor="white")
        note(ax, f"{psi:.3f}", min(psi, 1.0), y, left=psi > 0.9)
    for mark, word in ((found.limits.moderate, "moderate"), (found.limits.large, "large")):
        ax.axvline(mark, color=NEUTRAL, linestyle="--", linewidth=0.9)
        ax.annotate(word, (mark, -0.75), ha="center", fontsize=8, color=TOTAL)
    name_rows(ax, [name for name, _ in rows])
    ax.set_ylim(len(rows) - 0.4, -1.1)
    # Beyond 1, differences are no longer visible, and the marks would be lost.
    ax.set_xlim(0, min(1.0, max(0.35, 1.15 * max(psi for _, psi in rows))))
    ax.set_xlabel("population stability index (no unit)")
    return ax


def draw_groups(found: GroupReport, ax: Any = None) -> Any:
    """Draw the approval rate of every group with its interval, and its adverse impact ratio in words."""
    ax = new_axes(6.5, 1.3 + 0.45 * len(found.groups)) if ax is None else ax
    for y, g in enumerate(found.groups):
        rate = g.approval
        ends = [[rate.estimate - rate.low], [rate.high - rate.estimate]]
        ax.errorbar([rate.estimate], [y], xerr=ends, fmt="o", color=DOWN, ecolor=TOTAL, capsize=4)
        ratio = f"ratio {g.impact.estimate:.2f} ({g.impact.low:.2f} to {g.impact.high:.2f})"
        word = "reference group" if g.group == found.reference else ratio
        note(ax, word, rate.high, y)
    name_rows(ax, [f"{short(g.group)} ({g.rows:,}{', few' if g.small else ''})" for g in found.groups])
    ax.margins(x=0.35, y=0.2)
    unit_axis(ax, "probability", "approval rate")
    return ax


def draw_series(
    names: Sequence[str], lines: Mapping[str, Sequence[Range]], marks: Mapping[str, Sequence[float]], axes: Any = None
) -> Any:
    """Draw figures over time, one below the other, with intervals and dashed marks, and return the axes.

    Parameters
    ----------
    names : the periods, in their order
    lines : by its label, the figure of every period
    marks : by the label of a figure: limits, or what it should be
    """
    axes = new_axes(7.0, 0.8 + 1.5 * len(lines), rows=len(lines), ratios=[1] * len(lines)) if axes is None else axes
    x = np.arange(len(names))
    for ax, (label, line) in zip(np.atleast_1d(axes), lines.items(), strict=True):
        middle, low, high = np.array([(r.estimate, r.low, r.high) for r in line]).T
        ax.vlines(x, low, high, color=NEUTRAL, linewidth=2)
        ax.plot(x, middle, color=DOWN, marker="o", markersize=4, linewidth=1.2)
        for mark in marks.get(label, ()):
            ax.axhline(mark, color=UP, linestyle="--", linewidth=0.9)
        ax.set_title(label, loc="left", fontsize=9)
        tidy(ax, "y")
    step = max(1, len(names) // 12)
    last = np.atleast_1d(axes)[-1]
    last.set_xticks(
        x[::step], [short(name, 12) for name in names[::step]], rotation=40, ha="right", fontsize=8, **PLAIN
    )
    return axes


# ---- shared by the pictures


def name_rows(ax: Any, labels: Sequence[str], bold: Sequence[int] = ()) -> None:
    """Name horizontal bars from the top, in letters as long and as large as the figure allows."""
    width, height = ax.figure.get_size_inches()
    space = int(np.clip(5.5 * width, 18, 60))
    size = float(np.clip(72 * 0.7 * height / (1.25 * len(labels)), 5.5, 10))
    ax.set_yticks(range(len(labels)), [cut(label, space) for label in labels], fontsize=size, **PLAIN)
    for i in bold:
        ax.get_yticklabels()[i].set_fontweight("bold")
    ax.invert_yaxis()
    tidy(ax, "x")


def name_levels(ax: Any, x: Any, labels: Sequence[str]) -> None:
    """Name levels below bars: wrapped where that fits, else turned."""
    space = int(0.8 * ax.figure.get_figwidth() / max(1, len(labels)) / 0.07)
    names = [short(label, 500) for label in labels]
    if max((len(word) for name in names for word in name.split()), default=0) <= space:
        ax.set_xticks(x, ["\n".join(textwrap.wrap(name, max(1, space))) for name in names], fontsize=8, **PLAIN)
    else:
        ax.set_xticks(x, [short(name, 22) for name in names], fontsize=7, rotation=40, ha="right", **PLAIN)


def with_value(name: str, value: str) -> str:
    """Return a feature with its value."""
    return f"{name} = {value}" if value else name


def cut(label: str, space: int) -> str:
    """Shorten a label; of a feature with its value, the name."""
    name, equals, value = label.rpartition(" = ")
    if not equals:
        return short(label, space)
    value = short(value, space // 2)
    return short(name, max(8, space - 3 - len(value))) + equals + value


def note(ax: Any, text: str, x: float, y: float, *, left: bool = False, bold: bool = False) -> None:
    """Write a text to the right of a point, or to its left if it fits on a bar there."""
    style: dict[str, Any] = {"ha": "right" if left else "left", "va": "center"}
    if left:
        style["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    ax.annotate(
        text,
        (x, y),
        (-4 if left else 4, 0),
        textcoords="offset points",
        fontsize=8,
        weight="bold" if bold else "normal",
        **style,
    )


def signed(amount: float, unit: str) -> str:
    """Return a contribution as text, in percentage points where it is a probability."""
    return f"{100 * amount:+.1f}" if unit == "probability" else f"{amount:+.2f}"


def unit_axis(ax: Any, unit: str, what: str, axis: str = "x", signed: bool = False) -> None:
    """Name an axis with its unit; probabilities in percent, differences of them in percentage points."""
    which = ax.xaxis if axis == "x" else ax.yaxis
    if unit == "probability":
        which.set_major_formatter(lambda v, _: f"{100 * v:+g}" if signed else f"{100 * v:g}%")
        which.set_label_text(f"{what} (% points)" if signed else what)
    else:
        which.set_label_text(what if unit in what else f"{what} ({unit})")


def short(text: str, width: int = 34) -> str:
    """Return a name as it can be drawn: in one line, cut to a width, and two quotes if it is empty."""
    line = one_line(text).strip() or "''"
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


def tidy(ax: Any, grid: str) -> None:
    """Remove unnecessary lines, and add a faint grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=grid, color=NEUTRAL, alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
