"""The cheapest changes that bring an applicant to a target, by exact search.

The risk rises with the score of every part, so a state of the search is two numbers: its cost and its score so far. The
Pareto front of the two (see `pareto`) covers all combinations of moves and is exact for every link and pool. An answer
is returned only if the changed row, scored again, reaches the target.

Further answers come from a best-first search over the features that stay fixed: each answer leaves out at least one
feature of every answer before it, and is the cheapest that does.
"""

from __future__ import annotations

import heapq
import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from plainrisk.data.frame import Frame, Origin
from plainrisk.decision import refused
from plainrisk.errors import DataError
from plainrisk.explain.explanation import RowsResult
from plainrisk.explain.moves import feature_moves
from plainrisk.explain.options import Adverse, Value, WhatIfOptions, WhatIfsOptions, takes
from plainrisk.explain.pareto import Applicant, Choice, FormFront, FormFronts, Problem, moves_of
from plainrisk.explain.reasons import no_cutoff
from plainrisk.form import Part, RiskForm
from plainrisk.schema import label_of
from plainrisk.text import visible

__all__ = ["Answer", "Change", "Planner", "WhatIf", "WhatIfs", "plain_values", "planner", "what_if", "what_ifs"]


@dataclass(frozen=True)
class Change:
    """One feature moved.

    Attributes
    ----------
    feature : str
    value, level : what the applicant has
    to_value, to_level : the nearest value in the bin to reach, and the bin
    steps : how many bins away it is
    cost : of the move
    """

    feature: str
    value: Value
    level: str
    to_value: Value
    to_level: str
    steps: int
    cost: float

    def __str__(self) -> str:
        return visible(f"{self.feature}: {_text(self.value)} -> {_text(self.to_value)}")


@dataclass(frozen=True)
class Answer:
    """A set of changes.

    Attributes
    ----------
    changes : empty if nothing needs to change
    risk : the risk of the changed row
    cost : the sum of the costs
    """

    changes: tuple[Change, ...]
    risk: float
    cost: float

    @property
    def features(self) -> tuple[str, ...]:
        """The features that change."""
        return tuple(change.feature for change in self.changes)

    def __str__(self) -> str:
        what = "; ".join(map(str, self.changes)) or "nothing needs to change"
        return f"{what} (risk {self.risk:.4f})"


@dataclass(frozen=True)
class WhatIf:
    """The changes that would bring one applicant to the target.

    Attributes
    ----------
    risk : now
    target : the cut-off to pass
    adverse : "positive" if the risk must fall below the target, "negative" if it must rise to it
    answers : the cheapest, then others that each leave out a feature of every answer before; empty if there is none
    reachable : the best risk the allowed moves can reach, and the cheapest way there
    """

    risk: float
    target: float
    adverse: Adverse
    answers: tuple[Answer, ...]
    reachable: Answer

    @property
    def reached(self) -> bool:
        """Whether an answer was found."""
        return bool(self.answers)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {"reached": self.reached, **asdict(self)}

    def __repr__(self) -> str:
        goal = f"risk {self.risk:.4f}, target {'below' if self.adverse == 'positive' else 'at least'} {self.target:g}"
        if not self.answers:
            return f"{goal}: cannot be reached; the best is {self.reachable}"
        return "\n".join([f"{goal}:", *(f"  {i}. {answer}" for i, answer in enumerate(self.answers, 1))])


@dataclass(frozen=True, repr=False)
class WhatIfs(RowsResult):
    """The changes that would bring each of many applicants to the target.

    Attributes
    ----------
    rows : an entry per applicant
    origin : where the rows came from
    """

    rows: tuple[WhatIf, ...]
    origin: Origin | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> WhatIf:
        return self.rows[row]

    def _headline(self) -> str:
        return (
            f"WhatIfs of {len(self):,} applicants, {sum(w.reached for w in self.rows):,} of whom can reach the target"
        )

    def _plain(self, row: int) -> dict[str, Any]:
        return self.rows[row].to_dict()

    def columns(self) -> dict[str, Any]:
        """Return the table as columns by name."""
        first = [w.answers[0] if w.answers else None for w in self.rows]
        return {
            "risk": [w.risk for w in self.rows],
            "reached": [w.reached for w in self.rows],
            "new_risk": [w.reachable.risk if a is None else a.risk for w, a in zip(self.rows, first, strict=True)],
            "features_changed": [None if a is None else len(a.changes) for a in first],
            "cost": [None if a is None else a.cost for a in first],
            "changes": [None if a is None else "; ".join(map(str, a.changes)) for a in first],
        }


