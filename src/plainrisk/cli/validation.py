"""How `plainrisk fit` validates models: cross validation, and a test file."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from plainrisk import cross_validate
from plainrisk.cli import show, source
from plainrisk.cli.measure import ScoredRows, show_evaluations
from plainrisk.errors import DataError
from plainrisk.measure.evaluation import Evaluation, evaluate_risk
from plainrisk.measure.predictions import check_column
from plainrisk.measure.tables import show_p
from plainrisk.schema import Schema

__all__ = ["Validation", "show_cross_validation", "show_test"]


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
        """Return the columns that are no features, each with its option."""
        named = {self.group: "--group", self.time: "--time", self.weight: "--weight"}
        return {name: option for name, option in named.items() if name is not None}

    def require_no_stream(self, models: int) -> None:
        """Refuse what needs all rows at once."""
        if self.columns():
            option = next(iter(self.columns().values()))
            raise DataError(f"--stream reads rows in batches and takes no {option}. Leave out one of the two.")
        if models > 1:
            raise DataError("--stream takes only one --model: without cross validation there is nothing to compare.")

    def weights(self, rows: source.Rows) -> dict[str, Any]:
        """Return the weights of rows as an argument of `fit`."""
        if self.weight is None:
            return {}
        values = rows.aside[self.weight].to_numpy()
        return {"sample_weight": check_column(f"--weight {self.weight!r}", values, len(values))}

    def cross_validation(self, model: Any, rows: source.Rows, progress: Callable[[int, int], None]) -> dict[str, Any]:
        """Return figures of a model on rows that it was not fitted to, as plain data.

        There are `folds`, `seed` and how rows were split; for each metric its mean and standard deviation over the
        folds and the figures; and `pooled_ece`, the calibration error of all held-out risks together. Where the log
        loss is infinite, `certain_and_wrong` says why.
        """
        weights = self.weights(rows)  # an error there is not one of the folds
        options = {
            "groups": None if self.group is None else rows.aside[self.group].to_numpy(),
            "time": None if self.time is None else rows.aside[self.time].to_numpy(),
            **weights,
        }
        try:
            found = cross_validate(model, rows.X, rows.y, cv=self.cv, seed=self.seed, progress=progress, **options)
        except DataError as error:
            raise DataError(f"{error} Or leave out cross validation: --cv 0.") from None
        mean, sd, values = found.mean, found.sd, found.scores
        figures = {name: {"mean": mean[name], "sd": sd[name], "values": values[name].tolist()} for name in show.METRICS}
        how = {"folds": len(found.folds), "seed": self.seed, "group": self.group, "time": self.time}
        result = {**how, **figures, "pooled_ece": found.pooled["ece"]}
        return {**result, "certain_and_wrong": found.certain_and_wrong} if math.isinf(mean["log_loss"]) else result

    def evaluations(
        self, models: Mapping[str, Any], schema: Schema, missing: list[str] | None
    ) -> dict[str, Evaluation]:
        """Measure fitted models on the test file, each compared with the first."""
        if self.test is None:
            return {}
        fitted, target = list(models.values()), schema.target or ""  # a schema that was fitted to names it
        rows = ScoredRows.read(self.test, fitted, {target: "--target", self.weight: "--weight"}, missing)
        outcomes, weight = rows.outcomes(fitted[0].form_, target), rows.column(self.weight)
        first, *_ = rows.risks
        return {
            name: evaluate_risk(
                outcomes, risk, against=None if risk is first else first, sample_weight=weight, seed=self.seed
            )
            for name, risk in zip(models, rows.risks, strict=True)
        }


def show_cross_validation(found: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the cross validation of some models in one table, and what its figures are."""
    show.figures(found)
    console, cv = show.out(), next(iter(found.values()))
    how = f"{cv['folds']} stratified folds, seed {cv['seed']}"
    if cv["group"] is not None:
        how += f", rows of one {cv['group']!r} together"
    if cv["time"] is not None:
        how = f"{cv['folds']} runs of {cv['time']!r}, each held out from all earlier rows"
    console.print(
        f"Mean ± standard deviation over {how}. ECE: of all held-out risks together.", style="dim", soft_wrap=True
    )
    for name, one in found.items():
        if "certain_and_wrong" in one:
            console.print(f"The log loss of {name} is infinite: {one['certain_and_wrong']}.", style="dim")


def show_test(test: str, found: Mapping[str, Evaluation]) -> None:
    """Print how models do on a test file, and how the others differ from the first."""
    first = next(iter(found))
    console, rows = show.out(), found[first]
    console.print()
    rate = f"{rows.base_rate.estimate:.1%} with the positive outcome"
    console.print(f"Test file {test}: {rows.rows:,} rows, {rate}", style="bold")
    show_evaluations(found)
    for name, one in found.items():
        if one.against is not None:
            gap = one.differences["auc"]
            ends = f"({gap.low:+.4f}, {gap.high:+.4f})"
            console.print(
                f"AUC of {name} less that of {first}: {gap.estimate:+.4f} {ends}, DeLong's p = {show_p(one.p_value)}.",
                style="dim",
            )
        for note in one.notes:
            if note.startswith(("The log loss", "Small")):
                console.print(f"{name}: {note}", style="dim")
