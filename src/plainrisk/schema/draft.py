"""A first schema, drafted from data for a person to edit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from plainrisk._types import Floats
from plainrisk.data.columns import label_of
from plainrisk.data.frame import Frame, Labels, as_frame
from plainrisk.errors import DataError, PlainriskWarning, SchemaError, listing, quoted
from plainrisk.schema.check import FEW_ROWS, MOST_CATEGORIES, suspicious_codes, target_problems

__all__ = ["draft_fields"]

Draft = dict[str, Any]  # the fields of a feature, or of a schema

_MOST_BINS = 10
_ROW_NAMES = {"", "id", "index", "row", "row_id", "rowid"}
_BAD_WORDS = {"bad", "bankrupt", "charged off", "default", "defaulted", "delinquent", "loss"}


def draft_fields(frame: Any, target: str | None, positive: str | float | None) -> Draft:
    """Return the fields of a drafted schema, as `Schema.infer` documents them.

    Numbers are continuous; text, truth values and categories are categorical. Each continuous feature's note
    says which way the bad rate moves over at most ten bins of equal size, and how well the feature alone ranks
    the outcomes. `positive` as given, or the bad outcome that was guessed, with a warning.
    """
    table = as_frame(frame)
    if not table.n_rows or not table.names:
        raise DataError("Data: there are no rows, or no columns, to draft a schema from.")
    bad: Floats | None = None
    remarks: list[str] = []
    if target is not None:
        positive, remarks = _outcome(table, target, positive)
        outcome = table.labels(target)
        bad = (outcome.codes == outcome.labels.index(label_of(positive))).astype(np.float64)
    features: dict[str, Draft] = {}
    left_out: dict[str, list[str]] = {}
    for name in table.names:
        drafted = _draft(table, name, bad) if name != target else None
        if isinstance(drafted, dict):
            features[name] = drafted
        elif drafted is not None:
            left_out.setdefault(drafted, []).append(name)
    remarks += [f"left out because {why}: {quoted(names)}." for why, names in left_out.items()]
    if remarks:
        warnings.warn(listing("Schema.infer", remarks, "remarks"), PlainriskWarning, stacklevel=3)
    return {"target": target, "positive": positive, "features": features}


# ---- the outcome


def _outcome(table: Frame, target: str, positive: Any) -> tuple[Any, list[str]]:
    """Return the bad outcome, and a remark if it is a guess."""
    problems = target_problems(table, target, positive)
    if problems:
        raise SchemaError(listing("Schema", problems))
    if positive is not None:
        return positive, []
    outcome = table.labels(target)
    if outcome.labels == ("0", "1"):
        return (1 if table.is_numeric(target) else "1"), []
    if outcome.labels == ("False", "True"):
        return True, []
    bad = [label for label in outcome.labels if label.strip().lower() in _BAD_WORDS]
    counts = np.bincount(outcome.codes)
    rarer = outcome.labels[int(counts.argmin()) if counts[0] != counts[1] else 1]
    guess = bad[0] if len(bad) == 1 else rarer
    why = "by its name" if len(bad) == 1 else "the rarer one"
    remark = f"{guess!r} of {target!r} was taken for the bad outcome, {why}. Give positive= to choose."
    return (float(guess) if table.is_numeric(target) else guess), [remark]


# ---- one column


def _draft(table: Frame, name: str, bad: Floats | None) -> Draft | str:
    """Return the fields of the drafted feature, or why the column is no feature."""
    tidy = name.strip().lower()
    if tidy in _ROW_NAMES or tidy.startswith("unnamed:"):
        return "its name says that it numbers the rows"
    dtype = table.column(name).dtype
    if dtype.kind in "mM" if isinstance(dtype, np.dtype) else dtype.is_temporal():
        return "it holds dates; make them numbers, such as months until today"
    if not isinstance(dtype, np.dtype) and dtype.is_nested():
        return "it holds more than one value per row"
    named_id = tidy.endswith(("_id", " id"))
    if table.is_numeric(name):
        return _draft_continuous(table.numbers(name), bad, named_id)
    return _draft_categorical(table.labels(name))


def _draft_continuous(values: Floats, bad: Floats | None, named_id: bool) -> Draft | str:
    present = ~np.isnan(values)
    seen = values[present]
    if not seen.size:
        return "it is missing in every row"
    if len(values) >= FEW_ROWS and bool((np.diff(values) == 1).all()):
        return "it rises by 1 from row to row"
    distinct, row, counts = np.unique(seen, return_inverse=True, return_counts=True)
    if named_id and len(distinct) == len(values):
        return "its name and its values say that it numbers the rows"
    codes = suspicious_codes(distinct, counts)
    measured = ~np.isin(distinct, codes)
    notes = []
    if len(distinct) == 1 and present.all():
        notes.append("the same in every row")
    elif bad is not None:
        n_bad: Floats = np.bincount(row, weights=bad[present]).astype(np.float64)
        notes.append(_direction_note(counts[measured].astype(np.float64), n_bad[measured]))
    if codes:
        words = "may be a code: check" if len(codes) == 1 else "may be codes: check"
        notes.append(f"{', '.join(map(label_of, codes))} {words}")
    return {"special_values": codes, "note": "; ".join(notes) or None}


def _draft_categorical(column: Labels) -> Draft | str:
    n_rows, n_labels = len(column.codes), len(column.labels)
    if not n_labels:
        return "it is missing in every row"
    if n_rows >= FEW_ROWS and n_labels == n_rows:
        return "it differs in every row"
    if n_labels > MOST_CATEGORIES:
        return f"it has more than {MOST_CATEGORIES:,} categories"
    note = _numbers_as_text(column.labels)
    if note is None and n_rows >= FEW_ROWS and n_labels > n_rows / 2:
        note = f"{n_labels:,} categories in {n_rows:,} rows: group them, or leave it out"
    return {"kind": "categorical", "note": note}


def _numbers_as_text(labels: tuple[str, ...]) -> str | None:
    """Say that a column of text would be numbers but for a word or two ("NA", "?")."""
    words = []
    for label in labels:
        try:
            float(label)
        except ValueError:
            words.append(label)
    if len(words) > 3 or len(labels) - len(words) <= _MOST_BINS:
        return None
    if not words:
        return "numbers as text: make them numbers, and it is continuous"
    return f"numbers but for {', '.join(map(repr, words))}: make that missing, and it is continuous"


# ---- candidate directions


def _direction_note(n: Floats, n_bad: Floats) -> str:
    """Say which way the bad rate moves over the distinct values, given rows and bads at each."""
    total, total_bad = n.sum(), n_bad.sum()
    pairs = total_bad * (total - total_bad)
    if len(n) < 2 or not pairs:
        return "no clear direction (one outcome only)" if len(n) > 1 else "no clear direction (one value only)"
    good = n - n_bad
    auc = float(n_bad @ (np.cumsum(good) - good / 2) / pairs)
    rates, weights = _binned_rates(n, n_bad)
    sign = 1.0 if auc >= 0.5 else -1.0
    steps = np.sign(np.diff(rates)) * sign
    # Under no relation the AUC of ranks has this standard error (Mann and Whitney).
    error = float(np.sqrt((total + 1) / (12 * pairs)))
    beyond = abs(auc - 0.5)
    clear = beyond >= 0.02 and beyond >= 3 * error and _agreement(rates * sign, weights) >= 0.8
    direction, moves = ("increasing", "rises") if sign > 0 else ("decreasing", "falls")
    head = f"candidate direction: {direction}" if clear else "no clear direction"
    tally = f"{int((steps > 0).sum())} of {len(steps)} steps"
    return f"{head} (AUC {0.5 + beyond:.2f}, bad rate {moves} in {tally})"


def _binned_rates(n: Floats, n_bad: Floats) -> tuple[Floats, Floats]:
    """Bad rate and rows of at most ten bins of nearly equal size; equal values stay together."""
    middle = (np.cumsum(n) - n / 2) / n.sum()
    bins = np.minimum((middle * _MOST_BINS).astype(int), _MOST_BINS - 1)
    starts = np.flatnonzero(np.diff(bins, prepend=-1))
    weights = np.add.reduceat(n, starts)
    return np.add.reduceat(n_bad, starts) / weights, weights


def _agreement(rates: Floats, weights: Floats) -> float:
    """Share of the pairs of rows in two bins whose bins' rates rise; equal rates count half."""
    left, right = np.triu_indices(len(rates), k=1)
    if not len(left):
        return 0.5
    rises = (np.sign(rates[right] - rates[left]) + 1) / 2
    return float(np.average(rises, weights=weights[left] * weights[right]))
