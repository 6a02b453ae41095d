"""What is run: which method on which rows, in which order, and what is left out by rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.adapters import METHODS

SHAPES = {
    "S1": (10_000, 23),
    "S2": (150_000, 10),
    "S3": (100_000, 90),
    "S4": (2_000_000, 30),
    "S5": (10_000_000, 30),
}
REAL = {"HELOC": (10_459, 23), "Taiwan": (30_000, 23), "GMSC": (150_000, 10)}
PARTS = ("import", "fit", "cv", "score", "growth", "parquet")
OWN = tuple(name for name, method in METHODS.items() if method.ours)
# Methods that are run on the largest shape and in the sweeps.
LARGE = ("ARM1", "DirectARM1", "MixARM1", "ARM2", "ARM1 (matrix)", "XGBoost", "LightGBM", "HistGradientBoosting")
SWEPT = ("ARM1", "DirectARM1", "MixARM1", "XGBoost", "LightGBM", "HistGradientBoosting")
SCORED = (
    "ARM1",
    "ARM1 (columns)",
    "ARM1 (numpy)",
    "DirectARM1",
    "MixARM1",
    "ARM2",
    "BandARM1",
    "XGBoost",
    "LightGBM",
    "HistGradientBoosting",
    "EBM",
)
CV_SHAPES = ("S1", "S2", "HELOC")
ONLY_S1 = ("pyGAM",)
ONLY_SCORED = ("ARM1 (columns)",)
DENSE = ("glum", "scikit-learn LR", "SLSQP", "SLSQP (default)")
DENSE_LIMIT = 4.0  # GB
COLUMNS_PER_FEATURE = 5.2  # of the indicator matrix, as measured on the synthetic rows
CV_LIMIT = 15.0  # seconds of one fit, beyond which ten are not tried

SWEEP_ROWS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
SWEEP_FEATURES = (5, 10, 20, 50, 100, 200)
SWEEP_BINS = (3, 5, 10, 20, 40, 60)
SWEEP_SUBSCALES = (1, 2, 3, 4, 6, 8, 12, 24)
SCORE_ROWS, TRAIN_ROWS, EXPLAIN_ROWS = 1_000_000, 20_000, 100_000
PARQUET_ROWS = 50_000_000
IMPORTS = ("sklearn", "plainrisk", "xgboost", "lightgbm", "interpret.glassbox", "optbinning", "glum", "pygam")


@dataclass(frozen=True)
class Task:
    """One row of the results: a part, a place in it, and a method.

    Attributes
    ----------
    part : one of `PARTS`
    at : the shape, or the point of a sweep
    method : a name in METHODS, or a module for "import"
    data : the name of the rows in the cache
    limits : fields of `Data`: rows, features, subscales, max_bins, as_matrix
    """

    part: str
    at: str
    method: str
    data: str = ""
    limits: tuple[tuple[str, Any], ...] = ()

    @property
    def key(self) -> str:
        """What identifies the task among results."""
        return "|".join([self.part, self.at, self.method, self.data, repr(self.limits)])

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {**asdict(self), "limits": dict(self.limits)}


@dataclass(frozen=True)
class Wanted:
    """What the command line asks for."""

    shapes: Sequence[str]
    methods: Sequence[str]
    parts: Sequence[str]
    scale: float = 1.0
    most_rows: int = 10_000_000

    def rows(self, rows: int) -> int:
        """Return a number of rows, scaled down for trials."""
        return max(200, round(rows * self.scale))


def size_of(shape: str, wanted: Wanted) -> tuple[int, int]:
    """Return rows and features of a shape."""
    if shape in REAL:
        return REAL[shape]
    rows, features = SHAPES[shape]
    return wanted.rows(rows), features


def data_name(shape: str, wanted: Wanted) -> str:
    """Return the name of a shape's rows in the cache."""
    rows, features = size_of(shape, wanted)
    return shape.lower() if shape in REAL else f"credit-{rows}x{features}"


def by_size(shapes: Sequence[str], wanted: Wanted) -> list[str]:
    """Return shapes from small to large, so that a time-out speaks for those that follow."""
    return sorted(shapes, key=lambda s: size_of(s, wanted)[0] * size_of(s, wanted)[1])


def tasks(wanted: Wanted) -> Iterator[Task]:
    """Yield all that is to be run, in order."""
    makers = {
        "import": _imports,
        "fit": _fits,
        "cv": _cross_validations,
        "score": _scores,
        "growth": _sweeps,
        "parquet": _parquet,
    }
    for part in PARTS:
        if part in wanted.parts:
            yield from makers[part](wanted)


def _imports(wanted: Wanted) -> Iterator[Task]:
    for module in IMPORTS:
        yield Task("import", "import", module)


def _fits(wanted: Wanted) -> Iterator[Task]:
    for shape in by_size(wanted.shapes, wanted):
        for method in wanted.methods:
            if method in ONLY_SCORED or (shape == "S5" and method not in LARGE):
                continue
            if shape != "S1" and method in ONLY_S1:
                continue
            yield Task("fit", shape, method, data_name(shape, wanted))


