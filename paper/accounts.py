"""Why figures differ from the published ones: each account is an experiment, and shows its figures."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from plainrisk.study.checks import slsqp_name
from plainrisk.study.grids import figure, title_of, value_grid
from plainrisk.study.pieces import Block, Cell, Grid, Heading, Mark, Prose
from plainrisk.study.view import SMALL, View

__all__ = ["accounts"]

_PAPER = "paper tables"


def accounts(view: View) -> list[Block]:
    """Return every account whose experiments are in the store."""
    blocks: list[Block] = []
    for account in (_no_ridge, _nnlr, _one_hot, _balance, _deal, _poland, _trees, _leakage):
        blocks.extend(account(view))
    return blocks


def _nnlr(view: View) -> Iterator[Block]:
    if not view.has("paper", "slsqp"):
        return
    data = view.shared_data("paper", "slsqp")
    yield Heading(3, "NNLR and LinNNLR: the solver, not the model")
    yield Prose(
        """Some published columns lie near 0.6. SLSQP, which the paper used, was run here on the features as they are,
        where one column may be a million times larger than another, and on the same features scaled to a standard
        deviation of 1. Our solver scales by itself, gives special values an effect of their own, and goes on until
        the optimality conditions hold. On Taiwan SLSQP stops by itself at the published figure, and scaling the
        features cures it; on HELOC and Poland it passes the published figures within its first 25 steps. So these
        columns say where a solver stopped, and little about the model. On Japan and Australia stopping early helps:
        at the optimum without a ridge the 170 postcodes are learnt by heart. The published 0.5609 on GMSC is not
        reached in any of these ways: not explained."""
    )
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
    yield Heading(3, "ARM1 without a ridge: what SLSQP leaves undone acts as a ridge")
    yield Prose(
        """The paper sets the ridge C to 0. Then levels with rows of one outcome only have no finite best effect, and
        with many levels (63 ratios in Poland, 170 postcodes in Japan and Australia) the true optimum fits noise.
        SLSQP does not get there: it stops after 100 steps. On these data sets it ranks the better the earlier it
        stops, and the published figures lie between SLSQP at 25 steps and the optimum, mostly much nearer to SLSQP.
        A ridge of 1/(2M) does the same on purpose. On HELOC, GMSC and Taiwan, with many rows per level, all of these
        agree to 0.002."""
    )
    for name in ("ARM1", "LinARM1"):
        lines = {"paper": view.line(_PAPER, "auc", name, data)}
        for steps in (25, 50, 100):
            lines[f"SLSQP, at most {steps} steps"] = view.line("slsqp", "auc", slsqp_name(name, steps), data)
        lines["at the optimum, no ridge"] = view.line("paper", "auc", name, data)
        lines["at the optimum, ridge 1/(2M)"] = view.line("balanced", "auc", name, data)
        yield value_grid(f"AUC of {name}, both classes weighing the same", "fitted by", data, lines)


def _one_hot(view: View) -> Iterator[Block]:
    if not view.has("paper", "one-hot"):
        return
    names = view.table("one-hot", "auc").classifiers
    yield Heading(3, "Taiwan: a direction that was not used")
    yield Prose(
        """The paper's list of directions says that risk rises with PAY_0, and its list of categorical features names
        PAY_0 too. We read that as ordered categories. Without the direction, each category with its own free
        effect, all eight figures move towards the published ones, MixLinARM1 most of all. So the published models
        most likely did not use it; the paper's text says as much of categories in general."""
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
        defaults, and loses their order. The published AUC and the published share of certain predictions (1.5) are
        both those of training with both classes weighing the same, so that is what was done. The price is in the
        calibration tables (1.4): such a model's probabilities are wrong by design."""
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
            bare = figure(view.line("paper", "auc", name, [data])[0])
            rows.append([f"{name}, {title_of(data)}", figure(printed), figure(float(values.mean())), spread, bare])
    total = len(SMALL) * len(tables[-1].classifiers)
    yield Heading(3, "German, Japan, Australia: how much is the deal of the folds")
    yield Prose(
        "With 690 or 1,000 rows the mean over ten folds depends on how the rows are dealt. The same models (with the "
        f"ridge 1/(2M)) were run with {len(tables)} deals. {total - len(rows)} of {total} published figures lie within "
        "the range of these deals; the others are listed, with what our models give without a ridge. On Japan and "
        "Australia those of the additive models lie between ours with a ridge and without (or within 0.002 of the "
        "latter), as a solver that stops early would have it. The XGBoost models have no ridge of ours and lie up to "
        "0.005 outside: not explained. On German the published two-layer models and mixtures lie 0.01 to 0.02 below "
        "every deal with the ridge, and below the one deal without it: not explained. (There the "
        "paper took its bin edges from Chen et al.; ours are found anew on the training rows of every "
        "fold, as the paper did elsewhere.)"
    )
    header = ("", "paper", f"mean of {len(tables)} deals", "lowest to highest", "no ridge, first deal")
    yield Grid("Published AUC outside the range of the deals", header, rows or [["none", *[""] * 4]])


