"""The service as processes: sockets, workers and signals; uvicorn by its public options alone."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import tempfile
from types import FrameType
from typing import Any

import msgspec
import uvicorn
from uvicorn.supervisors import Multiprocess

from plainrisk.errors import PlainriskError
from plainrisk.serve.settings import Settings

__all__ = ["run", "worker_app"]

SETTINGS = "PLAINRISK_SERVE"  # where a worker process finds the settings
HEAD_BYTES = 64 * 2**10
KEEP_ALIVE_SECONDS = 5
WORKER_SECONDS = 60  # for a worker to start, or to answer its supervisor, on a machine that is busy


def run(settings: Settings, workers: int = 1) -> None:
    """Serve until a signal says to stop."""
    from plainrisk.serve.served import Shelf

    Shelf(settings.models).open()  # what is wrong with a model is said here, not by every worker
    os.environ[SETTINGS] = msgspec.json.encode(settings).decode()
    signal.set_wakeup_fd(-1)  # the server takes signals by itself; the command line must not pass them on
    config = uvicorn.Config(
        "plainrisk.serve.process:worker_app",
        factory=True,
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        workers=workers,
        timeout_worker_healthcheck=WORKER_SECONDS,
        h11_max_incomplete_event_size=HEAD_BYTES,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(settings.seconds) + 1,
    )
    with _bound(settings) as listening:
        _say_where(listening)
        if workers == 1:
            uvicorn.Server(config).run(sockets=[listening])
            return
        with tempfile.TemporaryDirectory(prefix="plainrisk-serve-") as counters:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = counters
            Multiprocess(config, sockets=[listening]).run()


def worker_app() -> Any:
    """Return the application of one worker process, whose server has taken the signals already."""
    from plainrisk.serve.app import make_app

    settings = msgspec.json.decode(os.environ[SETTINGS], type=Settings)
    _log_to_stderr()
    app = make_app(settings)
    _drain_first(app.state.service)
    return app


def _log_to_stderr() -> None:
    """Write the service's own log, and uvicorn's, unless the embedding program has set up logging."""
    if not logging.getLogger().handlers:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")


def _say_where(listening: socket.socket) -> None:
    host, port = listening.getsockname()[:2]
    _log_to_stderr()
    shown = f"[{host}]" if ":" in host else host
    logging.getLogger("plainrisk.serve").info("listening on http://%s:%d/", shown, port)


def _bound(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit it. Otherwise the body of an answer waits 40 ms for the client to confirm the head.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise PlainriskError(f"serve: cannot listen on {settings.host}:{settings.port}: {error.strerror}.") from None
    listening.set_inheritable(True)
    return listening


def _drain_first(service: Any) -> None:
    """When told to stop, say that the service is not ready and answer on for a while; told again, stop at once."""
    for number in (signal.SIGTERM, signal.SIGINT):
        stop: Any = signal.getsignal(number)

        def drain(sig: int, frame: FrameType | None, stop: Any = stop) -> None:
            if service.draining:
                stop(sig, frame)
                return
            service.draining = True
            asyncio.get_running_loop().call_later(service.settings.drain_seconds, stop, sig, None)

        signal.signal(number, drain)
