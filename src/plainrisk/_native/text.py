"""A column of text as small integers."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk._native.cells import recode
from plainrisk._native.choice import compiled

__all__ = ["text_codes"]

_export = threading.Lock()  # while pandas exports, it changes which warnings are shown, and that is not safe in threads


def text_codes(column: Any, n_rows: int) -> tuple[npt.NDArray[np.int8], tuple[str, ...]] | None:
    """Return the rows of a column of text as places among its labels, which are sorted; -1 is missing.

    The text is read where it lies, through Arrow's C interface. None where that can not be done: without the compiled
    loops, for columns that do not offer it or are no text, and for more than 127 labels.

    Parameters
    ----------
    column : a series of polars or pandas, or an array of arrow
    """
    export = getattr(column, "__arrow_c_stream__", None)
    if compiled is None or export is None:
        return None
    codes = np.empty(n_rows, np.int8)
    try:
        with _export:
            stream = export()
    except Exception:  # pandas offers it without pyarrow too, which it then misses; and not all text can be exported
        return None
    found = compiled.text_codes(stream, codes)
    if found is None:
        return None
    order = sorted(range(len(found)), key=found.__getitem__)
    place = np.empty(len(found) + 1, np.int8)
    place[order] = np.arange(len(found))
    place[-1] = -1  # which code -1 reaches
    labels = tuple(found[k] for k in order)
    return codes if order == list(range(len(found))) else recode(codes, place), labels
