"""The results of a user study: paired differences between the two ways, with intervals.

Every person answers six questions in each way, so each is their own control. Which set of questions came in which
way, and which way came first, depends on the form, A or B; the mean of the two forms' means is free of both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from scipy import stats

from plainrisk._types import Floats
from plainrisk.errors import DataError
from plainrisk.files import parse_json, read_text

__all__ = ["Analysis", "Difference", "KindResult", "analyze", "people_needed", "read_answers"]

FASTEST = 3.0  # seconds per question in the median: faster answers were not read; stated in the protocol beforehand
AWAY = 0.5  # share of the time with the page hidden, likewise


class Given(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One answer: which choice, and how long it took; `away` are the seconds in which the page was hidden."""

    question: str
    unit: str
    choice: int
    seconds: float
    away: float = 0.0


class AnswerFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the page writes for one person; it holds no name, no date and no address."""

    study: str
    person: str
    form: str
    code: str
    answers: tuple[Given, ...]
    background: dict[str, str] = {}


class Known(msgspec.Struct, frozen=True):
    """The key of one question: its kind, the right choice, and the naive one."""

    kind: str
    right: int
    naive: int


class Key(msgspec.Struct, frozen=True):
    """The key of a study, as `build` writes it."""

    study: str
    forms: dict[str, list[dict[str, Any]]]
    key: dict[str, dict[str, Known]]


@dataclass(frozen=True)
class Difference:
    """Probability less log odds, within people.

    Attributes
    ----------
    log_odds, probability : mean of each way
    difference, low, high : the mean difference with its interval by t
    t : p-value of that mean against 0
    wilcoxon, sign : p-values of the signed-rank test and of the sign test
    """

    log_odds: float
    probability: float
    difference: float
    low: float
    high: float
    t: float
    wilcoxon: float
    sign: float


@dataclass(frozen=True)
class KindResult:
    """Share of right answers to one kind of question, each way, and of naive ones where they are wrong."""

    kind: str
    log_odds: float
    probability: float
    naive_log_odds: float


@dataclass(frozen=True)
class Analysis:
    """What a study found.

    Attributes
    ----------
    people : how many are analyzed, by form
    excluded : how many are not, by reason
    correct : shares of right answers
    seconds : geometric means of the seconds per question; `difference`, `low`, `high` are ratios
    kinds : by kind of question
    level : of the intervals
    """

    people: dict[str, int]
    excluded: dict[str, int]
    correct: Difference
    seconds: Difference
    kinds: tuple[KindResult, ...]
    level: float

    def to_dict(self) -> dict[str, Any]:
        """Return the analysis as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        c, s = self.correct, self.seconds
        people = ", ".join(f"form {form}: {n}" for form, n in self.people.items())
        left_out = ", ".join(f"{n} {reason}" for reason, n in self.excluded.items()) or "nobody"
        lines = [f"{sum(self.people.values())} people ({people}); excluded: {left_out}", ""]
        lines += [f"{'':30}{'log odds':>10}{'probability':>13}   difference, {self.level:.0%} interval"]
        moved = f"{100 * c.difference:+.1f} points ({100 * c.low:+.1f} to {100 * c.high:+.1f})"
        lines += [f"{'right answers':30}{c.log_odds:>10.1%}{c.probability:>13.1%}   {moved}"]
        ratio = f"times {s.difference:.2f} ({s.low:.2f} to {s.high:.2f})"
        lines += [f"{'seconds per question':30}{s.log_odds:>10.1f}{s.probability:>13.1f}   {ratio}", ""]
        for what, found in (("right answers", c), ("seconds", s)):
            each = {"t": found.t, "signed ranks": found.wilcoxon, "signs": found.sign}
            tests = ", ".join(f"{name} {p:.4f}" if p >= 1e-4 else f"{name} < 0.0001" for name, p in each.items())
            lines.append(f"p-values, {what + ':':16}{tests}")
        lines += ["", f"{'right, by kind of question':30}{'log odds':>10}{'probability':>13}{'adds log odds':>16}"]
        for kind in self.kinds:
            naive = "" if math.isnan(kind.naive_log_odds) else f"{kind.naive_log_odds:.0%}"
            lines.append(f"{kind.kind.replace('_', ' '):30}{kind.log_odds:>10.0%}{kind.probability:>13.0%}{naive:>16}")
        return "\n".join(lines)


def read_answers(paths: Iterable[str | Path]) -> list[AnswerFile]:
    """Read the files that people sent; a file of another kind is an error with its name."""
    files = []
    for path in paths:
        text = read_text(path, limit=2**20, error=DataError)
        files.append(parse_json(text, AnswerFile, path, DataError, "a file of answers"))
    return files


