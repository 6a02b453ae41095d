from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plainrisk.errors import DataError
from plainrisk.explain import elimination
from plainrisk.explain.elimination import Options, joint_options, pareto, score_limits
from plainrisk.form import Part


def random_problem(seed):
    """Up to five features with up to four options, and some of the pairs there are."""
    rng = np.random.default_rng(seed)
    names = [f"u{j}" for j in range(rng.integers(2, 6))]
    known = list(itertools.combinations(names, 2))
    pairs = [(known[j], rng.normal(size=(3, 3))) for j in rng.permutation(len(known))[: rng.integers(1, 7)]]
    features = {}
    for name in dict.fromkeys(n for ends, _ in pairs for n in ends):
        n = int(rng.integers(1, 5))
        levels = {k: rng.integers(0, 3, n) for k, (ends, _) in enumerate(pairs) if name in ends}
        features[name] = Options(rng.integers(0, 4, n) * 1.0, rng.normal(size=n), np.arange(n), levels)
    return features, pairs


def value(features, pairs, taken):
    """Cost and score of one option of every feature."""
    cost = sum(own.cost[taken[name]] for name, own in features.items())
    score = sum(own.score[taken[name]] for name, own in features.items())
    for k, ((u, v), table) in enumerate(pairs):
        score += table[features[u].levels[k][taken[u]], features[v].levels[k][taken[v]]]
    return cost, score


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10**6), sign=st.sampled_from([1, -1]))
def test_joint_options_are_the_pareto_front_of_all_combinations(seed, sign):
    features, pairs = random_problem(seed)
    every = list(itertools.product(*(range(len(own.cost)) for own in features.values())))
    all_values = np.array([value(features, pairs, dict(zip(features, taken, strict=True))) for taken in every])
    keep = pareto(all_values[:, 0], (sign * all_values[:, 1]).round(9))
    found = joint_options(features, pairs, sign)
    assert sorted(n for joint in found for n in joint.features) == sorted(features)
    combined = []
    for states in itertools.product(*(range(len(joint.cost)) for joint in found)):
        taken, cost, score = {}, 0.0, 0.0
        for joint, s in zip(found, states, strict=True):
            taken.update(zip(joint.features, joint.choice[s].tolist(), strict=True))
            cost, score = cost + joint.cost[s], score + joint.score[s]
        assert value(features, pairs, taken) == pytest.approx((cost, score), abs=1e-9)
        combined.append((cost, score))
    combined = np.array(combined)
    best = combined[pareto(combined[:, 0], (sign * combined[:, 1]).round(9))]
    np.testing.assert_allclose(best, all_values[keep], atol=1e-9)


def test_a_chain_of_many_features_is_quick_and_a_dense_graph_is_refused():
    n = 40
    names = [f"u{j}" for j in range(n)]
    rng = np.random.default_rng(0)

    def options(pairs):
        levels = {name: {k: np.arange(4) for k, (ends, _) in enumerate(pairs) if name in ends} for name in names}
        return {name: Options(np.zeros(4), rng.normal(size=4), np.arange(4), levels[name]) for name in names}

    chain = [(ends, rng.normal(size=(4, 4))) for ends in itertools.pairwise(names)]
    (joint,) = joint_options(options(chain), chain, 1)
    assert len(joint.features) == n
    dense = [(ends, rng.normal(size=(4, 4))) for ends in itertools.combinations(names, 2)]
    with pytest.raises(DataError, match="too many combinations to distinguish"):
        joint_options(options(dense), dense, 1)


def test_score_limits_are_attained(make_form, level_values, monkeypatch):
    for seed in range(40):
        form = make_form(seed, pairs=True)
        extra = {"age": [32.0, 37.0], "debt": [0.7, 1.2], "rent": [6.0, 8.0, 11.0, 13.0]}
        values = {name: [*some, *extra.get(name, ())] for name, some in level_values.items()}
        rows = list(itertools.product(*values.values()))
        X = dict(zip(values, map(list, zip(*rows, strict=True)), strict=True))
        X = {n: np.array(v, dtype=object if n == "job" else float) for n, v in X.items()}
        scores = form.part_scores(X)
        for k, part in enumerate(form.parts):
            assert isinstance(part, Part)
            assert score_limits(form, part) == pytest.approx((scores[:, k].min(), scores[:, k].max()), abs=1e-12), seed
            with monkeypatch.context() as patch:
                patch.setattr(elimination, "MOST_STATES", 0)
                low, high = score_limits(form, part)
            assert low <= scores[:, k].min() + 1e-12, "a bound"
            assert high >= scores[:, k].max() - 1e-12, "a bound"
