"""What is run: which method on which rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.methods import METHODS

SHAPES = {
    "S1": (10_000, 23),
    "S2": (150_000, 10),
    "S3": (100_000, 90),
    "S4": (2_000_000, 30),
    "S5": (20_000, 60),
    "S6": (20_000, 200),
}
SCORED, SCORE_SIZE = ("ARM1", "BandARM1", "XGBoost", "LightGBM"), (1_000_000, 30)
WIDE, WIDE_SIZE = ("SmoothARM1", "ARM1", "BandARM1", "DirectARM1", "NNLR"), (300, 3_000)
STREAMED, PARQUET_SIZE = ("ARM1", "BandARM1"), (50_000_000, 30)
PARTS = ("fit", "score", "wide", "parquet")
TRAIN_ROWS = 20_000  # of the model that scores
WITH_PAIRS = ("SmoothARM1 + pairs", "EBM as it comes")  # on the first shape alone


@dataclass(frozen=True)
class Task:
    """One result: a part of the run, the shape of the rows, a method, and the name of the rows."""

    part: str
    shape: str
    method: str
    data: str


def size_of(shape: str, scale: float = 1.0) -> tuple[int, int]:
    rows, features = {**SHAPES, "score": SCORE_SIZE, "wide": WIDE_SIZE, "parquet": PARQUET_SIZE}[shape]
    return (rows, features) if shape == "wide" else (max(1_000, round(rows * scale)), features)


def tasks(shapes: Sequence[str], methods: Sequence[str], parts: Sequence[str], scale: float = 1.0) -> Iterator[Task]:
    """Yield all that is run; `scale` makes rows fewer, for trials."""

    def name(kind: str, shape: str) -> str:
        rows, features = size_of(shape, scale)
        return f"{kind}-{rows}x{features}"

    if "fit" in parts:
        for shape in shapes:
            able = [m for m in METHODS if m != "NNLR" and (m not in WITH_PAIRS or shape == "S1")]
            yield from (Task("fit", shape, m, name("credit", shape)) for m in able if m in methods)
    others = {"score": (SCORED, "credit"), "wide": (WIDE, "wide"), "parquet": (STREAMED, "parquet")}
    for part, (able, kind) in others.items():
        if part in parts:
            yield from (Task(part, part, m, name(kind, part)) for m in able if m in methods)
