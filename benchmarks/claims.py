"""What plainrisk must show, and whether the results show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.methods import METHODS
from benchmarks.plan import AS_THEY_COME, PAIRED, SHAPES, SIZES, STREAMED, STREAMS, WIDE

OURS = ("ARM1", "BandARM1", "DirectARM1")


@dataclass(frozen=True)
class Results:
    """Finished tasks, each a dict of its fields and measurements."""

    rows: Sequence[dict[str, Any]]

    def of(self, part: str, shape: str, method: str) -> dict[str, Any]:
        """Return one result, or an empty one."""
        wanted = (part, shape, method)
        return next((r for r in self.rows if (r["part"], r["shape"], r["method"]) == wanted), {})

    @property
    def shapes(self) -> list[str]:
        """The shapes that were fitted."""
        return [shape for shape in SHAPES if any(row["shape"] == shape for row in self.rows)]

    def value(self, part: str, shape: str, method: str, field: str = "seconds") -> float | None:
        return self.of(part, shape, method).get(field)


@dataclass(frozen=True)
class Claim:
    """A claim, its target, and what was measured.

    Attributes
    ----------
    text : the claim in words
    sense, target : the value must be at least or at most the target
    value : None if it was not measured
    bound : whether the value is a lower bound, since a method was stopped at its time limit
    unit : behind the numbers
    """

    text: str
    sense: Literal["at least", "at most"]
    target: float
    value: float | None
    bound: bool = False
    unit: str = "x"

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "not measured"
        if self.sense == "at most":
            return "met" if self.value <= self.target else "NOT MET"
        return "met" if self.value >= self.target else "open: the rival was stopped" if self.bound else "NOT MET"

    @property
    def measured(self) -> str:
        return "" if self.value is None else f"{'> ' if self.bound else ''}{self.value:.3g}{self.unit}"


def claims(results: Results) -> list[Claim]:
    """Return the claims about the parts and shapes that were run, with their measurements."""
    makers = {
        "fit": (_smooth, _pairs, _ahead, _bands, _memory),
        "score": (_scoring,),
        "wide": (_wide,),
        "growth": (_growth,),
        "pairs": (_pairs_of_own,),
        "commands": (_commands,),
        "stream": (_stream,),
        "parquet": (_stream,),
    }
    run = {row["part"] for row in results.rows}
    wanted = dict.fromkeys(maker for part, each in makers.items() if part in run for maker in each)
    return [claim for maker in wanted for claim in maker(results)]


def _ahead(results: Results) -> Iterator[Claim]:
    # Those that `_smooth` is about are not among them.
    rivals = [n for n, method in METHODS.items() if not method.ours and "EBM" not in n and "as it comes" not in n]
    for shape in results.shapes:
        for ours in OURS:
            own, found = results.value("fit", shape, ours), {}
            for rival in rivals:
                row = results.of("fit", shape, rival)
                if "seconds" in row or "over" in row:
                    found[rival] = (row.get("seconds", row.get("over")), "seconds" not in row)
            missing = sorted(set(rivals) - set(found))
            nearest = min(found, key=lambda name: found[name][0], default=None)
            text = f"{ours} fits {shape} faster than every rival (nearest: {nearest or 'none measured'}"
            text += f"; without {', '.join(missing)})" if nearest and missing else ")"
            seconds, bound = found[nearest] if nearest else (None, False)
            yield Claim(text, "at least", 1.0, seconds / own if own and seconds else None, bound)


def _smooth(results: Results) -> Iterator[Claim]:
    targets = {"S1": 10.0, "S2": 50.0, "S3": 10.0, "S4": 50.0}
    wanted = [(shape, "SmoothARM1", "EBM", target) for shape, target in targets.items()]
    for rival in AS_THEY_COME:
        wanted += [(shape, "SmoothARM1", rival, 0.5 if shape == "S6" else 1.0) for shape in SHAPES]
    for shape, ours, other, target in (*wanted, ("S1", "SmoothARM1 + pairs", "EBM as it comes", 10.0)):
        own, rival = results.of("fit", shape, ours), results.of("fit", shape, other)
        if not rival:
            continue
        seconds = rival.get("seconds", rival.get("over"))
        ratio = seconds / own["seconds"] if "seconds" in own and seconds else None
        yield Claim(f"{ours} fits {shape} faster than {other}", "at least", target, ratio, "seconds" not in rival)
        if "log_loss" in own and "log_loss" in rival:
            worse = own["log_loss"] - rival["log_loss"]
            yield Claim(f"{ours} on {shape}: held-out log loss above that of {other}", "at most", 0.0, worse, unit="")


def _pairs(results: Results) -> Iterator[Claim]:
    alone, pairs = results.value("fit", "S1", "SmoothARM1"), results.value("fit", "S1", "SmoothARM1 + pairs")
    if pairs:
        yield Claim("Pairs on S1 as a multiple of the fit without", "at most", 5.0, pairs / alone if alone else None)


def _bands(results: Results) -> Iterator[Claim]:
    for shape in results.shapes:
        one, bands = results.value("fit", shape, "ARM1"), results.value("fit", shape, "BandARM1")
        ratio = bands / one if one and bands else None
        yield Claim(f"BandARM1 on {shape} as a multiple of ARM1", "at most", 1.5, ratio)


def _scoring(results: Results) -> Iterator[Claim]:
    rival = results.value("score", "score", "XGBoost")
    for ours in ("ARM1", "BandARM1"):
        own = results.value("score", "score", ours)
        ratio = rival / own if own and rival else None
        yield Claim(f"{ours} scores 1,000,000 x 30 faster than XGBoost", "at least", 4.0, ratio)
    for ours in ("ARM1", "BandARM1"):
        value = results.value("score", "score", ours, "latency_us")
        yield Claim(f"{ours} scores one applicant from a dict", "at most", 50.0, value, unit=" us")


def _memory(results: Results) -> Iterator[Claim]:
    # With fewer rows the few megabytes that any computation takes are more than the codes.
    for ours in OURS if "S4" in results.shapes else ():
        row = results.of("fit", "S4", ours)
        ratio = row["peak_mb"] / row["coded_mb"] if "peak_mb" in row else None
        yield Claim(f"{ours} on S4: memory beyond the rows, as a multiple of the coded rows", "at most", 3.0, ratio)


def _wide(results: Results) -> Iterator[Claim]:
    for ours in WIDE:
        row = results.of("wide", "wide", ours)
        seconds = row.get("seconds", row.get("over"))
        yield Claim(f"{ours} fits 3,000 features x 300 rows", "at most", 10.0, seconds, "over" in row, " s")
        delay = row.get("interrupt_seconds")
        yield Claim(f"{ours} answers an interrupt while it fits these", "at most", 1.0, delay, unit=" s")


def _growth(results: Results) -> Iterator[Claim]:
    each = (("rows", "ten times the rows", 10.0), ("features", "four times the features", 16.0))
    for few, many, most in each:
        less, more = (results.value("growth", shape, "SmoothARM1") for shape in (few, many))
        text = f"SmoothARM1: a fit of {many} as a multiple of one of {size_words(few)}"
        yield Claim(text, "at most", most, more / less if less and more else None)


def _pairs_of_own(results: Results) -> Iterator[Claim]:
    for data in PAIRED:
        row = results.of("pairs", data, "SmoothARM1 + pairs")
        if "error" in row and row["error"].startswith("no data"):
            continue
        ratio = row["seconds"] / row["alone"] if "seconds" in row else None
        yield Claim(f"Pairs on {data} as a multiple of the fit without", "at most", 5.0, ratio)


def _commands(results: Results) -> Iterator[Claim]:
    row = results.of("commands", "commands", "SmoothARM1")
    for name, command in (("version", "--version"), ("certify", "certify"), ("explain", "explain --row")):
        text = f"plainrisk {command}: CPU time, start and imports included"
        yield Claim(text, "at most", 0.5, row.get(f"{name}_cpu"), unit=" s")
    yield Claim("Reasons of one applicant from a dict", "at most", 300.0, row.get("reasons_us"), unit=" us")


def _stream(results: Results) -> Iterator[Claim]:
    for part in STREAMS:
        if any(row["part"] == part for row in results.rows):
            for ours in STREAMED:
                value = results.value(part, part, ours, "whole_mb")
                text = f"{ours} from Parquet files, {size_words(part)}: memory in all"
                yield Claim(text, "at most", 2048.0, value, unit=" MB")


def size_words(shape: str) -> str:
    """Return a size in words."""
    rows, features = SIZES[shape]
    return f"{rows:,} rows x {features}"
