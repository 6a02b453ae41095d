"""The page that is shipped is the one that `page/` builds, and its policy allows its own script and nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "page"
ASSET = files("plainrisk.report").joinpath("page.html").read_text(encoding="utf-8")


def source_hash(folder):
    """The same hash as in page/vite.config.ts."""
    outside = ("index.html", "package-lock.json", "package.json", "tsconfig.json", "vite.config.ts")
    inside = [path.relative_to(folder).as_posix() for path in (folder / "src").rglob("*") if path.is_file()]
    digest = hashlib.sha256()
    for path in sorted([*outside, *inside]):
        digest.update(f"{path}\n{hashlib.sha256((folder / path).read_bytes()).hexdigest()}".encode())
    return digest.hexdigest()


def test_the_built_page_is_that_of_its_source():
    if not PAGE.is_dir():
        pytest.skip("no folder 'page': this is an installed package")
    stated = re.search(r'name="plainrisk-source" content="(\w+)"', ASSET)[1]
    assert stated == source_hash(PAGE), "page/ has changed: run make page, and commit src/plainrisk/report/page.html"


def inside(tag):
    return re.search(rf"<{tag}>(.*)</{tag}>", ASSET, re.DOTALL)[1]


@pytest.mark.parametrize("tag", ["script", "style"])
def test_policy_allows_the_script_and_the_style_by_their_hash(tag):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', ASSET)[1]
    digest = base64.b64encode(hashlib.sha256(inside(tag).encode()).digest()).decode()
    assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_page_asks_for_nothing():
    assert not re.search(r"(src|href)=[\"']?https?:", ASSET)
    assert not re.search(r"@import|url\(\s*[\"']?http", inside("style"))
    assert "style=" not in re.sub(r"<(script|style)>.*?</\1>", "", ASSET, flags=re.DOTALL)
    assert "eval(" not in inside("script")
    assert "new Function" not in inside("script")
