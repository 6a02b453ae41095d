from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from plainrisk_lab.rank_tests import maximal_cliques


def by_brute_force(joined):
    """Look at every subset of nodes."""
    k = len(joined)
    cliques = [
        set(nodes)
        for size in range(1, k + 1)
        for nodes in combinations(range(k), size)
        if all(joined[a][b] for a, b in combinations(nodes, 2))
    ]
    return sorted(tuple(sorted(c)) for c in cliques if not any(c < other for other in cliques))


@st.composite
def graphs(draw):
    k = draw(st.integers(1, 8))
    edges = draw(st.lists(st.booleans(), min_size=k * (k - 1) // 2, max_size=k * (k - 1) // 2))
    joined = np.zeros((k, k), dtype=bool)
    joined[np.triu_indices(k, 1)] = edges
    return joined | joined.T


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_against_every_subset(joined):
    assert maximal_cliques(joined) == by_brute_force(joined)


def test_the_diagonal_is_not_read():
    assert maximal_cliques(np.ones((3, 3))) == maximal_cliques(np.ones((3, 3)) - np.eye(3)) == [(0, 1, 2)]


def test_the_most_cliques_a_graph_can_have():
    # Moon and Moser: twelve nodes in triples, joined across triples only, have 3**4 cliques.
    triple = np.arange(12) // 3
    assert len(maximal_cliques(triple[:, None] != triple[None, :])) == 81


def test_no_nodes():
    assert maximal_cliques(np.zeros((0, 0))) == []
