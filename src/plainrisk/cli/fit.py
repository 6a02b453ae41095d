"""`plainrisk fit`: cross validate, fit, certify and write a model."""

from __future__ import annotations

import contextlib
import math
import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import typer

from plainrisk import cross_validate, make_classifier
from plainrisk.checks import NOTHING, check_parameters, whole, words
from plainrisk.cli import show, source, tables
from plainrisk.cli.annotate import About, Cutoff, Date, read_about
from plainrisk.cli.main import ExitCode
from plainrisk.cli.options import Data, Json, Missing, Positive, SchemaFile, Target
from plainrisk.data.fingerprint import fingerprint
from plainrisk.data.frame import as_frame
from plainrisk.errors import DataError, quoted
from plainrisk.model import CUTOFF
from plainrisk.models.arm import RIDGE
from plainrisk.models.pairs import suggest_pairs
from plainrisk.schema import label_of

__all__ = ["certified", "cross_validation", "facts", "fit"]

# Near EBM in accuracy, exact in probability, with no row clipped: docs/results/smooth.md has the figures.
DEFAULT_MODEL = "SmoothARM1"


def fit(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the model, .json.")],
    schema: SchemaFile = None,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help="SmoothARM1, BandARM1, DirectARM1, ARM1, ARM2, LinARM1, MixARM1, NNLR, MonoXGB ...",
            metavar="NAME",
        ),
    ] = DEFAULT_MODEL,
    target: Target = None,
    positive: Positive = None,
    ridge: Annotated[
        str | None,
        typer.Option("--ridge", metavar="auto|NUMBER", help="auto is 1/(2 rows), the default of all but NNLR (0)."),
    ] = None,
    max_bins: Annotated[
        int | None,
        typer.Option("--max-bins", min=1, help="Bins per continuous feature: 5 for steps, as many as count if smooth."),
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option("--pairs", metavar="auto|NUMBER", help="Add pairs of features: those with evidence, or the best."),
    ] = None,
    cv: Annotated[int, typer.Option("--cv", min=0, help="Folds of the cross validation; 0 for none.")] = 10,
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
    cutoff: Cutoff = None,
    about: About = None,
    date: Date = False,
    provenance: Annotated[
        bool,
        typer.Option(
            "--provenance",
            help="Keep in the file a fingerprint of the training rows, and the versions of Python and its packages.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Fit a model: cross validation figures, the solver's and the model's certificates, the model file."""
    tables.check_output(output, (".json",))
    check_parameters("fit", {"--cutoff": cutoff}, {"--cutoff": CUTOFF})
    texts = read_about(about, date)
    if stream and provenance:
        raise DataError("--provenance needs all rows at once for their fingerprint. Leave out --stream.")
    given = {"ridge": _ridge(ridge), "max_bins": max_bins, "pairs": _pairs(pairs)}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    make_classifier(model, **options)  # a wrong name or option is said before any data are read
    result: dict[str, Any] = {"data": data, "model": model, "file": str(output)}
    if stream:
        known = source.schema_to_stream(schema, target, positive)
        estimator = make_classifier(model, known, **options)
        _fit_stream(estimator, data, missing or ())
    else:
        rows = source.rows_to_fit(source.open_source(data, missing), schema, target, positive)
        known = rows.schema
        estimator = make_classifier(model, known, **options)
        if cv:
            with show.progress("Cross validation", cv) as bar:
                result["cv"] = cross_validation(estimator, rows, cv, seed, lambda *_: bar.advance())
        estimator.fit(rows.X, rows.y)
        result["pairs"] = _pair_facts(estimator, rows)
        if provenance:
            outcomes = np.asarray(rows.y == estimator.classes_[1], np.uint8)
            texts |= {"data": fingerprint(as_frame(rows.X), outcomes, known), "versions": _versions()}
    result |= {"target": known.target, **facts(estimator), **certified(estimator)}
    result |= {"cutoff": cutoff, "about": texts}
    _finish(result, estimator, output, json)


def _versions() -> str:
    """Return the versions of what a fit depends on, beside plainrisk, which every model file names."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    return f"python {platform.python_version()}, {packages}"


def _ridge(text: str | None) -> float | str | None:
    """Read --ridge: "auto", a number, or None where it was not given.

    >>> _ridge("auto"), _ridge("0.01"), _ridge(None)
    ('auto', 0.01, None)
    """
    if text is None:
        return None
    ridge: float | str = text
    with contextlib.suppress(ValueError):
        ridge = float(text)
    check_parameters("fit", {"--ridge": ridge}, {"--ridge": RIDGE})
    return ridge


def _pairs(text: str | None) -> int | str | None:
    """Read --pairs: "auto", a number, or None where it was not given."""
    pairs: Any = int(text) if text is not None and text.isdecimal() else text
    check_parameters("fit", {"--pairs": pairs}, {"--pairs": NOTHING | words("auto") | whole(1)})
    return None if pairs is None else pairs if pairs == "auto" else int(pairs)


def _pair_facts(estimator: Any, rows: source.Rows) -> dict[str, Any] | None:
    """Return which pairs of features are in a model of smooth shapes, or would help."""
    if not estimator.fit_record_.evidence or len(estimator.form_.parts) > 1:
        return None
    fitted = estimator.form_.parts[0].pairs
    if fitted:
        return {"fitted": [list(pair.features) for pair in fitted], "suggested": []}
    evident = [one for one in suggest_pairs(estimator, rows.X, rows.y) if one.is_evident]
    told = [{"features": list(one.features), "z": one.z, "gain": one.gain} for one in evident]
    return {"fitted": [], "suggested": told}


# ---- cross validation


def cross_validation(
    model: Any, rows: source.Rows, cv: int, seed: int, progress: Callable[[int, int], None]
) -> dict[str, Any]:
    """Return figures of a model on rows that it was not fitted to, as plain data.

    There are `folds` and `seed`; for each metric its mean and standard deviation over the folds and the figures; and
    `pooled_ece`, the calibration error of all held-out risks together. Where the log loss is infinite,
    `certain_and_wrong` says why.
    """
    try:
        found = cross_validate(model, rows.X, rows.y, cv=cv, seed=seed, progress=progress)
    except DataError as error:
        raise DataError(f"{error} Or leave out cross validation: --cv 0.") from None
    mean, sd, values = found.mean, found.sd, found.scores
    figures = {name: {"mean": mean[name], "sd": sd[name], "values": values[name].tolist()} for name in show.METRICS}
    result = {"folds": len(found.folds), "seed": seed, **figures, "pooled_ece": found.pooled["ece"]}
    return result if math.isfinite(mean["log_loss"]) else {**result, "certain_and_wrong": found.certain_and_wrong}


# ---- streams


def _fit_stream(estimator: Any, data: str, missing: Sequence[str]) -> None:
    """Fit to rows that are read in batches, with a bar that shows every pass."""
    from plainrisk.data import rows

    with show.progress("Reading rows") as bar:
        estimator.fit(rows.as_batches(source.scan_source(data, missing), progress=bar.move))


# ---- results


def facts(estimator: Any) -> dict[str, Any]:
    """Return what a model was fitted to, as plain data."""
    form, record = estimator.form_, estimator.fit_record_
    return {
        "rows": record.rows,
        "features": len(form.schema.features),
        "positive": form.classes[1],
        "base_rate": record.base_rate,
        "features_left": list(record.features_left),
        "evidence": msgspec.to_builtins(record.evidence),
    }


def certified(estimator: Any) -> dict[str, Any]:
    """Return what the solver and the fitted model certify, as plain data."""
    record = msgspec.to_builtins(estimator.fit_record_)
    fields = ("objective", "kkt", "iterations", "converged", "reason", "clipped")
    return {
        "parameters": record["parameters"],
        "solver": {name: record[name] for name in fields},
        "certificate": estimator.certify().to_dict(),
    }


def _finish(result: dict[str, Any], estimator: Any, output: Path, json: bool) -> None:
    """Write the model, unless it breaks a promise, and show what was found."""
    valid = result["certificate"]["valid"]
    if valid:
        estimator.save(output, cutoff=result["cutoff"], about=result["about"])
    show.result(result, json, _show)
    if not valid:
        show.error(f"the model does not keep what the schema states (BROKEN above), so {output} was not written.")
        raise typer.Exit(ExitCode.BROKEN_PROMISE)


def _show(result: dict[str, Any]) -> None:
    console = show.out()
    outcome = f"{result['target']} = {label_of(result['positive'])}"
    console.print(
        f"{result['model']} on {result['data']}: {result['rows']:,} rows, {result['features']} features, "
        f"{result['base_rate']:.1%} with {outcome}",
        style="bold",
    )
    if "cv" in result:
        cv = result["cv"]
        show.figures({result["model"]: cv})
        console.print(
            f"Mean ± standard deviation over {cv['folds']} stratified folds, seed {cv['seed']}. "
            f"ECE of all held-out risks together: {cv['pooled_ece']:.4f}.",
            style="dim",
        )
        if "certain_and_wrong" in cv:
            console.print(f"The log loss is infinite: {cv['certain_and_wrong']}.", style="dim")
    show.solver(result["solver"])
    for line in _findings(result):
        console.print(line)
    show.certificate(result["certificate"])
    if result["certificate"]["valid"]:
        show.hint(f"Wrote {result['file']}. Next: plainrisk score DATA --model {result['file']} -o risks.csv")


def _findings(result: dict[str, Any]) -> list[str]:
    """Say which features have left a model of smooth shapes, and which pairs are in it or would help."""
    if not result["evidence"]:
        return []
    left, pairs = result["features_left"], result.get("pairs")
    which = f": {quoted(left, 6)}" if left else ""
    lines = [f"{len(left)} of {result['features']} features left the model for want of evidence{which}."]
    if pairs is None:
        return lines
    if pairs["fitted"]:
        told = quoted([" × ".join(pair) for pair in pairs["fitted"]], 4)
        return [*lines, f"{len(pairs['fitted'])} pairs of features are in the model: {told}."]
    if not pairs["suggested"]:
        return [*lines, "No pair of features shows more than chance would."]
    best, gain = pairs["suggested"][0], sum(one["gain"] for one in pairs["suggested"])
    lines.append(
        f"{len(pairs['suggested'])} pairs of features would help, {' × '.join(best['features'])!r} most (about "
        f"{best['gain']:.4f} of log loss; all together at most {gain:.4f}): add --pairs auto."
    )
    return lines
