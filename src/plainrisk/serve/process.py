"""The service as processes: sockets, servers and signals; of uvicorn, only public options are used."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import ssl
import sys
from types import FrameType
from typing import Any

import uvicorn

from plainrisk.errors import PlainriskError
from plainrisk.leftovers import temporary_folder
from plainrisk.serve.app import make_app
from plainrisk.serve.keys import Keys
from plainrisk.serve.served import Shelf
from plainrisk.serve.settings import Settings
from plainrisk.serve.supervisor import STOPS, Place, Supervisor, end_with_parent

__all__ = ["run", "work"]

HEAD_BYTES = 64 * 2**10
KEEP_ALIVE_SECONDS = 5


def run(settings: Settings, workers: int = 1) -> None:
    """Serve until a signal to stop."""
    shelf = Shelf(settings.models, settings.signed_by)
    shelf.open()  # a wrong model or key is reported here, not by every worker
    Keys(settings)
    _check_tls(settings)
    if sys.platform != "win32":
        signal.set_wakeup_fd(-1)  # the server takes signals by itself; the command line must not pass them on
    with _bind(settings) as listening:
        port = listening.getsockname()[1]
        if workers == 1:
            _log_address(settings, port)
            _serve(settings, shelf, listening)
            return
        settings = settings.replaced(port=port)
        # Linux spreads connections over the sockets of one port, so each worker has its own; at a shared socket, one
        # worker would take nearly all connections that arrive together.
        per_worker = sys.platform == "linux"
        if per_worker:
            listening.close()
        with temporary_folder() as folder:
            supervisor = Supervisor(
                settings, shelf, folder, lambda: _bind(settings, own=True) if per_worker else listening, work
            )
            _log_address(settings, port)
            supervisor.run(workers)


def work(place: Place) -> None:
    """Serve in a worker process."""
    end_with_parent()
    shelf = Shelf(place.settings.models)
    shelf.open()
    _log_to_stderr()
    _serve(place.settings, shelf, place.listening, place)


def _serve(settings: Settings, shelf: Shelf, listening: socket.socket, place: Place | None = None) -> None:
    def app() -> Any:
        """Make the application after the server has set up its signal handlers."""
        made = make_app(settings, shelf, place)
        _drain_first(made.state.service, is_worker=place is not None)
        return made

    config = uvicorn.Config(
        app,
        factory=True,
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=HEAD_BYTES,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.certificate_key,
        timeout_graceful_shutdown=int(settings.seconds) + 1,
    )
    uvicorn.Server(config).run(sockets=[listening])


def _check_tls(settings: Settings) -> None:
    if settings.certificate is None:
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
            settings.certificate, settings.certificate_key, password=lambda: ""
        )
    except (OSError, ValueError) as error:
        raise PlainriskError(
            f"serve: {settings.certificate} and {settings.certificate_key} cannot be used for TLS: "
            f"{error.strerror if isinstance(error, OSError) else error}. Both must be PEM, the key without a password."
        ) from None


def _log_to_stderr() -> None:
    """Write the service's own log, and uvicorn's, unless the embedding program has set up logging."""
    if not logging.getLogger().handlers:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")


def _log_address(settings: Settings, port: int) -> None:
    _log_to_stderr()
    scheme = "http" if settings.certificate is None else "https"
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    logging.getLogger("plainrisk.serve").info("listening on %s://%s:%d/", scheme, shown, port)


def _bind(settings: Settings, own: bool = False) -> socket.socket:
    """Return a socket at the address; with `own`, this user may bind further ones to it."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if sys.platform != "win32":  # there it would let another program take the port
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit these options. Without them, the body of an answer waits 40 ms for the client to confirm the
    # head, and a client that reads nothing keeps its answer in memory.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * settings.seconds))
    if own:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        listening.bind((settings.host, settings.port))
        if not own:
            listening.listen()  # shows whether another process listens there
    except OSError as error:
        listening.close()
        raise PlainriskError(f"serve: cannot listen on {settings.host}:{settings.port}: {error.strerror}.") from None
    return listening


def _drain_first(service: Any, *, is_worker: bool) -> None:
    """On the first signal, report that the service is not ready but keep answering for a while; on the second, stop."""
    stop: Any = signal.getsignal(signal.SIGTERM)

    def drain(sig: int, frame: FrameType | None) -> None:
        if service.draining:
            stop(sig, frame)
            return
        service.draining = True
        asyncio.get_running_loop().call_later(service.settings.drain_seconds, stop, sig, None)

    for number in STOPS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            # An interrupt at the terminal also reaches the workers, but the supervisor tells them when to stop.
            ignored = is_worker and number != signal.SIGTERM
            signal.signal(number, signal.SIG_IGN if ignored else drain)