def _poland(view: View) -> Iterator[Block]:
    if not view.has("codes", "slsqp"):
        return
    data = view.shared_data("codes", "slsqp")
    names = ("ARM1", "LinARM1", "ARM2", "LinARM2", "MixARM1", "MixLinARM1")
    yield Heading(3, "Poland: the code for a missing ratio, read as a number")
    yield Prose(
        """The paper writes -6 for a missing ratio, and its listing sets apart what is below -5.5. Ours keeps missing
        ratios, and ratios that really are below -5.5, in bins of their own. If both are numbers like any other and
        SLSQP stops after 25 steps, ARM1, LinARM1, ARM2, LinARM2 and MixARM1 are within 0.011 of the published figures
        on Poland_0 and Poland_2 (up to 0.021 away with bins of their own), and the shares of certain predictions
        come near too (1.5). At 100 steps, the other number tried, they are up to 0.053 below. MixLinARM1 is not
        brought nearer on Poland_2. On Poland_4 every published figure but MixLinARM1's is 0.01 to 0.03 below those of
        this table, and XGBoost's are below ours too: not explained."""
    )
    rows: list[list[Cell]] = []
    for name in names:
        own = slsqp_name(name, 25)
        printed, apart = view.line(_PAPER, "auc", name, data), view.line("slsqp", "auc", own, data)
        three = zip(printed, apart, view.line("codes", "auc", own, data), strict=True)
        rows.append([name, *(Mark(figure(a), figure(b), figure(c)) for a, b, c in three)])
    note = "Each place: the paper's; ours with missing ratios in bins of their own; ours with -6 a number."
    yield Grid("AUC, SLSQP stopped after 25 steps", ("", *map(title_of, data)), rows, note)


def _trees(view: View) -> Iterator[Block]:
    if not view.has("trees"):
        return
    table = view.table("trees", "auc")
    lines = {"paper, MonoXGB": view.line(_PAPER, "auc", "MonoXGB", table.datasets)}
    lines |= {name: view.line("trees", "auc", name, table.datasets) for name in table.classifiers}
    yield Heading(3, "Poland: MonoXGB, not explained")
    yield Prose(
        """The published MonoXGB falls below XGB by 0.11, 0.08 and 0.04 on the second, third and fourth year of Poland
        (Poland_1 to Poland_3), and by 0.003 and 0.012 on the first and the last. Whatever way XGBoost searches its
        splits, and whether missing ratios are missing or the number -6, we find it close to XGB. We know no setting
        that gives the published figure; ours is above it. (Of the third year we have 95% of the rows.)"""
    )
    for name in ("MonoXGB", "XGB"):
        if view.has("codes"):
            lines[f"{name}, -6 a number"] = view.line("codes", "auc", name, table.datasets)
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
