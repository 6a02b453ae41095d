"""Reasons: what each feature costs the applicant, ranked, in the schema's words, and who is refused.

The *cost* of a feature is what it adds to the probability of the adverse outcome compared with the reference (see
`explain`): the best attainable level, the typical applicant or a given one. `plainrisk.form.ranking.Ranking` defines
how costs become reasons. Only features are named: the effect of a pair is shared between its two features by Shapley's
rule.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from plainrisk._types import Bools, Floats, Index
from plainrisk.data.frame import Frame, Origin
from plainrisk.decision import refused
from plainrisk.errors import DataError, SchemaError, did_you_mean
from plainrisk.explain.atoms import atoms_of
from plainrisk.explain.contributions import Explainer, Pieces, explainer
from plainrisk.explain.explanation import RowsResult, Unit
from plainrisk.explain.options import Adverse, DecideOptions, ExplainOptions, ReasonOptions, takes
from plainrisk.form import Bins, Levels, Part, RiskForm
from plainrisk.form.ranking import LEAST, Ranking
from plainrisk.form.wording import say_level
from plainrisk.schema import REASONS, Feature, Letter, Schema
from plainrisk.tables import text_table
from plainrisk.text import visible
from plainrisk.threads import PIECE_ROWS

__all__ = ["Decisions", "Reasoner", "Reasons", "check_words", "decide", "decider", "reasoner", "reasons"]

KEPT = 8  # reasoners of one form


@dataclass(frozen=True, repr=False)
class Reasons(RowsResult):
    """Ranked reasons against n applicants.

    Attributes
    ----------
    k : how many reasons at most, a further one for inquiries not counted
    reference : what applicants are compared with: "best", "typical" or "row"
    adverse : "positive" if a high probability hurts the applicant
    unit : of the costs, "probability" or "log odds"
    risk : (n,) the predicted probability
    cutoff : by which it is decided who is refused, or None
    refused : (n,) who is refused; None without a cut-off
    candidates, subscales : what can be named, features (or subscales that can not be split), and their subscales
    texts : all words for reasons
    codes : (n, k or k + 1) which candidate each reason is, -1 where there is none
    text_codes : the same, which text
    costs : the same, what it costs the applicant; NaN where there is none
    subscale_costs : the same, what its subscale costs, by which reasons are grouped; None if they are not
    protected : features that are never named
    withheld : (n,) how many protected features cost more than the last reason that is named
    texts_of_letters : what letters say
    origin : where the rows came from
    """

    k: int
    reference: str
    adverse: Adverse
    unit: Unit
    risk: Floats
    cutoff: float | None
    refused: Bools | None
    candidates: tuple[str, ...]
    subscales: tuple[str, ...]
    texts: tuple[str, ...]
    codes: Index
    text_codes: Index
    costs: Floats
    subscale_costs: Floats | None
    protected: tuple[str, ...]
    withheld: Index
    texts_of_letters: Letter
    origin: Origin | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.risk)

    def _headline(self) -> str:
        return f"Reasons against {len(self):,} applicants, at most {self.k}, compared with {self.reference!r}"

    def __repr__(self) -> str:
        columns: dict[str, Any] = {"row": range(len(self)), "risk": self.risk}
        for j, codes in enumerate(self.text_codes[:8].T, 1):
            columns[f"reason {j}"] = [self.texts[c] if c >= 0 else "" for c in codes]
        return text_table(self._headline(), columns)

    def named(self, row: int) -> tuple[str, ...]:
        """Return the features named to one applicant, in order."""
        return tuple(self.candidates[c] for c in self.codes[self._position(row)] if c >= 0)

    def words(self, row: int) -> tuple[str, ...]:
        """Return the reasons given to one applicant, in order."""
        return tuple(self.texts[c] for c in self.text_codes[self._position(row)] if c >= 0)

    def columns(self) -> dict[str, Any]:
        """Return the table as columns by name: reason_1, feature_1, cost_1, ..., with None for absent entries."""
        texts, names = (np.array([*words, None], dtype=object) for words in (self.texts, self.candidates))
        columns: dict[str, Any] = {"risk": self.risk}
        if self.refused is not None:
            columns["decision"] = np.where(self.refused, "refused", "approved").astype(object)
        for j in range(self.codes.shape[1]):
            columns[f"reason_{j + 1}"] = texts[self.text_codes[:, j]]
            columns[f"feature_{j + 1}"] = names[self.codes[:, j]]
            columns[f"cost_{j + 1}"] = np.ascontiguousarray(self.costs[:, j])
        if self.protected:
            columns["withheld"] = self.withheld
        return columns

    def _plain(self, i: int) -> dict[str, Any]:
        slots = [j for j, code in enumerate(self.codes[i]) if code >= 0]
        reasons = [
            {
                "reason": self.texts[self.text_codes[i, j]],
                "feature": self.candidates[self.codes[i, j]],
                "subscale": self.subscales[self.codes[i, j]],
                "cost": float(self.costs[i, j]),
                **({} if self.subscale_costs is None else {"subscale_cost": float(self.subscale_costs[i, j])}),
            }
            for j in slots
        ]
        return {
            "risk": float(self.risk[i]),
            **self._decision(i),
            "reference": self.reference,
            "unit": self.unit,
            "reasons": reasons,
            "withheld": int(self.withheld[i]),
        }

    def _decision(self, i: int) -> dict[str, Any]:
        return {} if self.refused is None else {"decision": "refused" if self.refused[i] else "approved"}

    def letter(self, row: int = 0) -> str:
        """Return the letter to one applicant; only refused applicants get the letter of refusal, with its reasons."""
        if self.refused is None:
            raise DataError(
                "letter: the model has no cut-off, so nobody is refused or approved. Set one: "
                "model.annotate(cutoff=0.25), or plainrisk annotate MODEL --cutoff 0.25."
            )
        texts, words = self.texts_of_letters, self.words(row)
        if not self.refused[self._position(row)]:
            return visible(texts.approved)
        if not words:
            return visible(texts.unexplained)
        lines = "\n".join(f"  {i}. {text}" for i, text in enumerate(words, 1))
        # The comparison first: a reason may contain braces.
        letter = texts.refused.replace("{comparison}", getattr(texts, self.reference)).replace("{reasons}", lines)
        return visible(letter)


@dataclass(frozen=True, repr=False)
class Decisions(Reasons):
    """Who is approved and who is refused, with the reasons against the refused only."""

    cutoff: float
    refused: Bools

    @classmethod
    def of(cls, ranked: Reasons) -> Decisions:
        """Drop the reasons against approved applicants."""
        assert ranked.refused is not None
        refused = ranked.refused[:, None]
        kept: dict[str, Any] = {name: np.where(refused, getattr(ranked, name), -1) for name in ("codes", "text_codes")}
        kept |= {
            "costs": np.where(refused, ranked.costs, np.nan),
            "withheld": np.where(refused[:, 0], ranked.withheld, 0),
        }
        return cls(**{**vars(ranked), **kept})

    def _headline(self) -> str:
        n = int(self.refused.sum())
        return f"Decisions on {len(self):,} applicants by the cut-off {self.cutoff:g}: {n:,} refused"

    def _plain(self, row: int) -> dict[str, Any]:
        return {**super()._plain(row), "cutoff": self.cutoff}


@takes(ReasonOptions)
def reasons(form: RiskForm, X: Any, *args: Any, **options: Any) -> Reasons:
    """Return the reasons against every row of X.

    Parameters
    ----------
    form : RiskForm
    X : rows
    {options}
    """
    return reasoner(form, ReasonOptions(*args, **options)).reasons(X)


@takes(DecideOptions)
def decide(form: RiskForm, X: Any, *args: Any, **options: Any) -> Decisions:
    """Return who of the rows of X is refused, with reasons, and who is approved.

    Parameters
    ----------
    form : RiskForm
    X : rows
    {options}
    """
    return Decisions.of(decider(form, DecideOptions(*args, **options)).reasons(X))


def decider(form: RiskForm, options: DecideOptions) -> Reasoner:
    """Return a reasoner of a model that has a cut-off to decide by, and what the policy compares with."""
    policy = form.schema.policy
    if policy.cutoff is None:
        raise no_cutoff("decide")
    if not isinstance(options.reference, str | None) or options.reference not in (None, policy.reference):
        raise DataError(
            f"decide: the policy compares applicants with {policy.reference!r}. Leave out reference, or change the "
            "policy; reasons() can compare with others."
        )
    return reasoner(form, options)


def no_cutoff(who: str) -> DataError:
    """Return the error of a model that has no cut-off to decide by."""
    return DataError(
        f"{who}: the model has no cut-off to decide by. State policy.cutoff in the schema, or set it: "
        "model.annotate(cutoff=0.25), or plainrisk annotate MODEL --cutoff 0.25."
    )


def reasoner(form: RiskForm, options: ReasonOptions) -> Reasoner:
    """Return a reasoner that can process many batches of rows; the form caches the last few for the next call."""
    if not isinstance(options.reference, str | None) or options.portfolio is not None:
        return _reasoner(form, options)  # rows have no key
    key = tuple(tuple(o) if isinstance(o, list) else o for o in vars(options).values())
    kept: dict[Any, Reasoner] = form.__dict__.setdefault("_reasoners", {})
    prepared = kept.get(key)  # once: another thread may clear them
    if prepared is None:
        prepared = _reasoner(form, options)
        if len(kept) >= KEPT:
            kept.clear()
        kept[key] = prepared
    return prepared


def _reasoner(form: RiskForm, options: ReasonOptions) -> Reasoner:
    policy = form.schema.policy
    asked = ExplainOptions(
        reference=policy.reference if options.reference is None else options.reference,
        portfolio=options.portfolio,
        min_rows=options.min_rows,
    )
    explain = replace(explainer(form, asked), features_only=True)
    return Reasoner(explain, resolve(form, explain, options), options.columns)


def resolve(form: RiskForm, explain: Explainer, options: ReasonOptions) -> Ranking:
    """Return what form, schema and policy determine about reasons and decisions; options may ask for fewer reasons."""
    schema, policy = form.schema, form.schema.policy
    most, k = REASONS if policy.reasons is None else policy.reasons, options.k
    if k is not None and policy.reasons is not None and k > most:
        raise DataError(f"{options.verb}: k = {k}, but the model's policy allows {most} reasons at most.")
    candidates, subscales = _candidates(form, explain)
    protected = np.array([is_protected(form, name) for name in candidates], dtype=bool)
    words, base, by_level = _texts(form, candidates)
    return Ranking(
        comparison=explain.comparison,
        candidates=candidates,
        subscales=subscales,
        words=words,
        base=base,
        by_level=by_level,
        protected=protected,
        inquiries=np.array([c in policy.inquiries for c in candidates], dtype=bool),
        k=max(1, min(most if k is None else int(k), len(candidates))),
        sign=schema.worse,
        by_subscale=policy.order == "subscale",
        cutoff=policy.cutoff,
    )


def check_words(form: RiskForm) -> None:
    """Raise if words for reasons are for levels that the model does not have."""
    _texts(form, form.features)


def _candidates(form: RiskForm, explain: Explainer) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what can be named, in the schema's order, and the first subscale of each."""
    subscales: dict[str, str] = {}
    for subscale, feature in explain.keys:
        subscales.setdefault(subscale if feature is None else feature, subscale)
    position = {name: i for i, name in enumerate(form.schema.features)}
    names = sorted(subscales, key=lambda name: position.get(name, len(position)))
    return tuple(names), tuple(subscales[name] for name in names)


