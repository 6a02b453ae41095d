"""Which of two outcomes is the bad one, by the words that people use."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["bad_label"]

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
    """Return the label that stands for the bad outcome, or None if the words do not say.

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
