"""The page's own certificate, in Chromium, of model files that were changed and signed again."""

from __future__ import annotations

import importlib.util
import json
import random
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from plainrisk.errors import PlainriskError
from plainrisk.explain import certify
from plainrisk.form import RiskForm, read_model

TESTS = Path(__file__).parents[1]
CHANGED = 120
ASK = "(all) => all.map((one) => plainrisk.certify(plainrisk.prepare(one)).map((claim) => [claim.name, claim.holds]))"


@pytest.fixture(scope="module")
def tampering() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tampering", TESTS / "explain" / "tampering.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def changed(tampering: ModuleType, file: Path) -> list[tuple[dict[str, Any], dict[str, bool], str]]:
    """Return forms that can be read, what holds by our certificate, and what was changed."""
    whole = [json.loads(path.read_text("utf-8"))["form"] for path in sorted((TESTS / "golden").glob("*.model.json"))]
    rng, found = random.Random(19), []
    for _ in range(CHANGED):
        form, what = tampering.tampered(rng.choice(whole), rng)
        file.write_text(json.dumps(tampering.signed(form)), encoding="utf-8")
        try:
            read = read_model(file).form
        except PlainriskError:
            continue
        claims = {check.name: check.holds for check in certify(msgspec.convert(form, RiskForm)).checks}
        found.append((tampering.payload(tampering.plain_form(read)), claims, what))
    return found


def test_what_a_change_breaks_is_found_in_the_page(browser: Any, tampering: ModuleType, tmp_path: Path) -> None:
    forms = changed(tampering, tmp_path / "model.json")
    assert sum(not all(claims.values()) for _, claims, _ in forms) >= 10
    page = files("plainrisk.report").joinpath("page.html").read_text(encoding="utf-8")
    script = page[page.rindex("<script>") + len("<script>") : page.rindex("</script>")]
    tab = browser.new_page()
    tab.evaluate("document.body.innerHTML = '<div id=app></div><b id=payload>null</b>'")
    with pytest.raises(Exception, match="null"):  # there is no model to show; the engine is there by then
        tab.evaluate(script)
    answers = tab.evaluate(ASK, [payload for payload, _, _ in forms])
    tab.close()
    for answer, (_, claims, what) in zip(answers, forms, strict=True):
        assert dict(answer) == claims, what
