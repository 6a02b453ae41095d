"""Make the pictures of the decision page and of the user study in docs/images, from German credit: `make images`."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import polars as pl
from playwright.sync_api import Browser, sync_playwright

import plainrisk as pr
from plainrisk_lab.user_study import build, german_form

FOLDER = Path(__file__).parents[1] / "docs" / "images"
SIZE = {"width": 1240, "height": 820}
# What a picture shows: the part of the address after "#".
PICTURES = {
    "overview": "overview",
    "applicant": "applicant?a.Duration+in+month=36&a.Credit+amount=4800",
}


def write_page(path: Path) -> None:
    german = pr.datasets.load("german")
    model = pr.make_classifier("SmoothARM1", german.schema).fit(german.frame, german.target)
    rows = pl.DataFrame(german.frame).with_columns(pl.Series(german.schema.target, german.target))
    model.report(path, rows, title="German credit")


def picture_of_the_study(browser: Browser, folder: Path) -> None:
    """Answer five questions, and picture the sixth."""
    build(german_form(), folder / "study.html", folder / "key.json")
    page = browser.new_page(viewport={"width": 900, "height": 890}, device_scale_factor=1.5, locale="en-GB")
    page.goto((folder / "study.html").as_uri())
    page.get_by_role("checkbox").check()
    page.get_by_label("Code").fill("A1")
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="Go on").click()
    for _ in range(5):
        page.get_by_role("radio").first.check()
        page.get_by_role("button", name="Next").click()
    page.screenshot(path=FOLDER / "study.png")
    page.close()
    print(FOLDER / "study.png")


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        path = Path(folder) / "page.html"
        write_page(path)
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name, address in PICTURES.items():
            page = browser.new_page(viewport=SIZE, device_scale_factor=1.5, locale="en-GB")
            page.goto(f"{path.as_uri()}#{address}")
            page.locator("main h2").first.wait_for()
            page.wait_for_timeout(1000)  # the search for what would change the decision
            page.screenshot(path=FOLDER / f"{name}.png")
            page.close()
            print(FOLDER / f"{name}.png")
        picture_of_the_study(browser, Path(folder))
        browser.close()


if __name__ == "__main__":
    main()
