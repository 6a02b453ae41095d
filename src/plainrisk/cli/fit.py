"""`plainrisk fit`: cross validate, fit, certify and write a model."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import typer

from plainrisk import make_classifier
from plainrisk.checks import check_parameters, whole, words
from plainrisk.cli import show, source, tables
from plainrisk.cli.annotate import About, Cutoff, Date, read_about
from plainrisk.cli.main import ExitCode
from plainrisk.cli.options import (
    Column,
    Conf,
    Data,
    Json,
    Master,
    Missing,
    Positive,
    SchemaFile,
    Weight,
    option,
    switch,
)
from plainrisk.cli.validation import (
    Validation,
    show_challengers,
    show_cross_validation,
    show_paper_trees,
    show_prices,
    show_test,
)
from plainrisk.data.frame import as_frame
from plainrisk.data.remote import is_remote
from plainrisk.data.rows import StoredRows
from plainrisk.errors import DataError, quoted, warn
from plainrisk.explain import overview
from plainrisk.explain.outside import binding_levels
from plainrisk.fit.parameters import RIDGE
from plainrisk.form import RiskForm
from plainrisk.measure.evaluation import SUSPICIOUS_AUC, Evaluation
from plainrisk.model import CUTOFF
from plainrisk.models.arm import suggest_pairs
from plainrisk.schema import Schema, label_of
from plainrisk.schema.fingerprint import fingerprint
from plainrisk.text import as_number
from plainrisk.validate.challengers import Challengers, not_fitted
from plainrisk.validate.prices import Prices

__all__ = ["certified", "facts", "fit"]

# Near EBM in accuracy, exact in probability, with no row clipped: docs/results/smooth.md has the figures.
DEFAULT_MODEL = "SmoothARM1"


def fit(
    data: Data,
    output: Path = option("Where to write the model, a .json file.", ..., "--output", "-o"),
    schema: SchemaFile = None,
    model: list[str] | None = option(
        "The model to fit: SmoothARM1, the default, BandARM1, DirectARM1, ARM1, ARM2, LinARM1, "
        "CalibratedMixARM1, NNLR ... or the paper's boosted trees: 50 trees of depth 2 (XGB, MonoXGB, MixXGB, "
        "MixMonoXGB). "
        "Repeatable: the first is written, the others are compared with it.",
        metavar="NAME",
    ),
    target: Column = None,
    positive: Positive = None,
    ridge: str | None = option(
        "How strongly coefficients shrink toward 0: auto is 1/(2 rows), the default of all but NNLR (0).",
        metavar="auto|NUMBER",
    ),
    max_bins: int | None = option(
        "The most bins of a continuous feature; by default 5 for steps, and as many as the data support if smooth.",
        min=1,
    ),
    min_bin_rows: int | None = option(
        "The least number of training rows in a bin; by default 1% of the rows, at most 50.", min=1
    ),
    pairs: str | None = option(
        "Add pairs of features: auto adds those with evidence, a number adds that many of the best.",
        metavar="auto|NUMBER",
    ),
    cv: int | None = option(
        "The number of folds of the cross validation; 0 for none; by default 10, and none with --stream.", min=0
    ),
    group: str | None = option(
        "The column of groups, such as customers, whose rows stay in one fold.", metavar="COLUMN"
    ),
    time: str | None = option(
        "The column of time: folds are later rows, predicted from earlier ones.", metavar="COLUMN"
    ),
    challengers: bool = switch(
        "--challengers",
        "Compare with xgboost and EBM at their default settings, and logistic regression, on the same folds.",
    ),
    prices: bool = switch(
        "--prices",
        "Measure what each direction, each rule for empty and special fields, and having no pairs costs in "
        "accuracy: fits without each, on the same folds.",
    ),
    weight: Weight = None,
    test: str | None = option("Rows with outcomes to test the fitted models on.", metavar="DATA"),
    seed: int = option("The seed that shuffles the folds; the same seed gives the same folds.", 0, min=0),
    missing: Missing = None,
    stream: bool = switch(
        "--stream",
        "Read in batches: for data larger than memory, and for patterns such as 'loans/*.parquet'. Needs --schema.",
    ),
    master: Master = None,
    conf: Conf = None,
    cutoff: Cutoff = None,
    about: About = None,
    date: Date = False,
    provenance: bool = switch(
        "--provenance",
        "Keep in the file a fingerprint of the training rows, and the versions of Python and its packages.",
    ),
    json: Json = False,
) -> None:
    """Fit a model: figures by cross validation, the certificate, the model file."""
    tables.check_output(output, (".json",))
    check_parameters("fit", {"--cutoff": cutoff}, {"--cutoff": CUTOFF})
    texts = read_about(about, date)
    stream = stream or is_remote(data)
    if stream and provenance:
        raise DataError("--provenance needs all rows at once for their fingerprint. Leave out --stream.")
    given = {"ridge": _ridge(ridge), "max_bins": max_bins, "min_bin_rows": min_bin_rows, "pairs": _pairs(pairs)}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    names = tuple(dict.fromkeys(model or [DEFAULT_MODEL]))
    for name in names:
        make_classifier(name, **options)  # a wrong name or option is said before any data are read
    plan = Validation((0 if stream else 10) if cv is None else cv, seed, group, time, weight, test)
    for flag, wanted in (("--challengers", challengers), ("--prices", prices)):
        if wanted:
            plan.require_folds(flag, stream)
    if test not in (None, source.STDIN):
        source.scan_source(test, missing, {})  # a file that is not there is said before the fit
    result: dict[str, Any] = {"data": data, "model": names[0], "file": str(output)}
    if stream:
        plan.require_no_stream(len(names))
        known = source.schema_to_stream(schema, target, positive)
        models = {name: make_classifier(name, known, **options) for name in names}
        with source.stored_rows(data, missing, known.kinds, master, conf) as stored:
            result |= _fit_stored(models, stored, plan)
    else:
        rows = _rows(data, schema, target, positive, missing, plan)
        known = rows.schema
        models = {name: make_classifier(name, known, **options) for name in names}
        result |= _fit_all(models, rows, plan, challengers=challengers, prices=prices)
        if provenance:
            outcomes = np.asarray(rows.y == models[names[0]].positive_, np.uint8)
            texts |= {"data": fingerprint(as_frame(rows.X), outcomes, known), "versions": _versions()}
    source.warn_of_names(known)
    failed = [name for name, figures in result.get("models", {}).items() if "error" in figures]
    fitted = {name: model for name, model in models.items() if name not in failed}
    estimator, tested = models[names[0]], plan.evaluations(fitted, known, missing)
    result |= {"target": known.target, **facts(estimator), **certified(estimator)}
    result |= {"cutoff": cutoff, "about": texts, "test_data": test}
    _warn_of_suspicious(result, estimator, tested.get(names[0]))
    _finish(result, estimator, output, json, tested)


def _rows(
    data: str,
    schema: Path | None,
    target: str | None,
    positive: str | None,
    missing: list[str] | None,
    plan: Validation,
) -> source.Rows:
    """Read rows into memory by the schema that is stated, or by a draft."""
    stated = None if schema is None else Schema.load(schema)
    kinds = source.kinds_to_fit(stated, target, positive)
    texts = [plan.group] if plan.group is not None else []
    null_texts, dropped = source.missing_words(missing) if stated is None else ([], missing)
    opened = source.open_source(data, dropped, kinds, texts, drafting=stated is None)
    return source.rows_to_fit(opened, stated, target, positive, plan.columns(), null_texts)


def _fit_stored(models: dict[str, Any], rows: StoredRows, plan: Validation) -> dict[str, Any]:
    """Cross validate the one model if that is asked for, and fit it, both where the rows are."""
    ((name, model),) = models.items()
    figures = plan.cross_validated_where_they_are(model, rows) if plan.cv else None
    model.fit(rows, sample_weight=plan.weight)
    return {} if figures is None else {"cv": figures, "models": {name: {"cv": figures}}}


def _fit_all(
    models: dict[str, Any], rows: source.Rows, plan: Validation, *, challengers: bool, prices: bool
) -> dict[str, Any]:
    """Cross validate every model and fit the first; fit the others only if there is a test file.

    One of the others that cannot be fitted has an `error`, and the rest go on.
    """
    results: dict[str, Any] = {}
    per_model: dict[str, Any] = {name: {} for name in models}
    if plan.cv:
        with show.progress("Cross validation", plan.cv * len(models)) as bar:
            cvs = plan.cross_validated_all(models, rows, lambda *_: bar.advance())
        per_model = {n: {"error": cv} if isinstance(cv, str) else {"cv": plan.figures(cv)} for n, cv in cvs.items()}
        results |= {"cv": next(iter(per_model.values()))["cv"]}
        if challengers:
            results["challengers"] = plan.challenge(cvs, rows)
        if prices:
            results["prices"] = plan.prices(models, cvs, rows)
    first, *others = models
    models[first].fit(rows.X, rows.y, **plan.weights(rows))
    for name in others if plan.test is not None else ():
        if "error" in per_model[name]:
            continue
        try:
            models[name].fit(rows.X, rows.y, **plan.weights(rows))
        except Exception as error:
            per_model[name]["error"] = not_fitted(error)
    return {
        **results,
        **({"models": per_model} if any(per_model.values()) else {}),
        "pairs": _pair_facts(models[first], rows, plan),
    }


def _warn_of_suspicious(result: Mapping[str, Any], estimator: Any, tested: Evaluation | None) -> None:
    """Warn of a held-out AUC that is too good to be true, and name the feature to look at first."""
    held_out = {} if "cv" not in result else {"cross-validated": float(result["cv"]["auc"]["mean"])}
    if tested is not None:
        held_out["test"] = tested["auc"].estimate
    for which, auc in held_out.items():
        if auc > SUSPICIOUS_AUC:
            strongest = _strongest(estimator.form_)
            look = "" if strongest is None else f"; the strongest is {strongest!r}"
            warn(
                f"the {which} AUC of {auc:.4f} is suspicious: a feature may know the outcome{look}.",
            )
            return


def _strongest(form: RiskForm) -> str | None:
    """Return the feature that moves the risk most; None where the form does not determine it."""
    ranked = [one for one in overview(form).importance if one.feature is not None and one.mean == one.mean]
    return ranked[0].feature if ranked else None


def _versions() -> str:
    """Return the versions of the packages a fit depends on, except plainrisk, which every model file names."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    return f"python {platform.python_version()}, {packages}"


