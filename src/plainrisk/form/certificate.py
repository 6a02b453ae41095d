"""A certificate: promises of a form, checked, as pure data that can stand in a model file."""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["Certificate", "Check"]


class Check(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One promise: what it is, whether it holds, and the evidence."""

    name: str
    holds: bool
    detail: str


class Certificate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All promises of a model, checked.

    Attributes
    ----------
    checks : the promises; a model is valid if all hold
    notes : facts worth knowing that break no promise
    form_sha256 : the hash of the form they were checked on
    thin : levels with less training weight than this are in the notes
    """

    checks: tuple[Check, ...]
    notes: tuple[str, ...]
    form_sha256: str = ""
    thin: float = 30.0

    @property
    def valid(self) -> bool:
        """Whether every promise holds."""
        return all(check.holds for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain data."""
        return {"valid": self.valid, **msgspec.to_builtins(self)}

    def __repr__(self) -> str:
        broken = [check.name for check in self.checks if not check.holds]
        state = "valid" if self.valid else f"BROKEN ({'; '.join(broken)})"
        held = len(self.checks) - len(broken)
        return f"Certificate: {state}, {held} of {len(self.checks)} checks hold, {len(self.notes)} notes"

    def __str__(self) -> str:
        lines = [f"{'holds ' if c.holds else 'BROKEN'}  {c.name}: {c.detail}" for c in self.checks]
        return "\n".join([*lines, *(f"note    {n}" for n in self.notes)])
