"""Compare classifiers over data sets: ranks, tests, effect sizes and the critical difference diagram."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from plainrisk.evaluate.diagram import Layout, build_layout, to_matplotlib, to_svg, to_tikz
from plainrisk.evaluate.effects import (
    EffectSizes,
    HodgesLehmann,
    effect_sizes,
    hodges_lehmann,
    hodges_lehmann_table,
)
from plainrisk.evaluate.rank_tests import (
    BayesianSignedRank,
    Friedman,
    WilcoxonHolm,
    bayesian_signed_rank,
    friedman,
    holm,
    wilcoxon_holm,
)
from plainrisk.evaluate.tables import Results, Table, Tabular, as_results, check_choice
from plainrisk.files import write_text

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
        check_choice("Diagram.save", "the file's ending", suffix, (".svg", ".png", ".pdf", ".tex"))
        if suffix == ".svg":
            write_text(path, self.svg)
        elif suffix == ".tex":
            write_text(path, self.tikz)
        else:
            # Without a date the same table gives the same file.
            metadata = {"CreationDate": None} if suffix == ".pdf" else None
            self.figure().savefig(path, dpi=192, metadata=metadata)
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
