"""The certificate: properties of a model, checked from the risk form alone.

Directions are proved, not sampled. The risk is built from shapes by sums, rising links and pools with nonnegative
weights, and each of these keeps an order (in floating point too, since rounding never swaps two numbers). So the risk
never moves the wrong way in a feature if every shape of the feature is ordered and no weight is negative: a finite
check over levels that covers all combinations of the other features.

A feature that stands in pairs is ordered if no step from one of its atoms to the next lowers the sum of its shape and
its pairs, whatever the other features are (`AtomScores.least`).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import numpy as np

from plainrisk.checks import check_parameters
from plainrisk.errors import DataError, ModelFileError
from plainrisk.explain.atoms import Atoms, AtomScores, atoms_of, levels_of, value_frame
from plainrisk.explain.contributions import explain
from plainrisk.explain.options import ROWS
from plainrisk.explain.outside import outside_check, outside_levels
from plainrisk.explain.reasons import is_protected
from plainrisk.explain.reference import pool_weights
from plainrisk.form import (
    Alone,
    Bands,
    Bins,
    Certificate,
    Check,
    Curve,
    Layer,
    Levels,
    Line,
    Mixture,
    ModelFile,
    Part,
    RiskForm,
    Shape,
    Table,
    TreePart,
    form_hash,
)
from plainrisk.form.trees import LEAF
from plainrisk.form.wording import say_levels
from plainrisk.schema import label_of

__all__ = ["Certificate", "Check", "Recheck", "certify", "level_notes", "monotone_checks", "other_order", "recheck"]


@dataclass(frozen=True)
class Recheck:
    """A stored certificate compared with a new one from the form.

    Attributes
    ----------
    stored : in the file; None if it holds none
    fresh : made from the form
    differences : in words; empty if the two agree
    """

    stored: Certificate | None
    fresh: Certificate
    differences: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Whether every property holds and the stored certificate agrees."""
        return self.fresh.valid and not self.differences


def recheck(content: ModelFile, thin: float | None = None) -> Recheck:
    """Certify the form of a model file again, by default with the stored certificate's `thin`, and compare the two."""
    stored = content.certificate
    if thin is None:
        thin = THIN if stored is None else stored.thin
    fresh = certify(content.form, thin=thin)
    if stored is None:
        return Recheck(None, fresh, ())
    return Recheck(stored, fresh, tuple(_differences(stored, fresh)))


THIN = 30.0  # training rows: the certificate lists levels with fewer

# Checks that older model files name differently.
_RENAMED = {"rules outside the order": "empty fields and codes"}


def _differences(stored: Certificate, fresh: Certificate) -> list[str]:
    differences = []
    if stored.form_sha256 != fresh.form_sha256:
        differences.append("the stored certificate is of another form")
    before, now = ({_RENAMED.get(check.name, check.name): check.holds for check in c.checks} for c in (stored, fresh))
    words = {True: "holds", False: "is broken", None: "is not checked"}
    differences += [
        f"{name}: stored it {words[before.get(name)]}, checked now it {words[now.get(name)]}"
        for name in dict.fromkeys((*before, *now))
        if before.get(name) != now.get(name)
    ]
    if stored.outside and stored.outside != fresh.outside:
        differences.append("what empty fields and codes can do differs")
    if stored.thin == fresh.thin and stored.notes != fresh.notes:
        differences.append("the notes on levels differ")
    return differences


def certify(form: RiskForm, *, thin: float = THIN) -> Certificate:
    """Check a risk form; levels with less training weight than `thin` are listed as notes."""
    check_parameters("certify", {"thin": thin}, {"thin": ROWS})
    atoms = atoms_of(form)
    rules = outside_check(form, atoms)
    outside = () if rules is None else (rules,)
    return Certificate(
        checks=(*monotone_checks(form), *outside, *_protected(form), _inside(form), _weights(form), _additive(form)),
        notes=tuple(level_notes(form, thin)),
        form_sha256=_hash(form),
        thin=float(thin),
        outside=tuple(outside_levels(form, atoms)),
    )


