"""Reasons for a refusal: what each feature cost the applicant, ranked, in the schema's words.

A feature's *loss* is what it adds to the risk compared with the reference (see `explain`): the best attainable
level, the portfolio's mean, a neutral applicant or a given one. The reasons are the k largest losses that are
positive. They are told subscale by subscale, the subscale that cost most first, the features inside by their loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from plainrisk.data.frame import Frame
from plainrisk.errors import DataError, did_you_mean
from plainrisk.explain.contributions import Explainer, Split, explainer
from plainrisk.explain.explanation import Explanation
from plainrisk.explain.reason_list import Reasons
from plainrisk.explain.reason_texts import Texts, texts_of
from plainrisk.explain.reference import Adverse, adverse_sign
from plainrisk.form import RiskForm
from plainrisk.form.form import BLOCK_ROWS

__all__ = ["Order", "Reasoner", "Reasons", "reasoner", "reasons"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Order = Literal["subscale", "feature"]

NOTHING = 1e-12  # a loss up to this is rounding, not a reason


def reasons(
    form: RiskForm,
    X: Any,
    k: int = 4,
    against: Any = "best",
    *,
    adverse: Adverse = "positive",
    order: Order = "subscale",
    barred: Sequence[str] = (),
    inquiries: Sequence[str] = (),
    portfolio: Any = None,
    features: Split = "chord",
    min_rows: float = 0.0,
) -> Reasons:
    """Return the reasons against every row of X.

    Parameters
    ----------
    k : int, default=4
        At most so many; fewer where fewer features count against the applicant.
    against : {"best", "mean", "neutral"} or a row, default="best"
        What the applicant is compared with.
    adverse : {"positive", "negative"}, default="positive"
        "positive" if a high probability leads to refusal; "negative" if the model predicts the good outcome.
    order : {"subscale", "feature"}, default="subscale"
        Of the same k reasons: grouped by subscale, or by loss alone.
    barred : features that are never named; `withheld` counts how often one would have been
    inquiries : features about credit inquiries; if one counts and none is among the k, it is a further reason
    portfolio : rows, for references that need some
    features : {"chord", "treeshap"}, default="chord"
        How experts that are not additive are split; without "treeshap" trees are named by subscale.
    min_rows : float, default=0
        Levels with fewer training rows are not taken for the best.
    """
    return reasoner(
        form,
        k,
        against,
        adverse=adverse,
        order=order,
        barred=barred,
        inquiries=inquiries,
        portfolio=portfolio,
        features=features,
        min_rows=min_rows,
    ).reasons(X)


def reasoner(
    form: RiskForm,
    k: int = 4,
    against: Any = "best",
    *,
    adverse: Adverse = "positive",
    order: Order = "subscale",
    barred: Sequence[str] = (),
    inquiries: Sequence[str] = (),
    portfolio: Any = None,
    features: Split = "chord",
    min_rows: float = 0.0,
) -> Reasoner:
    """Return what finds reasons, ready for many batches; parameters as in `reasons`."""
    if not isinstance(k, int | np.integer) or k < 1:
        raise DataError(f"k must be a whole number of at least 1, not {k!r}.")
    if order not in ("subscale", "feature"):
        raise DataError(f"order must be 'subscale' or 'feature', not {order!r}.")
    if isinstance(against, str) and against not in ("best", "mean", "neutral"):
        raise DataError(f"against must be 'best', 'mean', 'neutral' or a row, not {against!r}.")
    for what, names in (("barred", barred), ("inquiries", inquiries)):
        _require_features(form, what, names)
    sign = adverse_sign(adverse)
    one = explainer(form, against, portfolio, features=features, adverse=adverse, min_rows=min_rows)
    candidates, homes = _candidates(form, one)
    barred_at = np.array([c in set(barred) for c in candidates], dtype=bool)
    asked_at = np.array([c in set(inquiries) for c in candidates], dtype=bool)
    texts = texts_of(form, candidates)
    return Reasoner(one, int(k), sign, order, candidates, homes, texts, barred_at, asked_at, tuple(inquiries))


def _require_features(form: RiskForm, what: str, names: Sequence[str]) -> None:
    if isinstance(names, str):
        raise DataError(f"{what} must be a list of features, not the text {names!r}.")
    for name in names:
        if name not in form.schema.features:
            raise DataError(f"{what}: there is no feature {name!r}.{did_you_mean(name, form.schema.features)}")


def _candidates(form: RiskForm, one: Explainer) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what can be named, in the schema's order, and the first subscale of each."""
    homes: dict[str, str] = {}
    for subscale, feature in one.keys:
        homes.setdefault(subscale if feature is None else feature, subscale)
    place = {name: i for i, name in enumerate(form.schema.features)}
    names = sorted(homes, key=lambda name: place.get(name, len(place)))
    return tuple(names), tuple(homes[name] for name in names)


