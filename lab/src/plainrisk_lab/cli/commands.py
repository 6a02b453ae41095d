"""The commands by name, as `plainrisk.cli.commands` lists its own; an entry point leads here."""

from __future__ import annotations

__all__ = ["COMMANDS", "EXAMPLES", "LINES", "PANELS", "VALUES"]

PANELS = {"Fit": ("study", "compare")}
COMMANDS = {"study": ("study", "study_app"), "compare": ("compare", "compare")}
LINES = {
    "study": "Compare classifiers over data sets; stop and restart it at any time, nothing is lost.",
    "compare": "Compare classifiers over data sets: average ranks, Friedman's test, all pairs, the diagram.",
}
EXAMPLES = {
    "study": "plainrisk study run plan.toml",
    "study run": "plainrisk study run plan.toml --store study.db",
    "study status": "plainrisk study status --store study.db",
    "study report": "plainrisk study report --store study.db -o tables.md",
    "compare": "plainrisk compare results.csv --metric auc -o diagram.svg",
}
VALUES = {
    "--jobs": "4",
    "--alpha": "0.05",
    "--metric": "auc",
    "--store": "study.db",
    "--zero-method": "wilcox",
    "compare --output": "diagram.svg",
    "study report --output": "tables.md",
}