def is_protected(form: RiskForm, name: str) -> bool:
    """Whether a candidate is never named: a protected feature, or a part of trees that reads a protected feature."""
    features = form.schema.features
    return features[name].protected if name in features else form.reads_protected(name)


@dataclass(frozen=True)
class Reasoner:
    """A form with its ranking of reasons; finds the reasons for any number of batches in the same way.

    Attributes
    ----------
    explainer : finds the contributions
    ranking : makes reasons of them
    columns : the names of the columns, for rows that have none
    """

    explainer: Explainer
    ranking: Ranking
    columns: Sequence[str] | None = None

    def reasons(self, X: Any) -> Reasons:
        """Return the reasons against every row."""
        ranking, schema = self.ranking, self.explainer.form.schema
        frame = self.explainer.form.align(X, self.columns)
        n = frame.n_rows
        risk, withheld = np.empty(n), np.zeros(n, dtype=np.intp)
        codes, texts = (np.full((n, ranking.width), -1, dtype=np.intp) for _ in range(2))
        costs, totals = (np.full((n, ranking.width), np.nan) for _ in range(2))
        for start in range(0, n, PIECE_ROWS):
            rows = slice(start, start + PIECE_ROWS)
            block = frame if n <= PIECE_ROWS else frame.take(rows.start, rows.stop)
            explained = Pieces.room(block.n_rows, len(self.explainer.keys))
            try:
                self.explainer.fill(block, explained)
            except DataError:
                self.explainer.form.risk(frame)  # names the row of the data, not of the block
                raise
            risk[rows] = explained.risk
            self._block(block, explained, _Block(codes[rows], texts[rows], costs[rows], totals[rows], withheld[rows]))
        return Reasons(
            k=ranking.k,
            reference=self.explainer.reference.name,
            adverse=schema.adverse,
            unit=self.explainer.unit,
            risk=risk,
            cutoff=ranking.cutoff,
            refused=None if ranking.cutoff is None else refused(risk, ranking.cutoff, schema.adverse),
            candidates=ranking.candidates,
            subscales=ranking.subscales,
            texts=ranking.words,
            codes=codes,
            text_codes=texts,
            costs=costs,
            subscale_costs=totals if ranking.by_subscale else None,
            protected=self._protected,
            withheld=withheld,
            texts_of_letters=schema.policy.letter,
            origin=frame.origin,
        )

    @functools.cached_property
    def _protected(self) -> tuple[str, ...]:
        return tuple(c for c, never in zip(self.ranking.candidates, self.ranking.protected, strict=True) if never)

    def _block(self, frame: Frame, explained: Pieces, out: _Block) -> None:
        """Fill in the reasons of some rows."""
        ranking, k = self.ranking, self.ranking.k
        pieces = ranking.sign * explained.pieces
        cost = _summed(pieces, self._columns)
        if ranking.shared:
            _merge(ranking, cost, _text_codes(ranking, frame, ranking.by_level))
        guarded = cost[:, ranking.protected]
        cost[:, ranking.protected] = 0.0
        chosen, amounts = top(cost, k)
        if ranking.protected.any():
            out.withheld[:] = (guarded > np.fmax(amounts[:, -1:], LEAST)).sum(axis=1)
        totals = None
        if ranking.by_subscale:
            totals = _summed(pieces, self._nameable)[:, self._numbers]
            chosen, amounts = self._group(chosen, amounts, totals)
        out.codes[:, :k], out.costs[:, :k] = chosen, amounts
        if ranking.inquiries.any():
            self._add_inquiry(cost, out)
        at, there = np.maximum(out.codes, 0), out.codes >= 0
        rows = np.arange(len(at))[:, None]
        words = _text_codes(ranking, frame, np.flatnonzero(np.bincount(out.codes[there])).tolist())
        out.texts[:] = np.where(there, words[rows, at], -1)
        if totals is not None:
            out.totals[:] = np.where(there, totals[rows, at], np.nan)

    @functools.cached_property
    def _columns(self) -> list[list[int]]:
        """The columns of an explanation that are each candidate's."""
        names = [subscale if feature is None else feature for subscale, feature in self.explainer.keys]
        return [[j for j, name in enumerate(names) if name == candidate] for candidate in self.ranking.candidates]

    @functools.cached_property
    def _nameable(self) -> list[list[int]]:
        """The columns of an explanation that are each subscale's, without those of protected candidates."""
        candidates = zip(self._columns, self.ranking.protected, strict=True)
        nameable = sorted(j for columns, never in candidates if not never for j in columns)
        subscale_of = [subscale for subscale, _ in self.explainer.keys]
        return [[j for j in nameable if subscale_of[j] == s] for s in dict.fromkeys(self.ranking.subscales)]

    @functools.cached_property
    def _numbers(self) -> Index:
        """The subscale of every candidate."""
        number_of = {name: i for i, name in enumerate(dict.fromkeys(self.ranking.subscales))}
        return np.array([number_of[name] for name in self.ranking.subscales], dtype=np.intp)

    def _group(self, chosen: Index, amounts: Floats, totals: Floats) -> tuple[Index, Floats]:
        """Put the subscale that costs most first; inside it the order is by cost already."""
        at = np.maximum(chosen, 0)
        total = np.where(chosen < 0, -np.inf, np.take_along_axis(totals, at, axis=1))
        by = np.lexsort((self._numbers[at], -total), axis=1)  # stable, so costs stay in order
        return np.take_along_axis(chosen, by, axis=1), np.take_along_axis(amounts, by, axis=1)

    def _add_inquiry(self, cost: Floats, out: _Block) -> None:
        """Name the inquiry that costs most, after the k reasons, where none is named yet."""
        k, inquiries = self.ranking.k, self.ranking.inquiries
        only = np.where(inquiries, cost, 0.0)
        best = only.argmax(axis=1)
        amount = only[np.arange(len(only)), best]
        named = ((out.codes[:, :k] >= 0) & inquiries[out.codes[:, :k]]).any(axis=1)
        add = (amount > LEAST) & ~named
        out.codes[add, k] = best[add]
        out.costs[add, k] = amount[add]