def monotone_checks(form: RiskForm) -> list[Check]:
    """Check the direction of every feature that has one."""
    atoms = atoms_of(form)
    return [_monotone(form, atoms, name) for name, f in form.schema.features.items() if f.sign != 0]


def _hash(form: RiskForm) -> str:
    try:
        return form_hash(form)
    except (ModelFileError, msgspec.ValidationError):
        return ""  # a form that no file could hold has no hash, and fails a check below


def _monotone(form: RiskForm, atoms: Mapping[str, Atoms], name: str) -> Check:
    sign = form.schema.features[name].sign
    word = "increasing" if sign > 0 else "decreasing"
    users = [p for p in form.parts if name in p.features]
    other = other_order(form, name)
    if other is not None:
        return Check(f"monotone in {name}", False, other)
    weights = dict(zip((p.name for p in form.parts), pool_weights(form), strict=True))
    for part in users:
        if isinstance(part, TreePart):
            fault = _tree_disorder(part, name, sign)
        else:
            fault = _part_disorder(part, atoms[name], sign)
        if fault is not None:
            return Check(f"monotone in {name}", False, f"{fault} in part {part.name!r}, against {word}")
        if weights[part.name] < 0:
            return Check(f"monotone in {name}", False, f"part {part.name!r} has the weight {weights[part.name]:g}")
    steps = sum(_n_steps(part, atoms[name]) for part in users)
    rounded = any(isinstance(p, Part) and p.pairs and not _each_ordered(p, name, sign) for p in users)
    evidence = f"{word}, all {steps} steps, whatever the other features are"
    return Check(f"monotone in {name}", True, evidence + ", but for the rounding of sums with pairs" * rounded)


def other_order(form: RiskForm, name: str) -> str | None:
    """Return how levels differ from the schema in their order or in their special values; None if they agree."""
    feature = form.schema.features[name]
    special, bounds = set(map(label_of, feature.special_values)), (None, feature.lower_bound)
    place = {label: k for k, label in enumerate(feature.category_labels or ())}
    for levels in levels_of(form, name):
        if isinstance(levels, Bins):
            if levels.lower_bound not in bounds or not special.issuperset(map(label_of, levels.special_values)):
                return "its levels have a special value or a bound that the schema does not have"
            continue
        ordered = levels.categories[: levels.n_ordered]
        places = [sorted(place[c] for c in (label, *levels.groups.get(label, ())) if c in place) for label in ordered]
        if any(b < a for a, b in itertools.pairwise(itertools.chain.from_iterable(places))):
            return "its levels are not in the order of the schema's categories"
    return None


def _n_steps(part: Part | TreePart, atoms: Atoms) -> int:
    name = atoms.feature
    if isinstance(part, TreePart):
        return sum(j != LEAF and part.inputs[j].feature == name for tree in part.trees for j in tree.inputs)
    if any(True for _ in part.pairs_with(name)):
        return len(_ordered_atoms(atoms)) - 1
    shape = part.shapes[name]
    return shape.levels.n_ordered - 1 if isinstance(shape, Table) else 1


def _part_disorder(part: Part, atoms: Atoms, sign: int) -> str | None:
    """Return where a feature's shape and pairs together move the wrong way; None if nowhere."""
    shape, pairs = part.shapes.get(atoms.feature), [(axis, pair) for _, axis, pair in part.pairs_with(atoms.feature)]
    if shape is not None and not (pairs and isinstance(shape, Table)):
        fault = _disorder(shape, sign)
        if fault is not None or not pairs:
            return fault
    # At a step of a pair, a line or a curve moves by an arbitrarily small amount, so it cannot compensate.
    tables: list[Levels] = [*([] if shape is None else [shape.levels]), *(pair.levels[axis] for axis, pair in pairs)]
    if len({lv.lower_bound for lv in (atoms.levels, *tables) if isinstance(lv, Bins)}) > 1:
        return "shapes and pairs differ in the bound below which values are special"
    scores = AtomScores.of(part, atoms, sign)
    for j, k in itertools.pairwise(_ordered_atoms(atoms)):
        step, worst = scores.least(k, j)
        if step < 0:
            others = [(pair.features[1 - axis], pair.levels[1 - axis]) for axis, pair in pairs]
            where = " and ".join(f"{o} is {lv.labels[c]!r}" for (o, lv), c in zip(others, worst, strict=True))
            labels = atoms.levels.labels
            return f"the score moves by {sign * step:+.3g} from {labels[j]!r} to {labels[k]!r} where {where}"
    return None


