"""Put the service under load on this machine and print what it does: throughput, latency, a stop.

    python scripts/service_load.py [MODEL] [--seconds 5]

Needs wrk (Debian: apt-get install wrk). Every figure stands beside that of a bare answer by the same server.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

HELLO = """
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": b"{}"})


if __name__ == "__main__":
    import socket
    import sys

    import uvicorn
    from uvicorn.supervisors import Multiprocess

    config = uvicorn.Config(
        "hello:app", workers=2, http="h11", loop="asyncio", ws="none", log_config=None, timeout_worker_healthcheck=60
    )
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.bind(("127.0.0.1", int(sys.argv[1])))
        listening.set_inheritable(True)
        Multiprocess(config, sockets=[listening]).run()
"""
LUA = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local file = io.open("{body}", "rb")
wrk.body = file:read("*a")
"""


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextlib.contextmanager
def started(command: list[str], port: int, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
                break
            time.sleep(0.1)
        time.sleep(1.0)
        yield process
    finally:
        process.terminate()
        process.wait(60)


def wrk(port: int, path: str, body: Path, folder: Path, seconds: int) -> str:
    script = folder / "post.lua"
    script.write_text(LUA.replace("{body}", str(body)))
    command = ["wrk", "-t1", "-c32", f"-d{seconds}s", "--latency", "-s", str(script), f"http://127.0.0.1:{port}{path}"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rate = re.search(r"Requests/sec:\s*([\d.]+)", said)
    p50, p99 = (re.search(rf"{q}%\s+(\S+)", said) for q in (50, 99))
    bad = re.search(r"(Socket errors.*|Non-2xx.*)", said)
    assert rate is not None, said
    assert p50 is not None, said
    assert p99 is not None, said
    return f"{float(rate[1]):8.0f} requests/s, p50 {p50[1]}, p99 {p99[1]}{', ' + bad[1] if bad else ''}"


def inside(port: int, path: str, body: bytes) -> float:
    """The median milliseconds that the service itself says it needed."""
    connection, spent = http.client.HTTPConnection("127.0.0.1", port), []
    for _ in range(300):
        connection.request("POST", path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        spent.append(float((answer.getheader("server-timing") or "dur=nan").partition("dur=")[2]))
    return statistics.median(spent)


def ask(port: int, body: bytes) -> str:
    """Score once on a connection of its own; say how it ended."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.connect()
    except OSError:
        return "not accepted"
    try:
        connection.request("POST", "/score", body, {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return str(answer.status)
    except OSError:
        return "dropped"
    finally:
        connection.close()


def stop_under_load(process: subprocess.Popen[bytes], port: int, body: bytes) -> None:
    ended, stop = [], threading.Event()

    def client() -> None:
        while not stop.is_set():
            ended.append(ask(port, body))
            if ended[-1] == "not accepted":
                return
            with contextlib.suppress(OSError, http.client.HTTPException):
                ready = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                ready.request("GET", "/health/ready")
                if ready.getresponse().status != 200:
                    return  # as a load balancer would

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for _ in range(16):
            pool.submit(client)
        time.sleep(1.5)
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        stop.set()
    counts = {word: ended.count(word) for word in sorted(set(ended))}
    print(f"SIGTERM under load, 16 clients that heed readiness: {counts}, exit code {process.returncode}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--seconds", type=int, default=5)
    given = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("wrk is not installed (Debian: apt-get install wrk)")
    os.environ.pop("PLAINRISK_API_KEY", None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = given.model or fitted(folder)
        body = folder / "body.json"
        port = free_port()
        (folder / "hello.py").write_text(HELLO)
        command = [sys.executable, "hello.py", str(port)]
        body.write_bytes(b"{}")
        with started(command, port, folder):
            print(f"bare answer, 2 workers         {wrk(port, '/', body, folder, given.seconds)}")
        port = free_port()
        command = [sys.executable, "-c", "from plainrisk_command import main; main()", "serve", str(model.resolve())]
        with started([*command, "--workers", "2", "--port", str(port)], port, folder) as process:
            described = http.client.HTTPConnection("127.0.0.1", port)
            described.request("GET", "/openapi.json")
            paths = json.loads(described.getresponse().read())["paths"]
            for verb in ("score", "reasons", "explain"):
                example = paths[f"/{verb}"]["post"]["requestBody"]["content"]["application/json"]["example"]
                body.write_text(json.dumps(example))
                told = wrk(port, f"/{verb}", body, folder, given.seconds)
                print(f"/{verb}, one row, 2 workers".ljust(31) + told)
                print(f"   inside the service          median {inside(port, f'/{verb}', body.read_bytes()):.3f} ms")
            example = paths["/score"]["post"]["requestBody"]["content"]["application/json"]["example"]
            one = json.dumps(example).encode()
            stop_under_load(process, port, one)


def fitted(folder: Path) -> Path:
    import warnings

    import plainrisk as pr

    warnings.simplefilter("ignore")
    german = pr.datasets.load("german")
    pr.make_classifier("SmoothARM1", german.schema).fit(german.frame, german.target).save(folder / "german.json")
    return folder / "german.json"


if __name__ == "__main__":
    main()
