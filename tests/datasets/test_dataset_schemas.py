"""The schemas in the package say what the paper's listings say."""

from __future__ import annotations

import json

import pytest

from plainrisk import datasets
from plainrisk.datasets.registry import schema_of

NAMES = ("heloc", "german", "taiwan", "gmsc", "japan", "australia", "poland", "lending_club")
SIGNS = {1: "increasing", -1: "decreasing", 0: "none"}


@pytest.fixture
def listing(paper, request):
    return json.loads((paper / "schemas.json").read_text())[request.param]


BOTH = pytest.mark.parametrize(("name", "listing"), [(n, n) for n in NAMES], indirect=["listing"], ids=NAMES)


@BOTH
def test_features_and_subscales_stand_in_the_papers_order(name, listing):
    schema = schema_of(name)
    assert list(schema.features) == listing["features"]
    # The subscales of German credit have names that people read; their members are the paper's.
    names = {"CreditLoanInfo": "Credit and loan", "PersonalInfo": "Personal"} if name == "german" else {}
    wanted = [(names.get(s, s), members) for s, members in listing["subscales"].items()]
    assert [(s, list(members)) for s, members in schema.subscales.items()] == wanted


@BOTH
def test_every_field_is_the_papers(name, listing):
    for feature_name, feature in schema_of(name).features.items():
        categorical = feature_name in listing["categorical"]
        assert feature.kind == ("categorical" if categorical else "continuous"), feature_name
        assert feature.direction == SIGNS[listing["monotone"][feature_name]], feature_name
        bins, codes, bound = feature.max_bins, feature.special_values, feature.lower_bound
        if categorical:
            # The categorical features of HELOC are in the paper's table of bins too; being categorical wins.
            assert (bins, codes, bound) == (None, (), None), feature_name
        else:
            assert bins == listing["max_leaf_nodes"][feature_name], feature_name
            assert list(codes) == listing["special_values"][feature_name], feature_name
            assert bound == listing["lower_bound"], feature_name


def test_polish_attributes_are_the_papers(paper):
    meaning = json.loads((paper / "schemas.json").read_text())["poland"]["attribute_names"]
    (columns,) = datasets.info("poland_0").aliases
    assert columns[-1] == "class"
    assert [meaning[c] for c in columns[:-1]] == list(schema_of("poland").features)
    assert set(meaning) - set(columns) == {"Attr37"}


def test_every_schema_has_its_file_and_every_file_its_data_set():
    assert {datasets.info(n).schema for n in datasets.names()} == set(NAMES)


@pytest.mark.parametrize("name", ["heloc", "german"])
def test_every_feature_has_its_own_reason(name):
    """In words of its own: its reason, or what people call it."""
    features = schema_of(name).features
    reasons = [feature.reason or feature.label for feature in features.values()]
    assert None not in reasons
    assert len(set(reasons)) == len(reasons)


def test_german_credit_says_what_a_lender_would_decide():
    schema = schema_of("german")
    assert (schema.adverse, schema.policy.cutoff) == ("negative", 0.6)
    assert (schema.outcome.positive, schema.outcome.negative) == ("repays the loan", "does not repay the loan")
    assert schema.protected == ("Personal status and sex", "Age in years", "foreign worker")
    assert all(schema.features[name].actionable == "fixed" for name in schema.protected)
    assert all(feature.label for feature in schema.features.values())


def test_every_category_of_german_credit_has_a_label():
    data = datasets.load("german", backend="polars")
    for name, feature in data.schema.features.items():
        if feature.kind == "categorical":
            assert set(data.frame[name].cast(str).unique()) <= set(feature.labels), name


def test_overlap_and_omission_are_kept():
    assert set(schema_of("poland").overlaps) == {
        "net profit / inventory",
        "(current assets - inventory) / short-term liabilities",
    }
    assert len(schema_of("german").unassigned) == 7
    assert schema_of("gmsc").unassigned == ("DebtRatio",)
