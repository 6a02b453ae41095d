"""The battery of validation: `plainrisk periods` and its like, each a table of a model on some rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from plainrisk.cli import show, source, tables
from plainrisk.cli.main import ExitCode
from plainrisk.cli.options import Column, Cutoff, Data, Json, Level, Missing, ModelArgument, TableOutput, read_groups
from plainrisk.errors import DataError, did_you_mean
from plainrisk.files import replacing
from plainrisk.intervals import Range
from plainrisk.model import RiskModel, load
from plainrisk.tables import TableResult

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
REFITTED = ("decisions", "decisions_most", "reasons", "reasons_most")
# Without the time and the name of the program, the same history gives the same bytes.
PICTURES = {".png": {"Software": None}, ".svg": {"Date": None}}
NUMBERS = ("--column", "--months")  # columns that are read as they are; those of other options are text


def read_rows(
    model: RiskModel, data: str, missing: list[str] | None, target: str | None, columns: Mapping[str | None, str]
) -> tuple[pl.DataFrame, Any]:
    """Return all rows, and their outcomes if there are any; `columns` are read as text, each named by its option."""
    asked = {name: option for name, option in {target: "--column", **columns}.items() if name is not None}
    kinds = source.kinds_of_forms([model.form_], target)
    texts = [name for name, option in asked.items() if option not in NUMBERS and name not in kinds]
    frame = source.open_source(data, missing, kinds, texts).frame
    for name, option in asked.items():
        if name not in frame.columns:
            raise DataError(f"{data}: {option} {name!r} is not in the data.{did_you_mean(name, frame.columns)}")
    outcome = target or model.form_.schema.target
    return frame, None if outcome is None or outcome not in frame.columns else frame[outcome]


def finish(found: TableResult, facts: dict[str, Any], output: Path | None, json: bool, as_text: Any) -> None:
    """Write the table of a result, and print it."""
    if output is not None:
        tables.write_table(found.columns(), output)
    show.result({**facts, **found.to_dict()}, json, lambda _: as_text())
    show.wrote(output)


def save_figure(axes: Any, path: Path) -> None:
    """Write the figure of some axes."""
    with replacing(path) as temporary:
        axes[0].figure.savefig(temporary, dpi=160, metadata=PICTURES[path.suffix.lower()])


def few(rows: int, small: bool) -> Text:
    """Return a number of rows, and whether they are few."""
    return Text(f"{rows:,}, few", "yellow") if small else Text(f"{rows:,}")


# ---- periods


def periods(
    model: ModelArgument,
    data: Data,
    time: Annotated[
        str, typer.Option("--time", metavar="COLUMN", help="The column of dates, such as 2024-03-31, or of numbers.")
    ],
    every: Annotated[
        str | None,
        typer.Option(
            "--every", metavar="month|quarter|year|value", help="How long a period is; by default, a month for dates."
        ),
    ] = None,
    months: Annotated[
        str | None,
        typer.Option(
            "--months",
            metavar="COLUMN",
            help="For vintages: the months on book at which a bad loan became bad, or up to which a good one was seen.",
        ),
    ] = None,
    cutoff: Cutoff = None,
    target: Column = None,
    level: Level = 0.95,
    output: TableOutput = None,
    missing: Missing = None,
    json: Json = False,
) -> None:
    """Measure a model by month or quarter: AUC, calibration, approval rate, shifts of features; vintages."""
    from plainrisk.validate.periods import periods as measure

    tables.check_table(output)
    loaded = load(model)
    frame, y = read_rows(loaded, data, missing, target, {time: "--time", months: "--months"})
    measured = measure(loaded, frame, y, time=time, every=every, months=months, cutoff=cutoff, level=level)
    finish(measured, {"model": str(model), "data": data}, output, json, lambda: _show_periods(measured))


def _show_periods(found: Periods) -> None:
    console = show.out()
    console.print(found._headline(), style="bold")
    lines: list[list[str | Text]] = [
        [
            p.period,
            f"{p.rows:,}",
            f"{p.mean_risk:.1%}",
            show.percent(p.approval),
            f"{p.psi:.3f}",
            show.size_word(p.size),
        ]
        for p in found.periods
    ]
    header: tuple[str, ...] = ("period", "rows", "mean risk", "approved", "psi", "")
    show.print_table(header, lines, numbers=header[1:5], whole=header)
    if any(p.known for p in found.periods):
        lines = [
            [p.period, few(p.known, p.small), show.percent(p.base_rate), show.percent(p.gap, "+"), show.ratio(p.auc)]
            for p in found.periods
        ]
        header = ("period", "outcomes", "base rate", "gap", "AUC")
        show.print_table(header, lines, numbers=header[1:], whole=header)
    highest = {name: max(found.periods, key=lambda p: p.features[name]) for name in found.periods[0].features}
    largest = sorted(highest, key=lambda name: -highest[name].features[name])[:MOST_FEATURES]
    if largest:
        each = [(name, highest[name], highest[name].features[name]) for name in largest]
        lines = [[name, f"{psi:.3f}", p.period, show.size_word(found.limits.size(psi))] for name, p, psi in each]
        title = "The features that moved most (-o has all)"
        show.print_table(("feature", "largest psi", "in", ""), lines, numbers=("largest psi",), title=title)
    if found.vintages:
        lines = [
            [v.period, str(v.months), f"{v.at_risk:,}", f"{v.bad:.1%}", f"{v.expected:.1%}"] for v in found.vintages
        ]
        header = ("vintage", "months on book", "seen so long", "bad by then", "mean risk")
        show.print_table(header, lines, numbers=header[1:], title="Vintages")
    note = "psi: population stability index, of the risk unless a feature is named. gap: mean risk less base rate."
    console.print(note, style="dim")


# ---- quality


def quality(
    model: ModelArgument,
    data: Data,
    target: Column = None,
    output: TableOutput = None,
    missing: Missing = None,
    json: Json = False,
) -> None:
    """List what is wrong with rows that a model is to score: absent columns, types, missing and unseen values."""
    from plainrisk.validate.quality import quality as look

    tables.check_table(output)
    loaded = load(model)
    # Numbers are read as the file has them: text among them is what is looked for.
    kinds = source.kinds_of_forms([loaded.form_], target)
    frame = source.open_source(data, missing, {n: kind for n, kind in kinds.items() if kind != "continuous"}).frame
    if target is not None and target not in frame.columns:
        raise DataError(f"{data}: --column {target!r} is not in the data.{did_you_mean(target, frame.columns)}")
    issues = look(loaded, frame, None if target is None else frame[target])
    finish(issues, {"model": str(model), "data": data}, output, json, lambda: _show_quality(issues))


def _show_quality(found: Quality) -> None:
    show.out().print(found._headline(), style="bold")
    styles = {"high": "bold red", "moderate": "yellow", "low": ""}
    lines: list[list[str | Text]] = [
        [Text(issue.severity, styles[issue.severity]), issue.feature, issue.what, f"{issue.rows:,}", issue.message]
        for issue in found.issues
    ]
    if lines:
        show.print_table(("severity", "column", "what", "rows", ""), lines, numbers=("rows",), whole=("severity",))


# ---- stress


def stress(
    model: ModelArgument,
    data: Data,
    shock: Annotated[
        list[str] | None,
        typer.Option(
            "--shock",
            metavar="FEATURE=CHANGE",
            help="A change for every applicant: income=-10%, income=+500, housing=rent. Repeatable, all at once. "
            "Without it: which input moves decisions most.",
        ),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by", metavar="COLUMN", help="Show groups, too; for numbers, give the bands: COLUMN=25,35. Repeatable."
        ),
    ] = None,
    cutoff: Cutoff = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The seed for shuffling and moving values.")] = 0,
    output: TableOutput = None,
    missing: Missing = None,
    json: Json = False,
) -> None:
    """Change the applicants: what happens to approvals and bad rates; or see which input moves decisions most."""
    from plainrisk.validate.stress import sensitivity
    from plainrisk.validate.stress import stress as change

    tables.check_table(output)
    loaded, (columns, bands) = load(model), read_groups(by)
    if columns and not shock:
        raise DataError("stress: --by needs a change. Add --shock FEATURE=CHANGE.")
    frame, _ = read_rows(loaded, data, missing, None, dict.fromkeys(columns, "--by"))
    facts = {"model": str(model), "data": data}
    if not shock:
        moved = sensitivity(loaded, frame, cutoff=cutoff, seed=seed)
        finish(moved, facts, output, json, lambda: _show_sensitivity(moved))
        return
    result = change(loaded, frame, shock, by=columns or None, bands=bands or None, cutoff=cutoff)
    finish(result, facts, output, json, lambda: _show_stress(result))


def _show_stress(found: Stress) -> None:
    show.out().print(found._headline(), style="bold")
    lines: list[list[str | Text]] = [
        [
            g.group,
            f"{g.rows:,}",
            f"{g.approval:.1%} -> {g.approval_after:.1%}",
            f"{g.bad_rate:.1%} -> {g.bad_rate_after:.1%}",
            f"{g.now_refused:,}",
            f"{g.now_approved:,}",
        ]
        for g in found.groups
    ]
    header = ("group", "rows", "approved", "expected bad rate", "now refused", "now approved")
    show.print_table(header, lines, numbers=header[1:])
    show.out().print("expected bad rate: by the model's own probabilities, of the approved.", style="dim")


def _show_sensitivity(found: Sensitivity) -> None:
    show.out().print(found._headline(), style="bold")
    names = ("shuffled", "up", "down", "rounded")
    lines: list[list[str | Text]] = [[f.feature, *(_share(getattr(f, name)) for name in names)] for f in found.features]
    show.print_table(("feature", *names), lines, numbers=names)
    note = "shuffled: applicants exchange their values. rounded: values are moved within the rounding they show."
    show.out().print(note, style="dim")


def _share(share: float) -> str:
    return "" if math.isnan(share) else f"{share:.1%}"


# ---- weak spots


def weak_spots(
    model: ModelArgument,
    data: Data,
    more: Annotated[
        list[str] | None,
        typer.Option(
            "--more", metavar="COLUMN", help="A column to examine in addition to the model's features. Repeatable."
        ),
    ] = None,
    pairs: Annotated[bool, typer.Option(help="Look at slices of two columns, too.")] = True,
    min_rows: Annotated[
        int | None,
        typer.Option("--min-rows", metavar="ROWS", help="The minimum rows of a slice; by default 2%, at least 50."),
    ] = None,
    alpha: Annotated[
        float, typer.Option("--alpha", help="The largest chance of naming a slice when nothing is wrong.")
    ] = 0.05,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The seed of the samples that show what chance does.")] = 0,
    target: Column = None,
    output: TableOutput = None,
    missing: Missing = None,
    json: Json = False,
) -> None:
    """Name the slices of rows in which calibration or ranking is worse than overall, and chance is ruled out."""
    from plainrisk.validate.weak_spots import weak_spots as search

    tables.check_table(output)
    loaded, columns = load(model), more or []
    frame, y = read_rows(loaded, data, missing, target, dict.fromkeys(columns, "--more"))
    options: dict[str, Any] = {"columns": columns, "pairs": pairs, "min_rows": min_rows, "level": alpha, "seed": seed}
    spots = search(loaded, frame, y, **options)
    finish(spots, {"model": str(model), "data": data}, output, json, lambda: _show_weak_spots(spots))


def _show_weak_spots(found: WeakSpots) -> None:
    show.out().print(found._headline(), style="bold")
    lines: list[list[str | Text]] = [
        [s.slice, s.weakness, f"{s.rows:,}", f"{s.predicted:.1%}", show.percent(s.observed), f"{s.p_value:.3f}"]
        for s in found.spots
    ]
    header = ("slice", "weak in", "rows", "mean risk", "observed", "p")
    if lines:
        show.print_table(header, lines, numbers=header[2:])


# ---- stability


def stability(
    model: ModelArgument,
    data: Data,
    new: Annotated[
        str | None,
        typer.Option("--new", metavar="DATA", help="Rows to decide and explain; by default, the training rows."),
    ] = None,
    refits: Annotated[int, typer.Option("--refits", min=2, help="The number of refits to resampled rows.")] = 20,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The seed of the samples.")] = 0,
    cutoff: Cutoff = None,
    target: Column = None,
    output: TableOutput = None,
    missing: Missing = None,
    json: Json = False,
) -> None:
    """Fit a model again to resampled training rows: which decisions flip, which first reasons and shapes change."""
    from plainrisk.validate.stability import stability as refit

    tables.check_table(output)
    loaded = load(model)
    frame, y = read_rows(loaded, data, missing, target, {})
    rows = None if new is None else read_rows(loaded, new, missing, None, {})[0]
    with show.progress("Refits", refits) as bar:
        options: dict[str, Any] = {"new": rows, "n": refits, "seed": seed, "cutoff": cutoff}
        found = refit(loaded, frame, y, **options, progress=lambda done, total: bar.move("refits", done, total))
    finish(found, {"model": str(model), "data": data, "new": new}, output, json, lambda: _show_stability(found))


def _show_stability(found: Stability) -> None:
    lines: list[list[str | Text]] = [
        [r.kind, str(r.refits), f"{r.risk:.2%}", *(_share(getattr(r, name)) for name in REFITTED)] for r in found.refits
    ]
    header: tuple[str, ...] = (
        "refits to",
        "how many",
        "risk moves",
        "decisions flip",
        "at most",
        "first reasons",
        "at most ",
    )
    show.print_table(header, lines, numbers=header[1:], title=f"What changes for {found.rows:,} rows")
    unit = 100 if found.unit == "probability" else 1
    lines = [
        [f.feature, f"{unit * f.size:.2f}", f"{unit * f.spread:.2f}", f"{f.kept:.0%}", _share(f.up), _share(f.down)]
        for f in found.features
    ]
    header = ("feature", "size", "spread", "kept", "a bin up", "a bin down")
    show.print_table(header, lines, numbers=header[1:], title="Contributions over refits, and decisions that flip")
    points = "percentage points" if unit == 100 else found.unit
    console = show.out()
    if not math.isnan(found.unsteady):
        console.print(f"{found.unsteady:.1%} of the decisions flip in more than one refit of ten.")
    console.print(f"size, spread: mean absolute contribution and its standard deviation, in {points}.", style="dim")


# ---- overrides


def overrides(
    model: ModelArgument,
    data: Data,
    decision: Annotated[
        str, typer.Option("--decision", metavar="COLUMN", help="The column that holds what people decided.")
    ],
    approved: Annotated[
        str | None,
        typer.Option(
            "--approved", metavar="LABEL", help="The decision that means approved; by default, words such as yes."
        ),
    ] = None,
    cutoff: Cutoff = None,
    target: Column = None,
    level: Level = 0.95,
    output: TableOutput = None,
    missing: Missing = None,
    json: Json = False,
) -> None:
    """Compare what people decided with what the model decides: agreement, override rates, and what came of them."""
    from plainrisk.validate.overrides import overrides as compare

    tables.check_table(output)
    loaded = load(model)
    frame, y = read_rows(loaded, data, missing, target, {decision: "--decision"})
    comparison = compare(loaded, frame, y, decisions=decision, approved=approved, cutoff=cutoff, level=level)
    finish(comparison, {"model": str(model), "data": data}, output, json, lambda: _show_overrides(comparison))


def _show_overrides(found: Overrides) -> None:
    console = show.out()
    console.print(found._headline(), style="bold")
    lines: list[list[str | Text]] = [
        [
            c.model,
            c.person,
            f"{c.rows:,}",
            show.percent(c.rate),
            _share(c.risk),
            few(c.known, c.small) if c.known else "0",
            show.percent(c.bad_rate),
        ]
        for c in found.cells
    ]
    header = ("model", "people", "rows", "share", "mean risk", "outcomes", "bad rate")
    show.print_table(header, lines, numbers=header[2:], whole=header)
    note = "share: of those whom the model decided so; where people decide otherwise, the override rate."
    left = f" {found.undecided:,} rows without a decision are left out." if found.undecided else ""
    console.print(note + left, style="dim")


# ---- monitor


def monitor(
    model: ModelArgument,
    data: Data,
    history: Annotated[
        Path | None,
        typer.Option("--history", metavar="FILE", help="A file of JSON lines to which this result is added."),
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", metavar="TEXT", help="The name of these rows in the history.")
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw the history: .png or .svg.")] = None,
    cutoff: Cutoff = None,
    target: Column = None,
    output: TableOutput = None,
    missing: Missing = None,
    json: Json = False,
) -> None:
    """Compare new rows with the limits kept in the model; ends with 5 if one is crossed."""
    from plainrisk.validate.monitoring import monitor as look

    tables.check_table(output)
    tables.check_output(plot, tuple(PICTURES))
    loaded = load(model)
    frame, y = read_rows(loaded, data, missing, target, {})
    monitoring = look(loaded, frame, y, cutoff=cutoff, label=data if label is None else label, history=history)
    if plot is not None:
        save_figure(monitoring.plot(), plot)
    finish(monitoring, {"model": str(model), "data": data}, output, json, lambda: _show_monitoring(monitoring))
    show.wrote(plot)
    if monitoring.crossed:
        raise typer.Exit(ExitCode.LIMIT_CROSSED)


def _show_monitoring(found: Monitoring) -> None:
    console = show.out()
    console.print(found._headline(), style="bold")
    styles = {"crossed": "bold red", "watch": "yellow", "too few rows": "", "within": "green"}
    shown = [c for c in found.checks if c.state != "within" or not c.feature]
    lines: list[list[str | Text]] = [
        [
            c.name,
            show.ratio(Range(c.value, c.low, c.high)),
            "" if math.isnan(c.baseline) else f"{c.baseline:.3f}",
            f"{c.limit:.3f}",
            Text(c.state, styles[c.state]),
        ]
        for c in shown
    ]
    header = ("figure", "value", "compared with", "limit", "")
    show.print_table(header, lines, numbers=header[1:4], whole=header[1:])
    rest = len(found.checks) - len(shown)
    if rest:
        console.print(f"{rest} more figures of features are within their limits (--json has all).", style="dim")
