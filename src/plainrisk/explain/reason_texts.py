"""The words for reasons: from the schema, per feature and per level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plainrisk.data.frame import Frame
from plainrisk.errors import SchemaError, did_you_mean
from plainrisk.explain.places import places_of
from plainrisk.form import Bins, Levels, Part, RiskForm
from plainrisk.schema import Feature

__all__ = ["Texts", "texts_of"]

Codes = npt.NDArray[np.intp]


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
    base: Codes
    by_level: dict[int, tuple[str, Levels, Codes]]

    def codes(self, frame: Frame) -> Codes:
        """Return the text of every row and candidate; one line for all rows where no level matters."""
        if not self.by_level:
            return self.base[None, :]
        codes = np.tile(self.base, (frame.n_rows, 1))
        for column, (name, levels, texts) in self.by_level.items():
            codes[:, column] = texts[levels.codes(frame, name)]
        return codes

    def shared(self) -> list[list[int]]:
        """Return the groups of candidates that may have the same words."""
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
    for column, name in enumerate(candidates):
        feature = form.schema.features.get(name)
        text = name if feature is None or feature.reason is None else feature.reason
        base.append(words.setdefault(text, len(words)))
        if feature is not None and feature.reasons:
            levels = _levels(form, name)
            own = _by_label(name, feature, levels)
            codes = [words.setdefault(own.get(label, text), len(words)) for label in levels.labels]
            by_level[column] = (name, levels, np.array(codes, dtype=np.intp))
    return Texts(tuple(words), np.array(base, dtype=np.intp), by_level)


def _levels(form: RiskForm, name: str) -> Levels:
    for part in form.parts:
        if isinstance(part, Part) and name in part.shapes:
            return part.shapes[name].levels
    return places_of(form)[name].levels


def _by_label(name: str, feature: Feature, levels: Levels) -> dict[str, str]:
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
