"""Reasons for a refusal: what each feature cost the applicant, ranked, in the schema's words.

A feature's *loss* is what it adds to the risk compared with the reference (see `explain`): the best attainable
level, the typical applicant or a given one. The reasons are the k largest losses that are positive. They are told
subscale by subscale, the subscale that cost most first, the features inside by their loss. Only features are named:
what a pair of features adds is shared between the two by Shapley's rule.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plainrisk._types import Bools, Floats, Index
from plainrisk.data.frame import Frame
from plainrisk.errors import DataError, SchemaError, did_you_mean
from plainrisk.explain.atoms import atoms_of
from plainrisk.explain.contributions import Explainer, explainer
from plainrisk.explain.explanation import Explanation, RowsResult, Unit, text_table
from plainrisk.explain.options import Adverse, ExplainOptions, ReasonOptions, check_features, takes
from plainrisk.form import Bins, Levels, Part, RiskForm
from plainrisk.schema import Feature
from plainrisk.text import visible
from plainrisk.threads import PIECE_ROWS

__all__ = ["Reasoner", "Reasons", "reasoner", "reasons"]

NOTHING = 1e-12  # a loss up to this is rounding, not a reason

KEPT = 8  # reasoners of one form

_COMPARED = {
    "best": "the best levels there are",
    "typical": "the average application",
    "row": "the application it was compared with",
}


@dataclass(frozen=True, repr=False)
class Reasons(RowsResult):
    """Ranked reasons against n applicants.

    Attributes
    ----------
    k : how many reasons at most, a further one for inquiries not counted
    reference : what applicants are compared with: "best", "typical" or "row"
    adverse : "positive" if a high probability hurts the applicant
    unit : of the losses, "probability" or "log odds"
    risk : (n,) the predicted probability
    candidates, subscales : what can be named, features (or subscales that can not be split), and their subscales
    texts : all words for reasons
    codes : (n, k or k + 1) which candidate each reason is, -1 where there is none
    text_codes : the same, which text
    lost : the same, what it cost the applicant; NaN where there is none
    barred : features that are never named
    withheld : (n,) how many barred features would have been among the k
    """

    k: int
    reference: str
    adverse: Adverse
    unit: Unit
    risk: Floats
    candidates: tuple[str, ...]
    subscales: tuple[str, ...]
    texts: tuple[str, ...]
    codes: Index
    text_codes: Index
    lost: Floats
    barred: tuple[str, ...]
    withheld: Index

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
        """Return the table as columns by name: reason_1, feature_1, lost_1, ..., with None where there is none."""
        texts, names = (np.array([*words, None], dtype=object) for words in (self.texts, self.candidates))
        columns: dict[str, Any] = {"risk": self.risk}
        for j in range(self.codes.shape[1]):
            columns[f"reason_{j + 1}"] = texts[self.text_codes[:, j]]
            columns[f"feature_{j + 1}"] = names[self.codes[:, j]]
            columns[f"lost_{j + 1}"] = np.ascontiguousarray(self.lost[:, j])
        if self.barred:
            columns["withheld"] = self.withheld
        return columns

    def _plain(self, i: int) -> dict[str, Any]:
        return {
            "risk": float(self.risk[i]),
            "reference": self.reference,
            "unit": self.unit,
            "reasons": [
                {
                    "reason": self.texts[text],
                    "feature": self.candidates[code],
                    "subscale": self.subscales[code],
                    "lost": float(amount),
                }
                for code, text, amount in zip(self.codes[i], self.text_codes[i], self.lost[i], strict=True)
                if code >= 0
            ],
            "barred": list(self.barred),
            "withheld": int(self.withheld[i]),
        }

    def letter(self, row: int = 0) -> str:
        """Return the reasons against one applicant as a short letter."""
        words = self.words(row)
        if not words:
            return f"Compared with {_COMPARED[self.reference]}, nothing in your application counts against it.\n"
        head = "We are sorry that we cannot approve your application. "
        one = len(words) == 1
        head += "The principal reason for this decision is:" if one else "The principal reasons for this decision are:"
        lines = [f"  {i}. {text}" for i, text in enumerate(words, 1)]
        tail = f"Each was found by comparing your application with {_COMPARED[self.reference]}."
        return visible("\n".join([head, "", *lines, "", tail.replace("Each", "It") if one else tail]) + "\n")


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


def reasoner(form: RiskForm, options: ReasonOptions) -> Reasoner:
    """Return a reasoner that is ready for many batches of rows; the form keeps the last few for the next call."""
    options = options.of(form.schema)
    if not isinstance(options.reference, str) or options.portfolio is not None:
        return _reasoner(form, options)  # rows have no key
    each = vars(options).values()
    key = tuple(tuple(map(str, o)) if isinstance(o, Iterable) and not isinstance(o, str) else o for o in each)
    kept: dict[Any, Reasoner] = form.__dict__.setdefault("_reasoners", {})
    found = kept.get(key)  # once: another thread may clear them
    if found is None:
        found = _reasoner(form, options)
        if len(kept) >= KEPT:
            kept.clear()
        kept[key] = found
    return found


def _reasoner(form: RiskForm, options: ReasonOptions) -> Reasoner:
    check_features(form.schema.features, barred=options.barred, inquiries=options.inquiries)
    shared = ("reference", "portfolio", "split", "adverse", "min_rows")
    explain = explainer(form, ExplainOptions(**{name: getattr(options, name) for name in shared}))
    explain = replace(explain, features_only=True)
    candidates, subscales = _candidates(form, explain)
    return Reasoner(
        explainer=explain,
        options=options,
        candidates=candidates,
        subscales=subscales,
        texts=texts_of(form, candidates),
        barred=np.array([c in options.barred for c in candidates], dtype=bool),
        asked=np.array([c in options.inquiries for c in candidates], dtype=bool),
    )


def _candidates(form: RiskForm, explain: Explainer) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what can be named, in the schema's order, and the first subscale of each."""
    subscales: dict[str, str] = {}
    for subscale, feature in explain.keys:
        subscales.setdefault(subscale if feature is None else feature, subscale)
    position = {name: i for i, name in enumerate(form.schema.features)}
    names = sorted(subscales, key=lambda name: position.get(name, len(position)))
    return tuple(names), tuple(subscales[name] for name in names)


