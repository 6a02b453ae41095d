"""`plainrisk evaluate`, `cutoffs` and `fairness`: a model on rows whose outcomes are known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.text import Text

from plainrisk._types import Floats, Outcome
from plainrisk.checks import NOTHING, PROBABILITY, check_parameters
from plainrisk.cli import options, show, source, tables
from plainrisk.cli.options import (
    Column,
    Conf,
    Data,
    Json,
    Level,
    Master,
    Missing,
    ModelArgument,
    TableOutput,
    Weight,
    read_groups,
    read_numbers,
)
from plainrisk.cli.runner import RowReader
from plainrisk.data.frame import column_of
from plainrisk.data.remote import is_remote
from plainrisk.errors import DataError
from plainrisk.explain import GroupReport, SeenRows
from plainrisk.explain.groups import compare_groups
from plainrisk.form import RiskForm
from plainrisk.intervals import Range
from plainrisk.measure.calibration_tests import CalibrationTests
from plainrisk.measure.cutoffs import Cutoff, Cutoffs, risk_cutoffs
from plainrisk.measure.evaluation import Evaluation, evaluate_risk
from plainrisk.model import FormMethods, RiskModel, load
from plainrisk.text import plain_number, show_p
from plainrisk.validate.grouping import groups_by
from plainrisk.validate.holdout import cutoffs as cutoffs_of_model
from plainrisk.validate.holdout import evaluate as evaluate_model

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ScoredRows", "cutoffs", "evaluate", "fairness", "show_evaluations"]

NAMES = {
    "auc": "AUC",
    "gini": "Gini",
    "h_measure": "H-measure",
    "ks": "KS",
    "brier": "Brier",
    "log_loss": "log loss",
    "ece": "ECE",
    "gap": "gap",
    "slope": "slope",
    "intercept": "intercept",
}
MOST_GROUPS = 50  # on screen: a column of customers has thousands
LEGEND = (
    "ECE: expected calibration error, 15 equal-width bins over all rows. gap: mean risk less base rate. slope, "
    "intercept: of the calibration line, 1 and 0 if calibrated. In brackets intervals: DeLong for AUC and Gini, the "
    "sandwich for the line, Wilson for shares, the bootstrap for the rest. H-measure: costs have a beta(2, 2) "
    "distribution."
)


# ---- rows with risks and outcomes


@dataclass(frozen=True)
class ScoredRows:
    """The rows of a file with the risks of some models.

    Attributes
    ----------
    data : the file or the data set
    risks : (n,) of every model
    columns : further columns that were asked for
    seen_before : whether these seem to be the rows the first model was fitted to
    """

    data: str
    risks: tuple[Floats, ...]
    columns: pl.DataFrame
    seen_before: bool = False

    @classmethod
    def read(
        cls,
        data: str,
        models: Sequence[FormMethods],
        columns: Mapping[str | None, str],
        missing: list[str] | None,
        keep_if_there: str | None = None,
    ) -> ScoredRows:
        """Score a file batch by batch; `columns` are kept, each with the option that names it."""
        import polars as pl

        kept = {name: option for name, option in columns.items() if name is not None}
        reader = RowReader(data, [model.form_ for model in models], missing, kept, keep_if_there)
        frames: list[pl.DataFrame] = []
        risks: list[list[Floats]] = []

        counted = SeenRows(models[0].form_, models[0].fit_record_)

        def add(batch: pl.DataFrame) -> None:
            counted.add(batch)
            risks.append([model.form_.risk(batch) for model in models])
            frames.append(batch.select(list(reader.keep)))

        reader.each(add)
        if not frames:
            raise DataError(f"{data}: there are no rows.")
        scored = tuple(np.concatenate(one) for one in zip(*risks, strict=True))
        return cls(data, scored, pl.concat(frames), counted.are_all)

    def outcomes(self, form: RiskForm, target: str) -> Outcome:
        """Return 1 where the outcome is the one whose probability is the risk."""
        try:
            return column_of(self.columns[target]).outcomes(form.classes)
        except DataError as error:
            raise DataError(f"{self.data}: outcome {target!r}: {error}") from None

    def probabilities(self, name: str) -> Floats:
        """Return a column of probabilities, of another system."""
        probabilities: Floats = self.columns[name].cast(float).fill_null(math.nan).to_numpy()
        if not ((probabilities >= 0) & (probabilities <= 1)).all():
            raise DataError(f"{self.data}: --against {name!r} must hold a probability from 0 to 1 in every row.")
        return probabilities

    def column(self, name: str | None) -> Any:
        """Return a further column, or None where none was asked for."""
        return None if name is None else self.columns[name].to_numpy()


def _target(model: RiskModel, target: str | None) -> str:
    name = target or model.form_.schema.target
    if name is None:
        raise DataError("which column is the outcome? The model does not name it. Add --column COLUMN.")
    return name


# ---- evaluate


def evaluate(
    model: ModelArgument,
    data: Data,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="MODEL",
            help="Another model file to compare with, or the column that holds the risks of another system.",
        ),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="COLUMN",
            help="Evaluate the rows of every value of this column separately; for numbers, bands: COLUMN=25,35,45. "
            "Repeatable, for intersections.",
        ),
    ] = None,
    grades: Annotated[
        str | None,
        typer.Option(
            "--grades",
            metavar="RISK,RISK,...",
            help="The risks at which a new grade begins, for Jeffreys' test of every grade; by default, deciles.",
        ),
    ] = None,
    target: Column = None,
    weight: Weight = None,
    level: Level = 0.95,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="The seed of the bootstrap; the same seed gives the same intervals.")
    ] = 0,
    output: TableOutput = None,
    missing: Missing = None,
    master: Master = None,
    conf: Conf = None,
    json: Json = False,
) -> None:
    """Measure a model on rows with outcomes, with confidence intervals; compare two models on the same rows."""
    tables.check_table(output)
    other_file = against is not None and (against.endswith(".json") or Path(against).is_file())
    models = [load(model), *([load(against)] if against is not None and other_file else [])]
    columns, bands = read_groups(by)
    if not models[0].form_.predicts_as(models[-1].form_):
        raise DataError("--against: the two models predict different outcomes, so they cannot be compared.")
    name = _target(models[0], target)
    options: dict[str, Any] = {"grades": None if grades is None else read_numbers("--grades", grades)}
    options |= {"level": level, "seed": seed}
    if is_remote(data):
        if against is not None or by:
            raise DataError(
                f"{data}: --against and --by need a file. Evaluate every model separately, or a view of every group."
            )
        with show.progress("Starting Spark") as bar:
            stored = source.rows_elsewhere(data, missing, master, conf, bar.move)
            evaluation = evaluate_model(models[0], stored, name, sample_weight=weight, **options)
    else:
        asked: dict[str | None, str] = {name: "--column", **dict.fromkeys(columns, "--by"), weight: "--weight"}
        rows = ScoredRows.read(data, models, asked | ({} if other_file else {against: "--against"}), missing)
        evaluation = evaluate_risk(
            rows.outcomes(models[0].form_, name),
            rows.risks[0],
            against=None if against is None else rows.risks[1] if other_file else rows.probabilities(against),
            by=groups_by("evaluate", rows.columns, columns, bands, models[0].form_) if columns else None,
            sample_weight=rows.column(weight),
            **options,
        )
        evaluation = replace(evaluation, seen_before=rows.seen_before)
    result = {"model": str(model), "data": data, "against": against}
    comparison = evaluation.to_dict()
    if against is not None:
        comparison["other"] = comparison.pop("against")
    if output is not None:
        tables.write_table(evaluation.columns(), output)
    words = " and ".join(columns)
    show.result({**result, **comparison}, json, lambda _: _show_evaluation(data, evaluation, words, grades is not None))
    show.wrote(output)


def _show_evaluation(data: str, found: Evaluation, by: str, graded: bool) -> None:
    console = show.out()
    rate = found.base_rate
    console.print(
        f"{data}: {found.rows:,} rows, {rate.estimate:.2%} with the positive outcome "
        f"({rate.low:.2%} to {rate.high:.2%}), mean risk {found.mean_risk:.2%}",
        style="bold",
    )
    header = ["metric", "value", f"({found.level:.0%})"]
    lines: list[list[str | Text]] = [[NAMES[n], _number(r.estimate), _ends(r)] for n, r in found.figures.items()]
    if found.against is not None:
        header += ["against", "difference", header[-1]]
        for line, (name, gap) in zip(lines, found.differences.items(), strict=True):
            line += [_number(found.against[name].estimate), _number(gap.estimate, "+"), _ends(gap)]
    show.print_table(header, lines, numbers=header[1:], whole=header)
    for note in (*found.notes, *(() if found.against is None else _infinite(found.against))):
        console.print(note, style="dim")
    _show_calibration(found)
    if graded and found.tests is not None:
        _show_grades(found.tests)
    if by:
        _show_groups(by, found)
    console.print(LEGEND, style="dim")


def _infinite(other: Evaluation) -> list[str]:
    return [f"Of --against: {note}" for note in other.notes if note.startswith("The log loss")]


def _show_calibration(found: Evaluation) -> None:
    table = found.calibration
    columns = (table.lower, table.upper, table.count, table.predicted, table.observed, table.low, table.high)
    lines: list[list[str | Text]] = [
        [f"{a:.4f} to {b:.4f}", f"{n:,}", f"{p:.2%}", f"{o:.2%}", f"{low:.2%} to {high:.2%}", _inside(p, low, high)]
        for a, b, n, p, o, low, high in zip(*(column.tolist() for column in columns), strict=True)
    ]
    header = ("risk", "rows", "mean risk", "observed", "interval", "")
    show.print_table(header, lines, numbers=header[1:5], title="Calibration, in ten bins of about equal weight")


def _show_grades(tests: CalibrationTests) -> None:
    lines: list[list[str | Text]] = [
        [
            f"{g.lower:.1%} to {g.upper:.1%}",
            f"{g.rows:,}",
            f"{g.predicted:.2%}",
            f"{g.observed:.2%}",
            f"{g.low:.2%} to {g.high:.2%}",
            show_p(g.p_value),
        ]
        for g in tests.grades
    ]
    header = ("grade", "rows", "mean risk", "observed", "interval", "p")
    show.print_table(
        header, lines, numbers=header[1:], title="Grades: Jeffreys' interval, and his test that the risk is not too low"
    )


def _inside(risk: float, low: float, high: float) -> Text:
    return Text("") if low <= risk <= high else Text("too high" if risk > high else "too low", "yellow")


def _show_groups(by: str, found: Evaluation) -> None:
    lines: list[list[str | Text]] = []
    for name, one in list(found.groups.items())[:MOST_GROUPS]:
        shares = [f"{one.base_rate.estimate:.1%}", f"{one.mean_risk:.1%}"]
        lines.append([name, _rows(one.rows, one.small), *shares, show.ratio(one["auc"]), _number(one["ece"].estimate)])
    header = (by, "rows", "observed", "mean risk", "AUC", "ECE")
    show.print_table(header, lines, numbers=header[1:])
    _tell_more(len(found.groups))


def _tell_more(groups: int) -> None:
    if groups > MOST_GROUPS:
        show.out().print(f"... and {groups - MOST_GROUPS:,} more groups (--json has all)", style="dim")


def show_evaluations(found: Mapping[str, Evaluation]) -> None:
    """Print a line per model that was measured on the same rows."""
    lines: list[list[str | Text]] = []
    for name, one in found.items():
        lines.append(
            [name, show.ratio(one["auc"]), *(_number(one[m].estimate) for m in ("ks", "brier", "log_loss", "ece"))]
        )
    header = ("model", "AUC", "KS", "Brier", "log loss", "ECE")
    show.print_table(header, lines, numbers=header[1:])


def _rows(rows: int, small: bool) -> Text:
    return Text(f"{rows:,}, small", "yellow") if small else Text(f"{rows:,}")


def _number(value: float, sign: str = "") -> str:
    """Write a figure with four decimals, or in words.

    >>> _number(0.12345), _number(math.inf), _number(math.nan), _number(0.5, "+")
    ('0.1235', 'infinite', '?', '+0.5000')
    """
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    return "?" if math.isnan(value) else f"{value:{sign}.4f}"


def _ends(found: Range) -> str:
    return "" if math.isnan(found.low) else f"({found.low:.3f}, {found.high:.3f})"


# ---- cutoffs


def cutoffs(
    model: ModelArgument,
    data: Data,
    cost_bad: Annotated[
        float,
        typer.Option(
            "--cost-bad",
            help="The cost of an approved bad applicant; with --amount, the share of the amount that is lost.",
        ),
    ] = 1.0,
    gain_good: Annotated[
        float | None,
        typer.Option(
            "--gain-good",
            help="The gain from an approved good applicant; with --amount, a share of the amount. "
            "Without it there are no profits.",
        ),
    ] = None,
    amount: Annotated[
        str | None, typer.Option("--amount", metavar="COLUMN", help="The column that holds the amounts of the loans.")
    ] = None,
    approval: Annotated[
        float | None, typer.Option("--approval", help="Show the cut-off that approves at most this share of the rows.")
    ] = None,
    bad_rate: Annotated[
        float | None,
        typer.Option("--bad-rate", help="Show the cut-off with at most this bad rate among the approved."),
    ] = None,
    cutoff: Annotated[
        float | None, typer.Option("--cutoff", metavar="RISK", help="Show what this cut-off does.")
    ] = None,
    target: Column = None,
    weight: Weight = None,
    level: Level = 0.95,
    output: TableOutput = None,
    missing: Missing = None,
    master: Master = None,
    conf: Conf = None,
    json: Json = False,
) -> None:
    """Show approval, bad rate and profit by cut-off, with confidence intervals."""
    tables.check_table(output)
    asked = {
        name: value
        for name, value in (("approval", approval), ("bad_rate", bad_rate), ("cutoff", cutoff))
        if value is not None
    }
    loaded = load(model)
    name = _target(loaded, target)
    costs: dict[str, Any] = {"cost_bad": cost_bad, "gain_good": gain_good, "level": level}
    if is_remote(data):
        with show.progress("Starting Spark") as bar:
            stored = source.rows_elsewhere(data, missing, master, conf, bar.move)
            table = cutoffs_of_model(loaded, stored, name, amount=amount, sample_weight=weight, **costs)
            n_rows = stored.count()
    else:
        rows = ScoredRows.read(data, [loaded], {name: "--column", amount: "--amount", weight: "--weight"}, missing)
        n_rows = len(rows.risks[0])
        table = risk_cutoffs(
            rows.outcomes(loaded.form_, name),
            rows.risks[0],
            amount=rows.column(amount),
            sample_weight=rows.column(weight),
            adverse=loaded.form_.schema.adverse,
            cutoff=loaded.cutoff,
            **costs,
        )
    chosen = {f"{name} {value:g}": table.at(**{name: value}) for name, value in asked.items()}
    if table.chosen is not None:
        chosen["the model's own"] = table.chosen
    result = {"model": str(model), "data": data, "rows": n_rows, **table.to_dict()}
    result["chosen"] = {name: one.to_dict() for name, one in chosen.items()}
    if output is not None:
        tables.write_table(_cutoff_columns(table), output)
    show.result(result, json, lambda _: _show_cutoffs(data, table, chosen))
    show.wrote(output)


def _cutoff_columns(found: Cutoffs) -> dict[str, list[Any]]:
    """Return every cut-off, as columns; profits only if there are any."""
    names = ["cutoff", "approval", "bad_rate", "bads_refused", "goods_refused", "profit"]
    columns = {name: getattr(found, name).tolist() for name in names}
    return columns if not np.isnan(found.profit).all() else {name: columns[name] for name in names[:-1]}


def _show_cutoffs(data: str, found: Cutoffs, chosen: dict[str, Cutoff]) -> None:
    console = show.out()
    side = "below the cut-off" if found.adverse == "positive" else "from the cut-off on"
    console.print(f"{data}: approved are risks {side}; in brackets intervals of {found.level:.0%}", style="bold")
    profits = not np.isnan(found.profit).all()
    header = ("cut-off", "approved", "bad rate", "bads refused", "profit" if profits else "goods refused")
    lines: list[list[str | Text]] = []
    for one in found.shown():
        last = plain_number(one.profit.estimate) if profits else _share(one.goods_refused)
        shares = [f"{one.approval.estimate:.1%}", show.percent(one.bad_rate), _share(one.bads_refused)]
        lines.append([f"{one.cutoff:.4f}", *shares, last])
    show.print_table(header, lines, numbers=header)
    for name, one in {**chosen, **({"largest profit": found.best} if profits else {})}.items():
        console.print(_in_words(one) if name.startswith("cutoff ") else f"{name}: {_in_words(one)}")


def _share(found: Range) -> str:
    return "?" if math.isnan(found.estimate) else f"{found.estimate:.1%}"


def _in_words(one: Cutoff) -> str:
    profit, brings = one.profit, ""
    if not math.isnan(profit.estimate):
        brings = f", profit {profit.estimate:,.2f} ({profit.low:,.2f}, {profit.high:,.2f})"
    refused = f"{show.percent(one.bads_refused)} of the bad and {show.percent(one.goods_refused)} of the good"
    return (
        f"cut-off {one.cutoff:.6g}, approval {show.percent(one.approval)}, bad rate {show.percent(one.bad_rate)}, "
        f"refused {refused}{brings}."
    )


# ---- fairness


def fairness(
    model: ModelArgument,
    data: Data,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="COLUMN",
            help="The column that holds the groups; for numbers, give the bands: COLUMN=25,35,45. Repeatable, for "
            "intersections. Without it, every protected feature.",
        ),
    ] = None,
    cutoff: options.Cutoff = None,
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference", metavar="GROUP", help="The group to compare the others with; by default, the largest."
        ),
    ] = None,
    target: Column = None,
    level: Level = 0.95,
    output: TableOutput = None,
    missing: Missing = None,
    json: Json = False,
) -> None:
    """Compare groups: approval, adverse impact and, given outcomes, equal opportunity, calibration and AUC."""
    tables.check_table(output)
    check_parameters("fairness", {"--cutoff": cutoff}, {"--cutoff": NOTHING | PROBABILITY})
    loaded = load(model)
    decided = loaded.cutoff if cutoff is None else cutoff
    if decided is None:
        raise DataError(f"fairness: {model} holds no cut-off to decide by. Add --cutoff RISK.")
    name = target or loaded.form_.schema.target
    named, bands = read_groups(by)
    columns = named or tuple(loaded.form_.schema.protected)
    if not columns:
        raise DataError(f"fairness: {model} names no protected feature. Add --by COLUMN.")
    asked: dict[str | None, str] = dict.fromkeys(columns, "--by")
    asked[target] = "--column"
    rows = ScoredRows.read(data, [loaded], asked, missing, keep_if_there=name)
    has_outcomes = name in rows.columns.columns
    outcomes = rows.outcomes(loaded.form_, name) if name is not None and has_outcomes else None
    options: dict[str, Any] = {"adverse": loaded.form_.schema.adverse, "reference": reference}
    options |= {"cutoff": decided, "level": level}
    reports = {
        " and ".join(each): compare_groups(
            outcomes, rows.risks[0], groups_by("fairness", rows.columns, each, bands, loaded.form_), **options
        )
        for each in ([named] if named else [(column,) for column in columns])
    }
    result: dict[str, Any] = {"model": str(model), "data": data, "outcomes": has_outcomes}
    if named:
        result |= {"by": " and ".join(named), **reports[" and ".join(named)].to_dict()}
    else:
        result["protected"] = {column: report.to_dict() for column, report in reports.items()}
    if output is not None:
        each = [{"by": [column] * len(report.groups), **report.columns()} for column, report in reports.items()]
        tables.write_table({name: [cell for one in each for cell in one[name]] for name in each[0]}, output)
    show.result(result, json, lambda _: _show_all(data, reports, has_outcomes))
    show.wrote(output)


def _show_all(data: str, found: Mapping[str, GroupReport], known: bool) -> None:
    for column, report in found.items():
        _show_fairness(data, column, report, known)


def _show_fairness(data: str, by: str, found: GroupReport, known: bool) -> None:
    console = show.out()
    side = "below" if found.adverse == "positive" else "from"
    rows = sum(group.rows for group in found.groups)
    console.print(
        f"{data}: {rows:,} rows by {by}, approved {side} {found.cutoff:g}, compared with {found.reference!r}",
        style="bold",
    )
    lines: list[list[str | Text]] = []
    shown = found.groups[:MOST_GROUPS]
    for g in shown:
        mark = Text("below 4/5" if g.below_four_fifths else "", "red")
        lines.append([g.group, _rows(g.rows, g.small), show.percent(g.approval), show.ratio(g.impact), mark])
    header = ("group", "rows", "approval", "adverse impact ratio")
    show.print_table((*header, ""), lines, numbers=header[1:], whole=("",))
    if known:
        equal: list[list[str | Text]] = [
            [g.group, show.percent(g.opportunity), show.percent(g.opportunity_difference, "+")] for g in shown
        ]
        header = ("group", "approval", "difference", "")
        title = "Equal opportunity: approval of those whose outcome was good"
        show.print_table(header[:3], equal, numbers=header[1:], title=title)
        right: list[list[str | Text]] = [
            [g.group, show.percent(g.base_rate), show.percent(g.gap, "+"), show.ratio(g.auc)] for g in shown
        ]
        header = ("group", "base rate", "mean risk less base rate", "AUC")
        show.print_table(header, right, numbers=header[1:], title="Calibration and ranking")
    else:
        console.print("No outcomes in the data (--column): no equal opportunity, calibration and AUC.", style="dim")
    _tell_more(len(found.groups))
    console.print(f"In brackets: intervals of {found.level:.0%}. No row is left out.", style="dim")
