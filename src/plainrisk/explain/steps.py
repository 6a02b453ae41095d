r"""What one unit, one bin or one category more adds to the probability: the coefficients of a model, in points.

A step changes the score of a part by :math:`\Delta`, whoever the applicant is. The links on the way turn that into a
change of the probability. Behind lines it is :math:`\Delta` times their slopes, the same for everybody who is not at an
end. Behind one link of bands it is one number per band. Behind a sigmoid it is :math:`\sigma(s + \Delta) - \sigma(s)`,
which depends on the applicant's own score s: it is largest at :math:`s = -\Delta / 2` and falls on both sides, so over
an interval of scores it runs from the smaller of its ends to its largest value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from plainrisk._types import Floats
from plainrisk.errors import DataError
from plainrisk.explain.overview import line_step, term_of
from plainrisk.explain.reference import additive_part, pool_weights
from plainrisk.explain.uncertainty import Refits, drawn
from plainrisk.form import (
    Alone,
    Bands,
    Bins,
    Curve,
    FitRecord,
    Layer,
    Levels,
    Line,
    Linear,
    Link,
    Logistic,
    PairTable,
    Part,
    RiskForm,
    Shape,
    TreePart,
)
from plainrisk.form.wording import outcome_words, per_units, say_level, say_number, say_value
from plainrisk.schema import Feature
from plainrisk.tables import TableResult, text_table

__all__ = ["EffectRow", "Effects", "effects"]

Kind = Literal["line", "bin", "category", "special", "pair"]
Ends = tuple[float, float]  # the least and the greatest of something

EVERYBODY: Ends = (-math.inf, math.inf)
MIDDLE = (0.05, 0.95)  # of the applicants, whom a range is about
DRAWS, LEVEL = 200, 0.9  # of the posterior, for intervals


@dataclass(frozen=True)
class EffectRow:
    """The effect of one step of one feature on the probability.

    Attributes
    ----------
    part, feature : whose; a pair stands as "u × v"
    label : the feature in words
    kind : "line": so many units more; "bin": a bin or an ordered category against the one before; "category" and
        "special": a category, or a code or empty field, against the most frequent level; "pair": a combination
    change : the step in words
    score : what it adds to the part's score
    least, most : what it adds to the probability; equal where that is the same for everybody
    by_band : the same by band, where the link has bands
    low, high : the ends of its 90% interval, around `least` and `most`; None where the model has no covariance
    level : the number of the level that is stepped to, as in `overview`; None of a curve
    """

    part: str
    feature: str
    label: str
    kind: Kind
    change: str
    score: float
    least: float
    most: float
    by_band: tuple[float, ...] = ()
    low: float | None = None
    high: float | None = None
    level: int | None = None

    @property
    def points(self) -> str:
        """The effect in words: "-0.54", by band "+0.1, +0.5, +0.1", or "+0.2 to +2.1"."""
        return ", ".join(self.points_by_band)

    @property
    def points_by_band(self) -> tuple[str, ...]:
        """The effect in each band; without bands, one text for all scores."""
        if self.by_band:
            return tuple(map(_points, self.by_band))
        least, most = _points(self.least), _points(self.most)
        return (least if least == most else f"{least} to {most}",)


@dataclass(frozen=True, repr=False)
class Effects(TableResult):
    """The effect of every step of every feature on the probability.

    Attributes
    ----------
    outcome : what the probability is of, in words
    rows : one per step
    bands : by part, the probabilities at which each band of its link ends
    scopes : by part, whom its rows are about, as a sentence goes on
    notes : what is to be said beside the rows
    """

    outcome: str
    rows: tuple[EffectRow, ...]
    bands: dict[str, tuple[Ends, ...]]
    scopes: dict[str, str]
    notes: tuple[str, ...]

    def of(self, feature: str) -> tuple[EffectRow, ...]:
        """Return the rows of a feature."""
        return tuple(row for row in self.rows if row.feature == feature)

    def bands_in_words(self, part: str) -> tuple[str, ...]:
        """Return the bands of a part, such as "23.4 to 77.6%"; none where its link has no bands."""
        return tuple(map(_to, self.bands.get(part, ())))

    def sentence(self, row: EffectRow) -> str:
        """Return a row as a sentence: "Duration: -0.54 points per month, for everybody inside the linear range"."""
        return f"{row.label}: {self.said(row)}"

    def said(self, row: EffectRow) -> str:
        """Return a row as the continuation of a sentence after the feature."""
        if row.by_band:
            bands = zip(row.points_by_band, self.bands_in_words(row.part), strict=True)
            return f"{row.change}, " + ", ".join(f"{points} points from {band}" for points, band in bands)
        points = f"{row.points} points {row.change}" if row.kind == "line" else f"{row.change}, {row.points} points"
        return points + self.scopes[row.part]

    def _headline(self) -> str:
        return f"What one step adds to the probability that {self.outcome}, in percentage points"

    def table(self) -> dict[str, list[Any]]:
        """Return the table as people read it."""
        table: dict[str, list[Any]] = {
            "part": [row.part for row in self.rows],
            "feature": [row.label for row in self.rows],
            "step": [row.change for row in self.rows],
        }
        if len(self.scopes) == 1:
            del table["part"]
        bands = self._bands_of_all()
        for b, band in enumerate(bands):
            table[band] = [row.points_by_band[b] for row in self.rows]
        if not bands:
            table["points"] = [row.points for row in self.rows]
        if any(row.low is not None for row in self.rows):
            table["90% interval of all bands" if bands else "90% interval"] = [
                "" if row.low is None or row.high is None else f"{_points(row.low)} to {_points(row.high)}"
                for row in self.rows
            ]
        return table

    def _bands_of_all(self) -> tuple[str, ...]:
        """Return the bands in words, if they are the same for every row."""
        bands = {self.bands_in_words(part) for part in self.scopes}
        return bands.pop() if len(bands) == 1 else ()

    def __repr__(self) -> str:
        return "\n".join([text_table(self._headline(), self.table(), rows=12), *self.notes])

    def columns(self) -> dict[str, Any]:
        """Return one line per step, as columns by name; effects are probabilities."""
        names = ("part", "feature", "label", "kind", "change", "score", "least", "most", "low", "high")
        columns: dict[str, Any] = {name: [getattr(row, name) for row in self.rows] for name in names}
        for b in range(max((len(row.by_band) for row in self.rows), default=0)):
            columns[f"band_{b + 1}"] = [row.by_band[b] if b < len(row.by_band) else None for row in self.rows]
        return columns

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        rows = [{**asdict(row), "sentence": self.sentence(row)} for row in self.rows]
        bands = {part: list(map(list, ends)) for part, ends in self.bands.items()}
        return {"outcome": self.outcome, "rows": rows, "bands": bands, "notes": list(self.notes)}


def effects(form: RiskForm, record: FitRecord | None = None, X: Any = None, refits: Refits | None = None) -> Effects:
    """Return what every step of every feature adds to the probability; see `RiskModel.effects`."""
    terms = [(k, name) for k, part in enumerate(form.parts) if isinstance(part, Part) for name in part.term_names]
    terms = [(k, name) for k, name in terms if _moves(form, k, name)]
    steps = [list(_steps(form, k, name)) for k, name in terms]
    if refits is None and record is not None and record.covariance:
        refits = drawn(form, record.covariance, DRAWS, 0)
    ends = _intervals(refits, terms, steps)
    reaches = _reaches(form, record, X)
    rows = tuple(
        _row(form, k, name, step, reaches[k], next(ends))
        for (k, name), steps_of_term in zip(terms, steps, strict=True)
        for step in steps_of_term
    )
    by_name = {part.name: reach for part, reach in zip(form.parts, reaches, strict=True) if isinstance(part, Part)}
    bands = {name: reach.band_ends for name, reach in by_name.items() if reach.band_ends}
    scopes = {name: reach.scope for name, reach in by_name.items()}
    notes = tuple(_notes(form, reaches, record, X is not None))
    return Effects(outcome_words(form.schema, form.classes[1]), rows, bands, scopes, notes)


# ---- steps of scores


@dataclass(frozen=True)
class _Step:
    """A step of a term: from `before` to `after`, codes of levels or, of lines and curves, values."""

    kind: Kind
    change: str
    before: float
    after: float

    def score(self, term: Shape | PairTable) -> float:
        """Return what the step adds to the score under a form's own term."""
        if self.kind == "line":
            assert isinstance(term, Line | Curve)
            return _at(term, self.after) - _at(term, self.before)
        scores = np.ravel(np.asarray(term.scores))
        return float(scores[int(self.after)] - (0.0 if math.isnan(self.before) else scores[int(self.before)]))


