"""Refuse to be imported in a subinterpreter, such as mod_wsgi's, where scipy would hang forever."""

from __future__ import annotations

import importlib
import sys

_interpreters = importlib.import_module("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")

if _interpreters.get_current() != _interpreters.get_main():
    raise ImportError(
        "plainrisk cannot be imported in a subinterpreter: scipy, which it needs, hangs there. Import it in the main "
        "interpreter of a process; in mod_wsgi set WSGIApplicationGroup %{GLOBAL}."
    )
