"""The compiled part of the package; everything else is in pyproject.toml."""

from pathlib import Path

from setuptools import Extension, setup

folder = Path("src/plainrisk/kernels")

setup(
    ext_modules=[
        Extension(
            "plainrisk.kernels._compiled",
            sources=sorted(map(str, folder.glob("*.c"))),
            depends=sorted(map(str, folder.glob("*.h"))),
            # Products are rounded before they are added, on every processor: numpy does the same.
            extra_compile_args=["-O3", "-ffp-contract=off"],
            py_limited_api=True,
            # Without a C compiler the installation goes on, and numpy does the work.
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
