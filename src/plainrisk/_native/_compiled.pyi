from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.unsignedinteger[Any]]
Integers = npt.NDArray[np.int32]
Map = tuple[Sequence[Integers], Integers, Integers, Floats]

def look_up(score: Floats, packs: Sequence[Codes], tables: Sequence[Floats], /) -> None: ...
def cell_counts(
    packs: Sequence[Codes],
    strides: npt.NDArray[np.int64],
    outcome: npt.NDArray[np.uint8],
    counts: npt.NDArray[np.uint32],
    /,
) -> None: ...
def mark_cells(packs: Sequence[Codes], strides: npt.NDArray[np.int64], bits: npt.NDArray[np.uint64], /) -> int: ...
def number_cells(
    packs: Sequence[Codes],
    strides: npt.NDArray[np.int64],
    bits: npt.NDArray[np.uint64],
    used: npt.NDArray[np.int64],
    out: Codes,
    /,
) -> None: ...
def cell_sums(
    packs: Sequence[Codes],
    strides: npt.NDArray[np.int64],
    positive: npt.NDArray[np.generic],
    weight: Floats | None,
    total: Floats,
    hits: Floats,
    /,
) -> None: ...
def curvatures(
    point: Floats,
    packs: Sequence[Codes],
    map: Map,
    weight: Floats | None,
    dense: Floats | None,
    bend: Floats,
    codes: Floats,
    /,
) -> None: ...
def logistic(
    point: Floats,
    packs: Sequence[Codes],
    map: Map,
    positive: npt.NDArray[np.generic],
    weight: Floats | None,
    dense: Floats | None,
    gradient: Floats,
    /,
) -> float: ...
def look_up_risks(start: float, packs: Sequence[Codes], tables: Sequence[Floats], out: Floats, /) -> None: ...
def code_scores(coefficients: Floats, map: Map, levels: Floats, codes: Floats, /) -> None: ...
def list_cells(
    counts: npt.NDArray[np.uint32],
    sizes: npt.NDArray[np.int64],
    codes: Sequence[Codes],
    total: Floats,
    hits: Floats,
    /,
) -> None: ...
def pack_seen(
    codes: Sequence[Codes],
    seen: Sequence[npt.NDArray[np.bool_]],
    members: npt.NDArray[np.int64],
    out: Codes,
    /,
) -> None: ...
def level_map(
    features: Sequence[Floats],
    given: Sequence[npt.NDArray[np.int64]],
    members: Sequence[Integers],
    starts: Integers,
    columns: Integers,
    weights: Floats,
    /,
) -> int: ...
def level_sums(values: Floats | None, packs: Sequence[Codes], sums: Sequence[Floats], /) -> None: ...
def block_sums(
    values: Floats | None,
    packs: Sequence[Codes],
    map: Map,
    sums: Floats,
    widths: npt.NDArray[np.int64],
    blocks: Floats,
    /,
) -> None: ...
def block_step(
    point: Floats,
    gradient: Floats,
    lower: Floats,
    upper: Floats,
    corner: Floats,
    border: Floats,
    ridge: Floats,
    widths: npt.NDArray[np.int64],
    blocks: Floats,
    steps: Floats,
    changes: Floats,
    d: Floats,
    longest: float,
    /,
) -> None: ...
def dense_newton(
    point: Floats,
    positive: npt.NDArray[np.generic],
    weight: Floats | None,
    columns: Sequence[npt.NDArray[Any]],
    tables: Sequence[Floats],
    gradient: Floats,
    table: Floats | None,
    /,
) -> float: ...
def pair_sums(
    values: Floats | None, packs: Sequence[Codes], map: Map, first: int, own: Floats, out: Floats, room: Floats, /
) -> None: ...
def minimise_in_box(
    H: Floats,
    g: Floats,
    lower: Floats,
    upper: Floats,
    d: Floats,
    state: npt.NDArray[np.int8],
    factor: Floats,
    flat: float,
    /,
) -> bool: ...
def solve_factored(factor: Floats, x: Floats, /) -> None: ...
def newton(
    point: Floats,
    packs: Sequence[Codes],
    map: Map,
    positive: npt.NDArray[np.generic],
    weight: Floats | None,
    columns: Sequence[npt.NDArray[Any]],
    tables: Sequence[Floats],
    ridge: Floats,
    lower: Floats,
    upper: Floats,
    total: float,
    tolerance: float,
    settled: float,
    gradient: Floats,
    history: Floats,
    flat: float,
    is_far: bool,
    /,
) -> tuple[int, float]: ...
def pack(codes: Sequence[Codes], places: Sequence[Codes], out: Codes, /) -> None: ...
def shuffle(cards: npt.NDArray[np.uint8 | np.uint16], key: npt.NDArray[np.uint32], used: int, /) -> int: ...
def sample(
    packs: Sequence[Codes],
    floors: Sequence[Floats],
    share: float,
    first: int,
    rows: npt.NDArray[np.int64],
    weights: Floats,
    /,
) -> int: ...
def code_numbers(x: npt.NDArray[Any], cuts: Floats, levels: Floats, out: Codes, /) -> None: ...
def add_scores(
    rows: int,
    scores: Sequence[Floats],
    targets: npt.NDArray[np.int64],
    columns: Sequence[npt.NDArray[Any]],
    cuts: Sequence[Floats],
    tables: Sequence[Floats],
    /,
) -> None: ...
def tree_cuts(
    columns: Sequence[npt.NDArray[np.float32]],
    bad: npt.NDArray[np.bool_] | npt.NDArray[np.uint8],
    lower: npt.NDArray[np.float32],
    upper: npt.NDArray[np.float32],
    splits: npt.NDArray[np.int64],
    min_rows: int,
    entropy: bool,
    many: int,
    few: int,
    /,
) -> None: ...
def fold_counts(
    codes: Codes,
    outcome: npt.NDArray[np.uint8],
    ends: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    /,
) -> None: ...
def fold_cuts(
    x: npt.NDArray[np.float32],
    bad: npt.NDArray[np.bool_] | npt.NDArray[np.uint8],
    fold: npt.NDArray[np.uint8 | np.uint16],
    lower: npt.NDArray[np.float32],
    upper: npt.NDArray[np.float32],
    found: npt.NDArray[np.int64],
    min_rows: int,
    entropy: bool,
    many: int,
    few: int,
    /,
) -> None: ...
def fold_order(
    fold: npt.NDArray[np.uint8 | np.uint16], order: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], /
) -> None: ...
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
