"""Tables of a report: figures with ranks, ours beside the published ones, differences of pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from plainrisk_lab.compare import HodgesLehmann, friedman
from plainrisk_lab.paper.document import Cell, Grid, Mark
from plainrisk_lab.study import METRICS, StudyTable

__all__ = ["beside", "figure", "pairs", "ranked", "signed", "title_of", "value_grid"]

_TITLES = {"heloc": "HELOC", "gmsc": "GMSC", "lending_club_2007_2011": "Lending Club 2007–11"}
_TITLES["lending_club_2007_2011_leaky"] = "the same, with hindsight"


def title_of(dataset: str) -> str:
    """Return a data set's name as it is printed.

    >>> title_of("poland_0"), title_of("heloc"), title_of("lc_3")
    ('Poland_0', 'HELOC', 'LC_3')
    """
    if dataset.startswith("lc_"):
        return dataset.upper()
    families = ("german", "japan", "australia", "taiwan", "poland")
    return _TITLES.get(dataset, dataset.capitalize() if dataset.startswith(families) else dataset)


def figure(value: float, digits: int = 4) -> str:
    """Write a number; nothing where there is none."""
    return "" if math.isnan(value) else f"{value:.{digits}f}"


def signed(value: float, digits: int = 4) -> str:
    """Write a difference with its sign and a true minus.

    >>> signed(-0.00123), signed(0.0), signed(0.5, 1)
    ('−0.0012', '0.0000', '+0.5')
    """
    if math.isnan(value):
        return ""
    text = f"{value:+z.{digits}f}"
    return text.replace("-", "−") if float(text) else text.lstrip("+")


def ranked(table: StudyTable, caption: str, note: str = "") -> Grid:
    """Return means with their ranks below, classifiers in rows, the best of a data set in bold."""
    ranks = table.ranks()
    best = np.where(np.isnan(ranks), np.inf, ranks).min(axis=1, initial=np.inf)
    rows: list[list[Cell]] = []
    for j, name in enumerate(table.classifiers):
        cells: list[Cell] = [
            Mark(figure(table.mean[i, j]), below=_rank(ranks[i, j]), bold=bool(ranks[i, j] == best[i]))
            for i in range(len(table.datasets))
        ]
        finite = ranks[:, j][~np.isnan(ranks[:, j])]
        rows.append([name, *cells, f"{finite.mean():.2f}" if len(finite) else ""])
    header = (METRICS[table.metric].title, *map(title_of, table.datasets), "mean rank")
    return Grid(caption, header, rows, note)


def beside(
    ours: StudyTable, paper: StudyTable, caption: str, note: str = "", tolerances: Mapping[str, float] | None = None
) -> Grid:
    """Return our means with the published ones and the differences below.

    With tolerances, a figure that is worse by more than its data set's is set off.
    """
    sign = 1.0 if ours.higher_is_better else -1.0
    printed = paper.select(ours.complete().datasets)
    rows: list[list[Cell]] = []
    for name in (c for c in ours.classifiers if c in paper.classifiers):
        row: list[Cell] = [name]
        for data in ours.datasets:
            mine = ours.value(data, name)
            gap = mine - paper.value(data, name)
            tone = ""
            if tolerances is not None and not math.isnan(gap):
                tone = "bad" if sign * gap < -tolerances.get(data, 0.005) else "good"
            row.append(Mark(figure(mine), figure(paper.value(data, name)), signed(gap), tone=tone))
        rows.append([*row, _mean_rank(ours, name), _mean_rank(printed, name)])
    header = (METRICS[ours.metric].title, *map(title_of, ours.datasets), "mean rank", "paper's")
    if len(ours.datasets) < 2:  # no ranks to take means of
        header, rows = header[:-2], [row[:-2] for row in rows]
    return Grid(caption, header, rows, note)


def pairs(found: HodgesLehmann, caption: str, note: str = "", published: HodgesLehmann | None = None) -> Grid:
    """Return Hodges-Lehmann differences of all pairs, row minus column, significant ones in bold.

    With published ones, they and our difference from them stand below.
    """
    rows: list[list[Cell]] = []
    for i, name in enumerate(found.classifiers):
        cells: list[Cell] = []
        for j in range(len(found.classifiers)):
            mine, bold = float(found.differences[i, j]), bool(found.significant[i, j])
            if i == j or published is None:
                cells.append("" if i == j else Mark(signed(mine, 3), bold=bold))
            else:
                theirs = float(published.differences[i, j])
                cells.append(Mark(signed(mine, 3), signed(theirs, 3), signed(mine - theirs, 3), bold=bold))
        rows.append([name, *cells])
    return Grid(caption, ("row minus column", *found.classifiers), rows, note)


def value_grid(
    caption: str,
    head: str,
    datasets: Sequence[str],
    lines: Mapping[str, Sequence[float]],
    note: str = "",
    digits: int = 4,
) -> Grid:
    """Return named lines of figures, a column per data set."""
    rows: list[list[Cell]] = [[name, *(figure(v, digits) for v in values)] for name, values in lines.items()]
    return Grid(caption, (head, *map(title_of, datasets)), rows, note)


def _rank(rank: float) -> str:
    return "" if math.isnan(rank) else f"{rank:g}"


def _mean_rank(table: StudyTable, classifier: str) -> str:
    """Return the mean rank over the data sets where every classifier has a figure."""
    results = table.complete()
    if classifier not in results.classifiers or len(results.datasets) < 2:
        return ""
    test = friedman(results.results(), table.higher_is_better)
    return f"{test.ranks[results.classifiers.index(classifier)]:.2f}"
