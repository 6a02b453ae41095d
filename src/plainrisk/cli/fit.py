"""`plainrisk fit`: cross validate, fit, certify and write a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from plainrisk.cli import show
from plainrisk.cli.errors import BROKEN_PROMISE
from plainrisk.cli.models import DEFAULT_MODEL
from plainrisk.cli.options import Data, Json, Missing, Positive, SchemaFile, Target
from plainrisk.cli.source import Rows

__all__ = ["certified", "facts", "fit", "fit_and_certify"]


def fit(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the model, .json.")],
    schema: SchemaFile = None,
    model: Annotated[
        str,
        typer.Option(
            "--model", help="BandARM1, DirectARM1, ARM1, ARM2, LinARM1, MixARM1, NNLR, MonoXGB ...", metavar="NAME"
        ),
    ] = DEFAULT_MODEL,
    target: Target = None,
    positive: Positive = None,
    ridge: Annotated[
        str | None,
        typer.Option(
            "--ridge", metavar="auto|cv|NUMBER", help="auto is 1/(2 rows), the default of all but NNLR (0); cv chooses."
        ),
    ] = None,
    max_bins: Annotated[
        int | None, typer.Option("--max-bins", min=1, help="Bins per continuous feature, 5 unless told.")
    ] = None,
    folds: Annotated[int, typer.Option("--folds", min=2, help="Folds of the cross validation.")] = 10,
    no_cv: Annotated[bool, typer.Option("--no-cv", help="Fit without cross validation.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Shuffles the folds.")] = 0,
    missing: Missing = None,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Read in batches: for data larger than memory, and for patterns such as 'loans/*.parquet'. "
            "Needs --schema; without cross validation.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Fit a model: cross validation figures, the solver's and the model's certificates, the model file."""
    from plainrisk.cli.models import check_model, make_model, parse_ridge
    from plainrisk.cli.source import open_source, rows_to_fit
    from plainrisk.cli.streamed import fit_stream, stream_schema
    from plainrisk.cli.tables import check_output

    check_output(output, (".json",))
    check_model(model)
    penalty = parse_ridge(ridge)
    result: dict[str, Any] = {"data": data, "model": model, "file": str(output)}
    if stream:
        known = stream_schema(schema, target, positive)
        estimator = make_model(model, known, ridge=penalty, max_bins=max_bins)
        result |= fit_stream(estimator, data, known, missing or ())
    else:
        rows = rows_to_fit(open_source(data, missing), schema, target, positive)
        estimator = make_model(model, rows.schema, ridge=penalty, max_bins=max_bins)
        result |= facts(rows)
        if not no_cv:
            result["cv"] = _cross_validate(estimator, rows, folds, seed)
        estimator.fit(rows.X, rows.y)
    result |= certified(estimator)
    _finish(result, estimator, output, json)


def _finish(result: dict[str, Any], estimator: Any, output: Path, json: bool) -> None:
    """Write the model, unless it breaks a promise, and show what was found."""
    valid = result["certificate"]["valid"]
    if valid:
        estimator.save(output)
    if json:
        show.print_json(result)
    else:
        _show(result)
    if not valid:
        show.error(f"the model does not keep what the schema states (BROKEN above), so {output} was not written.")
        raise typer.Exit(BROKEN_PROMISE)


def fit_and_certify(estimator: Any, rows: Rows) -> dict[str, Any]:
    """Fit on all rows and return what the solver and the model certify, as plain data."""
    return certified(estimator.fit(rows.X, rows.y))


def certified(estimator: Any) -> dict[str, Any]:
    """Return what the solver and the fitted model certify, as plain data."""
    import msgspec

    record = msgspec.to_builtins(estimator.fit_record_)
    fields = ("objective", "kkt", "iterations", "converged", "reason", "clipped")
    return {
        "parameters": record["parameters"],
        "solver": {name: record[name] for name in fields},
        "certificate": estimator.certify().to_dict(),
    }


def facts(rows: Rows) -> dict[str, Any]:
    """Return what there is to fit, as plain data."""
    return {
        "rows": len(rows.bad),
        "features": len(rows.schema.features),
        "target": rows.schema.target,
        "positive": rows.schema.positive,
        "base_rate": float(rows.bad.mean()),
    }


def _cross_validate(estimator: Any, rows: Rows, folds: int, seed: int) -> dict[str, Any]:
    from plainrisk.cli.folds import check_folds, cross_validate

    check_folds(rows, folds)
    with show.progress("Cross validation", folds) as advance:
        return cross_validate(estimator, rows, folds, seed, lambda: advance(1))


def _show(result: dict[str, Any]) -> None:
    from plainrisk.cli.folds import METRICS
    from plainrisk.schema import label_of

    console = show.out()
    outcome = f"{result['target']} = {label_of(result['positive'])}"
    console.print(
        f"{result['model']} on {result['data']}: {result['rows']:,} rows, {result['features']} features, "
        f"{result['base_rate']:.1%} with {outcome}",
        style="bold",
    )
    if "cv" in result:
        cv = result["cv"]
        show.figures({result["model"]: cv}, METRICS)
        console.print(f"Mean ± standard deviation over {cv['folds']} stratified folds, seed {cv['seed']}.", style="dim")
        if cv["log_loss"]["mean"] == float("inf"):
            console.print("The log loss is infinite: a prediction of exactly 0 or 1 was wrong.", style="dim")
    show.solver(result["solver"])
    show.certificate(result["certificate"])
    if result["certificate"]["valid"]:
        show.hint(f"Wrote {result['file']}. Next: plainrisk score DATA --model {result['file']} -o risks.csv")
