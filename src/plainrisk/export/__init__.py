"""Exports: one small expression tree of a risk form, and one file per target that prints it."""

from plainrisk.export.expression import Program

__all__ = ["Program"]
