"""Put mixed load on the service while its workers are killed and its model is replaced, and check every answer.

    python scripts/service_faults.py [--minutes 10] [--workers 2] [--clients 4]

Every half minute a worker is killed, every minute the model is replaced by the other of two, and in between its file
is damaged for some seconds. Each answer must be exactly that of the model whose hash it contains. Failures are counted
by kind: a killed worker breaks its connections. A failure on a connection during which no worker was killed is
unexplained.
"""

from __future__ import annotations

import argparse
import collections
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import psutil

import plainrisk as pr

VERBS = {"score": 6, "reasons": 2, "explain": 2, "decide": 1}  # how often each is asked
SIZES = (1, 1, 1, 1, 2, 5, 20, 100)


class Truth:
    """Two models over the same features, and what each says of every row."""

    def __init__(self, folder: Path) -> None:
        warnings.simplefilter("ignore")
        german = pr.datasets.load("german", backend="polars")
        self.rows = german.frame.select(list(german.schema.features)).to_dicts()[:200]
        first = pr.make_classifier("SmoothARM1", german.schema).fit(german.frame, german.target)
        second = pr.make_classifier("ARM1", german.schema).fit(german.frame, german.target)
        self.answers: dict[str, dict[str, list[Any]]] = {}
        self.texts = []
        for fitted in (first, second):
            path = folder / "made.json"
            fitted.save(path)
            model = pr.load(path).annotate(cutoff=0.6)
            model.save(path)
            self.texts.append(path.read_bytes())
            self.answers[model.certify().form_sha256] = self._said(model)

    def _said(self, model: Any) -> dict[str, list[Any]]:
        decided = model.decide(self.rows)
        risks, refused = model.predict_proba(self.rows)[:, 1], decided.refused
        n = range(len(self.rows))
        said = {
            "score": [{"risk": float(risks[i]), "decision": "refused" if refused[i] else "approved"} for i in n],
            "explain": model.explain(self.rows).to_dict(),
            "reasons": model.reasons(self.rows).to_dict(),
            "decide": [{**decided.to_dict(i), "letter": decided.letter(i)} for i in n],
        }
        return {verb: json.loads(json.dumps(rows)) for verb, rows in said.items()}


class Load:
    """Clients that ask, check and count."""

    def __init__(self, truth: Truth, port: int) -> None:
        self.truth, self.port, self.stop = truth, port, threading.Event()
        self.counts: collections.Counter[str] = collections.Counter()
        self.seconds: list[float] = []
        self.failures: list[tuple[float, float]] = []

    def client(self, seed: int) -> None:
        """Ask until told to stop, on a connection that is kept for some requests."""
        pick = random.Random(seed)
        connection: http.client.HTTPConnection | None = None
        opened = 0.0
        while not self.stop.is_set():
            if connection is None:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            if connection.sock is None:
                opened = time.monotonic()
            try:
                self.ask(connection, pick)
            except (OSError, http.client.HTTPException) as error:
                self.counts[f"failed: {type(error).__name__}"] += 1
                self.failures.append((opened, time.monotonic()))
                connection.close()
                connection = None
                continue
            if pick.random() < 0.05:
                connection.close()
                connection = None

    def ask(self, connection: http.client.HTTPConnection, pick: random.Random) -> None:
        """Ask once and check the answer."""
        verb = pick.choices(list(VERBS), list(VERBS.values()))[0]
        at = [pick.randrange(len(self.truth.rows)) for _ in range(pick.choice(SIZES))]
        body = json.dumps({"rows": [self.truth.rows[i] for i in at]})
        start = time.perf_counter()
        connection.request("POST", f"/{verb}", body, {"content-type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        self.seconds.append(time.perf_counter() - start)
        if answer.status != 200:
            self.counts[f"failed: status {answer.status}"] += 1
            return
        found = json.loads(content)
        said = self.truth.answers[found["model"]["sha256"]][verb]
        self.counts["right" if found["rows"] == [said[i] for i in at] else "wrong"] += 1
        self.counts["rows"] += len(at)


def disturb(
    process: psutil.Process, model: Path, truth: Truth, end: float, done: collections.Counter[str]
) -> list[float]:
    """Kill workers, replace the model and damage its file until the end; return when workers were killed."""
    start, turn, killed = time.monotonic(), 0, list[float]()
    while time.monotonic() < end:
        turn += 1
        workers = [child for child in process.children() if "spawn_main" in " ".join(child.cmdline())]
        killed.append(time.monotonic())
        random.choice(workers).kill()
        done["workers killed"] += 1
        if turn % 2 == 0:
            other = model.with_name("next.json")
            other.write_bytes(truth.texts[turn // 2 % 2])
            os.replace(other, model)
            done["models replaced"] += 1
        elif turn % 4 == 3:
            time.sleep(5)
            model.write_bytes(b"{}")
            done["files damaged"] += 1
        time.sleep(max(0.0, min(end, start + 30 * turn) - time.monotonic()))
    return killed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--clients", type=int, default=4)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        truth, model, log = Truth(folder), folder / "model.json", folder / "log"
        model.write_bytes(truth.texts[0])
        command = [sys.executable, "-c", "from plainrisk_command import main; main()", "serve", str(model)]
        with log.open("wb") as file:
            command += ["--port", "0", "--workers", str(given.workers)]
            process = subprocess.Popen(command, stdout=file, stderr=file)
        while log.read_text().count("certificate valid") < given.workers:
            time.sleep(0.2)
        found = re.search(r"listening on http://127\.0\.0\.1:(\d+)/", log.read_text())
        assert found is not None
        load, done = Load(truth, int(found[1])), collections.Counter[str]()
        threads = [threading.Thread(target=load.client, args=(i,), daemon=True) for i in range(given.clients)]
        for thread in threads:
            thread.start()
        killed = disturb(psutil.Process(process.pid), model, truth, time.monotonic() + 60 * given.minutes, done)
        load.stop.set()
        for thread in threads:
            thread.join(120)
        process.send_signal(signal.SIGTERM)
        code = process.wait(120)
        said = log.read_text()
    spent = sorted(load.seconds)
    print(f"{given.minutes:g} minutes, {given.workers} workers, {given.clients} clients: {dict(sorted(done.items()))}")
    print(f"answers: {dict(sorted(load.counts.items()))}")
    unexplained = sum(not any(opened <= kill <= failed for kill in killed) for opened, failed in load.failures)
    bad_status = sum(n for what, n in load.counts.items() if what.startswith("failed: status"))
    print(f"failed as a worker was killed: {len(load.failures) - unexplained}, otherwise: {unexplained + bad_status}")
    print(f"p50 {1000 * spent[len(spent) // 2]:.1f} ms, p99 {1000 * spent[99 * len(spent) // 100]:.1f} ms")
    print(f"log: {said.count('is replaced')} workers replaced, {said.count('was not replaced')} files refused")
    print(f"exit code {code} after SIGTERM")
    sys.exit(load.counts["wrong"] > 0 or unexplained + bad_status > 0 or code != 0)


if __name__ == "__main__":
    main()
