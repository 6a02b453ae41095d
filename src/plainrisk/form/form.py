"""The risk form: what every fitted model is, as pure data.

    risk(x) = pool( link_S( intercept_S + sum over features u of shape_{S,u}(x_u)
                                     + sum over pairs u, v of pair_{S,uv}(x_u, x_v) ) for every part S )

Nothing here knows how the numbers were found.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from plainrisk._types import Floats
from plainrisk.data.frame import Frame, as_frame, position_names
from plainrisk.data.texts import Reading, read_texts
from plainrisk.errors import DataError, ModelFileError, did_you_mean, nameless
from plainrisk.form.levels import Bins, Categories, Levels
from plainrisk.form.links import LARGEST, Bands, Link, Logistic
from plainrisk.form.score import Scorer
from plainrisk.form.shapes import PairTable, Part, Shape, Table
from plainrisk.form.trees import TreePart
from plainrisk.schema import Feature, Schema, label_of
from plainrisk.schema.check import refuse_forbidden
from plainrisk.text import visible
from plainrisk.threads import PIECE_ROWS, parallel_for

__all__ = ["Alone", "Layer", "Mixture", "Pool", "RiskForm", "pool_score", "schema_with_bins"]

# From the scores of some rows, parts by rows, to an array with an entry per row, which is filled.
Evaluate = Callable[[Floats, Floats], None]


class Alone(msgspec.Struct, frozen=True, tag="alone", tag_field="kind", forbid_unknown_fields=True):
    """No pool: the risk of the single part is the risk."""


class Mixture(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,  # a mixture without a link is written as it was before there were any, so hashes hold
    tag="mixture",
    tag_field="kind",
    forbid_unknown_fields=True,
):
    """A linear opinion pool: ``link(sum_S weight_S * risk_S)``, weights nonnegative with sum 1.

    The link maps the mixture's probability to a calibrated one; without it, the mixture's probability is the risk.
    """

    weights: tuple[float, ...]
    link: Bands | None = None

    @property
    def intercept(self) -> float:
        """0: the pool is the weighted sum alone."""
        return 0.0

    def __post_init__(self) -> None:
        if not all(w >= 0 for w in self.weights) or abs(math.fsum(self.weights) - 1) > 1e-9:
            raise ModelFileError("Model: the weights of a mixture must be nonnegative and sum to 1.")


class Layer(msgspec.Struct, frozen=True, tag="layer", tag_field="kind", forbid_unknown_fields=True):
    """A second additive layer: ``link(intercept + sum_S weight_S * risk_S)``."""

    intercept: float
    weights: tuple[float, ...]
    link: Link

    def __post_init__(self) -> None:
        if not all(abs(number) <= LARGEST for number in (self.intercept, *self.weights)):
            raise ModelFileError(f"Model: the numbers of the second layer must be within {LARGEST:g}.")


Pool = Alone | Mixture | Layer


class RiskForm(
    msgspec.Struct,
    frozen=True,
    dict=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,  # a form without ranges is written as it was before there were any, so hashes hold
):
    """A fitted risk model as data.

    Attributes
    ----------
    schema : what the modeler knew, for the features in use
    columns : the columns of the training rows, in order; x0, x1, ... if they had no names
    classes : the two outcomes, the positive one last
    parts, pool : the model
    ranges : the smallest and the largest measured value of every continuous feature in training, where they are known

    Examples
    --------
    >>> import plainrisk as pr
    >>> credit = pr.datasets.make_credit(1000, seed=1)
    >>> form = pr.make_classifier("ARM1", credit.schema).fit(credit.frame, credit.target).form_
    >>> form.classes, len(form.parts[0].shapes), type(form.last_link).__name__
    ((0, 1), 12, 'Logistic')
    """

    schema: Schema
    columns: tuple[str, ...]
    classes: tuple[str | int | float | bool, str | int | float | bool]
    parts: tuple[Part | TreePart, ...]
    pool: Pool
    ranges: dict[str, tuple[float, float]] = {}

    def __post_init__(self) -> None:
        first, last = self.classes
        if first == last or isinstance(first, str) != isinstance(last, str) or not all(map(_is_label, self.classes)):
            raise ModelFileError(f"Model: the outcomes must be two texts or two numbers, not {first!r} and {last!r}.")
        n = len(self.parts)
        n_pooled = 1 if isinstance(self.pool, Alone) else len(self.pool.weights)
        if n == 0 or n != n_pooled:
            raise ModelFileError(f"Model: {n} parts do not fit a pool of {n_pooled}.")
        if len({part.name for part in self.parts}) < n:
            raise ModelFileError("Model: two parts have the same name.")
        for part in self.parts:
            for name in part.features:
                if name not in self.schema.features:
                    raise ModelFileError(f"Model: part {part.name!r} uses {name!r}, which the schema does not know.")
            for pair in part.pairs if isinstance(part, Part) else ():
                self._check_kinds(pair)
        for name, (low, high) in self.ranges.items():
            if name not in self.schema.features or not -math.inf < low <= high < math.inf:
                raise ModelFileError(f"Model: the range of {name!r} is not valid.")

    def __repr__(self) -> str:
        parts = ", ".join(part.name for part in self.parts)
        return visible(f"RiskForm({len(self.schema.features)} features, parts: {parts})")

    def _check_kinds(self, pair: PairTable) -> None:
        for name, levels in zip(pair.features, pair.levels, strict=True):
            kind = self.schema.features[name].kind
            if isinstance(levels, Categories) != (kind == "categorical"):
                raise ModelFileError(f"Model: the pair {pair.name!r} needs levels of a {kind} feature for {name!r}.")

    def reads_protected(self, name: str) -> bool:
        """Whether a part reads a protected feature."""
        return any(self.schema.features[f].protected for part in self.parts if part.name == name for f in part.features)

    # ---- evaluation

    def risk(self, X: Any) -> Floats:
        """Return the probability of the positive outcome, one per row."""
        if type(X) is dict and (risk := self._row_risk(X)) is not None:
            return np.array([risk])
        return self._evaluate(X, self._risk)

    def probabilities(self, X: Any) -> Floats:
        """Return the probabilities of the two outcomes, the positive one last: (rows, 2)."""
        if type(X) is dict and (risk := self._row_risk(X)) is not None:
            return np.array([[1.0 - risk, risk]])
        return self._evaluate(X, self._probabilities, (2,))

    def score(self, X: Any) -> Floats:
        """Return the additive value before the last link, one per row (for a mixture: the pooled risk)."""
        return self._evaluate(X, self._score)

    def part_risks(self, X: Any) -> Floats:
        """Return the risk each part sees, rows by parts."""
        return self._evaluate(X, self._part_risks, (len(self.parts),))

    def part_scores(self, X: Any) -> Floats:
        """Return the additive score of each part, rows by parts."""
        return self._evaluate(X, self._part_scores, (len(self.parts),))

    def align(self, X: Any, columns: Sequence[str] | None = None) -> Frame:
        """Read a table under the names that the form knows; report what is missing.

        Rows without names are read by position only if training rows had none either.

        Parameters
        ----------
        X : rows
        columns : names for rows that have none
        """
        frame = as_frame(X, columns)
        if not frame.named:
            if not self._nameless:
                raise nameless("the model")
            if len(frame.names) != len(self.columns):
                raise DataError(
                    f"Data: X has {len(frame.names)} features, but RiskForm is expecting "
                    f"{len(self.columns)} features as input."
                )
            return frame.renamed(self.columns)  # a model without names has no schema, so no rules
        for name in self.features:
            if name not in frame.columns:
                raise DataError(f"Data: feature {name!r} is not in the data.{did_you_mean(name, frame.names)}")
        frame = read_texts(frame, self._readings)
        if self._forbids:
            refuse_forbidden(self._own_schema, frame)
        return frame

    @functools.cached_property
    def _nameless(self) -> bool:
        """Whether the training rows had no column names."""
        return self.columns == position_names(len(self.columns))

    @functools.cached_property
    def _own_schema(self) -> Schema:
        return self.schema.part(self.features)

    @functools.cached_property
    def _readings(self) -> dict[str, Reading]:
        return self._own_schema.readings

    @functools.cached_property
    def _forbids(self) -> bool:
        """Whether any empty or special field is refused."""
        features = self._own_schema.features.values()
        return any("error" in (f.missing, f.below_bound, *f.special_rules.values()) for f in features)

    def _row_risk(self, row: dict[Any, Any]) -> float | None:
        """Return the risk of one row; None where only the code for arrays can tell."""
        scores = None if self._has_trees or self._forbids or self._readings else self._scorer.row_scores(row)
        if scores is None:
            return None
        out = np.empty(1)
        self._risk(np.array(scores)[:, None], out)
        return float(out[0])

    @functools.cached_property
    def _has_trees(self) -> bool:
        return any(isinstance(part, TreePart) for part in self.parts)

    @functools.cached_property
    def _scorer(self) -> Scorer:
        """The additive parts, prepared."""
        strict = frozenset(name for name, feature in self.schema.features.items() if feature.unseen == "error")
        shapes = [part.shapes if isinstance(part, Part) else {} for part in self.parts]
        pairs = [part.pairs if isinstance(part, Part) else () for part in self.parts]
        return Scorer([part.intercept for part in self.parts], shapes, pairs, strict)

    def _evaluate(self, X: Any, evaluate: Evaluate, width: tuple[int, ...] = ()) -> Floats:
        """Score the rows in blocks, on all cores; every row is computed independently, so neither affects a result."""
        frame = self.align(X)
        for part in self.parts:
            if isinstance(part, TreePart):
                part.refuse_unseen(frame, self.schema)  # here rows are counted from the first, not by block
        columns = self._scorer.read(frame)
        out = np.empty((frame.n_rows, *width))
        refused = []

        def work(starts: Iterator[int]) -> None:
            workspace = np.empty((len(self.parts), min(PIECE_ROWS, frame.n_rows)))
            for start in starts:
                rows = slice(start, min(start + PIECE_ROWS, frame.n_rows))
                scores = workspace[:, : rows.stop - rows.start]
                for part, score in zip(self.parts, scores, strict=True):
                    is_tree = isinstance(part, TreePart)
                    score[:] = part.score(frame.take(rows.start, rows.stop), self.schema) if is_tree else part.intercept
                self._scorer.add(list(scores), columns, rows)
                if np.isnan(scores).any():
                    refused.append(start)
                    return
                evaluate(scores, out[rows])

        parallel_for(work, range(0, frame.n_rows, PIECE_ROWS))
        if refused:
            # This raises, and names the row of the data.
            evaluate(np.array([part.score(frame, self.schema) for part in self.parts]), out)
        return out

    def _part_scores(self, scores: Floats, out: Floats) -> None:
        out[:] = scores.T

    def _part_risks(self, scores: Floats, out: Floats) -> None:
        for k, part in enumerate(self.parts):
            out[:, k] = part.link.value(scores[k])

    def _score(self, scores: Floats, out: Floats) -> None:
        if isinstance(self.pool, Alone):
            out[:] = scores[0]
            return
        # One column of all parts after the other, which is how they are added up.
        risks = np.empty(scores.shape).T
        self._part_risks(scores, risks)
        out[:] = pool_score(self.pool, risks)

    def _risk(self, scores: Floats, out: Floats) -> None:
        self._score(scores, out)
        if self.last_link is not None:
            out[:] = self.last_link.value(out)

    def _probabilities(self, scores: Floats, out: Floats) -> None:
        self._risk(scores, out[:, 1])
        np.subtract(1.0, out[:, 1], out=out[:, 0])

    # ---- structure

    @property
    def features(self) -> tuple[str, ...]:
        """The features in use, in the order of the parts."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.features))

    def shapes_of(self, name: str) -> list[Shape]:
        """Return the shapes of a feature, one for each additive part that has it outside pairs."""
        return [part.shapes[name] for part in self.parts if isinstance(part, Part) and name in part.shapes]

    @property
    def last_link(self) -> Link | None:
        """The link that gives the output; None for a mixture that is not calibrated."""
        return self.parts[0].link if isinstance(self.pool, Alone) else self.pool.link

    @property
    def links(self) -> Iterator[Link]:
        """Every link of the form."""
        yield from (part.link for part in self.parts)
        if not isinstance(self.pool, Alone) and self.pool.link is not None:
            yield self.pool.link

    def predicts_as(self, other: RiskForm) -> bool:
        """Whether another form predicts the same outcome: the same labels and, if known, target or bad outcome."""
        labels = [[label_of(c) for c in form.classes] for form in (self, other)]
        a, b = self.schema, other.schema
        return labels[0] == labels[1] and (
            None in (a.target, b.target) or a.target == b.target or a.adverse == b.adverse
        )

    @property
    def speaks_probability(self) -> bool:
        """Whether features' contributions are exact pieces of the probability: additive, every link straight."""
        return all(isinstance(p, Part) for p in self.parts) and not any(isinstance(k, Logistic) for k in self.links)