def _ridge(text: str | None) -> float | str | None:
    """Read --ridge: "auto", a number, or None where it was not given.

    >>> _ridge("auto"), _ridge("0.01"), _ridge(None)
    ('auto', 0.01, None)
    """
    if text is None:
        return None
    number = as_number(text)
    ridge = text if number is None else number
    check_parameters("fit", {"--ridge": ridge}, {"--ridge": RIDGE})
    return ridge


def _pairs(text: str | None) -> int | str | None:
    """Read --pairs: "auto", a number, or None if it is not given."""
    if text is None:
        return None
    pairs = int(text) if text.isdecimal() else text
    check_parameters("fit", {"--pairs": pairs}, {"--pairs": words("auto") | whole(1)})
    return pairs


def _pair_facts(estimator: Any, rows: source.Rows, plan: Validation) -> dict[str, Any] | None:
    """Return which pairs of features are in a model of smooth shapes, or would help."""
    if not estimator.fit_record_.evidence or len(estimator.form_.parts) > 1:
        return None
    fitted = estimator.form_.parts[0].pairs
    if fitted:
        return {"fitted": [list(pair.features) for pair in fitted], "suggested": []}
    evident = [pair for pair in suggest_pairs(estimator, rows.X, rows.y, **plan.weights(rows)) if pair.is_evident]
    suggestions = [{"features": list(pair.features), "z": pair.z, "gain": pair.gain} for pair in evident]
    return {"fitted": [], "suggested": suggestions}


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
        "binding": [vars(level) for level in binding_levels(form)],
    }