@dataclass(frozen=True)
class _Block:
    """The answers of some rows; views of the whole."""

    codes: Index
    texts: Index
    costs: Floats
    totals: Floats
    withheld: Index


def _summed(pieces: Floats, columns: Sequence[Sequence[int]]) -> Floats:
    """Return sums of some columns, each from left to right; 0 of none."""
    sums = np.zeros((len(pieces), len(columns)))
    filled = [k for k, own in enumerate(columns) if own]
    sums[:, filled] = pieces[:, [columns[k][0] for k in filled]]
    for k in filled:
        for j in columns[k][1:]:
            sums[:, k] += pieces[:, j]
    return sums


def _merge(ranking: Ranking, cost: Floats, words: Index) -> None:
    """Add the costs that have the same words to the first of them in the schema's order."""
    for columns in ranking.shared.values():
        for i, first in enumerate(columns):
            for later in columns[i + 1 :]:
                if ranking.protected[first] or ranking.protected[later]:
                    continue
                same = (words[:, first] == words[:, later]) & (cost[:, first] > 0) & (cost[:, later] > 0)
                cost[:, first] += np.where(same, cost[:, later], 0.0)
                cost[:, later] = np.where(same, 0.0, cost[:, later])


def top(cost: Floats, k: int) -> tuple[Index, Floats]:
    """Return the k largest positive entries of each row and their positions; -1 and NaN if there are fewer.

    Equal entries keep their order, which np.argpartition does not guarantee.
    """
    n = len(cost)
    chosen = np.full((n, k), -1, dtype=np.intp)
    amounts = np.full((n, k), np.nan)
    left = cost.copy()
    rows = np.arange(n)
    for j in range(min(k, cost.shape[1])):
        best = left.argmax(axis=1)
        amount = left[rows, best]
        there = amount > LEAST
        chosen[there, j], amounts[there, j] = best[there], amount[there]
        left[rows, best] = -np.inf
    return chosen, amounts


