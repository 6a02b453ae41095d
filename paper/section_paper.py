"""The first part of the report: the paper reproduced, and where it cannot be."""

from __future__ import annotations

import numpy as np

from plainrisk.evaluate.compare import critical_difference_diagram, friedman
from plainrisk.study.accounts import accounts
from plainrisk.study.accounts_certainty import certainty_accounts
from plainrisk.study.checks import reproduction_checks
from plainrisk.study.figures import legend, pooled, reliability_svg
from plainrisk.study.grids import beside, ranked, title_of
from plainrisk.study.pairing import pairing_account
from plainrisk.study.pieces import Block, Fold, Heading, Items, Pictures, Prose
from plainrisk.study.section_pairs import pair_blocks, published_statistics
from plainrisk.study.tables import StudyTable, paper_table
from plainrisk.study.view import SMALL, View, tolerance_of

__all__ = ["paper_section", "reliability_pictures", "smallest_p"]

_SHOWN = ("ARM1", "LinARM1", "MixLinARM1", "XGB")


def paper_section(view: View) -> list[Block]:
    """Return the part on a study run under the paper's conventions."""
    return [
        Heading(1, "1. The paper reproduced"),
        Prose(
            """Twelve classifiers under the paper's conventions: ten stratified folds (seed 0), no ridge, both classes
            weighing the same in training, Hedge's loss clipped at 1e-15, the paper's features, bins, directions and
            subscales. Every figure is ours unless it is called the paper's or published: those are the four digits of
            the appendix of "Rethinking Log Odds". Differences are ours minus the paper's."""
        ),
        *_in_short(view),
        *reproduction_checks(view),
        *_auc(view),
        Heading(2, "1.3 Why figures differ"),
        Prose(
            """Every account is an experiment; its figures are in the store and below. Where none explains a difference,
            it is said."""
        ),
        *accounts(view),
        *_calibration(view),
        *_certainty(view),
        *_pairs(view),
        *_diagrams(view),
        Heading(2, "1.8 Reliability"),
        Prose(
            """Held-out predictions of all folds together. Balanced training moves every curve off the diagonal where
            bad outcomes are rare: a predicted 50% is then a few per cent in truth."""
        ),
        reliability_pictures(view, "paper", _SHOWN),
    ]


def _in_short(view: View) -> list[Block]:
    ours, paper = view.table("paper", "auc"), paper_table("auc")
    lines = [_count(ours, paper, "no ridge")]
    if view.has("balanced"):
        lines.append(_count(view.table("balanced", "auc"), paper, "the ridge 1/(2M) instead of none"))
        lines.append(
            "The reading to compare with is the one with the ridge. The paper states none, but where it matters its "
            "figures lie near those of a solver that stops early, and far from the optimum without a ridge (1.3)."
        )
    clipped = view.table("paper", "certainty")
    shares = [
        f"{title_of(d)} {clipped.value(d, 'LinARM1'):.3f} ({paper_table('certainty').value(d, 'LinARM1'):.3f})"
        for d in ("heloc", "gmsc", "taiwan")
        if d in clipped.datasets
    ]
    if shares:
        lines.append(
            f"Share of LinARM1's predictions that are exactly 0 or 1, ours (the paper's): {', '.join(shares)}."
        )
    lines.append(
        "The published calibration errors are not calibration errors: a recipe that compares predictions with the "
        "outcomes of other rows comes close to them, and the paper's own definition does not. By the definition the "
        "ranking of the models changes (1.4)."
    )
    return [Heading(2, "In short"), Items(tuple(lines))]


