"""How `plainrisk fit` validates models: cross validation, and a test file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from plainrisk import CLASSIFIERS, cross_validate
from plainrisk.cli import show, source
from plainrisk.cli.measure import ScoredRows, show_evaluations
from plainrisk.data.rows import StoredRows
from plainrisk.errors import DataError
from plainrisk.measure.evaluation import Evaluation, evaluate_risk
from plainrisk.measure.predictions import check_column
from plainrisk.schema import Schema
from plainrisk.text import show_p
from plainrisk.validate.challengers import FIGURE_NAMES, RIVALS, Challengers, Line, challenge, not_fitted, with_ends
from plainrisk.validate.crossval import CrossValidation
from plainrisk.validate.prices import Prices, changes_of, price_changes

__all__ = [
    "Validation",
    "show_challengers",
    "show_cross_validation",
    "show_paper_trees",
    "show_prices",
    "show_test",
]


@dataclass(frozen=True)
class Validation:
    """What was asked for.

    Attributes
    ----------
    cv, seed : number of folds, 0 for none, and what shuffles them
    group, time, weight : columns: rows of a group stay together; later rows are held out; what rows weigh
    test : a file or data set with outcomes that no model was fitted to
    """

    cv: int = 10
    seed: int = 0
    group: str | None = None
    time: str | None = None
    weight: str | None = None
    test: str | None = None

    def __post_init__(self) -> None:
        if self.group is not None and self.time is not None:
            raise DataError("--group and --time cannot both be given.")

    def columns(self) -> dict[str, str]:
        """Return the columns that are not features, each with the option that names it."""
        named = {self.group: "--group", self.time: "--time", self.weight: "--weight"}
        return {name: option for name, option in named.items() if name is not None}

    def require_folds(self, option: str, stream: bool) -> None:
        """Refuse an option that compares models if there are no folds to compare them on."""
        if stream:
            raise DataError(f"{option} needs all rows at once, which --stream does not. Leave out one of the two.")
        if self.cv < 2:
            raise DataError(f"{option} compares on the folds of the cross validation. Add --cv 2, or more.")

    def require_no_stream(self, models: int) -> None:
        """Refuse what needs all rows at once."""
        if self.time is not None:
            raise DataError("--stream reads rows in batches and takes no --time. Leave out one of the two.")
        if self.group is not None and not self.cv:
            raise DataError("--group is for folds, and --stream has them with --cv. Add --cv 5, or leave out --group.")
        if models > 1:
            raise DataError("--stream takes only one --model. Compare several on a sample, without --stream.")

    def weights(self, rows: source.Rows) -> dict[str, Any]:
        """Return the weights of rows as an argument of `fit`."""
        if self.weight is None:
            return {}
        values = rows.aside[self.weight].to_numpy()
        return {"sample_weight": check_column(f"--weight {self.weight!r}", values, len(values))}

    def cross_validated(self, model: Any, rows: source.Rows, progress: Callable[[int, int], None]) -> CrossValidation:
        """Return a model's predictions for rows that it was not fitted to."""
        options = {
            "groups": None if self.group is None else rows.aside[self.group].to_numpy(),
            "time": None if self.time is None else rows.aside[self.time].to_numpy(),
            **self.weights(rows),
        }
        return cross_validate(model, rows.X, rows.y, cv=self.cv, seed=self.seed, progress=progress, **options)

    def cross_validated_where_they_are(self, model: Any, rows: StoredRows) -> dict[str, Any]:
        """Return the figures of a cross validation of rows that are not in memory."""
        cv = cross_validate(model, rows, None, self.cv, self.seed, self.group, sample_weight=self.weight)
        return {**self.figures(cv), "dealt_by": "hash"}

    def cross_validated_all(
        self, models: Mapping[str, Any], rows: source.Rows, progress: Callable[[int, int], None]
    ) -> dict[str, CrossValidation | str]:
        """Cross validate every model, or note why one is not fitted; the first, which is to be written, must be."""
        self.weights(rows)  # an error there is not one of the folds
        validations: dict[str, CrossValidation | str] = {}
        for name, model in models.items():
            try:
                validations[name] = self.cross_validated(model, rows, progress)
            except Exception as error:
                if validations:
                    validations[name] = not_fitted(error)
                elif isinstance(error, DataError):
                    raise DataError(f"{error} Or leave out cross validation: --cv 0.") from None
                else:
                    raise
        return validations

    def figures(self, cv: CrossValidation) -> dict[str, Any]:
        """Return the figures of a cross validation as plain data.

        There are `folds`, `seed` and how rows were split; for each metric its mean and standard deviation over the
        folds and the figures; and `pooled_ece`, the calibration error of all held-out risks together. Where the log
        loss is infinite, `certain_and_wrong` says why.
        """
        mean, sd, values = cv.mean, cv.sd, cv.scores
        figures = {name: {"mean": mean[name], "sd": sd[name], "values": values[name].tolist()} for name in show.METRICS}
        how = {"folds": len(cv.folds), "seed": self.seed, "group": self.group, "time": self.time}
        result = {**how, **figures, "pooled_ece": cv.pooled["ece"]}
        return {**result, "certain_and_wrong": cv.certain_and_wrong} if math.isinf(mean["log_loss"]) else result

    def challenge(self, ours: Mapping[str, CrossValidation | str], rows: source.Rows) -> Challengers:
        """Compare cross-validated models with challengers on the same folds."""
        with show.progress("Challengers", self.cv * len(RIVALS)) as bar:
            return challenge(
                ours,
                rows.schema,
                lambda rival, step: self.cross_validated(rival, rows, step),
                seed=self.seed,
                grouped=self.group is not None,
                progress=lambda *_: bar.advance(),
            )

    def prices(self, models: Mapping[str, Any], cvs: Mapping[str, Any], rows: source.Rows) -> Prices:
        """Price the rules of the first of models that were cross validated, on the same folds."""
        first = next(iter(models))
        changes = changes_of(models[first], rows.X)
        with show.progress("Prices of rules", self.cv * len(changes)) as bar:
            return price_changes(
                cvs[first],
                changes,
                lambda other, step: self.cross_validated(other, rows, step),
                seed=self.seed,
                grouped=self.group is not None,
                progress=lambda _, done, total: bar.move("Prices of rules", done, total),
            )

    def evaluations(
        self, models: Mapping[str, Any], schema: Schema, missing: list[str] | None
    ) -> dict[str, Evaluation]:
        """Measure fitted models on the test file, each compared with the first."""
        if self.test is None:
            return {}
        fitted, target = list(models.values()), schema.target or ""  # a schema that was fitted to names it
        rows = ScoredRows.read(self.test, fitted, {target: "--column", self.weight: "--weight"}, missing)
        outcomes, weight = rows.outcomes(fitted[0].form_, target), rows.column(self.weight)
        first, *_ = rows.risks
        return {
            name: evaluate_risk(
                outcomes, risk, against=None if risk is first else first, sample_weight=weight, seed=self.seed
            )
            for name, risk in zip(models, rows.risks, strict=True)
        }


