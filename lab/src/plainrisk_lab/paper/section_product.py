"""The second part of the report: the study as it should be run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

import numpy as np

from plainrisk.errors import PlainriskError
from plainrisk_lab.compare import bayesian_signed_rank, critical_difference_diagram, friedman
from plainrisk_lab.paper.document import Block, Cell, Fold, Grid, Heading, Items, Pictures, Prose
from plainrisk_lab.paper.grids import figure, ranked, signed, title_of
from plainrisk_lab.paper.head_to_head import best_grid, duel_grid, duel_summary, duels
from plainrisk_lab.paper.section_paper import reliability_pictures, smallest_p
from plainrisk_lab.paper.view import View, missing_results, prose
from plainrisk_lab.study import METRICS, StudyTable
from plainrisk_lab.study.tables import gaps, study_cells

__all__ = ["product_section"]

# Differences smaller than this are of no use to a lender: 0.005 of AUC, a hundredth of the Brier score's usual size.
_ROPE = {"auc": 0.005, "brier": 0.001}
_PAIRS = (
    ("BandARM1", "LinARM1"),
    ("DirectARM1", "LinARM1"),
    ("DirectARM1", "ARM1"),
    ("DirectARM2", "ARM2"),
    ("MixDirectARM1", "MixLinARM1"),
    ("CalibratedMixARM1", "MixARM1"),
    ("ARM1", "XGB"),
    ("SmoothARM1", "ARM1"),
    ("SmoothARM1", "TunedXGB"),
    ("SmoothARM1", "EBM"),
    ("SmoothARM1", "BinnedLR"),
)
# What each gives up, or not, for adding up in probability.
_IN_PROBABILITY = ("LinARM1", "BandARM1", "DirectARM1", "SmoothARM1")
_SHOWN = ("SmoothARM1", "LinARM1", "BandARM1", "DirectARM1")
_CONTENDERS = ("SmoothARM1", "BandARM1", "DirectARM1")
_RIVALS = ("EBM", "BinnedLR", "Optbinning", "LightGBM", "XGB", "TunedXGB")
_OURS = (
    *("SmoothARM1", "ARM1", "LinARM1", "BandARM1", "DirectARM1", "ARM2", "LinARM2", "DirectARM2"),
    *("MixARM1", "CalibratedMixARM1", "MixLinARM1", "MixDirectARM1"),
)
_KINDS: dict[str, Sequence[str]] = {
    "ours, exact in probability": ("SmoothARM1", "BandARM1", "DirectARM1", "LinARM1"),
    "ours, log odds": ("ARM1",),
    "ours, by subscales": ("ARM2", "LinARM2", "DirectARM2", "MixARM1", "CalibratedMixARM1", "MixLinARM1"),
    "additive rivals": ("EBM", "BinnedLR", "Optbinning"),
    "trees": ("LightGBM", "TunedXGB", "XGB", "MonoXGB"),
}


def product_section(view: View) -> list[Block]:
    """Return the part on the study at the true base rate, with rivals."""
    return [
        Heading(1, "2. The study as it should be run"),
        prose("product"),
        *_in_short(view),
        *_tables(view, "product", "2"),
        *_against(view),
        *_bayes(view),
        Heading(2, "2.5 Reliability"),
        reliability_pictures(view, "product", _SHOWN),
        *_cost(view, "product", "2.6 What a fit costs"),
    ]


def _in_short(view: View) -> Iterator[Block]:
    lines = [*_unfinished(view), *_first_places(view), *_duels_told(view), *_price_of_lines(view)]
    if lines:
        yield Heading(2, "What to take from it")
        yield Items(tuple(lines))


def _unfinished(view: View) -> Iterator[str]:
    """Yield a note if fits have no result."""
    missing = gaps(view.store, "product")
    count = sum(len(gap.folds) for gap in missing)
    if count:
        every = sum(view.store.plan("product").cv for _ in study_cells(view.store, "product"))
        names = ", ".join(dict.fromkeys(title_of(gap.dataset) for gap in missing))
        yield f"{count:,} of {every:,} fits have no result (on {names}; listed in 2.1): what follows is without them."


def _first_places(view: View) -> Iterator[str]:
    """Yield the classifier that is first by mean rank."""
    auc = view.table("product", "auc")
    places: dict[str, list[str]] = {}
    for i, data in enumerate(auc.datasets):
        if not np.isnan(auc.mean[i]).all():
            best = auc.classifiers[int(np.nanargmax(auc.mean[i]))]
            best_of_ours = max(v for c in _OURS if not math.isnan(v := auc.value(data, c)))
            places.setdefault(best, []).append(
                f"{title_of(data)} ({signed(best_of_ours - float(np.nanmax(auc.mean[i])))})"
            )
    told_places = "; ".join(f"{best} on {', '.join(sets)}" for best, sets in places.items())
    yield f"Best AUC by data set, and in brackets how far the best of our additive models is from it: {told_places}."
    for metric in ("auc", "ece", "brier"):
        table = view.table("product", metric).complete()
        if len(table.datasets) < 2:
            return
        test = friedman(table.results(), table.higher_is_better)
        order = [f"{table.classifiers[j]} ({test.ranks[j]:.1f})" for j in test.ranks.argsort()]
        yield (
            f"{METRICS[metric].title}, mean rank over {len(table.datasets)} data sets: first {', '.join(order[:5])}; "
            f"last {', '.join(order[-3:])}."
        )


def _duels_told(view: View) -> Iterator[str]:
    """Yield the results of our classifiers against each rival, by AUC."""
    compared = duels(view.table("product", "auc"), _CONTENDERS, _RIVALS)
    for name in dict.fromkeys(d.ours for d in compared):
        aside = " (what `plainrisk fit` makes)" if name == "SmoothARM1" else ""
        yield f"{name}{aside}, typical difference of AUC: {duel_summary([d for d in compared if d.ours == name])}."


def _price_of_lines(view: View) -> Iterator[str]:
    """Yield how much a model that adds up in probability loses against ARM1."""
    auc, certain = view.table("product", "auc"), view.table("product", "certainty")
    for name in (c for c in _IN_PROBABILITY if c in auc.classifiers):
        gaps = {d: auc.value(d, name) - auc.value(d, "ARM1") for d in auc.datasets}
        finite = {d: gap for d, gap in gaps.items() if not math.isnan(gap)}
        if not finite:
            continue
        worst = min(finite, key=lambda d: finite[d])
        shares = [certain.value(d, name) for d in finite]
        yield (
            f"{name} against ARM1: AUC {signed(statistics.fmean(finite.values()))} on average, "
            f"{signed(finite[worst])} at worst ({title_of(worst)}); {statistics.fmean(shares):.1%} of its predictions "
            f"are exactly 0 or 1, {max(shares):.1%} at worst."
        )


def _against(view: View) -> Iterator[Block]:
    """Yield ours against rivals."""
    yield Heading(2, "2.3 Ours against rivals")
    yield prose("rivals")
    for metric in ("auc", "ece", "brier"):
        table = view.table("product", metric)
        compared = duels(table, _CONTENDERS, _RIVALS)
        if compared:
            yield duel_grid(table, compared)
    yield best_grid(view.table("product", "auc"), _KINDS)


def _tables(view: View, study: str, number: str) -> Iterator[Block]:
    metrics = view.store.plan(study).metrics
    chosen = [m for m in ("auc", "ece", "brier", "log_loss", "certainty", "mce", "ks") if m in metrics]
    yield Heading(2, f"{number}.1 Figures")
    for place, metric in enumerate(chosen):
        title = METRICS[metric].title
        grid = ranked(view.table(study, metric), f"{title}; below, the rank on the data set")
        yield grid if place < 3 else Fold(f"{title} with ranks", (grid,))
    yield missing_results(view, [study])
    yield from _ranks(view, study, number, [m for m in ("auc", "ece", "brier") if m in chosen])


def _ranks(view: View, study: str, number: str, metrics: Sequence[str]) -> Iterator[Block]:
    yield Heading(2, f"{number}.2 Ranks")
    for metric in metrics:
        table = view.table(study, metric).complete()
        if min(len(table.datasets), len(table.classifiers)) < 2:
            yield Prose("Ranks need two data sets on which every classifier has a figure.")
            return
        title = f"{METRICS[metric].title}, {len(table.datasets)} data sets"
        results = table.results()
        try:
            svg = critical_difference_diagram(results, table.higher_is_better, title=title).svg
        except PlainriskError:
            continue
        test = friedman(results, table.higher_is_better)
        yield Pictures((svg,), f"Average ranks by {METRICS[metric].title}. {test.summary()}.")
    yield Prose(smallest_p(len(table.datasets), len(table.classifiers)))


def _bayes(view: View) -> Iterator[Block]:
    """Yield what can be said of single pairs."""
    yield Heading(2, "2.4 Pairs that matter")
    yield prose("pairs")
    for metric, rope in _ROPE.items():
        table = view.table("product", metric).complete()
        rows = [row for pair in _PAIRS if (row := _pair(table, pair, rope)) is not None]
        header = ("first against second", "median difference", "first better", "practically equal", "second better")
        yield Grid(f"{METRICS[metric].title}, {len(table.datasets)} data sets", header, rows)


def _pair(table: StudyTable, pair: tuple[str, str], rope: float) -> list[Cell] | None:
    if not set(pair) <= set(table.classifiers) or len(table.datasets) < 2:
        return None
    first, second = (table.mean[:, table.classifiers.index(name)] for name in pair)
    better, worse = (first, second) if table.higher_is_better else (second, first)
    posterior = bayesian_signed_rank(better, worse, rope=rope)
    gap = statistics.median((first - second).tolist())
    chances = (posterior.right, posterior.rope, posterior.left)
    return [f"{pair[0]} against {pair[1]}", signed(gap), *(f"{p:.2f}" for p in chances)]


def _cost(view: View, study: str, title: str) -> Iterator[Block]:
    plan, store = view.store.plan(study), view.store
    sets = [d for d in store.sets(study) if d.fingerprint is not None]
    rows: list[list[Cell]] = []
    for spec in plan.lineup:
        row: list[Cell] = [spec.name]
        for data in sets:
            assert data.fingerprint is not None
            cells = store.cells(data.fingerprint, spec.key, plan.cv, plan.seed)
            times = [c.fit_seconds for c in cells if c.fit_seconds is not None]
            row.append(figure(statistics.fmean(times) if times else math.nan, 2))
        rows.append(row)
    yield Heading(2, title)
    header = ("seconds per fit", *(title_of(d.name) for d in sets))
    counts: list[Cell] = ["rows", *(f"{d.rows or 0:,}" for d in sets)]
    note = (
        "One thread per fit, two fits at a time on a machine shared with other work. A linearised model is charged the "
        "time of the model it is made from."
    )
    yield Grid("Seconds per fit, mean over the folds", header, [counts, *rows], note)
