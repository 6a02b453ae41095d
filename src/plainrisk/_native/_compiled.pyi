from collections.abc import Sequence

from plainrisk._types import Array, Codes, Counts, Floats

VERSION: str

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
def code_numbers(x: Array, cuts: Floats, levels: Floats, out: Codes, /) -> None: ...
def add_scores(
    rows: int,
    scores: Sequence[Floats],
    targets: Counts,
    columns: Sequence[Array],
    cuts: Sequence[Floats],
    tables: Sequence[Floats],
    /,
) -> None: ...
