"""A first schema, drafted from data for a person to edit, and what was seen on the way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from plainrisk._types import Counts, Floats
from plainrisk.data.columns import PADDED, label_of
from plainrisk.data.frame import Frame, Labels, as_frame
from plainrisk.data.texts import read_texts
from plainrisk.errors import DataError, SchemaError, listing, quoted, warn
from plainrisk.schema.check import FEW_ROWS, MOST_CATEGORIES, suspicious_codes, target_problems
from plainrisk.schema.evidence import (
    MOST_ROWS,
    Cells,
    duplicate_findings,
    findings_of,
    label_cells,
    number_cells,
    percent,
    spread_rows,
)
from plainrisk.schema.findings import Finding, subscale_findings
from plainrisk.schema.formats import code_name, text_format
from plainrisk.schema.outcomes import bad_label
from plainrisk.schema.protected import looks_protected
from plainrisk.text import as_number

__all__ = ["draft_schema"]

Fields = dict[str, Any]  # the fields of a feature, or of a schema

_ALL = "not missing"  # where all rows of a column but the empty ones have one outcome
MANY = 50  # categories of which one asks whether all are needed
_ROW_NAMES = {"", "id", "index", "row", "row_id", "rowid"}
# 2018-12-31, 31.12.18, Dec-2018, 31-Dec-18, December 31, 2018, each perhaps with a time.
_MONTH = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DATES = (
    r"\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?",
    r"\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}",
    rf"(\d{{1,2}}[- ])?{_MONTH}[- ]\d{{2,4}}",
    rf"{_MONTH} \d{{1,2}}, \d{{4}}",
)
_DATE = re.compile(rf"({'|'.join(_DATES)})([ t]\d{{1,2}}:.*)?", re.IGNORECASE)


def draft_schema(
    frame: Any, target: str | None, positive: str | float | None, missing: Sequence[str] = ()
) -> tuple[Fields, list[Finding]]:
    """Return the fields of a drafted schema, as `Schema.infer` documents them, and all findings.

    Numbers are continuous, also as text where a rule says how they are written; text, truth values and categories are
    categorical. `positive` as given, or the bad outcome that was guessed, with a warning. Bad rates are those of at
    most 200,000 rows, evenly spread over the table.
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
    if table.n_rows > MOST_ROWS:
        remarks.append(f"figures are those of {MOST_ROWS:,} of {table.n_rows:,} rows, evenly spread.")
    columns = {name: _Column(table, name, bad, missing) for name in table.names if name != target}
    findings = [f for column in columns.values() for f in column.findings if f.kind != "left out"]
    kept = {name: column for name, column in columns.items() if column.fields is not None and column.why is None}
    findings += duplicate_findings({name: column.sample for name, column in kept.items()})
    findings += subscale_findings(list(kept))
    features = {name: column.fields for name, column in kept.items()}
    guarded = list(_protected_findings(kept))
    findings += guarded
    left_out = [finding for column in columns.values() for finding in column.left_out()]
    features |= {f.feature: {**(features[f.feature] or {}), "protected": True} for f in guarded}
    remarks += _remarks(guarded, left_out)
    if remarks:
        warn(listing("Schema.infer", remarks, "remarks"))
    return {"target": target, "positive": positive, "features": features}, [*findings, *left_out]


def _protected_findings(names: Iterable[str]) -> Iterator[Finding]:
    for name in names:
        attribute = looks_protected(name)
        if attribute is not None:
            yield Finding(name, "protected", f"protected, since its name suggests {attribute}: confirm")


def _remarks(guarded: Sequence[Finding], left_out: Iterable[Finding]) -> Iterator[str]:
    """Yield remarks on the columns that look protected, and on those left out, with the reason."""
    if guarded:
        names = quoted([finding.feature for finding in guarded])
        assumed = "assumed to be protected because of their names, so never given as a reason"
        yield f"{assumed}: {names}. Confirm each, or leave it out."
    reasons: dict[str, list[str]] = {}
    for finding in left_out:
        reasons.setdefault(finding.text, []).append(finding.feature)
    yield from (f"{why}: {quoted(own)}." for why, own in reasons.items())


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
    counts = np.bincount(outcome.codes)
    rarer = outcome.labels[int(counts.argmin()) if counts[0] != counts[1] else 1]
    bad = bad_label(outcome.labels)
    guess = rarer if bad is None else bad
    why = "because it is rarer" if bad is None else "because of its name"
    remark = f"{guess!r} of {target!r} was assumed to be the bad outcome, {why}. Give positive= to choose."
    return (float(guess) if table.is_numeric(target) else guess), [remark]


