"""Every cell without a result, with its reason, and where the time of a study went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plainrisk.study.grids import title_of
from plainrisk.study.pieces import Block, Cell, Grid, Prose
from plainrisk.study.tables import Timing, fold_gaps, timings
from plainrisk.study.view import View

__all__ = ["gap_grid", "time_grids"]


def gap_grid(view: View, studies: Sequence[str]) -> Iterator[Block]:
    """Yield which folds failed, were skipped or are missing, grouped by their reason and place."""
    found: dict[tuple[str, str, str, str], dict[str, list[int]]] = {}
    for study in studies:
        for gap in fold_gaps(view.store, study):
            place = found.setdefault((study, gap.classifier, gap.status, gap.reason), {})
            place.setdefault(gap.dataset, []).extend(gap.folds)
    if not found:
        yield Prose("Every fit has a result.")
        return
    alike: dict[tuple[str, str, str, str], tuple[list[str], int]] = {}
    for (study, classifier, status, reason), places in found.items():
        where = ", ".join(f"{title_of(d)} (fold {_numbers(folds)})" for d, folds in places.items())
        names, count = alike.get((study, status, where, reason), ([], 0))
        alike[study, status, where, reason] = ([*names, classifier], count + sum(map(len, places.values())))
    rows: list[list[Cell]] = [
        [study, ", ".join(names), status, f"{count}", where, reason]
        for (study, status, where, reason), (names, count) in alike.items()
    ]
    header = ("study", "classifier", "status", "fits", "where", "why")
    note = "A classifier has no figure on a data set where a fold has no result, and that set no part in mean ranks."
    yield Grid("Fits without a result", header, rows, note, words=True)


def _numbers(folds: Sequence[int]) -> str:
    """Write fold numbers, runs of them short.

    >>> _numbers([0, 1, 2, 5, 7, 8])
    '0–2, 5, 7–8'
    """
    runs: list[list[int]] = []
    for fold in sorted(folds):
        if runs and fold == runs[-1][1] + 1:
            runs[-1][1] = fold
        else:
            runs.append([fold, fold])
    return ", ".join(f"{a}" if a == b else f"{a}–{b}" for a, b in runs)


def time_grids(view: View, study: str) -> Iterator[Block]:
    """Yield the seconds of a study by data set and by classifier."""
    for by, head in (("dataset", "data set"), ("classifier", "classifier")):
        spent = timings(view.store, study, by)
        total = sum(t.seconds for t in spent)
        rows = [_time_row(t, total) for t in spent]
        yield Grid(f"{study}: time by {head}", (head, "fits", "failed", "seconds", "share", "peak MB"), rows)


def _time_row(timing: Timing, total: float) -> list[Cell]:
    share = f"{timing.seconds / total:.0%}" if total else ""
    peak = "" if timing.peak_mb is None else f"{timing.peak_mb:,.0f}"
    name = title_of(timing.name)
    return [name, f"{timing.done:,}", f"{timing.failed:,}", f"{timing.seconds:,.1f}", share, peak]
