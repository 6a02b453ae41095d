"""What a lender decided: how the outcome is called, who is refused, which reasons are given and in which words.

It is part of the schema, travels in the model file and is covered by its hash. Library, commands, page, service,
letters and exports read it there; a call may ask for less than the policy allows, never for more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar, get_args

import msgspec

from plainrisk.errors import SchemaError, did_you_mean

__all__ = [
    "CONVERSION_ERRORS",
    "REASONS",
    "Letter",
    "Limits",
    "Order",
    "Outcome",
    "Policy",
    "Table",
    "as_python",
    "as_table",
    "conversion_error",
    "policy_problems",
]

REASONS = 4  # given unless the policy says otherwise; more are seldom of help to an applicant

Order = Literal["feature", "subscale"]
Compared = Literal["best", "typical"]
T = TypeVar("T", bound=msgspec.Struct)
CONVERSION_ERRORS = (msgspec.ValidationError, TypeError, RecursionError)


class Table(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, repr_omit_defaults=True
):
    """A table of a schema; its fields are written where they are not the default."""


class Outcome(Table, frozen=True, kw_only=True):
    """The two outcomes in words, each as the continuation of "the applicant".

    Parameters
    ----------
    positive : str, optional
        The outcome whose probability the model predicts: "does not repay".
    negative : str, optional
        The other one: "repays".
    """

    positive: str | None = None
    negative: str | None = None


class Letter(Table, frozen=True, kw_only=True):
    """The texts that an applicant reads. Replace any of them, for another tone or another language.

    Parameters
    ----------
    refused : str
        The letter to a refused applicant, with {reasons} where they belong, and {comparison} if you like.
    unexplained : str
        The letter to a refused applicant for whom no reason may be named.
    approved : str
        The letter to an approved applicant.
    best, typical, row : str
        The text for {comparison}, by the reference that applicants are compared with.
    missing, special, below : str
        The reason where a field is empty, holds a code, or lies below its bound; {feature} stands for its label and
        {value} for the meaning of the code, or the bound.
    """

    refused: str = (
        "We are sorry that we cannot approve your application.\n\n"
        "Principal reasons for this decision:\n\n{reasons}\n\n{comparison}\n"
    )
    unexplained: str = (
        "We are sorry that we cannot approve your application. Please contact us, and we will explain this decision.\n"
    )
    approved: str = "We are pleased to tell you that your application is approved.\n"
    best: str = "We compared your application with the strongest applications."
    typical: str = "We compared your application with the average application."
    row: str = "We compared your application with another application."
    missing: str = "{feature}: not given"
    special: str = "{feature}: {value}"
    below: str = "{feature} is below {value}"


class Limits(Table, frozen=True, kw_only=True):
    """The limits beyond which a model needs review; `drift` uses the first two, `monitor` all.

    Parameters
    ----------
    moderate, large : float
        The population stability index from which a shift counts as moderate, and as large.
    missing, unseen : float
        By how much the missing share of a feature may rise, and which share of its values training may not have seen.
    auc : float, optional
        The AUC to compare with, as of validation; unless stated, what the probabilities of the new rows promise.
    auc_drop : float
        By how much the AUC may be less than that.
    gap : float
        By how much the mean probability may differ from the share of the positive outcome.
    approval : float, optional
        The approval rate to compare with; that of the training rows unless stated.
    approval_shift : float
        By how much the approval rate may differ from that.
    """

    moderate: float = 0.1
    large: float = 0.25
    missing: float = 0.05
    unseen: float = 0.01
    auc: float | None = None
    auc_drop: float = 0.05
    gap: float = 0.05
    approval: float | None = None
    approval_shift: float = 0.1

    def size(self, psi: float) -> str:
        """Return the size of a shift in words.

        >>> Limits().size(0.02), Limits(moderate=0.01).size(0.02), Limits().size(0.3)
        ('small', 'moderate', 'large')
        """
        return "large" if psi >= self.large else "moderate" if psi >= self.moderate else "small"


class Policy(Table, frozen=True, kw_only=True):
    """How applicants are decided, and the texts that they receive.

    Parameters
    ----------
    cutoff : float, optional
        Applicants are refused whose probability of the adverse outcome is not below the cut-off. Where the positive
        outcome is the good one, those whose probability of it is below the cut-off.
    reasons : int, optional
        The largest number of reasons; 4 unless stated.
    order : "feature" or "subscale"
        Reasons are listed by what each costs, or grouped by subscale, the subscale that costs most first.
    inquiries : tuple of str
        Features about credit inquiries: if one counts and none is among the reasons, it is a further one.
    reference : "best" or "typical"
        The reference for reasons: the best level of every feature, or the typical applicant.
    letter : Letter
    drift : Limits
    """

    cutoff: float | None = None
    reasons: int | None = None
    order: Order = "feature"
    inquiries: tuple[str, ...] = ()
    reference: Compared = "best"
    letter: Letter = Letter()
    drift: Limits = Limits()


def as_python(value: Any) -> Any:
    """Turn numpy's numbers and arrays into Python's."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"expected text or a number, got `{type(value).__name__}`")


