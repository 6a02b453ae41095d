"""Which of two outcomes is the positive one: the schema's, or the one with a name for a bad outcome."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plainrisk._types import Array
from plainrisk.data.columns import label_of
from plainrisk.errors import DataError, SchemaError, quoted, warn

if TYPE_CHECKING:
    from plainrisk.schema.schema import Schema

__all__ = ["bad_label", "check_two_labels", "class_label", "position_of"]

_BAD = {
    "bad",
    "bankrupt",
    "bankruptcy",
    "charged off",
    "chargeoff",
    "default",
    "defaulted",
    "delinquent",
    "late",
    "loss",
}
_BAD |= {"non performing", "npl", "overdue", "unpaid", "written off", "yes", "y", "true"}
_GOOD = {
    "good",
    "current",
    "fully paid",
    "no default",
    "non default",
    "not default",
    "ok",
    "paid",
    "performing",
    "repaid",
}
_GOOD |= {"no", "n", "false"}


def bad_label(labels: Sequence[str]) -> str | None:
    """Return the label of the bad outcome, or None if the words do not show it.

    >>> bad_label(["Bad", "Good"]), bad_label(["Charged_Off", "Current"]), bad_label(["no", "yes"])
    ('Bad', 'Charged_Off', 'yes')
    >>> bad_label(["a", "b"]), bad_label(["paid", "settled"]), bad_label(["0", "1"])
    (None, 'settled', '1')
    """
    if set(labels) == {"0", "1"}:
        return "1"
    said = {label: re.sub(r"[\s_-]+", " ", label).strip().lower() for label in labels}
    bad = [label for label, words in said.items() if words in _BAD]
    good = [label for label, words in said.items() if words in _GOOD]
    if len(bad) == 1:
        return bad[0]
    others = [label for label in labels if label not in good]
    return others[0] if len(good) == 1 and len(others) == 1 else None


def check_two_labels(classes: Array) -> None:
    """Raise if there are more than two outcomes."""
    if len(classes) > 2:
        raise DataError(
            "Data: Only binary classification is supported. The type of the target is multiclass: it has "
            f"{len(classes)} labels. Is it the column of outcomes?"
        )


def position_of(classes: Array, schema: Schema) -> int:
    """Where the positive label stands among the sorted ones: the schema's, the one whose name is bad, or the last."""
    texts = [class_label(c) for c in classes]
    if schema.positive is None:
        return _position_by_words(texts, schema) if classes.dtype.kind in "USO" else len(classes) - 1
    wanted = class_label(schema.positive)
    if wanted in texts:
        return texts.index(wanted)
    raise SchemaError(
        f"Schema: the positive label {wanted!r} is not in the target, whose outcomes are {quoted(texts)}. Pass the "
        f"outcomes as they are, or state positive = {texts[-1]} in the schema if that is the same outcome. (Some "
        "meta-estimators of scikit-learn encode labels as 0 and 1 before the model sees them.)"
    )


def _position_by_words(texts: list[str], schema: Schema) -> int:
    bad = bad_label(texts)
    if bad is not None and len(texts) == 2:
        return texts.index(bad) if schema.worse > 0 else 1 - texts.index(bad)
    if len(texts) == 2:
        warn(
            f"The outcomes {quoted(texts)} do not say which one is bad; {texts[-1]!r} was taken for the positive one. "
            "State positive in the schema.",
        )
    return len(texts) - 1


def class_label(label: Any) -> str:
    """The text of an outcome: truth values are 0 and 1, however they are written."""
    text = label_of(label)
    return {"False": "0", "True": "1"}.get(text, text)
