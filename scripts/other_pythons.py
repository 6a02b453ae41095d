"""Run the tests of scoring under every other Python that is found, on an installed wheel without its extras.

python scripts/other_pythons.py          # a minute

A Python is looked for on the path and in ~/.pyenv/versions. The last one gets a wheel that was built without a
compiler. Where the packages cannot be had, that is said and the Python is passed over.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ("src", "pyproject.toml", "setup.py", "README.md", "LICENSE", "MANIFEST.in")
TESTS = ("tests/form", "tests/golden", "tests/native")
NEEDED = ("pyproject.toml", "conftest.py", "tests/conftest.py", "tests/fuzz/corpus", *TESTS)
LOWEST = (3, 11)
VERSION = "import sys; print(*sys.version_info[:2] if sys.implementation.name == 'cpython' else '')"
BUILT = "from plainrisk import _native; print('compiled' if _native.COMPILED else 'without a compiler')"

Version = tuple[int, ...]


def candidates(path: str, home: Path) -> list[Path]:
    """Return all files that may be a Python, in the order of the path."""
    folders = [Path(folder) for folder in path.split(os.pathsep) if folder]
    folders += sorted(home.glob(".pyenv/versions/*/bin"))
    files = (file for folder in folders if folder.is_dir() for file in sorted(folder.iterdir()))
    return [file for file in files if re.fullmatch(r"python3\.\d+(\.exe)?", file.name)]


def version_of(python: Path) -> Version:
    """Return the version of a Python; () if it does not run, as pyenv's name of a version that is not chosen."""
    return tuple(map(int, subprocess.run([python, "-c", VERSION], capture_output=True, text=True).stdout.split()))


def others(found: Iterable[tuple[Version, Path]], ours: Version) -> dict[Version, Path]:
    """Return the first Python of every version that we support and do not run under, the oldest first."""
    first: dict[Version, Path] = {}
    for version, python in found:
        if version >= LOWEST and version != ours:
            first.setdefault(version, python)
    return dict(sorted(first.items()))


def copied(names: Iterable[str], folder: Path) -> Path:
    """Copy files and folders of the project, without what was built in them."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("*.so", "*.pyd", "*.egg-info", "__pycache__")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def built(folder: Path, **environment: str) -> Path:
    """Build the wheel from a copy of the source."""
    source = copied(SOURCE, folder)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, source]
    subprocess.run(command, check=True, env={**os.environ, **environment})
    return next(folder.glob("*.whl"))


def tried(python: Path, wheel: Path, folder: Path) -> str:
    """Install the wheel under a Python, run the tests, and say what became of them."""
    home = folder / python.name
    inside = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    wanted = ["--only-binary=:all:", wheel, "pytest", "pytest-xdist", "hypothesis", "pandas", "polars"]
    for step in ([python, "-m", "venv", home], [inside, "-m", "pip", "install", "--quiet", *wanted]):
        done = subprocess.run(step, capture_output=True, text=True)
        if done.returncode:
            return f"skipped: {(done.stderr or done.stdout).strip().splitlines()[-1]}"
    apart = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = partial(subprocess.run, cwd=folder / "project", capture_output=True, text=True)
    kernels = run([inside, "-c", BUILT], env=apart).stdout.strip()
    if kernels != "compiled":
        apart["PLAINRISK_KERNELS"] = "numpy"  # tests need not wonder why there are no loops beside a compiler
    done = run([inside, "-m", "pytest", "-n", "2", "-q", "-p", "no:cacheprovider", *TESTS], env=apart)
    if done.returncode:
        print(done.stdout)
    return f"{kernels}: {done.stdout.strip().splitlines()[-1]}" if done.returncode == 0 else f"FAILED, {kernels}"


def main() -> int:
    """Say for each Python what became of the tests; 1 if they failed under one."""
    found = ((version_of(python), python) for python in candidates(os.environ.get("PATH", ""), Path.home()))
    pythons, outcomes = others(found, tuple(sys.version_info[:2])), []
    if not pythons:
        print("no other Python is installed here")
        return 0
    with tempfile.TemporaryDirectory(prefix="pythons-") as name:
        folder = Path(name)
        copied(NEEDED, folder / "project")
        wheel = built(folder / "compiled")
        for version, python in pythons.items():
            if python == list(pythons.values())[-1]:
                wheel = built(folder / "plain", CC="false")
            outcomes.append(tried(python, wheel, folder))
            print("Python", ".".join(map(str, version)), outcomes[-1], flush=True)
    return int(any(outcome.startswith("FAILED") for outcome in outcomes))


if __name__ == "__main__":
    raise SystemExit(main())
