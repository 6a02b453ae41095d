"""The page and Python say the same of the same applicants: risks, contributions, reasons and what-if."""

from __future__ import annotations

import warnings

import pytest

import plainrisk as pr

MODELS = ["SmoothARM1", "BandARM1", "DirectARM1", "LinARM2", "MixLinARM1", "ARM1", "MixXGB", "NNLR"]


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
        adverse="negative",
        cutoff=0.8,
        what_ifs=3 if name == "MixXGB" else 100,
    )


def test_german_with_pairs(compare):
    german = load("german")
    form = case(german, "SmoothARM1", pairs=[("Duration in month", "Credit amount"), ("Purpose", "Age in years")])
    compare(form, german.frame, adverse="negative", cutoff=0.8, what_ifs=100)


@pytest.mark.parametrize("name", MODELS)
def test_heloc(name, compare):
    heloc = load("heloc")
    compare(case(heloc, name), heloc.frame, adverse="positive", cutoff=0.3, what_ifs=2 if name == "MixXGB" else 20)


def test_heloc_with_pairs(compare):
    heloc = load("heloc")
    compare(case(heloc, "SmoothARM1", pairs="auto"), heloc.frame, adverse="positive", cutoff=0.3, what_ifs=20)
