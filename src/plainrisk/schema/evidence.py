"""Evidence on the outcome in one column: bad rates, AUC, information value, candidate direction, signs of a leak.

The rows of a column are counted in cells: at most ten bins of nearly equal size, or categories, and one cell for each
code and for missing values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from plainrisk._types import Floats, Index
from plainrisk.data.columns import label_of
from plainrisk.data.frame import Labels
from plainrisk.schema.findings import Finding

__all__ = [
    "FEW",
    "MOST_BINS",
    "MOST_ROWS",
    "Cells",
    "duplicate_findings",
    "findings_of",
    "label_cells",
    "leaks_of",
    "level_cells",
    "number_cells",
    "percent",
    "spread_rows",
]

MOST_BINS = 10
MOST_ROWS = 200_000  # rows that the evidence is taken from, evenly spread over the table
_PAIR_ROWS = 20_000  # rows in which columns are compared with each other
_ALIKE = 0.99  # rank correlation from which on two columns say the same
_LEAK = 0.95  # AUC, or share of the rarer outcome in a cell, from which on a feature is too good to be true
FEW = 30  # fewer rows are no evidence
# Words for what happens to a loan after the decision.
_AFTERWARD = re.compile(
    r"recover|late fee|settlement|hardship|writ\w+ off|(last|total) (pymnt|payment|rec\b)|out prncp"
)


@dataclass(frozen=True)
class Cells:
    """The cells of a column.

    Attributes
    ----------
    labels : a text per cell, such as "= 98" or "missing"
    n, bad : rows, and rows of the bad outcome, per cell
    n_bins : how many of the cells, from the first, are bins in their order; 0 for categories
    auc : of the measured values themselves, None if they are no numbers or have one outcome only
    """

    labels: tuple[str, ...]
    n: Floats
    bad: Floats
    n_bins: int = 0
    auc: float | None = None


def number_cells(values: Floats, codes: Sequence[float], bad: Floats) -> Cells:
    """Count the rows of a numeric column; codes and missing values have separate cells."""
    distinct, row = np.unique(values, return_inverse=True)  # NaN, which equals no other, comes last, once
    n = np.bincount(row, minlength=len(distinct)).astype(np.float64)
    n_bad = np.bincount(row, weights=bad, minlength=len(distinct)).astype(np.float64)
    outside = np.isnan(distinct) | np.isin(distinct, codes)
    inside = ~outside
    starts = _bin_starts(n[inside])
    ends = distinct[inside][[*(starts[1:] - 1), -1]] if len(starts) else distinct[:0]
    labels = [f"{a:.6g} to {b:.6g}" for a, b in zip(distinct[inside][starts], ends, strict=True)]
    labels += ["missing" if v != v else f"= {label_of(v)}" for v in distinct[outside].tolist()]
    binned = [np.add.reduceat(x[inside], starts) if len(starts) else x[:0] for x in (n, n_bad)]
    auc = _auc(n[inside], n_bad[inside])
    rows, bads = (np.concatenate([own, x[outside]]) for own, x in zip(binned, (n, n_bad), strict=True))
    return Cells(tuple(labels), rows, bads, n_bins=len(starts), auc=auc)


def label_cells(column: Labels, bad: Floats) -> Cells:
    """Count the rows of a categorical column; categories of few rows share a cell, missing values have their own."""
    size = len(column.labels) + 1
    code = np.where(column.codes < 0, size - 1, column.codes).astype(np.intp)
    n = np.bincount(code, minlength=size).astype(np.float64)
    n_bad = np.bincount(code, weights=bad, minlength=size).astype(np.float64)
    return level_cells([*(f"= {label!r}" for label in column.labels), "missing"], n, n_bad)


def level_cells(labels: Sequence[str], n: Floats, bad: Floats, n_bins: int = 0) -> Cells:
    """Return levels that were counted as cells; those with few rows share one, except for missing values.

    Ranked by their own outcomes, many levels of a row each would separate any outcomes.
    """
    few = (n < FEW) & np.array([label != "missing" for label in labels])
    names = [*(label for label, small in zip(labels, few, strict=True) if not small), "a rare category"]
    rows, bads = (np.concatenate([x[~few], [x[few].sum()]]) for x in (n, bad))
    used = rows > 0
    names = [name for name, is_used in zip(names, used, strict=True) if is_used]
    kept = int(np.count_nonzero(~few[:n_bins]))
    return Cells(tuple(names), rows[used], bads[used], n_bins=kept, auc=_auc(n[:n_bins], bad[:n_bins]))


def _bin_starts(n: Floats) -> Index:
    """Return where bins of nearly equal size start; equal values stay together."""
    middle = (np.cumsum(n) - n / 2) / max(n.sum(), 1.0)
    return np.flatnonzero(np.diff(np.minimum((middle * MOST_BINS).astype(int), MOST_BINS - 1), prepend=-1))


def _auc(n: Floats, n_bad: Floats) -> float | None:
    """Return the AUC of cells in this order; None with one outcome only."""
    good = n - n_bad
    pairs = n_bad.sum() * good.sum()
    return float(n_bad @ (np.cumsum(good) - good / 2) / pairs) if pairs else None


# ---- from cells to findings


def findings_of(name: str, cells: Cells) -> Iterator[Finding]:
    """Yield the findings on a column, given its cells."""
    total, total_bad = cells.n.sum(), cells.bad.sum()
    yield from leaks_of(name, cells)
    if "missing" in cells.labels:
        yield _missing(name, cells)
    if cells.n_bins:
        yield _direction(name, cells)
    if len(cells.n) > 1 and 0 < total_bad < total:
        value = _information_value(cells)
        yield Finding(name, "value", f"information value {value:.2f}", {"information_value": value})


def spread_rows(n_rows: int, most: int | None = None) -> slice | Index:
    """Return the rows for the evidence: all, or evenly spaced ones, which are the same for the same table."""
    most = MOST_ROWS if most is None else most
    return slice(None) if n_rows <= most else np.arange(most) * n_rows // most


def _missing(name: str, cells: Cells) -> Finding:
    at = cells.labels.index("missing")
    n, bad = float(cells.n[at]), float(cells.bad[at])
    total, total_bad = float(cells.n.sum()), float(cells.bad.sum())
    share, rate = n / total, bad / n
    others = (total_bad - bad) / (total - n) if n < total else None
    figures = {"share": share, "rows": int(n), "bad_rate": rate, "bad_rate_of_others": others}
    rates = "" if n < FEW or others is None else f", bad rate {rate:.1%} (others {others:.1%})"
    return Finding(name, "missing", f"{percent(share)} missing{rates}", figures)


def percent(share: float) -> str:
    """Write a share; a small one that is not 0 is shown as small.

    >>> percent(0.123), percent(0.0001)
    ('12.3%', '<0.1%')
    """
    return "<0.1%" if 0 < share < 0.0005 else f"{share:.1%}"


def leaks_of(name: str, cells: Cells, *, pure: bool = True) -> Iterator[Finding]:
    """Yield a sign that a feature knows the outcome: how it ranks, nearly pure cells, or at least its name.

    Parameters
    ----------
    pure : whether nearly pure cells are a sign; not where cells were found by the outcome, as the bins of a fit are
    """
    total, total_bad = float(cells.n.sum()), float(cells.bad.sum())
    ask = "(is it known when the decision is made?)"
    enough = min(total_bad, total - total_bad) >= FEW
    order = np.argsort(cells.bad / cells.n, kind="stable")
    ranked = _auc(cells.n[order], cells.bad[order]) or 0.5
    alone = ranked if cells.auc is None else max(ranked, cells.auc, 1 - cells.auc)
    if enough and alone > _LEAK:
        yield Finding(name, "leak", f"may be a leak: AUC {alone:.3f} by itself {ask}", {"auc": alone})
        return
    word = "bad" if 2 * total_bad <= total else "good"
    groups = _pure_groups(cells, cells.bad if word == "bad" else cells.n - cells.bad) if enough and pure else {}
    if groups:
        where, (n, share) = max(groups.items(), key=lambda item: item[1][0])
        text = f"may be a leak: {share:.1%} {word} of {n:,.0f} rows where it is {where} {ask}"
        yield Finding(name, "leak", text, {"where": where, "rows": int(n), "share": share})
    elif _AFTERWARD.search(re.sub(r"[\W_]+", " ", name.lower())):
        yield Finding(name, "leak", f"may be a leak by its name {ask}")


def _pure_groups(cells: Cells, rarer: Floats) -> dict[str, tuple[float, float]]:
    """Return rows, and share of the rarer outcome, where nearly all rows of a cell, or all present ones, have it."""
    groups = {label.removeprefix("= "): (n, r) for label, n, r in zip(cells.labels, cells.n, rarer, strict=True)}
    if "missing" in groups:
        n, r = groups["missing"]
        groups["not missing"] = (cells.n.sum() - n, rarer.sum() - r)
    return {where: (float(n), float(r / n)) for where, (n, r) in groups.items() if n >= FEW and r > _LEAK * n}


def _information_value(cells: Cells) -> float:
    """Return the sum over cells of (share of goods - share of bads) * ln of their ratio; an empty one is half a row."""
    good = np.maximum(cells.n - cells.bad, 0.5)
    bad = np.maximum(cells.bad, 0.5)
    p, q = good / good.sum(), bad / bad.sum()
    return float(((p - q) * np.log(p / q)).sum())


def _direction(name: str, cells: Cells) -> Finding:
    """Return the finding on which way the bad rate moves over the bins; the schema states no direction for it."""
    n, bad = cells.n[: cells.n_bins], cells.bad[: cells.n_bins]
    if cells.auc is None or len(n) < 2:
        why = "one outcome only" if cells.auc is None else "one bin only"
        return Finding(name, "direction", f"no clear direction ({why})", {"candidate": None})
    total, total_bad = n.sum(), bad.sum()
    sign = 1.0 if cells.auc >= 0.5 else -1.0
    beyond = abs(cells.auc - 0.5)
    rates = bad / n
    steps = np.sign(np.diff(rates)) * sign
    # Under no relation the AUC of ranks has this standard error (Mann and Whitney).
    error = float(np.sqrt((total + 1) / (12 * total_bad * (total - total_bad))))
    clear = beyond >= 0.02 and beyond >= 3 * error and _agreement(rates * sign, n) >= 0.8
    direction, moves = ("increasing", "rises") if sign > 0 else ("decreasing", "falls")
    head = f"candidate direction: {direction}" if clear else "no clear direction"
    text = f"{head} (AUC {0.5 + beyond:.2f}, bad rate {moves} in {int((steps > 0).sum())} of {len(steps)} steps)"
    figures = {"candidate": direction if clear else None, "auc": 0.5 + beyond, "bad_rates": rates.tolist()}
    return Finding(name, "direction", text, figures)


def _agreement(rates: Floats, weights: Floats) -> float:
    """Share of the pairs of rows in two bins whose bins' rates rise; equal rates count half."""
    left, right = np.triu_indices(len(rates), k=1)
    if not len(left):
        return 0.5
    rises = (np.sign(rates[right] - rates[left]) + 1) / 2
    return float(np.average(rises, weights=weights[left] * weights[right]))


