"""`plainrisk demo`: the main workflow on data that come with the package, in words and small tables."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from rich.text import Text

from plainrisk import load, make_classifier
from plainrisk.cli import show, source
from plainrisk.cli.explain import print_answers, print_explanation
from plainrisk.cli.fit import certified, facts
from plainrisk.cli.main import ExitCode
from plainrisk.cli.options import Json, option
from plainrisk.cli.source import Rows
from plainrisk.cli.validation import Validation
from plainrisk.errors import DataError, PlainriskWarning
from plainrisk.form.wording import outcome_words, say_levels

__all__ = ["demo"]

MODELS = ("SmoothARM1", "ARM1", "ARM2", "LinARM1", "MixLinARM1")
FILES = {"SmoothARM1": "smooth", "ARM2": "arm2"}
SHOWN = ("Status of existing checking account", "Duration in month", "Credit history")


def demo(
    folder: Path = option("The folder for the page, the models and the schema.", Path("demo")),
    json: Json = False,
) -> None:
    """Fit, cross validate, certify and explain models on German credit; offline, in seconds."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"--folder {folder}: a file of this name is in the way.")
    folder.mkdir(parents=True, exist_ok=True)
    rows = source.rows_to_fit(source.open_source("german"), None, None, None)
    models, result = _fit_all(rows)
    broken = [name for name, model in result["models"].items() if not model["certificate"]["valid"]]
    if broken:
        message = f"{', '.join(broken)} fails its certificate, so nothing was written. Please report this."
        show.fail("FailedCertificate", message, ExitCode.FAILED_CERTIFICATE, json)
    decision = _Decision(models["SmoothARM1"], rows)
    result |= decision.to_dict()
    result["files"] = _save(models, rows, folder)
    show.result(result, json, lambda _: _tell(models, rows, result, decision))


def _fit_all(rows: Rows) -> tuple[dict[str, Any], dict[str, Any]]:
    models = {name: make_classifier(name, rows.schema) for name in MODELS}
    result: dict[str, Any] = {"data": "german", "models": {}}
    plan = Validation(cv=10)
    with show.progress("Fitting", len(models) * (plan.cv + 1)) as bar, warnings.catch_warnings():
        # The text gives the number of clipped rows.
        warnings.filterwarnings("ignore", ".*the line is cut off", PlainriskWarning)
        for name, model in models.items():
            cv = plan.figures(plan.cross_validated(model, rows, lambda *_: bar.advance()))
            result["models"][name] = {"cv": cv, **certified(model.fit(rows.X, rows.y))}
            bar.advance()
    return models, {**result, **facts(models["SmoothARM1"])}


class _Decision:
    """The first applicant with a poor chance: explained, refused, and shown a way to approval."""

    def __init__(self, model: Any, rows: Rows) -> None:
        import numpy as np

        everybody = model.explain(rows.X)
        self.row = int(np.argmax(model.decide(rows.X).refused & ~everybody.bends))
        applicant = rows.X[self.row]
        self.explanation = model.explain(applicant)
        self.form = model.form_
        # A level held up as an example has this many training rows.
        self.decided = model.decide(applicant, min_rows=10)
        self.way = model.what_if(applicant, answers=2, cost="features", min_rows=10)

    def to_dict(self) -> dict[str, Any]:
        decision = {**self.decided.to_dict(0), "letter": self.decided.letter(0), "what_if": self.way.to_dict()}
        return {"applicant": {"row": self.row, **self.explanation.to_dict(0)}, "decision": decision}


def _save(models: dict[str, Any], rows: Rows, folder: Path) -> dict[str, str]:
    import polars as pl

    files = {"schema": str(folder / "german.toml")}
    rows.schema.save(files["schema"])
    for name in FILES:
        files[name] = str(folder / f"{FILES[name]}.json")
        models[name].save(files[name], about={"name": f"German credit, {name}"})
    files["page"] = str(folder / "german.html")
    sample = rows.X.with_columns(pl.Series(rows.schema.target, rows.y))
    load(files["SmoothARM1"]).report(files["page"], sample, title="German credit")
    return files


# ---- in words


