"""A program in people's words: labels, units, the outcome, and an example applicant."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from plainrisk.export.expression import FieldWords, Input, PieceWords, Words
from plainrisk.form import Bins, Curve, Levels, Line, Part, RiskForm, outside_rules
from plainrisk.form.wording import outcome_words, say_value
from plainrisk.schema import Feature, label_of

__all__ = ["example_of", "round_between", "words_of"]


def words_of(form: RiskForm, inputs: Sequence[Input], keys: Sequence[tuple[str, str | None]]) -> Words:
    """Return what people read about a form; `keys` has the (subscale, feature or pair) of every contribution."""
    fields = []
    for i in inputs:
        feature, (levels, _, _) = form.schema.features[i.feature], next(_levels_seen(form, i.feature))
        unit = "" if feature.unit is None else f" ({feature.unit})"
        choices = tuple(_choices(feature, levels))
        hint = "" if choices else _hint(feature)
        fields.append(FieldWords(feature.title(i.feature) + unit, choices, example_of(form, i.feature), hint))
    return Words(outcome_words(form.schema, form.classes[-1]), tuple(fields), tuple(_pieces(form, keys)))


def _pieces(form: RiskForm, keys: Sequence[tuple[str, str | None]]) -> Iterator[PieceWords]:
    """Yield the words of every contribution; a feature of several subscales is named with the subscale."""
    members = {pair.name: pair.features for part in form.parts if isinstance(part, Part) for pair in part.pairs}
    names = [name for _, name in keys]
    for subscale, name in keys:
        features = {} if name is None else {n: form.schema.features[n] for n in members.get(name, (name,))}
        title = " with ".join(feature.title(n) for n, feature in features.items()) or subscale
        title = f"{subscale}: {title}" if features and names.count(name) > 1 else title
        yield PieceWords(title, any(feature.protected for feature in features.values()))


def _hint(feature: Feature) -> str:
    """Return the meaning of a number's special values and of an empty field."""
    codes = [f"{code}: {label}" for code, label in feature.labels.items() if code != "missing"]
    return "; ".join([*codes, f"empty: {say_value(feature, None)}"] if codes else ())


def _levels_seen(form: RiskForm, name: str) -> Iterator[tuple[Levels, Sequence[float], float | None]]:
    """Yield the levels of a feature and their numbers of rows; of a line or a curve, also a number in its middle."""
    for part in form.parts:
        if isinstance(part, Part) and name in part.shapes:
            shape = part.shapes[name]
            middle = shape.center if isinstance(shape, Line) else None
            if isinstance(shape, Curve):
                middle = (shape.breaks[0] + shape.breaks[-1]) / 2
            yield shape.levels, shape.weights, middle
    for part in form.parts:
        for pair in part.pairs if isinstance(part, Part) else ():
            if name in pair.features:
                axis = pair.features.index(name)
                yield pair.levels[axis], pair.level_weights(axis).tolist(), None


def _choices(feature: Feature, levels: Levels) -> Iterator[tuple[str, float | str]]:
    """Yield the label and the code of every category; an ambiguous label is replaced by the code."""
    codes = _codes(feature, levels)
    plain = {label_of(code) for code in codes}
    labels = [say_value(feature, code) for code in codes]
    often = Counter(labels)
    for label, code in zip(labels, codes, strict=True):
        yield label if often[label] == 1 and label not in plain else label_of(code), code


def _codes(feature: Feature, levels: Levels) -> list[Any]:
    """Return the categories, or the numbers with labels, unless only special values have them."""
    if not isinstance(levels, Bins):
        return [code for name in levels.categories for code in levels.groups.get(name, (name,))]
    codes = sorted(float(code) for code in feature.labels if code != "missing")
    return [] if set(codes) <= set(levels.special_values) else codes


def example_of(form: RiskForm, name: str) -> float | str | None:
    """Return a value in the most common level of a feature that a row may have, or None if there is none.

    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german")
    >>> form = pr.AdditiveRiskModel(german.schema).fit(german.frame, german.target).form_
    >>> example_of(form, "Housing"), example_of(form, "Duration in month")
    ('A152', 25.0)
    """
    feature, seen = form.schema.features[name], next(_levels_seen(form, name), None)
    if seen is None:
        return None
    levels, weights, middle = seen
    refused = {code for code, rule in outside_rules(feature, levels).items() if rule == "error"}
    last = levels.n_ordered if isinstance(levels, Bins) else len(levels.categories)
    allowed = [code for code in range(last) if code not in refused]
    if not allowed:
        return None
    best = max(allowed, key=lambda code: weights[code])
    if not isinstance(levels, Bins):
        name = levels.categories[best]
        return levels.groups.get(name, (name,))[0]
    low = levels.edges[best - 1] if best else None
    high = levels.edges[best] if best < len(levels.edges) else None
    number = _inside(low, high) if middle is None else float(f"{middle:.3g}")
    measured = [code for code in _codes(feature, levels) if code not in levels.special_values]
    return min(measured, key=lambda code: abs(code - number), default=number)


def _inside(low: float | None, high: float | None) -> float:
    """Return a number between two edges, either of which may be absent."""
    if low is None and high is None:
        return 0.0
    if low is None or high is None:
        edge = high if low is None else low
        assert edge is not None
        reach = max(1.0, abs(edge) / 10) * (-1 if low is None else 1)
        low, high = sorted((edge, edge + reach))
    return round_between(low, high)


def round_between(low: float, high: float) -> float:
    """Return the number with the fewest digits near the middle of an interval that is closed on the right.

    >>> round_between(6.5, 8.5), round_between(1234.5, 3456.5), round_between(0.31, 0.32)
    (8.0, 2000.0, 0.315)
    """
    middle = low / 2 + high / 2
    for digits in range(1, 18):
        rounded = float(f"{middle:.{digits}g}")
        if low < rounded <= high and abs(rounded - middle) <= (high - low) / 4:
            return rounded
    return high if not low < middle <= high or math.isinf(middle) else middle
