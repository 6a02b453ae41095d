"""Ranks of classifiers over data sets, and the omnibus test that they differ at all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2 as chi2_distribution
from scipy.stats import f as f_distribution
from scipy.stats import rankdata

from plainrisk.evaluate.compare.results import Floats, Results, as_results, locked
from plainrisk.evaluate.compare.tables import Table, Tabular, show_p

__all__ = ["Friedman", "friedman", "rank_rows"]


@dataclass(frozen=True, eq=False)
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
