"""`plainrisk certify` and `plainrisk drift`: check a model again, and look for shifts of the applicants."""

from __future__ import annotations

import math
from importlib.resources import files
from pathlib import Path
from typing import Any

import typer

from plainrisk.cli import show, source, tables
from plainrisk.cli.main import ExitCode
from plainrisk.cli.options import Column, Conf, Json, Master, ModelArgument, TableOutput, option
from plainrisk.cli.runner import Measured, RowReader, TableRequest, table_command
from plainrisk.data.remote import is_remote
from plainrisk.explain import Drift, Profile, recheck
from plainrisk.explain import drift as compare
from plainrisk.explain.smt import smt_claims
from plainrisk.files import write_text
from plainrisk.form import RiskForm, read_model
from plainrisk.model import RiskModel
from plainrisk.validate.counted import counted_profile

__all__ = ["certify", "drift"]


def certify(
    model: ModelArgument,
    thin: float | None = option("Note levels with fewer training rows than this; by default 30.", metavar="ROWS"),
    checker: Path | None = option("Write a script that checks model files without plainrisk.", metavar="FILE"),
    smt: Path | None = option("Write the claims as SMT-LIB, for a solver such as z3.", metavar="FILE"),
    output: TableOutput = None,
    json: Json = False,
) -> None:
    """Certify a model file from its form alone, and compare with the stored one; exits with code 4 if one fails."""
    tables.check_table(output)
    content = read_model(model)
    recertified = recheck(content, thin)
    result: dict[str, Any] = {
        "model": str(model),
        "valid": recertified.valid,
        "stored": recertified.stored is not None,
        "differences": list(recertified.differences),
        "certificate": recertified.fresh.to_dict(),
    }
    if output is not None:
        checks = result["certificate"]["checks"]
        tables.write_table({name: [check[name] for check in checks] for name in checks[0]}, output)
    if checker is not None:
        write_text(checker, files("plainrisk.explain").joinpath("verify.py").read_text(encoding="utf-8"))
    if smt is not None:
        write_text(smt, smt_claims(content.form))
    show.result(result, json, _show_certificate)
    for path in (output, checker, smt):
        show.wrote(path)
    if not recertified.valid:
        raise typer.Exit(ExitCode.FAILED_CERTIFICATE)


def _show_certificate(result: dict[str, Any]) -> None:
    console = show.out()
    console.print(f"{result['model']}, form {result['certificate']['form_sha256'][:16]}…", style="bold")
    show.certificate(result["certificate"])
    agrees = "The stored certificate agrees." if result["stored"] else "The file holds no certificate."
    console.print(agrees if not result["differences"] else "The stored certificate differs:")
    for difference in result["differences"]:
        console.print(f"  {difference}")


@table_command
def drift(
    model: RiskModel,
    request: TableRequest,
    old: str | None = option(
        "Rows to compare with; by default the training rows, whose counts the model keeps.", metavar="DATA"
    ),
    target: Column = None,
    master: Master = None,
    conf: Conf = None,
) -> Measured:
    """Compare new rows with old ones: shifts of features, subscales and risk and, given outcomes, of performance."""
    new_rows, old_rows = (
        None if data is None else _profile(data, request.missing, model.form_, target, master, conf)
        for data in (request.data, old)
    )
    record = model.fit_record_
    shifts = compare(model.form_, new_rows, old_rows, record=record)

    def columns() -> dict[str, list[Any]]:
        import polars as pl

        table: dict[str, list[Any]] = shifts.to_frame(pl.DataFrame(), levels=True).to_dict(as_series=False)
        return table

    trained_rate = None if record is None else record.base_rate
    return Measured({"old": old, **shifts.to_dict()}, columns, lambda: _show_drift(shifts, trained_rate))


def _profile(
    data: str,
    missing: list[str] | None,
    form: RiskForm,
    target: str | None,
    master: str | None,
    conf: list[str] | None,
) -> Profile:
    """Count the rows of a file batch by batch, or those of a table where they are, with outcomes if there are any."""
    profile, outcome = Profile(form), target or form.schema.target
    if is_remote(data):
        with source.stored_rows(data, missing, None, master, conf) as stored:
            return counted_profile(form, stored, target or (outcome if outcome in stored.names else None))
    reader = RowReader(data, [form], missing, {target: "--column"} if target else None, keep_if_present=outcome)
    outcome_column = outcome if outcome in reader.keep else None
    reader.each(lambda batch: profile.add(batch, None if outcome_column is None else batch[outcome_column]))
    return profile


def _show_drift(drift: Drift, trained_rate: float | None) -> None:
    console, in_probability = show.out(), drift.unit == "probability"
    console.print(f"{drift.new_rows:,.0f} new rows against {drift.old_rows:,.0f} old ones", style="bold")
    unit = "shift" if in_probability else f"shift ({drift.unit})"
    largest = max((f.psi for f in drift.features), default=0.0)
    lines = [
        [
            f.feature,
            f"{f.psi:.4f}",
            show.size(f.size),
            f"{f.shift:+.2%}" if in_probability else f"{f.shift:+.4f}",
            show.signed_bar(f.psi, largest, 8),
        ]
        for f in drift.features
    ]
    show.print_table(("feature", "psi", "", unit, "index"), lines, "prprp")
    if drift.subscales:
        lines = [
            [s.subscale, f"{s.psi:.4f}", show.size(s.size), f"{s.old_risk:.2%}", f"{s.new_risk:.2%}"]
            for s in drift.subscales
        ]
        show.print_table(("subscale", "psi", "", "risk then", "risk now"), lines, "prprr")
    elif trained_rate is not None:
        console.print(
            f"Mean risk {drift.new_risk:.2%}; of the training rows {trained_rate:.2%} had the positive outcome. Add "
            "--old DATA to see the shift of the risk.",
            soft_wrap=True,
        )
    _show_performance(drift)
    limits = drift.limits
    show.remark(
        f"psi: population stability index; from {limits.moderate:g} on a moderate shift, from {limits.large:g} on a "
        "large one."
    )


def _show_performance(drift: Drift) -> None:
    """Print AUC and calibration then and now, of the samples whose outcomes are known."""
    samples = {"then": drift.old_performance, "now": drift.new_performance}
    lines = [
        [when, sample.rows, f"{sample.mean_risk:.2%}", show.percent(sample.base_rate), show.ratio(sample.auc)]
        for when, sample in samples.items()
        if sample is not None
    ]
    if not lines:
        return
    show.print_table(("performance", "rows", "mean risk", "base rate", "AUC"), lines)
    if drift.auc_change is not None and drift.gap_change is not None:
        auc = drift.auc_change
        ends = "" if math.isnan(auc.low) else f" ({auc.low:+.4f}, {auc.high:+.4f})"
        gap = show.percent(drift.gap_change, "+")
        show.out().print(f"AUC changed by {auc.estimate:+.4f}{ends}, mean risk less base rate by {gap}.")