# ---- one column


class _Column:
    """One column as the draft sees it.

    Attributes
    ----------
    fields : those of the drafted feature; None if the column is not a feature
    findings : what was seen
    why : why it is left out, None if it is not
    sample : the rows that columns are compared in, as numbers; categories are numbered as they first occur
    """

    fields: Fields | None = None

    def __init__(self, table: Frame, name: str, bad: Floats | None, missing: Sequence[str]) -> None:
        self.name, self.bad = name, bad
        self.sample = np.zeros(0)
        self._rows = spread_rows(table.n_rows)
        why = _no_feature(table, name)
        self._format = (
            text_format(table.labels(name).labels, missing) if why is None and _is_text(table, name) else None
        )
        if self._format is not None:
            table = read_texts(table, {name: self._format.reading})
        if why is None and table.is_numeric(name):
            values = table.numbers(name)
            distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
            why = _no_measurement(name, values, distinct)
            self.findings = [] if why else list(self._numbers(values, distinct, counts))
        elif why is None:
            column = table.labels(name)
            why = _no_category(column)
            self.findings = [] if why else list(self._labels(column))
        self.why = f"left out because {why}" if why is not None else self._suspicion()
        if why is not None:
            self.findings = []
        elif self._format is not None:
            self.findings += [Finding(name, "text", remark) for remark in self._format.remarks()]

    def _suspicion(self) -> str | None:
        """Return why a column should not be a feature: it seems to know the outcome, or to number the rows."""
        for finding in self.findings:
            figures = finding.figures
            if finding.kind == "identifier" or (finding.kind == "leak" and figures.get("where", _ALL) == _ALL):
                return f"left out: {finding.text}"
        return None

    def left_out(self) -> list[Finding]:
        """Return why the column is left out; with the fields of a feature that a person may put back."""
        if self.why is None:
            return []
        return [Finding(self.name, "left out", self.why, {} if self.fields is None else {"fields": self.fields})]

    @property
    def _stated(self) -> Fields:
        return {} if self._format is None else self._format.fields

    def _numbers(self, values: Floats, distinct: Floats, counts: Counts) -> Iterator[Finding]:
        name, codes = self.name, suspicious_codes(distinct, counts)
        self.fields = {**self._stated, **({"special_values": codes} if codes else {})}
        self.sample = values[self._rows]
        if codes:
            words = "may be a code: check" if len(codes) == 1 else "may be codes: check"
            rows = {label_of(v): int(counts[distinct == v][0]) for v in codes}
            yield Finding(name, "code", f"{', '.join(rows)} {words}", {"rows": rows})
        whole = len(distinct) >= MOST_CATEGORIES and bool((distinct == np.floor(distinct)).all())
        if whole and len(distinct) == len(values):
            yield Finding(name, "identifier", "whole numbers that differ in every row: is it an identifier?")
        if distinct.tolist() == [0.0, 1.0]:
            share = float(counts[1] / counts.sum())
            yield Finding(name, "flag", f"a flag, 1 in {share:.1%} of its rows", {"share": share})
        if suspicion := _may_be_codes(name, distinct[~np.isin(distinct, codes)]):
            yield Finding(name, "category", suspicion)
        yield from self._outcomes(lambda bad: number_cells(self.sample, codes, bad))

    def _outcomes(self, cells: Callable[[Floats], Cells]) -> Iterator[Finding]:
        """Return what the column reveals about the outcome or, without an outcome, its share of missing values."""
        if self.bad is not None:
            yield from findings_of(self.name, cells(self.bad[self._rows]))
        elif share := float(np.isnan(self.sample).mean()):
            yield Finding(self.name, "missing", f"{percent(share)} missing", {"share": share})

    def _labels(self, column: Labels) -> Iterator[Finding]:
        self.fields = {"kind": "categorical", **self._stated}
        sampled = Labels(column.codes[self._rows], column.labels)
        _, first, row = np.unique(sampled.codes, return_index=True, return_inverse=True)
        self.sample = np.where(sampled.codes < 0, np.nan, np.argsort(np.argsort(first))[row])
        n_rows, n_labels = len(column.codes), len(column.labels)
        padded = next((label for label in column.labels if re.match(PADDED, label)), None)
        text = _numbers_as_text(column.labels) if padded is None else None
        if padded is not None:
            words = f"text, since {padded!r} has a leading zero, as codes have: a number needs kind = 'continuous'"
            yield Finding(self.name, "text", words)
        if text is not None:
            yield Finding(self.name, "text", text)
        elif n_rows >= FEW_ROWS and n_labels > n_rows / 2:
            words = f"{n_labels:,} categories in {n_rows:,} rows: group them, or leave it out"
            yield Finding(self.name, "many", words, {"categories": n_labels})
        elif n_labels > MANY:
            words = f"{n_labels:,} categories: rare = 0.01 merges the rare ones"
            yield Finding(self.name, "many", words, {"categories": n_labels})
        yield from self._outcomes(lambda bad: label_cells(sampled, bad))