def _cross_validations(wanted: Wanted) -> Iterator[Task]:
    for shape in by_size([s for s in wanted.shapes if s in CV_SHAPES], wanted):
        for method in wanted.methods:
            if method in ONLY_S1 or (method.endswith(")") and METHODS[method].ours):
                continue
            yield Task("cv", shape, method, data_name(shape, wanted))


def _scores(wanted: Wanted) -> Iterator[Task]:
    name = f"credit-{wanted.rows(SCORE_ROWS)}x30"
    for method in wanted.methods:
        if method in SCORED:
            yield Task("score", "1M x 30", method, name, (("as_matrix", True),))


def _sweeps(wanted: Wanted) -> Iterator[Task]:
    most = min(wanted.rows(SWEEP_ROWS[-1]), wanted.most_rows)
    swept = [m for m in wanted.methods if m in SWEPT]
    for rows in sorted({wanted.rows(r) for r in SWEEP_ROWS}):
        for method in swept if rows <= most else ():
            yield Task("growth", f"rows={rows}", method, f"credit-{most}x30", (("rows", rows),))
    wide = f"credit-{wanted.rows(100_000)}x200"
    for features in SWEEP_FEATURES:
        for method in swept:
            yield Task("growth", f"features={features}", method, wide, (("features", features),))
    for bins in SWEEP_BINS:
        for method in [m for m in ("ARM1", "DirectARM1", "MixARM1") if m in swept]:
            yield Task("growth", f"bins={bins}", method, wide, (("features", 30), ("max_bins", bins)))
    for parts in SWEEP_SUBSCALES:
        for method in [m for m in ("MixARM1", "ARM2") if m in wanted.methods]:
            yield Task("growth", f"subscales={parts}", method, wide, (("features", 24), ("subscales", parts)))


def _parquet(wanted: Wanted) -> Iterator[Task]:
    for method in [m for m in ("DirectARM1", "ARM1") if m in wanted.methods]:
        yield Task("parquet", f"{wanted.rows(PARQUET_ROWS)} rows", method)


def reason_not_to(task: Task, wanted: Wanted, done: Mapping[str, dict[str, Any]]) -> str | None:
    """Return why a task is left out, or None: the rules, each of which is told in its row."""
    if task.part == "fit":
        return _too_dense(task, wanted) or _too_slow_before(task, wanted, done)
    if task.part == "growth":
        return _too_slow_before(task, wanted, done)
    return _ten_too_slow(task, done) if task.part == "cv" else None


def measured_already(task: Task, done: Mapping[str, dict[str, Any]]) -> dict[str, Any] | None:
    """Return the fit of a shape that is also the last point of the sweep over rows, so that it is not run twice."""
    rows = dict(task.limits).get("rows")
    if task.part != "growth" or task.data != f"credit-{rows}x30":
        return None
    for row in done.values():
        if (row["part"], row["data"], row["method"]) == ("fit", task.data, task.method) and "seconds" in row:
            return {"seconds": row["seconds"], "peak_mb": row["peak_mb"], "same_as": row["at"]}
    return None


def _too_dense(task: Task, wanted: Wanted) -> str | None:
    if task.method not in DENSE:
        return None
    rows, features = size_of(task.at, wanted)
    need = rows * features * COLUMNS_PER_FEATURE * 8 / 2**30
    # SLSQP is handed a second copy of the matrix, with a column of ones.
    need *= 2 if task.method.startswith("SLSQP") else 1
    return f"not run: needs {need:.1f} GB of indicators" if need > DENSE_LIMIT else None


def _too_slow_before(task: Task, wanted: Wanted, done: Mapping[str, dict[str, Any]]) -> str | None:
    """A method that was not done in time on fewer values is not tried on more."""
    for row in done.values():
        if (row["part"], row["method"]) != (task.part, task.method) or not row.get("over"):
            continue
        comparable = task.part == "fit" or row["at"].partition("=")[0] == task.at.partition("=")[0]
        if comparable and _values(row["at"], wanted) < _values(task.at, wanted):
            return f"not run: {row['at']} already took > {row['over']:.0f} s"
    return None


def _values(at: str, wanted: Wanted) -> float:
    """How large a shape or a point of a sweep is."""
    if "=" in at:
        return float(at.partition("=")[2])
    rows, features = size_of(at, wanted)
    return float(rows * features)


def _ten_too_slow(task: Task, done: Mapping[str, dict[str, Any]]) -> str | None:
    for row in done.values():
        if (row["part"], row["at"], row["method"]) == ("fit", task.at, task.method):
            if row.get("error"):
                return f"not run: one fit: {row['error']}"
            if row.get("seconds", 0.0) > CV_LIMIT:
                return f"not run: one fit took {row['seconds']:.0f} s"
    return None
