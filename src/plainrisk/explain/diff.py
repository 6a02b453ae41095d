"""Two models side by side: which levels moved, and what that does to risks, decisions and reasons."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from plainrisk._types import Bools, Floats, Index
from plainrisk.checks import NOTHING, PROBABILITY, check_parameters, instance
from plainrisk.errors import DataError
from plainrisk.explain.atoms import Atoms, common_atoms
from plainrisk.explain.overview import level_effects, level_scores, term_of
from plainrisk.explain.reasons import reasons
from plainrisk.explain.reference import Reference, additive_part, knows_typical, make_reference, pool_weights
from plainrisk.form import Alone, Layer, Levels, Line, PairTable, Part, RiskForm
from plainrisk.form.wording import say_levels
from plainrisk.tables import TableResult, text_table

__all__ = ["Diff", "LevelMove", "RowsDiff", "Setting", "TermDiff", "diff"]

_SAME = 1e-12  # scores that differ by less differ by rounding
_MOST_ROWS = 5  # rows that are named because their risk moved most


@dataclass(frozen=True)
class LevelMove:
    """One level, or one combination of levels of a pair, in two models.

    Attributes
    ----------
    level : in the words of the model with finer levels; "slope" for a line, whose scores are then those of one unit
    before, after : what it adds to the score; 0 in a model that has no such term
    risk_before, risk_after : what it does to the risk of the model's typical applicant; None if that is not known
    """

    level: str
    before: float
    after: float
    risk_before: float | None
    risk_after: float | None

    @property
    def score(self) -> float:
        """The move, in units of the score."""
        return self.after - self.before

    @property
    def risk(self) -> float | None:
        """The move, in probability."""
        return None if self.risk_before is None or self.risk_after is None else self.risk_after - self.risk_before


@dataclass(frozen=True)
class TermDiff:
    """A feature, or a pair of features, in one part of two models.

    Attributes
    ----------
    part, feature : str
    status : "moved", "same", "added", "removed", or "unknown" if curves, or shapes of different kinds, differ
    moves : the levels that moved, the largest move first
    """

    part: str
    feature: str
    status: str
    moves: tuple[LevelMove, ...]


@dataclass(frozen=True)
class Setting:
    """A link, an intercept or a weight that differs."""

    name: str
    before: str
    after: str


@dataclass(frozen=True)
class RowsDiff:
    """The effect of the change on rows.

    Attributes
    ----------
    rows : how many
    mean_before, mean_after : mean risk
    mean_move, largest_move : mean and largest absolute difference of a row's two risks
    rank_correlation : Spearman's, of the two risks; None where one of them is the same for all rows
    largest : (row, risk before, risk after) of the rows that moved most, rows counted from 0
    first_reason : share of the rows whose first reason is another feature
    cutoff : the cut-off asked for, or None
    rose, fell : rows that the change carries up to the cut-off or beyond, and below it; None without a cut-off
    """

    rows: int
    mean_before: float
    mean_after: float
    mean_move: float
    largest_move: float
    rank_correlation: float | None
    largest: tuple[tuple[int, float, float], ...]
    first_reason: float
    cutoff: float | None
    rose: int | None
    fell: int | None

    @property
    def lines(self) -> Iterator[str]:
        """The figures in words."""
        yield f"mean risk {self.mean_before:.2%} -> {self.mean_after:.2%} over {self.rows:,} rows"
        row = f", in row {self.largest[0][0]:,}" if self.largest and self.largest_move else ""
        mean, most = 100 * self.mean_move, 100 * self.largest_move
        yield f"a row's risk moves by {mean:.2f} points on average, by {most:.2f} at most{row}"
        if self.rank_correlation is not None:
            yield f"rank correlation of the risks: {self.rank_correlation:.4f}"
        if self.cutoff is not None:
            yield f"cut-off {self.cutoff:g}: {self.rose:,} rows rise to it or above, {self.fell:,} fall below"
        yield f"the first reason is another feature for {self.first_reason:.2%} of the rows"


@dataclass(frozen=True, repr=False)
class Diff(TableResult):
    """The differences between two models, from the first to the second.

    Attributes
    ----------
    terms : features and pairs, the largest move first
    added, removed : features that only the second, or only the first model reads
    settings : links, intercepts and weights that differ
    rows : what the change does to rows, if there were any
    """

    terms: tuple[TermDiff, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    settings: tuple[Setting, ...]
    rows: RowsDiff | None

    def _headline(self) -> str:
        n = sum(term.status != "same" for term in self.terms)
        return f"{n} of {len(self.terms)} terms differ"

    def columns(self) -> dict[str, Any]:
        """Return one line per feature or pair that differs, with its largest move."""
        shown = [(t, t.moves[0] if t.moves else None) for t in self.terms if t.status != "same"]
        return {
            "part": [t.part for t, _ in shown],
            "feature": [t.feature for t, _ in shown],
            "status": [t.status for t, _ in shown],
            "levels": [len(t.moves) for t, _ in shown],
            "largest": [m.level if m else "" for _, m in shown],
            "score": [m.score if m else None for _, m in shown],
            "risk": [m.risk if m else None for _, m in shown],
        }

    def __repr__(self) -> str:
        settings = [f"  {s.name}: {s.before} -> {s.after}" for s in self.settings]
        rows = [] if self.rows is None else [f"  {line}" for line in self.rows.lines]
        return "\n".join([text_table(self._headline(), self.columns()), *settings, *rows])


def diff(model_a: Any, model_b: Any, X: Any = None, cutoff: float | None = None) -> Diff:
    """Compare two models: which levels moved, and with rows, what that does to risks, decisions and reasons.

    Levels are compared where either model has an edge or a category of its own. A move in probability is that of
    the level's effect on the typical applicant of each model.

    Parameters
    ----------
    model_a, model_b : fitted models, loaded models or risk forms: before, and after
    X : rows, default=None
        With all features of both models.
    cutoff : float, default=None
        Count the rows that the change carries across this risk.

    Returns
    -------
    Diff

    Examples
    --------
    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german")
    >>> model = pr.AdditiveRiskModel(german.schema).fit(german.frame, german.target)
    >>> schema = model.schema_with_bins().edit("Credit amount", merge=[(2, 3)])
    >>> edited = pr.AdditiveRiskModel(schema).fit(german.frame, german.target)
    >>> change = pr.diff(model, edited, german.frame, cutoff=0.5)
    >>> change.terms[0].feature
    'Credit amount'
    """
    forms = [getattr(model, "form_", model) for model in (model_a, model_b)]
    form = instance("a fitted model or a RiskForm", RiskForm)
    check_parameters("diff", {"model_a": forms[0], "model_b": forms[1]}, {"model_a": form, "model_b": form})
    check_parameters("diff", {"cutoff": cutoff}, {"cutoff": NOTHING | PROBABILITY})
    a, b = forms
    if not a.predicts_as(b):
        raise DataError("diff: the two models are about different outcomes, so their risks cannot be compared.")
    if cutoff is not None and X is None:
        raise DataError("diff: cutoff needs rows. Give X.")
    return Diff(
        terms=_terms(_Side(a, X), _Side(b, X)),
        added=tuple(name for name in b.features if name not in a.features),
        removed=tuple(name for name in a.features if name not in b.features),
        settings=tuple(_settings(a, b)),
        rows=None if X is None else _rows(a, b, X, cutoff),
    )


# ---- levels


class _Side:
    """One of the two models: its additive parts, and who is typical for it."""

    def __init__(self, form: RiskForm, X: Any) -> None:
        self.form = form
        self.parts = {part.name: k for k, part in enumerate(form.parts) if isinstance(part, Part)}
        self.typical: Reference | None = None
        if X is not None or knows_typical(form):
            self.typical = make_reference(form, "typical", None if knows_typical(form) else X)

    def term(self, part: str, name: str) -> Any:
        if part not in self.parts:
            return None
        additive = additive_part(self.form, self.parts[part])
        return term_of(additive, name) if name in additive.term_names else None

    def at(self, part: str, name: str, cells: Index | None, n: int) -> tuple[Floats, Floats | None, Bools]:
        """Return scores and effects of some cells of a term, and whether training saw them; 0 without the term."""
        if cells is None:
            return np.zeros(n), np.zeros(n), np.zeros(n, np.bool_)
        k = self.parts[part]
        additive = additive_part(self.form, k)
        effects = None if self.typical is None else level_effects(self.form, self.typical, k, name)[cells]
        weights = np.ravel(term_of(additive, name).weights)
        return level_scores(additive, name)[cells], effects, (weights > 0)[cells] | (weights.sum() == 0)


def _terms(a: _Side, b: _Side) -> tuple[TermDiff, ...]:
    keys = dict.fromkeys(
        (part, name)
        for side in (a, b)
        for part, k in side.parts.items()
        for name in additive_part(side.form, k).term_names
    )
    differences = [_term(a, b, part, name) for part, name in keys]
    return tuple(sorted(differences, key=_size, reverse=True))


def _size(term: TermDiff) -> tuple[bool, float, float]:
    """Sort by the move in probability where it is known; where it is unknown, first."""
    if not term.moves:
        return term.status == "unknown", 0.0, 0.0
    first = term.moves[0]
    return False, abs(first.risk or 0.0), abs(first.score)


def _term(a: _Side, b: _Side, part: str, name: str) -> TermDiff:
    old, new = a.term(part, name), b.term(part, name)
    status = "removed" if new is None else "added" if old is None else "moved"
    if old is not None and new is not None:
        if old == new and a.form.parts[a.parts[part]].link == b.form.parts[b.parts[part]].link:
            return TermDiff(part, name, "same", ())
        if any(type(u) is not type(v) for u, v in zip(_levels(old), _levels(new), strict=True)):
            return TermDiff(part, name, "unknown", ())
    moves, unknown = _moves(a, b, part, name)
    if unknown:
        return TermDiff(part, name, status if status != "moved" else "unknown", moves)
    return TermDiff(part, name, status if moves or status != "moved" else "same", moves)


def _levels(term: Any) -> tuple[Levels, ...]:
    return term.levels if isinstance(term, PairTable) else (term.levels,)


def _moves(a: _Side, b: _Side, part: str, name: str) -> tuple[tuple[LevelMove, ...], bool]:
    """Return the levels that moved, and whether there is something that differs from value to value."""
    terms = [side.term(part, name) for side in (a, b)]
    levels_of_terms = [_levels(term) for term in terms if term is not None]
    axes = [common_atoms(name, [levels[k] for levels in levels_of_terms]) for k in range(len(levels_of_terms[0]))]
    features = {**a.form.schema.features, **b.form.schema.features}
    names = next(term.features for term in terms if term is not None) if len(axes) == 2 else (name,)
    words = [say_levels(features[feature], axis.levels) for feature, axis in zip(names, axes, strict=True)]
    labels = tuple(map(" × ".join, itertools.product(*words)))
    n = len(labels)
    (before, risk_before, seen), (after, risk_after, seen_after) = (
        side.at(part, name, None if term is None else _cells(axes, _levels(term)), n)
        for side, term in zip((a, b), terms, strict=True)
    )
    has_value = np.ravel(
        np.multiply.outer(axes[0].has_value, axes[1].has_value) if len(axes) == 2 else axes[0].has_value
    )
    used = (seen | seen_after) & has_value
    moved = np.flatnonzero(used & (np.abs(after - before) > _SAME))
    effects = None if risk_before is None or risk_after is None else (risk_before, risk_after)
    size = after - before if effects is None else effects[1] - effects[0]
    moves = []
    for j in moved[np.argsort(-np.abs(size[moved]), kind="stable")].tolist():
        risks = (None, None) if effects is None else (float(effects[0][j]), float(effects[1][j]))
        moves.append(LevelMove(labels[j], float(before[j]), float(after[j]), *risks))
    slope = _slope(*terms)
    unknown = slope is None and bool(np.isnan(before[used] + after[used]).any())
    return (*(slope or ()), *moves), unknown


def _slope(old: Any, new: Any) -> list[LevelMove] | None:
    """Return the move of a line, as what one unit of the feature adds; None unless both are lines."""
    if not all(term is None or isinstance(term, Line) for term in (old, new)):
        return None
    before, after = (0.0 if line is None else line.slope for line in (old, new))
    return [LevelMove("slope", before, after, None, None)] if abs(after - before) > _SAME else []


def _cells(axes: list[Atoms], levels: tuple[Levels, ...]) -> Index:
    """Return, for each atom or combination of atoms, its cell in the table of one model, row by row."""
    first, *second = (axis.levels_in(coarser) for axis, coarser in zip(axes, levels, strict=True))
    return np.add.outer(first * len(levels[1]), second[0]).ravel() if second else first


# ---- links and weights


def _settings(a: RiskForm, b: RiskForm) -> Iterator[Setting]:
    both = [dict(_facts(form)) for form in (a, b)]
    for name in dict.fromkeys((*both[0], *both[1])):
        before, after = (facts.get(name, "none") for facts in both)
        if before != after:
            yield Setting(name, before, after)


def _facts(form: RiskForm) -> Iterator[tuple[str, str]]:
    weights = pool_weights(form)
    if form.schema.target is not None:
        yield "outcome", form.schema.target
    yield "protected features", ", ".join(form.schema.protected) or "none"
    for field, value in form.schema.annotations["policy"].items():
        yield f"policy: {field}", str(value)
    yield "pool", type(form.pool).__name__.lower()
    for part, weight in zip(form.parts, weights, strict=True):
        yield f"intercept of {part.name!r}", f"{part.intercept:.6g}"
        yield f"link of {part.name!r}", _link(part.link)
        yield f"weight of {part.name!r}", f"{weight:.6g}"
        if not isinstance(part, Part):
            yield f"trees of {part.name!r}", f"{len(part.trees):,}"
    if isinstance(form.pool, Layer):
        yield "intercept of the second layer", f"{form.pool.intercept:.6g}"
    if not isinstance(form.pool, Alone) and form.pool.link is not None:
        yield f"link of the {'second layer' if isinstance(form.pool, Layer) else 'mixture'}", _link(form.pool.link)


def _link(link: Any) -> str:
    def text(value: Any) -> str:
        return "(" + ", ".join(map(text, value)) + ")" if isinstance(value, tuple) else f"{value:.6g}"

    fields = ", ".join(f"{name} {text(getattr(link, name))}" for name in link.__struct_fields__)
    return f"{type(link).__name__.lower()} {fields}".strip()


# ---- rows


def _rows(a: RiskForm, b: RiskForm, X: Any, cutoff: float | None) -> RowsDiff:
    before, after = a.risk(X), b.risk(X)
    if not len(before):
        raise DataError("diff: X has no rows.")
    move = np.abs(after - before)
    top = np.argsort(-move, kind="stable")[:_MOST_ROWS].tolist()
    return RowsDiff(
        rows=len(before),
        mean_before=float(before.mean()),
        mean_after=float(after.mean()),
        mean_move=float(move.mean()),
        largest_move=float(move.max()),
        rank_correlation=_rank_correlation(before, after),
        largest=tuple((row, float(before[row]), float(after[row])) for row in top if move[row] > _SAME),
        first_reason=_other_reasons(a, b, X),
        cutoff=cutoff,
        rose=None if cutoff is None else int(((before < cutoff) & (after >= cutoff)).sum()),
        fell=None if cutoff is None else int(((before >= cutoff) & (after < cutoff)).sum()),
    )


def _rank_correlation(x: Floats, y: Floats) -> float | None:
    ranks = np.array([_ranks(x), _ranks(y)])
    return float(np.corrcoef(ranks)[0, 1]) if np.ptp(ranks, axis=1).all() else None


def _ranks(x: Floats) -> Floats:
    """Return the rank of every number; equal numbers share their mean rank."""
    _, row, counts = np.unique(x, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[row], np.float64)


def _other_reasons(a: RiskForm, b: RiskForm, X: Any) -> float:
    first = []
    for form in (a, b):
        ranked = reasons(form, X, k=1, portfolio=X)
        names = np.array([*ranked.candidates, ""])  # code -1, no reason, is the last
        first.append(names[ranked.codes[:, 0]])
    return float((first[0] != first[1]).mean())