def _ordered_atoms(atoms: Atoms) -> list[int]:
    """Return the ordered atoms that some value falls into."""
    return [j for j in range(atoms.levels.n_ordered) if atoms.values[j] is not None]


def _each_ordered(part: Part, name: str, sign: int) -> bool:
    """Whether the shape and every pair are ordered separately, so that sums are also ordered in floating point."""
    if name in part.shapes and _disorder(part.shapes[name], sign) is not None:
        return False
    rows = [(np.moveaxis(np.asarray(p.scores), axis, 0), p.levels[axis]) for _, axis, p in part.pairs_with(name)]
    return all((sign * np.diff(table[: levels.n_ordered], axis=0) >= 0).all() for table, levels in rows)


def _disorder(shape: Shape, sign: int) -> str | None:
    """Return where a shape moves the wrong way; None if nowhere."""
    if isinstance(shape, Line):
        return None if sign * shape.slope >= 0 else f"the slope is {shape.slope:g}"
    if isinstance(shape, Curve):
        try:
            with np.errstate(all="ignore"):
                return _curve_disorder(shape, sign)
        except np.linalg.LinAlgError:  # roots that overflow
            return "the coefficients are too far apart to tell where the curve turns"
    steps = sign * np.diff(np.asarray(shape.scores)[: shape.levels.n_ordered])
    if (steps >= 0).all():
        return None
    j = int(np.argmin(steps))
    labels = shape.levels.labels
    return f"the score moves by {sign * steps[j]:+.3g} from {labels[j]!r} to {labels[j + 1]!r}"


def _curve_disorder(shape: Curve, sign: int) -> str | None:
    """Look for a wrong slope where it can be least (at the ends and turning points of every piece), and for jumps."""
    last = len(shape.coefficients) - 1
    before = None
    for k, coefficients in enumerate(shape.coefficients):
        curve = np.polynomial.Polynomial(coefficients)
        slope = curve.deriv()
        width = shape.breaks[k + 1] - shape.breaks[k]
        turns = [float(t.real) for t in slope.deriv().roots().astype(complex) if abs(t.imag) < 1e-12]
        inside = [t for t in turns if (t > 0 or k == 0) and (t < width or k == last)]
        # The outer pieces have no end. Beyond its roots the slope keeps its sign, so one point there is enough.
        far = 2.0 * float(np.abs(slope.roots()).max(initial=0.0)) + width
        outer = [-far] * (k == 0) + [far] * (k == last)
        wrong = [t for t in (0.0, width, *inside, *outer) if not sign * slope(t) >= 0]  # NaN counts as wrong
        if wrong:
            return f"the slope is {slope(wrong[0]):+.3g} at {shape.breaks[k] + wrong[0]:g}"
        # Neighboring pieces are computed from different ends, so they meet only up to rounding.
        if before is not None and not sign * (curve(0.0) - before) >= -1e-9 * (1.0 + abs(before)):
            return f"the curve jumps by {curve(0.0) - before:+.3g} at {shape.breaks[k]:g}"
        before = curve(width)
    return None


def _tree_disorder(part: TreePart, name: str, sign: int) -> str | None:
    """Return the first split on the feature with a leaf above it that is on the wrong side of a leaf below it."""
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


def _protected(form: RiskForm) -> list[Check]:
    """Check that no protected feature can be named as a reason or be changed by what-if."""
    features = form.schema.features
    names = form.schema.protected
    if not names:
        return []
    ranked = [name for part in form.parts for name in (part.features if isinstance(part, Part) else (part.name,))]
    never = [name for name in dict.fromkeys(ranked) if is_protected(form, name)]
    named = [name for name in names if name in ranked and name not in never]
    movable = [name for name in names if features[name].actionable != "fixed"]
    read = [name for name in names if name in form.features]
    what = f"the model reads {', '.join(read)}" if read else "the model reads none of them"
    evidence = f"{', '.join(names)}: never a reason, never changed; {what}"
    return [Check("protected features", not named and not movable, evidence)]


