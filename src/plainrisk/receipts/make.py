"""Making receipts from a model and applicants."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plainrisk._version import __version__
from plainrisk.errors import DataError
from plainrisk.explain.options import DecideOptions, WhatIfOptions
from plainrisk.explain.reasons import Decisions, Reasoner, decider
from plainrisk.explain.what_if import Planner, plain_values, planner
from plainrisk.form import RiskForm, form_hash
from plainrisk.form.wording import outcome_words
from plainrisk.receipts.record import FORMAT, Move, Named, Receipt, Record, commitment, salt_of, sha256_of, text_of
from plainrisk.signing import read_private_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

__all__ = ["ReceiptMaker"]


@dataclass(frozen=True)
class ReceiptMaker:
    """A model and a key, ready for many applicants.

    Attributes
    ----------
    form : the model; its policy has a cut-off
    key : the private key
    sha256 : the hash of the form
    reasoner, planner : which find reasons and changes
    """

    form: RiskForm
    key: EllipticCurvePrivateKey
    sha256: str
    reasoner: Reasoner
    planner: Planner

    @classmethod
    def of(cls, form: RiskForm, key: str | Path | EllipticCurvePrivateKey) -> ReceiptMaker:
        """Prepare a model; a key may be given by its file."""
        reasoner = decider(form, DecideOptions())
        private = read_private_key(key) if isinstance(key, str | Path) else key
        return cls(form, private, form_hash(form), reasoner, planner(form, WhatIfOptions()))

    def receipts(self, X: Any, time: datetime | None = None) -> list[Receipt]:
        """Return a receipt for every row.

        Parameters
        ----------
        X : rows
        time : of the decisions, with a time zone; None takes now
        """
        moment, form = _utc(time), self.form
        frame = form.align(X)
        decisions = Decisions.of(self.reasoner.reasons(frame))
        plans = self.planner.solve(frame)
        columns = {name: plain_values(form, frame, name) for name in form.features}
        return [
            self._receipt(
                moment,
                decisions.to_dict(i),
                [answer.changes for answer in plans[i].answers],
                {name: column[i] for name, column in columns.items()},
            )
            for i in range(frame.n_rows)
        ]

    def _receipt(self, time: str, decided: dict[str, Any], changes: list[Any], values: dict[str, Any]) -> Receipt:
        salt, schema = secrets.token_hex(32), self.form.schema
        record = Record(
            format=FORMAT,
            plainrisk=__version__,
            time=time,
            model=self.sha256,
            outcome=outcome_words(schema, self.form.classes[1]),
            probability=decided["risk"],
            cutoff=decided["cutoff"],
            adverse=schema.adverse,
            decision=decided["decision"],
            reference=decided["reference"],
            reasons=tuple(Named(reason["feature"], reason["reason"]) for reason in decided["reasons"]),
            changes=tuple(tuple(Move(c.feature, c.to_value) for c in together) for together in changes if together),
            inputs=tuple(sorted(commitment(salt_of(salt, n), n, text_of(v)) for n, v in values.items())),
            salt_sha256=sha256_of(salt),
        )
        return Receipt.sign(record, self.key, salt)


def _utc(time: datetime | None) -> str:
    """Return a time in UTC, to the second, as ISO 8601 has it."""
    moment = datetime.now(UTC) if time is None else time
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise DataError("receipt: time must be a datetime with a time zone, such as datetime.now(timezone.utc).")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
