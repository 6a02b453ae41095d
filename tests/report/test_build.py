"""The pages that are shipped are those that `page/` builds, byte for byte, and its types hold."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILT = ("src/plainrisk/report/page.html", "lab/src/plainrisk_lab/user_study/page.html")


def absent(what):
    assert "CI" not in os.environ, f"in CI nothing is skipped: {what}"
    pytest.skip(what)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy of page/ with its packages, beside empty folders for what it builds."""
    if not (ROOT / "page").is_dir():
        pytest.skip("no folder 'page': this is an installed package")
    if shutil.which("npm") is None:
        absent("no npm: the page is not built")
    folder = tmp_path_factory.mktemp("build")
    for path in BUILT:
        (folder / path).parent.mkdir(parents=True)
    modules = ROOT / "page" / "node_modules"
    shutil.copytree(ROOT / "page", folder / "page", ignore=shutil.ignore_patterns("node_modules"))
    if modules.is_dir():
        (folder / "page" / "node_modules").symlink_to(modules)
    else:
        done = npm(folder, "ci", "--no-audit", "--no-fund")
        if done.returncode:
            absent(f"npm ci: {done.stderr[-300:]}")
    return folder


def npm(folder, *words):
    command = [shutil.which("npm"), *words]
    return subprocess.run(command, cwd=folder / "page", capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.xdist_group("page build")
def test_the_shipped_pages_are_built_from_their_source(source):
    done = npm(source, "run", "build")  # tsc, strict, comes first
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    for path in BUILT:
        assert (source / path).read_bytes() == (ROOT / path).read_bytes(), f"{path} is not of page/: run make page"


@pytest.mark.xdist_group("page build")
def test_a_wrong_type_fails_the_build(source):
    wrong = source / "page" / "src" / "wrong.ts"
    wrong.write_text('export const risk: number = "high";\n', encoding="utf-8")
    try:
        done = npm(source, "run", "types")
    finally:
        wrong.unlink()
    assert done.returncode != 0
    assert "wrong.ts" in done.stdout
    assert "not assignable" in done.stdout