def _inside(form: RiskForm) -> Check:
    ranges = [link.range for link in form.links]
    low, high = min(r[0] for r in ranges), max(r[1] for r in ranges)
    return Check(
        "risk inside [0, 1]", low >= 0 and high <= 1, "every possible applicant gets a probability from 0% to 100%"
    )


def _weights(form: RiskForm) -> Check:
    if isinstance(form.pool, Mixture):
        total, least = sum(form.pool.weights), min(form.pool.weights)
        holds = abs(total - 1) < 1e-9 and least >= 0
        line = "" if form.pool.link is None else f"; the line on the pool rises in {len(form.pool.link.rates)} bands"
        return Check("weights are a distribution", holds, f"{len(form.pool.weights)} weights, sum {total:.12f}{line}")
    if isinstance(form.pool, Layer):
        least = min(form.pool.weights)
        return Check("subscale weights not negative", least >= 0, f"the least of {len(form.pool.weights)} is {least:g}")
    return Check("weights", True, "one model, so there are no weights")


def _additive(form: RiskForm) -> Check:
    gap, n = _largest_gap(form)
    evidence = f"{_unit_of_sums(form)}; sampled on {n} combinations of levels, the largest gap is {gap:.0e}"
    return Check("contributions add up", gap <= 1e-9, evidence)


def _unit_of_sums(form: RiskForm) -> str:
    if form.speaks_probability and any(isinstance(link, Bands) for link in form.links):
        return "points of the probability, exact on a piecewise-linear link"
    if form.speaks_probability:
        return "points of the probability, exact on a straight link"
    if any(isinstance(part, TreePart) for part in form.parts):
        return "by part only: trees are not additive in their features"
    if isinstance(form.pool, Alone):
        return "points of the probability, by the mean slope of a curved link"
    return "points of the probability, by the mean slopes of curved links"


def _largest_gap(form: RiskForm) -> tuple[float, int]:
    """Compare the sums of contributions with the risks of random combinations of levels."""
    rng, n = np.random.default_rng(0), 256
    columns = {}
    for name, atoms in atoms_of(form).items():
        usable = np.flatnonzero(atoms.seen)
        values = [atoms.values[j] for j in usable] or [None]
        columns[name] = [values[j] for j in rng.integers(len(values), size=n)]
    frame = value_frame(columns)
    try:
        explanation = explain(form, frame, reference=frame.take(0, 1))
    except DataError:
        return 0.0, 0  # every level of some feature is refused as unseen, so there is no row to explain
    size = 1.0 + np.abs(explanation.contributions).sum(axis=1)
    return float((np.abs(explanation.total - form.risk(frame)) / size).max()), n


def level_notes(form: RiskForm, thin: float, *, words: bool = False) -> list[str]:
    """Return notes on levels with few training rows, by label as in model files, or in words."""
    notes: list[str] = []
    seen: set[str] = set()
    for part in form.parts:
        for name, shape in part.shapes.items() if isinstance(part, Part) else ():
            if name in seen:
                continue
            seen.add(name)
            labels = say_levels(form.schema.features[name], shape.levels) if words else map(repr, shape.levels.labels)
            title, comma = (form.schema.title(name), "; ") if words else (name, ", ")
            counts = list(zip(labels, shape.weights, strict=True))
            few = [f"{label} ({weight:g})" for label, weight in counts if 0 < weight < thin]
            empty = [label for label, weight in counts[: shape.levels.n_ordered] if weight == 0]
            if few:
                notes.append(f"{title}: levels with fewer than {thin:g} training rows: {comma.join(few)}")
            if empty:
                notes.append(f"{title}: levels without training rows: {comma.join(empty)}")
        for pair in part.pairs if isinstance(part, Part) else ():
            weights = np.asarray(pair.weights)
            n_thin = int(((weights > 0) & (weights < thin)).sum())
            if n_thin:
                notes.append(
                    f"{pair.name}: {n_thin} of {weights.size} combinations of levels have fewer than {thin:g} "
                    "training rows"
                )
    return notes
