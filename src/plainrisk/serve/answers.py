"""Answers of each verb: from a served model, rows and options to a result with columns."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from plainrisk._types import Floats
from plainrisk._version import __version__
from plainrisk.decision import refused
from plainrisk.errors import DataError
from plainrisk.explain.contributions import explainer
from plainrisk.explain.options import DecideOptions, ExplainOptions, ReasonOptions, WhatIfOptions
from plainrisk.explain.reasons import Decisions, decider, reasoner
from plainrisk.explain.what_if import planner
from plainrisk.form import RiskForm
from plainrisk.form.beyond import RowCounter, counts, names_beyond
from plainrisk.receipts import ReceiptMaker
from plainrisk.serve.requests import ScoreOptions
from plainrisk.serve.served import Served

__all__ = ["Risks", "about", "answer", "audited", "values_of", "with_receipts"]

Options = ScoreOptions | ExplainOptions | ReasonOptions | WhatIfOptions


@dataclass(frozen=True)
class Risks:
    """The risks of rows, the decisions if the model has a cut-off, and if asked for the features beyond training."""

    risk: Floats
    decision: list[str] | None
    beyond: list[tuple[str, ...]] | None

    def __len__(self) -> int:
        return len(self.risk)

    def columns(self) -> dict[str, Any]:
        """Return the table as columns by name."""
        columns: dict[str, Any] = {"risk": self.risk}
        if self.decision is not None:
            columns["decision"] = self.decision
        if self.beyond is not None:
            columns["beyond"] = [list(names) for names in self.beyond]
        return columns

    def to_dict(self, row: int) -> dict[str, Any]:
        """Return one row as plain data."""
        plain: dict[str, Any] = {"risk": float(self.risk[row])}
        if self.decision is not None:
            plain["decision"] = self.decision[row]
        if self.beyond is not None:
            plain["beyond"] = list(self.beyond[row])
        return plain


@dataclass(frozen=True)
class Extended:
    """A result with one more column.

    Attributes
    ----------
    result : the other columns
    name : of the column
    plain, column : its values as plain data, and as a table holds them
    """

    result: Any
    name: str
    plain: Sequence[Any]
    column: Sequence[Any]

    def __len__(self) -> int:
        return len(self.result)

    def columns(self) -> dict[str, Any]:
        """Return the table as columns by name."""
        return {**self.result.columns(), self.name: self.column}

    def to_dict(self, row: int) -> dict[str, Any]:
        """Return one row as plain data."""
        return {**self.result.to_dict(row), self.name: self.plain[row]}


def with_receipts(served: Served, letters: Extended, table: Any, key: Any) -> Extended:
    """Return decisions with a receipt for each, signed by a private key; in a table it is JSON."""
    maker = served.prepared("receipts", lambda: ReceiptMaker.of(served.model.form_, key))
    receipts = [receipt.to_dict() for receipt in maker.receipts(table)]
    return Extended(letters, "receipt", receipts, [msgspec.json.encode(receipt).decode() for receipt in receipts])


def answer(served: Served, options: Options, table: Any) -> Any:
    """Return the result of the verb whose options are given, as columns or row by row as plain data."""
    form = served.model.form_
    if isinstance(options, ScoreOptions):
        return _risks(served, options, table)
    if isinstance(options, ExplainOptions):
        return served.prepared(options, lambda: explainer(form, options)).explain(table)
    if isinstance(options, DecideOptions):
        decisions = Decisions.of(served.prepared(options, lambda: decider(form, options)).reasons(table))
        letters = [decisions.letter(i) for i in range(len(decisions))]
        return Extended(decisions, "letter", letters, letters)
    if isinstance(options, ReasonOptions):
        return served.prepared(options, lambda: reasoner(form, options)).reasons(table)
    return served.prepared(options, lambda: planner(form, options)).solve(table)


def _risks(served: Served, options: ScoreOptions, table: Any) -> Risks:
    form, cutoff = served.model.form_, served.model.cutoff
    risk = _risk(form, table)
    against = None if cutoff is None else refused(risk, cutoff, form.schema.adverse)
    decision = None if against is None else np.where(against, "refused", "approved").tolist()
    return Risks(risk, decision, names_beyond(form, form.align(table)) if options.beyond else None)


def _risk(form: RiskForm, table: Any) -> Floats:
    """Return the risks; a few rows are scored one by one, which is faster than making columns of them."""
    if isinstance(table, list):
        with contextlib.suppress(DataError):  # its message would count rows from the wrong one
            return np.concatenate([form.risk(row) for row in table])
    return np.asarray(form.risk(table))


def values_of(served: Served, table: Any) -> dict[str, dict[str, int]]:
    """Return, by feature, how many values are missing, unseen or out of range."""
    form = served.model.form_
    few = [table] if isinstance(table, dict) else table
    counted = served.prepared("values", lambda: RowCounter(form)).count(few) if isinstance(few, list) else None
    return counts(form, form.align(table)) if counted is None else counted


def audited(
    common: Mapping[str, Any], at: Sequence[int], inputs: Sequence[Any], answers: Sequence[Any], *, values: bool
) -> Iterator[dict[str, Any]]:
    """Yield the audit log's entry for every row: its position in the request, its decision, a salted hash of values.

    The hash covers the salt's text and the row as JSON, in the order of the model's features, so that whoever has the
    row can prove that it was this one. Equal rows have different hashes, but the salt stops nobody from guessing rows.
    """
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
    for i, row, plain_answer in zip(at, inputs, answers, strict=True):
        plain, salt = msgspec.json.encode(row, enc_hook=str), secrets.token_hex(16)
        entry = {"time": now, **common, "row": i, "salt": salt}
        entry["inputs_sha256"] = hashlib.sha256(salt.encode() + plain).hexdigest()
        if values:
            entry["inputs"] = msgspec.Raw(plain)
        yield {
            **entry,
            **{name: plain_answer[name] for name in ("risk", "decision", "reasons") if name in plain_answer},
        }


def about(served: Served) -> dict[str, Any]:
    """Describe a model: its features, how it was fitted, its certificate."""
    model, form = served.model, served.model.form_
    fit = model.fit_record_
    # The covariance grows with the square of the model, and only intervals need it.
    record = None if fit is None else msgspec.to_builtins(msgspec.structs.replace(fit, covariance=()))
    return {
        "model": served.identity,
        "plainrisk": __version__,
        "cutoff": model.cutoff,
        "about": dict(model.about),
        "classes": list(form.classes),
        "features": list(form.features),
        "parts": [part.name for part in form.parts],
        "schema": form.schema.to_dict(),
        "fit": record,
        "certificate": served.certificate.to_dict(),
    }
