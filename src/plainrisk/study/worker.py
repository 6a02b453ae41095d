"""A worker process: reads jobs from its standard input, writes cells to its standard output.

The runner starts it with one linear-algebra thread. It ends when its input ends, or when
nobody reads its output any more, so it does not outlive a runner that was killed.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
from typing import IO

__all__ = ["READY", "main", "receive", "send"]

READY = "ready"
_LENGTH = struct.Struct("<Q")


def send(pipe: IO[bytes], message: object) -> None:
    """Write one message."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(_LENGTH.pack(len(data)) + data)
    pipe.flush()


def receive(pipe: IO[bytes]) -> object:
    """Read one message; EOFError at the end."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    data = pipe.read(_LENGTH.unpack(head)[0])
    return pickle.loads(data)


def main() -> None:
    """Work until there is nothing left to do."""
    # An interrupt at the terminal reaches the whole group; the runner decides what becomes of its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    orders, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # What a classifier prints must not get between the messages.
    os.dup2(2, 1)
    try:
        sys.path[:] = receive(orders)  # type: ignore[call-overload]
        from plainrisk.study.bench import Bench, Job

        bench = Bench()
        send(answers, READY)
        while True:
            job = receive(orders)
            assert isinstance(job, Job)
            for cell in bench.cells(job):
                send(answers, cell)
            send(answers, None)
    except (EOFError, BrokenPipeError):
        os._exit(0)
