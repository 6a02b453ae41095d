"""Groups of classifiers that no test tells apart: the maximal cliques of a small graph."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

__all__ = ["maximal_cliques"]


def maximal_cliques(adjacency: npt.ArrayLike) -> list[tuple[int, ...]]:
    """Return every maximal clique of an undirected graph, as sorted tuples in sorted order.

    "Not significantly different" is not transitive: A ~ B and B ~ C do not make A ~ C, and a classifier
    that ranks between two others may differ from both. So the groups are neither a partition nor runs of
    neighbours in rank; they are the cliques of the graph, found by Bron and Kerbosch's search with a pivot.

    Parameters
    ----------
    adjacency : (k, k) symmetric booleans, True where two nodes are joined; the diagonal is not read

    >>> maximal_cliques([[0, 1, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]])
    [(0, 1), (0, 2), (3,)]
    """
    joined = np.asarray(adjacency, dtype=bool)
    # A set of nodes is one integer with a bit per node: intersections cost one machine operation.
    neighbours = [sum(1 << int(v) for v in np.flatnonzero(row) if v != u) for u, row in enumerate(joined)]
    found = _expand(0, (1 << len(neighbours)) - 1, 0, neighbours) if neighbours else iter(())
    return sorted(tuple(_bits(clique)) for clique in found)


def _expand(clique: int, candidates: int, excluded: int, neighbours: list[int]) -> Iterator[int]:
    if not candidates | excluded:
        yield clique
        return
    # A maximal clique holds the pivot or a node not joined to it: only those nodes need a branch.
    pivot = max(_bits(candidates | excluded), key=lambda u: (candidates & neighbours[u]).bit_count())
    for v in _bits(candidates & ~neighbours[pivot]):
        yield from _expand(clique | 1 << v, candidates & neighbours[v], excluded & neighbours[v], neighbours)
        candidates &= ~(1 << v)
        excluded |= 1 << v


def _bits(nodes: int) -> Iterator[int]:
    while nodes:
        lowest = nodes & -nodes
        yield lowest.bit_length() - 1
        nodes ^= lowest
