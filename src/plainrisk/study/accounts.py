"""Why figures differ from the published ones: each account is an experiment, and shows its figures."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from plainrisk.study.grids import figure, title_of, value_grid
from plainrisk.study.pieces import Block, Grid, Heading, Prose
from plainrisk.study.view import SMALL, View, tolerance_of

__all__ = ["accounts"]

_PAPER = "paper tables"


def accounts(view: View) -> list[Block]:
    """Return every account whose experiments are in the store."""
    blocks: list[Block] = []
    for account in (_nnlr, _no_ridge, _one_hot, _balance, _deal, _trees, _leakage):
        blocks.extend(account(view))
    return blocks


def _nnlr(view: View) -> Iterator[Block]:
    if not view.has("paper", "slsqp"):
        return
    data = view.shared_data("paper", "slsqp")
    yield Heading(3, "NNLR and LinNNLR: the solver, not the model")
    yield Prose(
        """The published columns lie near 0.5 on many data sets. SLSQP, which the paper used, was run here on the
        features as they are, where one column may be a million times larger than another, and on the same features
        scaled to a standard deviation of 1. Our solver scales by itself, gives special values an effect of their
        own, and goes on until the optimality conditions hold. Where SLSQP stops early the ranking is spoilt (Taiwan
        shows it best), so the published columns say little about the model. On Japan and Australia the opposite
        holds: at the true optimum without a ridge the 170 postcodes are learnt by heart, and stopping early
        protects from that."""
    )
    lines = {
        "paper": view.line(_PAPER, "auc", "NNLR", data),
        "SLSQP, features as they are": view.line("slsqp", "auc", "NNLR-SLSQP", data),
        "SLSQP, features scaled": view.line("slsqp", "auc", "NNLR-SLSQP-scaled", data),
        "our solver, at the optimum": view.line("paper", "auc", "NNLR", data),
        "our solver, ridge 1/(2M)": view.line("balanced", "auc", "NNLR", data),
    }
    yield value_grid("AUC of NNLR", "fitted by", data, lines)


def _no_ridge(view: View) -> Iterator[Block]:
    if not view.has("paper", "balanced", "slsqp"):
        return
    data = view.shared_data("paper", "balanced", "slsqp")
    yield Heading(3, "ARM1 without a ridge: what SLSQP leaves undone acts as a ridge")
    yield Prose(
        """The paper sets the ridge C to 0. Then levels with rows of one outcome only have no finite best effect, and
        with many levels (63 ratios in Poland, 170 postcodes in Japan and Australia) the true optimum fits noise.
        SLSQP does not get there: it stops after 100 steps. The fewer steps it may take, the better it ranks on
        these data sets, and the published figures lie among those of SLSQP, not at the optimum. A ridge of 1/(2M)
        does the same on purpose. On HELOC, GMSC and Taiwan, with many rows per level, all of these agree."""
    )
    lines = {"paper": view.line(_PAPER, "auc", "ARM1", data)}
    for steps in (25, 50, 100):
        lines[f"SLSQP, at most {steps} steps"] = view.line("slsqp", "auc", f"ARM1-SLSQP-{steps}", data)
    lines["at the optimum, no ridge"] = view.line("paper", "auc", "ARM1", data)
    lines["at the optimum, ridge 1/(2M)"] = view.line("balanced", "auc", "ARM1", data)
    yield value_grid("AUC of ARM1, both classes weighing the same", "fitted by", data, lines)
    yield _below(view, data)


def _below(view: View, data: list[str]) -> Block:
    """Return the figures that are below the published ones without a ridge, and what the ridge makes of them."""
    ours, paper, ridge = (view.table(s, "auc") for s in ("paper", _PAPER, "balanced"))
    rows = []
    for name in ours.classifiers:
        for d in data:
            gap = ours.value(d, name) - paper.value(d, name)
            if "NNLR" in name or not gap < -tolerance_of(d):
                continue
            early = [view.line("slsqp", "auc", f"{_slsqp(name)}-{steps}", [d])[0] for steps in (25, 50, 100)]
            figures = (paper.value(d, name), *early, ours.value(d, name), ridge.value(d, name))
            rows.append([f"{name}, {title_of(d)}", *map(figure, figures)])
    header = ("", "paper", "SLSQP, 25 steps", "50 steps", "100 steps", "optimum, no ridge", "optimum, ridge 1/(2M)")
    return Grid(
        "Every AUC of the table above that is below the paper's by more than 0.005 (0.015 on German, Japan, Australia)",
        header,
        rows or [["none", *[""] * 6]],
    )


def _slsqp(name: str) -> str:
    """Return what a classifier is called where SLSQP fits it: MixLinARM1 is the mixture, linearised."""
    return "LinMixARM1-SLSQP" if name == "MixLinARM1" else f"{name}-SLSQP"


def _one_hot(view: View) -> Iterator[Block]:
    if not view.has("paper", "one-hot"):
        return
    names = view.table("one-hot", "auc").classifiers
    yield Heading(3, "Taiwan: a direction that was not used")
    yield Prose(
        """The paper's list of directions says that risk rises with PAY_0, and its list of categorical features names
        PAY_0 too. We read that as ordered categories. Without the direction, each category with its own free
        effect, the figures move to the published ones, MixLinARM1 most of all. So the published models did not use
        it."""
    )
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
    yield Heading(3, "What the paper does not say: both classes weigh the same")
    yield Prose(
        """Trained at the true share of bad outcomes, LinARM1 says exactly 0 for most applicants of a book with few
        defaults, and loses their order. The published AUC and the published share of certain predictions are both
        those of training with both classes weighing the same, so that is what was done. The price is in the
        calibration tables below: such a model's probabilities are wrong by design."""
    )
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
    yield value_grid(
        "LinARM1, share of predictions that are exactly 0 or 1",
        "trained with",
        data,
        {
            "paper": view.line(_PAPER, "certainty", "LinARM1", data),
            "classes balanced, no ridge": view.line("paper", "certainty", "LinARM1", data),
            "classes balanced, ridge 1/(2M)": view.line("balanced", "certainty", "LinARM1", data),
            "true base rate, ridge 1/(2M)": view.line("product", "certainty", "LinARM1", data),
        },
    )


