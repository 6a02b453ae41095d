"""Where the `plainrisk` command starts, and the exit codes and signals by which it ends."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time
import traceback
from enum import IntEnum
from importlib.util import find_spec
from typing import Any

__all__ = ["ExitCode", "is_interrupt", "main"]

NEEDED = ("typer", "rich", "polars")
AGAIN = 0  # a mark among the numbers of signals: raise the interrupt once more
GRACE = 2.0  # seconds for cleaning up after an interrupt, in which another one is ignored


class ExitCode(IntEnum):
    """The exit codes, each with its meaning."""

    meaning: str

    DONE = 0, "done"
    FOUND_PROBLEMS = 1, "schema check or data check found errors, or a bug in plainrisk"
    BUG = FOUND_PROBLEMS
    USAGE = 2, "the command, a file or the data cannot be used; the message says why"
    MISSING_EXTRA = 3, "an optional package is missing; the message says which"
    FAILED_CERTIFICATE = 4, "a certificate, a check or a signature fails; nothing was written"
    LIMIT_CROSSED = 5, "monitor: new rows cross a limit that the model keeps"
    HUNG_UP = 129, "the terminal was closed (SIGHUP); nothing was left half-written"
    INTERRUPTED = 130, "interrupted; nothing was left half-written"
    BROKEN_PIPE = 141, "the program that reads the output ended first, as head does"
    TERMINATED = 143, "terminated (SIGTERM); nothing was left half-written"

    def __new__(cls, code: int, meaning: str) -> ExitCode:
        """Keep the meaning next to the number."""
        member = int.__new__(cls, code)
        member._value_, member.meaning = code, meaning
        return member


def main() -> None:
    """Run the command line; if its packages are missing, explain how to install them and exit with 3."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        sys.stderr.write(
            f"plainrisk: {', '.join(missing)} {verb} needed for the command line and not installed. Run:\n"
            "pip install 'plainrisk[cli]'\n"
        )
        raise SystemExit(ExitCode.MISSING_EXTRA)
    # A terminal that lacks a character shows a question mark instead of ending the command.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    # A command's matrices are small: a second thread would only wait for them, at the cost of a processor.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    signals = Signals()
    try:
        from plainrisk.cli.app import app

        with signals:
            app(prog_name="plainrisk")
    except KeyboardInterrupt:
        raise SystemExit(signals.exit_code(ExitCode.INTERRUPTED)) from None
    except RuntimeError as error:
        if not is_interrupt(error):
            raise
        raise SystemExit(signals.exit_code(ExitCode.INTERRUPTED)) from None
    except SystemExit as end:
        raise SystemExit(signals.exit_code(end.code)) from None


def is_interrupt(error: BaseException) -> bool:
    """Whether an interrupt caused an error: Python 3.11 wraps an interrupt that arrives while a class is made."""
    return isinstance(error, KeyboardInterrupt) or isinstance(error.__cause__, KeyboardInterrupt)


class Signals:
    """While it is entered, SIGTERM and SIGHUP end a command as an interrupt does: every `finally` runs.

    A thread passes them on to the main thread as SIGINT: a query of polars heeds that one alone, and in a query no
    handler written in Python runs.
    """

    def __init__(self) -> None:
        self._first: int | None = None
        self._ignored = False
        self._raised = -GRACE
        self._before: dict[int, Any] = {}

    def exit_code(self, code: Any) -> Any:
        """Return the exit code, which after a signal is 128 and its number unless the command had done its work."""
        return code if self._first is None or not code else 128 + self._first

    def __enter__(self) -> Signals:
        if os.name != "posix" or threading.current_thread() is not threading.main_thread():
            return self
        # A process that was started to ignore a signal, as under nohup, keeps ignoring it.
        self._ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._fd = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._hook, sys.unraisablehook = sys.unraisablehook, self._unraisable
        threading.Thread(target=self._pass_on, daemon=True).start()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number == signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN:
                handler = self._interrupt if number == signal.SIGINT else _do_nothing
                self._before[number] = signal.signal(number, handler)
        return self

    def __exit__(self, *_: object) -> None:
        if not self._before:
            return
        for number, handler in self._before.items():
            # After a signal the process is about to end, with its code; a second one must not end it otherwise.
            signal.signal(number, handler if self._first is None else signal.SIG_IGN)
        sys.unraisablehook = self._hook
        signal.set_wakeup_fd(self._fd)
        os.close(self._write)

    def _pass_on(self) -> None:
        with open(self._read, "rb", buffering=0) as file:
            while numbers := file.read(64):
                for number in set(numbers) & {signal.SIGTERM, signal.SIGHUP, AGAIN}:
                    self._first = self._first or number or signal.SIGINT
                    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def _interrupt(self, number: int, frame: Any) -> None:
        if self._ignored and self._first is None:
            return
        if any(f.f_code is Signals._unraisable.__code__ for f, _ in traceback.walk_stack(frame)):
            os.write(self._write, bytes([AGAIN]))  # it would be lost here, too
            return
        self._first = self._first or number
        now = time.monotonic()
        if now - self._raised >= GRACE:
            self._raised = now
            raise KeyboardInterrupt

    def _unraisable(self, problem: Any) -> None:
        """Raise an interrupt again that came where Python cannot raise it, such as in a destructor."""
        if not issubclass(problem.exc_type, KeyboardInterrupt):
            self._hook(problem)
            return
        self._raised = -GRACE
        os.write(self._write, bytes([AGAIN]))


def _do_nothing(number: int, frame: Any) -> None:
    """Take a signal, so that it does not end the process; the thread that reads the numbers does the rest."""
