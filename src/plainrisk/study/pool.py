"""A few worker processes, kept busy; one that dies costs the cell it was on."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from plainrisk.errors import DataError
from plainrisk.study.bench import Job
from plainrisk.study.store import Cell
from plainrisk.study.todo import Todo
from plainrisk.study.worker import READY, receive, send

__all__ = ["in_processes"]

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "POLARS_MAX_THREADS"), "1"
)


@dataclass(eq=False)
class _Worker:
    """A worker process and the job it has."""

    process: subprocess.Popen[bytes]
    job: Job
    ready: bool = False

    @classmethod
    def start(cls, inbox: queue.Queue[tuple[_Worker, Any]], job: Job) -> _Worker:
        """Start a process on a job, and a thread that listens to it."""
        command = [sys.executable, "-c", "from plainrisk.study.worker import main; main()"]
        env = {**os.environ, **_ONE_THREAD}
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        worker = cls(process, job)
        threading.Thread(target=worker._listen, args=(inbox,), daemon=True).start()
        worker._send(sys.path)
        worker.give(job)
        return worker

    def give(self, job: Job) -> None:
        """Send a job."""
        self.job = job
        self._send(job)

    def stop(self) -> None:
        """End the process."""
        self.process.terminate()
        self.process.wait()
        with contextlib.suppress(OSError):  # what a dead process was not sent cannot be flushed
            assert self.process.stdin is not None
            self.process.stdin.close()

    def _send(self, message: object) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the listener tells that the process is gone
            send(self.process.stdin, message)

    def _listen(self, inbox: queue.Queue[tuple[_Worker, Any]]) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as answers:
            try:
                while True:
                    inbox.put((self, receive(answers)))
            except EOFError as end:
                inbox.put((self, end))


def in_processes(todo: Todo, jobs: int) -> Iterator[Cell]:
    """Keep workers busy and yield cells as they come."""
    inbox: queue.Queue[tuple[_Worker, Any]] = queue.Queue()
    workers: set[_Worker] = set()

    def hire() -> None:
        job = todo.next()
        if job is not None:
            workers.add(_Worker.start(inbox, job))

    try:
        for _ in range(jobs):
            hire()
        while workers:
            worker, message = inbox.get()
            if message == READY:
                worker.ready = True
            elif isinstance(message, Cell):
                worker.job = replace(worker.job, lineup=worker.job.lineup[1:])
                yield message
            elif message is None:
                job = todo.next()
                if job is None:
                    workers.remove(worker)
                    worker.stop()
                else:
                    worker.give(job)
            elif worker in workers:
                workers.remove(worker)
                yield from _bury(worker, todo)
                hire()
    finally:
        for worker in workers:
            worker.stop()


def _bury(worker: _Worker, todo: Todo) -> Iterator[Cell]:
    """Yield the cell on which a worker died as a failure, and put the rest of its job back."""
    code = worker.process.wait()
    worker.stop()
    if not worker.ready:
        raise DataError(f"A worker process ended with code {code} before it began: see what it wrote above.")
    cause = " (killed, perhaps out of memory)" if code < 0 else ""
    job = worker.job
    if job.lineup:
        reason = f"The worker process died with exit code {code}{cause}."
        yield Cell(key=job.key(job.lineup[0]), status="failed", reason=reason)
        todo.again(replace(job, lineup=job.lineup[1:]))
