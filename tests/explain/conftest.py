"""Small random forms, and rows that meet all their levels."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path

import msgspec
import numpy as np
import pytest

import plainrisk as pr
from plainrisk.form import (
    Alone,
    Bands,
    Bins,
    Categories,
    Layer,
    Linear,
    Logistic,
    Mixture,
    PairTable,
    Part,
    RiskForm,
    Table,
    Tree,
    TreeInput,
    TreePart,
)

LINKS = (
    Logistic(),
    Linear(slope=0.3, offset=0.5),
    Linear(slope=1.5, offset=0.3, low=0.1, high=0.8),
    Bands((-1.0, 0.2, 1.0), (0.05, 0.5, 0.9)),
)
# From the pooled risk of a mixture to the risk.
CALIBRATION = Bands((0.1, 0.4, 0.6, 0.9), (0.02, 0.3, 0.75, 0.95))
LEVELS = {
    "age": Bins((30.0, 40.0), (-9.0,), 0.0),
    "job": Categories(("a", "b", "c"), 3),
    "debt": Bins((0.5, 1.5, 2.5)),
    "rent": Bins((10.0,)),
}
# Levels in pairs: some edges are those of the shapes, some lie between them.
AXES = {
    "age": (Bins((35.0,), (-9.0,), 0.0), Bins((30.0, 40.0), (-9.0,), 0.0)),
    "job": (Categories(("a", "b", "c"), 3),),
    "debt": (Bins((1.5,)), Bins((1.0, 2.5))),
    "rent": (Bins((10.0,)), Bins((7.5, 12.0))),
}
VALUES = {
    "age": [25.0, 35.0, 45.0, -9.0, -1.0, np.nan],
    "job": ["a", "b", "c", None, "z"],
    "debt": [0.0, 1.0, 2.0, 3.0, np.nan],
    "rent": [5.0, 15.0, np.nan],
}
SUBSCALES = {"person": ("age", "job"), "money": ("debt", "rent"), "both": ("rent", "job")}


def random_part(rng, name, features, link, *, whole=False):
    shapes = {}
    for feature in features:
        levels = LEVELS[feature]
        n = len(levels)
        scores = rng.integers(-3, 4, n) / 4 if whole else rng.normal(size=n).round(2)
        weights = rng.integers(0, 4, n) * 10.0
        weights[0] = 10.0
        shapes[feature] = Table(
            levels=levels,
            scores=tuple(scores.tolist()),
            weights=tuple(weights.tolist()),
            positives=tuple((weights / 2).tolist()),
        )
    return Part(name=name, intercept=round(float(rng.normal()), 2), shapes=shapes, link=link)


def with_pairs(part, rng):
    """The part with one to four random pairs of its features, and perhaps without the shape of one of them."""
    known = list(itertools.combinations(part.shapes, 2))
    pairs = []
    for j in rng.permutation(len(known))[: rng.integers(1, 5)]:
        features = tuple(rng.permutation(known[j]).tolist())
        levels = tuple(AXES[name][rng.integers(len(AXES[name]))] for name in features)
        size = tuple(map(len, levels))
        tables = {"scores": rng.normal(size=size).round(2), "weights": rng.integers(0, 3, size) * 10.0}
        tables["weights"][0] = tables["weights"][:, 0] = 10.0
        tables["positives"] = tables["weights"] / 2
        tables = {name: tuple(map(tuple, table.tolist())) for name, table in tables.items()}
        pairs.append(PairTable(features=features, levels=levels, **tables))
    gone = pairs[0].features[0] if rng.random() < 0.3 else None
    shapes = {name: shape for name, shape in part.shapes.items() if name != gone}
    return msgspec.structs.replace(part, shapes=shapes, pairs=tuple(pairs))


def random_trees(rng, name, link):
    """Three trees of depth 2 on debt and rent, and on whether job is b."""
    inputs = (TreeInput(feature="debt"), TreeInput(feature="rent"), TreeInput(feature="job", category="b"))
    trees = []
    for first, second, third in ((0, 1, 2), (1, 0, 0), (2, 0, 1)):
        edges = {0: [0.5, 1.5, 2.5], 1: [10.0, 12.0], 2: [0.5]}
        at = [float(rng.choice(edges[j])) for j in (first, second, third)]
        trees.append(
            Tree(
                inputs=(first, second, third, -1, -1, -1, -1),
                edges=(*at, 0.0, 0.0, 0.0, 0.0),
                missing_left=tuple(bool(b) for b in rng.integers(0, 2, 7)),
                left=(1, 3, 5, 0, 0, 0, 0),
                right=(2, 4, 6, 0, 0, 0, 0),
                values=(0.0, 0.0, 0.0, *rng.normal(size=4).round(2).tolist()),
            )
        )
    return TreePart(name=name, intercept=0.1, inputs=inputs, trees=tuple(trees), link=link)


def random_form(seed, *, trees=False, pairs=False, features=None, **decided):
    """A form with any pool and links, features in several parts, and some levels training never saw."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(["alone", "mixture", "layer"])
    age = {"special_values": (-9.0,), "lower_bound": 0.0}
    known = {"age": age, "job": {"kind": "categorical"}, "debt": {}, "rent": {}}
    for name, fields in (features or {}).items():
        known[name] = {**known[name], **fields}
    schema = pr.Schema(features=known, subscales=SUBSCALES, **decided)

    def link():
        return LINKS[rng.integers(len(LINKS))]

    if kind == "alone":
        parts = (random_part(rng, "all", known, link()),)
        pool = Alone()
    else:
        names = list(SUBSCALES)[: rng.integers(2, 4)]
        parts = tuple(random_part(rng, s, SUBSCALES[s], link()) for s in names)
        if trees:
            parts = (*parts[:1], random_trees(rng, "trees", link()))
        share = rng.dirichlet(np.ones(len(parts)))
        pool = Mixture(tuple(share.tolist()), CALIBRATION if seed % 2 else None)
        if kind == "layer":
            pool = Layer(float(rng.normal()), tuple((3 * share).tolist()), link())
    if pairs:
        parts = tuple(with_pairs(part, rng) if isinstance(part, Part) else part for part in parts)
    return RiskForm(schema=schema, columns=tuple(known), classes=(0, 1), parts=parts, pool=pool)


def all_rows():
    """Every combination of levels."""
    rows = list(itertools.product(*VALUES.values()))
    columns = dict(zip(VALUES, zip(*rows, strict=True), strict=True))
    return {name: np.array(values, dtype=object if name == "job" else np.float64) for name, values in columns.items()}


@pytest.fixture(scope="session")
def every_row():
    return all_rows()


@pytest.fixture(scope="session")
def tampering():
    """Changes model files, and signs them again."""
    spec = importlib.util.spec_from_file_location("tampering", Path(__file__).with_name("tampering.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def make_form():
    return random_form


@pytest.fixture(scope="session")
def make_trees():
    return random_trees


@pytest.fixture(scope="session")
def level_values():
    return VALUES
