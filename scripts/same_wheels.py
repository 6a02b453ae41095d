"""Build the wheel twice, in two folders, and check that the bytes are the same.

python scripts/same_wheels.py
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def built(folder: Path) -> Path:
    """Build the wheel from a copy of the committed files in a folder."""
    folder.mkdir(exist_ok=True)
    source = folder / "source"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", ROOT.as_uri(), str(source)], check=True)
    when = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=source, check=True, capture_output=True, text=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(source)]
    subprocess.run(command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": when.stdout.strip()})
    return next(folder.glob("*.whl"))


def main() -> int:
    """Print the hashes of both wheels; 0 if they are equal."""
    with tempfile.TemporaryDirectory(prefix="one-") as one, tempfile.TemporaryDirectory(prefix="another-") as another:
        wheels = [built(Path(one)), built(Path(another) / "deeper")]
        hashes = [hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels]
    for wheel, found in zip(wheels, hashes, strict=True):
        print(found, wheel.name)
    print("the same bytes" if len(set(hashes)) == 1 else "the wheels differ")
    return int(len(set(hashes)) > 1)


if __name__ == "__main__":
    raise SystemExit(main())