def certified(estimator: Any) -> dict[str, Any]:
    """Return the results of the solver and the fitted model, as plain data."""
    record = msgspec.to_builtins(estimator.fit_record_)
    fields = ("objective", "kkt", "iterations", "converged", "reason", "clipped", "regret")
    return {
        "parameters": record["parameters"],
        "solver": {name: record[name] for name in fields},
        "certificate": estimator.certify().to_dict(),
    }


def _finish(result: dict[str, Any], estimator: Any, output: Path, json: bool, tested: Mapping[str, Evaluation]) -> None:
    """Write the model, unless it fails its certificate, and show what was found."""
    for name, evaluation in tested.items():
        result.setdefault("models", {}).setdefault(name, {})["test"] = evaluation.to_dict()
    valid = result["certificate"]["valid"]
    if valid:
        estimator.save(output, cutoff=result["cutoff"], about=result["about"])
    beside: dict[str, Any] = {name: result.pop(name) for name in ("challengers", "prices") if name in result}
    everything = {**result, **{name: table.to_dict() for name, table in beside.items()}}
    show.result(everything, json, lambda _: _show(result, tested, **beside))
    if not valid:
        show.error(
            f"the model does not obey the schema (BROKEN above), so {output} was not written. Fit one that "
            "does, such as SmoothARM1 (of trees MonoXGB or MixMonoXGB), or take the directions out of the schema."
        )
        raise typer.Exit(ExitCode.FAILED_CERTIFICATE)


