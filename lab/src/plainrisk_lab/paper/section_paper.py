"""The first part of the report: the paper reproduced, and where it cannot be."""

from __future__ import annotations

import numpy as np

from plainrisk_lab.compare import HodgesLehmann, critical_difference_diagram, friedman, hodges_lehmann_table
from plainrisk_lab.paper.checks import reproduction_checks
from plainrisk_lab.paper.claims import claims_section, corrections
from plainrisk_lab.paper.document import Block, Fold, Heading, Items, Pictures, Prose
from plainrisk_lab.paper.explanations import auc_explanations, certainty_explanations
from plainrisk_lab.paper.figures import alpha_svg, legend, pooled, reliability_svg
from plainrisk_lab.paper.grids import beside, pairs, ranked, signed, title_of
from plainrisk_lab.paper.pairing import pairing_account
from plainrisk_lab.paper.published import paper_table
from plainrisk_lab.paper.view import SMALL, View, prose, tolerance_of
from plainrisk_lab.study import StudyTable

__all__ = ["paper_section", "reliability_pictures", "smallest_p"]

_SHOWN = ("ARM1", "LinARM1", "MixLinARM1", "XGB")
_PAIR_NOTE = (
    "Each place: ours, the paper's on the same data sets (recomputed from its raw table), and the difference. "
    "Bold: ours significant after Holm's adjustment at 0.05."
)
# Both are printed to three digits.
_SAME = 5e-4


def paper_section(view: View) -> list[Block]:
    """Return the part on a study run under the paper's conventions."""
    return [
        Heading(1, "1. The paper reproduced"),
        prose("paper"),
        *_coverage(view),
        *_in_short(view),
        *claims_section(view),
        *reproduction_checks(view),
        *_auc(view),
        Heading(2, "1.3 Why figures differ"),
        prose("differences"),
        *auc_explanations(view),
        *_calibration(view),
        *_certainty(view),
        *_pairs(view),
        *_diagrams(view),
        Heading(2, "1.8 Reliability"),
        prose("reliability"),
        reliability_pictures(view, "paper", _SHOWN),
        *corrections(view),
    ]


def _coverage(view: View) -> list[Block]:
    """Return which of the paper's data sets are here, and why the others are not."""
    printed, here = paper_table("auc").datasets, view.table("paper", "auc").datasets
    covered = [d for d in printed if d in here]
    why: dict[str, list[str]] = {}
    for data in view.store.sets("paper"):
        if data.fingerprint is None:
            account = ", and needs an account to be downloaded" if "account" in data.note else ""
            why.setdefault(f"the file is not on this machine{account}", []).append(title_of(data.name))
    absent = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in why.items())
    partial = [f"{title_of(d.name)}: {d.note}" for d in view.store.sets("paper") if d.fingerprint and d.note]
    text = f"{len(covered)} of the paper's {len(printed)} data sets are here: {', '.join(map(title_of, covered))}."
    text += f" Not here: {absent}." if absent else ""
    return [Prose(" ".join([f"**Coverage.** {text}", *partial]))]


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
    """Return how many figures are within tolerance of the published ones, the NNLRs aside."""
    names = [c for c in ours.classifiers if c in paper.classifiers and "NNLR" not in c]
    gaps = {
        (d, c): ours.value(d, c) - paper.value(d, c)
        for d in ours.datasets
        for c in names
        if d in paper.datasets and ours.value(d, c) == ours.value(d, c)
    }
    fine = [place for place, gap in gaps.items() if gap >= -tolerance_of(place[0])]
    close = [place for place, gap in gaps.items() if abs(gap) <= tolerance_of(place[0])]
    (data, name), widest = max(gaps.items(), key=lambda item: abs(item[1]), default=(("", ""), 0.0))
    return (
        f"With {what}, {len(close)} of {len(gaps)} AUCs (without the two NNLRs) are within 0.005 of the paper's, on "
        f"either side; {len(fine)} are within or above. On {', '.join(map(title_of, SMALL))} the bound is 0.015. The "
        f"largest difference is {signed(widest)} ({name} on {title_of(data)})."
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
        prose("calibration"),
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
    """Return how far the recipe and the definition are from the published figures."""
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
    """Return which models the recipe and the definition call best and worst."""
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
        prose("certainty"),
        grid,
        *certainty_explanations(view),
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
    return [Heading(2, "1.6 Differences of pairs"), Prose(text), *_pair_blocks(view), *_published_statistics()]


def _pair_blocks(view: View) -> list[Block]:
    """Return Hodges-Lehmann differences of AUC, ECE and MCE beside the paper's."""
    blocks: list[Block] = []
    shown = [("paper", "auc", "auc", "AUC, no ridge")]
    if view.has("balanced"):
        shown.append(("balanced", "auc", "auc", "AUC, ridge 1/(2M)"))
    shown += [("paper", f"{m}_as_printed", m, f"{m.upper()} by the recipe, no ridge") for m in ("ece", "mce")]
    for study, metric, published, title in shown:
        mine = view.table(study, metric).complete()
        printed = paper_table(published).select(mine.datasets, mine.classifiers)
        if min(len(mine.datasets), len(printed.classifiers)) < 2 or printed.datasets != mine.datasets:
            continue
        ours, theirs = (hodges_lehmann_table(t.results(), pairs="strict") for t in (mine, printed))
        grid = pairs(ours, f"{title}: Hodges-Lehmann differences, {len(mine.datasets)} data sets", _PAIR_NOTE, theirs)
        blocks += [Prose(f"{title}: {_agreement(ours, theirs)}"), Fold(f"{title}, all pairs", (grid,))]
    for metric in ("ece", "mce"):
        table = view.table("paper", metric)
        if min(len(table.complete().datasets), len(table.complete().classifiers)) >= 2:
            differences = hodges_lehmann_table(table.results(), pairs="strict")
            grid = pairs(
                differences, f"{metric.upper()} by the definition, Hodges-Lehmann differences, row minus column"
            )
            blocks.append(Fold(f"{metric.upper()} by the definition, all pairs", (grid,)))
    return blocks


def _agreement(ours: HodgesLehmann, theirs: HodgesLehmann) -> str:
    """Return how many pairs go the same way, and which differ most, with the NNLRs and without them."""
    names = ours.classifiers
    upper = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names))]
    rest = [(i, j) for i, j in upper if "NNLR" not in names[i] + names[j]]
    words = [f"of {len(upper)} pairs {_same_way(ours, theirs, upper)}"]
    if rest and len(rest) < len(upper):
        words.append(f"Without the two NNLRs: of {len(rest)} pairs {_same_way(ours, theirs, rest)}")
    return ". ".join(words) + "."


