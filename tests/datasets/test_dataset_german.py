"""The built-in data set: always there, the same in every library."""

from __future__ import annotations

import collections
import gzip

import narwhals as nw
import numpy as np
import pytest

from plainrisk import datasets
from plainrisk.datasets import loading
from plainrisk.datasets.registry import HERE
from plainrisk.errors import DataError, MissingExtraError

PACKED = HERE / "files" / "german.csv.gz"


def test_the_packed_file_is_small_and_carries_no_time():
    packed = PACKED.read_bytes()
    assert len(packed) < 20_000
    assert packed[4:8] == bytes(4)
    assert not packed[3] & 0x08  # no file name either


def test_the_packed_file_has_the_original_codes():
    rows = [line.split(",") for line in gzip.decompress(PACKED.read_bytes()).decode().splitlines()]
    assert {len(row) for row in rows} == {21}
    assert rows[1][:6] == ["A11", "6", "A34", "A43", "1169", "A65"]
    assert collections.Counter(row[-1] for row in rows[1:]) == {"1": 700, "2": 300}
    # Counts from the data's own documentation: status of the checking account.
    assert collections.Counter(row[0] for row in rows[1:]) == {"A11": 274, "A12": 269, "A13": 63, "A14": 394}


def test_the_attribution_names_author_license_and_changes():
    text = (HERE / "files" / "ATTRIBUTION.txt").read_text()
    for words in ("Hans Hofmann", "CC BY 4.0", "10.24432/C5NC77", "No value was changed"):
        assert words in text


@pytest.mark.parametrize("backend", ["polars", "pandas", "pyarrow"])
def test_every_library_gets_the_same(backend):
    pytest.importorskip(backend)
    german = datasets.load("german", backend=backend)
    frame = nw.from_native(german.frame, eager_only=True)
    assert frame.implementation.value == backend
    assert frame.columns == list(german.schema.features)
    assert frame.shape == (1000, 20)
    assert frame["Status of existing checking account"].to_list()[:3] == [11, 12, 14]
    assert frame["Savings account/bonds"].to_list()[:3] == [65, 61, 61]
    assert frame["Credit history"].to_list()[:3] == ["A34", "A32", "A34"]
    assert frame["Age in years"].to_list()[:3] == [67, 22, 49]


def test_the_target_is_being_good():
    german = datasets.load("german")
    assert german.target.dtype == np.uint8
    assert german.target[:5].tolist() == [1, 0, 1, 1, 0]
    assert (german.schema.target, german.schema.positive) == ("good", 1)
    german_info = datasets.info("german")
    assert (german.n_rows, german.positive_rate) == (german_info.rows, german_info.positive_rate)


def test_the_ordered_codes_are_numbers_that_increase():
    features = datasets.load("german").schema.features
    for name in ("Status of existing checking account", "Savings account/bonds"):
        assert (features[name].kind, features[name].direction) == ("continuous", "increasing")


def test_select_cuts_frame_and_schema():
    part = datasets.load("german").select(["Housing", "Purpose"])
    assert part.frame.columns == ["Housing", "Purpose"]
    assert list(part.schema.features) == ["Housing", "Purpose"]
    assert part.schema.subscales == {"Credit and loan": ("Purpose",), "Personal": ("Housing",)}
    with pytest.raises(DataError, match="german has no feature 'Hosing'"):
        part.select(["Hosing"])


@pytest.mark.parametrize("backend", ["polars", "pandas", "pyarrow"])
def test_the_schema_fits_the_frame_with_its_target(backend):
    pytest.importorskip(backend)
    for made in (datasets.load("german", backend=backend), datasets.make_credit(2_000, backend=backend)):
        frame = nw.from_native(made.with_target(), eager_only=True)
        assert frame.columns == [*made.schema.features, made.schema.target]
        assert frame[made.schema.target].to_list() == made.target.tolist()
        assert [p for p in made.schema.check(made.with_target()) if p.severity == "error"] == []


def test_an_unknown_library_is_refused():
    with pytest.raises(DataError, match="backend must be 'polars', 'pandas' or 'pyarrow', not 'dask'"):
        datasets.load("german", backend="dask")


def test_the_library_is_the_first_that_is_installed(monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.setattr(loading, "find_spec", lambda name: None if name == "polars" else object())
    frame = nw.from_native(datasets.load("german").frame, eager_only=True)
    assert frame.implementation.value == "pandas"
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"polars is needed .* pip install polars"):
        datasets.load("german")
    with pytest.raises(MissingExtraError, match=r"pandas is needed .* pip install pandas"):
        datasets.load("german", backend="pandas")


def test_the_data_set_prints_in_a_few_words():
    assert len(repr(datasets.load("german"))) < 500
