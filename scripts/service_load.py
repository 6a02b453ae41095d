"""Put load on the service on this machine and print throughput, latency and how it stops.

    python scripts/service_load.py [MODEL] [--seconds 5] [--rounds 3] [--peer PYTHON]

Needs wrk (Debian: apt-get install wrk). PYTHON, with fastapi, uvicorn[standard], pandas and scikit-learn, runs a
minimal service with a LogisticRegression for comparison. All services run at once and are called in turns by the same
number of clients, so that a busy machine affects all alike; requests per second of processor time do not depend on
other work.
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
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import psutil

import plainrisk as pr

PEER = """
import sys

import numpy as np
import pandas as pd
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel, Field, create_model
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

frame = pd.read_csv("rows.csv")
y = frame.pop("outcome")
measured = make_column_selector(dtype_include="number")
coded = make_column_transformer(
    (StandardScaler(), measured),
    (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
)
model = make_pipeline(coded, LogisticRegression(max_iter=1000)).fit(frame, y)
bare = LogisticRegression(max_iter=1000).fit(frame[measured(frame)].to_numpy(), y)
numbers = set(measured(frame))
fields = {
    f"f{i}": (float | None if name in numbers else str | None, Field(alias=name)) for i, name in enumerate(frame)
}
Row = create_model("Row", **fields)


class Rows(BaseModel):
    rows: list[Row]


class Numbers(BaseModel):
    rows: list[list[float]]


app = FastAPI()


@app.post("/score")
async def score(asked: Rows):
    rows = pd.DataFrame([row.model_dump(by_alias=True) for row in asked.rows])
    return {"rows": [{"risk": risk} for risk in model.predict_proba(rows)[:, 1].tolist()]}


@app.post("/numbers")
async def numbers_alone(asked: Numbers):
    return {"rows": [{"risk": risk} for risk in bare.predict_proba(np.array(asked.rows))[:, 1].tolist()]}


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")
"""
LUA = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local file = io.open("{body}", "rb")
wrk.body = file:read("*a")
"""
CLIENTS = 16


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextlib.contextmanager
def started(command: list[str], folder: Path, workers: int = 1) -> Iterator[Service]:
    port = free_port()
    with (folder / f"log{port}").open("wb") as log:
        process = subprocess.Popen([*command, str(port)], stdout=log, stderr=log, cwd=folder)
    try:
        while (folder / f"log{port}").read_text().count("certificate valid") < workers:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
                break
            assert process.poll() is None, (folder / f"log{port}").read_text()
            time.sleep(0.1)
        time.sleep(1.0)
        yield Service(port, process, workers)
    finally:
        process.terminate()
        process.wait(60)


@dataclass
class Service:
    """A service that runs."""

    port: int
    process: subprocess.Popen[bytes]
    workers: int

    def spent(self) -> list[float]:
        """Return the seconds of processor time of each worker."""
        own = psutil.Process(self.process.pid)
        found = [child for child in own.children() if "spawn_main" in " ".join(child.cmdline())]
        return [sum(one.cpu_times()[:2]) for one in found or [own]]


@dataclass
class Asked:
    """One question to one service, and how it was answered."""

    name: str
    service: Service
    path: str
    body: Any
    rates: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    per_second: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)

    def ask(self, folder: Path, seconds: int) -> None:
        """Ask for some seconds."""
        (folder / "body.json").write_text(json.dumps(self.body))
        (folder / "post.lua").write_text(LUA.replace("{body}", str(folder / "body.json")))
        before = self.service.spent()
        url = f"http://127.0.0.1:{self.service.port}{self.path}"
        command = ["wrk", "-t1", f"-c{CLIENTS}", f"-d{seconds}s", "--latency", "-s", str(folder / "post.lua"), url]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        spent = [after - start for start, after in zip(before, self.service.spent(), strict=True)]
        assert "Non-2xx" not in said, said
        found = [re.search(rule, said) for rule in (r"(\d+) requests in", r"Requests/sec:\s*([\d.]+)", r"99%\s+(\S+)")]
        n, rate, p99 = (match[1] for match in found if match is not None)
        self.rates.append(float(rate))
        self.p99.append(milliseconds(p99))
        self.per_second.append(int(n) / sum(spent))
        self.shares.append(max(spent) / sum(spent))

    def __str__(self) -> str:
        rate, p99, own = (statistics.median(values) for values in (self.rates, self.p99, self.per_second))
        share = f", busiest worker {statistics.median(self.shares):.0%}" if self.service.workers > 1 else ""
        return f"{self.name:<40}{rate:8.0f} requests/s, p99 {p99:7.1f} ms, {own:6.0f} per second of processor{share}"


def milliseconds(text: str) -> float:
    """Read a time as wrk writes it.

    >>> milliseconds("1.50s"), milliseconds("250.00us")
    (1500.0, 0.25)
    """
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text).groups()  # type: ignore[union-attr]
    return float(number) * {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}[unit]


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
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer")
    given = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("wrk is not installed (Debian: apt-get install wrk)")
    os.environ.pop("PLAINRISK_API_KEY", None)
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as running:
        folder = Path(name)
        model = (given.model or fitted(folder)).resolve()
        serve = [sys.executable, "-c", "from plainrisk_command import main; main()", "serve", str(model)]
        one = running.enter_context(started([*serve, "--port"], folder))
        two = running.enter_context(started([*serve, "--workers", "2", "--port"], folder, workers=2))
        body = example(one.port)
        asked = [Asked(f"/{verb}, one row", one, f"/{verb}", body) for verb in ("score", "reasons", "explain")]
        asked.append(Asked("/score, one row, 2 workers", two, "/score", body))
        if given.peer is not None:
            (folder / "peer.py").write_text(PEER)
            peer = running.enter_context(started([given.peer, "peer.py"], folder))
            numbers = [value for value in body["rows"][0].values() if isinstance(value, float)]
            asked.append(Asked("peer, LogisticRegression, the same row", peer, "/score", body))
            asked.append(Asked("peer, of the row's numbers alone", peer, "/numbers", {"rows": [numbers]}))
        for _ in range(given.rounds):
            for question in asked:
                question.ask(folder, given.seconds)
        print(*asked, sep="\n")
        stop_under_load(two.process, two.port, json.dumps(body).encode())


def example(port: int) -> Any:
    """Return the example of the service's own description."""
    described = http.client.HTTPConnection("127.0.0.1", port)
    described.request("GET", "/openapi.json")
    paths = json.loads(described.getresponse().read())["paths"]
    return paths["/score"]["post"]["requestBody"]["content"]["application/json"]["example"]


def fitted(folder: Path) -> Path:
    warnings.simplefilter("ignore")
    german = pr.datasets.load("german", backend="polars")
    pr.make_classifier("SmoothARM1", german.schema).fit(german.frame, german.target).save(folder / "german.json")
    rows = german.frame.select(list(german.schema.features))
    rows.with_columns(pl.Series("outcome", german.target)).write_csv(folder / "rows.csv")
    return folder / "german.json"


if __name__ == "__main__":
    main()