def _count(ours: StudyTable, paper: StudyTable, what: str) -> str:
    """Say how many figures are within tolerance of the published ones, the NNLRs aside."""
    names = [c for c in ours.classifiers if c in paper.classifiers and "NNLR" not in c]
    gaps = {
        (d, c): ours.value(d, c) - paper.value(d, c)
        for d in ours.datasets
        for c in names
        if d in paper.datasets and ours.value(d, c) == ours.value(d, c)
    }
    fine = [place for place, gap in gaps.items() if gap >= -tolerance_of(place[0])]
    close = [place for place, gap in gaps.items() if abs(gap) <= tolerance_of(place[0])]
    return (
        f"With {what}, {len(fine)} of {len(gaps)} AUCs (without the two NNLRs) are within 0.005 of the paper's or "
        f"above it, {len(close)} of them within on both sides. On {', '.join(map(title_of, SMALL))} the bound is 0.015."
    )


def _auc(view: View) -> list[Block]:
    table, paper = view.table("paper", "auc"), paper_table("auc")
    bounds = {d: tolerance_of(d) for d in table.datasets}
    note = (
        "Each place: ours, the paper's, and ours minus the paper's. Set off: lower by more than 0.005 (0.015 on the "
        "three small sets)."
    )
    blocks: list[Block] = [
        Heading(2, "1.2 AUC, ours and the paper's"),
        beside(table, paper, "AUC, no ridge (C = 0, as stated)", note, bounds),
    ]
    if view.has("balanced"):
        ridge = view.table("balanced", "auc")
        blocks.append(beside(ridge, paper, "AUC, ridge 1/(2M), everything else the same", note, bounds))
    blocks.append(Fold("AUC with ranks", (ranked(table, "AUC, no ridge; below, the rank on the data set"),)))
    return blocks


def _calibration(view: View) -> list[Block]:
    blocks: list[Block] = [
        Heading(2, "1.4 Calibration: the published tables and the definition"),
        Prose(
            """The paper defines the ECE over 15 equal bins as the sum of P(i)|o(i) − e(i)|. Its table cannot hold
            that: on GMSC six unrelated models have the same 0.2166, which is half of 0.5 minus the base rate. The
            following recipe comes close to the published figures: take both columns of predict_proba row by row, put
            them against the outcomes written out twice, so that predictions meet the outcomes of other rows, and
            halve the ECE. Under it a prediction and its outcome are unrelated, and what is measured is how far
            predictions lie from the base rate. The conclusions on calibration do not stand on these tables."""
        ),
        Prose(_closeness(view)),
    ]
    blocks.append(Prose(_turned(view)))
    for metric, title in (("ece", "ECE"), ("mce", "MCE")):
        printed, paper = view.table("paper", f"{metric}_as_printed"), paper_table(metric)
        note = "Each place: ours by the recipe, the paper's, and the difference."
        blocks.append(beside(printed, paper, f"{title} by the recipe, beside the published table", note))
        blocks.append(
            ranked(view.table("paper", metric), f"{title} by the definition, same predictions; below, the rank")
        )
    return [*blocks, *pairing_account(view)]


def _closeness(view: View) -> str:
    """Say how far the recipe and the definition are from the published figures."""
    words = []
    for metric in ("ece", "mce"):
        printed, far = paper_table(metric), []
        for name in (f"{metric}_as_printed", metric):
            table = view.table("paper", name).select(printed.datasets, printed.classifiers)
            gaps = np.abs(table.mean - printed.select(table.datasets, table.classifiers).mean)
            far.append((float(np.nanmedian(gaps)), float(np.nanmax(gaps))))
        words.append(
            f"{metric.upper()} {far[0][0]:.4f} by the recipe ({far[0][1]:.3f} at most) and {far[1][0]:.4f} by the "
            f"definition ({far[1][1]:.3f} at most)"
        )
    return f"The median distance of our figures from the published ones is, for the {'; for the '.join(words)}."


def _turned(view: View) -> str:
    """Say which models the recipe and the definition call best and worst."""
    ends = []
    for metric in ("ece_as_printed", "ece"):
        table = view.table("paper", metric).complete()
        if len(table.datasets) < 2:
            return ""
        ranks = friedman(table.results(), higher_is_better=False).ranks
        order = [f"{table.classifiers[j]} ({ranks[j]:.1f})" for j in ranks.argsort()]
        ends.append((", ".join(order[:3]), ", ".join(order[-3:])))
    return (
        f"By mean rank the recipe puts {ends[0][0]} first and {ends[0][1]} last; the definition, on the same "
        f"predictions, puts {ends[1][0]} first and {ends[1][1]} last."
    )


