"""The service as a process: it starts by the command, reads a renamed file anew, and stops in peace."""

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import plainrisk as pr

PATIENCE = 60.0  # seconds, on a machine under load


def asked(port, path, body=None):
    kind = {} if body is None else {"content-type": "application/json"}
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        connection.request("GET" if body is None else "POST", path, body, kind)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def until(condition):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.1)
    return pytest.fail("it did not happen in time")


@pytest.fixture
def service(paths, tmp_path):
    model, log = tmp_path / "model.json", tmp_path / "log"
    model.write_bytes(Path(paths[0]).read_bytes())
    command = [sys.executable, "-c", "from plainrisk_command import main; main()", "serve", str(model), "--port", "0"]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stderr=file, stdout=file)
    found = until(lambda: re.search(r"listening on http://127\.0\.0\.1:(\d+)/", log.read_text()))
    port = int(found[1])

    def answers():
        try:
            return asked(port, "/health/ready")[0] == 200
        except OSError:
            return False

    until(answers)
    yield process, port, model
    process.kill()
    process.wait()


def test_a_service_lives_reads_anew_and_stops(service, paths, rows, tmp_path):
    process, port, model = service
    body = json.dumps({"rows": rows[:1]})
    status, found = asked(port, "/score", body)
    assert status == 200
    assert found["rows"][0]["risk"] == pr.load(paths[0]).predict_proba(rows[:1])[0, 1]

    wanted = pr.load(paths[1]).certify().form_sha256
    other = tmp_path / "next.json"
    other.write_bytes(Path(paths[1]).read_bytes())
    os.replace(other, model)
    until(lambda: asked(port, "/score", body)[1]["model"]["sha256"] == wanted)

    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0


def test_a_broken_model_is_told_and_nothing_listens(tmp_path):
    model = tmp_path / "model.json"
    model.write_text("{}")
    command = [sys.executable, "-c", "from plainrisk_command import main; main()", "serve", str(model), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2
    assert "model.json" in done.stderr
    assert "listening" not in done.stderr
