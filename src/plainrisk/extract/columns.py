"""A column between a pipeline's steps, kept as a function of the one feature it comes from."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from plainrisk.errors import ExtractionError
from plainrisk.extract.effects import Effect, LabelEffect, NumberEffect, Piece
from plainrisk.schema import label_of

__all__ = ["Column", "is_missing"]


@dataclass(frozen=True)
class Column:
    """A column that a step of a pipeline reads or makes.

    Attributes
    ----------
    feature : the input column it is a function of
    effect : the function; None for the feature as it is, but for the replacements
    replaced : values that an imputer puts in place of others, as (value, new value); None stands for missing
    """

    feature: str
    effect: Effect | None = None
    replaced: tuple[tuple[Any, Any], ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether this is the feature exactly as it came."""
        return self.effect is None and not self.replaced

    def imputed(self, value: Any, new: Any) -> Column:
        """Return the column with one value, or missing (None), replaced by another."""
        new = None if is_missing(new) else new
        if self.effect is None:
            replaced = dict(self.replaced)
            replaced = {old: new if now == value else now for old, now in replaced.items()}
            replaced.setdefault(value, new)
            return replace(self, replaced=tuple(replaced.items()))
        if value is not None:
            raise ExtractionError(
                f"Extract: an imputer replaces {value!r} in feature {self.feature!r} after another step has "
                "changed its values. Put the imputer first."
            )
        if self.effect.missing is not None or new is None:
            return self
        return replace(self, effect=replace(self.effect, missing=_float(new, self.feature)))

    def mapped(self, function: NumberEffect) -> Effect:
        """Return a function of the column's number as a function of the feature."""
        if self.effect is not None:
            return _through(function, self.effect, self.feature)
        special, missing = dict(function.special), function.missing
        for value, new in self.replaced:
            image = function.missing if new is None else function.at(_float(new, self.feature))
            if value is None:
                missing = image
            elif image is not None:
                special[_float(value, self.feature)] = image
        return replace(function, special=special, missing=missing)

    def labelled(self, function: LabelEffect) -> LabelEffect:
        """Return a function of the column's label as a function of the feature's label."""
        if self.effect is not None:
            raise ExtractionError(
                f"Extract: an encoder reads feature {self.feature!r} after another step has changed its "
                "values. Encode the feature as it is."
            )
        scores: dict[str, float | None] = dict(function.scores)
        missing = function.missing
        for value, new in self.replaced:
            image = function.at(None if new is None else label_of(new))
            if value is None:
                missing = image
            else:
                scores[label_of(value)] = image
        return LabelEffect({k: v for k, v in scores.items() if v is not None}, missing, function.unseen)


def _through(function: NumberEffect, inner: Effect, feature: str) -> Effect:
    """Return ``function(inner(x))``, where that is exact."""
    # A missing value stays one until a step replaces it.
    missing = function.missing if inner.missing is None else function.at(inner.missing)
    if isinstance(inner, LabelEffect):
        return replace(inner.mapped(function.at), missing=missing)
    if function.is_line:
        constant, slope = (*function.pieces[0].moved(0.0).coefficients, 0.0)[:2]
        return replace(inner.scaled(slope, constant), missing=missing)
    if inner.degree > 0:
        # Where a scaled value falls next to an edge depends on how the scaler rounds.
        raise ExtractionError(
            f"Extract: feature {feature!r} is scaled before a step that bins it, so that the edges in its "
            "own unit are not known exactly. Leave the scaler out: binning needs none."
        )
    special = {x: function.at(v) for x, v in inner.special.items()}
    return NumberEffect(
        inner.edges,
        tuple(Piece((function.at(piece.coefficients[0]) or 0.0,)) for piece in inner.pieces),
        {x: v for x, v in special.items() if v is not None},
        missing,
    )


def is_missing(value: Any) -> bool:
    """Whether a value is None or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def _float(value: Any, feature: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ExtractionError(
            f"Extract: feature {feature!r} is read as a number, but a step puts {value!r} into it."
        ) from None