def as_table(who: str, value: Any, kind: type[T]) -> T:
    """Check the fields of a table, however it was made: a Struct's own constructor checks none."""
    if not isinstance(value, Mapping | kind):
        raise SchemaError(f"Schema: {who} must be a table, not {type(value).__name__}.")
    try:
        return _with_defaults(msgspec.convert(msgspec.to_builtins(value, enc_hook=as_python), kind))
    except CONVERSION_ERRORS as error:
        fields = [field for table in (kind, Letter, Limits) for field in table.__struct_fields__]
        raise conversion_error(f"{who}: ", error, fields, {"order": Order, "reference": Compared}) from None


def conversion_error(
    who: str, error: Exception, fields: Iterable[str], choices: Mapping[str, Any], other: Any = None
) -> SchemaError:
    """Return msgspec's complaint as an error of ours, with what is allowed.

    Parameters
    ----------
    who : the start of the message: which table it is
    fields : known ones
    choices : the values of fields that are one of a few; `other` has those of a field that is not named
    """
    message = str(error)
    if isinstance(error, RecursionError):
        message = "it is nested too deep, or holds itself"
    elif message.startswith("Invalid enum value"):
        field = message.rpartition("$.")[2].rstrip("`").partition("[")[0]
        allowed = ", ".join(map(repr, get_args(choices.get(field, other))))
        message = f"{field} must be one of {allowed}, not {message.split(chr(39))[1]!r}"
    hint = did_you_mean(message.split("`")[1], list(fields)) if "unknown field" in message else ""
    return SchemaError(f"Schema: {who}{message}.{hint}")


def _with_defaults(table: T) -> T:
    """Set the default itself if a field equals it: msgspec omits the default object, not equal values."""
    defaults = type(table)()
    for field in table.__struct_fields__:
        value = getattr(table, field)
        if isinstance(value, msgspec.Struct):
            default = getattr(defaults, field)
            msgspec.structs.force_setattr(table, field, default if value == default else _with_defaults(value))
    return table


def policy_problems(policy: Policy, features: Collection[str]) -> Iterator[str]:
    """Yield the contradictions inside a policy, or between it and the schema."""
    cutoff = policy.cutoff
    if cutoff is not None and not 0 <= cutoff <= 1:
        yield f"policy: cutoff must be a probability from 0 to 1, not {cutoff:g}."
    if policy.reasons is not None and policy.reasons < 1:
        yield f"policy: reasons must be at least 1, not {policy.reasons}."
    for name in policy.inquiries:
        if name not in features:
            yield f"policy: inquiries names {name!r}, which is not among the features.{did_you_mean(name, features)}"
    limits = policy.drift
    if not 0 < limits.moderate <= limits.large < math.inf:
        yield "policy: the drift limits must be above 0, moderate not above large."
    for name in ("missing", "unseen", "auc", "auc_drop", "gap", "approval", "approval_shift"):
        value = getattr(limits, name)
        if value is not None and not 0 <= value <= 1:
            yield f"policy: the drift limit {name} must be from 0 to 1, not {value:g}."
    for field in policy.letter.__struct_fields__:
        if not getattr(policy.letter, field).strip():
            yield f"policy: letter.{field} is empty."
    for field in ("missing", "special", "below"):
        if "{feature}" not in getattr(policy.letter, field):
            yield f"policy: letter.{field} needs {{feature}} where the name of the feature belongs."
    if "{reasons}" not in policy.letter.refused:
        yield "policy: letter.refused needs {reasons} where the reasons belong."
    allowed = {
        "refused": {"reasons", "comparison"},
        "missing": {"feature"},
        "special": {"feature", "value"},
        "below": {"feature", "value"},
    }
    for field in policy.letter.__struct_fields__:
        for name in re.findall(r"\{(\w*)\}", getattr(policy.letter, field)):
            if name not in allowed.get(field, ()):
                yield f"policy: letter.{field} has {{{name}}}, for which nothing stands."
