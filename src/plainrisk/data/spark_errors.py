"""Turn Spark's exceptions into one line with the remedy."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator

from plainrisk._version import __version__
from plainrisk.errors import PlainriskError

__all__ = ["raised_by_spark"]

_SHIP = (
    "Install it where the workers run (%pip install on Databricks, the image on Kubernetes), or ship the driver's "
    "environment: pip install venv-pack && venv-pack -o environment.tar.gz, then start with "
    "--conf spark.archives=environment.tar.gz#environment and PYSPARK_PYTHON=./environment/bin/python"
)

_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"

# Searched for in Spark's messages, in this order, with the message given instead.
_KNOWN = {
    r"No module named '?(plainrisk\w*)": f"the workers' Python has no plainrisk {__version__}. {_SHIP}.",
    r"No module named '?(\w+)": "the workers' Python lacks the package {0}: install plainrisk[spark] there.",
    r"PYTHON_VERSION_MISMATCH|different (?:minor )?versions? (?:in|than) ": (
        f"the workers run another Python than the driver's {_PYTHON}. Set PYSPARK_PYTHON to that version for both."
    ),
    r"JAVA_GATEWAY_EXITED|Java gateway process exited|JAVA_HOME": (
        "Java did not start. Spark 4 needs Java 17 or newer: install it (apt install default-jre-headless) and let "
        "JAVA_HOME name its folder."
    ),
    r"UnsupportedClassVersionError|class file version": (
        "this Java is too old. Spark 4 needs Java 17 or newer; let JAVA_HOME name its folder."
    ),
    r"PATH_ALREADY_EXISTS": (
        "the output is there already. Name another, or remove it; without a file _SUCCESS in it, it is what a run "
        "that was killed has left."
    ),
    r"cancell?ed": "the job was canceled. Nothing was written, and the cache is free.",
    r"Connection refused|UNAVAILABLE|Py4JNetworkError|Connection reset|SparkContext was (?:shut down|stopped)"
    r"|SESSION_CLOSED|NO_ACTIVE_SESSION|Answer from Java side is empty": (
        "the connection was lost. Nothing was written; start a session again, and fit again."
    ),
}


@contextlib.contextmanager
def raised_by_spark(task: str) -> Iterator[None]:
    """Turn Spark's exceptions during a pass into one error of ours."""
    try:
        yield
    except PlainriskError:
        raise
    except Exception as error:
        if not _is_sparks(error):
            raise
        raise PlainriskError(f"Spark, {task}: {_said(str(error) or type(error).__name__)}") from error


def _is_sparks(error: Exception) -> bool:
    """Whether an error comes from Spark or from the connection to it."""
    modules = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return bool(modules & {"pyspark", "py4j", "grpc"}) or isinstance(error, ConnectionError | EOFError | RuntimeError)


def _said(text: str) -> str:
    for pattern, message in _KNOWN.items():
        match = re.search(pattern, text)
        if match:
            return message.format(*match.groups())
    # The worker's traceback ends with the line that names the error.
    raised = re.findall(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt): .+$", text, re.MULTILINE)
    lines = [line for line in raised if "pyspark.errors" not in line and "org.apache" not in line] or text.splitlines()
    return f"a partition failed: {lines[-1 if raised else 0].strip()}"