def _tell(models: dict[str, Any], rows: Rows, result: dict[str, Any], decision: _Decision) -> None:
    """Print the whole demonstration."""
    console = show.out()
    console.print("plainrisk on German credit", style="bold underline")
    console.print(
        f"{result['rows']:,} loans with {result['features']} features; {result['base_rate']:.0%} of them "
        "ended well. These data predict the good outcome: a high probability is a good sign."
    )
    _tell_figures(result)
    _tell_shapes(models["SmoothARM1"], rows)
    _tell_certificate(result)
    _tell_applicant(decision)
    _tell_decision(decision)
    _tell_next(result["files"])


def _tell_figures(result: dict[str, Any]) -> None:
    show.heading("How good are the models?")
    show.out().print(
        "SmoothARM1, the default, adds up one shape per feature, smoothed as far as the evidence supports, and "
        "replaces the sigmoid by a line of a few pieces. ARM1 has steps of a few bins. ARM2 judges each subscale by "
        "itself, then weights them. LinARM1 is ARM1 with the best single line; MixLinARM1 pools one such model per "
        "subscale. "
        f"Mean ± standard deviation over {result['models']['ARM1']['cv']['folds']} stratified folds:"
    )
    show.figures({name: model["cv"] for name, model in result["models"].items()})


def _tell_shapes(model: Any, rows: Rows) -> None:
    show.heading("What did SmoothARM1 learn? Three of its features")
    console = show.out()
    left, n = len(model.fit_record_.features_left), len(rows.schema.features)
    stay = (
        f"{left} of {n} features are not used, since the evidence for them is weak."
        if left
        else f"All {n} features are used."
    )
    console.print(
        f"{stay} Points say how far each level moves the probability of a good end for the typical applicant.",
    )
    overview = model.overview()
    for name in SHOWN:
        feature = rows.schema.features[name]
        kind = feature.kind if feature.sign == 0 else f"{feature.direction}, by the schema"
        levels = say_levels(feature, model.form_.parts[0].shapes[name].levels)
        show.shape(f"{feature.title(name)} ({kind})", levels, overview.shape(name), "good")


def _tell_certificate(result: dict[str, Any]) -> None:
    show.heading("What is proved about them?")
    show.out().print(
        "Every model passes its certificate: what it claims is proved for every possible applicant. SmoothARM1's:"
    )
    show.certificate(result["models"]["SmoothARM1"]["certificate"])
    show.solver(result["models"]["SmoothARM1"]["solver"])


def _tell_applicant(decision: _Decision) -> None:
    show.heading("Why this probability?")
    outcome = outcome_words(decision.form.schema)
    show.out().print(
        f"Compared with the typical applicant: each line is a piece of the probability that {outcome}, and the pieces "
        "add up."
    )
    print_explanation(decision.explanation, f"Applicant {decision.row}", decision.form)


def _tell_decision(decision: _Decision) -> None:
    console = show.out()
    show.heading("Why was the loan refused, and what would change that?")
    schema = decision.form.schema
    protected = ", ".join(schema.title(name) for name in schema.protected)
    console.print(
        f"At least {decision.decided.cutoff:.0%} is needed, so this applicant is refused. These are protected, so "
        f"they are never a reason and nobody is advised to change them: {protected}. The letter:"
    )
    console.print()
    console.print(decision.decided.letter(0).strip())
    console.print()
    console.print("The smallest changes that would lead to approval, proved over all combinations of changes:")
    print_answers(decision.way, f"Applicant {decision.row}", decision.form)


def _tell_next(files: dict[str, str]) -> None:
    show.heading("What to look at and what to try")
    steps = {
        "open in a browser": f"{files['page']}: the model to see and try, in one file",
        "models, plain JSON": f"{files['SmoothARM1']}, {files['ARM2']}",
        "schema, to edit": files["schema"],
        "another model": "plainrisk fit german --model DirectARM1 -o model.json",
        "explain one": f"plainrisk explain {files['SmoothARM1']} german --row 4",
        "score rows": f"plainrisk score {files['SmoothARM1']} german -o risks.csv",
        "your own data": "plainrisk schema infer YOUR.csv --column NAME -o my.toml",
        "all commands": "plainrisk --help",
    }
    for why, what in steps.items():
        show.out().print(Text.assemble(f"{why:<20}", (what, "cyan")), soft_wrap=True)
