"""Explanations: contributions that add up, as tables, plain data, text and pictures."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from plainrisk._types import Bools, Floats, Index
from plainrisk.checks import NOTHING, Allowed, check_parameters, whole
from plainrisk.data.frame import Frame, Origin
from plainrisk.errors import DataError
from plainrisk.explain.options import Unit
from plainrisk.form import RiskForm
from plainrisk.form.beyond import names_beyond
from plainrisk.form.wording import say_value
from plainrisk.schema import label_of
from plainrisk.tables import TableResult, text_table
from plainrisk.text import plain_number

if TYPE_CHECKING:
    from plainrisk.explain.uncertainty import Interval

__all__ = ["Explanation", "RowsResult", "Unit"]

# Recognized by their attributes, so that matplotlib is not imported to check whether an object belongs to it.
AXES = NOTHING | Allowed(("axes of matplotlib",), lambda value: hasattr(value, "barh"))
INTERVAL = NOTHING | Allowed(("an Interval",), lambda value: hasattr(value, "low") and hasattr(value, "high"))


class RowsResult(TableResult):
    """A result with an entry per row of the data."""

    def __len__(self) -> int:
        raise NotImplementedError

    def __repr__(self) -> str:
        return text_table(self._headline(), {"row": range(len(self)), **self.columns()})

    def _plain(self, row: int) -> dict[str, Any]:
        raise NotImplementedError

    def to_dict(self, row: int | None = None) -> Any:
        """Return one row as plain data; without a row, a list of all rows."""
        if row is None:
            return [self._plain(i) for i in range(len(self))]
        return self._plain(self._position(row))

    def _position(self, row: int) -> int:
        """Return the position of a row, which may be counted from the end."""
        check_parameters(type(self).__name__, {"row": row}, {"row": whole()})
        if not -len(self) <= row < len(self):
            raise DataError(f"There is no row {row}: the result has {len(self):,} rows, the first is 0.")
        return row % len(self)


# A note for readers of contributions whose link is not straight between the reference and the row.
SHARES = (
    "The points are shares of the whole difference and add up exactly; a change of one value alone may do more or less."
)


@dataclass(frozen=True, repr=False)
class Explanation(RowsResult):
    """Contributions of n rows that add up.

    Attributes
    ----------
    unit : "probability" or "log odds"
    risk : (n,) the predicted probability
    constant : (n,) what every row starts from: the reference's risk (in log odds: its score)
    contributions : (n, k) pieces that lead from there to the risk (in log odds: to the row's score)
    subscales, features : (k,) what each column belongs to: a feature, or a pair as "u × v"; None where trees make up
        a whole subscale
    reference : what the row is compared with: "typical", "best", "row" or "zero"
    bends : (n,) whether the link is not one straight line between the reference and the row; from
        zero, whether the line is clipped where the row is, so that the pieces do not add up to the risk
    rate : (n,) what a *further* step would do: the last link's slope where the row is, in probability per unit of
        score. It is not the rate of the contributions. None for a pool that has no last link
    band : (n,) with a link of bands: the band the row is in, from 0; else None
    pairs : the features of every pair, which stands among `features` as "u × v"
    part_risks : (n, k) of a pool from zero, the risk that every subscale sees by itself, before its weight
    form : the model
    rows : the rows
    view : draws the explanation for notebooks
    """

    unit: Unit
    risk: Floats
    constant: Floats
    contributions: Floats
    subscales: tuple[str, ...]
    features: tuple[str | None, ...]
    reference: str
    bends: Bools | None = None
    band: Index | None = None
    rate: Floats | None = None
    pairs: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    part_risks: Floats | None = None
    form: RiskForm | None = field(default=None, repr=False, compare=False)
    rows: Frame | None = field(default=None, repr=False, compare=False)
    view: Callable[[Explanation], str | None] | None = field(default=None, repr=False, compare=False)

    @property
    def origin(self) -> Origin | None:
        """The origin of the rows."""
        return None if self.rows is None else self.rows.origin

    def __len__(self) -> int:
        return len(self.risk)

    def _repr_html_(self) -> str | None:
        """Return what notebooks show, if the explaining model provides it."""
        return None if self.view is None else self.view(self)

    def _headline(self) -> str:
        return f"Explanation of {len(self):,} rows in {self.unit}, compared with {self.reference!r}"

    def __repr__(self) -> str:
        columns: dict[str, Any] = {"row": range(len(self)), "risk": self.risk, "constant": self.constant}
        return text_table(self._headline(), columns | self.by_subscale)

    @property
    def total(self) -> Floats:
        """Everything added up; in probability it is the risk (from zero, where no line is clipped)."""
        return np.asarray(self.constant + self.contributions.sum(axis=1))

    @property
    def by_subscale(self) -> dict[str, Floats]:
        """The contributions of each subscale, added up over its features."""
        sums: dict[str, Floats] = {}
        for name, column in zip(self.subscales, self.contributions.T, strict=True):
            sums[name] = sums[name] + column if name in sums else column.copy()
        return sums

    @property
    def names(self) -> tuple[str, ...]:
        """A name per column: the feature; with its subscale if it is in several; or the subscale."""
        often = Counter(self.features)
        return tuple(
            s if f is None else f if often[f] == 1 else f"{s}: {f}"
            for s, f in zip(self.subscales, self.features, strict=True)
        )

    def value(self, row: int, feature: str | None) -> str:
        """Return the value an applicant has in a feature, as text; empty where it is not known."""
        if feature is not None and feature in self.pairs:
            return " × ".join(self.value(row, name) for name in self.pairs[feature])
        if self.rows is None or feature is None or feature not in self.rows.columns:
            return ""
        value = self.rows.column(feature)[row]
        value = value.item() if hasattr(value, "item") else value
        if value is None or value != value:
            return "missing"
        whole = not isinstance(value, float) or value.is_integer()
        return label_of(value) if whole else plain_number(float(value), 4)

    def in_words(self, row: int, feature: str) -> tuple[str, str]:
        """Return a feature and the value an applicant has in it as people call them; of a pair, both."""
        if self.form is None or self.rows is None:
            return feature, self.value(row, feature)
        schema, names = self.form.schema, self.pairs.get(feature, (feature,))
        values = [self.rows.column(name)[row] for name in names]
        plain = [value.item() if hasattr(value, "item") else value for value in values]
        said = (say_value(schema.features[name], value) for name, value in zip(names, plain, strict=True))
        return " × ".join(map(schema.title, names)), " × ".join(said)

    @functools.cached_property
    def beyond(self) -> list[tuple[str, ...]]:
        """For every row, the features whose value is beyond those of the training rows."""
        if self.form is None or self.rows is None:
            return [()] * len(self)
        return names_beyond(self.form, self.rows)

    def is_protected(self, column: int) -> bool:
        """Whether a column is a protected feature, a pair with one, or a subscale of trees that reads one."""
        if self.form is None:
            return False
        feature, features = self.features[column], self.form.schema.features
        if feature is not None:
            return any(features[name].protected for name in self.pairs.get(feature, (feature,)))
        return self.form.reads_protected(self.subscales[column])

    def _is_cut_off(self, row: int) -> bool:
        """Whether the terms of a line add up to a value that is clipped."""
        return self.reference == "zero" and abs(self.total[row] - self.risk[row]) > 1e-9

    def notes(self, row: int) -> list[str]:
        """Return what a reader should know about the contributions of a row: how they were shared."""
        notes = []
        if self.bends is not None and self.bends[row] and self._is_cut_off(row):
            notes.append(f"The pieces add up to {self.total[row]:.1%}; the line is clipped at {self.risk[row]:.1%}.")
        elif self.bends is not None and self.bends[row]:
            notes.append(SHARES)
        return notes

    def columns(self) -> dict[str, Any]:
        """Return the wide table as columns by name."""
        taken = {"risk", "constant", "band", "rate"}
        names = [f"{name} (contribution)" if name in taken else name for name in self.names]
        columns: dict[str, Any] = {"risk": self.risk, "constant": self.constant}
        columns |= {name: np.ascontiguousarray(c) for name, c in zip(names, self.contributions.T, strict=True)}
        if self.part_risks is not None:
            columns |= {f"{s} (risk)": risk for s, risk in zip(self.subscales, self.part_risks.T, strict=True)}
        return columns | {name: values for name, values in self._further().items() if values is not None}

    def _further(self) -> dict[str, Any]:
        return {"band": self.band, "rate": self.rate}

    def _plain(self, row: int) -> dict[str, Any]:
        plain: dict[str, Any] = {
            "risk": float(self.risk[row]),
            "unit": self.unit,
            "reference": self.reference,
            "constant": float(self.constant[row]),
            "subscales": self._subscales(row),
            "notes": self.notes(row),
            "beyond": list(self.beyond[row]),
        }
        if self.bends is not None:
            plain["bends"] = bool(self.bends[row])
        further = {name: values[row].item() for name, values in self._further().items() if values is not None}
        return plain | ({"further_step": further} if further else {})

    def _subscales(self, row: int) -> list[dict[str, Any]]:
        groups: dict[str, dict[str, Any]] = {}
        for j, (s, f) in enumerate(zip(self.subscales, self.features, strict=True)):
            amount = float(self.contributions[row, j])
            group = groups.setdefault(s, {"subscale": s, "contribution": 0.0, "features": []})
            group["contribution"] += amount
            if self.part_risks is not None:
                group["risk"] = float(self.part_risks[row, j])
            if f is not None:
                marked = {"protected": True} if self.is_protected(j) else {}
                group["features"].append({"feature": f, "value": self.value(row, f), "contribution": amount, **marked})
        return list(groups.values())

    def plot(
        self,
        row: int = 0,
        *,
        kind: Literal["waterfall", "bars"] = "waterfall",
        most: int = 12,
        interval: Interval | None = None,
        ax: Any = None,
    ) -> Any:
        """Draw one applicant: a waterfall from the reference to the risk, or bars on two levels; returns the axes.

        Parameters
        ----------
        most : how many contributions the waterfall shows: the largest; it shows the rest together
        interval : of the contributions, from `Refits.contributions` with the same options; drawn in the waterfall
        ax : matplotlib axes
        """
        from plainrisk.explain.plots import draw_bars, draw_waterfall

        row = self._position(row)
        given = {"most": most, "interval": interval, "ax": ax}
        check_parameters("plot", given, {"most": whole(0), "interval": INTERVAL, "ax": AXES})
        if kind == "waterfall":
            return draw_waterfall(self, row, most=most, interval=interval, ax=ax)
        if kind == "bars":
            return draw_bars(self, row, ax=ax)
        raise DataError(f"kind must be 'waterfall' or 'bars', not {kind!r}.")
