"""The compiled part of the package; everything else is in pyproject.toml."""

import runpy
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

folder = Path("src/plainrisk/_native")
# Products are rounded before they are added, on every processor: numpy does the same.
flags = ["/O2", "/fp:precise", "/std:c11"] if sys.platform == "win32" else ["-O3", "-ffp-contract=off"]
linker_flags = []
if sys.platform.startswith("linux"):
    # The same source gives the same bytes, wherever it is built: no paths, no identifier of the build.
    flags += ["-g0", f"-ffile-prefix-map={Path.cwd()}=."]
    linker_flags = ["-Wl,--build-id=none"]
# One build for every Python from 3.11 on, but for those without a global lock, which have no stable interface yet.
stable = not sysconfig.get_config_var("Py_GIL_DISABLED")
# The package uses a module of its own version only.
version_file = "src/plainrisk/_version.py"
macros = [("PLAINRISK_VERSION", runpy.run_path(version_file)["__version__"])]

setup(
    ext_modules=[
        Extension(
            "plainrisk._native._compiled",
            sources=sorted(map(str, folder.glob("*.c"))),
            depends=[*sorted(map(str, folder.glob("*.h"))), version_file],
            extra_compile_args=flags,
            extra_link_args=linker_flags,
            define_macros=[*macros, ("Py_LIMITED_API", "0x030B0000")] if stable else macros,
            py_limited_api=stable,
            # Without a C compiler the installation goes on, and numpy does the work.
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if stable else {},
)
