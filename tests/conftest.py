"""What many tests share: seeded numbers, and where real data lie if there are any."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


def _folder(variable: str, beside: str) -> Path:
    given = os.environ.get(variable)
    folder = Path(given) if given else ROOT.parent / "shared" / beside
    if not folder.is_dir():
        pytest.skip(f"no folder {folder.name!r}: set {variable} to run this test")
    return folder


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real credit data."""
    return _folder("PLAINRISK_DATA", "data")


@pytest.fixture(scope="session")
def paper_folder() -> Path:
    """The folder of the paper's tables and schemas."""
    return _folder("PLAINRISK_PAPER", "paper")


@pytest.fixture
def rng() -> np.random.Generator:
    """The same random numbers in every run."""
    return np.random.default_rng(20240229)


# ---- files that no reader may accept: name, content, and what the error says after the name

_GZIP = gzip.compress(b"a,b\n" + b"1,2\n" * 99, mtime=0)

DAMAGED = [
    ("empty.csv", b"", "is empty"),
    ("blank.csv", b"\n\n", "is empty"),
    ("empty.csv.gz", b"", "is empty"),
    ("long.csv", b"a,b\n1,2\n3,4,5\n", "line 3: the record has 3 fields, the header 2. Put a field"),
    ("decimal.csv", b"a,b\n1,2\n1,5,7\n1,5,7\n", r"line 3: .*1 more such record.*decimal points"),
    ("short.csv", b"a,b,c\n1,2,3\n3,4\n5,6,7\n", "line 3: the record has 2 fields, the header 3. Is the line cut"),
    ("cut.csv", b"a,b,c\n1,2,3\n3,4", "line 3: the record has 2 fields"),
    ("gap.csv", b"a,b\n1,2\n\n3,4\n", "line 3: the line is empty"),
    ("gap_crlf.csv", b"a,b\r\n1,2\r\n\r\n", "line 3: the line is empty"),
    ("after_lines.csv", b'a,b\n1,"x\ny"\n1\n', "line 4: the record has 1 field"),
    ("lead.csv", b"\na,b\n1,2\n", "line 1 is empty"),
    ("twice.csv", b"a,b,a\n1,2,3\n", "column 'a' appears 2 times"),
    ("open.csv", b'a,b\n1,2\n1,"x\n2,7\n', "line 3: a quote opens a field and is never closed"),
    ("open_header.csv", b'a,"b\n' + b"1,2\n" * 50_000, "line 1: the names of the columns cannot be read"),
    ("stray.csv", b'a,b\n1,2\n3,5" wide\n', "line 3: a quote stands inside a field"),
    ("after.csv", b'a,b\n1,"x"y\n', "line 2: .*a field goes on after its quote"),
    ("shifted.csv", b'a,b\n1,"x\n2,7\n3,"y"\n', "line 2: .*a field goes on after its quote"),
    ("nul.csv", b"a,b\n1,x\0y\n", "line 2: a NUL byte"),
    ("utf16.csv", "a,b\n1,2\n".encode("utf-16"), "line 1: a NUL byte.*UTF-16"),
    ("latin.csv", "a,b\n1,2\n3,Müller\n".encode("latin1"), "line 3: bytes that are not UTF-8"),
    ("mac.csv", b"a,b\r1,2\r", "line 1: a carriage return without a line feed"),
    ("either.csv", b"a;b,c\n1;2,3\n", "line 1: commas, semicolons or tabs"),
    ("no.csv.gz", b"a,b\n", "it is damaged, cut off or no gzip file"),
    ("half.csv.gz", _GZIP[:-12], "it is damaged, cut off"),
    ("header.csv.gz", _GZIP[:5], "it is damaged, cut off"),
    ("flipped.csv.gz", _GZIP[:-5] + b"x" + _GZIP[-4:], "it is damaged"),
    ("no.parquet", b"PAR1 or not", "Is it a Parquet file"),
    ("table.csv", b"PAR1\0\0PAR1", "a NUL byte"),
    ("rows.xlsx", b"", r"cannot read this kind of file. .* \.csv, \.csv\.gz or \.parquet"),
    ("rows.txt", b"a,b\n1,2\n", "cannot read this kind of file"),
]


@pytest.fixture(params=DAMAGED, ids=[name for name, _, _ in DAMAGED])
def damaged(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """A file that no reader may accept, and a pattern of the message."""
    name, content, message = request.param
    (tmp_path / name).write_bytes(content)
    return tmp_path / name, f"{name}.*{message}"
