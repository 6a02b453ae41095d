"""Compare classifiers over data sets: ranks, tests, effect sizes and the critical difference diagram."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from plainrisk._types import Bools, Floats
from plainrisk.checks import check_parameters, words
from plainrisk.errors import DataError
from plainrisk.files import replacing, write_text
from plainrisk_lab.diagram import Layout, build_layout, to_matplotlib, to_svg, to_tikz
from plainrisk_lab.rank_tests import (
    BayesianSignedRank,
    Friedman,
    WilcoxonHolm,
    bayesian_signed_rank,
    friedman,
    holm,
    square_table,
    wilcoxon_holm,
)
from plainrisk_lab.results import Results, as_results, paired_differences
from plainrisk_lab.tables import Cell, Table, Tabular, locked, show_decimals

__all__ = [
    "BayesianSignedRank",
    "Diagram",
    "EffectSizes",
    "Friedman",
    "HodgesLehmann",
    "Results",
    "WilcoxonHolm",
    "as_results",
    "bayesian_signed_rank",
    "critical_difference_diagram",
    "effect_sizes",
    "friedman",
    "hodges_lehmann",
    "hodges_lehmann_table",
    "holm",
    "wilcoxon_holm",
]


# ---- how much do two classifiers differ?


@dataclass(frozen=True, eq=False, repr=False)
class HodgesLehmann(Tabular):
    """Hodges-Lehmann estimates of every pair.

    Attributes
    ----------
    differences : (k, k) the typical difference, row minus column
    significant : (k, k) booleans of `wilcoxon_holm`, bold in the written tables
    classifiers : the k names
    pairs : "all" or "strict"
    """

    differences: Floats
    significant: Bools
    classifiers: tuple[str, ...]
    pairs: str

    def _table(self) -> Table:
        note = "Hodges-Lehmann estimates, row minus column; bold: significant after Holm's adjustment."
        return square_table(self.differences, self.classifiers, self.significant, note, show_decimals(3))


@dataclass(frozen=True, eq=False, repr=False)
class EffectSizes(Tabular):
    """Effect sizes of every pair, row minus column, in the direction of the raw values.

    Attributes
    ----------
    rank_biserial : (k, k) matched-pairs rank-biserial correlation, -1 to 1
    d_z : (k, k) Cohen's d of the paired differences
    classifiers : the k names
    """

    rank_biserial: Floats
    d_z: Floats
    classifiers: tuple[str, ...]

    def _table(self) -> Table:
        names = self.classifiers
        pairs = zip(*np.triu_indices(len(names), 1), strict=True)
        rows: list[list[Cell]] = [
            [names[i], names[j], float(self.rank_biserial[i, j]), float(self.d_z[i, j])] for i, j in pairs
        ]
        return Table(("classifier", "against", "rank_biserial", "d_z"), rows, show=show_decimals(3))


def hodges_lehmann(a: ArrayLike, b: ArrayLike, pairs: str = "all") -> float:
    r"""Return the typical difference of paired values: the median of the Walsh averages of a - b.

    .. math:: \hat\Delta = \operatorname{median}_{i \le j} \tfrac12 (d_i + d_j), \qquad d = a - b

    Parameters
    ----------
    a, b : (N,) paired values
    pairs : {"all", "strict"}
        "all" takes i <= j, the textbook estimator; "strict" takes i < j, without each difference itself.

    >>> hodges_lehmann([5.0, 7.0, 13.0], [4.0, 4.0, 4.0])
    4.0
    >>> hodges_lehmann([5.0, 7.0, 13.0], [4.0, 4.0, 4.0], pairs="strict")
    5.0
    """
    check_parameters("hodges_lehmann", {"pairs": pairs}, {"pairs": words("all", "strict")})
    difference = paired_differences(a, b)
    first, second = np.triu_indices(difference.size, 1 if pairs == "strict" else 0)
    if first.size == 0:
        raise DataError("hodges_lehmann: pairs='strict' needs at least 2 values; got 1.")
    return float(np.median((difference[first] + difference[second]) / 2.0))


def hodges_lehmann_table(
    table: Any,
    pairs: str = "all",
    zero_method: str = "pratt",
    alpha: float = 0.05,
    *,
    missing: str = "raise",
) -> HodgesLehmann:
    """Return the Hodges-Lehmann estimate of every pair of classifiers, with the tests' verdicts.

    Parameters
    ----------
    table : data sets x classifiers, see `as_results`
    pairs : {"all", "strict"}, see `hodges_lehmann`
    zero_method, alpha : of the tests, see `wilcoxon_holm`
    missing : "raise", or "drop" to leave out data sets that lack a value

    >>> hodges_lehmann_table({"A": [0.9, 0.8, 0.7], "B": [0.8, 0.6, 0.6]}).differences.round(3)
    array([[ 0.   ,  0.125],
           [-0.125,  0.   ]])
    """
    results = as_results(table, missing=missing)
    differences = _antisymmetric(results.values, lambda a, b: hodges_lehmann(a, b, pairs))
    significant = wilcoxon_holm(results, zero_method, alpha).significant
    return HodgesLehmann(differences, significant, results.classifiers, pairs)


def effect_sizes(table: Any, *, missing: str = "raise") -> EffectSizes:
    r"""Return two effect sizes for every pair of classifiers.

    .. math:: r = \frac{R^+ - R^-}{R^+ + R^-}, \qquad d_z = \frac{\bar d}{s_d}

    with :math:`R^\pm` the sums of the ranks of the positive and negative differences, zeros left out, and
    :math:`\bar d, s_d` the mean and the sample standard deviation of the differences. r is 1 when the row is
    larger on every data set; it is the effect size of the signed-rank test. Differences that are all equal
    have an infinite :math:`d_z`; two equal columns have 0 for both.

    >>> effect_sizes({"A": [0.9, 0.8, 0.7], "B": [0.8, 0.6, 0.75]}).rank_biserial[0, 1].round(4)
    np.float64(0.6667)
    """
    results = as_results(table, missing=missing)
    return EffectSizes(
        _antisymmetric(results.values, _rank_biserial),
        _antisymmetric(results.values, _cohen_d_z),
        results.classifiers,
    )


def _antisymmetric(values: Floats, estimate: Callable[[Floats, Floats], float]) -> Floats:
    k = values.shape[1]
    square = np.zeros((k, k))
    for i, j in zip(*np.triu_indices(k, 1), strict=True):
        square[i, j] = estimate(values[:, i], values[:, j])
        square[j, i] = -square[i, j]
    return locked(square + 0.0)  # no -0.0


def _rank_biserial(a: Floats, b: Floats) -> float:
    difference = paired_differences(a, b)
    difference = difference[difference != 0.0]
    if difference.size == 0:
        return 0.0
    ranks = rankdata(np.abs(difference))
    return float((np.sign(difference) * ranks).sum() / ranks.sum())


def _cohen_d_z(a: Floats, b: Floats) -> float:
    difference = paired_differences(a, b)
    if (difference == difference[0]).all():
        return float(np.sign(difference[0])) * np.inf if difference[0] else 0.0
    return float(difference.mean() / difference.std(ddof=1))


# ---- the diagram


@dataclass(frozen=True, eq=False, repr=False)
class Diagram(Tabular):
    """A critical difference diagram and the tests behind it; a notebook shows it as it is.

    Attributes
    ----------
    layout : positions of everything drawn
    friedman : average ranks and the omnibus test
    posthoc : the pairwise tests and the groups
    """

    layout: Layout
    friedman: Friedman
    posthoc: WilcoxonHolm

    @property
    def svg(self) -> str:
        """The diagram as an SVG document."""
        listed = ", ".join(f"{label.name} {label.value}" for label in self.layout.labels)
        return to_svg(self.layout, f"Critical difference diagram. Average ranks: {listed}.")

    @property
    def tikz(self) -> str:
        """The diagram as a tikzpicture."""
        return to_tikz(self.layout)

    def figure(self) -> Any:
        """Return the diagram as a matplotlib figure."""
        return to_matplotlib(self.layout)

    def save(self, path: str | Path) -> Path:
        """Write the diagram; the file's ending, .svg, .png, .pdf or .tex, says how."""
        path = Path(path)
        suffix = path.suffix.lower()
        endings = words(".svg", ".png", ".pdf", ".tex")
        check_parameters("Diagram.save", {"the file's ending": suffix}, {"the file's ending": endings})
        if suffix == ".svg":
            write_text(path, self.svg)
        elif suffix == ".tex":
            write_text(path, self.tikz)
        else:
            # Without a date the same table gives the same file.
            metadata = {"CreationDate": None} if suffix == ".pdf" else None
            with replacing(path) as temporary:
                self.figure().savefig(temporary, dpi=192, metadata=metadata)
        return path

    def _repr_svg_(self) -> str:
        return self.svg

    def _table(self) -> Table:
        ranks, names = self.friedman.ranks, self.friedman.classifiers
        cliques = self.posthoc.cliques
        rows = []
        for j in np.argsort(ranks, kind="stable"):
            groups = [str(g) for g, members in enumerate(cliques, start=1) if names[j] in members]
            rows.append([names[j], float(ranks[j]), " ".join(groups)])
        note = "Classifiers that share a group are not told apart. " + self.friedman.summary() + "."
        return Table(("classifier", "average rank", "groups"), rows, note=note)


