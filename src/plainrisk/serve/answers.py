"""What the service answers: for each verb, from a served model, rows and options to a result with columns."""

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
from plainrisk.receipts import Receipt, ReceiptMaker
from plainrisk.serve.requests import ScoreOptions
from plainrisk.serve.served import Served

__all__ = ["Risks", "about", "answer", "audited", "values_of", "with_receipts"]

Options = ScoreOptions | ExplainOptions | ReasonOptions | WhatIfOptions


@dataclass(frozen=True)
class Risks:
    """The risks of rows, the decisions if the model has a cut-off, and what is beyond training if asked for."""

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
class Letters:
    """Decisions, each with its letter."""

    found: Decisions

    def __len__(self) -> int:
        return len(self.found)

    def columns(self) -> dict[str, Any]:
        """Return the table as columns by name."""
        return {**self.found.columns(), "letter": [self.found.letter(i) for i in range(len(self.found))]}

    def to_dict(self, row: int) -> dict[str, Any]:
        """Return one row as plain data."""
        return {**self.found.to_dict(row), "letter": self.found.letter(row)}


@dataclass(frozen=True)
class Receipted:
    """Letters, each with the receipt of its decision."""

    letters: Letters
    receipts: list[Receipt]

    def __len__(self) -> int:
        return len(self.letters)

    def columns(self) -> dict[str, Any]:
        """Return the table as columns by name; a receipt is JSON."""
        return {**self.letters.columns(), "receipt": [msgspec.json.encode(one).decode() for one in self.receipts]}

    def to_dict(self, row: int) -> dict[str, Any]:
        """Return one row as plain data."""
        return {**self.letters.to_dict(row), "receipt": self.receipts[row].to_dict()}


def with_receipts(served: Served, letters: Letters, table: Any, key: Any) -> Receipted:
    """Return letters with a receipt for each, signed by a private key."""
    maker = served.prepared("receipts", lambda: ReceiptMaker.of(served.model.form_, key))
    return Receipted(letters, maker.receipts(table))


def answer(served: Served, options: Options, table: Any) -> Any:
    """Return the result of a verb, given its options; it becomes columns, or plain data row by row."""
    form = served.model.form_
    if isinstance(options, ScoreOptions):
        return _risks(served, options, table)
    if isinstance(options, ExplainOptions):
        return served.prepared(options, lambda: explainer(form, options)).explain(table)
    if isinstance(options, DecideOptions):
        return Letters(Decisions(served.prepared(options, lambda: decider(form, options)).reasons(table)))
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
    """Return the risks; of a few rows one by one, which is quicker than to make columns of them."""
    if isinstance(table, list):
        with contextlib.suppress(DataError):  # it counts the rows from the one that is wrong
            return np.concatenate([form.risk(row) for row in table])
    return np.asarray(form.risk(table))


def values_of(served: Served, table: Any) -> dict[str, dict[str, int]]:
    """Return, by feature, how many values are missing, unseen or out of range."""
    form = served.model.form_
    few = [table] if isinstance(table, dict) else table
    counted = served.prepared("values", lambda: RowCounter(form)).count(few) if isinstance(few, list) else None
    return counts(form, form.align(table)) if counted is None else counted


def audited(
    known: Mapping[str, Any], at: Sequence[int], inputs: Sequence[Any], found: Sequence[Any], *, values: bool
) -> Iterator[dict[str, Any]]:
    """Yield the entry of every row for the audit log: its place in the request, its decision, a salted hash of values.

    The hash is of the salt's text and the row as JSON, in the order of the model's features: whoever has the row can
    show that it was this one. The salt gives equal rows different hashes; it does not stop anyone from guessing rows.
    """
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
    for i, row, said in zip(at, inputs, found, strict=True):
        plain, salt = msgspec.json.encode(row, enc_hook=str), secrets.token_hex(16)
        entry = {"time": now, **known, "row": i, "salt": salt}
        entry["inputs_sha256"] = hashlib.sha256(salt.encode() + plain).hexdigest()
        if values:
            entry["inputs"] = msgspec.Raw(plain)
        yield {**entry, **{name: said[name] for name in ("risk", "decision", "reasons") if name in said}}


def about(served: Served) -> dict[str, Any]:
    """Return what is known of a model: its features, how it was fitted, what is certain about it."""
    model, form = served.model, served.model.form_
    fit = model.fit_record_
    # The covariance is as large as the square of the model, and serves intervals alone.
    kept = None if fit is None else msgspec.to_builtins(msgspec.structs.replace(fit, covariance=()))
    return {
        "model": served.identity,
        "plainrisk": __version__,
        "cutoff": model.cutoff,
        "about": dict(model.about),
        "classes": list(form.classes),
        "features": list(form.features),
        "parts": [part.name for part in form.parts],
        "schema": form.schema.to_dict(),
        "fit": kept,
        "certificate": served.certificate.to_dict(),
    }
