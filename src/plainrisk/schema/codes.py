"""Find numbers that look like codes (-9: no record, 98: refused, 999: unknown) among measurements."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["suspicious_codes"]

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.integer[Any]]

_MOST_CODES = 5
_WIDE_SCALE = 10


def suspicious_codes(values: Floats, counts: Counts) -> tuple[float, ...]:
    """Return the values of a column that look like codes, not like measurements.

    A code looks like one (a few nines that end in 6 to 9, or a negative number where all others are not),
    stands apart from the measurements, and is common. A person has the last word.

    Parameters
    ----------
    values : the distinct values, sorted, without missing ones
    counts : how often each occurs

    Examples
    --------
    >>> suspicious_codes(np.array([-9.0, 0, 1, 2, 3, 98]), np.array([20, 500, 90, 30, 9, 25]))
    (-9.0, 98.0)
    """
    enough = max(3.0, counts.sum() / 10_000)
    found = [*_negative_codes(values, counts, enough)]
    kept = ~np.isin(values, found)
    values, counts = values[kept], counts[kept]
    high = _outlying_codes(values, counts, enough)
    low = _outlying_codes(-values[::-1], counts[::-1], enough)
    return tuple(sorted({*found, *high, *(-v for v in low)}))


def _nines(value: float) -> bool:
    """Whether a number is written 96 to 99, 996 to 999, 9996 to 9999 ..."""
    if not value.is_integer() or not 96 <= value < 1e16:
        return False
    text = str(int(value))
    return text[-1] in "6789" and set(text[:-1]) == {"9"}


def _negative_codes(values: Floats, counts: Counts, enough: float) -> list[float]:
    """A few negative whole numbers below measurements that are never negative."""
    n_codes = int(np.searchsorted(values, 0.0))
    codes, rest = values[:n_codes].tolist(), values[n_codes:]
    if not 1 <= n_codes <= _MOST_CODES or len(rest) < 2 or counts[:n_codes].max() < enough:
        return []
    if not all(_nines(-v) or (v.is_integer() and v >= -9) for v in codes):
        return []
    # -2, -1, 0, 1, 2 is one scale: nothing stands apart. A lone -1 below many values is still a code.
    apart = rest[0] - codes[-1] > np.diff(rest).min()
    return codes if apart or (codes == [-1.0] and len(rest) > _WIDE_SCALE) else []


def _outlying_codes(values: Floats, counts: Counts, enough: float) -> list[float]:
    """The largest values, all nines, beyond a gap: as wide as the rest, or narrower if they are a spike."""
    cut = len(values)
    while cut > 2 and _nines(float(values[cut - 1])):
        cut -= 1
    for first in range(cut, len(values)):
        gap, spread = values[first] - values[first - 1], values[first - 1] - values[0]
        most, neighbours = counts[first:].max(), counts[max(0, first - 5) : first].max()
        spike = most >= 5 * neighbours and gap >= 0.1 * spread
        if most >= enough and gap > 0 and (gap >= spread or spike):
            return [float(v) for v in values[first:]]
    return []
