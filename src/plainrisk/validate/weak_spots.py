r"""Weak spots: slices of rows in which a model does worse than overall, named only where chance is ruled out.

A slice is a group of one column, or of two. The model's probabilities are first recalibrated on all rows, to q with log
odds s. Then two standardized statistics are computed for every slice, with :math:`v = q (1 - q)`:

- calibration, :math:`\sum (y - q) / \sqrt{\sum v}`, two-sided;
- ranking, the score test of a slope below 1, :math:`\sum (y - q)(s - \bar s) / \sqrt{\sum v (s - \bar s)^2}` with the
  mean of s weighted by v: the AUC of the slice is below what its probabilities imply.

Recalibration fits a slice in part, the more so the more rows it has, so its share is subtracted from both variances.

Slices overlap, so the largest of all statistics is compared with the largest in samples of outcomes drawn from q (the
maximum statistic of Westfall and Young, which controls the chance of naming any slice when nothing is wrong). The
model's own estimates are uncertain, too: with n rows and N training rows, statistics are divided by
:math:`\sqrt{1 + h n / N}`, where h is the share of the slice's direction that the levels of the model can fit: 1 for a
bin of its own, less for the intersection of two features. A slice that was named is removed before the next is sought.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any, ClassVar, NamedTuple

import numpy as np

from plainrisk._types import Bools, Floats, Index
from plainrisk.checks import FLAG, LEVEL, NOTHING, SEED, check_parameters, whole
from plainrisk.data.frame import Frame
from plainrisk.errors import DataError
from plainrisk.explain.overview import column_importance
from plainrisk.intervals import Range, auc_range, normal_quantile, wilson
from plainrisk.measure.calibration import calibration_line
from plainrisk.measure.predictions import Predictions
from plainrisk.tables import TableResult
from plainrisk.validate.followed import Line, Moments, followed, levels_met
from plainrisk.validate.grouping import groups_by
from plainrisk.validate.scored import Scored, column_in

__all__ = ["WeakSpot", "WeakSpots", "promised_auc", "weak_spots"]

OPTIONS = {"pairs": FLAG, "min_rows": NOTHING | whole(2), "level": LEVEL, "seed": SEED}
ALONE, PAIRED = 6, 3  # bands of a number in slices of one column, and of two
MOST_PAIRED = 15  # columns whose pairs are looked at: the most important ones
MOST_GROUPS = 12  # of a column of categories: its largest
FEWEST = 10.0  # expected outcomes of either kind in a slice: with fewer the statistics are no longer normal
SAMPLES = 499
SAMPLED_ROWS = 20_000  # of which the largest statistic by chance is found; more rows do not change it
MOST_NAMED = 10
CERTAIN = 1e-6  # log odds of a risk of 0 or 1


@dataclass(frozen=True)
class WeakSpot:
    """A slice in which the model is worse than overall.

    Attributes
    ----------
    slice : in words
    columns, groups : the columns that define it, and its group in each
    weakness : "calibration" or "ranking"
    rows, share : the number of its rows, and their share of all rows
    predicted : the mean probability
    observed : the share of the positive outcome, Wilson's interval
    gap : predicted less observed
    auc : in the slice, DeLong's interval
    promised : the AUC to expect if the probabilities of the slice are right
    p_value : the probability that any slice looks this bad when nothing is wrong
    """

    slice: str
    columns: tuple[str, ...]
    groups: tuple[str, ...]
    weakness: str
    rows: int
    share: float
    predicted: float
    observed: Range
    gap: Range
    auc: Range
    promised: float
    p_value: float


@dataclass(frozen=True, repr=False)
class WeakSpots(TableResult):
    """The slices that were named.

    Attributes
    ----------
    rows, tested : the number of rows with known outcomes, and of slices that were tested
    level : the largest chance of naming a slice when nothing is wrong
    p_value : of the worst slice
    spots : the worst first; the others are judged without the rows of those before
    """

    _lines: ClassVar = ("spots", WeakSpot)
    rows: int
    tested: int
    level: float
    p_value: float
    spots: tuple[WeakSpot, ...]

    def _headline(self) -> str:
        verdict = f"{len(self.spots)} weak spots" if self.spots else f"No weak spot (the worst: p = {self.p_value:.2f})"
        return f"{verdict} among {self.tested:,} slices of {self.rows:,} rows, at most {self.level:.0%} by chance"


def weak_spots(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    columns: Sequence[str] = (),
    pairs: bool = True,
    min_rows: int | None = None,
    level: float = 0.05,
    seed: int = 0,
) -> WeakSpots:
    """Name the slices in which calibration or ranking is worse than overall by more than chance.

    Parameters
    ----------
    model : a fitted classifier, or (n,) probabilities
    X : rows
    y : (n,), default=None
        The outcomes, some of which may be missing; None takes the target column of the model's schema from the rows.
    columns : list of str, default=()
        Columns to examine in addition to the features of the model, such as the region.
    pairs : bool, default=True
        Whether to test slices of two columns, too.
    min_rows : int, default=None
        The minimum rows of a slice; None is 2% of all rows, at least 50.
    level : float, default=0.05
        The largest probability of reporting a slice when nothing is wrong.
    seed : int, default=0
        The seed of the samples drawn from the probabilities.

    Returns
    -------
    WeakSpots

    Examples
    --------
    >>> import plainrisk as pr
    >>> credit = pr.datasets.make_credit(3000, seed=2)
    >>> model = pr.make_classifier("ARM1", credit.schema).fit(credit.frame[:2000], credit.target[:2000])
    >>> found = pr.weak_spots(model, credit.frame[2000:], credit.target[2000:])
    >>> found.spots, found.tested > 100
    ((), True)
    """
    given = {"pairs": pairs, "min_rows": min_rows, "level": level, "seed": seed}
    check_parameters("weak_spots", given, OPTIONS)
    scored = Scored.of("weak_spots", model, X, y)
    rows = np.flatnonzero(scored.known)
    if not len(rows):
        raise DataError("weak_spots: no outcome is known.")
    for name in columns:
        column_in("weak_spots: columns", name, X)
    checked = Predictions.of_rows(scored.positive[rows], scored.risk[rows])
    least = max(50, len(rows) // 50) if min_rows is None else int(min_rows)
    search = _Search(checked, _slices(scored, rows, columns, pairs=bool(pairs)), least, scored, rows)
    return search.run(float(level), int(seed))


class _Slice(NamedTuple):
    columns: tuple[str, ...]
    groups: tuple[str, ...]
    rows: Index


def _slices(scored: Scored, rows: Index, more: Sequence[str], *, pairs: bool) -> Iterator[_Slice]:
    """Yield the groups of every column, and of every two of the most important columns."""
    form, frame = scored.form, scored.frame.rows(rows)
    names = list(form.features) if form is not None else list(frame.names)
    names = list(dict.fromkeys([*names, *more]))
    for name in names:
        for group, members in _cut(scored, frame, name, ALONE).items():
            yield _Slice((name,), (group,), members)
    if not pairs:
        return
    if form is not None and (importance := column_importance(form)) is not None:
        size = dict(zip(form.columns, importance.tolist(), strict=True))
        names.sort(key=lambda name: -size.get(name, math.inf))  # columns that were asked for come first
    coarse = {name: _cut(scored, frame, name, PAIRED) for name in names[:MOST_PAIRED]}
    for first, second in combinations(coarse, 2):
        for (a, rows_a), (b, rows_b) in product(coarse[first].items(), coarse[second].items()):
            yield _Slice((first, second), (a, b), np.intersect1d(rows_a, rows_b, assume_unique=True))


def _cut(scored: Scored, frame: Frame, name: str, bands: int) -> dict[str, Index]:
    """Return the rows of the largest groups of a column; numbers are put into bands."""
    try:
        labels = groups_by("weak_spots", frame, name, bands, scored.form)
    except DataError:  # texts
        labels = groups_by("weak_spots", frame, name, None, scored.form)
    groups = labels.groups()
    largest = sorted(groups, key=lambda group: -len(groups[group]))[:MOST_GROUPS]
    return {group: groups[group] for group in groups if group in largest}


class _Search:
    """Statistics of all slices, as sums over their rows."""

    def __init__(
        self, checked: Predictions, slices: Iterator[_Slice], least: int, scored: Scored, known: Index
    ) -> None:
        from scipy.sparse import csr_array

        self.checked, n = checked, len(checked.bad)
        self.q = _recalibrated(checked)
        self.s = np.log(self.q) - np.log1p(-self.q)
        self.v = self.q * (1 - self.q)
        self.slices = [s for s in slices if len(s.rows) >= least and self._has_outcomes(s.rows)]
        ends = np.cumsum([0, *(len(s.rows) for s in self.slices)])
        rows = np.concatenate([np.empty(0, np.intp), *(s.rows for s in self.slices)])
        self.members = csr_array((np.ones(len(rows)), rows, ends), shape=(len(self.slices), n))
        self.scales = self._scales(scored, known)

    def _has_outcomes(self, rows: Index) -> bool:
        expected = float(self.q[rows].sum())
        return min(expected, len(rows) - expected) >= FEWEST

    def _scales(self, scored: Scored, known: Index) -> tuple[Floats, Floats]:
        """Return the factors of the two statistics of every slice that allow for the model's own uncertainty."""
        trained, whole_share = (0 if scored.record is None else scored.record.rows), np.ones(len(self.slices))
        if not trained or not self.slices:
            return whole_share, whole_share
        some = np.arange(0, len(known), 1 + len(known) // SAMPLED_ROWS)
        levels = levels_met(scored.form, scored.frame.rows(known[some]))
        shares = (whole_share, whole_share)
        if levels is not None:
            shares = followed(self.members[:, some], levels, self.v[some], self.s[some])
        of_calibration, of_ranking = (1 / np.sqrt(1 + h * len(known) / trained) for h in shares)
        return of_calibration, of_ranking

    def run(self, level: float, seed: int) -> WeakSpots:
        """Name the worst slice, and the worst of the remaining rows, while chance does not explain it."""
        n = len(self.checked.bad)
        named: list[WeakSpot] = []
        if not self.slices:
            return WeakSpots(n, 0, level, math.nan, ())
        by_chance = self._largest_by_chance(seed)
        worst, left, residual = math.nan, np.ones(n, bool), self.checked.bad - self.q
        while len(named) < MOST_NAMED:
            calibration, ranking = self._statistics(residual[:, None], left)
            sizes = {
                "calibration": self.scales[0] * np.abs(calibration[:, 0]),
                "ranking": -self.scales[1] * ranking[:, 0],
            }
            k = int(np.argmax(np.maximum(*sizes.values())))
            weakness = max(sizes, key=lambda name: float(sizes[name][k]))
            p = (1 + int((by_chance >= sizes[weakness][k]).sum())) / (1 + len(by_chance))
            worst = p if not named else worst
            if p > level:
                break
            named.append(self._spot(self.slices[k], weakness, p))
            left[self.slices[k].rows] = False
        return WeakSpots(n, len(self.slices), level, worst, tuple(named))

    def _statistics(
        self, residuals: Floats, left: Bools | None = None, rows: Index | None = None
    ) -> tuple[Floats, Floats]:
        """Return both statistics of every slice, for every column of residuals; 0 where too few rows are left."""
        q, s, v = (values if rows is None else values[rows] for values in (self.q, self.s, self.v))
        members = self.members if rows is None else self.members[:, rows]
        if left is not None:
            q, v, residuals = q * left, v * left, residuals * left[:, None]
        expected, known = members @ q, members @ (np.ones(len(q)) if left is None else left * 1.0)
        enough = np.minimum(expected, known - expected) >= (FEWEST if rows is None else 0)
        line = Line.of(v, s)
        residuals, slices = line.without(residuals), Moments.of(members, v, s)
        sums = members @ residuals
        slopes = members @ (residuals * s[:, None]) - slices.mean[:, None] * sums
        statistics = []
        for size, taken, scores in zip(slices.sizes, line.taken(slices), (sums, slopes), strict=True):
            known = enough & slices.vary(size, taken)
            error = np.sqrt(np.where(known, size * (1 - taken), 1.0))
            statistics.append(np.where(known[:, None], scores / error[:, None], 0.0))
        return statistics[0], statistics[1]

    def _largest_by_chance(self, seed: int) -> Floats:
        """Return the largest statistic of each of many samples of outcomes, drawn with the probabilities q."""
        rng, n = np.random.default_rng(seed), len(self.q)
        rows = None if n <= SAMPLED_ROWS else np.sort(rng.choice(n, SAMPLED_ROWS, replace=False))
        q = self.q if rows is None else self.q[rows]
        largest = []
        for start in range(0, SAMPLES, 50):
            drawn = (rng.random((len(q), min(50, SAMPLES - start))) < q[:, None]) - q[:, None]
            calibration, ranking = self._statistics(drawn, rows=rows)
            largest.append(np.maximum(np.abs(calibration), -ranking).max(axis=0))
        return np.concatenate(largest)

    def _spot(self, slice_: _Slice, weakness: str, p: float) -> WeakSpot:
        rows, z = slice_.rows, normal_quantile(0.95)
        bad, risk = self.checked.bad[rows], self.checked.risk[rows]
        observed, predicted = wilson(int(bad.sum()), len(rows), z), float(risk.mean())
        return WeakSpot(
            slice=" and ".join(f"{name}: {group}" for name, group in zip(slice_.columns, slice_.groups, strict=True)),
            columns=slice_.columns,
            groups=slice_.groups,
            weakness=weakness,
            rows=len(rows),
            share=len(rows) / len(self.checked.bad),
            predicted=predicted,
            observed=observed,
            gap=Range(predicted - observed.estimate, predicted - observed.high, predicted - observed.low),
            auc=auc_range(bad, risk, z),
            promised=promised_auc(self.q[rows]),
            p_value=p,
        )


def _recalibrated(checked: Predictions) -> Floats:
    """Return the probabilities recalibrated by their calibration line, so that a slice is compared with all rows."""
    risk = np.clip(checked.risk, CERTAIN, 1 - CERTAIN)
    line = calibration_line(replace(checked, risk=risk))
    if not (math.isfinite(line.slope) and line.slope > 0):
        return risk
    odds = np.exp(np.clip(line.intercept + line.slope * (np.log(risk) - np.log1p(-risk)), -20, 20))
    return np.asarray(odds / (1 + odds))


def promised_auc(q: Floats) -> float:
    """Return the expected AUC of rows whose probabilities are right; ties count one half.

    >>> round(promised_auc(np.array([0.1, 0.9])), 4)  # 0.81 against 0.01
    0.9878
    """
    of_row = np.unique(q, return_inverse=True)[1]
    good, bad = (np.bincount(of_row, weights=side) for side in (1 - q, q))
    ties = float((q * (1 - q)).sum())
    above = float(bad @ (np.cumsum(good) - good / 2)) - ties / 2
    return above / (float(bad.sum() * good.sum()) - ties)