@dataclass(frozen=True)
class Reasoner:
    """A form and a rule; finds the reasons of any number of batches alike.

    Attributes
    ----------
    candidates, subscales : what can be named, in the schema's order, and the subscale of each
    barred, asked : (candidates,) those never to be named, and those about inquiries
    """

    explainer: Explainer
    options: ReasonOptions
    candidates: tuple[str, ...]
    subscales: tuple[str, ...]
    texts: Texts
    barred: Bools
    asked: Bools

    @property
    def width(self) -> int:
        """How many reasons there may be."""
        return self.most + bool(self.options.inquiries)

    @property
    def most(self) -> int:
        """The largest number of reasons but one for inquiries: k, or as many as can be named."""
        return max(1, min(int(self.options.k), len(self.candidates)))

    @functools.cached_property
    def _never_named(self) -> tuple[str, ...]:
        return tuple(c for c, out in zip(self.candidates, self.barred, strict=True) if out)

    def reasons(self, X: Any) -> Reasons:
        """Return the reasons against every row."""
        frame = self.explainer.form.align(X, self.options.columns)
        n = frame.n_rows
        risk, withheld = np.empty(n), np.zeros(n, dtype=np.intp)
        codes, texts = (np.full((n, self.width), -1, dtype=np.intp) for _ in range(2))
        lost = np.full((n, self.width), np.nan)
        for start in range(0, n, PIECE_ROWS):
            rows = slice(start, start + PIECE_ROWS)
            block = frame if n <= PIECE_ROWS else frame.take(rows.start, rows.stop)
            try:
                explained = self.explainer.explain(block)
            except DataError:
                self.explainer.form.risk(frame)  # names the row of the data, not of the block
                raise
            risk[rows] = explained.risk
            self._block(block, explained, codes[rows], texts[rows], lost[rows], withheld[rows])
        return Reasons(
            k=self.most,
            reference=self.explainer.reference.name,
            adverse=self.options.adverse or "positive",
            unit=self.explainer.unit,
            risk=risk,
            candidates=self.candidates,
            subscales=self.subscales,
            texts=self.texts.words,
            codes=codes,
            text_codes=texts,
            lost=lost,
            barred=self._never_named,
            withheld=withheld,
        )

    def _block(
        self, frame: Frame, explained: Explanation, codes: Index, texts: Index, lost: Floats, out: Index
    ) -> None:
        """Fill in the reasons of some rows."""
        k = self.most
        loss, totals = self._losses(explained)
        words = self.texts.codes(frame)
        self._merge(loss, words)
        if self.barred.any():
            among = top(loss, k)[0]
            out[:] = ((among >= 0) & self.barred[among]).sum(axis=1)
            loss[:, self.barred] = 0.0
        chosen, amounts = top(loss, k)
        if self.options.order == "subscale":
            chosen, amounts = self._group(chosen, amounts, totals)
        codes[:, :k], lost[:, :k] = chosen, amounts
        if self.options.inquiries:
            self._add_inquiry(loss, codes, lost)
        at = np.maximum(codes, 0)
        found = words[0][at] if len(words) == 1 else np.take_along_axis(words, at, axis=1)
        texts[:] = np.where(codes >= 0, found, -1)

    @functools.cached_property
    def _at(self) -> list[tuple[int, int]]:
        """For every column of an explanation, its candidate, and its subscale among those of the candidates."""
        column_of = {name: j for j, name in enumerate(self.candidates)}
        keys = self.explainer.keys
        return [(column_of[s if f is None else f], self._number_of.get(s, len(self._number_of))) for s, f in keys]

    @functools.cached_property
    def _number_of(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(dict.fromkeys(self.subscales))}

    @functools.cached_property
    def _numbers(self) -> Index:
        """The subscale of every candidate."""
        return np.array([self._number_of[name] for name in self.subscales], dtype=np.intp)

    def _losses(self, explained: Explanation) -> tuple[Floats, Floats]:
        """Return the loss of every candidate, and of the subscale it is in."""
        loss = np.zeros((len(explained), len(self.candidates)))
        totals = np.zeros((len(explained), len(self._number_of) + 1))  # the last, of what no candidate is in
        for (candidate, subscale), pieces in zip(
            self._at, (self.options.sign * explained.contributions).T, strict=True
        ):
            loss[:, candidate] += pieces
            totals[:, subscale] += pieces
        return loss, totals[:, self._numbers]

    def _merge(self, loss: Floats, words: Index) -> None:
        """Add the losses that have the same words to the first of them in the schema's order."""
        for columns in self.texts.shared:
            for i, first in enumerate(columns):
                for later in columns[i + 1 :]:
                    if self.barred[first] or self.barred[later]:
                        continue
                    same = (words[:, first] == words[:, later]) & (loss[:, first] > 0) & (loss[:, later] > 0)
                    loss[:, first] += np.where(same, loss[:, later], 0.0)
                    loss[:, later] = np.where(same, 0.0, loss[:, later])

    def _group(self, chosen: Index, amounts: Floats, totals: Floats) -> tuple[Index, Floats]:
        """Put the subscale that cost most first; inside it the order is by loss already."""
        at = np.maximum(chosen, 0)
        total = np.where(chosen < 0, -np.inf, np.take_along_axis(totals, at, axis=1))
        by = np.lexsort((self._numbers[at], -total), axis=1)  # stable, so losses stay in order
        return np.take_along_axis(chosen, by, axis=1), np.take_along_axis(amounts, by, axis=1)

    def _add_inquiry(self, loss: Floats, codes: Index, lost: Floats) -> None:
        """Name the inquiry feature that cost most, after the k reasons, where none is named yet."""
        k = self.most
        only = np.where(self.asked, loss, 0.0)
        best = only.argmax(axis=1)
        amount = only[np.arange(len(only)), best]
        named = ((codes[:, :k] >= 0) & self.asked[codes[:, :k]]).any(axis=1)
        add = (amount > NOTHING) & ~named
        codes[add, k] = best[add]
        lost[add, k] = amount[add]


