"""What plainrisk must show, and whether the results show it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.adapters import METHODS
from benchmarks.results import Results

NOISE = 1.05  # "no slower" allows this much
SCORE = "1M x 30"
XGB_FIT = {"S1": 1.2, "S2": 3.0, "S3": 1.2, "S4": 3.0}
XGB_DIRECT = {"S1": 2.0, "S2": 5.0, "S3": 2.0, "S4": 5.0}
SYNTHETIC = ("S1", "S2", "S3", "S4")


@dataclass(frozen=True)
class Finding:
    """One claim, what it asks for, and what was measured.

    Attributes
    ----------
    claim : in words
    sense : whether the value must be at least or at most the target
    target, value : numbers; the value is None if it was not measured
    bound : the value is a lower bound, since a rival was stopped at its time limit
    unit : behind the numbers
    """

    claim: str
    sense: Literal["at least", "at most"]
    target: float
    value: float | None
    bound: bool = False
    unit: str = "x"

    @property
    def verdict(self) -> str:
        """Met, not met, or why that can not be told."""
        if self.value is None:
            return "not measured"
        if self.sense == "at most":
            return "met" if self.value <= self.target else "not met"
        if self.value >= self.target:
            return "met"
        return "open: the rival was stopped" if self.bound else "not met"

    @property
    def measured(self) -> str:
        """The value in words."""
        if self.value is None:
            return ""
        return f"{'> ' if self.bound else ''}{self.value:.3g}{self.unit}"


def findings(results: Results) -> list[Finding]:
    """Return all claims with their measurements."""
    makers = (_fit, _ahead_of_all, _optimum, _memory, _direct, _subscales, _folds, _scoring, _large, _imports)
    return [finding for maker in makers for finding in maker(results)]


def table(found: list[Finding]) -> str:
    """Return claims as Markdown."""
    lines = ["| claim | target | measured | |", "| --- | --- | --- | --- |"]
    lines += [f"| {f.claim} | {f.sense} {f.target:g}{f.unit} | {f.measured} | {f.verdict} |" for f in found]
    met = sum(f.verdict == "met" for f in found)
    return "\n".join([*lines, "", f"{met} of {len(found)} are met."])


def _faster(results: Results, ours: str, rival: str, shape: str, target: float) -> Finding:
    own = results.value("fit", shape, ours)
    theirs, bound = results.at_least("fit", shape, rival)
    ratio = theirs / own if own and theirs else None
    return Finding(f"{ours} fits {shape} faster than {rival}", "at least", target, ratio, bound)


def _fit(results: Results) -> Iterator[Finding]:
    # From the same matrix: a frame with words would have to be made into one first, which no clock here counts.
    for shape, target in XGB_FIT.items():
        yield _faster(results, "ARM1 (matrix)", "XGBoost", shape, target)
    for shape in SYNTHETIC[1:]:
        yield _faster(results, "ARM1", "glum", shape, 10.0)
    yield _faster(results, "ARM1", "SLSQP", "S1", 10.0)
    yield _faster(results, "ARM1", "SLSQP", "S2", 100.0)
    for shape in SYNTHETIC:
        yield _faster(results, "ARM1", "EBM", shape, 300.0)
    for shape in SYNTHETIC:
        yield _faster(results, "ARM1", "optbinning", shape, 10.0)


def _rivals(results: Results, shape: str, field: str) -> dict[str, float]:
    """Return a measurement of every rival that was done."""
    values = {m: results.value("fit", shape, m, field) for m, method in METHODS.items() if not method.ours}
    return {m: v for m, v in values.items() if v is not None}


def _ahead_of_all(results: Results) -> Iterator[Finding]:
    for shape in results.shapes():
        own, others = results.value("fit", shape, "ARM1 (matrix)"), _rivals(results, shape, "seconds")
        if own is None or not others:
            continue
        nearest = min(others, key=lambda m: others[m])
        claim = f"ARM1 (matrix) fits {shape} faster than every rival (nearest: {nearest})"
        yield Finding(claim, "at least", 1.0, others[nearest] / own)


def _optimum(results: Results) -> Iterator[Finding]:
    for shape in results.shapes():
        own = results.value("fit", shape, "ARM1", "objective")
        others = [results.value("fit", shape, m, "objective") for m in ("glum", "SLSQP")]
        known = [o for o in others if o is not None]
        if own is not None and known:
            claim = f"ARM1's objective on {shape} above the best of glum and SLSQP"
            yield Finding(claim, "at most", 1e-9, own - min(known), unit="")


def _memory(results: Results) -> Iterator[Finding]:
    for shape in results.shapes():
        own, others = results.value("fit", shape, "ARM1 (matrix)", "peak_mb"), _rivals(results, shape, "peak_mb")
        if own is None or not others:
            continue
        least = min(others, key=lambda m: others[m])
        claim = f"Memory of ARM1 (matrix) on {shape} beyond its data, by the least rival's ({least})"
        yield Finding(claim, "at most", 1.0, own / max(others[least], 1e-9))
        held = _rivals(results, shape, "held_mb")
        whole = {m: held[m] + others[m] for m in others if m in held}
        base = results.value("fit", shape, "ARM1 (matrix)", "held_mb")
        if base is not None and whole:
            least = min(whole, key=lambda m: whole[m])
            claim = f"Whole process of ARM1 (matrix) on {shape}, by the least rival's ({least})"
            yield Finding(claim, "at most", 1.0, (base + own) / whole[least])


def _direct(results: Results) -> Iterator[Finding]:
    for shape, target in XGB_DIRECT.items():
        yield _faster(results, "DirectARM1 (matrix)", "XGBoost", shape, target)


def _subscales(results: Results) -> Iterator[Finding]:
    for method in ("MixARM1", "ARM2"):
        for shape in SYNTHETIC:
            own, base = results.value("fit", shape, method), results.value("fit", shape, "ARM1")
            ratio = own / base if own and base else None
            yield Finding(f"{method} no slower than ARM1 on {shape} (5% noise)", "at most", NOISE, ratio)


def _folds(results: Results) -> Iterator[Finding]:
    for method in ("MixARM1", "DirectARM1"):
        ten, one = results.value("cv", "S2", method), results.value("fit", "S2", method)
        ratio = ten / one if ten and one else None
        yield Finding(f"Ten folds of {method} on S2 as multiples of one fit", "at most", 3.0, ratio)


def _scoring(results: Results) -> Iterator[Finding]:
    def value(method: str, field: str = "seconds") -> Any:
        return results.value("score", SCORE, method, field)

    for ours, how, target in (("ARM1", "compiled", 4.0), ("ARM1 (numpy)", "without a compiler", 12.0)):
        own, once = value(ours), value(ours, "pass_seconds")
        passes = own / once if own and once else None
        yield Finding(f"Scoring 1M x 30 as multiples of one numpy pass, {how}", "at most", target, passes)
    for ours, how in (("ARM1", "row by row"), ("ARM1 (columns)", "stored by columns")):
        for rival, target in (("XGBoost", 4.0), ("EBM", 20.0)):
            own, theirs = value(ours), value(rival)
            ratio = theirs / own if own and theirs else None
            yield Finding(f"Scoring a matrix {how} faster than {rival}", "at least", target, ratio)
    yield Finding("A single applicant from a dict", "at most", 100.0, value("ARM1", "latency_us"), unit=" us")


def _large(results: Results) -> Iterator[Finding]:
    for method in ("ARM1", "DirectARM1"):
        peak = results.value("fit", "S5", method, "peak_mb")
        yield Finding(f"S5 with {method}: memory beyond the data", "at most", 2048.0, peak, unit=" MB")
    ran = [r for r in results.part("parquet") if "whole_mb" in r]
    for row in ran or [{"method": "DirectARM1", "at": "50000000 rows"}]:
        claim = f"{row['method']} from Parquet files, {row['at']}: memory in all"
        yield Finding(claim, "at most", 2048.0, row.get("whole_mb"), unit=" MB")


def _imports(results: Results) -> Iterator[Finding]:
    own, other = (results.value("import", "import", m) for m in ("plainrisk", "sklearn"))
    ratio = own / other if own and other else None
    yield Finding("Import of plainrisk as a multiple of scikit-learn's", "at most", 2.0, ratio)
