"""`plainrisk certify` and `plainrisk drift`: does a model still hold, and have the applicants moved?"""

from __future__ import annotations

import math
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from plainrisk.cli import show, source, tables
from plainrisk.cli.main import ExitCode
from plainrisk.cli.options import Column, Conf, Data, Json, Master, Missing, ModelArgument, TableOutput
from plainrisk.cli.runner import RowReader
from plainrisk.data.remote import is_remote
from plainrisk.explain import Drift, Profile, recheck
from plainrisk.explain import drift as compare
from plainrisk.explain.smt import smt_claims
from plainrisk.files import write_text
from plainrisk.form import RiskForm, read_model
from plainrisk.model import load
from plainrisk.validate.counted import counted_profile

__all__ = ["certify", "drift"]


def certify(
    model: ModelArgument,
    thin: Annotated[
        float | None,
        typer.Option("--thin", metavar="ROWS", help="Note levels with fewer training rows than this; by default 30."),
    ] = None,
    checker: Annotated[
        Path | None,
        typer.Option("--checker", metavar="FILE", help="Write a script that checks model files without plainrisk."),
    ] = None,
    smt: Annotated[
        Path | None,
        typer.Option("--smt", metavar="FILE", help="Write the claims as SMT-LIB, for a solver such as z3."),
    ] = None,
    output: TableOutput = None,
    json: Json = False,
) -> None:
    """Certify a model file from its form alone, and compare with the certificate it holds; ends with 4 if one fails."""
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
    agrees = "The stored certificate says the same." if result["stored"] else "The file holds no certificate."
    console.print(agrees if not result["differences"] else "The stored certificate says otherwise:")
    for difference in result["differences"]:
        console.print(f"  {difference}")


def drift(
    model: ModelArgument,
    data: Data,
    old: Annotated[
        str | None,
        typer.Option(
            "--old",
            metavar="DATA",
            help="Rows to compare with; by default the training rows, whose counts the model keeps.",
        ),
    ] = None,
    output: TableOutput = None,
    target: Column = None,
    missing: Missing = None,
    master: Master = None,
    conf: Conf = None,
    json: Json = False,
) -> None:
    """Compare new rows with old ones: shifts of features, subscales and risk and, given outcomes, of performance."""
    tables.check_table(output)
    loaded = load(model)
    new_rows, old_rows = (
        None if rows is None else _profile(rows, loaded.form_, target, missing, master, conf) for rows in (data, old)
    )
    record = loaded.fit_record_
    shifts = compare(loaded.form_, new_rows, old_rows, record=record)
    if output is not None:
        import polars as pl

        tables.write_table(shifts.to_frame(pl.DataFrame(), levels=True).to_dict(as_series=False), output)
    result = {"model": str(model), "data": data, "old": old, **shifts.to_dict()}
    show.result(result, json, lambda _: _show_drift(shifts, None if record is None else record.base_rate))
    show.wrote(output)


def _profile(
    data: str,
    form: RiskForm,
    target: str | None,
    missing: list[str] | None,
    master: str | None,
    conf: list[str] | None,
) -> Profile:
    """Count the rows of a file batch by batch, or those of a table where they are, with outcomes if there are any."""
    profile, outcome = Profile(form), target or form.schema.target
    if is_remote(data):
        with show.progress("Starting Spark") as bar:
            stored = source.rows_elsewhere(data, missing, master, conf, bar.move)
            return counted_profile(form, stored, target or (outcome if outcome in stored.names else None))
    reader = RowReader(data, [form], missing, {target: "--column"} if target else None, keep_if_there=outcome)
    outcome_column = outcome if outcome in reader.keep else None
    reader.each(lambda batch: profile.add(batch, None if outcome_column is None else batch[outcome_column]))
    return profile


def _show_drift(found: Drift, trained_rate: float | None) -> None:
    console = show.out()
    console.print(f"{found.new_rows:,.0f} new rows against {found.old_rows:,.0f} old ones", style="bold")
    unit = "shift" if found.unit == "probability" else f"shift ({found.unit})"
    largest = max((f.psi for f in found.features), default=0.0)
    lines: list[list[str | Text]] = []
    for f in found.features:
        amount = f"{f.shift:+.2%}" if found.unit == "probability" else f"{f.shift:+.4f}"
        lines.append([f.feature, f"{f.psi:.4f}", show.size_word(f.size), amount, show.signed_bar(f.psi, largest, 8)])
    show.print_table(("feature", "psi", "", unit, "index"), lines, numbers=("psi", unit))
    if found.subscales:
        rows: list[list[str | Text]] = [
            [s.subscale, f"{s.psi:.4f}", show.size_word(s.size), f"{s.old_risk:.2%}", f"{s.new_risk:.2%}"]
            for s in found.subscales
        ]
        numbers = ("psi", "risk then", "risk now")
        show.print_table(("subscale", "psi", "", "risk then", "risk now"), rows, numbers=numbers)
    elif trained_rate is not None:
        console.print(
            f"Mean risk {found.new_risk:.2%}; of the training rows {trained_rate:.2%} had the positive outcome. --old "
            "tells the shift of the risk.",
            soft_wrap=True,
        )
    _show_performance(found)
    limits = found.limits
    console.print(
        f"psi: population stability index; from {limits.moderate:g} on a moderate shift, from {limits.large:g} on a "
        "large one.",
        style="dim",
    )


def _show_performance(found: Drift) -> None:
    """Print AUC and calibration then and now, of the samples whose outcomes are known."""
    named = {"then": found.old_performance, "now": found.new_performance}
    lines: list[list[str | Text]] = [
        [when, f"{one.rows:,}", f"{one.mean_risk:.2%}", show.percent(one.base_rate), show.ratio(one.auc)]
        for when, one in named.items()
        if one is not None
    ]
    if not lines:
        return
    header = ("performance", "rows", "mean risk", "base rate", "AUC")
    show.print_table(header, lines, numbers=header[1:])
    if found.auc_change is not None and found.gap_change is not None:
        auc = found.auc_change
        ends = "" if math.isnan(auc.low) else f" ({auc.low:+.4f}, {auc.high:+.4f})"
        gap = show.percent(found.gap_change, "+")
        show.out().print(f"AUC changed by {auc.estimate:+.4f}{ends}, mean risk less base rate by {gap}.")