def _certainty(view: View) -> list[Block]:
    table = view.table("paper", "certainty")
    lively = [c for c in table.classifiers if not _never_certain(table, c)]
    quiet = [c for c in table.classifiers if c not in lively]
    note = "Each place: ours, the paper's, and the difference."
    if quiet:
        note += f" Not shown, since neither ours nor the paper's is ever certain: {', '.join(quiet)}."
    printed = paper_table("certainty").select(classifiers=lively)
    grid = beside(table.select(classifiers=lively), printed, "Share of exact 0s and 1s", note)
    return [
        Heading(2, "1.5 Certainty"),
        Prose(
            """The share of test predictions that are exactly 0 or 1, by the same definition as the paper's; here at
            the optimum without a ridge."""
        ),
        grid,
        *certainty_accounts(view),
    ]


def _never_certain(table: StudyTable, classifier: str) -> bool:
    figures = [t.value(d, classifier) for t in (table, paper_table("certainty")) for d in table.datasets]
    return all(figure != figure or figure < 5e-5 for figure in figures)


def _pairs(view: View) -> list[Block]:
    table = view.table("paper", "auc").complete()
    if min(len(table.datasets), len(table.classifiers)) < 2:
        return []
    n, k = len(table.datasets), len(table.classifiers)
    test = friedman(table.results())
    text = (
        f"Typical differences (Hodges-Lehmann, as the paper computed them: pairs i < j) over {n} data sets; "
        f"{test.summary().partition('; ')[2]}. {smallest_p(n, k)} The paper had 24."
    )
    return [Heading(2, "1.6 Differences of pairs"), Prose(text), *pair_blocks(view), *published_statistics()]


def smallest_p(n: int, k: int) -> str:
    """Say what the tests can find at most with n data sets and k classifiers."""
    least, count = 2.0 / 2.0**n, k * (k - 1) // 2
    if least * count <= 0.05:
        return f"The smallest p-value {n} data sets can give is {least:.2g}; {count} pairs are tested."
    return (
        f"With {n} data sets no p-value can be below {least:.4f}, and Holm's adjustment over {count} pairs multiplies "
        f"the smallest by {count}: no difference of a pair can be significant here, however large."
    )


def _diagrams(view: View) -> list[Block]:
    here = view.table("paper", "auc").complete().datasets
    shown = {"AUC, ours, no ridge": view.table("paper", "auc")}
    if view.has("balanced"):
        shown["AUC, ours, ridge 1/(2M)"] = view.table("balanced", "auc")
    shown["AUC, the published table, the same data sets"] = paper_table("auc").select(here)
    shown["AUC, the published table, all data sets"] = paper_table("auc")
    shown["ECE by the definition, ours, no ridge"] = view.table("paper", "ece")
    blocks: list[Block] = [Heading(2, "1.7 Critical difference diagrams")]
    for title, table in shown.items():
        part = table.complete()
        if min(len(part.datasets), len(part.classifiers)) >= 2:
            drawn = critical_difference_diagram(part.results(), part.higher_is_better, title=title)
            blocks.append(Pictures((drawn.svg,), f"{title}: average ranks over {len(part.datasets)} data sets."))
    return blocks


def reliability_pictures(view: View, study: str, names: tuple[str, ...]) -> Pictures:
    """Return a small reliability diagram per data set."""
    plan, svgs = view.store.plan(study), []
    for data in view.store.sets(study):
        if data.fingerprint is None:
            continue
        curves = {name: pooled(view.store, plan, data.fingerprint, name) for name in names}
        known = {name: curve for name, curve in curves.items() if curve is not None}
        if known:
            svgs.append(reliability_svg(title_of(data.name), known))
    caption = "Predicted against observed risk, 15 equal bins; the area of a dot is its share of the rows."
    return Pictures(tuple(svgs), caption, legend(names))