def analyze(answers: Sequence[AnswerFile], key: Key | Mapping[str, Any], level: float = 0.95) -> Analysis:
    """Compare the two ways within people.

    Parameters
    ----------
    answers : the result of `read_answers`
    key : the answer key that `build` wrote next to the page
    level : of the intervals
    """
    answer_key = key if isinstance(key, Key) else msgspec.convert(key, Key)
    kept, excluded = _exclude(answers, answer_key)
    if min((sum(one.form == form for one in kept) for form in answer_key.forms), default=0) < 2:
        raise DataError("user_study: at least two people are needed for each form, after exclusions.")
    forms = np.array([one.form for one in kept])
    units = ("log_odds", "probability")
    right = {unit: np.array([_share_right(one, answer_key, unit) for one in kept]) for unit in units}
    times = {unit: np.array([_log_seconds(one, unit) for one in kept]) for unit in units}
    return Analysis(
        people={form: int((forms == form).sum()) for form in sorted(answer_key.forms)},
        excluded=dict(excluded),
        correct=_difference(right["log_odds"], right["probability"], forms, level),
        seconds=_ratio(_difference(times["log_odds"], times["probability"], forms, level)),
        kinds=tuple(_by_kind(kept, answer_key)),
        level=level,
    )


def _exclude(answers: Sequence[AnswerFile], key: Key) -> tuple[list[AnswerFile], Counter[str]]:
    """Apply the rules of the protocol, in its order."""
    kept, excluded, people = [], Counter[str](), set[str]()
    for one in answers:
        if one.study != key.study:
            raise DataError(f"user_study: a file of answers is of the study {one.study!r}, the key of {key.study!r}.")
        wanted = [(name, block["unit"]) for block in key.forms.get(one.form, ()) for name in block["questions"]]
        if one.person in people:
            excluded["sent twice"] += 1
        elif not wanted or [(a.question, a.unit) for a in one.answers] != wanted:
            excluded["not finished"] += 1
        elif float(np.median([a.seconds for a in one.answers])) < FASTEST:
            excluded["too fast to have read"] += 1
        elif sum(a.away for a in one.answers) > AWAY * sum(a.seconds for a in one.answers):
            excluded["away for half of the time"] += 1
        else:
            kept.append(one)
        people.add(one.person)
    return kept, excluded


def _share_right(one: AnswerFile, key: Key, unit: str) -> float:
    in_unit = [a for a in one.answers if a.unit == unit]
    return float(np.mean([a.choice == key.key[unit][a.question].right for a in in_unit]))


def _log_seconds(one: AnswerFile, unit: str) -> float:
    return float(np.mean([math.log(max(a.seconds - a.away, 0.1)) for a in one.answers if a.unit == unit]))


def _difference(log_odds: Floats, probability: Floats, forms: np.ndarray[Any, Any], level: float) -> Difference:
    """Return the mean of the forms' mean differences, with the pooled variance within forms."""
    gaps, names = probability - log_odds, np.unique(forms)
    groups = [gaps[forms == name] for name in names]
    free = len(gaps) - len(groups)
    variance = sum(((group - group.mean()) ** 2).sum() for group in groups) / free
    estimate = float(np.mean([group.mean() for group in groups]))
    error = math.sqrt(variance * sum(1 / len(group) for group in groups)) / len(groups)
    reach = float(stats.t.ppf((1 + level) / 2, free)) * error
    p = 1.0 if estimate == 0 else 2 * float(stats.t.sf(abs(estimate) / error, free)) if error > 0 else 0.0
    # What the sets and the order do is taken away first: half the difference between the forms, from either.
    centered = np.concatenate([group - group.mean() + estimate for group in groups]).round(12)
    moved = centered[centered != 0]
    ranks = float(stats.wilcoxon(moved).pvalue) if len(moved) else 1.0
    signs = float(stats.binomtest(int((moved > 0).sum()), len(moved)).pvalue) if len(moved) else 1.0
    one, other = (float(np.mean([x[forms == name].mean() for name in names])) for x in (log_odds, probability))
    return Difference(one, other, estimate, estimate - reach, estimate + reach, p, ranks, signs)


def _ratio(logs: Difference) -> Difference:
    figures = {name: math.exp(getattr(logs, name)) for name in ("log_odds", "probability", "difference", "low", "high")}
    return replace(logs, **figures)


def _by_kind(kept: Sequence[AnswerFile], key: Key) -> Iterable[KindResult]:
    given = [(a, key.key[a.unit][a.question]) for one in kept for a in one.answers]
    for kind in dict.fromkeys(known.kind for known in key.key["log_odds"].values()):
        of_kind = [(a, known) for a, known in given if known.kind == kind]
        shares = {
            unit: float(np.mean([a.choice == known.right for a, known in of_kind if a.unit == unit]))
            for unit in key.key
        }
        naive = [a.choice == known.naive for a, known in of_kind if a.unit == "log_odds" and known.naive != known.right]
        yield KindResult(kind, shares["log_odds"], shares["probability"], float(np.mean(naive)) if naive else math.nan)


def people_needed(difference: float, spread: float, power: float = 0.9, level: float = 0.95) -> int:
    """Return how many people find a mean difference with this power, by the t test of paired differences.

    Parameters
    ----------
    difference : the smallest difference of the shares of right answers worth finding
    spread : the standard deviation of that difference between people

    Examples
    --------
    >>> people_needed(0.10, 0.25, power=0.9)
    68
    """
    if not (difference > 0 and spread > 0 and 0 < power < 1 and 0 < level < 1):
        raise DataError("user_study: difference and spread must be above 0, power and level between 0 and 1.")
    for n in range(4, 1_000_000):
        limit = stats.t.ppf((1 + level) / 2, n - 2)
        if stats.nct.sf(limit, n - 2, math.sqrt(n) * difference / spread) >= power:
            return n + n % 2  # as many for each form
    raise DataError("user_study: more than a million people would be needed.")