def _no_feature(table: Frame, name: str) -> str | None:
    """Return why a column is not drafted as a feature, judged by its name or its type."""
    tidy = name.strip().lower()
    if tidy in _ROW_NAMES or tidy.startswith("unnamed:"):
        return "its name says that it is a row number"
    dtype = table.column(name).dtype
    if dtype.kind in "mM" if isinstance(dtype, np.dtype) else dtype.is_temporal():
        return "it holds dates; make them numbers, such as months until today"
    if not isinstance(dtype, np.dtype) and dtype.is_nested():
        return "it holds more than one value per row"
    return None


def _is_text(table: Frame, name: str) -> bool:
    """Whether a column contains text; a column of pandas' or polars' categories is always meant to be categorical."""
    column = table.column(name)
    if isinstance(column, np.ndarray):
        return column.dtype.kind in "OU" and not table.is_numeric(name)
    return bool(column.dtype == nw.String)


def _may_be_codes(name: str, distinct: Floats) -> str | None:
    """Return a remark if whole numbers may be codes: the name of their column suggests it, or they are few."""
    if len(distinct) < 2 or not (distinct == np.floor(distinct)).all() or distinct[0] < 0:
        return None
    remedy = "if so, kind = 'categorical'"
    if (word := code_name(name)) is not None:
        return f"may be codes, since its name suggests {word!r}: {remedy}"
    if distinct.tolist() in ([0.0, 1.0, 2.0], [1.0, 2.0, 3.0]):
        return f"{', '.join(map(label_of, distinct))} may be codes and not counts: {remedy}"
    return None


def _no_measurement(name: str, values: Floats, distinct: Floats) -> str | None:
    """Return why a column of numbers is not drafted as a feature, judged by its values."""
    n = len(values)
    if not distinct.size:
        return "it is missing in every row"
    if n < FEW_ROWS:
        return None
    if len(distinct) == 1 and not np.isnan(values).any():
        return "it is the same in every row"
    if bool((np.diff(values) == 1).all()):
        return "it rises by 1 from row to row"
    if len(distinct) == n:
        if name.strip().lower().endswith(("_id", " id")):
            return "its name and its values say that it is a row number"
        if distinct[-1] - distinct[0] == n - 1 and bool((distinct == np.floor(distinct)).all()):
            return "it is a row number, in another order"
    if _are_dates(distinct):
        return "it holds dates as numbers (20181231); make them months until today"
    return None


def _are_dates(distinct: Floats) -> bool:
    """Whether all numbers are written like 20181231."""
    if len(distinct) < FEW_ROWS or not ((distinct >= 19000101) & (distinct <= 21001231)).all():
        return False
    month, day = distinct // 100 % 100, distinct % 100
    return bool(((distinct == np.floor(distinct)) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all())


def _no_category(column: Labels) -> str | None:
    """Return why a column of labels is not drafted as a feature, judged by its labels."""
    n_rows, n_labels = len(column.codes), len(column.labels)
    if not n_labels:
        return "it is missing in every row"
    written = [label for label in column.labels if label.strip()]
    if written and all(map(_DATE.fullmatch, written)):
        return "it holds dates as text; make them numbers, such as months until today"
    if n_rows >= FEW_ROWS and n_labels == n_rows:
        return "it differs in every row"
    if n_rows >= FEW_ROWS and n_labels == 1 and bool((column.codes >= 0).all()):
        return "it is the same in every row"
    if n_labels > MOST_CATEGORIES:
        return f"it has more than {MOST_CATEGORIES:,} categories"
    return None


def _numbers_as_text(labels: Sequence[str]) -> str | None:
    """Return a remark if a text column would be numeric without one or two words ("NA", "?")."""
    words = [label for label in labels if as_number(label) is None]
    if not 0 < len(words) <= 3 or len(labels) - len(words) <= FEW_ROWS:
        return None
    return f"numbers except for {', '.join(map(repr, words))}: with null_values = {words} it is continuous"
