"""`plainrisk demo`: the main job on data that come with the package."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from plainrisk.cli import show
from plainrisk.cli.errors import BROKEN_PROMISE
from plainrisk.cli.options import Json
from plainrisk.cli.source import Rows

__all__ = ["demo"]

FOLDS, SEED = 10, 0


def demo(
    folder: Annotated[Path, typer.Option("--folder", help="Where to write the models and the schema.")] = Path("demo"),
    json: Json = False,
) -> None:
    """Fit, cross validate, certify and explain models on German credit; offline, in seconds."""
    from plainrisk.cli.demo_decision import decide
    from plainrisk.cli.demo_text import tell
    from plainrisk.cli.source import open_source, rows_to_fit

    _make(folder)
    rows = rows_to_fit(open_source("german"), None, None, None)
    models, result = _fit_all(rows)
    broken = [name for name, model in result["models"].items() if not model["certificate"]["valid"]]
    if broken:
        show.error(f"{', '.join(broken)} breaks a promise, so nothing was written. Please report this.")
        raise typer.Exit(BROKEN_PROMISE)
    result["step"] = _same_step(models["ARM1"], models["LinARM1"], rows)
    result["applicant"] = _applicant(models["DirectARM1"], rows)
    result["decision"] = decide(models["DirectARM1"], rows, result["applicant"]["row"])
    result["files"] = _save(models, rows, folder)
    if json:
        show.print_json(result)
    else:
        tell(models, rows, result)


def _make(folder: Path) -> None:
    from plainrisk.errors import DataError

    if folder.exists() and not folder.is_dir():
        raise DataError(f"--folder {folder}: a file of this name is in the way.")
    folder.mkdir(parents=True, exist_ok=True)


def _fit_all(rows: Rows) -> tuple[dict[str, Any], dict[str, Any]]:
    from plainrisk.cli.fit import facts, fit_and_certify
    from plainrisk.cli.folds import cross_validate
    from plainrisk.cli.models import make_model
    from plainrisk.errors import PlainriskWarning

    models = {name: make_model(name, rows.schema) for name in ("ARM1", "ARM2", "LinARM1", "MixLinARM1", "DirectARM1")}
    result: dict[str, Any] = {"data": "german", **facts(rows), "models": {}}
    with show.progress("Fitting", len(models) * (FOLDS + 1)) as advance, warnings.catch_warnings():
        # The text says how many rows are cut off.
        warnings.filterwarnings("ignore", ".*the line is cut off", PlainriskWarning)
        for name, model in models.items():
            cv = cross_validate(model, rows, FOLDS, SEED, lambda: advance(1))
            result["models"][name] = {"cv": cv, **fit_and_certify(model, rows)}
            advance(1)
    return models, result


def _same_step(logistic: Any, linear: Any, rows: Rows) -> dict[str, Any]:
    """Shorten the loans of two people by the same step, and see what each model makes of it."""
    import numpy as np
    import polars as pl

    name, before, after = "Duration in month", 24, 12
    there = rows.X.with_columns(pl.lit(before).cast(rows.X[name].dtype).alias(name))
    then = rows.X.with_columns(pl.lit(after).cast(rows.X[name].dtype).alias(name))
    risks = {
        label: np.column_stack([model.predict_proba(side)[:, 1] for side in (there, then)])
        for label, model in (("ARM1", logistic), ("LinARM1", linear))
    }
    # Real people with this duration, one near even odds and one safe, neither cut off by the line.
    usable = (
        (rows.X[name].to_numpy() == before) & (risks["LinARM1"] > 0).all(axis=1) & (risks["LinARM1"] < 1).all(axis=1)
    )
    start = np.where(usable, risks["ARM1"][:, 0], np.nan)
    people = [int(np.nanargmin(np.abs(start - wanted))) for wanted in (0.5, 0.85)]
    moves = {label: [[float(p) for p in both[row]] for row in people] for label, both in risks.items()}
    return {"feature": name, "from": before, "to": after, "people": people, "models": moves}


def _applicant(model: Any, rows: Rows) -> dict[str, Any]:
    """Explain the first applicant with a poor chance that is not clipped."""
    import numpy as np

    explained = model.explain(rows.X)
    row = int(np.argmax((explained.risk < 0.5) & (explained.clipping == 0)))
    return {
        "row": row,
        "risk": float(explained.risk[row]),
        "constant": float(explained.constant[row]),
        "contributions": [
            {"feature": name, "value": rows.X[name][row], "contribution": float(part)}
            for name, part in zip(explained.features, explained.contributions[row], strict=True)
        ],
        "total": float(explained.total[row]),
    }


def _save(models: dict[str, Any], rows: Rows, folder: Path) -> dict[str, str]:
    schema = folder / "german.toml"
    rows.schema.save(schema)
    files = {"schema": str(schema)}
    for name in ("ARM1", "ARM2"):
        files[name] = str(folder / f"{name.lower()}.json")
        models[name].save(files[name])
    return files
