"""The page and Python say the same of the same applicants: risks, contributions, reasons and what-if."""

from __future__ import annotations

import warnings

import msgspec
import numpy as np
import pytest

import plainrisk as pr
from plainrisk.form import PairTable

MODELS = [
    "SmoothARM1",
    "BandARM1",
    "DirectARM1",
    "LinARM2",
    "MixLinARM1",
    "CalibratedMixARM1",
    "ARM1",
    "MixXGB",
    "NNLR",
]


def load(name):
    try:
        return pr.datasets.load(name)
    except pr.errors.DataError as error:
        if "is not on this machine" not in str(error):
            raise
        pytest.skip(f"{name} is not on this machine: set PLAINRISK_DATA to the folder that holds it")


def case(dataset, name, pairs=None):
    if name == "MixXGB":
        pytest.importorskip("xgboost")
    options = {} if pairs is None else {"pairs": pairs}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pr.errors.PlainriskWarning)  # of clipping
        return pr.make_classifier(name, dataset.schema, **options).fit(dataset.frame, dataset.target).form_


@pytest.mark.parametrize("name", MODELS)
def test_german(name, compare):
    german = load("german")
    compare(
        case(german, name),
        german.frame,
        cutoff=0.8,
        what_ifs=3 if name == "MixXGB" else 100,
    )


def with_pair(part, features, rng):
    """The part with a pair of made-up scores: German credit has no evidence for any."""
    levels = tuple(part.shapes[name].levels for name in features)
    size = tuple(map(len, levels))
    tables = {"scores": rng.normal(scale=0.2, size=size), "weights": np.ones(size), "positives": np.ones(size)}
    tables = {name: tuple(map(tuple, values.tolist())) for name, values in tables.items()}
    pair = PairTable(features=features, levels=levels, **tables)
    return msgspec.structs.replace(part, pairs=(*part.pairs, pair))


def test_german_with_pairs(compare, rng):
    german = load("german")
    form = case(german, "SmoothARM1")
    part = with_pair(form.parts[0], ("Duration in month", "Credit amount"), rng)
    part = with_pair(part, ("Purpose", "Duration in month"), rng)
    form = msgspec.structs.replace(form, parts=(part,))
    compare(form, german.frame, cutoff=0.8, what_ifs=40)


@pytest.mark.parametrize("name", MODELS)
def test_heloc(name, compare):
    heloc = load("heloc")
    compare(case(heloc, name), heloc.frame, cutoff=0.3, what_ifs=2 if name == "MixXGB" else 20)


def test_heloc_with_pairs(compare):
    heloc = load("heloc")
    known = [("ExternalRiskEstimate", name) for name in ("MSinceMostRecentInqexcl7days", "NumSatisfactoryTrades")]
    form = case(heloc, "SmoothARM1", pairs=known)
    assert form.parts[0].pairs
    compare(form, heloc.frame, cutoff=0.3, what_ifs=20)