# ---- words


def _text_codes(ranking: Ranking, frame: Frame, columns: Iterable[int]) -> Index:
    """Return the text of every row and candidate; where levels have words, only these columns know them."""
    codes = np.empty((frame.n_rows, len(ranking.base)), dtype=np.intp)
    codes[:] = ranking.base
    for column in columns:
        if column in ranking.by_level:
            name, levels, texts = ranking.by_level[column]
            codes[:, column] = texts[levels.codes(frame, name)]
    return codes


def _texts(
    form: RiskForm, candidates: Sequence[str]
) -> tuple[tuple[str, ...], Index, dict[int, tuple[str, Levels, Index]]]:
    """Return the words for candidates, which are features or whole subscales: all texts, and which each has."""
    words: dict[str, int] = {}
    base, by_level = [], {}
    levels_of = _levels_of(form)
    for column, name in enumerate(candidates):
        feature = form.schema.features.get(name)
        text = name if feature is None else feature.reason or feature.title(name)
        base.append(words.setdefault(text, len(words)))
        if feature is not None and name in levels_of:
            levels = levels_of[name]
            stated, default = _texts_by_label(name, feature, levels), _default_texts(form.schema, name, levels)
            said = [stated.get(label) or default.get(code, text) for code, label in enumerate(levels.labels)]
            codes = [words.setdefault(text, len(words)) for text in said]
            by_level[column] = (name, levels, np.array(codes, dtype=np.intp))
    return tuple(words), np.array(base, dtype=np.intp), by_level