def _deal(view: View) -> Iterator[Block]:
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
            rows.append([f"{name}, {title_of(data)}", figure(printed), figure(float(values.mean())), spread])
    total = len(SMALL) * len(tables[-1].classifiers)
    yield Heading(3, "German, Japan, Australia: how much is the deal of the folds")
    yield Prose(
        "With 690 or 1,000 rows the mean over ten folds depends on how the rows are dealt. The same models (with the "
        f"ridge 1/(2M)) were run with {len(tables)} deals. {total - len(rows)} of {total} published figures lie within "
        "the range of these deals; the others are listed. On German (and HELOC) the paper took its bin edges "
        "from Chen et al.; ours are found anew on the training rows of every fold, as the paper did elsewhere."
    )
    header = ("", "paper", f"mean of {len(tables)} deals", "lowest to highest")
    yield Grid("Published AUC outside the range of the deals", header, rows or [["none", "", "", ""]])


def _trees(view: View) -> Iterator[Block]:
    if not view.has("trees"):
        return
    table = view.table("trees", "auc")
    lines = {"paper, MonoXGB": view.line(_PAPER, "auc", "MonoXGB", table.datasets)}
    lines |= {name: view.line("trees", "auc", name, table.datasets) for name in table.classifiers}
    yield Heading(3, "Poland: MonoXGB, not explained")
    yield Prose(
        """The published MonoXGB falls far below XGB on the second and third year of Poland and not on the others.
        Whatever way XGBoost searches its splits, we find it close to XGB. We know no setting that gives the
        published figure; ours is above it. (Of the third year we have 95% of the rows.)"""
    )
    yield value_grid("AUC on Poland", "trees", table.datasets, lines)


def _leakage(view: View) -> Iterator[Block]:
    if not view.has("leakage"):
        return
    data = view.table("leakage", "auc").datasets
    yield Heading(3, "Lending Club: an AUC of 0.99 is hindsight")
    yield Prose(
        """Thirteen of the paper's 24 data sets are blocks of Lending Club loans, with AUCs near 0.99. Their columns
        hold what was known only afterwards: recoveries, payments received, the last FICO score. The same loans
        (here all of 2007 to 2011), once with these columns and once without:"""
    )
    lines = {name: view.line("leakage", "auc", name, data) for name in view.table("leakage", "auc").classifiers}
    yield value_grid("AUC on Lending Club", "", data, lines)
