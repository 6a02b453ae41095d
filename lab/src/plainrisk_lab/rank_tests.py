"""Rank tests of classifiers over data sets: Friedman, Wilcoxon with Holm's adjustment, Bayesian signed-rank."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2 as chi2_distribution
from scipy.stats import f as f_distribution
from scipy.stats import rankdata, wilcoxon

from plainrisk._types import Bools, Counts, Floats, Index
from plainrisk.checks import FLAG, LEVEL, SEED, check_parameters, number, whole, words
from plainrisk.errors import DataError
from plainrisk.text import show_p
from plainrisk_lab.results import Results, as_results, number_array, paired_differences
from plainrisk_lab.tables import Cell, Table, Tabular, locked

__all__ = [
    "BayesianSignedRank",
    "Friedman",
    "WilcoxonHolm",
    "bayesian_signed_rank",
    "friedman",
    "holm",
    "maximal_cliques",
    "square_table",
    "wilcoxon_holm",
]

TESTS = {"zero_method": words("pratt", "zsplit", "wilcox"), "alpha": LEVEL, "higher_is_better": FLAG}


# ---- do the classifiers differ at all?


@dataclass(frozen=True, eq=False, repr=False)
class Friedman(Tabular):
    """Average ranks and the Friedman test with the correction of Iman and Davenport.

    Attributes
    ----------
    statistic : Friedman's chi-squared
    f_statistic : Iman and Davenport's F
    p_value : of the F statistic
    chi2_p_value : of the chi-squared statistic, which is conservative
    degrees_of_freedom : (k - 1, (k - 1)(N - 1)) of F; the first is also that of chi-squared
    ranks : (k,) average ranks, 1 is best
    classifiers : the k names
    rank_table : (N, k) ranks inside each data set, ties sharing their average
    datasets : the N names
    """

    statistic: float
    f_statistic: float
    p_value: float
    chi2_p_value: float
    degrees_of_freedom: tuple[int, int]
    ranks: Floats
    classifiers: tuple[str, ...]
    rank_table: Floats
    datasets: tuple[str, ...]

    def summary(self) -> str:
        """Return the test in one line."""
        df1, df2 = self.degrees_of_freedom
        p = show_p(self.p_value)
        p = f"p {p[0]} {p[1:]}" if p.startswith("<") else f"p = {p}"
        return f"{len(self.datasets)} data sets; Friedman F({df1}, {df2}) = {self.f_statistic:.2f}, {p}"

    def _table(self) -> Table:
        order = np.argsort(self.ranks, kind="stable")
        rows = [[self.classifiers[j], float(self.ranks[j])] for j in order]
        return Table(("classifier", "average rank"), rows, note=self.summary() + ".")


def friedman(table: Any, higher_is_better: bool = True, *, missing: str = "raise") -> Friedman:
    r"""Test whether k classifiers rank alike over N data sets.

    .. math::
        \chi^2_F = \frac{12 N}{k (k + 1)} \Big( \sum_j R_j^2 - \frac{k (k + 1)^2}{4} \Big), \qquad
        F_F = \frac{(N - 1) \chi^2_F}{N (k - 1) - \chi^2_F}

    with :math:`R_j` the average rank of classifier j (Demsar 2006). Ties share their average rank; the
    statistic is not divided by a tie factor, so many ties make it conservative. Where all data sets rank
    alike F is infinite, and the p-value is the chance of that, :math:`(k!)^{1 - N}`.

    Parameters
    ----------
    table : data sets x classifiers, see `as_results`
    higher_is_better : True for the AUC, False for an error such as the ECE
    missing : "raise", or "drop" to leave out data sets that lack a value

    >>> test = friedman({"A": [0.9, 0.8, 0.7, 0.9], "B": [0.8, 0.7, 0.6, 0.8], "C": [0.7, 0.9, 0.5, 0.6]})
    >>> test.ranks
    array([1.25, 2.25, 2.5 ])
    >>> round(test.statistic, 4), round(test.f_statistic, 4), round(test.p_value, 4)
    (3.5, 2.3333, 0.178)
    """
    check_parameters("friedman", {"higher_is_better": higher_is_better}, {"higher_is_better": FLAG})
    results = as_results(table, missing=missing)
    n, k = results.values.shape
    rank_table = rank_rows(results, higher_is_better)
    ranks = locked(rank_table.mean(axis=0))
    statistic = float(12.0 * n / (k * (k + 1)) * ((ranks**2).sum() - k * (k + 1) ** 2 / 4.0))
    statistic = max(statistic, 0.0)  # all ranks alike: rounding may leave -1e-15
    df = (k - 1, (k - 1) * (n - 1))
    f_statistic, p_value = _iman_davenport(statistic, n, k)
    return Friedman(
        statistic=statistic,
        f_statistic=f_statistic,
        p_value=p_value,
        chi2_p_value=float(chi2_distribution.sf(statistic, df[0])),
        degrees_of_freedom=df,
        ranks=ranks,
        classifiers=results.classifiers,
        rank_table=rank_table,
        datasets=results.datasets,
    )


def rank_rows(results: Results, higher_is_better: bool) -> Floats:
    """Return the (N, k) ranks inside each data set; 1 is best, ties share their average."""
    values = -results.values if higher_is_better else results.values
    return locked(np.asarray(rankdata(values, axis=1), dtype=np.float64))


def _iman_davenport(statistic: float, n: int, k: int) -> tuple[float, float]:
    rest = n * (k - 1) - statistic
    if rest <= 1e-9 * n * k:
        return math.inf, math.exp((1 - n) * math.lgamma(k + 1))
    f_statistic = (n - 1) * statistic / rest
    return f_statistic, float(f_distribution.sf(f_statistic, k - 1, (k - 1) * (n - 1)))


# ---- which pairs differ?


@dataclass(frozen=True, eq=False, repr=False)
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
    significant: Bools
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
    given = {"zero_method": zero_method, "alpha": alpha, "higher_is_better": higher_is_better}
    check_parameters("wilcoxon_holm", given, TESTS)
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


def holm(p_values: ArrayLike) -> Floats:
    """Return Holm's step-down adjusted p-values, in the order given.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = number_array("holm", "p_values", p_values)
    if not ((p >= 0) & (p <= 1)).all():
        raise DataError("holm: p_values must be probabilities, from 0 to 1.")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)))
    return adjusted


