"""Check from the risk form alone that a model keeps its promises.

Monotone is proved, not sampled. The risk is built from shapes by adding, by links that rise, and by pools with
nonnegative weights; each of these keeps an order (in floating point too, since rounding never swaps two numbers).
So the risk never moves the wrong way in a feature if every shape of that feature is ordered and every weight on the
way is nonnegative: a finite check over levels that covers all combinations of the other features.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from plainrisk.form import Alone, Curve, Layer, Line, Mixture, Part, RiskForm, Shape, Table, TreePart
from plainrisk.form.trees import LEAF

__all__ = ["Certificate", "Check", "certify"]


@dataclass(frozen=True)
class Check:
    """One promise: what it is, whether it holds, and the evidence."""

    name: str
    holds: bool
    detail: str


@dataclass(frozen=True)
class Certificate:
    """All promises of a model, checked.

    Attributes
    ----------
    checks : the promises; a model is valid if all hold
    notes : facts worth knowing that break no promise
    """

    checks: tuple[Check, ...]
    notes: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Whether every promise holds."""
        return all(check.holds for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain data."""
        return {"valid": self.valid, **asdict(self)}

    def __str__(self) -> str:
        lines = [f"{'holds ' if c.holds else 'BROKEN'}  {c.name}: {c.detail}" for c in self.checks]
        return "\n".join([*lines, *(f"note    {n}" for n in self.notes)])


def certify(form: RiskForm, *, thin: float = 30.0) -> Certificate:
    """Check a risk form.

    Parameters
    ----------
    thin : levels with less training weight than this are listed as notes
    """
    monotone = [_monotone(form, name) for name, f in form.schema.features.items() if f.sign != 0]
    return Certificate(
        checks=(*monotone, _inside(form), _weights(form), _additive(form)),
        notes=tuple(_level_notes(form, thin)),
    )


def _monotone(form: RiskForm, name: str) -> Check:
    sign = form.schema.features[name].sign
    word = "increasing" if sign > 0 else "decreasing"
    users = [p for p in form.parts if name in p.features]
    weights = dict(zip((p.name for p in form.parts), _pool_weights(form), strict=True))
    for part in users:
        fault = _tree_disorder(part, name, sign) if isinstance(part, TreePart) else _disorder(part.shapes[name], sign)
        if fault is not None:
            return Check(f"monotone in {name}", False, f"{fault} in part {part.name!r}, against {word}")
        if weights[part.name] < 0:
            return Check(f"monotone in {name}", False, f"part {part.name!r} has the weight {weights[part.name]:g}")
    steps = sum(_n_steps(part, name) for part in users)
    return Check(f"monotone in {name}", True, f"{word}, all {steps} steps, whatever the other features are")


def _n_steps(part: Part | TreePart, name: str) -> int:
    if isinstance(part, TreePart):
        return sum(j != LEAF and part.inputs[j].feature == name for tree in part.trees for j in tree.inputs)
    shape = part.shapes[name]
    return shape.levels.n_ordered - 1 if isinstance(shape, Table) else 1


def _disorder(shape: Shape, sign: int) -> str | None:
    """Say where a shape moves the wrong way, or None."""
    if isinstance(shape, Line):
        return None if sign * shape.slope >= 0 else f"the slope is {shape.slope:g}"
    if isinstance(shape, Curve):
        return _curve_disorder(shape, sign)
    steps = sign * np.diff(np.asarray(shape.scores)[: shape.levels.n_ordered])
    if (steps >= 0).all():
        return None
    j = int(np.argmin(steps))
    labels = shape.levels.labels
    return f"the score moves by {sign * steps[j]:+.3g} from {labels[j]!r} to {labels[j + 1]!r}"


def _curve_disorder(shape: Curve, sign: int) -> str | None:
    """Look for a wrong slope at the ends and at the turning points of the slope of every piece, and for jumps."""
    last = len(shape.coefficients) - 1
    before = None
    for k, coefficients in enumerate(shape.coefficients):
        curve = np.polynomial.Polynomial(coefficients)
        slope = curve.deriv()
        width = shape.breaks[k + 1] - shape.breaks[k]
        turns = [float(t.real) for t in slope.deriv().roots().astype(complex) if abs(t.imag) < 1e-12]
        inside = [t for t in turns if (t > 0 or k == 0) and (t < width or k == last)]
        # The outer pieces run on. Beyond all turns the slope keeps its sign or changes it once: look past its roots.
        far = 2.0 * float(np.abs(slope.roots()).max(initial=0.0)) + width
        outer = [-far] * (k == 0) + [far] * (k == last)
        wrong = [t for t in (0.0, width, *inside, *outer) if sign * slope(t) < 0]
        if wrong:
            return f"the slope is {slope(wrong[0]):+.3g} at {shape.breaks[k] + wrong[0]:g}"
        # Pieces that meet are computed from different ends, so they meet but for rounding.
        if before is not None and sign * (curve(0.0) - before) < -1e-9 * (1.0 + abs(before)):
            return f"the curve jumps by {curve(0.0) - before:+.3g} at {shape.breaks[k]:g}"
        before = curve(width)
    return None


def _tree_disorder(part: TreePart, name: str, sign: int) -> str | None:
    """Every split on the feature must have all leaves on its upper side on the right side of those below."""
    for number, tree in enumerate(part.trees):
        for node, j in enumerate(tree.inputs):
            if j == LEAF or part.inputs[j].feature != name:
                continue
            if part.inputs[j].category is not None:
                return f"tree {number} reads its categories one by one"
            below, above = tree.leaves_below(tree.left[node]), tree.leaves_below(tree.right[node])
            gap = min(above) - max(below) if sign > 0 else min(below) - max(above)
            if gap < 0:
                return f"tree {number} steps the wrong way at {tree.edges[node]:g}"
    return None


def _pool_weights(form: RiskForm) -> tuple[float, ...]:
    return (1.0,) if isinstance(form.pool, Alone) else form.pool.weights


def _inside(form: RiskForm) -> Check:
    ranges = [link.range for link in form.links]
    low, high = min(r[0] for r in ranges), max(r[1] for r in ranges)
    return Check("risk inside [0, 1]", low >= 0 and high <= 1, "every link ends inside [0, 1], and so does the pool")


def _weights(form: RiskForm) -> Check:
    if isinstance(form.pool, Mixture):
        total, least = sum(form.pool.weights), min(form.pool.weights)
        holds = abs(total - 1) < 1e-9 and least >= 0
        return Check("weights are a distribution", holds, f"{len(form.pool.weights)} weights, sum {total:.12f}")
    if isinstance(form.pool, Layer):
        least = min(form.pool.weights)
        return Check("subscale weights not negative", least >= 0, f"the least of {len(form.pool.weights)} is {least:g}")
    return Check("weights", True, "one part, no pool")


def _additive(form: RiskForm) -> Check:
    if form.speaks_probability:
        return Check(
            "contributions add up",
            True,
            "every link is straight: contributions are pieces of the probability",
        )
    if any(isinstance(part, TreePart) for part in form.parts):
        return Check("contributions add up", True, "by part only: trees are not additive in their features")
    if isinstance(form.pool, Alone):
        return Check("contributions add up", True, "in log odds, since the link is curved")
    unit = "probability" if isinstance(form.pool, Mixture) else "log odds"
    return Check("contributions add up", True, f"by subscale in {unit}, since a link inside is curved")


def _level_notes(form: RiskForm, thin: float) -> list[str]:
    notes = []
    seen: set[str] = set()
    for part in form.parts:
        for name, shape in part.shapes.items() if isinstance(part, Part) else ():
            if name in seen:
                continue
            seen.add(name)
            pairs = list(zip(shape.levels.labels, shape.weights, strict=True))
            few = [f"{label!r} ({weight:g})" for label, weight in pairs if 0 < weight < thin]
            empty = [repr(label) for label, weight in pairs[: shape.levels.n_ordered] if weight == 0]
            if few:
                notes.append(f"{name}: levels with fewer than {thin:g} training rows: {', '.join(few)}")
            if empty:
                notes.append(f"{name}: levels without training rows: {', '.join(empty)}")
    return notes
