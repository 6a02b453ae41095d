"""The commands by name: where each is, and its line of the help; a command is imported when it is run."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

import typer

from plainrisk.errors import MissingExtraError

__all__ = [
    "COMMANDS",
    "EXAMPLES",
    "LAB",
    "LINES",
    "PANELS",
    "START",
    "VALUES",
    "added_lists",
    "load_command",
    "name_values",
]

# The commands by what they are for, in the order of work.
PANELS = {
    "Data": ("data", "schema"),
    "Fit": ("demo", "fit"),
    "Explain": ("explain", "what-if", "bins", "diff", "scorecard"),
    "Decide": ("cutoffs", "annotate", "score", "reasons"),
    "Validate": (
        *("evaluate", "fairness", "certify", "drift", "periods", "quality", "stress", "weak-spots"),
        *("stability", "overrides", "monitor"),
    ),
    "Deploy": ("report", "document", "export", "serve", "audit", "sign", "verify"),
}
# By the module beside this one and the name in it: a function, or a group of commands.
COMMANDS = {
    "data": ("data", "data_app"),
    "schema": ("data", "schema_app"),
    "demo": ("demo", "demo"),
    "fit": ("fit", "fit"),
    "explain": ("explain", "explain"),
    "what-if": ("explain", "what_if"),
    "bins": ("bins", "bins"),
    "diff": ("bins", "diff"),
    "scorecard": ("scorecard", "scorecard"),
    "cutoffs": ("measure", "cutoffs"),
    "annotate": ("annotate", "annotate"),
    "score": ("explain", "score"),
    "reasons": ("explain", "reasons"),
    "evaluate": ("measure", "evaluate"),
    "fairness": ("measure", "fairness"),
    "certify": ("monitor", "certify"),
    "drift": ("monitor", "drift"),
    "periods": ("battery", "periods"),
    "quality": ("battery", "quality"),
    "stress": ("battery", "stress"),
    "weak-spots": ("battery", "weak_spots"),
    "stability": ("battery", "stability"),
    "overrides": ("battery", "overrides"),
    "monitor": ("battery", "monitor"),
    "report": ("report", "report"),
    "document": ("document", "document"),
    "export": ("export", "export"),
    "serve": ("serve", "serve"),
    "audit": ("audit", "audit"),
    "sign": ("sign", "sign_command"),
    "verify": ("sign", "verify"),
}
# How each command's own help begins.
LINES = {
    "data": "The data sets by name: what they are, and whether they are on this machine.",
    "schema": "Draft a schema from data, and check one against data.",
    "demo": "Fit, cross validate, certify and explain models on German credit; offline, in seconds.",
    "fit": "Fit a model: figures by cross validation, the certificate, the model file.",
    "explain": "Show what makes up the risk of one row, or write the contributions of all rows.",
    "what-if": "Show the cheapest changes that get one row approved, or write the cheapest of all rows.",
    "bins": "Write the bins and groups of a model as a schema, to merge or move them by hand and fit again.",
    "diff": "Compare two models: which levels moved, and what that does to risks, decisions and reasons.",
    "scorecard": (
        "Turn a model into a scorecard: points, counts, bad rates, weight of evidence and information value per level."
    ),
    "cutoffs": "Show approval, bad rate and profit by cut-off, with confidence intervals.",
    "annotate": (
        "Change the words and policy in a model file, never a probability; without options, show all that may change."
    ),
    "score": "Show the risk of one row, or write the risk of every row; with decision and reasons if asked for.",
    "reasons": "Show the letter to one row, or write the reasons of all rows, or of the refused ones.",
    "evaluate": (
        "Measure a model on rows with outcomes, with confidence intervals; compare two models on the same rows."
    ),
    "fairness": "Compare groups: approval, adverse impact and, given outcomes, equal opportunity, calibration and AUC.",
    "certify": (
        "Certify a model file from its form alone, and compare with the certificate it holds; ends with 4 if one fails."
    ),
    "drift": (
        "Compare new rows with old ones: shifts of features, subscales and risk and, given outcomes, of performance."
    ),
    "periods": "Measure a model by month or quarter: AUC, calibration, approval rate, shifts of features; vintages.",
    "quality": (
        "List what is wrong with rows that a model is to score: absent columns, types, missing and unseen values."
    ),
    "stress": (
        "Change the applicants: what happens to approvals and bad rates; or see which input moves decisions most."
    ),
    "weak-spots": (
        "Name the slices of rows in which calibration or ranking is worse than overall, and chance is ruled out."
    ),
    "stability": (
        "Fit a model again to resampled training rows: which decisions flip, which first reasons and shapes change."
    ),
    "overrides": (
        "Compare what people decided with what the model decides: agreement, override rates, and what came of them."
    ),
    "monitor": "Compare new rows with the limits kept in the model; ends with 5 if one is crossed.",
    "report": "Write the decision page: see the model, move an applicant, ask what would change the decision, offline.",
    "document": (
        "Write the model document: measured, checked and marked where a person must complete it; a file to sign."
    ),
    "export": (
        "Write a model as SQL, code, ONNX, PMML or a spreadsheet that gives the same risk, contributions and reasons."
    ),
    "serve": "Serve risks, contributions, reasons, what-if and the decision page over HTTP.",
    "audit": "Check that every line of an audit log holds the hash of the line before.",
    "sign": "Sign a model file with your own key, as OpenSSF model signing does, or make such a key; offline.",
    "verify": (
        "Check offline that a model file or a receipt is unchanged since a key signed it; ends with 4 if it is not."
    ),
}
# How each command's own help ends.
EXAMPLES = {
    "data": "plainrisk data list",
    "data list": "plainrisk data list",
    "data show": "plainrisk data show german",
    "data check": "plainrisk data check german",
    "schema": "plainrisk schema infer loans.csv --column bad -o loans.toml",
    "schema infer": "plainrisk schema infer loans.csv --column bad -o loans.toml",
    "schema check": "plainrisk schema check loans.csv --schema loans.toml",
    "demo": "plainrisk demo --folder demo",
    "fit": "plainrisk fit loans.csv --schema loans.toml -o model.json",
    "explain": "plainrisk explain model.json loans.csv --row 0",
    "what-if": "plainrisk what-if model.json loans.csv --row 0 --cutoff 0.2",
    "bins": "plainrisk bins model.json -o bins.toml",
    "diff": "plainrisk diff old.json new.json loans.csv --cutoff 0.2",
    "scorecard": "plainrisk scorecard model.json -o card.xlsx",
    "cutoffs": "plainrisk cutoffs model.json loans.csv --cost-bad 5 --gain-good 1 --cutoff 0.2",
    "annotate": "plainrisk annotate model.json --cutoff 0.2",
    "score": "plainrisk score model.json loans.csv --decision -o scores.csv",
    "reasons": "plainrisk reasons model.json loans.csv --row 0",
    "evaluate": "plainrisk evaluate model.json test.csv --against old.json",
    "fairness": "plainrisk fairness model.json test.csv --by sex",
    "certify": "plainrisk certify model.json",
    "drift": "plainrisk drift model.json new.csv --old train.csv",
    "periods": "plainrisk periods model.json later.csv --time month",
    "quality": "plainrisk quality model.json new.csv",
    "stress": "plainrisk stress model.json test.csv --shock income=-10% --by region",
    "weak-spots": "plainrisk weak-spots model.json test.csv --more region",
    "stability": "plainrisk stability model.json train.csv --new test.csv",
    "overrides": "plainrisk overrides model.json test.csv --decision officer",
    "monitor": "plainrisk monitor model.json new.csv --history looks.jsonl",
    "report": "plainrisk report model.json test.csv -o page.html",
    "document": "plainrisk document model.json test.csv --train train.csv -o model.docx",
    "export": "plainrisk export model.json --dialect duckdb -o score.sql",
    "serve": "plainrisk serve model.json --port 8000",
    "audit": "plainrisk audit log/worker0.jsonl",
    "sign": "plainrisk sign model.json --key key.pem",
    "verify": "plainrisk verify model.json --key key.pub.pem",
}
# Commands of plainrisk-lab, a separate package: an error says if it is not installed.
LAB = ("study", "compare")
# A value of every option that takes one, with which its help ends; "export --keep" is that of one command.
VALUES = {
    "--about": "owner=Retail",
    "--against": "old.json",
    "--alpha": "0.01",
    "--amount": "loan_amount",
    "--answers": "2",
    "--applicants": "100",
    "--approval": "0.7",
    "--approved": "yes",
    "--audit": "log",
    "--bad-rate": "0.05",
    "--by": "month",
    "--checker": "verify.py",
    "--column": "bad",
    "--cost": "steps",
    "--cost-bad": "5",
    "--cutoff": "0.2",
    "--cv": "5",
    "--decimals": "1",
    "--decision": "officer",
    "--dialect": "duckdb",
    "--every": "quarter",
    "--folder": "demo",
    "--frozen": "age",
    "--gain-good": "1",
    "--grades": "0.02,0.05,0.1",
    "--group": "customer",
    "--history": "looks.jsonl",
    "--host": "0.0.0.0",
    "--inputs": "applicant.json",
    "--keep": "id",
    "--key": "key.pem",
    "--keys": "keys.toml",
    "--label": "2026-10",
    "--level": "0.9",
    "--max-bins": "8",
    "--max-megabytes": "16",
    "--max-rows": "5000",
    "--min-bin-rows": "50",
    "--min-rows": "30",
    "--missing": "NA",
    "--model": "ARM1",
    "--months": "months_on_book",
    "--more": "region",
    "--new": "test.csv",
    "--new-key": "key.pem",
    "--odds": "30",
    "--old": "train.csv",
    "--output": "table.xlsx",
    "--pairs": "auto",
    "--pdo": "40",
    "--plot": "history.png",
    "--points": "500",
    "--port": "8080",
    "--portfolio": "train.csv",
    "--positive": "1",
    "--profile": "sr-26-2",
    "--rate": "100",
    "--reasons": "4",
    "--reference": "typical",
    "--refits": "50",
    "--ridge": "0.001",
    "--receipt-key": "key.pem",
    "--rejects": "rejects.csv",
    "--require-signature": "key.pub.pem",
    "--row": "5",
    "--schema": "loans.toml",
    "--seconds": "60",
    "--seed": "7",
    "--set": "'policy.reasons = 3'",
    "--shock": "income=-10%",
    "--signature": "model.json.sig",
    "--smt": "model.smt2",
    "--table": "applicants",
    "--test": "test.csv",
    "--thin": "50",
    "--time": "month",
    "--title": "'Car loans 2026'",
    "--tls-certificate": "cert.pem",
    "--tls-key": "key.pem",
    "--train": "train.csv",
    "--unit": "'log odds'",
    "--values": "income=1500,2000",
    "--weight": "weight",
    "--workers": "4",
    "-k": "3",
    "bins --output": "bins.toml",
    "document --output": "model.docx",
    "export --output": "score.sql",
    "fairness --by": "sex",
    "fairness --reference": "female",
    "fit --output": "model.json",
    "report --by": "region",
    "report --output": "page.html",
    "schema infer --output": "loans.toml",
    "sign --output": "model.json.sig",
    "verify --key": "key.pub.pem",
    "verify --model": "model.json",
}
# What to do first, each with the reason.
START = {
    "plainrisk demo": "see all of it on data that come with the package",
    "plainrisk schema infer loans.csv --column bad -o loans.toml": "draft what is known of the columns, and edit it",
    "plainrisk fit loans.csv --schema loans.toml -o model.json": "fit a model, cross validated and certified",
    "plainrisk explain model.json loans.csv --row 0": "see what makes up one applicant's probability",
    "plainrisk report model.json loans.csv -o page.html": "write the page that shows the model and its decisions",
}
# What stands for a value in the help, by the type of an option; releases of typer name types differently.
_METAVARS = dict.fromkeys(("int", "integer", "integer range"), "N")
_METAVARS |= dict.fromkeys(("float", "float range"), "NUMBER") | dict.fromkeys(("Path", "path", "file"), "FILE")


@functools.cache
def added_lists() -> tuple[Any, ...]:
    """Import the modules that list the commands of other packages, in dictionaries as here.

    Entry points of the group "plainrisk.commands" name them. Finding these takes longer than the list of commands
    above, so only the help and a command that is not in it ask for them.
    """
    from importlib.metadata import entry_points

    return tuple(map(_load_list, entry_points(group="plainrisk.commands")))


def _load_list(point: Any) -> Any:
    try:
        return point.load()
    except Exception as error:
        raise MissingExtraError(
            f"{point.dist.name} adds commands to plainrisk and cannot be imported: {error}. Install it again, or "
            f"remove it: pip uninstall {point.dist.name}"
        ) from None


def load_command(name: str) -> Any:
    """Import a command, or a group of commands, and return it as typer runs it."""
    here = sys.modules[__name__]
    listed = here if name in COMMANDS else next(other for other in added_lists() if name in other.COMMANDS)
    module, attribute = listed.COMMANDS[name]
    found = getattr(importlib.import_module(f"{listed.__package__}.{module}"), attribute)
    holder = typer.Typer(add_completion=False, rich_markup_mode="rich")
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    command: Any = typer.main.get_group(holder).commands[name]
    within = {f"{name} {own}": one for own, one in getattr(command, "commands", {}).items()}
    for path, one in {name: command, **within}.items():
        one.epilog = f"Example: {listed.EXAMPLES[path]}"
        for parameter in one.params:
            _add_value(path, parameter, {**VALUES, **listed.VALUES})
        one.get_params = functools.partial(_named, one.get_params)
    return command


def _add_value(path: str, parameter: Any, values: Mapping[str, str]) -> None:
    """Append an example value to the help of an option that takes one, to show how it is written."""
    flag = max(parameter.opts, key=len)
    value = values.get(f"{path} {flag}", values.get(flag))
    if parameter.param_type_name == "option" and not parameter.is_flag and value is not None:
        short = next((name for name in parameter.opts if name == "-o"), flag)
        parameter.help = f"{parameter.help} (example: {short} {value})"


def _named(get_params: Callable[[Any], list[Any]], context: Any) -> list[Any]:
    return name_values(get_params(context))


def name_values(parameters: list[Any]) -> list[Any]:
    """Set in words what options take, unless a metavar is declared; a flag takes nothing."""
    for one in parameters:
        if one.param_type_name == "argument" and hasattr(one, "display_type_rich"):
            one.display_type_rich = _no_type  # newer releases show the type beside the name
        if one.metavar is not None:
            continue
        if getattr(one, "is_flag", False):
            one.metavar = ""
        else:
            kind = getattr(one, "type_descriptor", None)
            name = one.type.name if kind is None else getattr(kind.annotation, "__name__", "")
            one.metavar = _METAVARS.get(name, "TEXT")
    return parameters


def _no_type(**_: Any) -> None:
    return None
