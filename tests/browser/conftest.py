"""Pages in Debian's Chromium, driven by Playwright. Every page is watched: it may say, ask for and break nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import plainrisk as pr
from plainrisk.report import Subject, collect, page

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
HOSTILE = "</script><img src=x onerror=alert(1)>"
VIEWS = ("overview", "model", "applicant", "compare", "validator")


def _unavailable(reason: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(f"in CI no browser test may be skipped: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="module")  # one at a time in a process
def browser() -> Iterator[Any]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _unavailable("no playwright: pip install playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        _unavailable("no Chromium: apt-get install chromium")
    with sync_playwright() as play:
        found = play.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield found
        found.close()


@dataclass
class Watched:
    """An open page, and what must stay empty: console messages, errors, requests, breaches of the policy."""

    page: Any
    noise: list[str] = field(default_factory=list)

    def probability(self) -> str:
        return str(self.page.locator(".probability").first.inner_text())

    def go(self, view: str) -> None:
        self.page.get_by_role("navigation").get_by_role("link", name=view.capitalize()).click()

    def feature(self, name: str) -> Any:
        """The control of a feature of the applicant view."""
        return self.page.get_by_label(name, exact=True)


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Watched]]:
    """Open a page file: `open_page(path, "applicant", viewport=..., color_scheme=...)`."""
    contexts, watched = [], []

    def opened(path: Path, address: str = "", **options: Any) -> Watched:
        context = browser.new_context(**{"locale": "en-GB", "viewport": {"width": 1280, "height": 900}} | options)
        contexts.append(context)
        found = Watched(context.new_page())
        watched.append(found)
        tab = found.page
        tab.on("console", lambda message: found.noise.append(f"console: {message.text}"))
        tab.on("pageerror", lambda error: found.noise.append(f"error: {error}"))
        tab.on("dialog", lambda dialog: (found.noise.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        tab.on("request", lambda r: None if r.is_navigation_request() else found.noise.append(f"request: {r.url}"))
        tab.add_init_script(
            "addEventListener('securitypolicyviolation', (e) => console.error('policy', e.violatedDirective))"
        )
        tab.goto(f"{path.as_uri()}#{address}")
        tab.locator("main h1").wait_for(state="attached")
        return found

    yield opened
    for context in contexts:
        context.close()
    assert [line for found in watched for line in found.noise] == []


# ---- pages


@pytest.fixture(scope="session")
def german() -> Any:
    return pr.datasets.load("german")


@pytest.fixture(scope="session")
def model(german: Any) -> Any:
    return pr.make_classifier("SmoothARM1", german.schema).fit(german.frame, german.target)


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    folder = tmp_path_factory.mktemp("pages")

    def write(name: str, *models: Any, data: Any = None, **options: Any) -> Path:
        subjects = [Subject(type(m).__name__, m.form_, m.fit_record_) for m in models]
        path = folder / f"{name}.html"
        path.write_text(page(collect(subjects, data, **options)), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def german_page(written: Callable[..., Path], model: Any, german: Any) -> Path:
    rows = pl.DataFrame(german.frame).with_columns(pl.Series(german.schema.target, german.target))
    by = "Personal status and sex"
    return written("german", model, data=rows, title="German credit", applicants=5, by=by)


@pytest.fixture(scope="session")
def undecided_page(written: Callable[..., Path], model: Any) -> Path:
    """A model whose policy has no cut-off, so that the reader may try one."""
    return written("undecided", model.annotate({"policy": {"cutoff": None}}))


@pytest.fixture(scope="session")
def two_models_page(written: Callable[..., Path], model: Any, german: Any) -> Path:
    other = pr.make_classifier("ARM1", german.schema).fit(german.frame, german.target)
    return written("two", model, other, title="Two models")


@pytest.fixture(scope="session")
def hostile_page(written: Callable[..., Path]) -> Path:
    """A model whose every name tries to leave its element."""
    import pandas as pd

    feature = {"direction": "increasing", "reason": f"reason {HOSTILE}", "special_values": [-9]}
    schema = pr.Schema(
        target=f"target {HOSTILE}",
        features={HOSTILE: feature, f"kind {HOSTILE}": {"kind": "categorical"}},
        subscales={f"subscale {HOSTILE}": [HOSTILE, f"kind {HOSTILE}"]},
    )
    n = 200
    rows = pd.DataFrame(
        {HOSTILE: [float(i % 7) for i in range(n)], f"kind {HOSTILE}": [("a", f"b {HOSTILE}")[i % 2] for i in range(n)]}
    )
    y = [int(i % 7 + i % 2 + i % 5 > 5) for i in range(n)]
    fitted = pr.AdditiveRiskModel(schema).fit(rows, y)
    return written("hostile", fitted, data=rows, title=f"title {HOSTILE}", applicants=2)
