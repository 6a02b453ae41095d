"""Checking a receipt: its signature, the inputs that are shown, and with the model the decision and its reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plainrisk.decision import refused
from plainrisk.errors import DataError
from plainrisk.explain.options import DecideOptions
from plainrisk.explain.reasons import Decisions, decider
from plainrisk.explain.what_if import plain_values
from plainrisk.form import RiskForm, form_hash
from plainrisk.form.file import Check
from plainrisk.receipts.record import Receipt, Record, commitment, salt_of, sha256_of, text_of
from plainrisk.signing import key_id, read_public_key
from plainrisk.text import visible

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

__all__ = ["ReceiptCheck", "verify_receipt"]

ROUNDING = 1e-9  # between machines


@dataclass(frozen=True, repr=False)
class ReceiptCheck:
    """The results of checking a receipt.

    Attributes
    ----------
    record : what the receipt says; believe it only if the checks hold
    checks : each with whether it holds
    unchecked : what was not checked, and what is needed for it
    """

    record: Record
    checks: tuple[Check, ...]
    unchecked: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Whether everything that was checked is right."""
        return all(check.holds for check in self.checks)

    def __repr__(self) -> str:
        lines = [f"{'holds ' if c.holds else 'BROKEN'}  {c.name}: {c.detail}" for c in self.checks]
        return visible("\n".join([*lines, *(f"        not checked: {what}" for what in self.unchecked)]))


def verify_receipt(
    receipt: Receipt | str | Path,
    key: str | Path | EllipticCurvePublicKey,
    *,
    model: Any = None,
    inputs: Mapping[str, Any] | None = None,
) -> ReceiptCheck:
    """Check a receipt offline.

    Parameters
    ----------
    receipt : Receipt, str or Path
        As `model.receipt` or the service returned it, or its file.
    key : str or Path
        The public key of whoever decided.
    model : fitted estimator or RiskModel, default=None
        The model that decided: with all inputs it decides again.
    inputs : dict by feature, default=None
        The model's inputs, or some of them; as `Receipt.reveal` returns them if the receipt has no salt.

    Returns
    -------
    ReceiptCheck
        Its `valid` is the verdict.

    Examples
    --------
    >>> import tempfile
    >>> import plainrisk as pr
    >>> from plainrisk.signing import new_key
    >>> german = pr.datasets.load("german")
    >>> model = pr.AdditiveRiskModel(german.schema).fit(german.frame, german.target)
    >>> applicant = {name: german.frame[name][1] for name in german.schema.features}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     public = new_key(f"{folder}/key.pem")
    ...     receipt = model.receipt(applicant, key=f"{folder}/key.pem")
    ...     result = pr.verify_receipt(receipt, public, model=model, inputs=applicant)
    >>> [(check.name, check.holds) for check in result.checks][:3]
    [('signature', True), ('inputs', True), ('model', True)]
    """
    opened = receipt if isinstance(receipt, Receipt) else Receipt.read(receipt)
    public = read_public_key(key) if isinstance(key, str | Path) else key
    if inputs is not None and not isinstance(inputs, Mapping):
        raise DataError("verify_receipt: inputs must be a dict by feature, such as {'income': 2400}.")
    form: RiskForm | None = None
    if model is not None:
        model._require_form()
        form = model.form_
    whole = form is not None and inputs is not None and set(form.features) <= set(inputs)
    checks, unchecked = [_signature(opened, public)], []
    if inputs is None:
        unchecked.append("the inputs, which were not given")
    else:
        checks.append(_inputs(opened, inputs, form if whole else None))
    if form is None:
        unchecked.append("probability, decision, reasons and changes, which need the model")
    else:
        same = form_hash(form) == opened.record.model
        checks.append(Check("model", same, f"the receipt {'is' if same else 'is not'} of this model"))
        if whole:
            checks += _decided_again(form, opened.record, {n: _value(inputs[n]) for n in form.features})  # type: ignore[index]
        else:
            unchecked.append("probability, decision, reasons and changes, which need all inputs of the model")
    return ReceiptCheck(opened.record, tuple(checks), tuple(unchecked))


def _signature(receipt: Receipt, public: EllipticCurvePublicKey) -> Check:
    given, stated = key_id(public)[:12], receipt.signature.key[:12]
    if receipt.is_signed_by(public):
        if receipt.salt is None or sha256_of(receipt.salt) == receipt.record.salt_sha256:
            return Check("signature", True, f"the receipt is as the key {given} signed it")
        return Check("signature", False, "the salt is not the one that was signed")
    why = f"it is by the key {stated}, not {given}" if stated != given else "the receipt was changed, or is damaged"
    return Check("signature", False, why)


def _value(given: Any) -> Any:
    """Return an input, which may be given with the salt that opens it."""
    return given["value"] if isinstance(given, Mapping) else given


def _inputs(receipt: Receipt, inputs: Mapping[str, Any], form: RiskForm | None) -> Check:
    """Compare inputs with their hashes; a form reads them as it did then."""
    values = {name: _value(given) for name, given in inputs.items()}
    if form is not None:
        frame = form.align({name: values[name] for name in form.features})
        values = {name: plain_values(form, frame, name)[0] for name in form.features}
    others = []
    for name, value in values.items():
        given = inputs[name]
        salt = given.get("salt") if isinstance(given, Mapping) else receipt.salt and salt_of(receipt.salt, name)
        if not isinstance(salt, str):
            raise DataError(
                f"verify_receipt: the receipt has no salt, so {name!r} needs its own, as Receipt.reveal returns it."
            )
        if commitment(salt, name, text_of(value)) not in receipt.record.inputs:
            others.append(name)
    n, of = len(values), len(receipt.record.inputs)
    if others:
        return Check("inputs", False, f"not what the decision was made on: {', '.join(others)}")
    if form is not None and n != of:
        return Check("inputs", False, f"the decision was made on {of} inputs, and the model reads {n}")
    return Check("inputs", True, f"{n} of {of} inputs are those that the decision was made on")


def _decided_again(form: RiskForm, record: Record, row: dict[str, Any]) -> Iterator[Check]:
    """Let the model decide again, and compare."""
    decided = Decisions.of(decider(form, DecideOptions()).reasons(form.align(row))).to_dict(0)
    risk = decided["risk"]
    yield Check("probability", abs(risk - record.probability) <= ROUNDING, f"the model gives {risk:.6g}")
    terms = (record.cutoff, record.adverse, record.reference) == (
        decided["cutoff"],
        form.schema.adverse,
        decided["reference"],
    )
    yield Check("decision", terms and decided["decision"] == record.decision, f"the model gives {decided['decision']}")
    reasons = [(reason["feature"], reason["reason"]) for reason in decided["reasons"]]
    same = reasons == [(reason.feature, reason.words) for reason in record.reasons]
    yield Check("reasons", same, f"the model gives {'the same' if same else 'others'}")
    changed = [{**row, **{move.feature: move.to for move in answer}} for answer in record.changes]
    left = [refused(form.risk(new), record.cutoff, record.adverse).item() for new in changed]
    yield Check("changes", not any(left), f"{len(left) - sum(left)} of {len(left)} lead to approval")
