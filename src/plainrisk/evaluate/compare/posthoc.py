"""Which classifiers differ: Wilcoxon's signed-rank test on every pair, with Holm's adjustment."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata, wilcoxon

from plainrisk.errors import DataError
from plainrisk.evaluate.compare.cliques import maximal_cliques
from plainrisk.evaluate.compare.ranks import rank_rows
from plainrisk.evaluate.compare.results import Floats, Results, as_results, check_choice, locked, paired_differences
from plainrisk.evaluate.compare.tables import Cell, Table, Tabular, show_p

__all__ = ["WilcoxonHolm", "holm", "square_table", "wilcoxon_holm"]

ZERO_METHODS = ("pratt", "zsplit", "wilcox")
# scipy lists all 2**n signs up to here when there are ties; so do we, in a thousandth of the time.
_EXACT_UP_TO = 13


@dataclass(frozen=True, eq=False)
class WilcoxonHolm(Tabular):
    """All pairs of classifiers, tested.

    Attributes
    ----------
    p_values : (k, k) two-sided p-values of the signed-rank tests, 1 on the diagonal
    adjusted : (k, k) the same after Holm's step-down adjustment over all pairs
    significant : (k, k) booleans, adjusted <= alpha
    cliques : maximal groups of two or more that no test tells apart, best first, each by average rank
    singles : classifiers that differ from every other
    classifiers : the k names
    ranks : (k,) average ranks, 1 is best
    alpha, zero_method : as given
    """

    p_values: Floats
    adjusted: Floats
    significant: npt.NDArray[np.bool_]
    cliques: tuple[tuple[str, ...], ...]
    singles: tuple[str, ...]
    classifiers: tuple[str, ...]
    ranks: Floats
    alpha: float
    zero_method: str

    def _table(self) -> Table:
        note = f"Wilcoxon signed-rank tests, p-values adjusted by Holm; bold: at most {self.alpha:g}."
        return square_table(self.adjusted, self.classifiers, self.significant, note, show_p)


def wilcoxon_holm(
    table: Any,
    zero_method: str = "pratt",
    alpha: float = 0.05,
    *,
    higher_is_better: bool = True,
    missing: str = "raise",
) -> WilcoxonHolm:
    r"""Test every pair of classifiers and group those that no test tells apart.

    Sort the m = k(k - 1)/2 p-values; Holm's adjusted value of the i-th smallest is

    .. math:: \tilde p_{(i)} = \min\big(1, \max_{j \le i} (m - j + 1)\, p_{(j)}\big)

    Parameters
    ----------
    table : data sets x classifiers, see `as_results`
    zero_method : {"pratt", "zsplit", "wilcox"}
        Data sets on which two classifiers are equal: ranked and then left out, shared between both signs,
        or left out before ranking.
    alpha : the family-wise level
    higher_is_better : orders the groups by rank; the tests do not depend on it
    missing : "raise", or "drop" to leave out data sets that lack a value

    Notes
    -----
    p-values are those of `scipy.stats.wilcoxon`: exact for at most 13 data sets, and for at most 50 without
    ties and zeros; else the normal approximation. Differences are first rounded to a part in 10**13 of the
    largest value, so that ties between decimals survive binary subtraction.

    >>> import numpy as np
    >>> base = np.linspace(0.6, 0.9, 10)
    >>> test = wilcoxon_holm({"A": base + 0.05, "B": base + 0.04 * np.sin(9 * base), "C": base})
    >>> test.cliques, test.singles
    ((('B', 'C'),), ('A',))
    """
    check_choice("wilcoxon_holm", "zero_method", zero_method, ZERO_METHODS)
    if not 0.0 < alpha < 1.0:
        raise DataError(f"wilcoxon_holm: alpha is a level between 0 and 1, such as 0.05; got {alpha!r}.")
    results = as_results(table, missing=missing)
    k = len(results.classifiers)
    upper = np.triu_indices(k, 1)
    raw = _pair_p_values(results, zero_method)
    adjusted = _symmetric(holm(raw), upper, k)
    significant = locked(adjusted <= alpha)
    ranks = locked(rank_rows(results, higher_is_better).mean(axis=0))
    cliques, singles = _groups(significant, ranks, results.classifiers)
    p_values = _symmetric(raw, upper, k)
    return WilcoxonHolm(
        p_values, adjusted, significant, cliques, singles, results.classifiers, ranks, alpha, zero_method
    )


def holm(p_values: npt.ArrayLike) -> Floats:
    """Return Holm's step-down adjusted p-values, in the order given.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)))
    return adjusted


def square_table(
    values: Floats, names: tuple[str, ...], significant: npt.NDArray[np.bool_], note: str, show: Any
) -> Table:
    """Return classifiers x classifiers as a table with an empty diagonal."""
    shown = values.copy()
    np.fill_diagonal(shown, np.nan)
    rows: list[list[Cell]] = [[name, *map(float, row)] for name, row in zip(names, shown, strict=True)]
    bold = frozenset((int(i), int(j) + 1) for i, j in np.argwhere(significant))
    return Table(("classifier", *names), rows, bold, note, show)


def _pair_p_values(results: Results, zero_method: str) -> Floats:
    values, scale = results.values, float(np.abs(results.values).max())
    pairs = combinations(range(values.shape[1]), 2)
    differences = (paired_differences(values[:, i], values[:, j], scale) for i, j in pairs)
    return np.array([_signed_rank_p(d, zero_method) for d in differences])


def _signed_rank_p(difference: Floats, zero_method: str) -> float:
    if not difference.any():
        return 1.0
    if difference.size <= _EXACT_UP_TO:
        return _exact_signed_rank_p(difference, zero_method)
    return float(wilcoxon(difference, zero_method=zero_method).pvalue)


def _exact_signed_rank_p(difference: Floats, zero_method: str) -> float:
    """Return the two-sided p-value over all 2**n signs of the ranks, ties and zeros included."""
    kept = difference[difference != 0.0]
    source = kept if zero_method == "wilcox" else difference
    # Ranks doubled are integers. A shared zero adds a constant to both sums, so 'zsplit' equals 'pratt' here.
    ranks = np.rint(2.0 * rankdata(np.abs(source))).astype(np.intp)[source != 0.0]
    ways = np.ones(1)
    for rank in ranks:
        ways = np.pad(ways, (0, rank)) + np.pad(ways, (rank, 0))
    positive = int(ranks[kept > 0.0].sum())
    tail = min(ways[: positive + 1].sum(), ways[positive:].sum())
    return float(min(1.0, 2.0 * tail / ways.sum()))


def _symmetric(pairs: Floats, upper: tuple[npt.NDArray[np.intp], ...], k: int) -> Floats:
    square = np.ones((k, k))
    square[upper] = pairs
    square.T[upper] = pairs
    return locked(square)


def _groups(
    significant: npt.NDArray[np.bool_], ranks: Floats, names: tuple[str, ...]
) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    # Nodes are numbered by rank, so that sorted cliques are cliques sorted by rank.
    order = np.argsort(ranks, kind="stable")
    found = maximal_cliques(~significant[np.ix_(order, order)])
    groups = [tuple(names[order[node]] for node in clique) for clique in found]
    return tuple(g for g in groups if len(g) > 1), tuple(g[0] for g in groups if len(g) == 1)
