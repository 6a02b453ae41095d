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
WIDER = ("S5", "S6")  # where the default model is beside trees as they come alone
AS_THEY_COME = ("XGBoost as it comes", "LightGBM as it comes")
SCORED, SCORE_SIZE = ("ARM1", "BandARM1", "XGBoost", "LightGBM"), (1_000_000, 30)
WIDE, WIDE_SIZE = ("SmoothARM1", "ARM1", "BandARM1", "DirectARM1", "NNLR"), (300, 3_000)
STREAMED = ("SmoothARM1", "ARM1", "BandARM1")
STREAMS = {"stream": (10_000_000, 30), "parquet": (50_000_000, 30)}
GROWTH = {"rows": (100_000, 20), "ten times the rows": (1_000_000, 20)}
GROWTH |= {"features": (5_000, 125), "four times the features": (5_000, 500)}
PAIRED = ("heloc", "taiwan", "gmsc")  # files that the user has; see `plainrisk data list`
COMMANDS_SIZE = (5_000, 20)
PARTS = ("fit", "score", "wide", "growth", "pairs", "commands", "stream", "parquet")
TRAIN_ROWS = 20_000  # of the model that scores
WITH_PAIRS = ("SmoothARM1 + pairs", "EBM as it comes")  # on the first shape alone
SIZES = {**SHAPES, **STREAMS, **GROWTH, "score": SCORE_SIZE, "wide": WIDE_SIZE, "commands": COMMANDS_SIZE}


@dataclass(frozen=True)
class Task:
    """One result: a part of the run, the shape of the rows, a method, and the name of the rows."""

    part: str
    shape: str
    method: str
    data: str


def size_of(shape: str, scale: float = 1.0) -> tuple[int, int]:
    rows, features = SIZES[shape]
    return (rows, features) if shape == "wide" else (max(1_000, round(rows * scale)), features)


def methods_of(shape: str) -> list[str]:
    """Return the methods that are fitted to a shape."""
    if shape in WIDER:
        return ["SmoothARM1", "ARM1", *AS_THEY_COME]
    return [m for m in METHODS if m != "NNLR" and (m not in WITH_PAIRS or shape == "S1")]


def tasks(shapes: Sequence[str], methods: Sequence[str], parts: Sequence[str], scale: float = 1.0) -> Iterator[Task]:
    """Yield all that is run; `scale` makes rows fewer, for trials."""

    def name(kind: str, shape: str) -> str:
        rows, features = size_of(shape, scale)
        return f"{kind}-{rows}x{features}"

    if "fit" in parts:
        for shape in shapes:
            yield from (Task("fit", shape, m, name("credit", shape)) for m in methods_of(shape) if m in methods)
    others = {
        "score": [("score", m, name("credit", "score")) for m in SCORED],
        "wide": [("wide", m, name("wide", "wide")) for m in WIDE],
        "growth": [(shape, "SmoothARM1", name("credit", shape)) for shape in GROWTH],
        "pairs": [(data, "SmoothARM1 + pairs", f"own-{data}") for data in PAIRED],
        "commands": [("commands", "SmoothARM1", name("credit", "commands"))],
        "stream": [("stream", m, name("parquet", "stream")) for m in STREAMED],
        "parquet": [("parquet", m, name("parquet", "parquet")) for m in STREAMED],
    }
    for part, each in others.items():
        if part in parts:
            yield from (Task(part, shape, m, data) for shape, m, data in each if m in methods)
