"""A warning points at the line of the caller, however deep in plainrisk it was raised."""

from __future__ import annotations

import re
import threading
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import plainrisk as pr
from plainrisk.errors import PlainriskWarning, StoppedEarly, quiet, warn
from plainrisk.threads import parallel_map

SOURCE = Path(pr.__file__).parent


def rows(n=200):
    rng = np.random.default_rng(0)
    return pl.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})


def fit_a_clipped_line():
    X = rows()
    y = (X["a"].to_numpy() + 0.1 * X["b"].to_numpy() > 0).astype(int)
    pr.AdditiveRiskModel(link="linear").fit(X, y)


def code_otherwise():
    X = pl.DataFrame({"c": ["x", "y"] * 100})
    schema = pr.Schema(features={"c": {"kind": "categorical"}})
    model = pr.AdditiveRiskModel(schema).fit(X, np.arange(200) % 3 == 0)
    model.predict_proba(X.with_columns(pl.col("c").str.to_uppercase()))


@pytest.mark.parametrize("call", [fit_a_clipped_line, code_otherwise, lambda: warn("said")])
def test_a_warning_points_at_the_caller(call):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call()
    ours = [one for one in seen if issubclass(one.category, PlainriskWarning)]
    assert ours
    assert {one.filename for one in ours} == {__file__}


def test_the_category_is_kept():
    with pytest.warns(StoppedEarly, match="early"):
        warn("early", StoppedEarly)


def test_silence_is_of_one_thread_and_of_those_that_work_for_it(monkeypatch):
    """`warnings.catch_warnings` would silence the whole process, and two at a time leave filters behind."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    both = threading.Barrier(2)

    def work(_):
        both.wait(600)
        warn("inside")

    filters = list(warnings.filters)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with quiet():
            other = threading.Thread(target=warn, args=("outside",))
            other.start()
            other.join()
            assert list(parallel_map(work, range(2))) == [None, None]
    assert [str(one.message) for one in seen] == ["outside"]
    assert warnings.filters == filters


def test_all_warnings_go_the_one_way():
    calls = [path for path in SOURCE.rglob("*.py") if re.search(r"warnings\.warn\(", path.read_text("utf-8"))]
    assert calls == [SOURCE / "errors.py"]