def _text(value: Value) -> str:
    if value is None or value != value:
        return "missing"
    return f"{value:.12g}" if isinstance(value, float) else label_of(value)


# ---- the search

ROUNDING = 1e-12  # of the risk: the front adds up scores with pairs in another order than scoring does


@takes(WhatIfOptions)
def what_if(form: RiskForm, x: Any, *args: Any, **options: Any) -> WhatIf:
    """Return the cheapest changes that bring one row to the target.

    Parameters
    ----------
    form : RiskForm
    x : one row
    {options}
    """
    chosen = WhatIfOptions(*args, **options)
    frame = form.align(x, chosen.columns)
    if frame.n_rows != 1:
        raise DataError(f"what_if answers for one row, not {frame.n_rows:,}. For many rows use what_ifs.")
    return planner(form, chosen).solve(frame)[0]


@takes(WhatIfsOptions)
def what_ifs(form: RiskForm, X: Any, *args: Any, **options: Any) -> WhatIfs:
    """Return the cheapest changes for every row of X.

    Parameters
    ----------
    form : RiskForm
    X : rows
    {options}
    """
    return planner(form, WhatIfsOptions(*args, **options)).solve(X)


def planner(form: RiskForm, options: WhatIfOptions) -> Planner:
    """Return a planner that is ready for many batches of rows."""
    targets = feature_moves(form, options.frozen, options.values, options.min_rows)
    problem = Problem(form, form.schema.worse, targets, options.cost == "features")
    return Planner(problem, options, _cutoff(form, options))


def _cutoff(form: RiskForm, options: WhatIfOptions) -> float:
    """Return the cut-off that answers must pass, the policy's or a stricter one."""
    of_policy = form.schema.policy.cutoff
    cutoff = of_policy if options.target is None else options.target
    if cutoff is None:
        raise no_cutoff(options.verb)
    if of_policy is not None and form.schema.worse * (cutoff - of_policy) > 0:
        raise DataError(
            f"{options.verb}: an applicant who just reaches the target {cutoff:g} is still refused: the cut-off is "
            f"{of_policy:g}. Leave out the target, or ask for more than the cut-off does."
        )
    return float(cutoff)


@dataclass(frozen=True)
class Planner:
    """A form, the moves that are allowed, and the options of the search."""

    problem: Problem
    options: WhatIfOptions
    cutoff: float

    def solve(self, X: Any) -> WhatIfs:
        """Return the answers for every row."""
        frame = self.problem.form.align(X, self.options.columns)
        applicants = _applicants(self.problem, frame)
        return WhatIfs(tuple(_Search(self, applicant).solve() for applicant in applicants), frame.origin)

    def approves(self, risk: Any, slack: float = 0.0) -> Any:
        """Whether a risk, or each of many, is approved; with slack, also if it is refused by no more than that."""
        return ~refused(risk - self.problem.sign * slack, self.cutoff, self.adverse)

    @property
    def adverse(self) -> Adverse:
        """Which outcome is adverse."""
        return self.problem.form.schema.adverse


def _applicants(problem: Problem, frame: Frame) -> Iterator[Applicant]:
    """Read rows for the search."""
    form = problem.form
    risk = form.risk(frame).tolist()
    additive = [part if isinstance(part, Part) else None for part in form.parts]
    terms = [{} if part is None else part.terms(frame, form.schema) for part in additive]
    pairs = [[] if part is None else [pair.codes(frame) for pair in part.pairs] for part in additive]
    atoms = {name: t.atoms.levels.codes(frame, name) for name, t in problem.targets.items()}
    values = {name: plain_values(form, frame, name) for name in form.features}
    for row in range(frame.n_rows):
        yield Applicant(
            risk=risk[row],
            values={name: column[row] for name, column in values.items()},
            terms=[{name: term[row] for name, term in part.items()} for part in terms],
            pair_levels=[[(int(first[row]), int(second[row])) for first, second in part] for part in pairs],
            atoms={name: int(codes[row]) for name, codes in atoms.items()},
        )


