"""`plainrisk evaluate`, `cutoffs` and `fairness`: a model on rows whose outcomes are known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.text import Text

from plainrisk._types import Floats, Outcome
from plainrisk.checks import NOTHING, PROBABILITY, check_parameters
from plainrisk.cli import show, source
from plainrisk.cli.options import Column, Conf, Level, Master, Weight, option, read_groups, read_numbers
from plainrisk.cli.options import Cutoff as CutoffOption
from plainrisk.cli.runner import Measured, RowReader, TableRequest, table_command
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
        keep_if_present: str | None = None,
    ) -> ScoredRows:
        """Score a file batch by batch; `columns` are copied, each with the option that names it."""
        import polars as pl

        kept = {name: flag for name, flag in columns.items() if name is not None}
        reader = RowReader(data, [model.form_ for model in models], missing, kept, keep_if_present)
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
        scored = tuple(np.concatenate(parts) for parts in zip(*risks, strict=True))
        return cls(data, scored, pl.concat(frames), counted.are_all)

    def outcomes(self, form: RiskForm, target: str) -> Outcome:
        """Return 1 for the outcome whose probability is the risk."""
        try:
            return column_of(self.columns[target]).outcomes(form.classes)
        except DataError as error:
            raise DataError(f"{self.data}: outcome {target!r}: {error}") from None

    def probabilities(self, name: str) -> Floats:
        """Return a column of probabilities from another system."""
        probabilities: Floats = self.columns[name].cast(float).fill_null(math.nan).to_numpy()
        if not ((probabilities >= 0) & (probabilities <= 1)).all():
            raise DataError(f"{self.data}: --against {name!r} must hold a probability from 0 to 1 in every row.")
        return probabilities

    def column(self, name: str | None) -> Any:
        """Return a further column, or None if none was requested."""
        return None if name is None else self.columns[name].to_numpy()


def _target(model: RiskModel, target: str | None) -> str:
    name = target or model.form_.schema.target
    if name is None:
        raise DataError("which column is the outcome? The model does not name it. Add --column COLUMN.")
    return name


# ---- evaluate


@table_command
def evaluate(
    model: RiskModel,
    request: TableRequest,
    against: str | None = option(
        "Another model file to compare with, or the column that holds the risks of another system.", metavar="MODEL"
    ),
    by: list[str] | None = option(
        "Evaluate the rows of every value of this column separately; for numbers, bands: COLUMN=25,35,45. "
        "Repeatable, for intersections.",
        metavar="COLUMN",
    ),
    grades: str | None = option(
        "The risks at which a new grade begins, for Jeffreys' test of every grade; by default, deciles.",
        metavar="RISK,RISK,...",
    ),
    target: Column = None,
    weight: Weight = None,
    level: Level = 0.95,
    seed: int = option("The seed of the bootstrap; the same seed gives the same intervals.", 0, min=0),
    master: Master = None,
    conf: Conf = None,
) -> Measured:
    """Measure a model on rows with outcomes, with confidence intervals; compare two models on the same rows."""
    is_file = against is not None and (against.endswith(".json") or Path(against).is_file())
    models = [model, *([load(against)] if against is not None and is_file else [])]
    columns, bands = read_groups(by)
    if not model.form_.predicts_as(models[-1].form_):
        raise DataError("--against: the two models predict different outcomes, so they cannot be compared.")
    name = _target(model, target)
    options: dict[str, Any] = {"grades": None if grades is None else read_numbers("--grades", grades)}
    options |= {"level": level, "seed": seed}
    if is_remote(request.data):
        if against is not None or by:
            raise DataError(
                f"{request.data}: --against and --by need a file. Evaluate every model separately, or a view of every "
                "group."
            )
        with source.stored_rows(request.data, request.missing, None, master, conf) as stored:
            evaluation = evaluate_model(model, stored, name, sample_weight=weight, **options)
    else:
        asked: dict[str | None, str] = {name: "--column", **dict.fromkeys(columns, "--by"), weight: "--weight"}
        asked |= {} if is_file else {against: "--against"}
        rows = ScoredRows.read(request.data, models, asked, request.missing)
        evaluation = evaluate_risk(
            rows.outcomes(model.form_, name),
            rows.risks[0],
            against=None if against is None else rows.risks[1] if is_file else rows.probabilities(against),
            by=groups_by("evaluate", rows.columns, columns, bands, model.form_) if columns else None,
            sample_weight=rows.column(weight),
            **options,
        )
        evaluation = replace(evaluation, seen_before=rows.seen_before)
    facts = evaluation.to_dict()
    if against is not None:
        facts |= {"against": against, "other": facts["against"]}
    words = " and ".join(columns)
    return Measured(
        facts,
        evaluation.columns,
        lambda: _show_evaluation(request.data, evaluation, words, is_graded=grades is not None),
    )


def _show_evaluation(data: str, evaluation: Evaluation, by: str, *, is_graded: bool) -> None:
    rate, against = evaluation.base_rate, evaluation.against
    show.out().print(
        f"{data}: {evaluation.rows:,} rows, {rate.estimate:.2%} with the positive outcome "
        f"({rate.low:.2%} to {rate.high:.2%}), mean risk {evaluation.mean_risk:.2%}",
        style="bold",
    )
    header = ["metric", "value", f"({evaluation.level:.0%})"]
    lines = [[NAMES[n], _number(r.estimate), _ends(r)] for n, r in evaluation.figures.items()]
    notes = list(evaluation.notes)
    if against is not None:
        header += ["against", "difference", header[-1]]
        for line, (name, gap) in zip(lines, evaluation.differences.items(), strict=True):
            line += [_number(against[name].estimate), _number(gap.estimate, "+"), _ends(gap)]
        notes += [f"Of --against: {note}" for note in against.notes if note.startswith("The log loss")]
    show.print_table(header, lines, "l".ljust(len(header), "r"))
    for note in notes:
        show.remark(note)
    _show_calibration(evaluation)
    if is_graded and evaluation.tests is not None:
        _show_grades(evaluation.tests)
    if by:
        _show_groups(by, evaluation)
    show.remark(LEGEND)


def _show_calibration(evaluation: Evaluation) -> None:
    table = evaluation.calibration
    columns = (table.lower, table.upper, table.count, table.predicted, table.observed, table.low, table.high)
    lines = [
        [f"{a:.4f} to {b:.4f}", n, f"{p:.2%}", f"{o:.2%}", f"{low:.2%} to {high:.2%}", _inside(p, low, high)]
        for a, b, n, p, o, low, high in zip(*(column.tolist() for column in columns), strict=True)
    ]
    show.print_table(
        ("risk", "rows", "mean risk", "observed", "interval", ""),
        lines,
        "prrrrp",
        "Calibration, in ten bins of about equal weight",
    )


def _inside(risk: float, low: float, high: float) -> Text:
    return Text("") if low <= risk <= high else Text("too high" if risk > high else "too low", "yellow")


def _show_grades(tests: CalibrationTests) -> None:
    lines = [
        [
            f"{g.lower:.1%} to {g.upper:.1%}",
            g.rows,
            f"{g.predicted:.2%}",
            f"{g.observed:.2%}",
            f"{g.low:.2%} to {g.high:.2%}",
            show_p(g.p_value),
        ]
        for g in tests.grades
    ]
    show.print_table(
        ("grade", "rows", "mean risk", "observed", "interval", "p"),
        lines,
        title="Grades: Jeffreys' interval, and his test that the risk is not too low",
    )


def _show_groups(by: str, evaluation: Evaluation) -> None:
    lines = [
        [
            name,
            show.rows(group.rows, group.small),
            f"{group.base_rate.estimate:.1%}",
            f"{group.mean_risk:.1%}",
            show.ratio(group["auc"]),
            _number(group["ece"].estimate),
        ]
        for name, group in list(evaluation.groups.items())[:MOST_GROUPS]
    ]
    show.print_table((by, "rows", "observed", "mean risk", "AUC", "ECE"), lines)
    _count_more(len(evaluation.groups))


def _count_more(groups: int) -> None:
    if groups > MOST_GROUPS:
        show.remark(f"... and {groups - MOST_GROUPS:,} more groups (--json has all)")


def show_evaluations(evaluations: Mapping[str, Evaluation]) -> None:
    """Print a line per model that was measured on the same rows."""
    metrics = ("ks", "brier", "log_loss", "ece")
    lines = [
        [name, show.ratio(evaluation["auc"]), *(_number(evaluation[metric].estimate) for metric in metrics)]
        for name, evaluation in evaluations.items()
    ]
    show.print_table(("model", "AUC", *(NAMES[metric] for metric in metrics)), lines)


def _number(value: float, sign: str = "") -> str:
    """Write a figure with four decimals, or in words.

    >>> _number(0.12345), _number(math.inf), _number(math.nan), _number(0.5, "+")
    ('0.1235', 'infinite', '?', '+0.5000')
    """
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    return "?" if math.isnan(value) else f"{value:{sign}.4f}"


def _ends(figure: Range) -> str:
    return "" if math.isnan(figure.low) else f"({figure.low:.3f}, {figure.high:.3f})"


# ---- cutoffs


@table_command
def cutoffs(
    model: RiskModel,
    request: TableRequest,
    cost_bad: float = option(
        "The cost of an approved bad applicant; with --amount, the share of the amount that is lost.", 1.0
    ),
    gain_good: float | None = option(
        "The gain from an approved good applicant; with --amount, a share of the amount. "
        "Without it there are no profits."
    ),
    amount: str | None = option("The column that holds the amounts of the loans.", metavar="COLUMN"),
    approval: float | None = option("Show the cut-off that approves at most this share of the rows."),
    bad_rate: float | None = option("Show the cut-off with at most this bad rate among the approved."),
    cutoff: float | None = option("Show what this cut-off does.", metavar="RISK"),
    target: Column = None,
    weight: Weight = None,
    level: Level = 0.95,
    master: Master = None,
    conf: Conf = None,
) -> Measured:
    """Show approval, bad rate and profit by cut-off, with confidence intervals."""
    name = _target(model, target)
    costs: dict[str, Any] = {"cost_bad": cost_bad, "gain_good": gain_good, "level": level}
    if is_remote(request.data):
        with source.stored_rows(request.data, request.missing, None, master, conf) as stored:
            table = cutoffs_of_model(model, stored, name, amount=amount, sample_weight=weight, **costs)
            n_rows = stored.count()
    else:
        asked: dict[str | None, str] = {name: "--column", amount: "--amount", weight: "--weight"}
        rows = ScoredRows.read(request.data, [model], asked, request.missing)
        n_rows = len(rows.risks[0])
        table = risk_cutoffs(
            rows.outcomes(model.form_, name),
            rows.risks[0],
            amount=rows.column(amount),
            sample_weight=rows.column(weight),
            adverse=model.form_.schema.adverse,
            cutoff=model.cutoff,
            **costs,
        )
    wanted = {"approval": approval, "bad_rate": bad_rate, "cutoff": cutoff}
    chosen = {f"{what} {value:g}": table.at(**{what: value}) for what, value in wanted.items() if value is not None}
    if table.chosen is not None:
        chosen["the model's own"] = table.chosen
    facts = {"rows": n_rows, **table.to_dict(), "chosen": {what: row.to_dict() for what, row in chosen.items()}}
    return Measured(facts, lambda: _cutoff_columns(table), lambda: _show_cutoffs(request.data, table, chosen))


def _cutoff_columns(table: Cutoffs) -> dict[str, list[Any]]:
    """Return every cut-off, as columns, with profits if there are any."""
    names = ["cutoff", "approval", "bad_rate", "bads_refused", "goods_refused"]
    names += [] if np.isnan(table.profit).all() else ["profit"]
    return {name: getattr(table, name).tolist() for name in names}


def _show_cutoffs(data: str, table: Cutoffs, chosen: Mapping[str, Cutoff]) -> None:
    console = show.out()
    side = "below the cut-off" if table.adverse == "positive" else "from the cut-off on"
    console.print(f"{data}: approved are risks {side}; in brackets intervals of {table.level:.0%}", style="bold")
    profits = not np.isnan(table.profit).all()
    lines = [
        [
            f"{row.cutoff:.4f}",
            f"{row.approval.estimate:.1%}",
            show.percent(row.bad_rate),
            _share(row.bads_refused),
            plain_number(row.profit.estimate) if profits else _share(row.goods_refused),
        ]
        for row in table.shown()
    ]
    show.print_table(
        ("cut-off", "approved", "bad rate", "bads refused", "profit" if profits else "goods refused"), lines, "rrrrr"
    )
    for name, row in {**chosen, **({"largest profit": table.best} if profits else {})}.items():
        console.print(_in_words(row) if name.startswith("cutoff ") else f"{name}: {_in_words(row)}")


def _share(share: Range) -> str:
    return "?" if math.isnan(share.estimate) else f"{share.estimate:.1%}"


def _in_words(row: Cutoff) -> str:
    profit, brings = row.profit, ""
    if not math.isnan(profit.estimate):
        brings = f", profit {profit.estimate:,.2f} ({profit.low:,.2f}, {profit.high:,.2f})"
    refused = f"{show.percent(row.bads_refused)} of the bad and {show.percent(row.goods_refused)} of the good"
    return (
        f"cut-off {row.cutoff:.6g}, approval {show.percent(row.approval)}, bad rate {show.percent(row.bad_rate)}, "
        f"refused {refused}{brings}."
    )


# ---- fairness


@table_command
def fairness(
    model: RiskModel,
    request: TableRequest,
    by: list[str] | None = option(
        "The column that holds the groups; for numbers, give the bands: COLUMN=25,35,45. Repeatable, for "
        "intersections. Without it, every protected feature.",
        metavar="COLUMN",
    ),
    cutoff: CutoffOption = None,
    reference: str | None = option("The group to compare the others with; by default, the largest.", metavar="GROUP"),
    target: Column = None,
    level: Level = 0.95,
) -> Measured:
    """Compare groups: approval, adverse impact and, given outcomes, equal opportunity, calibration and AUC."""
    check_parameters("fairness", {"--cutoff": cutoff}, {"--cutoff": NOTHING | PROBABILITY})
    decided = model.cutoff if cutoff is None else cutoff
    if decided is None:
        raise DataError(f"fairness: {request.model} has no cut-off to decide by. Add --cutoff RISK.")
    schema = model.form_.schema
    name = target or schema.target
    named, bands = read_groups(by)
    columns = named or tuple(schema.protected)
    if not columns:
        raise DataError(f"fairness: {request.model} names no protected feature. Add --by COLUMN.")
    asked: dict[str | None, str] = {**dict.fromkeys(columns, "--by"), target: "--column"}
    rows = ScoredRows.read(request.data, [model], asked, request.missing, keep_if_present=name)
    outcomes = rows.outcomes(model.form_, name) if name in rows.columns.columns else None
    options: dict[str, Any] = {"adverse": schema.adverse, "reference": reference, "cutoff": decided, "level": level}
    reports = {
        " and ".join(group): compare_groups(
            outcomes, rows.risks[0], groups_by("fairness", rows.columns, group, bands, model.form_), **options
        )
        for group in ([named] if named else [(column,) for column in columns])
    }
    facts: dict[str, Any] = {"outcomes": outcomes is not None}
    if named:
        facts |= {"by": " and ".join(named), **reports[" and ".join(named)].to_dict()}
    else:
        facts["protected"] = {column: report.to_dict() for column, report in reports.items()}

    def table() -> dict[str, list[Any]]:
        parts = [{"by": [column] * len(report.groups), **report.columns()} for column, report in reports.items()]
        return {name: [cell for part in parts for cell in part[name]] for name in parts[0]}

    def show_all() -> None:
        for column, report in reports.items():
            _show_fairness(request.data, column, report, has_outcomes=outcomes is not None)

    return Measured(facts, table, show_all)


def _show_fairness(data: str, by: str, report: GroupReport, *, has_outcomes: bool) -> None:
    side = "below" if report.adverse == "positive" else "from"
    rows = sum(group.rows for group in report.groups)
    show.out().print(
        f"{data}: {rows:,} rows by {by}, approved {side} {report.cutoff:g}, compared with {report.reference!r}",
        style="bold",
    )
    groups = report.groups[:MOST_GROUPS]
    lines = [
        [
            g.group,
            show.rows(g.rows, g.small),
            show.percent(g.approval),
            show.ratio(g.impact),
            Text("below 4/5" if g.below_four_fifths else "", "red"),
        ]
        for g in groups
    ]
    show.print_table(("group", "rows", "approval", "adverse impact ratio", ""), lines, "prrrl")
    if has_outcomes:
        lines = [[g.group, show.percent(g.opportunity), show.percent(g.opportunity_difference, "+")] for g in groups]
        show.print_table(
            ("group", "approval", "difference"),
            lines,
            title="Equal opportunity: approval of those whose outcome was good",
        )
        lines = [[g.group, show.percent(g.base_rate), show.percent(g.gap, "+"), show.ratio(g.auc)] for g in groups]
        show.print_table(
            ("group", "base rate", "mean risk less base rate", "AUC"), lines, title="Calibration and ranking"
        )
    else:
        show.remark("No outcomes in the data (--column): no equal opportunity, calibration and AUC.")
    _count_more(len(report.groups))
    show.remark(f"In brackets: intervals of {report.level:.0%}. No row is left out.")
