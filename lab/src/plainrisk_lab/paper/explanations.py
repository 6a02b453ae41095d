"""Why figures differ from the published ones: each explanation is an experiment, and shows its figures."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from plainrisk_lab.paper.checks import slsqp_name
from plainrisk_lab.paper.document import Block, Cell, Grid, Mark
from plainrisk_lab.paper.grids import figure, title_of, value_grid
from plainrisk_lab.paper.view import SMALL, View, explained

__all__ = ["auc_explanations", "certainty_explanations"]

_PAPER = "paper tables"
# Predictions as near as this to 0 or 1 may have been counted as certain.
_NEAR = 1e-8


def auc_explanations(view: View) -> list[Block]:
    """Return every explanation whose experiments are in the store."""
    blocks: list[Block] = []
    for explanation in (_no_ridge, _nnlr, _one_hot, _balance, _seeds, _poland, _trees, _leakage):
        blocks.extend(explanation(view))
    return blocks


def _nnlr(view: View) -> Iterator[Block]:
    if not view.has("paper", "slsqp"):
        return
    data = view.shared_data("paper", "slsqp")
    yield from explained("nnlr")
    lines = {"paper": view.line(_PAPER, "auc", "NNLR", data)}
    for steps in (10, 25, 100):
        lines[f"SLSQP, at most {steps} steps"] = view.line("slsqp", "auc", f"NNLR-SLSQP-{steps}", data)
    lines["SLSQP, features scaled"] = view.line("slsqp", "auc", "NNLR-SLSQP-scaled", data)
    lines["at the optimum, no ridge"] = view.line("paper", "auc", "NNLR", data)
    lines["at the optimum, ridge 1/(2M)"] = view.line("balanced", "auc", "NNLR", data)
    yield value_grid("AUC of NNLR", "fitted by", data, lines)


def _no_ridge(view: View) -> Iterator[Block]:
    if not view.has("paper", "balanced", "slsqp"):
        return
    data = view.shared_data("paper", "balanced", "slsqp")
    yield from explained("no_ridge")
    for name in ("ARM1", "LinARM1"):
        lines = {"paper": view.line(_PAPER, "auc", name, data)}
        for steps in (25, 50, 100):
            lines[f"SLSQP, at most {steps} steps"] = view.line("slsqp", "auc", slsqp_name(name, steps), data)
        lines["at the optimum, no ridge"] = view.line("paper", "auc", name, data)
        lines["at the optimum, ridge 1/(2M)"] = view.line("balanced", "auc", name, data)
        yield value_grid(f"AUC of {name}, equal class weights", "fitted by", data, lines)


def _one_hot(view: View) -> Iterator[Block]:
    if not view.has("paper", "one-hot"):
        return
    names = view.table("one-hot", "auc").classifiers
    yield from explained("one_hot")
    lines = {
        "paper": [view.table(_PAPER, "auc").value("taiwan", n) for n in names],
        "PAY_0 ordered, as stated": [view.table("paper", "auc").value("taiwan", n) for n in names],
        "PAY_0 without order": [view.table("one-hot", "auc").value("taiwan", n) for n in names],
    }
    rows = [[head, *map(figure, values)] for head, values in lines.items()]
    yield Grid("AUC on Taiwan", ("", *names), rows)


def _balance(view: View) -> Iterator[Block]:
    if not view.has("product", "balanced"):
        return
    data = [d for d in view.shared_data("product", "balanced") if d in view.table(_PAPER, "auc").datasets]
    yield from explained("balance")
    yield value_grid(
        "LinARM1, AUC",
        "trained with",
        data,
        {
            "paper": view.line(_PAPER, "auc", "LinARM1", data),
            "classes balanced, ridge 1/(2M)": view.line("balanced", "auc", "LinARM1", data),
            "true base rate, ridge 1/(2M)": view.line("product", "auc", "LinARM1", data),
        },
    )


def _seeds(view: View) -> Iterator[Block]:
    seeds = [s for s in view.studies if s.startswith("seed-")]
    if not seeds or not view.has("balanced"):
        return
    tables = [view.table(s, "auc") for s in ("balanced", *seeds)]
    rows = []
    for data in SMALL:
        for name in tables[-1].classifiers:
            values = np.array([t.value(data, name) for t in tables])
            printed = view.table(_PAPER, "auc").value(data, name)
            if np.isnan(values).any() or values.min() <= printed <= values.max():
                continue
            spread = f"{values.min():.4f} to {values.max():.4f}"
            bare = figure(view.line("paper", "auc", name, [data])[0])
            rows.append([f"{name}, {title_of(data)}", figure(printed), figure(float(values.mean())), spread, bare])
    total = len(SMALL) * len(tables[-1].classifiers)
    yield from explained("seeds", deals=len(tables), inside=total - len(rows), total=total)
    header = ("", "paper", f"mean of {len(tables)} deals", "lowest to highest", "no ridge, first deal")
    yield Grid("Published AUC outside the range of the deals", header, rows or [["none", *[""] * 4]])


def _poland(view: View) -> Iterator[Block]:
    if not view.has("codes", "slsqp"):
        return
    data = view.shared_data("codes", "slsqp")
    names = ("ARM1", "LinARM1", "ARM2", "LinARM2", "MixARM1", "MixLinARM1")
    yield from explained("poland")
    rows: list[list[Cell]] = []
    for name in names:
        slsqp = slsqp_name(name, 25)
        printed, apart = view.line(_PAPER, "auc", name, data), view.line("slsqp", "auc", slsqp, data)
        three = zip(printed, apart, view.line("codes", "auc", slsqp, data), strict=True)
        rows.append([name, *(Mark(figure(a), figure(b), figure(c)) for a, b, c in three)])
    note = "Each place: the paper's; ours with missing ratios in bins of their own; ours with -6 a number."
    yield Grid("AUC, SLSQP stopped after 25 steps", ("", *map(title_of, data)), rows, note)


def _trees(view: View) -> Iterator[Block]:
    if not view.has("trees"):
        return
    table = view.table("trees", "auc")
    lines = {"paper, MonoXGB": view.line(_PAPER, "auc", "MonoXGB", table.datasets)}
    lines |= {name: view.line("trees", "auc", name, table.datasets) for name in table.classifiers}
    yield from explained("trees")
    for name in ("MonoXGB", "XGB"):
        if view.has("codes"):
            lines[f"{name}, -6 a number"] = view.line("codes", "auc", name, table.datasets)
    yield value_grid("AUC on Poland", "trees", table.datasets, lines)


def _leakage(view: View) -> Iterator[Block]:
    if not view.has("leakage"):
        return
    data = view.table("leakage", "auc").datasets
    yield from explained("leakage")
    lines = {name: view.line("leakage", "auc", name, data) for name in view.table("leakage", "auc").classifiers}
    yield value_grid("AUC on Lending Club", "", data, lines)


# ---- certainty


def certainty_explanations(view: View) -> list[Block]:
    """Return every explanation of certainty whose experiments are in the store."""
    blocks: list[Block] = []
    for explanation in (_one_layer, _two_layers, _nnlr_certainty, _sigmoid):
        blocks.extend(explanation(view))
    return blocks


def _one_layer(view: View) -> Iterator[Block]:
    if not view.has("paper", "balanced", "slsqp"):
        return
    data = view.shared_data("paper", "balanced", "slsqp")
    lines = {"paper": view.line(_PAPER, "certainty", "LinARM1", data)}
    for steps in (25, 50, 100):
        slsqp = slsqp_name("LinARM1", steps)
        lines[f"SLSQP, at most {steps} steps"] = view.line("slsqp", "certainty", slsqp, data)
        if view.has("codes") and steps != 50:
            lines[f"SLSQP, {steps} steps, -6 a number"] = view.line("codes", "certainty", slsqp, data)
    lines["at the optimum, no ridge"] = view.line("paper", "certainty", "LinARM1", data)
    lines["at the optimum, ridge 1/(2M)"] = view.line("balanced", "certainty", "LinARM1", data)
    if view.has("product"):
        lines["the same, true base rate"] = view.line("product", "certainty", "LinARM1", data)
    yield from explained("certainty_one_layer")
    yield value_grid("LinARM1, share of predictions that are exactly 0 or 1", "fitted by", data, lines)


def _two_layers(view: View) -> Iterator[Block]:
    if not view.has("paper", "balanced", "refitted"):
        return
    data = view.shared_data("paper", "balanced", "refitted")
    swapped = {"both links replaced, no ridge": "paper", "both links replaced, ridge": "balanced"}
    yield from explained("certainty_two_layers")
    for metric, published, title in (
        ("certainty", "certainty", "share of exact 0s and 1s"),
        ("ece_as_printed", "ece", "ECE as printed"),
        ("auc", "auc", "AUC"),
    ):
        lines = {"paper": view.line(_PAPER, published, "LinARM2", data)}
        lines |= {what: view.line(study, metric, "LinARM2", data) for what, study in swapped.items()}
        for name in view.table("refitted", metric).classifiers:
            what = name.replace("LinARM2 refitted", "second layer fitted on lines")
            lines[what] = view.line("refitted", metric, name, data)
        if view.has("codes"):
            lines["SLSQP, 25 steps, -6 a number"] = view.line("codes", metric, slsqp_name("LinARM2", 25), data)
        yield value_grid(f"LinARM2, {title}", "", data, lines)


def _nnlr_certainty(view: View) -> Iterator[Block]:
    if not view.has("paper", "slsqp"):
        return
    data = view.shared_data("paper", "slsqp")
    lines = {"paper": view.line(_PAPER, "certainty", "LinNNLR", data)}
    for steps in (10, 25, 100):
        slsqp = slsqp_name("LinNNLR", steps)
        lines[f"SLSQP, at most {steps} steps"] = view.line("slsqp", "certainty", slsqp, data)
    lines["at the optimum, no ridge"] = view.line("paper", "certainty", "LinNNLR", data)
    yield from explained("certainty_nnlr")
    yield value_grid("LinNNLR, share of predictions that are exactly 0 or 1", "fitted by", data, lines)


def _sigmoid(view: View) -> Iterator[Block]:
    data = [d for d in ("japan", "australia") if d in view.table("paper", "certainty").datasets]
    if not data:
        return
    yield from explained("certainty_sigmoid")
    lines = {
        "paper": view.line(_PAPER, "certainty", "ARM1", data),
        "at the optimum, exactly 0 or 1": view.line("paper", "certainty", "ARM1", data),
        "at the optimum, within 1e-8": [_near(view, d) for d in data],
        "SLSQP, 100 steps": view.line("slsqp", "certainty", slsqp_name("ARM1", 100), data),
    }
    yield value_grid("ARM1, share of certain predictions", "", data, lines)


def _near(view: View, data: str) -> float:
    """Return the share of ARM1's held-out risks that are nearly 0 or 1."""
    plan = view.store.plan("paper")
    spec = next(c for c in plan.lineup if c.name == "ARM1")
    dataset = next(d for d in view.store.sets("paper") if d.name == data)
    if dataset.fingerprint is None:
        return math.nan
    cells = view.store.cells(dataset.fingerprint, spec.key, plan.cv, plan.seed, risks=True)
    risks = [c.risks for c in cells if c.risks is not None]
    if len(risks) < plan.cv:
        return math.nan
    return float(np.mean([np.mean((r < _NEAR) | (r > 1.0 - _NEAR)) for r in risks]))