def top(loss: Floats, k: int) -> tuple[Index, Floats]:
    """Return the k largest positive entries of each row and where they are; -1 and NaN where there are fewer.

    Of equal entries the first is taken first, which np.argpartition does not guarantee.
    """
    n = len(loss)
    chosen = np.full((n, k), -1, dtype=np.intp)
    amounts = np.full((n, k), np.nan)
    left = loss.copy()
    rows = np.arange(n)
    for j in range(min(k, loss.shape[1])):
        best = left.argmax(axis=1)
        amount = left[rows, best]
        found = amount > NOTHING
        chosen[found, j], amounts[found, j] = best[found], amount[found]
        left[rows, best] = -np.inf
    return chosen, amounts


# ---- words


@dataclass(frozen=True)
class Texts:
    """The words for every candidate reason.

    Attributes
    ----------
    words : all texts
    base : (candidates,) the text of each
    by_level : for a candidate whose levels have words of their own, its levels and the text of each
    """

    words: tuple[str, ...]
    base: Index
    by_level: dict[int, tuple[str, Levels, Index]]

    def codes(self, frame: Frame) -> Index:
        """Return the text of every row and candidate; one line for all rows where no level matters."""
        if not self.by_level:
            return self.base[None, :]
        codes = np.empty((frame.n_rows, len(self.base)), dtype=np.intp)
        codes[:] = self.base
        for column, (name, levels, texts) in self.by_level.items():
            codes[:, column] = texts[levels.codes(frame, name)]
        return codes

    @functools.cached_property
    def shared(self) -> list[list[int]]:
        """The groups of candidates that may have the same words."""
        owners: dict[int, list[int]] = {}
        for column, text in enumerate(self.base.tolist()):
            found = {text} if column not in self.by_level else set(self.by_level[column][2].tolist())
            for code in sorted(found):
                owners.setdefault(code, []).append(column)
        return [columns for columns in owners.values() if len(columns) > 1]


