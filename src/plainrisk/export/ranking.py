"""From costs to reasons as steps of a program, following `plainrisk.form.ranking.Ranking`.

For each reason in turn, the largest cost is found and masked for the next, so the number of steps grows with the number
of candidates, not with its square. Many candidates are compared in groups of `GROUP`, then the groups' largest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from plainrisk.export.expression import Call, Expr, If, Name, Number, Output, Position, Table, numbers
from plainrisk.form.ranking import LEAST, Ranking

__all__ = ["add_ranking", "first_largest"]

GROUP = 32  # values of one comparison; SQLite takes 100 arguments, and PMML nests one if in the other
NONE, ZERO, ONE = Number(-1.0), Number(0.0), Number(1.0)

Add = Callable[[str, Expr, str], Name]  # adds a step (name, value, note)


def add_ranking(
    add: Add, ranking: Ranking, risk: Name, costs: Sequence[Name], words: Sequence[Name], totals: Sequence[Name]
) -> list[Output]:
    """Add the steps for the decision, the reasons and the withheld features, and return the outputs.

    Parameters
    ----------
    costs, words : of every candidate, its cost and the number of its text
    totals : what each subscale of the candidates costs
    """
    return _Slots(add, ranking, costs, words, totals).outputs(risk)


def first_largest(add: Add, id: str, values: Sequence[Name]) -> tuple[Name, Name]:
    """Add the steps of the largest value, and of the index of the first that is as large; return both."""
    if len(values) <= GROUP:
        largest = add(id, Call("max", tuple(values)), "")
        return largest, add(f"{id}_i", Position(largest, tuple(values)), "")
    groups = [tuple(values[n : n + GROUP]) for n in range(0, len(values), GROUP)]
    tops = [add(f"{id}_{n}", Call("max", group), "") for n, group in enumerate(groups)]
    largest, first = first_largest(add, f"{id}_g", tops)
    inside = tuple(add(f"{id}_{n}_i", Position(largest, group) + n * GROUP, "") for n, group in enumerate(groups))
    return largest, add(f"{id}_i", Table(first, inside), "")


class _Slots:
    def __init__(
        self, add: Add, ranking: Ranking, costs: Sequence[Name], words: Sequence[Name], totals: Sequence[Name]
    ) -> None:
        self.add, self.ranking, self.words, self.totals = add, ranking, words, totals
        self.costs = costs
        # Protected candidates take no part.
        self.kept = np.flatnonzero(~ranking.protected).tolist()

    def outputs(self, risk: Name) -> list[Output]:
        outputs = self._decision(risk)
        slots = self._chosen()
        withheld = self._withheld(slots)
        if self.ranking.by_subscale and self.ranking.k > 1:
            slots = self._grouped(slots)
        if self.ranking.inquiries.any():
            slots.append(self._inquiry(slots))
        names, words = tuple(self.ranking.candidates[j] for j in self.kept), self.ranking.sayable
        for r, (at, cost) in enumerate(slots, 1):
            text = self._text(r, at)
            outputs.append(Output(f"reason_{r}", text.id, f"reason {r}", words, text.id))
            outputs.append(Output(f"reason_feature_{r}", at.id, f"feature of reason {r}", names or ("",), at.id))
            outputs.append(Output(f"cost_{r}", cost.id, f"cost of reason {r}", there=at.id))
        return [*outputs, Output("withheld", withheld.id, "protected features that cost more than the reasons")]

    def _decision(self, risk: Name) -> list[Output]:
        cutoff = self.ranking.cutoff
        if cutoff is None:
            return []
        is_refused = risk >= cutoff if self.ranking.sign > 0 else risk < cutoff
        step = self.add("refused", If(is_refused, ONE, ZERO), "1 if refused")
        return [Output("decision", step.id, "decision", ("approved", "refused"))]

    # ---- the largest costs

    def _chosen(self) -> list[tuple[Name, Name]]:
        """The k largest costs: for each, the position of its candidate, or -1, and the cost."""
        left = [self.costs[j] for j in self.kept]
        chosen = []
        for r in range(1, self.ranking.k + 1):
            if r > len(left):
                chosen.append((self.add(f"f{r}", NONE, ""), self.add(f"a{r}", NONE, "")))
                continue
            largest, position = first_largest(self.add, f"a{r}", left)
            chosen.append((self._if_any(f"f{r}", largest, position), largest))
            if r < min(self.ranking.k, len(left)):
                left = [self.add(f"m{r}_{j}", If(position.equals(j), NONE, cost), "") for j, cost in enumerate(left)]
        return chosen

    def _if_any(self, id: str, cost: Name, position: Expr) -> Name:
        return self.add(id, If(cost > LEAST, position, NONE), "")

    def _text(self, r: int, at: Name) -> Name:
        words = tuple(self.words[j] for j in self.kept) or (NONE,)
        return self.add(f"w{r}", If(at < 0.0, NONE, Table(at, words)), f"words of reason {r}")

    def _withheld(self, slots: Sequence[tuple[Name, Name]]) -> Name:
        """The number of protected candidates that cost more than the last of the k, or anything if there are fewer."""
        last = self.add("bar", Call("max", (slots[-1][1], Number(LEAST))), "the cost of the last reason")
        count: Expr = ZERO
        for n, j in enumerate(np.flatnonzero(self.ranking.protected).tolist(), 1):
            count = count + self.add(f"h{n}", If(self.costs[j] > last, ONE, ZERO), "")
            if n % GROUP == 0:
                # A step: engines limit the depth of an expression.
                count = self.add(f"h{n}_sum", count, "")
        return self.add("withheld", count, "")

    # ---- the further reason

    def _inquiry(self, slots: Sequence[tuple[Name, Name]]) -> tuple[Name, Name]:
        """The inquiry with the largest cost, where no reason is an inquiry."""
        about = [n for n, j in enumerate(self.kept) if self.ranking.inquiries[j]]
        if not about:
            return self.add("fi", NONE, ""), self.add("ai", NONE, "")
        largest, position = first_largest(self.add, "ai", [self.costs[self.kept[n]] for n in about])
        at = self._if_any("ni", largest, Table(position, numbers(about)))
        flags = numbers(n in about for n in range(len(self.kept)))
        named: Expr = ZERO
        for r, (slot, _) in enumerate(slots, 1):
            named = self.add(f"ni{r}", named + If(slot < 0.0, ZERO, Table(slot, flags)), "")
        return self.add("fi", If(named > 0.0, NONE, at), "a further reason"), largest

    # ---- by subscale

    def _grouped(self, slots: Sequence[tuple[Name, Name]]) -> list[tuple[Name, Name]]:
        """Sort the reasons by the cost of their subscales; slots without a reason stay last."""
        number = {name: n for n, name in enumerate(dict.fromkeys(self.ranking.subscales))}
        groups = numbers(number[self.ranking.subscales[j]] for j in self.kept) or (ZERO,)
        group, total = [], []
        for r, (at, _) in enumerate(slots, 1):
            empty = at < 0.0
            group.append(self.add(f"g{r}", If(empty, ZERO, Table(at, groups)), ""))
            far = If(empty, Number(-1e300), Table(group[-1], tuple(self.totals)))
            total.append(self.add(f"t{r}", far, f"what the subscale of reason {r} costs"))
        places = []
        for r in range(len(slots)):
            place: Expr = ZERO
            for s in range(len(slots)):
                if s != r:
                    place = place + If(_precedes(s, r, total, group), ONE, ZERO)
            places.append(self.add(f"p{r + 1}", place, ""))
        return [
            (self._at_place(f"of{r + 1}", r, places, [at for at, _ in slots]),
             self._at_place(f"oa{r + 1}", r, places, [cost for _, cost in slots]))
            for r in range(len(slots))
        ]  # fmt: skip

    def _at_place(self, id: str, r: int, places: Sequence[Name], values: Sequence[Name]) -> Name:
        value_there: Expr = values[-1]
        for place, value in reversed(list(zip(places[:-1], values, strict=False))):
            value_there = If(place.equals(r), value, value_there)
        return self.add(id, value_there, "")


def _precedes(s: int, r: int, total: Sequence[Name], group: Sequence[Name]) -> Expr:
    """The condition that slot s precedes slot r: larger total, then lower group, then lower slot."""
    lower = group[s] <= group[r] if s < r else group[s] < group[r]
    return (total[s] > total[r]) | (total[s].equals(total[r]) & lower)