def show_cross_validation(results: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the cross validation of several models in one table, with a note on its measures."""
    show.figures({name: result.get("cv") for name, result in results.items()})
    cv = next(iter(results.values()))["cv"]
    kind = "stratified folds" if "dealt_by" not in cv else "folds, by the rows' content"
    how = f"{cv['folds']} {kind}, seed {cv['seed']}"
    if cv["group"] is not None:
        how += f", rows of one {cv['group']!r} together"
    if cv["time"] is not None:
        how = f"{cv['folds']} runs of {cv['time']!r}, each held out from all earlier rows"
    show.remark(f"Mean ± standard deviation over {how}. ECE: of all held-out risks together.")
    for name, result in results.items():
        if "certain_and_wrong" in result.get("cv", {}):
            show.remark(f"The log loss of {name} is infinite: {result['cv']['certain_and_wrong']}.")


def show_paper_trees(names: Iterable[str], hint: bool) -> None:
    """Explain the paper's trees, which are weaker than their names suggest, and how to get full-size ones."""
    trees = [name for name in names if "XGB" in name]
    for name in trees:
        show.remark(f"{name}: {CLASSIFIERS[name].description}")
    if trees and hint:
        show.remark("For XGBoost at its default settings: --challengers.")


def show_challengers(challengers: Challengers) -> None:
    """Print models and challengers in one table, their differences in another, and which one is ahead."""
    console, first = show.out(), challengers.ours[0].name
    names = tuple(FIGURE_NAMES.values())
    title = f"Challengers: all {challengers.rows:,} held-out risks together, the same {challengers.folds} folds"
    header = ("model", *names, "seconds per fit")
    show.print_table(header, [_figures(line) for line in challengers], title=title)
    less = [[line.name, *(_ends(line, name) for name in FIGURE_NAMES)] for line in challengers if line.differences]
    if less:
        title = f"Less that of {first}: paired intervals of 95%"
        show.print_table(("model", *names), less, title=title)
    for line in challengers.rivals:
        show.remark(f"{line.name}: {line.note or f'{line.settings}.'}")
    for note in challengers.notes:
        show.remark(note)
    console.print(challengers.verdict, style="bold", soft_wrap=True)


def show_prices(prices: Prices) -> None:
    """Print the price of every rule, the highest first, and which prices are clear."""
    console = show.out()
    if prices.prices:
        title = f"Prices of rules: all {prices.rows:,} held-out risks together, the same {prices.folds} folds"
        lines = [
            [price.what, price.note or with_ends(price.log_loss), with_ends(price.auc), "yes" if price.clear else "no"]
            for price in prices
        ]
        show.print_table(("rule", "log loss", "AUC", "clear"), lines, "prrp", title)
        legend = "Positive: the rule costs accuracy (log loss added, AUC lost). Paired intervals of 95%."
        show.remark(legend)
    for note in prices.notes:
        show.remark(note)
    console.print(prices.verdict, style="bold", soft_wrap=True)


def _figures(line: Line) -> list[str]:
    if line.note:
        return [line.name, line.note.partition(":")[0], "", "", ""]
    return [line.name, *(f"{line.figures[name]:.4f}" for name in FIGURE_NAMES), f"{line.seconds:.2f}"]


def _ends(line: Line, figure: str) -> str:
    gap = line.differences[figure]
    return f"{gap.low:+.4f} to {gap.high:+.4f}" if math.isfinite(gap.low) else "?"


def show_test(test: str, evaluations: Mapping[str, Evaluation]) -> None:
    """Print how models do on a test file, and how the others differ from the first."""
    first = next(iter(evaluations))
    console, rows = show.out(), evaluations[first]
    console.print()
    rate = f"{rows.base_rate.estimate:.1%} with the positive outcome"
    console.print(f"Test file {test}: {rows.rows:,} rows, {rate}", style="bold")
    show_evaluations(evaluations)
    for name, evaluation in evaluations.items():
        if evaluation.against is not None:
            gap, p = evaluation.differences["auc"], show_p(evaluation.p_value)
            ends = f"({gap.low:+.4f}, {gap.high:+.4f})"
            show.remark(f"AUC of {name} less that of {first}: {gap.estimate:+.4f} {ends}, DeLong's p = {p}.")
        for note in evaluation.notes:
            if note.startswith(("The log loss", "Small")):
                show.remark(f"{name}: {note}")
