from __future__ import annotations

import pytest

from plainrisk import _native


@pytest.fixture
def in_numpy(monkeypatch):
    """A function that calls a kernel with the compiled loops of its module turned off."""
    if not _native.COMPILED:
        pytest.skip("the compiled loops are not installed: no C compiler was found, or PLAINRISK_KERNELS=numpy")

    def call(module, function, *args, **options):
        with monkeypatch.context() as patch:
            patch.setattr(module, "compiled", None)
            return function(*args, **options)

    return call
