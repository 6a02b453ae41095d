"""What a reproduction has to show: how many published figures are reached, and every one that is not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from plainrisk_lab.paper.document import Block, Cell, Grid, Heading, Mark
from plainrisk_lab.paper.grids import figure, signed, title_of
from plainrisk_lab.paper.view import SMALL, View, prose, tolerance_of

__all__ = ["below", "reproduction_checks", "slsqp_name"]

_PAPER = "paper tables"
# Two further data sets of the paper are here; of Poland_2 a twentieth of the rows is missing.
_LARGE = ("heloc", "gmsc", "taiwan", "poland_0", "poland_4")
_CERTAIN = ("heloc", "gmsc", "taiwan")
_CERTAIN_BOUND = 0.03
_STEPS = (25, 50, 100)

Reading = Callable[[View, str, str, str], float]


def slsqp_name(classifier: str, steps: int) -> str:
    """Return what a classifier is called where SLSQP fits it: MixLinARM1 is the mixture, linearised.

    >>> slsqp_name("MixLinARM1", 25), slsqp_name("ARM2", 50)
    ('LinMixARM1-SLSQP-25', 'ARM2-SLSQP-50')
    """
    return f"{'LinMixARM1' if classifier == 'MixLinARM1' else classifier}-SLSQP-{steps}"


def _at_optimum(study: str) -> Reading:
    return lambda view, metric, data, name: view.line(study, metric, name, [data])[0]


def _by_slsqp(steps: int) -> Reading:
    """Return figures where SLSQP is stopped; XGBoost has no part in it."""

    def value(view: View, metric: str, data: str, name: str) -> float:
        if "XGB" in name:
            return view.line("paper", metric, name, [data])[0]
        return view.line("slsqp", metric, slsqp_name(name, steps), [data])[0]

    return value


def reproduction_checks(view: View) -> Iterator[Block]:
    """Yield the checks, under each reading of the paper, and the figures that miss them."""
    readings: dict[str, Reading] = {"no ridge": _at_optimum("paper")}
    if view.has("balanced"):
        readings["ridge 1/(2M)"] = _at_optimum("balanced")
    if view.has("slsqp"):
        readings |= {f"SLSQP, {steps} steps": _by_slsqp(steps) for steps in _STEPS}
    yield Heading(2, "1.1 What is reached")
    yield prose("reached")
    note = (
        "Within the bound on either side; in brackets, within the bound or above it. The first two readings are at the "
        "optimum; SLSQP is without a ridge, stopped after so many steps."
    )
    yield Grid("Published figures reached, by reading", ("", "bound", *readings), _counts(view, readings), note)
    yield _exceptions(view)


def _counts(view: View, readings: dict[str, Reading]) -> list[list[Cell]]:
    here = view.table("paper", "auc").datasets
    groups = {
        "AUC on {}": [d for d in _LARGE if d in here],
        "AUC on {} ": [d for d in SMALL if d in here],
        "AUC on {}  ": [d for d in here if d not in (*_LARGE, *SMALL) and d in view.table(_PAPER, "auc").datasets],
    }
    rows: list[list[Cell]] = []
    for head, sets in groups.items():
        if sets:
            cells = [_count(view, reading, sets) for reading in readings.values()]
            rows.append([head.format(_listed(sets)).strip(), f"{tolerance_of(sets[0]):g}", *cells])
    every = [d for sets in groups.values() for d in sets]
    rows.append(["AUC on all of these", "", *(_count(view, reading, every) for reading in readings.values())])
    sets = [d for d in _CERTAIN if d in here]
    if sets:
        certain = [_certain(view, reading, sets) for reading in readings.values()]
        rows.append([f"certainty of LinARM1 on {_listed(sets)}", f"±{_CERTAIN_BOUND:g}", *certain])
    return rows


def _listed(sets: Sequence[str]) -> str:
    return ", ".join(map(title_of, sets))


def _count(view: View, reading: Reading, sets: Sequence[str]) -> Cell:
    gaps = [
        (reading(view, "auc", d, c) - view.table(_PAPER, "auc").value(d, c), tolerance_of(d))
        for d in sets
        for c in _ten(view)
    ]
    comparable = [(gap, bound) for gap, bound in gaps if not math.isnan(gap)]
    close, fine = (
        (sum(inside) for inside in zip(*((abs(g) <= b, g >= -b) for g, b in comparable), strict=True))
        if comparable
        else (0, 0)
    )
    return Mark(f"{close} of {len(comparable)}", below=f"{fine} or above")


def _certain(view: View, reading: Reading, sets: Sequence[str]) -> Cell:
    printed = view.table(_PAPER, "certainty")
    gaps = [abs(reading(view, "certainty", d, "LinARM1") - printed.value(d, "LinARM1")) for d in sets]
    finite = [gap for gap in gaps if not math.isnan(gap)]
    if not finite:
        return ""
    return Mark(f"{sum(gap <= _CERTAIN_BOUND for gap in finite)} of {len(finite)}", below=f"within {max(finite):.3f}")


def _ten(view: View) -> list[str]:
    known = view.table(_PAPER, "auc").classifiers
    return [c for c in view.table("paper", "auc").classifiers if c in known and "NNLR" not in c]


def below(view: View) -> list[tuple[str, str]]:
    """Return (classifier, data set) of every AUC that misses its bound, with the ridge or without."""
    printed = view.table(_PAPER, "auc")
    places = [(c, d) for c in _ten(view) for d in view.table("paper", "auc").datasets]
    return [
        (c, d)
        for c, d in places
        if any(view.line(s, "auc", c, [d])[0] - printed.value(d, c) < -tolerance_of(d) for s in ("paper", "balanced"))
    ]


def _exceptions(view: View) -> Grid:
    rows = [_exception(view, c, d) for c, d in below(view)]
    header = ("", "paper", "no ridge", "ridge 1/(2M)", *(f"{steps} steps" for steps in _STEPS), "reached with")
    note = (
        "Steps: no ridge, SLSQP stopped there. At the optimum the difference from the paper stands below; set off: "
        "lower by more than the bound. The last column names every experiment of 1.3 that reaches the published figure."
    )
    return Grid("Every AUC that misses its bound at the optimum", header, rows or [["none", *[""] * 7]], note)


def _exception(view: View, name: str, data: str) -> list[Cell]:
    printed, bound = view.table(_PAPER, "auc").value(data, name), tolerance_of(data)
    cells: list[Cell] = [f"{name}, {title_of(data)}", figure(printed)]
    for study in ("paper", "balanced"):
        mine = view.line(study, "auc", name, [data])[0]
        tone = "bad" if mine - printed < -bound else "good"
        cells.append(Mark(figure(mine), below=signed(mine - printed), tone="" if math.isnan(mine) else tone))
    early = {steps: view.line("slsqp", "auc", slsqp_name(name, steps), [data])[0] for steps in _STEPS}
    cells += [figure(value) for value in early.values()]
    steps = [f"{n}" for n, value in early.items() if value - printed >= -bound]
    reached = [f"{', '.join(steps)} steps"] if steps else []
    for what, study in (("ridge", "balanced"), ("PAY_0 without order", "one-hot")):
        if view.line(study, "auc", name, [data])[0] - printed >= -bound:
            reached.append(what)
    return [*cells, "; ".join(reached) or "not explained"]