def texts_of(form: RiskForm, candidates: Sequence[str]) -> Texts:
    """Return the words for candidates, which are features or whole subscales."""
    words: dict[str, int] = {}
    base, by_level = [], {}
    known = _levels_of(form)
    for column, name in enumerate(candidates):
        feature = form.schema.features.get(name)
        text = name if feature is None or feature.reason is None else feature.reason
        base.append(words.setdefault(text, len(words)))
        if feature is not None and name in known:
            levels = known[name]
            own, default = _texts_by_label(name, feature, levels), _default_texts(name, levels)
            said = [own.get(label) or default.get(code, text) for code, label in enumerate(levels.labels)]
            codes = [words.setdefault(text, len(words)) for text in said]
            by_level[column] = (name, levels, np.array(codes, dtype=np.intp))
    return Texts(tuple(words), np.array(base, dtype=np.intp), by_level)


def _levels_of(form: RiskForm) -> dict[str, Levels]:
    """Return the levels of every feature: of its first shape, or of its atoms where trees or pairs alone read it."""
    found = {name: s.levels for p in reversed(form.parts) if isinstance(p, Part) for name, s in p.shapes.items()}
    if len(found) < len(form.features):
        found = {name: atoms.levels for name, atoms in atoms_of(form).items()} | found
    return found


def _default_texts(name: str, levels: Levels) -> dict[int, str]:
    """Return the words, by level, for what is no measurement, of which `reason` would say something wrong.

    >>> _default_texts("debt", Bins((1.0,), (-9.0,), 0.0))
    {2: 'debt has the special value -9', 3: 'debt is below 0', 4: 'No value for debt'}
    """
    found = {}
    for code in range(levels.n_ordered, levels.missing):
        label = levels.labels[code]
        if isinstance(levels, Bins) and label.startswith("x < "):
            found[code] = f"{name} is below {label.removeprefix('x < ')}"
        else:
            found[code] = f"{name} has the special value {label.removeprefix('= ')}"
    return found | {levels.missing: f"No value for {name}"}


def _texts_by_label(name: str, feature: Feature, levels: Levels) -> dict[str, str]:
    """Return the words by the labels of the model's levels."""
    found = {}
    for key, text in feature.reasons.items():
        label = f"= {key}" if isinstance(levels, Bins) and f"= {key}" in levels.labels else key
        if label not in levels.labels and (isinstance(levels, Bins) or feature.categories is not None):
            raise SchemaError(
                f"Schema: feature {name!r}: reasons has words for {key!r}, which is no level of the model."
                f"{did_you_mean(label, levels.labels)}"
            )
        found[label] = text
    return found