@dataclass(frozen=True)
class Reasoner:
    """A form and a rule; finds the reasons of any number of batches alike."""

    explainer: Explainer
    k: int
    sign: int
    order: Order
    candidates: tuple[str, ...]
    homes: tuple[str, ...]
    texts: Texts
    barred: npt.NDArray[np.bool_]
    asked: npt.NDArray[np.bool_]
    inquiries: tuple[str, ...]

    @property
    def width(self) -> int:
        """How many reasons there may be."""
        return self.k + bool(self.inquiries)

    def reasons(self, X: Any) -> Reasons:
        """Return the reasons against every row."""
        frame = self.explainer.form.align(X)
        n = frame.n_rows
        risk, withheld = np.empty(n), np.zeros(n, dtype=np.intp)
        codes, texts = (np.full((n, self.width), -1, dtype=np.intp) for _ in range(2))
        lost = np.full((n, self.width), np.nan)
        for start in range(0, n, BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            block = frame if n <= BLOCK_ROWS else frame.take(rows.start, rows.stop)
            try:
                explained = self.explainer.explain(block)
            except DataError:
                self.explainer.form.risk(frame)  # names the row of the data, not of the block
                raise
            risk[rows] = explained.risk
            self._block(block, explained, codes[rows], texts[rows], lost[rows], withheld[rows])
        return Reasons(
            k=self.k,
            against=self.explainer.reference.name,
            adverse="positive" if self.sign > 0 else "negative",
            unit=self.explainer.unit,
            risk=risk,
            candidates=self.candidates,
            subscales=self.homes,
            texts=self.texts.words,
            codes=codes,
            text_codes=texts,
            lost=lost,
            barred=tuple(c for c, out in zip(self.candidates, self.barred, strict=True) if out),
            withheld=withheld,
        )

    def _block(
        self, frame: Frame, explained: Explanation, codes: Codes, texts: Codes, lost: Floats, out: Codes
    ) -> None:
        """Fill in the reasons of some rows."""
        loss, totals = self._losses(explained)
        words = self.texts.codes(frame)
        self._merge(loss, words)
        if self.barred.any():
            among = top(loss, self.k)[0]
            out[:] = ((among >= 0) & self.barred[among]).sum(axis=1)
            loss[:, self.barred] = 0.0
        chosen, amounts = top(loss, self.k)
        if self.order == "subscale":
            chosen, amounts = self._group(chosen, amounts, totals)
        codes[:, : self.k], lost[:, : self.k] = chosen, amounts
        if self.inquiries:
            self._add_inquiry(loss, words, codes, lost)
        at = np.maximum(codes, 0)
        found = words[0][at] if len(words) == 1 else np.take_along_axis(words, at, axis=1)
        texts[:] = np.where(codes >= 0, found, -1)

    def _losses(self, explained: Explanation) -> tuple[Floats, Floats]:
        """Return the loss of every candidate, and of the subscale it is in."""
        place = {name: i for i, name in enumerate(self.candidates)}
        group = {name: i for i, name in enumerate(dict.fromkeys(explained.subscales))}
        n = len(explained)
        if len(place) == len(explained.features):
            order = np.argsort([place[s if f is None else f] for s, f in self.explainer.keys])
            loss = self.sign * explained.contributions[:, order]
        else:
            loss = np.zeros((n, len(place)))
            for column, (s, f) in zip(explained.contributions.T, self.explainer.keys, strict=True):
                loss[:, place[s if f is None else f]] += self.sign * column
        spread = np.zeros((len(explained.subscales), len(group)))
        spread[np.arange(len(spread)), [group[s] for s in explained.subscales]] = self.sign
        totals = explained.contributions @ spread
        return loss, totals[:, [group[s] for s in self.homes]]

    def _merge(self, loss: Floats, words: Codes) -> None:
        """Add the losses that have the same words to the first of them in the schema's order."""
        for columns in self.texts.shared():
            for i, first in enumerate(columns):
                for later in columns[i + 1 :]:
                    if self.barred[first] or self.barred[later]:
                        continue
                    same = (words[:, first] == words[:, later]) & (loss[:, first] > 0) & (loss[:, later] > 0)
                    loss[:, first] += np.where(same, loss[:, later], 0.0)
                    loss[:, later] = np.where(same, 0.0, loss[:, later])

    def _group(self, chosen: Codes, amounts: Floats, totals: Floats) -> tuple[Codes, Floats]:
        """Put the subscale that cost most first; inside it the order is by loss already."""
        names = dict.fromkeys(self.homes)
        number = np.array([list(names).index(s) for s in self.homes])
        at = np.maximum(chosen, 0)
        total = np.where(chosen < 0, -np.inf, np.take_along_axis(totals, at, axis=1))
        # Rows where the groups are in order already, most of them, need no sorting.
        home = number[at]
        wrong = (total[:, 1:] > total[:, :-1]) | ((total[:, 1:] == total[:, :-1]) & (home[:, 1:] < home[:, :-1]))
        rows = np.flatnonzero(wrong.any(axis=1))
        by = np.lexsort((home[rows], -total[rows]), axis=1)  # stable, so losses stay in order
        chosen[rows] = np.take_along_axis(chosen[rows], by, axis=1)
        amounts[rows] = np.take_along_axis(amounts[rows], by, axis=1)
        return chosen, amounts

    def _add_inquiry(self, loss: Floats, words: Codes, codes: Codes, lost: Floats) -> None:
        """Name the inquiry feature that cost most, in the place after the k, where none is named yet."""
        only = np.where(self.asked, loss, 0.0)
        best = only.argmax(axis=1)
        amount = only[np.arange(len(only)), best]
        named = ((codes[:, : self.k] >= 0) & self.asked[codes[:, : self.k]]).any(axis=1)
        add = (amount > NOTHING) & ~named
        codes[add, self.k] = best[add]
        lost[add, self.k] = amount[add]


def top(loss: Floats, k: int) -> tuple[Codes, Floats]:
    """Return the k largest positive entries of each row and where they are; -1 and NaN where there are fewer.

    Of equal entries the first is taken first, which sorting by parts would not promise.
    """
    n = len(loss)
    chosen = np.full((n, k), -1, dtype=np.intp)
    amounts = np.full((n, k), np.nan)
    left = loss.copy()
    rows = np.arange(n)
    for place in range(min(k, loss.shape[1])):
        best = left.argmax(axis=1)
        amount = left[rows, best]
        found = amount > NOTHING
        chosen[found, place], amounts[found, place] = best[found], amount[found]
        left[rows, best] = -np.inf
    return chosen, amounts
