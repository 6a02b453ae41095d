from __future__ import annotations

import dataclasses
import tomllib

import pytest

from plainrisk import datasets
from plainrisk.datasets.registry import HERE, schema_of
from plainrisk.errors import DataError


def test_names_are_the_public_ones():
    expected = ["german", "heloc", "gmsc", "taiwan", "japan", "australia"]
    expected += [f"poland_{k}" for k in range(5)] + [f"lc_{k}" for k in range(13)]
    expected += ["lending_club_2007_2011", "lending_club_2007_2011_leaky"]
    assert list(datasets.names()) == expected


def test_the_registry_holds_no_misspelled_field():
    known = {field.name for field in dataclasses.fields(datasets.Info)}
    for family in tomllib.loads((HERE / "registry.toml").read_text()).values():
        for fields in (family, *family.get("sets", {}).values()):
            assert set(fields) - {"sets"} <= known


@pytest.mark.parametrize("name", datasets.names())
def test_every_data_set_can_be_had(name):
    entry = datasets.info(name)
    assert (entry.url is None) != (entry.get is None)
    if entry.url is not None:
        assert entry.url.startswith("https://")
        assert entry.license == "CC BY 4.0"
        assert entry.member in entry.files
    for alias in entry.aliases:
        assert len(alias) == len(schema_of(entry.schema).features) + 1


@pytest.mark.parametrize("name", datasets.names())
def test_hindsight_columns_are_features(name):
    entry = datasets.info(name)
    assert set(entry.after_the_fact) <= set(schema_of(entry.schema).features)


def test_an_unknown_name_gets_a_hint():
    with pytest.raises(DataError, match=r"no data set 'germany'\. Did you mean 'german'\?"):
        datasets.load("germany")
    with pytest.raises(DataError, match="no data set 3"):
        datasets.info(3)


def test_positive_rate_is_known_where_both_counts_are():
    assert datasets.info("german").positive_rate == 0.7
    assert datasets.info("lc_0").positive_rate is None
