"""One linear-algebra thread around small problems: two are many times slower there."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

__all__ = ["one_thread"]


@functools.cache
def _controller() -> Any:
    # A dependency of scikit-learn. Finding the loaded libraries takes a while, so it is done once.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Limit linear algebra to one thread inside the block."""
    with _controller().limit(limits=1, user_api="blas"):
        yield
