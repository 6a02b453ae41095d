from __future__ import annotations

import pytest

from plainrisk import _native as kernels
from plainrisk._native import sums


@pytest.fixture
def in_numpy(monkeypatch):
    """A function that calls a kernel with the compiled loops turned off."""
    if not kernels.COMPILED:
        pytest.skip("the compiled loops are not installed: no C compiler was found, or PLAINRISK_KERNELS=numpy")

    def call(module, function, *args, **options):
        with monkeypatch.context() as patch:
            for each in (module, sums):
                patch.setattr(each, "compiled", None)
            return function(*args, **options)

    return call
