"""Print a value of OPENBLAS_CORETYPE with which this processor uses other linear-algebra kernels than by default.

Results may not depend on the kernels that OpenBLAS chooses for a processor, so `make test` runs the tests that depend
on linear algebra with two choices. Haswell's kernels need AVX2; Prescott's run on every x86-64. Where numpy has no
OpenBLAS, or the processor is another one, nothing is printed on stdout and the reason on stderr.
"""

from __future__ import annotations

import os
import subprocess
import sys

CANDIDATES = ("Haswell", "Prescott")
# Zen's processors run Haswell's kernels, under another name.
KERNELS = {"Zen": "Haswell"}
PROBE = """
import numpy as np, scipy.linalg, threadpoolctl
square = np.eye(70) + np.ones((70, 70))
scipy.linalg.cho_solve(scipy.linalg.cho_factor(square @ square), np.ones(70))
print(*{pool.get("architecture") for pool in threadpoolctl.threadpool_info() if pool["internal_api"] == "openblas"})
"""


def architectures(core: str | None) -> set[str]:
    """Return what the loaded OpenBLAS libraries run as; an empty set if they cannot."""
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    if core is not None:
        environment["OPENBLAS_CORETYPE"] = core
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, env=environment)
    return {KERNELS.get(name, name) for name in done.stdout.split()} if done.returncode == 0 else set()


if __name__ == "__main__":
    default = architectures(None)
    for candidate in CANDIDATES if default else ():
        found = architectures(candidate)
        if found and not found & default:
            print(candidate)
            break
    else:
        print("no second choice of OpenBLAS kernels here", file=sys.stderr)