def square_table(values: Floats, names: tuple[str, ...], significant: Bools, note: str, show: Any) -> Table:
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
    # Up to 13 differences scipy lists all 2**n signs if there are ties; the sum below takes a thousandth of the time.
    if difference.size <= 13:
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


def _symmetric(pairs: Floats, upper: tuple[Index, ...], k: int) -> Floats:
    square = np.ones((k, k))
    square[upper] = pairs
    square.T[upper] = pairs
    return locked(square)


def _groups(
    significant: Bools, ranks: Floats, names: tuple[str, ...]
) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    # Nodes are numbered by rank, so that sorted cliques are cliques sorted by rank.
    order = np.argsort(ranks, kind="stable")
    cliques = maximal_cliques(~significant[np.ix_(order, order)])
    groups = [tuple(names[order[node]] for node in clique) for clique in cliques]
    return tuple(g for g in groups if len(g) > 1), tuple(g[0] for g in groups if len(g) == 1)


# ---- groups that no test tells apart: the maximal cliques of a small graph


def maximal_cliques(adjacency: ArrayLike) -> list[tuple[int, ...]]:
    """Return every maximal clique of an undirected graph, as sorted tuples in sorted order.

    "Not significantly different" is not transitive: A ~ B and B ~ C do not make A ~ C, and a classifier
    that ranks between two others may differ from both. So the groups are neither a partition nor runs of
    neighbors in rank; they are the cliques of the graph, found by Bron and Kerbosch's search with a pivot.

    Parameters
    ----------
    adjacency : (k, k) symmetric booleans, True where two nodes are joined; the diagonal is not read

    >>> maximal_cliques([[0, 1, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]])
    [(0, 1), (0, 2), (3,)]
    """
    joined = np.asarray(adjacency, dtype=bool)
    neighbors = [set(np.flatnonzero(row).tolist()) - {node} for node, row in enumerate(joined)]
    return sorted(_expand((), set(range(len(joined))), set(), neighbors)) if len(joined) else []


def _expand(
    clique: tuple[int, ...], candidates: set[int], excluded: set[int], neighbors: list[set[int]]
) -> Iterator[tuple[int, ...]]:
    """Yield the maximal cliques that hold `clique`, further candidates, and no excluded node."""
    if not candidates and not excluded:
        yield tuple(sorted(clique))
        return
    # A maximal clique holds the pivot or a node not joined to it: only those nodes need a branch.
    pivot = max(candidates | excluded, key=lambda node: len(candidates & neighbors[node]))
    for node in candidates - neighbors[pivot]:
        yield from _expand((*clique, node), candidates & neighbors[node], excluded & neighbors[node], neighbors)
        candidates = candidates - {node}
        excluded = excluded | {node}


