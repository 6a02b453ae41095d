"""Reliability diagrams as small SVG pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from plainrisk._types import Floats
from plainrisk.form import ALPHA_STAR
from plainrisk.measure.metrics import Reliability, reliability
from plainrisk_lab.paper.alpha import squared_error
from plainrisk_lab.study import Plan, Store

__all__ = ["COLORS", "alpha_svg", "legend", "pooled", "reliability_svg"]

# Told apart by readers who do not see red and green as different.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
_SIDE, _LEFT, _TOP, _BOTTOM = 190.0, 46.0, 26.0, 34.0


def pooled(store: Store, plan: Plan, fingerprint: str, classifier: str) -> Reliability | None:
    """Return the reliability of all held-out risks of a classifier, or None if a fold is missing."""
    spec = next((c for c in plan.lineup if c.name == classifier), None)
    if spec is None:
        return None
    cells = store.cells(fingerprint, spec.key, plan.cv, plan.seed, risks=True)
    done = [c for c in cells if c.status == "done" and c.risks is not None]
    if len(done) < plan.cv:
        return None
    fold_of, outcomes = store.fold_of(fingerprint, plan.cv, plan.seed), store.outcomes(fingerprint)
    risk: Floats = np.empty(len(outcomes))
    for cell in done:
        risk[fold_of == cell.key.fold] = cell.risks
    return reliability(outcomes, risk)


def reliability_svg(title: str, curves: Mapping[str, Reliability]) -> str:
    """Draw predicted against observed risk, a line per classifier; the area of a dot is its share of the rows."""
    parts = [*_frame(title)]
    for color, (name, curve) in zip(COLORS, curves.items(), strict=False):
        points = [(_x(p), _y(o)) for p, o in zip(curve.predicted, curve.observed, strict=True)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="1.2" opacity="0.75"/>')
        for (x, y), weight in zip(points, curve.weight / curve.weight.sum(), strict=True):
            radius = 1.2 + 7.0 * float(np.sqrt(weight))
            about = f"<title>{escape(name)}: {weight:.1%} of the rows</title>"
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{color}" opacity="0.7">{about}</circle>'
            )
    width, height = _LEFT + _SIDE + 12, _TOP + _SIDE + _BOTTOM
    about = quoteattr(f"Reliability on {title}: " + ", ".join(curves))
    return (
        f'<svg width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label={about} font-family="system-ui, sans-serif" font-size="11" fill="#1b1f24">'
        + "".join(parts)
        + "</svg>"
    )


def alpha_svg() -> str:
    """Draw the squared error of the clipped line by alpha, and the best line beside the sigmoid."""
    alphas, scores = np.linspace(0.25, 10.0, 118), np.linspace(-7.0, 7.0, 141)
    errors = np.array([squared_error(alpha) for alpha in alphas])
    top = float(errors.max())
    left = _curve(alphas / 10.0, errors / top, 0.0, COLORS[0])
    least = squared_error(ALPHA_STAR)
    x, y = _x(ALPHA_STAR / 10.0), _y(least / top)
    dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{COLORS[1]}"/>'
    move = _LEFT + _SIDE + 40.0
    sigmoid = _curve((scores + 7) / 14, 1 / (1 + np.exp(-scores)), move, COLORS[0])
    line = _curve(
        (scores + 7) / 14, np.clip(0.5 + scores / (2 * ALPHA_STAR), 0, 1), move, COLORS[1], ' stroke-dasharray="5 3"'
    )
    title, axis = f"least {least:.4f} at α* = {ALPHA_STAR:.4f}", f"α, 0 to 10; squared error, 0 to {top:.2f}"
    frames = [_bare_frame(0.0, title, axis)]
    frames.append(_bare_frame(move, "sigmoid and clipped line", "score, −7 to 7; probability, 0 to 1"))
    width, height = 2 * move, _TOP + _SIDE + _BOTTOM
    return (
        f'<svg width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        'aria-label="Squared error by alpha, and the best clipped line" font-family="system-ui, sans-serif" '
        f'font-size="11" fill="#1b1f24">{"".join([*frames, left, dot, sigmoid, line])}</svg>'
    )


def _curve(x: Floats, y: Floats, move: float, color: str, more: str = "") -> str:
    points = " ".join(f"{_x(a) + move:.1f},{_y(b):.1f}" for a, b in zip(x, y, strict=True))
    return f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.6"{more}/>'


def _bare_frame(move: float, title: str, axis: str) -> str:
    left, bottom, middle = _x(0) + move, _y(0), _x(0.5) + move
    return (
        f'<text x="{left:.0f}" y="16" font-weight="600">{escape(title)}</text>'
        f'<rect x="{left:.0f}" y="{_y(1):.0f}" width="{_SIDE:.0f}" height="{_SIDE:.0f}" fill="none" stroke="#d8dee4"/>'
        f'<text x="{middle:.0f}" y="{bottom + 20:.0f}" text-anchor="middle" fill="#57606a">{escape(axis)}</text>'
    )


def legend(names: Sequence[str]) -> str:
    """Draw which color is which classifier."""
    parts, x = [], 4.0
    for color, name in zip(COLORS, names, strict=False):
        parts.append(f'<circle cx="{x + 5:.0f}" cy="12" r="5" fill="{color}"/>')
        parts.append(f'<text x="{x + 15:.0f}" y="16">{escape(name)}</text>')
        x += 40.0 + 7.6 * len(name)
    return (
        f'<svg width="{x:.0f}" height="24" viewBox="0 0 {x:.0f} 24" role="img" aria-label="legend" '
        f'font-family="system-ui, sans-serif" font-size="13" fill="#1b1f24">{"".join(parts)}</svg>'
    )


def _x(value: float) -> float:
    return _LEFT + _SIDE * float(value)


def _y(value: float) -> float:
    return _TOP + _SIDE * (1.0 - float(value))


def _frame(title: str) -> list[str]:
    left, right, top, bottom = _x(0), _x(1), _y(1), _y(0)
    parts = [
        f'<text x="{left:.0f}" y="16" font-weight="600" font-size="13">{escape(title)}</text>',
        f'<rect x="{left:.0f}" y="{top:.0f}" width="{_SIDE:.0f}" height="{_SIDE:.0f}" fill="#fff" stroke="#d8dee4"/>',
        f'<path d="M{left:.0f} {bottom:.0f} L{right:.0f} {top:.0f}" stroke="#8a94a0" stroke-dasharray="4 3"/>',
    ]
    for tick in (0.0, 0.5, 1.0):
        label = f"{tick:g}"
        parts.append(f'<text x="{_x(tick):.0f}" y="{bottom + 14:.0f}" text-anchor="middle">{label}</text>')
        parts.append(f'<text x="{left - 5:.0f}" y="{_y(tick) + 4:.0f}" text-anchor="end">{label}</text>')
    middle = _x(0.5)
    parts.append(
        f'<text x="{middle:.0f}" y="{bottom + 28:.0f}" text-anchor="middle" fill="#57606a">predicted risk</text>'
    )
    parts.append(
        f'<text transform="translate(11 {_y(0.5):.0f}) rotate(-90)" text-anchor="middle" fill="#57606a">observed</text>'
    )
    return parts
