"""Several workers, which share the connections, are replaced when they end, and get the last certified models."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from plainrisk.errors import PlainriskError
from plainrisk.files import write_text
from plainrisk.serve.counts import Counts
from plainrisk.serve.served import Served, Shelf
from plainrisk.serve.settings import Settings

__all__ = ["STOPS", "Place", "Supervisor", "end_with_parent"]

LOG = logging.getLogger("plainrisk.serve")

STOPS = [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)]
BEAT_SECONDS = 1.0  # between two signs of life of a worker, and between two rounds of the supervisor
SILENT_SECONDS = 60.0  # without a sign of life, after which a worker is killed; starting is slow on a busy machine
START_TRIES = 5  # the service gives up after so many workers in a row that end before their first sign of life


@dataclass(frozen=True)
class Place:
    """The arguments of a worker.

    Attributes
    ----------
    number : from 0; a worker's replacement gets the same number and continues its counters
    settings : with the models as the supervisor keeps them
    listening : the socket
    folder : of counters
    beats : where signs of life are sent
    """

    number: int
    settings: Settings
    listening: socket.socket
    folder: Path
    beats: Connection


@dataclass
class _Worker:
    process: SpawnProcess
    beats: Connection
    last: float
    ready: bool = False
    stopping: bool = False

    def stop(self) -> None:
        """Ask it to stop, once: a second signal would stop it in the middle of a request."""
        if not self.stopping:
            self.stopping = True
            self.process.terminate()


class Supervisor:
    """Starts workers and replaces those that end, until a signal to stop.

    Only the supervisor reads the model files. It copies every certified model into a folder of the service, from which
    the workers read, so that a worker that starts later gets the last certified model, whatever happened to the file.

    Parameters
    ----------
    settings : of the service
    shelf : the models, already read
    folder : of the service alone, for the models in force and the counters
    bind : returns a listening socket, for each worker its own where the system spreads connections over them
    work : what a worker runs
    """

    def __init__(
        self,
        settings: Settings,
        shelf: Shelf,
        folder: Path,
        bind: Callable[[], socket.socket],
        work: Callable[[Place], None],
    ) -> None:
        self.shelf, self.folder, self.bind, self.work = shelf, folder, bind, work
        self.kept = {name: folder / "models" / f"{name}.json" for name in shelf.paths}
        self.settings = settings.replaced(models=tuple(map(str, self.kept.values())))
        self.counts = Counts(folder, "supervisor")
        self._spawn = multiprocessing.get_context("spawn")
        self._workers: dict[int, _Worker] = {}
        self._sockets: dict[int, socket.socket] = {}
        self._copied: dict[str, Served] = {}
        self._stopping, self._failed, self._lost = False, 0, False

    def run(self, workers: int) -> None:
        """Run until a signal to stop; a service that cannot go on raises."""
        if self.settings.rate is not None:
            self.settings = self.settings.replaced(rate=self.settings.rate / workers)
        self._sockets = {number: self.bind() for number in range(workers)}
        before = {sig: signal.signal(sig, self._stop) for sig in STOPS if signal.getsignal(sig) is not signal.SIG_IGN}
        try:
            for number in self._sockets:
                self._start(number)
            while not self._stopping:
                self._supervise()
            self._end()
        finally:
            for worker in self._workers.values():
                worker.process.kill()
            for sig, handler in before.items():
                signal.signal(sig, handler)
        if self._lost:
            raise PlainriskError("serve: a worker did not stop in time and was killed; requests may be lost.")

    # ---- workers

    def _start(self, number: int) -> None:
        self._copy_models()
        receive, send = self._spawn.Pipe(duplex=False)
        place = Place(number, self.settings, self._sockets[number], self.folder, send)
        process = self._spawn.Process(target=self.work, args=(place,), daemon=True, name=f"worker {number}")
        process.start()
        send.close()
        self._workers[number] = _Worker(process, receive, time.monotonic())

    def _supervise(self) -> None:
        """Wait for a moment, note signs of life, replace workers that ended, and read models that were replaced."""
        wait([worker.process.sentinel for worker in self._workers.values()], BEAT_SECONDS)
        now = time.monotonic()
        for number, worker in list(self._workers.items()):
            self._note_signs(worker, now)
            if self._stopping:
                return
            if not worker.process.is_alive():
                self._replace(number, worker)
            elif now - worker.last > SILENT_SECONDS:
                LOG.error("worker %d gave no sign of life for %g s and is killed", number, SILENT_SECONDS)
                worker.process.kill()
        self.counts.refresh(self.shelf)
        self._copy_models()

    def _copy_models(self) -> None:
        """Copy new models, and those whose copy was removed with other temporary files."""
        for name, served in self.shelf.models.items():
            if self._copied.get(name) is served and self.kept[name].exists():
                continue
            try:
                self.kept[name].parent.mkdir(exist_ok=True)
                write_text(self.kept[name], served.text)
                self._copied[name] = served
            except (OSError, PlainriskError) as error:
                LOG.error("model %s could not be handed to the workers: %s", name, error)

    def _note_signs(self, worker: _Worker, now: float) -> None:
        try:
            while worker.beats.poll():
                worker.beats.recv_bytes()
                worker.last, worker.ready, self._failed = now, True, 0
        except (EOFError, OSError):
            pass  # it ended

    def _replace(self, number: int, worker: _Worker) -> None:
        code = worker.process.exitcode
        worker.beats.close()
        if not worker.ready:
            self._failed += 1
            if self._failed >= START_TRIES:
                raise PlainriskError(
                    f"serve: {self._failed} workers in a row ended as they started, the last with code {code}. The log "
                    "says why."
                )
            self._rebind(number)
        LOG.error("worker %d ended with code %s and is replaced", number, code)
        self.counts.workers.inc()
        self._start(number)

    def _rebind(self, number: int) -> None:
        """Give a worker that does not start a new socket, so that its connections go to the others."""
        if len({id(s) for s in self._sockets.values()}) > 1:
            self._sockets[number].close()
            self._sockets[number] = self.bind()

    # ---- the end

    def _stop(self, *_: Any) -> None:
        """Stop the workers: they report that they are not ready, finish their requests, and end."""
        self._stopping = True
        for listening in self._sockets.values():
            listening.close()  # otherwise connections would be accepted that no worker will answer
        for worker in list(self._workers.values()):
            worker.stop()

    def _end(self) -> None:
        end = time.monotonic() + self.settings.seconds + self.settings.drain_seconds + BEAT_SECONDS
        for number, worker in self._workers.items():
            worker.stop()  # one that was starting when the signal came
            worker.process.join(max(0.0, end - time.monotonic()))
            if worker.process.is_alive():
                LOG.error("worker %d did not stop in time and is killed", number)
                self._lost = True
                worker.process.kill()


# ---- in a worker


def end_with_parent() -> None:
    """Stop this process when its parent has ended, for whatever reason."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            LOG.error("the supervisor has ended, so this worker stops")
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
