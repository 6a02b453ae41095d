"""`plainrisk demo`: the main job on data that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from plainrisk.cli import show
from plainrisk.cli.options import Json
from plainrisk.cli.source import Rows

__all__ = ["demo"]

FOLDS, SEED = 10, 0
SHOWN = {
    "Status of existing checking account": "11: below 0 DM, 12: below 200 DM, 13: 200 DM or more, 14: no account",
    "Duration in month": "",
    "Age in years": "",
}
_LARGEST = 7


def demo(
    folder: Annotated[
        Path, typer.Option("--folder", help="Where to write the models and the schema.")
    ] = Path("demo"),
    json: Json = False,
) -> None:
    """Fit, cross validate, certify and explain models on German credit; offline, in seconds."""
    from plainrisk.cli.source import open_source, rows_to_fit

    _make(folder)
    rows = rows_to_fit(open_source("german"), None, None, None)
    models, result = _fit_all(rows)
    example = _example(models["DirectARM1"], rows)
    files = {
        "schema": folder / "german.toml",
        **{name: folder / f"{name.lower()}.json" for name in ("ARM1", "ARM2")},
    }
    rows.schema.save(files["schema"])
    models["ARM1"].save(files["ARM1"])
    models["ARM2"].save(files["ARM2"])
    result |= {"applicant": example, "files": {name: str(path) for name, path in files.items()}}
    if json:
        show.print_json(result)
    else:
        _show(models, rows, result)


def _make(folder: Path) -> None:
    from plainrisk.errors import DataError

    if folder.exists() and not folder.is_dir():
        raise DataError(f"--folder {folder}: a file of this name is in the way.")
    folder.mkdir(parents=True, exist_ok=True)


def _fit_all(rows: Rows) -> tuple[dict[str, Any], dict[str, Any]]:
    from plainrisk.cli.fit import fit_and_certify
    from plainrisk.cli.folds import cross_validate
    from plainrisk.cli.models import make_model

    models = {name: make_model(name, rows.schema) for name in ("ARM1", "ARM2", "DirectARM1")}
    result: dict[str, Any] = {
        "data": "german",
        "rows": len(rows.bad),
        "features": len(rows.schema.features),
        "target": rows.schema.target,
        "base_rate": float(rows.bad.mean()),
        "models": {},
    }
    with show.progress("Fitting", len(models) * (FOLDS + 1)) as advance:
        for name, model in models.items():
            cv = cross_validate(model, rows, FOLDS, SEED, lambda: advance(1))
            result["models"][name] = {"cv": cv, **fit_and_certify(model, rows)}
            advance(1)
    return models, result


def _example(model: Any, rows: Rows) -> dict[str, Any]:
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


# ---- in words


def _show(models: dict[str, Any], rows: Rows, result: dict[str, Any]) -> None:
    console = show.out()
    console.print("plainrisk on German credit", style="bold")
    console.print(
        f"{result['rows']:,} loans with {result['features']} features; {result['base_rate']:.0%} went well. In these "
        "data the outcome that is predicted is the good one: a high probability is a good sign."
    )
    _show_figures(result)
    show.heading("What ARM1 learned: three of its features")
    console.print(
        "A score above 0 makes a good end likelier than for the average applicant (in log odds).", style="dim"
    )
    for name, legend in SHOWN.items():
        direction = rows.schema.features[name].direction
        promise = "" if direction == "none" else f" (must be {direction})"
        show.shape(f"{name}{promise}", models["ARM1"].form_.parts[0].shapes[name], "good")
        if legend:
            console.print(legend, style="dim")
    _show_promises(result)
    _show_example(result["applicant"], result["models"]["DirectARM1"])
    _show_next(result["files"])


def _show_figures(result: dict[str, Any]) -> None:
    from plainrisk.cli.folds import METRICS

    show.heading(f"How well do the models rank and predict? ({FOLDS}-fold cross validation, seed {SEED})")
    show.figures(
        {name: model["cv"] for name, model in result["models"].items() if name != "DirectARM1"}, METRICS
    )
    console = show.out()
    console.print(
        "ARM1 adds up one step function per feature. ARM2 first judges each subscale, then weighs them."
    )


def _show_promises(result: dict[str, Any]) -> None:
    show.heading("What is certain about them")
    console = show.out()
    for name in ("ARM1", "ARM2"):
        certificate, solver = result["models"][name]["certificate"], result["models"][name]["solver"]
        monotone = [c for c in certificate["checks"] if c["name"].startswith("monotone in ")]
        kept = [c for c in monotone if c["holds"]]
        verdict = "keeps every promise" if certificate["valid"] else "BREAKS A PROMISE"
        console.print(
            f"{name} {verdict}: it moves the right way in {len(kept)} of {len(monotone)} features with a direction, for "
            "every applicant there could be (proved over all levels, not sampled), and every probability lies in "
            f"[0, 1]. The solver's optimality conditions hold to {max(solver['kkt']):.0e}."
        )


def _show_example(example: dict[str, Any], model: dict[str, Any]) -> None:
    show.heading(f"One applicant (row {example['row']}), explained in plain probability")
    console = show.out()
    console.print(
        "DirectARM1 is the same model fitted as a line (cross-validated AUC "
        f"{model['cv']['auc']['mean']:.4f}), so each feature's part is a piece of the probability itself."
    )
    parts = sorted(example["contributions"], key=lambda part: -abs(part["contribution"]))
    largest = abs(parts[0]["contribution"])
    rows: list[list[str | Text]] = [["average applicant", "", f"{example['constant']:.1%}", ""]]
    for part in parts[:_LARGEST]:
        amount = part["contribution"]
        rows.append(
            [part["feature"], f"{part['value']:g}", f"{amount:+.1%}", show.signed_bar(amount, largest)]
        )
    rest = sum(part["contribution"] for part in parts[_LARGEST:])
    rows.append(
        [f"{len(parts) - _LARGEST} other features", "", f"{rest:+.1%}", show.signed_bar(rest, largest)]
    )
    rows.append([Text("probability of a good end", "bold"), "", Text(f"{example['total']:.1%}", "bold"), ""])
    show.print_table(("feature", "value", "part", "effect"), rows, numbers=("value", "part"))


def _show_next(files: dict[str, str]) -> None:
    show.heading("Look at, and try next")
    rows = [
        [files["schema"], "what is known of the features: edit it"],
        [f"{files['ARM1']}, {files['ARM2']}", "the models, as plain JSON"],
        ["plainrisk fit german --model DirectARM2 -o model.json", "fit another model"],
        [f"plainrisk score german --model {files['ARM1']} -o risks.csv", "score rows"],
        ["plainrisk schema infer YOUR.csv --target NAME -o my.toml", "start on your own data"],
    ]
    console = show.out()
    for what, why in rows:
        console.print(Text.assemble("  ", (what, "cyan"), f"\n      {why}"))