def _at(term: Line | Curve, x: float) -> float:
    return term.slope * x if isinstance(term, Line) else float(term.at(np.array([x]))[0])


def _moves(form: RiskForm, k: int, name: str) -> bool:
    term = term_of(additive_part(form, k), name)
    return isinstance(term, Line | Curve) or bool(np.any(np.asarray(term.scores)))


def _steps(form: RiskForm, k: int, name: str) -> Iterator[_Step]:
    """Yield the steps of a term."""
    term = term_of(additive_part(form, k), name)
    if isinstance(term, PairTable):
        yield from _pair_steps(form, term)
        return
    feature, levels, weights = form.schema.features[name], term.levels, np.asarray(term.weights)
    n = levels.n_ordered
    if isinstance(term, Line):
        step = line_step(form, name)
        yield _Step("line", per_units(feature, step), 0.0, step)
        usual, against = math.nan, say_number(float(f"{term.center:.4g}"))  # a line is 0 at its center
    elif isinstance(term, Curve):
        for a, b in zip(term.breaks, term.breaks[1:], strict=False):
            words = f"from {say_value(feature, float(f'{a:.6g}'))} to {say_value(feature, float(f'{b:.6g}'))}"
            yield _Step("line", words, a, b)
        usual, against = math.nan, "the mean"
    else:
        usual = float(np.argmax(weights[:n])) if n else math.nan
        against = say_level(feature, levels, int(usual)) if n else "the mean"
        yield from _level_steps(feature, levels, int(usual) if n else 0)
    for code in range(n, len(levels)):
        if weights[code] > 0:
            yield _Step("special", f"{say_level(feature, levels, code)} instead of {against}", usual, code)


