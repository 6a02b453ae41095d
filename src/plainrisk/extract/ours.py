"""Models that are a risk form already."""

from __future__ import annotations

from typing import Any

from plainrisk.data.frame import Frame
from plainrisk.extract.reading import require_fitted
from plainrisk.form import RiskForm

__all__ = ["read_form"]


def read_form(model: Any, frame: Frame | None) -> RiskForm:
    """Return the form of one of our models, or of anything else that keeps one in `form_`."""
    form = require_fitted(model, "form_")
    assert isinstance(form, RiskForm)
    return form
