"""The formulas of shapes and links as expressions."""

from __future__ import annotations

import numpy as np

from plainrisk.export.expression import Abs, All, Cells, Clip, Compare, Either, Exp, Expr, If, Name, Number, Op
from plainrisk.form import Bands, Curve, Line, Linear, Link, Shape
from plainrisk.form.links import LARGEST

__all__ = ["mean_rate", "steepest", "straight"]


def straight(shape: Shape, x: Name) -> Expr:
    """A line or a curve at a number."""
    if isinstance(shape, Line):
        if shape.slope == 0:
            return Number(0.0)
        return Clip(Op("*", Number(shape.slope), Op("-", x, Number(shape.center))), -LARGEST, LARGEST)
    assert isinstance(shape, Curve)
    pieces = []
    for start, coefficients in zip(shape.breaks, shape.coefficients, strict=False):
        value: Expr = Number(coefficients[-1])
        for c in coefficients[-2::-1]:
            value = Op("+", Op("*", value, Op("-", x, Number(start))), Number(c))
        pieces.append(Clip(value, -LARGEST, LARGEST))
    return Cells(x, shape.breaks[1:-1], tuple(pieces), None, open=True)


def mean_rate(link: Link, start: float, score: Name, rise: Name, run: Name) -> Expr:
    """The mean slope of a link from the reference's score to the row's (see `explain.contributions.mean_rate`)."""
    chord = Op("/", rise, run)
    at = np.array([start])
    if isinstance(link, Linear | Bands):
        slope = float(link.derivative(at)[0])
        lines = _lines(link)
        at_start = float(link.line(at)[0][0])  # type: ignore[index]  # every score lies on some line
        rates = tuple(
            _one_line(offset, rate, slope, ends, score, rise, chord) if offset == at_start else chord
            for offset, rate, ends in lines
        )
        return Cells(score, _knots(link), rates, None, open=True) if len(rates) > 1 else rates[0]
    middle = Op("*", Op("+", Number(start), score), Number(0.5))
    small = Exp(Clip(Op("-", Number(0.0), Abs(middle)), -700.0, 700.0))
    above = Op("+", Number(1.0), small)
    slope_there = Op("/", small, Op("*", above, above))
    return If(Compare("<", Abs(run), Number(1e-5)), slope_there, chord)


def _knots(link: Linear | Bands) -> tuple[float, ...]:
    return link.knots[1:-1] if isinstance(link, Bands) else ()


def _lines(link: Linear | Bands) -> list[tuple[float, float, tuple[float, float]]]:
    """Offset, slope and clipping ends of every straight piece."""
    if isinstance(link, Linear):
        return [(link.offset, link.slope, (link.low, link.high))]
    ends = zip(link.knots, link.values, link.rates, strict=False)
    return [(float(np.float64(value) - rate * np.float64(knot)), rate, (0.0, 1.0)) for knot, value, rate in ends]


def _one_line(
    offset: float, rate: float, slope: float, ends: tuple[float, float], score: Name, rise: Name, chord: Expr
) -> Expr:
    """The mean slope where both scores lie on one line; `slope` is the link's at the reference, 0 if it is clipped."""
    line = Op("+", Number(offset), Op("*", Number(rate), score))
    clipped = Either((Compare("<", line, Number(ends[0])), Compare(">", line, Number(ends[1]))))
    if slope == rate:
        return If(clipped, chord, Number(rate))
    if slope == 0:
        return If(All((clipped, Compare("==", rise, Number(0.0)))), Number(0.0), chord)
    return chord


def steepest(link: Link) -> float:
    """Return the largest slope of a link."""
    return max(link.rates) if isinstance(link, Bands) else link.slope if isinstance(link, Linear) else 0.25