def plain_values(form: RiskForm, frame: Frame, name: str) -> list[Value]:
    """Return a column as the form reads it: numbers or labels, with None for missing values."""
    if form.schema.features[name].kind == "categorical":
        column = frame.labels(name)
        labels = [*column.labels, None]
        return [labels[code] for code in column.codes]
    return [None if value != value else value for value in frame.numbers(name).tolist()]


class _Search:
    """One applicant's way to the target."""

    def __init__(self, plan: Planner, applicant: Applicant) -> None:
        self.plan, self.applicant = plan, applicant
        moves = {n: t.moves(applicant.atoms[n], applicant.number(n)) for n, t in plan.problem.targets.items()}
        self.moves = {name: open_moves for name, open_moves in moves.items() if len(open_moves.target)}

    def solve(self) -> WhatIf:
        options, risk = self.plan.options, self.applicant.risk
        if self.plan.approves(risk):
            stay = Answer((), risk, 0.0)
            return WhatIf(risk, self.plan.cutoff, self.plan.adverse, (stay,), stay)
        fronts = self._fronts(frozenset())
        first = self._cheapest(fronts)
        most = min(options.answers, sys.maxsize)
        answers = [] if first is None else list(itertools.islice(self._diverse(first), most))
        return WhatIf(risk, self.plan.cutoff, self.plan.adverse, tuple(answers), self._furthest(fronts))

    def _diverse(self, first: Answer) -> Iterator[Answer]:
        """Yield the cheapest answer, then the cheapest that contains none of the answers before it, and so on."""
        given: list[Answer] = []
        tried = {frozenset[str]()}
        queue = [(self._price(first), 0, frozenset[str](), first)]
        while queue:
            _, _, fixed, answer = heapq.heappop(queue)
            blocking = next((a for a in given if set(a.features) <= set(answer.features)), None)
            if blocking is None:
                yield answer
                given.append(answer)
                blocking = answer
            for name in blocking.features:
                more = fixed | {name}
                if more in tried:
                    continue
                tried.add(more)
                other = self._cheapest(self._fronts(more))
                if other is not None:
                    heapq.heappush(queue, (self._price(other), len(tried), more, other))

    def _price(self, answer: Answer) -> float:
        return answer.cost + self.plan.problem.per_feature * len(answer.changes)

    def _fronts(self, fixed: frozenset[str]) -> list[FormFront]:
        moves = {name: m for name, m in self.moves.items() if name not in fixed}
        return FormFronts(self.plan.problem, self.applicant, moves).build()

    def _cheapest(self, fronts: Sequence[FormFront]) -> Answer | None:
        """Return the cheapest answer, or None if no state reaches the target."""
        best: Answer | None = None
        least = math.inf
        for f in fronts:
            for state in np.flatnonzero(self.plan.approves(f.risk, ROUNDING)).tolist():
                if f.front.cost[state] >= least:
                    break
                answer = self._answer(moves_of(f.front, state))
                # Scoring decides: if it rounds the other way, the next state is tried.
                if self.plan.approves(answer.risk):
                    best, least = answer, f.front.cost[state]
                    break
        return best

    def _furthest(self, fronts: Sequence[FormFront]) -> Answer:
        """Return the cheapest way to the best possible risk."""
        ends = []
        for f in fronts:
            state = int(np.argmax(f.risk == f.risk[-1]))
            ends.append((self.plan.problem.sign * f.risk[-1], f.front.cost[state], f, state))
        _, _, best, state = min(ends, key=lambda entry: entry[:2])
        return self._answer(moves_of(best.front, state))

    def _answer(self, choice: Choice) -> Answer:
        """Return the changes of a choice in the applicant's own values, and the risk by scoring the changed row."""
        changes = []
        for name, target in self.plan.problem.targets.items():
            if name not in choice:
                continue
            atom, number, moves = self.applicant.atoms[name], self.applicant.number(name), self.moves[name]
            at = int(np.flatnonzero(moves.target == choice[name])[0])
            changes.append(
                Change(
                    feature=name,
                    value=self.applicant.values[name],
                    level=target.atoms.levels.labels[atom],
                    to_value=target.concrete(choice[name], number, atom),
                    to_level=target.labels[choice[name]],
                    steps=int(moves.steps[at]),
                    cost=float(moves.price[at]),
                )
            )
        values = {**self.applicant.values, **{change.feature: change.to_value for change in changes}}
        risk = self.plan.problem.form.risk(values)
        return Answer(tuple(changes), float(risk[0]), math.fsum(change.cost for change in changes))
