"""Questions about invented applicants, each in log odds and in probability, with the right answers of a model.

Both ways show the same applicants by the same scores of one additive model. In log odds a score goes through the
sigmoid, in probability through the line that is nearest to it: what is asked is the same, and each way has its own
right answer.
"""

from __future__ import annotations

import hashlib
import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import plainrisk as pr
from plainrisk.errors import DataError
from plainrisk.files import write_text
from plainrisk.form import ALPHA_STAR, Linear, Link, Logistic, Part, RiskForm, Table
from plainrisk.form.wording import outcome_words, say_level

__all__ = ["KINDS", "UNITS", "build", "german_form", "make_study"]

UNITS = ("log_odds", "probability")
APART = 0.05  # no two choices are nearer to each other: what is asked is not arithmetic to the last digit
TRIES = 20_000  # applicants are drawn until a question has a clear answer both ways

GERMAN: dict[str, dict[str, Any]] = {
    "Status of existing checking account": {"label": "Checking account", "direction": "decreasing"},
    "Duration in month": {"label": "Duration of the loan", "direction": "increasing", "unit": "months"},
    "Credit amount": {"label": "Amount of the loan", "unit": "DM", "edges": [4000.5, 10000.5]},
    "Savings account/bonds": {"label": "Savings", "direction": "decreasing"},
    "Present employment since": {"label": "Time in present job", "kind": "categorical"},
    "Property": {"label": "Property", "kind": "categorical"},
}


def german_form() -> RiskForm:
    """Return the default model of the questions: six features of the built-in German credit data.

    The applicants are invented: combinations of levels, not rows.
    """
    german = pr.datasets.load("german")
    features = german.schema.features
    words = {name: {**fields, "labels": features[name].labels} for name, fields in GERMAN.items()}
    schema = pr.Schema.from_dict({"features": words, "outcome": {"positive": "does not repay"}})
    model = pr.AdditiveRiskModel(schema, shapes="steps", link="logistic")
    form: RiskForm = model.fit(german.frame[list(GERMAN)], 1 - np.asarray(german.target)).form_
    return form


@dataclass(frozen=True)
class Way:
    """A way to show scores: the numbers people see, and the probability that a score stands for."""

    unit: str
    link: Link

    def probability(self, score: float) -> float:
        """Return the probability of a score."""
        return float(self.link.value(np.array(score)))

    def shown(self, score: float) -> str:
        """Return a total as people see it."""
        return signed(score) if self.unit == "log_odds" else percent(self.probability(score))

    def effect(self, score: float) -> str:
        """Return a part of a total as people see it."""
        if isinstance(self.link, Linear):
            return f"{signed(100 * self.link.slope * score, 1)} points"
        return signed(score)

    def moved(self, score: float, by: float) -> float:
        """Return how far a change of the score moves the probability."""
        return self.probability(score + by) - self.probability(score)

    def naive(self, score: float, by: float) -> float:
        """Return the same for somebody who reads log odds as hundreds of percentage points."""
        return by if self.unit == "log_odds" else self.moved(score, by)


WAYS = (Way("log_odds", Logistic()), Way("probability", Linear.from_alpha(ALPHA_STAR)))


def percent(share: float) -> str:
    """Return a share in percent, without decimals."""
    return f"{100 * share:.0f}%"


def signed(value: float, decimals: int = 2) -> str:
    """Return a number with its sign, as it is printed; zero has none."""
    shown = round(value, decimals)
    return f"{shown:+.{decimals}f}".replace("-", "\N{MINUS SIGN}") if shown else f"{0:.{decimals}f}"


@dataclass(frozen=True)
class Answer:
    """What may be chosen: the right choice, and that of somebody who adds log odds as if they were points."""

    choices: tuple[str, ...]
    right: int
    naive: int


class Unclear(Exception):  # noqa: N818
    """The applicants that were drawn leave the answer to chance."""


@dataclass(frozen=True)
class Applicant:
    """An invented applicant: a level of every feature."""

    name: str
    codes: dict[str, int]


