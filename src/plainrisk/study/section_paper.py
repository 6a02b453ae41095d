"""The first part of the report: the paper reproduced, and where it cannot be."""

from __future__ import annotations

from plainrisk.compare import critical_difference_diagram, friedman, hodges_lehmann_table
from plainrisk.study.accounts import accounts
from plainrisk.study.figures import legend, pooled, reliability_svg
from plainrisk.study.grids import beside, pairs, ranked, title_of
from plainrisk.study.pieces import Block, Fold, Heading, Items, Pictures, Prose
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
            subscales. Published figures are those of its appendix, four digits. Differences are ours minus the
            paper's."""
        ),
        *_in_short(view),
        *_auc(view),
        Heading(2, "1.2 Why figures differ"),
        *accounts(view),
        *_calibration(view),
        *_certainty(view),
        *_pairs(view),
        *_diagrams(view),
        Heading(2, "1.7 Reliability"),
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
        "The published calibration errors are not calibration errors: they are reproduced by a recipe that compares "
        "predictions with the outcomes of other rows. By the paper's own definition the ranking of the models changes."
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
        "Below each figure: ours minus the paper's. Set off: lower by more than 0.005 (0.015 on the three small sets)."
    )
    blocks: list[Block] = [
        Heading(2, "1.1 AUC"),
        beside(table, paper, "AUC, no ridge (C = 0, as stated)", note, bounds),
    ]
    if view.has("balanced"):
        ridge = view.table("balanced", "auc")
        blocks.append(beside(ridge, paper, "AUC, ridge 1/(2M), everything else the same", note, bounds))
    blocks.append(Fold("AUC with ranks", (ranked(table, "AUC, no ridge; below, the rank on the data set"),)))
    return blocks


def _calibration(view: View) -> list[Block]:
    blocks: list[Block] = [
        Heading(2, "1.3 Calibration: the published tables and the definition"),
        Prose(
            """The paper defines the ECE over 15 equal bins as the sum of P(i)|o(i) − e(i)|. Its table cannot hold
            that: on GMSC six unrelated models have the same 0.2166, which is half of 0.5 minus the base rate. The
            following recipe gives the published figures: take both columns of predict_proba row by row, put them
            against the outcomes written out twice, so that predictions meet the outcomes of other rows, and halve
            the result. Under it a prediction and its outcome are unrelated, and what is measured is how far
            predictions lie from the base rate. The conclusions on calibration do not stand on these tables."""
        ),
    ]
    blocks.append(Prose(_turned(view)))
    for metric, title in (("ece", "ECE"), ("mce", "MCE")):
        printed, paper = view.table("paper", f"{metric}_as_printed"), paper_table(metric)
        note = "Below each figure: ours minus the paper's."
        blocks.append(beside(printed, paper, f"{title} by the recipe, beside the published table", note))
        blocks.append(
            ranked(view.table("paper", metric), f"{title} by the definition, same predictions; below, the rank")
        )
    return blocks


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
    note = "Below each figure: ours minus the paper's. LinARM1 is the column to look at; NNLR differs as its AUC does."
    grid = beside(view.table("paper", "certainty"), paper_table("certainty"), "Share of exact 0s and 1s", note)
    return [
        Heading(2, "1.4 Certainty"),
        Prose(
            """The share of test predictions that are exactly 0 or 1. Without a ridge it grows with how far the solver
            goes: on Poland the true optimum is more certain than where SLSQP stops (see 1.2)."""
        ),
        grid,
    ]


def _pairs(view: View) -> list[Block]:
    table = view.table("paper", "auc").complete()
    if min(len(table.datasets), len(table.classifiers)) < 2:
        return []
    found = hodges_lehmann_table(table.results(), pairs="strict")
    n, k = len(table.datasets), len(table.classifiers)
    test = friedman(table.results())
    text = (
        f"Typical differences (Hodges-Lehmann, as the paper computed them: pairs i < j) over {n} data sets; "
        f"{test.summary().partition('; ')[2]}. {smallest_p(n, k)} The paper had 24."
    )
    note = "Bold: significant after Holm's adjustment at 0.05."
    blocks: list[Block] = [
        Heading(2, "1.5 Differences of pairs"),
        Prose(text),
        pairs(found, "AUC, Hodges-Lehmann differences, no ridge", note),
    ]
    for metric, title in (("ece", "ECE"), ("mce", "MCE")):
        other = hodges_lehmann_table(view.table("paper", metric).results(), pairs="strict")
        grid = pairs(other, f"{title} by the definition, Hodges-Lehmann differences", note)
        blocks.append(Fold(f"{title}, differences of pairs", (grid,)))
    return blocks


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
    table = view.table("paper", "auc").complete()
    svgs = []
    if min(len(table.datasets), len(table.classifiers)) >= 2:
        title = f"AUC, ours, {len(table.datasets)} data sets"
        svgs.append(critical_difference_diagram(table.results(), title=title).svg)
    published = paper_table("auc").results()
    svgs.append(critical_difference_diagram(published, title="AUC, the published table, 24 data sets").svg)
    errors = view.table("paper", "ece").complete()
    if min(len(errors.datasets), len(errors.classifiers)) >= 2:
        title = f"ECE by the definition, ours, {len(errors.datasets)} data sets"
        svgs.append(critical_difference_diagram(errors.results(), higher_is_better=False, title=title).svg)
    return [Heading(2, "1.6 Critical difference diagrams"), *(Pictures((svg,), "") for svg in svgs)]


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
