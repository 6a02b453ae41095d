"""The reasons of many applicants, and the ways to hand them on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.data.frame import frame_like
from plainrisk.errors import DataError
from plainrisk.explain.explanation import Unit
from plainrisk.explain.reference import Adverse

__all__ = ["Reasons"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]

_COMPARED = {
    "best": "the best levels there are",
    "mean": "the average application",
    "neutral": "a neutral application",
    "row": "the application it was compared with",
}


@dataclass(frozen=True)
class Reasons:
    """Ranked reasons against n applicants.

    Attributes
    ----------
    k : how many reasons at most, a further one for inquiries not counted
    against : what applicants are compared with
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
    against: str
    adverse: Adverse
    unit: Unit
    risk: Floats
    candidates: tuple[str, ...]
    subscales: tuple[str, ...]
    texts: tuple[str, ...]
    codes: Codes
    text_codes: Codes
    lost: Floats
    barred: tuple[str, ...]
    withheld: Codes

    def __len__(self) -> int:
        return len(self.risk)

    def named(self, row: int) -> tuple[str, ...]:
        """Return the features named to one applicant, in order."""
        return tuple(self.candidates[c] for c in self.codes[self._position(row)] if c >= 0)

    def words(self, row: int) -> tuple[str, ...]:
        """Return the reasons given to one applicant, in order."""
        return tuple(self.texts[c] for c in self.text_codes[self._position(row)] if c >= 0)

    def to_frame(self, like: Any = None) -> Any:
        """Return a data frame, one line per row; of the library `like` came from."""
        return frame_like(self.columns(), like)

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return the table as columns by name: reason_1, feature_1, lost_1, ..., with None where there is none."""
        texts, names = (np.array([*words, None], dtype=object) for words in (self.texts, self.candidates))
        columns: dict[str, npt.NDArray[Any]] = {"risk": self.risk}
        for j in range(self.codes.shape[1]):
            columns[f"reason_{j + 1}"] = texts[self.text_codes[:, j]]
            columns[f"feature_{j + 1}"] = names[self.codes[:, j]]
            columns[f"lost_{j + 1}"] = np.ascontiguousarray(self.lost[:, j])
        if self.barred:
            columns["withheld"] = self.withheld
        return columns

    def to_dict(self, row: int | None = None) -> Any:
        """Return one row, or a list of all, as plain data."""
        if row is None:
            return [self.to_dict(i) for i in range(len(self))]
        i = self._position(row)
        return {
            "risk": float(self.risk[i]),
            "against": self.against,
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
            return f"Compared with {_COMPARED[self.against]}, nothing in your application counts against it.\n"
        head = "We are sorry that we cannot approve your application. "
        one = len(words) == 1
        head += "The principal reason for this decision is:" if one else "The principal reasons for this decision are:"
        lines = [f"  {i}. {text}" for i, text in enumerate(words, 1)]
        tail = f"Each was found by comparing your application with {_COMPARED[self.against]}."
        return "\n".join([head, "", *lines, "", tail.replace("Each", "It") if one else tail]) + "\n"

    def _position(self, row: int) -> int:
        if not -len(self) <= row < len(self):
            raise DataError(f"There is no row {row}: there are reasons for {len(self):,} rows, the first is 0.")
        return row % len(self)
