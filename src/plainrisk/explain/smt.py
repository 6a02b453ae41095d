"""The claims of a certificate in SMT-LIB, for an independent solver.

Every double is written as the exact fraction it stands for. A claim is stated by its opposite, so a solver answers
`unsat` if the claim holds for all applicants, and else `sat`, with a counterexample. A feature enters by the number of
its level, which is free; scores are real numbers. Two things are left out: that the sigmoid rises from 0 to 1, which
linear arithmetic cannot express, and the slopes of curves, which are polynomials.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from plainrisk.explain.atoms import Atoms, AtomScores, atoms_of
from plainrisk.explain.certify import other_order
from plainrisk.explain.outside import FeatureRules
from plainrisk.explain.reference import pool_weights
from plainrisk.form import (
    BOUNDS,
    Alone,
    Bands,
    Line,
    Linear,
    Logistic,
    Mixture,
    Part,
    RiskForm,
    Table,
    TreePart,
    form_hash,
)
from plainrisk.form.trees import LEAF
from plainrisk.schema import Feature, Rule

__all__ = ["smt_claims"]

HEAD = """; The claims of a certificate, for any SMT solver that knows linear arithmetic, such as z3.
; Form {hash}.
; Every claim is stated by its opposite: `unsat` means that it holds; after `sat`, (get-model) gives a counterexample.
(set-logic QF_LRA)
"""


def smt_claims(form: RiskForm) -> str:
    """Return the claims of a form's certificate that are about numbers, as a script in SMT-LIB 2.6 (QF_LRA).

    Examples
    --------
    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german")
    >>> model = pr.make_classifier("ARM1", german.schema).fit(german.frame, german.target)
    >>> [line for line in smt_claims(model.form_).splitlines() if "echo" in line][-2:]
    ['(echo "contributions add up")', '(echo "weights")']
    """
    return HEAD.format(hash=form_hash(form)) + "".join(map(str, _claims(form)))


@dataclass
class _Claim:
    """The claims of a certificate, as their negations."""

    name: str
    known: list[str] = field(default_factory=list)
    against: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        name = " ".join(self.name.replace('"', '""').split())
        asserted = f"(assert {_any(self.against)})"
        return "\n".join(["", f'(echo "{name}")', "(push 1)", *self.known, asserted, "(check-sat)", "(pop 1)", ""])

    def free(self, name: str, values: Sequence[int] | None = None) -> None:
        """Declare a number, or one of several."""
        self.known.append(f"(declare-const {name} Real)")
        if values is not None:
            self.known.append(f"(assert {_any([f'(= {name} {v})' for v in values])})")

    def function(self, name: str, inputs: str, body: str) -> None:
        """Define a function of real numbers."""
        declared = " ".join(f"({letter} Real)" for letter in inputs)
        self.known.append(f"(define-fun {name} ({declared}) Real {body})")


def _claims(form: RiskForm) -> Iterator[_Claim]:
    atoms, weights = atoms_of(form), pool_weights(form)
    for name, feature in form.schema.features.items():
        if feature.sign:
            yield _direction(form, name, feature, atoms.get(name), weights)
    rules = _Claim("empty fields and codes")
    for name, feature in form.schema.features.items():
        _add_rules(rules, form, FeatureRules(feature, atoms[name], form.schema.worse)) if name in atoms else None
    if rules.against:
        yield rules
    yield from _links(form)
    yield _weights(form)


# ---- numbers and terms


def _exact(value: float | Fraction) -> str:
    """Return a number as the fraction it is."""
    top, bottom = Fraction(value).as_integer_ratio()
    plain = f"{abs(top)}.0" if bottom == 1 else f"(/ {abs(top)}.0 {bottom}.0)"
    return f"(- {plain})" if top < 0 else plain


def _any(terms: Sequence[str]) -> str:
    return "false" if not terms else terms[0] if len(terms) == 1 else f"(or {' '.join(terms)})"


def _all(terms: Sequence[str]) -> str:
    return "true" if not terms else terms[0] if len(terms) == 1 else f"(and {' '.join(terms)})"


def _sum(terms: Sequence[str]) -> str:
    return terms[0] if len(terms) == 1 else f"(+ {' '.join(terms)})"


def _case(letter: str, values: Sequence[str]) -> str:
    """Return the value for the number that a letter represents, from 0; the last value for any other number."""
    head = "".join(f"(ite (= {letter} {k}) {value} " for k, value in enumerate(values[:-1]))
    return head + values[-1] + ")" * (len(values) - 1)


# ---- scores of a feature


@dataclass(frozen=True)
class _Scores:
    """What a feature adds to the score of part k at each atom, as functions of a claim."""

    k: str
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, claim: _Claim, k: str, part: Part, atoms: Atoms, sign: int) -> _Scores:
        """Define the functions, times a sign."""
        scores = AtomScores.of(part, atoms, sign)
        claim.function(f"own{k}", "i", _case("i", [*map(_exact, scores.alone.tolist())]))
        for n, table in enumerate(scores.tables):
            rows = [_case("o", [*map(_exact, row)]) for row in table.tolist()]
            claim.function(f"pair{k}.{n}", "io", _case("i", rows))
        return cls(k, tuple(table.shape[1] for table in scores.tables))

    def others(self, claim: _Claim, tag: str) -> list[str]:
        """Declare a level of the other feature of every pair."""
        names = [f"other{self.k}.{n}{tag}" for n in range(len(self.sizes))]
        for name, size in zip(names, self.sizes, strict=True):
            claim.free(name, range(size))
        return names

    def terms(self, level: str, others: Sequence[str]) -> list[str]:
        """Return what an atom adds alone and in every pair, with these levels of the other features."""
        return [f"(own{self.k} {level})", *(f"(pair{self.k}.{n} {level} {other})" for n, other in enumerate(others))]


# ---- claims


def _direction(form: RiskForm, name: str, feature: Feature, atoms: Atoms | None, weights: Sequence[float]) -> _Claim:
    """The claim is broken if a higher value has a lower score in some part (higher, for a decreasing feature)."""
    claim = _Claim(f"monotone in {name}")
    for k, part in enumerate(form.parts):
        if atoms is None or name not in part.features:
            continue
        if other_order(form, name) is not None:
            claim.against.append("true")  # the levels have another order than the schema
        claim.against.append(f"(< {_exact(weights[k])} 0.0)")
        if isinstance(part, TreePart):
            _add_splits(claim, k, part, name, feature.sign)
        else:
            _add_steps(claim, k, part, atoms, feature.sign)
    return claim


def _add_steps(claim: _Claim, k: int, part: Part, atoms: Atoms, sign: int) -> None:
    shape, paired = part.shapes.get(atoms.feature), any(True for _ in part.pairs_with(atoms.feature))
    i, j = f"i{k}", f"j{k}"
    if isinstance(shape, Line):
        slope = _exact(sign * shape.slope)
        for name in (f"x{k}", f"y{k}"):
            claim.free(name)
        claim.against.append(f"(and (< x{k} y{k}) (< (* {slope} y{k}) (* {slope} x{k})))")
    if isinstance(shape, Table) and not paired:
        scores = [sign * score for score in shape.scores[: shape.levels.n_ordered]]
        claim.function(f"own{k}", "i", _case("i", [*map(_exact, scores)]))
        reached, after, before = [*range(len(scores))], f"(own{k} {j})", f"(own{k} {i})"
    elif paired:
        scores_of_part = _Scores.of(claim, str(k), part, atoms, sign)
        others = scores_of_part.others(claim, "")
        reached = [c for c in range(atoms.levels.n_ordered) if atoms.values[c] is not None]
        after, before = (_sum(scores_of_part.terms(level, others)) for level in (j, i))
    else:
        return
    for name in (i, j):
        claim.free(name, reached)
    claim.against.append(f"(and (< {i} {j}) (< {after} {before}))")


def _add_splits(claim: _Claim, k: int, part: TreePart, name: str, sign: int) -> None:
    """Add that a leaf above a split on the feature and one below it are in the wrong order."""
    for tree_number, tree in enumerate(part.trees):
        for node, entry in enumerate(tree.inputs):
            if entry == LEAF or part.inputs[entry].feature != name:
                continue
            if part.inputs[entry].category is not None:
                claim.against.append("true")  # categories one by one have no order
                continue
            low, high = f"low{k}.{tree_number}.{node}", f"high{k}.{tree_number}.{node}"
            for leaf, child in ((low, tree.left[node]), (high, tree.right[node])):
                claim.free(leaf)
                values = sorted({sign * value for value in tree.leaves_below(child)})
                claim.known.append(f"(assert {_any([f'(= {leaf} {_exact(value)})' for value in values])})")
            claim.against.append(f"(< {high} {low})")


def _add_rules(claim: _Claim, form: RiskForm, rules: FeatureRules) -> None:
    """A rule is violated: `neutral` by any score, `worst` by one measured level, `not_better` by all of them."""
    bounded = {level: rule for level, rule in rules.rules.items() if rule in BOUNDS}
    name = rules.atoms.feature
    for k, (part, weight) in enumerate(zip(form.parts, pool_weights(form), strict=True)):
        if name not in part.features or not (bounded or rules.unkept):
            continue
        if rules.unkept is not None or isinstance(part, TreePart):
            claim.against.append("true")  # no level stands for a value that has a rule, or trees, which keep none
            continue
        claim.against.append(f"(< {_exact(weight)} 0.0)")
        scores = _Scores.of(claim, f"{k}.{len(claim.known)}", part, rules.atoms, form.schema.worse)
        for level, rule in bounded.items():
            claim.against += _breaks(claim, scores, level, rule, rules.measured.tolist())


def _breaks(claim: _Claim, scores: _Scores, level: int, rule: Rule, measured: Sequence[int]) -> list[str]:
    """Return what would break the rule of a level."""
    if rule == "neutral":
        others = scores.others(claim, f".{level}")
        return [f"(distinct {term} 0.0)" for term in scores.terms(str(level), others)]
    below = []
    for other in measured:
        others = scores.others(claim, f".{level}.{other}")
        below.append(f"(< {_sum(scores.terms(str(level), others))} {_sum(scores.terms(str(other), others))})")
    return below if rule == "worst" or not below else [_all(below)]


def _links(form: RiskForm) -> tuple[_Claim, _Claim]:
    """Return two claims: links rise inside [0, 1], and between two scores on a piece they move at its rate."""
    inside, adds = _Claim("risk inside [0, 1]"), _Claim("contributions add up")
    for k, link in enumerate(form.links):
        if isinstance(link, Logistic):
            continue
        cuts, pieces = _pieces(link)
        low, high = map(_exact, link.range)
        lines = [f"(+ {_exact(base)} (* {_exact(rate)} (- s {_exact(start)})))" for start, base, rate in pieces]
        line = "".join(f"(ite (< s {_exact(c)}) {piece} " for c, piece in zip(cuts, lines[:-1], strict=True))
        line += lines[-1] + ")" * len(cuts)
        for claim in (inside, adds):
            claim.function(f"line{k}", "s", line)
            claim.function(
                f"link{k}", "s", f"(ite (< (line{k} s) {low}) {low} (ite (> (line{k} s) {high}) {high} (line{k} s)))"
            )
            claim.free(f"s{k}")
            claim.free(f"t{k}")
        inside.against += [f"(and (< s{k} t{k}) (< (link{k} t{k}) (link{k} s{k})))", f"(< (link{k} s{k}) 0.0)"]
        inside.against.append(f"(> (link{k} s{k}) 1.0)")
        for (_, _, rate), start, end in zip(pieces, (None, *cuts), (*cuts, None), strict=True):
            ends = [f"(< s{k} t{k})", f"(< {low} (link{k} s{k}))", f"(< (link{k} t{k}) {high})"]
            ends += [] if start is None else [f"(<= {_exact(start)} s{k})"]
            ends += [] if end is None else [f"(<= t{k} {_exact(end)})"]
            moved = f"(distinct (- (link{k} t{k}) (link{k} s{k})) (* {_exact(rate)} (- t{k} s{k})))"
            adds.against.append(_all([*ends, moved]))
    return inside, adds


def _pieces(link: Linear | Bands) -> tuple[list[float], list[tuple[float, float, Fraction]]]:
    """Return where the pieces of a link meet, and for each piece a score, the value there and the rate."""
    if isinstance(link, Linear):
        return [], [(0.0, link.offset, Fraction(link.slope))]
    knots, values = [pairwise(map(Fraction, numbers)) for numbers in (link.knots, link.values)]
    rates = [(v - u) / (b - a) for (a, b), (u, v) in zip(knots, values, strict=True)]
    return list(link.knots[1:-1]), list(zip(link.knots[:-1], link.values[:-1], rates, strict=True))


def _weights(form: RiskForm) -> _Claim:
    if isinstance(form.pool, Alone):
        return _Claim("weights")
    weights = [_exact(weight) for weight in form.pool.weights]
    claim = _Claim("subscale weights not negative", against=[f"(< {weight} 0.0)" for weight in weights])
    if isinstance(form.pool, Mixture):
        claim.name, total = "weights are a distribution", _sum(weights)
        claim.against += [f"(< {total} 0.999999999)", f"(> {total} 1.000000001)"]
    return claim