def _levels_of(form: RiskForm) -> dict[str, Levels]:
    """Return the levels of every feature: of its first shape, or of its atoms where trees or pairs alone read it."""
    levels = {name: s.levels for p in reversed(form.parts) if isinstance(p, Part) for name, s in p.shapes.items()}
    if len(levels) < len(form.features):
        levels = {name: atoms.levels for name, atoms in atoms_of(form).items()} | levels
    return levels


def _default_texts(schema: Schema, name: str, levels: Levels) -> dict[int, str]:
    """Return the words, by level, for special and missing values, for which the text in `reason` would be wrong.

    >>> _default_texts(Schema(features={"debt": {"label": "Debt"}}), "debt", Bins((1.0,), (-9.0,), 0.0))
    {2: 'Debt: code -9', 3: 'Debt is below 0', 4: 'Debt: not given'}
    """
    feature, letter = schema.features[name], schema.policy.letter
    texts = {}
    for code in range(levels.n_ordered, levels.missing + 1):
        value = say_level(feature, levels, code)
        text = letter.missing if code == levels.missing else letter.special
        if isinstance(levels, Bins) and levels.labels[code].startswith("x < "):
            text, value = letter.below, value.removeprefix("below ")
        texts[code] = text.replace("{value}", value).replace("{feature}", feature.title(name))
    return texts


def _texts_by_label(name: str, feature: Feature, levels: Levels) -> dict[str, str]:
    """Return the words by the labels of the model's levels."""
    texts = {}
    for key, text in feature.reasons.items():
        label = f"= {key}" if isinstance(levels, Bins) and f"= {key}" in levels.labels else key
        if label not in levels.labels and (isinstance(levels, Bins) or feature.categories is not None):
            raise SchemaError(
                f"Schema: feature {name!r}: reasons has words for {key!r}, which is no level of the model."
                f"{did_you_mean(label, levels.labels)}"
            )
        texts[label] = text
    return texts