def pool_score(pool: Mixture | Layer, risks: Floats) -> Floats:
    """Combine part risks (rows by parts) into one score per row.

    Added up part by part, so that each sum is monotone in every part and the same for any block size.
    """
    score = np.full(len(risks), pool.intercept)
    for weight, risk in zip(pool.weights, risks.T, strict=True):
        score += weight * risk
    # Rounding may take a pool of ones above 1 by one unit in the last place.
    return np.minimum(score, 1.0) if isinstance(pool, Mixture) else score


def _is_label(outcome: str | float) -> bool:
    """Whether an array contains an outcome, compared without conversion."""
    return isinstance(outcome, str) or -(2.0**63) <= outcome < 2.0**63


# ---- its bins


def schema_with_bins(form: RiskForm) -> Schema:
    """Return the form's schema with the edges of its bins, and the categories and groups of its levels, as stated.

    If several parts have tables of one feature, the edges of all are used. Features without a table (lines, curves,
    trees, pairs only) do not change.
    """
    levels_of: dict[str, list[Levels]] = {}
    for part in form.parts:
        for name, shape in part.shapes.items() if isinstance(part, Part) else ():
            if isinstance(shape, Table):
                levels_of.setdefault(name, []).append(shape.levels)
    stated = {name: _stated(form.schema.features[name], levels) for name, levels in levels_of.items()}
    return form.schema.replace(features={**form.schema.features, **stated})


def _stated(feature: Feature, found: list[Levels]) -> Feature:
    first = found[0]
    if isinstance(first, Categories):
        levels = first.categories[: first.n_ordered]
        # Words for a category that is not a level, because no training row had it, keep the list open.
        listed = levels if set(first.labels).issuperset((*feature.reasons, *feature.labels)) else feature.categories
        return msgspec.structs.replace(feature, categories=listed, groups=first.groups, rare=None)
    edges = sorted({edge for levels in found if isinstance(levels, Bins) for edge in levels.edges})
    return msgspec.structs.replace(feature, edges=tuple(edges), max_bins=None)
