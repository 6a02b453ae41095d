"""From a risk form to a program: risk, contributions against the typical applicant, reasons against the best one.

The formulas are those of `plainrisk.form.score`, `plainrisk.explain.contributions` and `plainrisk.explain.reasons`, in
the same order of sums. References are fixed when the program is made, so all that depends on them is constant.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from plainrisk._types import Bools
from plainrisk.errors import DataError
from plainrisk.export import expression as ex
from plainrisk.export.expression import Call, Cells, Check, Clip, Expr, If, Name, Number, Output, numbers
from plainrisk.export.formulas import mean_rate, steepest, straight
from plainrisk.export.ranking import add_ranking, first_largest
from plainrisk.export.words import words_of
from plainrisk.form import (
    Alone,
    Bands,
    Bins,
    Certificate,
    Levels,
    Linear,
    Link,
    Mixture,
    PairTable,
    Part,
    RiskForm,
    Table,
    TreePart,
    outside_rules,
)
from plainrisk.form.ranking import FAR, Comparison, Point, Ranking

__all__ = ["build_program"]

CHAIN = 100  # terms of one sum; engines limit the depth of an expression, some to 1,000


def build_program(
    form: RiskForm, typical: Comparison, ranking: Ranking, facts: Mapping[str, Any], certificate: Certificate
) -> ex.Program:
    """Return the program of a form."""
    trees = [part.name for part in form.parts if isinstance(part, TreePart)]
    if trees:
        raise DataError(
            f"export: part {trees[0]!r} is a sum of trees, which has no contributions and reasons by feature. Fit an "
            "additive model (pr.AdditiveRiskModel, or pr.make_classifier('SmoothARM1')), or score with the model file."
        )
    return _Builder(form, typical, ranking).program(facts, certificate)


class _Builder:
    def __init__(self, form: RiskForm, typical: Comparison, ranking: Ranking) -> None:
        self.form, self.typical, self.ranking = form, typical, ranking
        self.parts = [part for part in form.parts if isinstance(part, Part)]
        self.weights = (1.0,) if isinstance(form.pool, Alone) else form.pool.weights
        kinds = self._levels_by_feature()
        self.inputs = tuple(
            ex.Input(name, f"x{j}", not isinstance(kinds[name], Bins)) for j, name in enumerate(form.features)
        )
        self.x = {i.feature: Name(i.id) for i in self.inputs}
        self.steps: list[ex.Step] = []
        self._levels_known: dict[tuple[str, bytes], Name] = {}

    def program(self, facts: Mapping[str, Any], certificate: Certificate) -> ex.Program:
        terms = [self._terms(k, part) for k, part in enumerate(self.parts)]
        scores, risks, risk = self._risk(terms)
        pieces = self._pieces(self.typical, "c", terms, scores, risks, risk, shared=False)
        outputs = (*self._outputs(risk, pieces), *self._experts(scores[-1], risks, risk))
        best = self._pieces(self.ranking.comparison, "b", terms, scores, risks, risk, shared=True)
        outputs = (*outputs, *self._ranked(risk, best))
        checks = [(check.name, check.holds, check.detail) for check in certificate.checks]
        return ex.Program(
            inputs=self.inputs,
            checks=tuple(self._checks()),
            steps=tuple(self.steps),
            outputs=outputs,
            words=words_of(self.form, self.inputs, self.typical.keys),
            facts=dict(facts),
            certificate=checks,
        )

    def _step(self, id: str, value: Expr, note: str = "") -> Name:
        self.steps.append(ex.Step(id, value, note))
        return Name(id)

    def _sum(self, id: str, start: Expr | None, values: Sequence[Expr], note: str = "") -> Name:
        """Add up from the left, in several steps if there are many terms."""
        total = values[0] if start is None else start
        rest = values[1:] if start is None else values
        for n, value in enumerate(rest, 1):
            total = total + value
            if n % CHAIN == 0 and n < len(rest):
                total = self._step(f"{id}_{n // CHAIN}", total, note)
        return self._step(id, total, note)

    # ---- the score

    def _levels_by_feature(self) -> dict[str, Levels]:
        levels = {
            n: lv
            for part in self.parts
            for pair in part.pairs
            for n, lv in zip(pair.features, pair.levels, strict=True)
        }
        return levels | {name: shape.levels for part in self.parts for name, shape in part.shapes.items()}

    def _lookup(self, feature: str, levels: Levels, scores: Sequence[float], straight: Expr | None = None) -> Expr:
        """The number of the level that a feature is in; `straight` is that of the first."""
        x, constants = self.x[feature], numbers(scores)
        if not isinstance(levels, Bins):
            each = zip(levels.categories, constants, strict=False)
            value_of = {label: v for name, v in each for label in (name, *levels.groups.get(name, ()))}
            missing, unseen = constants[levels.missing], constants[len(levels) - 1]
            return ex.Labels(x, {label: v for label, v in value_of.items() if v != unseen}, missing, unseen)
        values: Sequence[Expr] = constants if straight is None else (straight, *constants[1:])
        cuts, codes = levels.cells.lists
        cells = [(cut, values[code]) for cut, code in zip([*cuts, math.inf], codes, strict=False)]
        # Neighboring cells with equal values become one.
        kept = [cell for cell, after in itertools.pairwise(cells) if cell[1] != after[1]] + cells[-1:]
        return Cells(x, tuple(cut for cut, _ in kept[:-1]), tuple(v for _, v in kept), values[codes[-1]])

    def _terms(self, k: int, part: Part) -> list[Name]:
        """The steps of each term's effect, shapes first, then pairs."""
        steps: list[Name] = []
        for name, shape in part.shapes.items():
            formula = None if isinstance(shape, Table) else straight(shape, self.x[name])
            term = self._lookup(name, shape.levels, shape.scores, formula)
            steps.append(self._step(f"t{k}_{len(steps)}", term, name))
        for pair in part.pairs:
            rows = tuple(ex.Table(self._level(pair, 1), numbers(row)) for row in pair.scores)
            steps.append(self._step(f"t{k}_{len(steps)}", ex.Table(self._level(pair, 0), rows), pair.name))
        return steps

    def _level(self, pair: PairTable, axis: int) -> Name:
        """The step with the number of a pair's level."""
        name, levels = pair.features[axis], pair.levels[axis]
        key = (name, msgspec.json.encode(levels))  # levels have no hash: groups are a dict
        if key not in self._levels_known:
            id = f"v{len(self._levels_known)}"
            self._levels_known[key] = self._step(id, self._lookup(name, levels, range(len(levels))), name)
        return self._levels_known[key]

    def _risk(self, terms: Sequence[Sequence[Name]]) -> tuple[list[Name], list[Name], Name]:
        """The steps of the parts' scores (and the whole's, last), of the parts' risks, and of the risk."""
        scores, risks = [], []
        for k, part in enumerate(self.parts):
            scores.append(self._sum(f"s{k}", Number(part.intercept), terms[k], f"score of {part.name}"))
            risks.append(self._link(f"r{k}", part.link, scores[k], f"risk of {part.name}"))
        pool = self.form.pool
        if isinstance(pool, Alone):
            return [*scores, scores[0]], risks, risks[0]
        weighted = [Number(w) * r for w, r in zip(pool.weights, risks, strict=True)]
        score = self._sum("pool", Number(pool.intercept), weighted, "score of the pool")
        if isinstance(pool, Mixture):
            score = self._step("risk" if pool.link is None else "pooled", Clip(score, -math.inf, 1.0))
        risk = score if pool.link is None else self._link("risk", pool.link, score, "risk")
        return [*scores, score], risks, risk

    def _link(self, id: str, link: Link, score: Name, note: str) -> Name:
        if isinstance(link, Bands):
            inner = link.values[1:-1]
            ends = zip(link.knots, link.values, link.rates, (0.0, *inner), (*inner, 1.0), strict=False)
            bands = [
                Clip(Number(value) + Number(rate) * (score - knot), low, high) for knot, value, rate, low, high in ends
            ]
            return self._step(id, Cells(score, link.knots[1:-1], tuple(bands), None, open=True), note)
        if isinstance(link, Linear):
            line = self._step(f"{id}_line", Number(link.offset) + Number(link.slope) * score, note)
            return self._step(id, Clip(line, link.low, link.high), note)
        power = Call("exp", (Clip(0.0 - score, -700.0, 700.0),))
        return self._step(id, Number(1.0) / (power + 1.0), note)

    # ---- contributions

    def _pieces(
        self,
        to: Comparison,
        id: str,
        terms: Sequence[Sequence[Name]],
        scores: Sequence[Name],
        risks: Sequence[Name],
        risk: Name,
        *,
        shared: bool,
    ) -> list[Name]:
        """The steps of the contributions against a reference; with `shared`, those of pairs are their features'."""
        pieces: list[Name] = []
        pooled = not isinstance(self.form.pool, Alone)
        for k, part in enumerate(self.parts):
            point = to.points[k]
            notes = part.features if shared else part.term_names
            differences = self._differences(f"{id}d{k}", k, point, terms[k], shared)
            of_part = self._follow(f"{id}{k}", part.link, point.score, scores[k], risks[k], differences, notes)
            if pooled:
                of_part = [self._step(f"{id}p{k}_{j}", p * self.weights[k], notes[j]) for j, p in enumerate(of_part)]
            pieces += of_part
        last = self.form.last_link
        if pooled and last is not None:
            notes = tuple(str(feature) for _, feature in to.keys)
            pieces = self._follow(f"{id}l", last, to.score, scores[-1], risk, pieces, notes)
        return pieces

    def _differences(self, id: str, k: int, point: Point, terms: Sequence[Name], shared: bool) -> list[Expr]:
        """What each term, or each feature, adds to the score beyond the reference."""
        part = self.parts[k]
        names = part.term_names
        wholes: list[Expr] = [t - point.terms[n] for t, n in zip(terms, names, strict=True)]
        if not shared or not part.pairs:
            return wholes
        difference_of: dict[str, Expr] = dict.fromkeys(part.features, Number(0.0))
        difference_of |= dict(zip(part.shapes, wholes, strict=False))
        for j, pair in enumerate(part.pairs):
            whole = self._step(f"{id}_{j}", wholes[len(part.shapes) + j], pair.name)
            at_u, at_v = point.shares[pair.name]
            table = np.asarray(pair.scores)
            of_u = ex.Table(self._level(pair, 0), numbers((table @ at_v).tolist()))
            of_v = ex.Table(self._level(pair, 1), numbers((at_u @ table).tolist()))
            lead = self._step(f"{id}_{j}_lead", of_u - of_v, pair.name)
            u, v = pair.features
            difference_of[u] = difference_of[u] + (whole + lead) * 0.5
            difference_of[v] = difference_of[v] + (whole - lead) * 0.5
        return list(difference_of.values())

    def _follow(
        self,
        id: str,
        link: Link,
        start: float,
        score: Name,
        value: Name,
        pieces: Sequence[Expr],
        notes: Sequence[str],
    ) -> list[Name]:
        """Turn differences of scores into pieces of the probability, at the link's mean slope."""
        at_start = float(link.value(np.array([start]))[0])
        rise = self._step(f"{id}_rise", value - at_start)
        run = self._step(f"{id}_run", score - start)
        rate = self._step(f"{id}_rate", mean_rate(link, start, score, rise, run), "mean slope")
        steps = [self._step(f"{id}_{j}", p * rate, notes[j]) for j, p in enumerate(pieces)]
        return self._add_up(id, steps, rise, notes)

    def _add_up(self, id: str, pieces: list[Name], whole: Name, notes: Sequence[str]) -> list[Name]:
        """Let far pieces add up to the whole, too (see `explain.contributions._add_up`)."""
        if not pieces or not self._may_be_far:
            return pieces
        sizes = [self._step(f"{id}_size_{j}", Call("abs", (p,))) for j, p in enumerate(pieces)]
        size, largest = first_largest(self._step, f"{id}_most", sizes)
        factor = self._step(f"{id}_factor", If(size > FAR, Number(FAR) / size, Number(1.0)))
        pieces = [self._step(f"{id}_{j}_near", p * factor, notes[j]) for j, p in enumerate(pieces)]
        gap = self._step(f"{id}_gap", whole - self._sum(f"{id}_sum", None, pieces))
        off = Call("abs", (gap,)) > 1e-13
        return [
            self._step(f"{id}_{j}_whole", If(off & largest.equals(j), p + gap, p), notes[j])
            for j, p in enumerate(pieces)
        ]

    @property
    def _may_be_far(self) -> bool:
        """Whether pieces may be so large that their sum loses digits: a line has no end, a table seldom is so steep."""
        terms = [t for part in self.parts for t in (*part.shapes.values(), *part.pairs)]
        straight = any(not isinstance(t, Table | PairTable) for t in terms)
        reach = sum(float(np.abs(np.asarray(t.scores)).max(initial=0.0)) for t in terms)
        reach *= 2 * (1 + max(map(abs, self.weights))) * max(1.0, *map(steepest, self.form.links))
        return straight or reach > 100.0

    # ---- outputs and reasons

    def _outputs(self, risk: Name, pieces: Sequence[Name]) -> tuple[Output, ...]:
        typical = self._step("typical", Number(self.typical.risk), "risk of the typical applicant")
        outputs = [Output("risk", risk.id, "risk"), Output("typical_risk", typical.id, "risk of the typical applicant")]
        taken = {"risk", "typical_risk"}
        groups: dict[str, list[Expr]] = {}
        for (subscale, _), piece in zip(self.typical.keys, pieces, strict=True):
            groups.setdefault(subscale, []).append(piece)
        for j, (title, name) in enumerate(zip(groups, ex.slugs(groups, "subscale_", taken), strict=True)):
            outputs.append(Output(name, self._sum(f"u{j}", None, groups[title], title).id, title))
        often = [feature for _, feature in self.typical.keys]
        # The feature, with its subscale if it is in several.
        titles = [s if f is None else f if often.count(f) == 1 else f"{s}: {f}" for s, f in self.typical.keys]
        named = zip(ex.slugs(titles, "part_", taken), pieces, titles, strict=True)
        return (*outputs, *(Output(name, piece.id, title) for name, piece, title in named))

    def _experts(self, pooled: Name, risks: Sequence[Name], risk: Name) -> tuple[Output, ...]:
        """The outputs of a mixture's terms: every expert's probability alone, and its contribution from zero."""
        pool, titles = self.form.pool, [part.name for part in self.parts]
        if not isinstance(pool, Mixture):
            return ()
        weighted: Sequence[Expr] = [Number(w) * r for w, r in zip(pool.weights, risks, strict=True)]
        if pool.link is not None:
            weighted = self._follow("z", pool.link, 0.0, pooled, risk, weighted, titles)
        terms = [
            self._step(f"share_{j}", term, f"share of {title}")
            for j, (term, title) in enumerate(zip(weighted, titles, strict=True))
        ]
        both = {"expert_": risks, "share_": terms}
        return tuple(
            Output(name, step.id, title)
            for prefix, steps in both.items()
            for name, step, title in zip(ex.slugs(titles, prefix, set()), steps, titles, strict=True)
        )

    def _ranked(self, risk: Name, pieces: Sequence[Name]) -> list[Output]:
        """The outputs of decision and reasons, from the contributions of features against the reference."""
        how = self.ranking
        costs: dict[str, list[Expr]] = {name: [] for name in how.candidates}
        totals: dict[str, list[Expr]] = {name: [] for name in how.subscales}
        for (subscale, feature), piece in zip(how.comparison.keys, pieces, strict=True):
            cost: Expr = piece if how.sign > 0 else 0.0 - piece
            candidate = subscale if feature is None else feature
            costs[candidate].append(cost)
            if not how.protected[how.candidates.index(candidate)]:
                totals.setdefault(subscale, []).append(cost)
        each = [self._sum(f"l{j}", None, costs[name], f"cost of {name}") for j, name in enumerate(how.candidates)]
        costs_by_subscale = [(name, totals[name] or [Number(0.0)]) for name in dict.fromkeys(how.subscales)]
        total = [self._sum(f"q{j}", None, t, f"cost of {name}") for j, (name, t) in enumerate(costs_by_subscale)]
        words = self._words()
        self._merge(each, words)
        return add_ranking(self._step, how, risk, each, words, total if how.by_subscale else ())

    def _words(self) -> list[Name]:
        """The steps of the number of each candidate's text."""
        steps = []
        for j, name in enumerate(self.ranking.candidates):
            value: Expr = Number(float(self.ranking.base[j]))
            if j in self.ranking.by_level:
                feature, levels, codes = self.ranking.by_level[j]
                value = self._lookup(feature, levels, codes.tolist())
            steps.append(self._step(f"w_{j}", value, f"words for {name}"))
        return steps

    def _merge(self, costs: list[Name], words: Sequence[Name]) -> None:
        """Add the costs that have the same words to the first of them, in steps that grow with the candidates."""
        zero, one = Number(0.0), Number(1.0)
        for code, columns in self.ranking.shared.items():
            nameable = [j for j in columns if not self.ranking.protected[j]]
            if len(nameable) < 2:
                continue
            both = {j: words[j].equals(code) & (costs[j] > zero) for j in nameable}
            pieces = [self._step(f"j{code}_of_{j}", If(both[j], costs[j], zero)) for j in nameable]
            flags = [self._step(f"j{code}_is_{j}", If(both[j], one, zero)) for j in nameable]
            total = self._sum(f"j{code}_sum", None, pieces)
            _, first = first_largest(self._step, f"j{code}_top", flags)
            for n, (j, flag) in enumerate(zip(nameable, flags, strict=True)):
                merged = If(first.equals(n), total, zero)
                note = f"cost of {self.ranking.candidates[j]}"
                costs[j] = self._step(f"j{code}_{j}", If(flag.equals(zero), costs[j], merged), note)

    # ---- refusals

    def _checks(self) -> Iterable[Check]:
        unseen_word = "has a level that was not in the training data, and the schema says unseen = 'error'"
        forbidden_word = "is empty or has a special value, and the schema's rule for it is 'error'"
        refused: dict[tuple[str, str, bytes], tuple[Levels, set[int]]] = {}

        def refuse(name: str, word: str, levels: Levels, codes: Iterable[int]) -> None:
            refused.setdefault((name, word, msgspec.json.encode(levels)), (levels, set()))[1].update(codes)

        for name, levels, unseen in self._unseen():
            refuse(name, unseen_word, levels, np.flatnonzero(unseen).tolist())
        for name, levels in self._all_levels():
            rules = outside_rules(self.form.schema.features[name], levels)
            refuse(name, forbidden_word, levels, (level for level, rule in rules.items() if rule == "error"))
        for i in self.inputs:
            if not i.is_text:
                far = Call("abs", (Name(i.id),)) > sys.float_info.max
                yield Check(i.feature, far, f"feature {i.feature!r} holds infinity")
            for (name, what, _), (levels, codes) in refused.items():
                if name == i.feature and codes:
                    flags = [code in codes for code in range(len(levels))]
                    yield Check(name, self._lookup(name, levels, flags).equals(1.0), f"feature {name!r} {what}")

    def _all_levels(self) -> Iterable[tuple[str, Levels]]:
        """Yield the levels of every feature, as every shape and pair has them."""
        for part in self.parts:
            yield from ((name, shape.levels) for name, shape in part.shapes.items())
            yield from (one for pair in part.pairs for one in zip(pair.features, pair.levels, strict=True))

    def _unseen(self) -> Iterable[tuple[str, Levels, Bools]]:
        """Yield the levels without training rows of features whose schema refuses such levels."""
        for part in self.parts:
            for name, shape in part.shapes.items():
                if self.form.schema.features[name].unseen == "error":
                    yield name, shape.levels, np.asarray(shape.weights) == 0
            for pair in part.pairs:
                for axis, name in enumerate(pair.features):
                    if self.form.schema.features[name].unseen == "error":
                        yield name, pair.levels[axis], pair.level_weights(axis) == 0