class Maker:
    """Draws applicants of a form and asks about them."""

    def __init__(self, form: RiskForm, rng: np.random.Generator) -> None:
        part = form.parts[0]
        tables = isinstance(part, Part) and all(isinstance(shape, Table) for shape in part.shapes.values())
        if len(form.parts) > 1 or not isinstance(part, Part) or not tables or part.pairs:
            raise DataError("user_study: the model must be one part of tables without pairs, such as ARM1.")
        if not isinstance(part.link, Logistic):
            raise DataError("user_study: the model must have a logistic link, so that its scores are log odds.")
        self.schema, self.part, self.rng = form.schema, part, rng
        self.outcome = outcome_words(form.schema, form.classes[1])
        self.tables = {name: shape for name, shape in part.shapes.items() if isinstance(shape, Table)}

    def level(self, name: str) -> int:
        """Draw a level that training rows had."""
        table = self.tables[name]
        seen = [k for k in range(table.levels.n_ordered) if table.weights[k] > 0]
        return int(self.rng.choice(seen))

    def applicant(self, letter: str) -> Applicant:
        """Draw an applicant."""
        return Applicant(f"Applicant {letter}", {name: self.level(name) for name in self.tables})

    def term(self, name: str, code: int) -> float:
        """Return what a level adds to the score, compared with the average."""
        return self.tables[name].scores[code]

    def score(self, applicant: Applicant) -> float:
        """Return the score of an applicant, for whom no line is clipped."""
        score = self.part.intercept + sum(self.term(name, code) for name, code in applicant.codes.items())
        if abs(score) > 0.85 * ALPHA_STAR:
            raise Unclear
        return score

    def change(self, applicant: Applicant) -> tuple[str, int, float]:
        """Draw another level of a feature: the feature, the level, and how far the score moves."""
        name = str(self.rng.choice([*self.tables]))
        code = self.level(name)
        step = self.term(name, code) - self.term(name, applicant.codes[name])
        if abs(step) < 0.35 or abs(self.score(applicant) + step) > 0.85 * ALPHA_STAR:
            raise Unclear
        return name, code, step

    def instead(self, way: Way, applicant: Applicant, name: str, code: int) -> str:
        """Return the effect of another level, compared with the applicant's own."""
        return f"{way.effect(self.term(name, code))} instead of {way.effect(self.term(name, applicant.codes[name]))}"

    def words(self, name: str, code: int) -> str:
        """Return a level in words."""
        return say_level(self.schema.features[name], self.tables[name].levels, code)

    def label(self, name: str) -> str:
        """Return what people call a feature."""
        return self.schema.features[name].title(name)

    def card(self, way: Way, applicant: Applicant, *, total: bool) -> dict[str, Any]:
        """Return an applicant as the page shows him."""
        rows = [[self.label(n), self.words(n, c), way.effect(self.term(n, c))] for n, c in applicant.codes.items()]
        shown = way.shown(self.score(applicant)) if total else None
        return {"name": applicant.name, "start": way.shown(self.part.intercept), "rows": rows, "total": shown}

    def numbers(self, right: float, naive: float) -> Answer:
        """Return four probabilities to choose from, far enough apart."""
        taken = [right]
        others = [naive, *(right + step for step in self.rng.permutation([-0.21, -0.14, -0.07, 0.07, 0.14, 0.21]))]
        for other in others:
            inside = min(max(other, 0.01), 0.99)
            if len(taken) < 4 and all(abs(inside - known) >= APART for known in taken):
                taken.append(inside)
        if len(taken) < 4:
            raise Unclear
        choices = sorted(taken)
        near = min(range(4), key=lambda k: abs(choices[k] - naive))
        return Answer(tuple(map(percent, choices)), choices.index(right), near)


# ---- requests; each gives a text, applicants, and an answer for a way


Asked = tuple[str, list[dict[str, Any]], Answer]


def _total(maker: Maker, anna: Applicant, _: Applicant) -> Callable[[Way], Asked]:
    start, score = maker.part.intercept, maker.score(anna)

    def ask(way: Way) -> Asked:
        right = way.probability(score)
        naive = way.probability(start) + way.naive(start, score - start)
        text = f"What is the probability that {anna.name} {_verb(maker)}?"
        return text, [maker.card(way, anna, total=False)], maker.numbers(right, naive)

    return ask


def _change(maker: Maker, anna: Applicant, _: Applicant) -> Callable[[Way], Asked]:
    score, (name, code, step) = maker.score(anna), maker.change(anna)

    def ask(way: Way) -> Asked:
        now = way.probability(score)
        text = (
            f"The probability that {anna.name} {_verb(maker)} is {percent(now)}. {maker.label(name)} changes to "
            f"“{maker.words(name, code)}” (effect {maker.instead(way, anna, name, code)}). "
            "What is the probability then?"
        )
        naive = now + way.naive(score, step)
        return text, [maker.card(way, anna, total=True)], maker.numbers(way.probability(score + step), naive)

    return ask


def _riskier(maker: Maker, anna: Applicant, ben: Applicant) -> Callable[[Way], Asked]:
    scores = (maker.score(anna), maker.score(ben))
    if abs(scores[0] - scores[1]) < 0.5:
        raise Unclear

    def ask(way: Way) -> Asked:
        right = int(scores[1] > scores[0])
        text = f"For which of the two is it more probable that the applicant {_verb(maker)}?"
        cards = [maker.card(way, one, total=False) for one in (anna, ben)]
        return text, cards, Answer((anna.name, ben.name), right, right)

    return ask


def _better_change(maker: Maker, anna: Applicant, _: Applicant) -> Callable[[Way], Asked]:
    (first, one, down), (second, two, further) = maker.change(anna), maker.change(anna)
    if first == second or max(down, further) > -0.35 or abs(down - further) < 0.3:
        raise Unclear

    def ask(way: Way) -> Asked:
        options = [
            f"{maker.label(name)}: “{maker.words(name, code)}” (effect {maker.instead(way, anna, name, code)})"
            for name, code in ((first, one), (second, two))
        ]
        right = int(further < down)
        text = f"Which of the two changes lowers the probability that {anna.name} {_verb(maker)} more?"
        return text, [maker.card(way, anna, total=True)], Answer(tuple(options), right, right)

    return ask