def _level_steps(feature: Feature, levels: Levels, usual: int) -> Iterator[_Step]:
    """Yield the steps from bin to bin, or from the most frequent category to every other."""
    ordered = isinstance(levels, Bins) or feature.sign != 0
    for code in range(levels.n_ordered):
        before = code - 1 if ordered else usual
        if before in (-1, code):
            continue
        words = f"{say_level(feature, levels, code)} instead of {say_level(feature, levels, before)}"
        yield _Step("bin" if ordered else "category", words, before, code)


def _pair_steps(form: RiskForm, pair: PairTable) -> Iterator[_Step]:
    """Yield the cells that add most and least: all of them are in `overview`."""
    weights, scores = np.ravel(pair.weights), np.ravel(pair.scores)
    seen = np.flatnonzero(weights > 0) if weights.any() else np.arange(len(scores))
    for cell in dict.fromkeys([int(seen[scores[seen].argmin()]), int(seen[scores[seen].argmax()])]):
        codes = divmod(cell, len(pair.levels[1]))
        levels = zip(pair.features, pair.levels, codes, strict=True)
        words = [f"{form.schema.title(f)}: {say_level(form.schema.features[f], lv, c)}" for f, lv, c in levels]
        yield _Step("pair", f"{' with '.join(words)}, on top of both", math.nan, cell)


