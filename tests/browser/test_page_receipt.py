"""The page checks a receipt: its signature, the model, the applicant shown, and the decision again; offline."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from plainrisk.signing import new_key

REFUSED, APPROVED = 1, 0
NAMES = ["Signature", "Model", "Applicant", "Decision"]


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    new_key(folder / "key.pem")
    new_key(folder / "other.pem")
    return folder


@pytest.fixture(scope="session")
def decided(model: Any) -> Any:
    return model.annotate(cutoff=0.6)


@pytest.fixture(scope="session")
def receipt_page(written: Callable[..., Path], decided: Any) -> Path:
    return written("receipts", decided)


def applicant(german: Any, row: int) -> dict[str, Any]:
    return {name: german.frame[name][row] for name in german.schema.features}


def address(german: Any, row: int) -> str:
    return "applicant?" + urlencode({f"a.{name}": value for name, value in applicant(german, row).items()})


@pytest.fixture
def check(open_page: Callable[..., Any], receipt_page: Path) -> Callable[..., list[tuple[str, bool, str]]]:
    """Give the page a receipt and a key, and return what it says."""

    def run(receipt: Path, key: Path, where: str) -> list[tuple[str, bool, str]]:
        page = open_page(receipt_page, where, offline=True).page
        page.get_by_text("Check a receipt").click()
        assert page.get_by_role("button", name="Check", exact=True).is_disabled()
        page.get_by_label("The receipt of a decision").set_input_files(receipt)
        page.get_by_label("The public key").set_input_files(key)
        page.get_by_role("button", name="Check", exact=True).click()
        page.locator(".receipt [role=status] > *").wait_for()
        if page.locator(".receipt .hint").count():
            return [("error", False, page.locator(".receipt .hint").inner_text())]
        return [
            (
                line.locator("strong").inner_text(),
                line.get_by_role("img").get_attribute("aria-label") == "holds",
                line.inner_text(),
            )
            for line in page.locator(".receipt .checks li").all()
        ]

    return run


@pytest.mark.parametrize("row", [REFUSED, APPROVED])
def test_a_receipt_holds(check: Any, decided: Any, german: Any, keys: Path, tmp_path: Path, row: int) -> None:
    decided.receipt(applicant(german, row), key=keys / "key.pem").save(tmp_path / "receipt.json")
    found = check(tmp_path / "receipt.json", keys / "key.pub.pem", address(german, row))
    assert [(name, holds) for name, holds, _ in found] == [(name, True) for name in NAMES], found
    assert "all 20 values of this applicant" in found[2][2]


def test_what_does_not_hold(check: Any, decided: Any, german: Any, keys: Path, tmp_path: Path) -> None:
    path, public, where = tmp_path / "receipt.json", keys / "key.pub.pem", address(german, REFUSED)
    receipt = decided.receipt(applicant(german, REFUSED), key=keys / "key.pem")
    plain = json.loads(json.dumps(receipt.to_dict()))

    def holding(given: Any, key: Path = public, at: str = where) -> list[tuple[str, bool]]:
        path.write_text(json.dumps(given), encoding="utf-8")
        return [(name, holds) for name, holds, _ in check(path, key, at)]

    broken = [("Signature", False)]
    assert holding(plain, keys / "other.pub.pem") == broken
    assert holding({**plain, "salt": "0" * 64}) == broken
    assert holding({**plain, "receipt": {**plain["receipt"], "decision": "approved"}}) == broken
    assert holding({**plain, "receipt": {**plain["receipt"], "more": 1}}) == broken
    assert holding({**plain, "signature": {**plain["signature"], "key": "0" * 64}}) == broken
    rounded = {**plain["receipt"], "probability": plain["receipt"]["probability"] + 1e-15}
    assert holding({**plain, "receipt": rounded}) == broken
    assert holding(plain, at=address(german, APPROVED)) == [("Signature", True), ("Model", True), ("Applicant", False)]
    del plain["salt"]
    assert holding(plain) == [("Signature", True), ("Model", True)]


def test_a_receipt_of_another_model(check: Any, decided: Any, german: Any, keys: Path, tmp_path: Path) -> None:
    other = decided.annotate(cutoff=0.7)
    other.receipt(applicant(german, REFUSED), key=keys / "key.pem").save(tmp_path / "receipt.json")
    found = check(tmp_path / "receipt.json", keys / "key.pub.pem", address(german, REFUSED))
    assert [holds for _, holds, _ in found] == [True, False, True]


def test_what_is_no_receipt_or_no_key(check: Any, decided: Any, german: Any, keys: Path, tmp_path: Path) -> None:
    receipt, text = tmp_path / "receipt.json", tmp_path / "text.json"
    decided.receipt(applicant(german, REFUSED), key=keys / "key.pem").save(receipt)
    for wrong in ("", "{}", "[]", "null", '{"receipt": 1, "signature": {}}'):
        text.write_text(wrong, encoding="utf-8")
        assert check(text, keys / "key.pub.pem", "applicant")[0][2] == "The first file is no receipt."
    for key in (text, keys / "key.pem"):
        assert "The second file is no public key" in check(receipt, key, "applicant")[0][2]


def test_what_was_said_of_other_values_goes(
    open_page: Callable[..., Any], receipt_page: Path, decided: Any, german: Any, keys: Path, tmp_path: Path
) -> None:
    decided.receipt(applicant(german, REFUSED), key=keys / "key.pem").save(tmp_path / "receipt.json")
    seen = open_page(receipt_page, address(german, REFUSED))
    seen.page.get_by_text("Check a receipt").click()
    seen.page.get_by_label("The receipt of a decision").set_input_files(tmp_path / "receipt.json")
    seen.page.get_by_label("The public key").set_input_files(keys / "key.pub.pem")
    seen.page.get_by_role("button", name="Check", exact=True).click()
    seen.page.locator(".receipt .checks").wait_for()
    seen.feature("Duration of the loan").fill("7")
    seen.page.locator(".receipt .checks").wait_for(state="detached")