def _contribution(maker: Maker, anna: Applicant, _: Applicant) -> Callable[[Way], Asked]:
    name = str(maker.rng.choice([*maker.tables]))
    score, part = maker.score(anna), maker.term(name, anna.codes[name])
    if part < 0.35:
        raise Unclear

    def ask(way: Way) -> Asked:
        right, naive = way.moved(score - part, part), way.naive(score - part, part)
        answer = maker.numbers(right, naive)
        text = (
            f"By how many percentage points does “{maker.label(name)}” raise the probability that {anna.name} "
            f"{_verb(maker)}, compared with an average value?"
        )
        choices = tuple(f"{choice[:-1]} point{'s' * (choice != '1%')}" for choice in answer.choices)
        return text, [maker.card(way, anna, total=True)], Answer(choices, answer.right, answer.naive)

    return ask


def _same_change(maker: Maker, anna: Applicant, ben: Applicant) -> Callable[[Way], Asked]:
    name, code, step = maker.change(anna)
    scores = (maker.score(anna), maker.score(ben))
    moved = [abs(WAYS[0].moved(score, step)) for score in scores]
    if anna.codes[name] != ben.codes[name] or abs(moved[0] - moved[1]) < 0.04:
        raise Unclear

    def ask(way: Way) -> Asked:
        text = (
            f"For both, {maker.label(name)} changes to “{maker.words(name, code)}” (effect "
            f"{maker.instead(way, anna, name, code)}). For whom does the probability change more?"
        )
        choices = (anna.name, ben.name, "The same for both")
        right = 2 if way.unit == "probability" else int(moved[1] > moved[0])
        return text, [maker.card(way, one, total=True) for one in (anna, ben)], Answer(choices, right, 2)

    return ask


def _verb(maker: Maker) -> str:
    return maker.outcome.removeprefix("the applicant ")


KINDS = {
    "total": _total,
    "change": _change,
    "riskier": _riskier,
    "better_change": _better_change,
    "contribution": _contribution,
    "same_change": _same_change,
}


# ---- the study


def make_study(form: RiskForm, seed: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the page asks, and the key: the right choice, and the naive one, of every question and way.

    There are two sets of six questions, one of each kind. Form A asks set 1 in log odds and then set 2 in probability;
    form B asks set 1 in probability and then set 2 in log odds. So each way comes first for half of the people, and
    each question is asked both ways.
    """
    maker = Maker(form, np.random.default_rng(seed))
    questions: dict[str, dict[str, Any]] = {unit: {} for unit in UNITS}
    key: dict[str, dict[str, Any]] = {unit: {} for unit in UNITS}
    sets: list[list[str]] = []
    for number in (1, 2):
        sets.append([f"{number}-{kind}" for kind in KINDS])
        for kind, name in zip(KINDS, sets[-1], strict=True):
            for way, (text, cards, answer) in zip(WAYS, _ask(maker, kind), strict=True):
                questions[way.unit][name] = {"text": text, "applicants": cards, "choices": answer.choices}
                key[way.unit][name] = {"kind": kind, "right": answer.right, "naive": answer.naive}
    forms = {"A": _blocks(sets, UNITS), "B": _blocks(sets, UNITS[::-1])}
    payload = {"title": "Questions about loans", "outcome": maker.outcome, "forms": forms, "questions": questions}
    study = hashlib.sha256(msgspec.json.encode(payload)).hexdigest()[:16]
    return {"study": study, **payload}, {"study": study, "forms": forms, "key": key}


def _blocks(sets: Sequence[Sequence[str]], units: Sequence[str]) -> list[dict[str, Any]]:
    return [{"unit": unit, "questions": list(names)} for unit, names in zip(units, sets, strict=True)]


def _ask(maker: Maker, kind: str) -> list[Asked]:
    for _ in range(TRIES):
        try:
            ask = KINDS[kind](maker, maker.applicant("A"), maker.applicant("B"))
            return [ask(way) for way in WAYS]
        except Unclear:
            continue
    raise DataError(
        f"user_study: the model has no clear question of the kind {kind!r}. Choose one with larger effects."
    )


def build(form: RiskForm, page: str | Path, key: str | Path, seed: int = 0) -> str:
    """Write the questionnaire and, next to it, the answer key, which analysts keep; return the study's name."""
    payload, answers = make_study(form, seed)
    text = msgspec.json.encode(payload).decode().replace("<", "\\u003c")  # as in plainrisk.report
    head, mark, tail = _template().partition('<script type="application/json" id="payload">')
    title = f"<title>{html.escape(payload['title'])}</title>"
    write_text(page, head.replace("<title>Questions</title>", title) + mark + text + tail)
    write_text(key, msgspec.json.format(msgspec.json.encode(answers), indent=1).decode() + "\n")
    return str(payload["study"])


def _template() -> str:
    return files("plainrisk_lab.user_study").joinpath("page.html").read_text(encoding="utf-8")