def _intervals(
    refits: Refits | None, terms: Sequence[tuple[int, str]], steps: Sequence[Sequence[_Step]]
) -> Iterator[Ends | None]:
    """Yield the interval of each step's score, by the refits."""
    for (k, name), steps_of_term in zip(terms, steps, strict=True):
        if refits is None:
            yield from [None] * len(steps_of_term)
            continue
        refitted = [term_of(additive_part(form, k), name) for form in refits.forms]
        for step in steps_of_term:
            low, high = np.quantile([step.score(term) for term in refitted], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
            yield float(low), float(high)


# ---- from scores to probability


@dataclass(frozen=True)
class _Reach:
    """The links on the way of one part to the probability, and between which scores the applicants are before each."""

    links: tuple[Link, ...]
    scores: tuple[Ends, ...]
    weight: float

    @property
    def scope(self) -> str:
        """Return whom an effect applies to, as the end of a sentence."""
        if all(isinstance(link, Linear) for link in self.links):
            return ", for everybody inside the linear range"
        return ", depending on the applicant" if _one_of_bands(self.links) is None else ""

    @property
    def band_ends(self) -> tuple[Ends, ...]:
        """The probabilities that the link of bands gives at the ends of each band."""
        at = _one_of_bands(self.links)
        if at is None:
            return ()
        link = self.links[at]
        assert isinstance(link, Bands)
        inner = link.values[1:-1]
        return tuple(zip((0.0, *inner), (*inner, 1.0), strict=True))

    def ends(self, score: Ends) -> Ends:
        """Return what steps of a score between two add to the probability, from the least to the most."""
        for j, (link, where) in enumerate(zip(self.links, self.scores, strict=True)):
            score = _through(link, score, where)
            if j == 0:
                score = _sorted(self.weight * score[0], self.weight * score[1])
        return score

    def by_band(self, score: float) -> tuple[float, ...]:
        """Return the effect of a step of the score in each band."""
        at = _one_of_bands(self.links)
        if at is None:
            return ()
        bands = self.links[at]
        assert isinstance(bands, Bands)
        others = [link.slope for j, link in enumerate(self.links) if j != at and isinstance(link, Linear)]
        return tuple(score * rate * math.prod(others) * self.weight for rate in bands.rates)


def _one_of_bands(links: Sequence[Link]) -> int | None:
    """Return which link has bands, if one has and the others are lines."""
    curved = [j for j, link in enumerate(links) if not isinstance(link, Linear)]
    return curved[0] if len(curved) == 1 and isinstance(links[curved[0]], Bands) else None


def _reaches(form: RiskForm, record: FitRecord | None, X: Any) -> list[_Reach]:
    """Return the path of every part, with the scores of nine in ten applicants as far as they are known."""
    last, alone = form.last_link, isinstance(form.pool, Alone)
    per_part, pooled = [EVERYBODY] * len(form.parts), EVERYBODY
    if X is not None:
        scores = form.part_scores(X)
        if not len(scores):
            raise DataError("effects: X has no rows to take ranges over. Leave X out for the training rows.")
        per_part = [_middle(column) for column in scores.T]
        pooled = _middle(form.score(X))
    elif record is not None and record.risks is not None and isinstance(last, Logistic):
        low, high = (math.log(p / (1 - p)) for p in map(record.risks.quantile, MIDDLE))
        per_part, pooled = [(low, high)] if alone else per_part, (low, high)
    further = () if alone or last is None else (last,)
    return [
        _Reach((part.link, *further), (ends, pooled)[: 1 + len(further)], weight)
        for part, ends, weight in zip(form.parts, per_part, pool_weights(form), strict=True)
    ]


def _middle(scores: Floats) -> Ends:
    low, high = np.quantile(scores, MIDDLE)
    return float(low), float(high)


def _through(link: Link, step: Ends, where: Ends) -> Ends:
    """Return the least and the most that steps between two add to a link's value, from scores between two."""
    if isinstance(link, Linear):
        return link.slope * step[0], link.slope * step[1]
    if isinstance(link, Bands):
        products = [rate * delta for rate in (min(link.rates), max(link.rates)) for delta in step]
        return min(products), max(products)
    gains = [
        _sigmoid_step(link, delta, s) for delta in step for s in (*where, min(max(-delta / 2, where[0]), where[1]))
    ]
    return min(gains), max(gains)


def _sigmoid_step(link: Logistic, delta: float, score: float) -> float:
    if math.isinf(score):
        return 0.0
    after, before = link.value(np.array([score + delta, score]))
    return float(after - before)


def _sorted(a: float, b: float) -> Ends:
    return (a, b) if a <= b else (b, a)


def _row(form: RiskForm, k: int, name: str, step: _Step, reach: _Reach, interval: Ends | None) -> EffectRow:
    part = additive_part(form, k)
    term = term_of(part, name)
    score = step.score(term)
    least, most = reach.ends((score, score))
    low, high = (None, None) if interval is None else reach.ends(interval)
    names = term.features if isinstance(term, PairTable) else (name,)
    label = " × ".join(form.schema.title(n) for n in names)
    by_band = reach.by_band(score)
    level = 0 if isinstance(term, Line) and step.kind == "line" else None if step.kind == "line" else int(step.after)
    return EffectRow(part.name, name, label, step.kind, step.change, score, least, most, by_band, low, high, level)


def _points(value: float) -> str:
    """Write a probability in points, with two decimals or two digits.

    >>> _points(-0.005365), _points(0.0000312), _points(0.0)
    ('-0.54', '+0.0031', '+0.00')
    """
    points = 100 * value + 0.0
    return f"{points:+.2f}" if abs(points) >= 0.095 or points == 0 else f"{points:+.2g}"


def _to(ends: Ends) -> str:
    return f"{100 * ends[0]:.3g} to {100 * ends[1]:.3g}%"


def _notes(form: RiskForm, reaches: Sequence[_Reach], record: FitRecord | None, has_rows: bool) -> Iterator[str]:
    """Yield whom the rows apply to; text that applies to several parts is given once."""
    about: dict[str, list[str]] = {}
    for part, reach in zip(form.parts, reaches, strict=True):
        about.setdefault(_note(part, reach, record, has_rows), []).append(part.name)
    for note, names in about.items():
        yield note if len(names) == len(form.parts) else f"{', '.join(names)}: {note}"
    if any(isinstance(part, Part) and part.pairs for part in form.parts):
        yield "A feature that stands in a pair also adds what the pair adds."
    if (isinstance(form.pool, Layer) or len(form.parts) > 1) and any(isinstance(part, Part) for part in form.parts):
        yield "Each row is about its own part, with the weight of the part counted in."


def _note(part: Part | TreePart, reach: _Reach, record: FitRecord | None, has_rows: bool) -> str:
    if isinstance(part, TreePart):
        return "Trees have no effect of a single feature: they are one contribution as a whole."
    if reach.band_ends:
        return "Effects are by band of the probability: a step that leaves its band goes on as in the next."
    if all(isinstance(link, Linear) for link in reach.links):
        if len(reach.links) > 1 or reach.weight != 1:
            return "Effects are the same for everybody whom no line cuts off."
        low, high = reach.links[0].range
        note = "Effects are the same for everybody inside the linear range"
        outside = f"; {record.clipped:.1%} of the training rows are outside" if record and record.clipped else ""
        return f"{note}, with a probability above {low:.3g} and below {high:.3g}{outside}."
    if EVERYBODY in reach.scores:
        return "Effects depend on the applicant. Without rows, ranges are over all applicants there could be."
    who = "rows given" if has_rows else "training rows"
    return f"Effects depend on the applicant. Ranges are over nine in ten of the {who}."