# ---- columns with the same content


def duplicate_findings(columns: dict[str, Floats]) -> Iterator[Finding]:
    """Name the columns that rank the rows like one before them; missing values rank below all others.

    Parameters
    ----------
    columns : numbers by name, NaN for missing; of categories their codes
    """
    names = list(columns)
    if len(names) < 2 or len(columns[names[0]]) < 2:
        return
    step = -(-len(columns[names[0]]) // _PAIR_ROWS)
    ranks = np.array([_ranks(columns[name][::step]) for name in names])
    ranks -= ranks.mean(axis=1, keepdims=True)
    size = np.sqrt((ranks**2).sum(axis=1))
    ranks /= np.where(size > 0, size, 1.0)[:, None]
    similar = np.abs(ranks @ ranks.T) > _ALIKE
    for j in range(1, len(names)):
        for i in np.flatnonzero(similar[j, :j]).tolist():
            first, second = (columns[names[k]][::step] for k in (i, j))
            correlation = _rank_correlation(first, second)
            if abs(correlation) > _ALIKE:
                equal = np.array_equal(columns[names[i]], columns[names[j]], equal_nan=True)
                how = (
                    f"the same as {names[i]!r}" if equal else f"like {names[i]!r} (rank correlation {correlation:.3f})"
                )
                yield Finding(names[j], "duplicate", how, {"other": names[i], "rank_correlation": correlation})
                break  # the first that it is like is enough


def _rank_correlation(x: Floats, y: Floats) -> float:
    """Return the rank correlation over the rows in which neither is missing, 0 if there are few."""
    both = ~(np.isnan(x) | np.isnan(y))
    if both.sum() < FEW:
        return 0.0
    ranks = np.array([_ranks(x[both]), _ranks(y[both])])
    return float(np.corrcoef(ranks)[0, 1]) if np.ptp(ranks, axis=1).all() else 0.0


def _ranks(x: Floats) -> Floats:
    _, row, counts = np.unique(np.nan_to_num(x, nan=-np.inf), return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[row], np.float64)
