"""Make the pictures of the decision page in docs/images, from German credit: `make images`."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import polars as pl
from playwright.sync_api import sync_playwright

import plainrisk as pr

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
        browser.close()


if __name__ == "__main__":
    main()