def critical_difference_diagram(
    table: Any,
    higher_is_better: bool = True,
    alpha: float = 0.05,
    zero_method: str = "pratt",
    title: str | None = None,
    *,
    missing: str = "raise",
) -> Diagram:
    """Draw the average ranks of classifiers, and a bar over every group that no test tells apart.

    The groups are the maximal cliques of `wilcoxon_holm`. A bar may pass a classifier that is not of its
    group: the dots on it show who is.

    Parameters
    ----------
    table : data sets x classifiers, see `as_results`
    higher_is_better : True for the AUC, False for an error such as the ECE
    alpha, zero_method : of the pairwise tests, see `wilcoxon_holm`
    title : a heading for the picture
    missing : "raise", or "drop" to leave out data sets that lack a value

    >>> import numpy as np
    >>> base = np.linspace(0.6, 0.9, 10)
    >>> table = {"A": base + 0.05, "B": base + 0.04 * np.sin(9 * base), "C": base}
    >>> diagram = critical_difference_diagram(table)
    >>> diagram.svg[:4], diagram.posthoc.cliques
    ('<svg', (('B', 'C'),))
    """
    results = as_results(table, missing=missing)
    omnibus = friedman(results, higher_is_better)
    posthoc = wilcoxon_holm(results, zero_method, alpha, higher_is_better=higher_is_better)
    notes = (
        omnibus.summary(),
        f"Dots on one bar: not told apart (Wilcoxon signed-rank test, Holm's adjustment, level {alpha:g})",
    )
    layout = build_layout(omnibus.classifiers, omnibus.ranks, posthoc.cliques, title, notes)
    return Diagram(layout, omnibus, posthoc)
