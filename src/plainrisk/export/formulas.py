"""The formulas of shapes and links as expressions."""

from __future__ import annotations

import numpy as np

from plainrisk.export.expression import Call, Cells, Clip, Expr, If, Name, Number
from plainrisk.form import Bands, Curve, Line, Linear, Link, Shape
from plainrisk.form.links import LARGEST

__all__ = ["mean_rate", "steepest", "straight"]


def straight(shape: Shape, x: Name) -> Expr:
    """A line or a curve at a number."""
    if isinstance(shape, Line):
        if shape.slope == 0:
            return Number(0.0)
        return Clip(Number(shape.slope) * (x - shape.center), -LARGEST, LARGEST)
    assert isinstance(shape, Curve)
    pieces = []
    for start, coefficients in zip(shape.breaks, shape.coefficients, strict=False):
        value: Expr = Number(coefficients[-1])
        for c in coefficients[-2::-1]:
            value = value * (x - start) + c
        pieces.append(Clip(value, -LARGEST, LARGEST))
    return Cells(x, shape.breaks[1:-1], tuple(pieces), None, open=True)


def mean_rate(link: Link, start: float, score: Name, rise: Name, run: Name) -> Expr:
    """The mean slope of a link from the reference's score to the row's (see `explain.contributions.mean_rate`)."""
    chord = rise / run
    if isinstance(link, Linear | Bands):
        at = np.array([start])
        slope = float(link.derivative(at)[0])
        at_start = float(link.line(at)[0][0])  # type: ignore[index]  # every score lies on some line
        rates = tuple(
            _one_line(offset, rate, slope, ends, score, rise, chord) if offset == at_start else chord
            for offset, rate, ends in _lines(link)
        )
        knots = link.knots[1:-1] if isinstance(link, Bands) else ()
        return Cells(score, knots, rates, None, open=True) if knots else rates[0]
    middle = (Number(start) + score) * 0.5
    small = Call("exp", (Clip(0.0 - Call("abs", (middle,)), -700.0, 700.0),))
    above = Number(1.0) + small
    return If(Call("abs", (run,)) < 1e-5, small / (above * above), chord)


def _lines(link: Linear | Bands) -> list[tuple[float, float, tuple[float, float]]]:
    """Offset, slope and clipping ends of every straight piece."""
    if isinstance(link, Linear):
        return [(link.offset, link.slope, (link.low, link.high))]
    ends = zip(link.knots, link.values, link.rates, strict=False)
    return [(float(np.float64(value) - rate * np.float64(knot)), rate, (0.0, 1.0)) for knot, value, rate in ends]


def _one_line(
    offset: float, rate: float, slope: float, ends: tuple[float, float], score: Name, rise: Name, chord: Expr
) -> Expr:
    """The mean slope if both scores are on one line; `slope` is the link's at the reference, 0 if it is clipped."""
    line = Number(offset) + Number(rate) * score
    clipped = (line < ends[0]) | (line > ends[1])
    if slope == rate:
        return If(clipped, chord, Number(rate))
    if slope == 0:
        return If(clipped & rise.equals(0.0), Number(0.0), chord)
    return chord


def steepest(link: Link) -> float:
    """Return the largest slope of a link."""
    return max(link.rates) if isinstance(link, Bands) else link.slope if isinstance(link, Linear) else 0.25
