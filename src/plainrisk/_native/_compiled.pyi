from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk._types import Array, Codes, Counts, Floats

def level_sums(values: Floats | None, codes: Sequence[Codes], rows: int, sums: Sequence[Floats], /) -> None: ...
def logistic(
    intercept: float,
    offset: Floats | None,
    codes: Sequence[Codes],
    tables: Sequence[Floats],
    positive: Array,
    weight: Floats | None,
    sums: Sequence[Floats],
    residual: Floats | None,
    curvature: Floats | None,
    /,
) -> tuple[float, float]: ...
def look_up(score: Floats, codes: Sequence[Codes], tables: Sequence[Floats], /) -> None: ...
def pair_sums(
    values: Floats | None,
    first: Sequence[Codes],
    others: Sequence[Codes],
    rows: int,
    height: int,
    tables: Sequence[Floats],
    /,
) -> None: ...
def tree_cuts(rows: Counts, good: Floats, bad: Floats, cuts: Counts, min_rows: int, entropy: bool, /) -> int: ...
def text_codes(stream: Any, codes: npt.NDArray[np.int8], /) -> list[str] | None: ...
def add_chains(
    scores: Sequence[Floats],
    columns: Sequence[npt.NDArray[Any]],
    rows: int,
    plan: npt.NDArray[np.int64],
    numbers: Floats,
    /,
) -> bool: ...
def read_levels(
    columns: Sequence[npt.NDArray[Any]],
    rules: Sequence[Floats],
    outs: Sequence[npt.NDArray[Any]],
    flags: npt.NDArray[np.uint8],
    /,
) -> None: ...
def code_singles(
    singles: Sequence[npt.NDArray[np.float32]],
    edges: Sequence[npt.NDArray[np.float32]],
    outcome: npt.NDArray[np.uint8],
    codes: Sequence[Codes],
    counts: Sequence[npt.NDArray[np.int64]],
    /,
) -> None: ...
def count_codes(codes: Codes, outcome: npt.NDArray[np.uint8], counts: npt.NDArray[np.int64], /) -> None: ...