def _same_way(ours: HodgesLehmann, theirs: HodgesLehmann, places: list[tuple[int, int]]) -> str:
    mine, printed = (np.array([t.differences[place] for place in places]) for t in (ours, theirs))
    clear = (np.abs(mine) >= _SAME) & (np.abs(printed) >= _SAME)
    same = int((np.sign(mine) == np.sign(printed))[clear].sum())
    gap = np.abs(mine - printed)
    worst = int(gap.argmax())
    first, second = (ours.classifiers[k] for k in places[worst])
    return (
        f"{int(clear.sum())} differ by 0.0005 or more in both tables, and {same} of these go the same way; the tables "
        f"are {np.median(gap):.3f} apart (median), and most for {first} against {second}: {signed(mine[worst], 3)} "
        f"here, {signed(printed[worst], 3)} in the paper"
    )


def _published_statistics() -> list[Block]:
    """Return what comes of recomputing the paper's statistics from its own raw tables."""
    tests = {metric: _friedman(paper_table(metric)) for metric in ("auc", "ece", "mce")}
    stats = ", ".join(f"{chi2:.4f} and {f:.4f} for the {metric.upper()}" for metric, (chi2, f) in tests.items())
    return [
        Heading(3, "The paper's statistics from its own tables"),
        Items(
            (
                f"Friedman's chi-square and F over the 24 data sets are {stats}: as published. So are all 864 ranks.",
                (
                    "All 198 published Hodges-Lehmann differences come out, if pairs i < j are averaged. The text says "
                    "i ≤ j, the usual estimator; that changes 13 cells of the AUC, 8 of the ECE and 38 of the MCE."
                ),
                (
                    "All 66 significances of the AUC come out with Pratt's treatment of zeros; the one the appendix "
                    "describes (zsplit) misses one. For the ECE, four do not come out by any method; for the MCE, two "
                    "do not with exact p-values and one does not with the normal approximation."
                ),
                "The published difference tables of ECE and MCE hold column minus row, the opposite of their captions.",
                "The tests of this package check these statements against the published tables.",
            )
        ),
    ]


def _friedman(table: StudyTable) -> tuple[float, float]:
    test = friedman(table.results(), table.higher_is_better)
    return float(test.statistic), float(test.f_statistic)


def smallest_p(n: int, k: int) -> str:
    """Return what the tests can find at most with n data sets and k classifiers."""
    least, count = 2.0 / 2.0**n, k * (k - 1) // 2
    if least * count <= 0.05:
        return f"The smallest p-value {n} data sets can give is {least:.2g}; {count} pairs are tested."
    return (
        f"With {n} data sets no p-value can be below {least:.4f}, and Holm's adjustment over {count} pairs multiplies "
        f"the smallest by {count}: no difference of a pair can be significant here, however large."
    )


def _diagrams(view: View) -> list[Block]:
    study, how = ("balanced", "ridge 1/(2M)") if view.has("balanced") else ("paper", "no ridge")
    here = view.table(study, "auc").complete().datasets
    shown: dict[str, StudyTable] = {}
    for metric, what in (("auc", "AUC"), ("ece", "ECE"), ("mce", "MCE")):
        by = "" if metric == "auc" else " by the definition"
        shown[f"{what}, the published table, all data sets"] = paper_table(metric)
        shown[f"{what}, the published table, the same data sets"] = paper_table(metric).select(here)
        shown[f"{what}{by}, ours, {how}"] = view.table(study, metric)
    blocks: list[Block] = [
        Heading(2, "1.7 The paper's figures"),
        Pictures((alpha_svg(),), "Figure 1: the squared error of the clipped line by α, and the best one."),
        Prose("Figure 2: critical difference diagrams of AUC, ECE and MCE, published and ours."),
    ]
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
        drawable = {name: curve for name, curve in curves.items() if curve is not None}
        if drawable:
            svgs.append(reliability_svg(title_of(data.name), drawable))
    caption = "Predicted against observed risk, 15 equal bins; the area of a dot is its share of the rows."
    if len(svgs) < len(view.table(study, "auc").datasets):
        caption += " Figures read back from a .csv file have no predicted risks to draw; a new run of the study has."
    return Pictures(tuple(svgs), caption, legend(names))