def _show(
    result: dict[str, Any],
    tested: Mapping[str, Evaluation],
    challengers: Challengers | None = None,
    prices: Prices | None = None,
) -> None:
    console = show.out()
    outcome = f"{result['target']} = {label_of(result['positive'])}"
    console.print(
        f"{result['model']} on {result['data']}: {result['rows']:,} rows, {result['features']} features, "
        f"{result['base_rate']:.1%} with {outcome}",
        style="bold",
    )
    if "cv" in result:
        show_cross_validation(result["models"])
    if challengers is not None:
        show_challengers(challengers)
    if prices is not None:
        show_prices(prices)
    if tested:
        show_test(result["test_data"], tested)
    for name, figures in result.get("models", {}).items():
        if "error" in figures:
            console.print(f"{name}: {figures['error']}", soft_wrap=True)
    show_paper_trees(result.get("models", [result["model"]]), hint=challengers is None)
    show.solver(result["solver"])
    for line in (*_findings(result), *_binding(result["binding"], hint=prices is None)):
        console.print(line)
    show.certificate(result["certificate"])
    if result["certificate"]["valid"]:
        show.hint(f"Wrote {result['file']}. Next: plainrisk score {result['file']} DATA -o risks.csv")


def _findings(result: dict[str, Any]) -> list[str]:
    """Return the features that a model of smooth shapes dropped, and the pairs that are in it or would help."""
    if not result["evidence"]:
        return []
    left, pairs = result["features_left"], result.get("pairs")
    lines = ["All features are used."]
    if left:
        weak = f"{len(left)} of {result['features']} features are not used, since the evidence for them is weak"
        lines = [f"{weak}: {quoted(left, 6)}."]
    if pairs is None:
        return lines
    if pairs["fitted"]:
        listed = quoted([" × ".join(pair) for pair in pairs["fitted"]], 4)
        return [*lines, f"Pairs of features in the model: {len(pairs['fitted'])}, {listed}."]
    if not pairs["suggested"]:
        return [*lines, "No pair of features has an effect beyond chance."]
    best, gain = pairs["suggested"][0], sum(one["gain"] for one in pairs["suggested"])
    lines.append(
        f"Pairs of features that would help: {len(pairs['suggested'])}, {' × '.join(best['features'])!r} most (about "
        f"{best['gain']:.4f} of log loss; all together at most {gain:.4f}): --pairs auto adds those that help beside "
        "the others."
    )
    return lines


def _binding(levels: Sequence[Mapping[str, Any]], hint: bool) -> list[str]:
    """Return one line on the empty and special fields that a rule bounds, and how to find its price."""
    if not levels:
        return []
    ends = {"not_better": "at the best measured level", "worst": "at the worst"}
    named = [f"{one['feature']!r} {one['level']} ({one['rows']:,.6g} rows, {ends[one['rule']]})" for one in levels]
    more = f" and {len(named) - 4} more" if len(named) > 4 else ""
    cost = " --prices says what that costs in accuracy." if hint else ""
    return [f"Rules for empty and special fields are binding: {', '.join(named[:4])}{more}.{cost}"]
