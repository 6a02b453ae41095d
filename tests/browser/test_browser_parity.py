"""In the browser, too, the page says what Python says."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import plainrisk as pr
from plainrisk.errors import DataError, PlainriskWarning
from plainrisk.report import page

MODELS = ["SmoothARM1", "BandARM1", "DirectARM1", "LinARM2", "MixLinARM1", "ARM1", "MixXGB"]


@pytest.fixture(scope="module")
def parity() -> Any:
    """What compares the page with Python, by Node elsewhere."""
    path = Path(__file__).parents[1] / "parity" / "conftest.py"
    spec = importlib.util.spec_from_file_location("parity_of_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def by_browser(open_page: Callable[..., Any], parity: Any, tmp_path: Path) -> Callable[[Any], str]:
    """Open the page and ask it."""

    def answer(question: Any) -> str:
        path = tmp_path / "page.html"
        path.write_text(page(question["payload"]), encoding="utf-8")
        plain = msgspec.json.encode({name: value for name, value in question.items() if name != "payload"}).decode()
        asked = "{ ...JSON.parse(text), payload: JSON.parse(payload.textContent) }"
        return str(open_page(path).page.evaluate(f"(text) => ({parity.ANSWER})(plainrisk, {asked})", plain))

    return answer


def fitted(name: str, data: Any, **options: Any) -> Any:
    if name == "MixXGB":
        pytest.importorskip("xgboost")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)  # of clipping
        return pr.make_classifier(name, data.schema, **options).fit(data.frame, data.target).form_


@pytest.mark.parametrize("name", MODELS)
def test_german(parity: Any, by_browser: Callable[[Any], str], german: Any, name: str) -> None:
    what_ifs = 1 if name == "MixXGB" else 10
    options = {"cutoff": 0.8, "what_ifs": what_ifs}
    parity.check(fitted(name, german), german.frame, by=by_browser, **options)


def test_heloc_with_pairs(parity: Any, by_browser: Callable[[Any], str]) -> None:
    try:
        heloc = pr.datasets.load("heloc")
    except DataError:
        pytest.skip("heloc is not on this machine: set PLAINRISK_DATA to the folder that holds it")
    pairs = [("ExternalRiskEstimate", "MSinceMostRecentInqexcl7days")]
    parity.check(fitted("SmoothARM1", heloc, pairs=pairs), heloc.frame, by=by_browser, cutoff=0.3, what_ifs=5)