# ---- how probable is it that one of two is better?


@dataclass(frozen=True, repr=False)
class BayesianSignedRank(Tabular):
    """Posterior probabilities of three verdicts; they add up to 1 and unpack as ``left, rope, right``.

    Attributes
    ----------
    left : a is smaller than b by more than the region
    rope : the difference is inside the region of practical equivalence
    right : a is larger than b by more than the region
    width : half the width of that region, as given
    samples : draws from the posterior
    """

    left: float
    rope: float
    right: float
    width: float
    samples: int

    def __iter__(self) -> Iterator[float]:
        return iter((self.left, self.rope, self.right))

    def _table(self) -> Table:
        rows: list[list[Cell]] = [["a < b", self.left], ["equivalent", self.rope], ["a > b", self.right]]
        return Table(("verdict", "probability"), rows, note=f"Equivalent: within {self.width:g}.")


def bayesian_signed_rank(
    a: ArrayLike, b: ArrayLike, rope: float = 0.01, samples: int = 50_000, seed: int = 0
) -> BayesianSignedRank:
    r"""Compare two classifiers over data sets by the Bayesian signed-rank test (Benavoli et al. 2017).

    The differences :math:`z_1, \dots, z_N` and a pseudo observation :math:`z_0 = 0` get random weights
    :math:`w \sim \mathrm{Dirichlet}(s, 1, \dots, 1)` with prior strength :math:`s = 0.5`. One draw says

    .. math:: \theta_{\text{left}} = \sum_{i,j} w_i w_j [z_i + z_j < -2r], \qquad
              \theta_{\text{right}} = \sum_{i,j} w_i w_j [z_i + z_j > 2r]

    and :math:`\theta_{\text{rope}}` is the rest. Each probability is the share of draws in which its
    :math:`\theta` is the largest. A difference of exactly r is inside the region.

    Parameters
    ----------
    a, b : (N,) paired values, one pair per data set
    rope : r, the largest difference that does not matter in practice
    samples : draws from the posterior
    seed : the same seed gives the same figures

    >>> left, rope, right = bayesian_signed_rank([0.84, 0.79, 0.91, 0.88], [0.80, 0.76, 0.88, 0.82])
    >>> right > 0.95
    True
    """
    given = {"rope": rope, "samples": samples, "seed": seed}
    check_parameters(
        "bayesian_signed_rank", given, {"rope": number(at_least=0), "samples": whole(1, 1_000_000), "seed": SEED}
    )
    z = np.concatenate([[0.0], paired_differences(a, b)])
    # Differences carry the rounding of the values they come from; a sum of two on the edge is inside.
    edge = 2.0 * rope + 2.0**-42 * float(max(np.abs(a).max(), np.abs(b).max()))
    wins = _count_wins(z, edge, samples, np.random.default_rng(seed))
    left, middle, right = (float(count) / samples for count in wins)
    return BayesianSignedRank(left, middle, right, float(rope), samples)


def _count_wins(z: Floats, edge: float, samples: int, rng: np.random.Generator) -> Counts:
    # With z sorted, the partners j of each i that fall left (or not right) of the region are a prefix, and
    # the double sum is a look-up in the cumulated weights: N operations a draw, not N squared.
    order = np.argsort(z, kind="stable")
    left_of = np.searchsorted(z[order], -edge - z[order], side="left")
    not_right_of = np.searchsorted(z[order], edge - z[order], side="right")
    concentration = np.ones(z.size)
    concentration[0] = 0.5  # the prior strength s
    # Drawn in the order of the data and sorted after: swapping a and b swaps left and right exactly.
    gamma = rng.standard_gamma(concentration, size=(samples, z.size))[:, order]
    weights = gamma / gamma.sum(axis=1, keepdims=True)
    cumulated = np.concatenate([np.zeros((samples, 1)), np.cumsum(weights, axis=1)], axis=1)
    left = (weights * cumulated[:, left_of]).sum(axis=1)
    right = 1.0 - (weights * cumulated[:, not_right_of]).sum(axis=1)
    verdict = np.argmax(np.column_stack([left, 1.0 - left - right, right]), axis=1)
    return np.bincount(verdict, minlength=3)
