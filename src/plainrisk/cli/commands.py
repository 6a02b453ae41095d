"""The commands by name: where each is, and its line of the help; a command is imported when it is run."""

from __future__ import annotations

import importlib
from typing import Any

import typer

__all__ = ["COMMANDS", "LINES", "load_command"]

# By the module of `plainrisk.cli` and the name in it: a function, or a group of commands.
COMMANDS = {
    "demo": ("demo", "demo"),
    "fit": ("fit", "fit"),
    "score": ("explain", "score"),
    "explain": ("explain", "explain"),
    "reasons": ("explain", "reasons"),
    "what-if": ("explain", "what_if"),
    "evaluate": ("measure", "evaluate"),
    "cutoffs": ("measure", "cutoffs"),
    "fairness": ("measure", "fairness"),
    "certify": ("monitor", "certify"),
    "drift": ("monitor", "drift"),
    "serve": ("serve", "serve"),
    "report": ("report", "report"),
    "scorecard": ("scorecard", "scorecard"),
    "bins": ("bins", "bins"),
    "diff": ("bins", "diff"),
    "annotate": ("annotate", "annotate"),
    "export": ("export", "export"),
    "compare": ("compare", "compare"),
    "schema": ("data", "schema_app"),
    "data": ("data", "data_app"),
    "study": ("study", "study_app"),
}
# How each command's own help begins.
LINES = {
    "demo": "Fit, cross validate, certify and explain models on German credit; offline, in seconds.",
    "fit": "Fit a model: cross validation figures, the solver's and the model's certificates, the model file.",
    "score": "Show the risk of one row, or write the risk of every row; with decision and reasons if asked for.",
    "explain": "Show what makes up the risk of one row, or write the contributions of all rows.",
    "reasons": "Show the letter to one row, or write the reasons of all rows, or of the refused ones.",
    "what-if": "Show the cheapest changes that bring one row to the target, or write the cheapest of all rows.",
    "evaluate": (
        "Measure a model on rows with outcomes, with confidence intervals; compare two models on the same rows."
    ),
    "cutoffs": (
        "Show approval, bad rate and profit by cut-off, with confidence intervals. Refused: a risk from the cut-off on."
    ),
    "fairness": "Compare groups: approval, adverse impact, and with outcomes equal opportunity, calibration and AUC.",
    "certify": (
        "Certify a model file from its form alone, and compare with the certificate it holds; ends with 4 if one fails."
    ),
    "drift": (
        "Compare new rows with old ones: shifts of features, subscales and risk, and with outcomes of performance."
    ),
    "serve": "Serve risks, contributions, reasons, what-if and the decision page over HTTP.",
    "report": "Write the decision page: see the model, move an applicant, ask what would change the decision, offline.",
    "scorecard": (
        "Turn a model into a scorecard: points, counts, bad rates, weight of evidence and information value per level."
    ),
    "bins": "Write the bins and groups of a model as a schema, to merge or move them by hand and fit again.",
    "diff": "Compare two models: which levels moved, and what that does to risks, decisions and reasons.",
    "annotate": (
        "Change what a model file says and decides, never a probability; without options, show all that may change."
    ),
    "export": (
        "Write a model as SQL, code, ONNX, PMML or a spreadsheet that gives the same risk, contributions and reasons."
    ),
    "compare": "Compare classifiers over data sets: average ranks, Friedman's test, all pairs, the diagram.",
    "schema": "Draft a schema from data, and check one against data.",
    "data": "The data sets by name: what they are, and whether they are here.",
    "study": "Compare classifiers over data sets; kill it, start it, nothing is lost.",
}


def load_command(name: str) -> Any:
    """Import a command, or a group of commands, and return it as typer runs it."""
    module, attribute = COMMANDS[name]
    found = getattr(importlib.import_module(f"plainrisk.cli.{module}"), attribute)
    holder = typer.Typer(add_completion=False, rich_markup_mode="rich")
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    return typer.main.get_group(holder).commands[name]
