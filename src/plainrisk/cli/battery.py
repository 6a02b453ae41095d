"""The battery of validation: `plainrisk periods` and its like, each a table of a model on some rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from plainrisk.cli import show, source, tables
from plainrisk.cli.main import ExitCode
from plainrisk.cli.options import Column, Cutoff, Level, option, read_groups
from plainrisk.cli.runner import Measured, TableRequest, table_command
from plainrisk.errors import DataError
from plainrisk.files import replacing
from plainrisk.intervals import Range
from plainrisk.model import RiskModel

if TYPE_CHECKING:
    import polars as pl

    from plainrisk.validate.monitoring import Monitoring
    from plainrisk.validate.overrides import Overrides
    from plainrisk.validate.periods import Periods
    from plainrisk.validate.quality import Quality
    from plainrisk.validate.stability import Stability
    from plainrisk.validate.stress import Sensitivity, Stress
    from plainrisk.validate.weak_spots import WeakSpots

__all__ = ["monitor", "overrides", "periods", "quality", "stability", "stress", "weak_spots"]

MOST_FEATURES = 5  # on screen
# Without the time and the name of the program, the same history gives the same bytes.
PICTURES = {".png": {"Software": None}, ".svg": {"Date": None}}
NUMBERS = ("--column", "--months")  # columns that are read as they are; those of other options are text


def read_rows(
    model: RiskModel, request: TableRequest, target: str | None, columns: Mapping[str | None, str], data: str = ""
) -> tuple[pl.DataFrame, Any]:
    """Return all rows, and their outcomes if there are any; `columns` are read as text, each named by its option."""
    data = data or request.data
    asked = {name: flag for name, flag in {target: "--column", **columns}.items() if name is not None}
    kinds = source.kinds_of_forms([model.form_], target)
    texts = [name for name, flag in asked.items() if flag not in NUMBERS and name not in kinds]
    frame = source.open_source(data, request.missing, kinds, texts).frame
    source.require_columns(data, frame.columns, asked)
    outcome = target or model.form_.schema.target
    return frame, None if outcome is None or outcome not in frame.columns else frame[outcome]


# ---- periods


@table_command
def periods(
    model: RiskModel,
    request: TableRequest,
    time: str = option("The column of dates, such as 2024-03-31, or of numbers.", ..., metavar="COLUMN"),
    every: str | None = option(
        "How long a period is; by default, a month for dates.", metavar="month|quarter|year|value"
    ),
    months: str | None = option(
        "For vintages: the months on book at which a bad loan became bad, or up to which a good one was seen.",
        metavar="COLUMN",
    ),
    cutoff: Cutoff = None,
    target: Column = None,
    level: Level = 0.95,
) -> Measured:
    """Measure a model by month or quarter: AUC, calibration, approval rate, shifts of features; vintages."""
    from plainrisk.validate.periods import periods as measure

    frame, y = read_rows(model, request, target, {time: "--time", months: "--months"})
    options: dict[str, Any] = {"time": time, "every": every, "months": months, "cutoff": cutoff, "level": level}
    return Measured.of(measure(model, frame, y, **options), _show_periods)


def _show_periods(result: Periods) -> None:
    console = show.out()
    console.print(result._headline(), style="bold")
    lines = [
        [p.period, p.rows, f"{p.mean_risk:.1%}", show.percent(p.approval), f"{p.psi:.3f}", show.size(p.size)]
        for p in result.periods
    ]
    show.print_table(("period", "rows", "mean risk", "approved", "psi", ""), lines, "lrrrrl")
    if any(p.known for p in result.periods):
        lines = [
            [
                p.period,
                show.rows(p.known, p.small),
                show.percent(p.base_rate),
                show.percent(p.gap, "+"),
                show.ratio(p.auc),
            ]
            for p in result.periods
        ]
        show.print_table(("period", "outcomes", "base rate", "gap", "AUC"), lines, "lrrrr")
    highest = {name: max(result.periods, key=lambda p: p.features[name]) for name in result.periods[0].features}
    largest = {name: highest[name].features[name] for name in highest}
    if largest:
        lines = [
            [name, f"{psi:.3f}", highest[name].period, show.size(result.limits.size(psi))]
            for name, psi in sorted(largest.items(), key=lambda item: -item[1])[:MOST_FEATURES]
        ]
        show.print_table(
            ("feature", "largest psi", "in", ""), lines, "prpp", "The features that moved most (-o has all)"
        )
    if result.vintages:
        lines = [[v.period, v.months, v.at_risk, f"{v.bad:.1%}", f"{v.expected:.1%}"] for v in result.vintages]
        show.print_table(
            ("vintage", "months on book", "seen so long", "bad by then", "mean risk"), lines, title="Vintages"
        )
    show.remark(
        "psi: population stability index, of the risk unless a feature is named. gap: mean risk less base rate."
    )


# ---- quality


@table_command
def quality(model: RiskModel, request: TableRequest, target: Column = None) -> Measured:
    """List problems of rows that a model is to score: absent columns, types, missing and unseen values."""
    from plainrisk.validate.quality import quality as examine

    # Numbers are read as stored in the file, to find text among them.
    kinds = {n: kind for n, kind in source.kinds_of_forms([model.form_], target).items() if kind != "continuous"}
    frame = source.open_source(request.data, request.missing, kinds).frame
    source.require_columns(request.data, frame.columns, {} if target is None else {target: "--column"})
    return Measured.of(examine(model, frame, None if target is None else frame[target]), _show_quality)


def _show_quality(result: Quality) -> None:
    show.out().print(result._headline(), style="bold")
    styles = {"high": "bold red", "moderate": "yellow", "low": ""}
    if result.issues:
        lines = [
            [
                Text(issue.severity, styles[issue.severity]),
                issue.feature,
                issue.what,
                issue.rows,
                issue.message,
            ]
            for issue in result.issues
        ]
        show.print_table(("severity", "column", "what", "rows", ""), lines, "lpprp")


# ---- stress


@table_command
def stress(
    model: RiskModel,
    request: TableRequest,
    shock: list[str] | None = option(
        "A change for every applicant: income=-10%, income=+500, housing=rent. Repeatable, all at once. "
        "Without it: which input moves decisions most.",
        metavar="FEATURE=CHANGE",
    ),
    by: list[str] | None = option(
        "Show groups, too; for numbers, give the bands: COLUMN=25,35. Repeatable.", metavar="COLUMN"
    ),
    cutoff: Cutoff = None,
    seed: int = option("The seed for shuffling and moving values.", 0, min=0),
) -> Measured:
    """Change the applicants and see the effect on approvals and bad rates, or see which input moves decisions most."""
    from plainrisk.validate.stress import sensitivity
    from plainrisk.validate.stress import stress as change

    columns, bands = read_groups(by)
    if columns and not shock:
        raise DataError("stress: --by needs a change. Add --shock FEATURE=CHANGE.")
    frame, _ = read_rows(model, request, None, dict.fromkeys(columns, "--by"))
    if not shock:
        return Measured.of(sensitivity(model, frame, cutoff=cutoff, seed=seed), _show_sensitivity)
    changed = change(model, frame, shock, by=columns or None, bands=bands or None, cutoff=cutoff)
    return Measured.of(changed, _show_stress)


def _show_stress(result: Stress) -> None:
    show.out().print(result._headline(), style="bold")
    lines = [
        [
            g.group,
            g.rows,
            f"{g.approval:.1%} -> {g.approval_after:.1%}",
            f"{g.bad_rate:.1%} -> {g.bad_rate_after:.1%}",
            g.now_refused,
            g.now_approved,
        ]
        for g in result.groups
    ]
    show.print_table(("group", "rows", "approved", "expected bad rate", "now refused", "now approved"), lines)
    show.remark("expected bad rate: by the model's own probabilities, of the approved.")


def _show_sensitivity(result: Sensitivity) -> None:
    show.out().print(result._headline(), style="bold")
    names = ("shuffled", "up", "down", "rounded")
    lines = [[f.feature, *(_share(getattr(f, name)) for name in names)] for f in result.features]
    show.print_table(("feature", *names), lines)
    show.remark("shuffled: applicants exchange their values. rounded: values are moved within the rounding they show.")


def _share(share: float) -> str:
    return "" if math.isnan(share) else f"{share:.1%}"


# ---- weak spots


@table_command
def weak_spots(
    model: RiskModel,
    request: TableRequest,
    more: list[str] | None = option(
        "A column to examine in addition to the model's features. Repeatable.", metavar="COLUMN"
    ),
    pairs: bool = option("Look at slices of two columns, too.", True),
    min_rows: int | None = option("The minimum rows of a slice; by default 2%, at least 50.", metavar="ROWS"),
    alpha: float = option("The largest probability of reporting a slice when nothing is wrong.", 0.05),
    seed: int = option("The seed of the samples that show chance variation.", 0, min=0),
    target: Column = None,
) -> Measured:
    """List the slices of rows in which calibration or ranking is worse than overall by more than chance."""
    from plainrisk.validate.weak_spots import weak_spots as search

    columns = more or []
    frame, y = read_rows(model, request, target, dict.fromkeys(columns, "--more"))
    options: dict[str, Any] = {"columns": columns, "pairs": pairs, "min_rows": min_rows, "level": alpha, "seed": seed}
    return Measured.of(search(model, frame, y, **options), _show_weak_spots)


def _show_weak_spots(result: WeakSpots) -> None:
    show.out().print(result._headline(), style="bold")
    lines = [
        [s.slice, s.weakness, s.rows, f"{s.predicted:.1%}", show.percent(s.observed), f"{s.p_value:.3f}"]
        for s in result.spots
    ]
    if lines:
        show.print_table(("slice", "weak in", "rows", "mean risk", "observed", "p"), lines, "pprrrr")


# ---- stability


@table_command
def stability(
    model: RiskModel,
    request: TableRequest,
    new: str | None = option("Rows to decide and explain; by default, the training rows.", metavar="DATA"),
    refits: int = option("The number of refits to resampled rows.", 20, min=2),
    seed: int = option("The seed of the samples.", 0, min=0),
    cutoff: Cutoff = None,
    target: Column = None,
) -> Measured:
    """Fit a model again to resampled training rows: which decisions flip, which first reasons and shapes change."""
    from plainrisk.validate.stability import stability as refit

    frame, y = read_rows(model, request, target, {})
    rows = None if new is None else read_rows(model, request, None, {}, new)[0]
    with show.progress("Refits", refits) as bar:
        options: dict[str, Any] = {"new": rows, "n": refits, "seed": seed, "cutoff": cutoff}
        result = refit(model, frame, y, **options, progress=lambda done, total: bar.move("refits", done, total))
    return Measured.of(result, _show_stability, new=new)


def _show_stability(result: Stability) -> None:
    shares = {
        "decisions flip": "decisions",
        "at most": "decisions_most",
        "first reasons": "reasons",
        "at most ": "reasons_most",
    }
    lines = [
        [r.kind, r.refits, f"{r.risk:.2%}", *(_share(getattr(r, name)) for name in shares.values())]
        for r in result.refits
    ]
    show.print_table(
        ("refits to", "how many", "risk moves", *shares), lines, title=f"What changes for {result.rows:,} rows"
    )
    unit, points = (100, "percentage points") if result.unit == "probability" else (1, result.unit)
    lines = [
        [f.feature, f"{unit * f.size:.2f}", f"{unit * f.spread:.2f}", f"{f.kept:.0%}", _share(f.up), _share(f.down)]
        for f in result.features
    ]
    show.print_table(
        ("feature", "size", "spread", "kept", "a bin up", "a bin down"),
        lines,
        title="Contributions over refits, and decisions that flip",
    )
    if not math.isnan(result.unsteady):
        show.out().print(f"{result.unsteady:.1%} of the decisions flip in more than one refit of ten.")
    show.remark(f"size, spread: mean absolute contribution and its standard deviation, in {points}.")


# ---- overrides


@table_command
def overrides(
    model: RiskModel,
    request: TableRequest,
    decision: str = option("The column with people's decisions.", ..., metavar="COLUMN"),
    approved: str | None = option("The decision that means approved; by default, words such as yes.", metavar="LABEL"),
    cutoff: Cutoff = None,
    target: Column = None,
    level: Level = 0.95,
) -> Measured:
    """Compare people's decisions with the model's: agreement, override rates, and outcomes."""
    from plainrisk.validate.overrides import overrides as compare

    frame, y = read_rows(model, request, target, {decision: "--decision"})
    options: dict[str, Any] = {"decisions": decision, "approved": approved, "cutoff": cutoff, "level": level}
    return Measured.of(compare(model, frame, y, **options), _show_overrides)


def _show_overrides(result: Overrides) -> None:
    show.out().print(result._headline(), style="bold")
    lines = [
        [
            c.model,
            c.person,
            c.rows,
            show.percent(c.rate),
            _share(c.risk),
            show.rows(c.known, c.small) if c.known else "0",
            show.percent(c.bad_rate),
        ]
        for c in result.cells
    ]
    show.print_table(("model", "people", "rows", "share", "mean risk", "outcomes", "bad rate"), lines, "llrrrrr")
    undecided = f" {result.undecided:,} rows without a decision are left out." if result.undecided else ""
    show.remark(
        "share: of those whom the model decided so; where people decide otherwise, the override rate." + undecided
    )


# ---- monitor


@table_command
def monitor(
    model: RiskModel,
    request: TableRequest,
    history: Path | None = option("A file of JSON lines to which this result is added.", metavar="FILE"),
    label: str | None = option("The name of these rows in the history.", metavar="TEXT"),
    plot: Path | None = option("Draw the history: .png or .svg.", metavar="FILE"),
    cutoff: Cutoff = None,
    target: Column = None,
) -> Measured:
    """Compare new rows with the limits in the model's policy; exits with code 5 if one is crossed."""
    from plainrisk.validate.monitoring import monitor as compare

    tables.check_output(plot, tuple(PICTURES))
    frame, y = read_rows(model, request, target, {})
    label = request.data if label is None else label
    result = compare(model, frame, y, cutoff=cutoff, label=label, history=history)
    if plot is not None:
        with replacing(plot) as temporary:
            figure = result.plot()[0].figure
            figure.savefig(temporary, dpi=160, metadata=PICTURES[plot.suffix.lower()])
    exit_code = ExitCode.LIMIT_CROSSED if result.crossed else ExitCode.DONE
    return Measured(result.to_dict(), result.columns, lambda: _show_monitoring(result), plot, exit_code)


def _show_monitoring(result: Monitoring) -> None:
    show.out().print(result._headline(), style="bold")
    styles = {"crossed": "bold red", "watch": "yellow", "too few rows": "", "within": "green"}
    shown = [c for c in result.checks if c.state != "within" or not c.feature]
    lines = [
        [
            c.name,
            show.ratio(Range(c.value, c.low, c.high)),
            "" if math.isnan(c.baseline) else f"{c.baseline:.3f}",
            f"{c.limit:.3f}",
            Text(c.state, styles[c.state]),
        ]
        for c in shown
    ]
    show.print_table(("figure", "value", "compared with", "limit", ""), lines, "prrrl")
    if rest := len(result.checks) - len(shown):
        show.remark(f"{rest} more figures of features are within their limits (--json has all).")
