"""Several workers: replaced when they are killed, with the last certified model, and none is left behind."""

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

import psutil
import pytest

import plainrisk as pr

from .test_process import PATIENCE, asked, until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

COMMAND = [sys.executable, "-c", "from plainrisk_command import main; main()", "serve"]


class Service:
    """A service with two workers."""

    def __init__(self, folder, source, *options):
        self.model, self.log, self.temporary = folder / "model.json", folder / "log", folder / "tmp"
        self.temporary.mkdir(exist_ok=True)
        self.model.write_bytes(Path(source).read_bytes())
        command = [*COMMAND, str(self.model), "--port", "0", "--workers", "2", *options]
        with self.log.open("wb") as file:
            own = {**os.environ, "TMPDIR": str(self.temporary)}
            self.process = subprocess.Popen(command, stderr=file, stdout=file, env=own)
        until(lambda: re.search(r"listening on http://", self.log.read_text()) or self.process.poll() is not None)
        self.port = int(re.search(r"listening on http://127\.0\.0\.1:(\d+)/", self.log.read_text())[1])
        until(lambda: self.started() >= 2)

    def started(self):
        """How many workers have said that they answer."""
        return self.log.read_text().count("certificate valid")

    def workers(self):
        """The worker processes: those with a place, not the tracker that multiprocessing starts."""
        children = psutil.Process(self.process.pid).children()
        return [child for child in children if "spawn_main" in " ".join(child.cmdline())]

    def kill(self):
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in [*psutil.Process(self.process.pid).children(recursive=True), self.process]:
                process.kill()
        self.process.wait()

    def score(self, rows):
        return asked(self.port, "/score", json.dumps({"rows": rows}))

    def counter(self, name):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port)) as connection:
            connection.request("GET", "/metrics")
            lines = connection.getresponse().read().decode().splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line.startswith(name)}


@pytest.fixture
def service(paths, tmp_path):
    made = Service(tmp_path, paths[0])
    yield made
    made.kill()


def test_a_killed_worker_is_replaced_with_the_last_certified_model(service, paths, rows):
    """Defects: without its file a worker could not come back, the service stopped, with code 0; counters were lost."""
    wanted = pr.load(paths[0]).predict_proba(rows[:1])[0, 1]
    for _ in range(20):
        assert service.score(rows[:1])[1]["rows"] == [{"risk": wanted, "decision": "approved"}]
    assert sum(service.counter("plainrisk_rows_total").values()) == 20
    service.model.write_text("{}")
    until(lambda: "model model was not replaced" in service.log.read_text())
    service.model.unlink()
    for _ in range(2):
        before = service.started()
        killed = service.workers()
        for worker in killed:
            worker.kill()
        until(lambda before=before: service.started() == before + 2)
        assert len(service.workers()) == 2
    status, found = service.score(rows[:1])
    assert status == 200
    assert found["rows"][0]["risk"] == wanted
    assert sum(service.counter("plainrisk_rows_total").values()) == 21
    assert service.counter("plainrisk_workers_replaced_total") == {"plainrisk_workers_replaced_total": 4}
    assert service.counter("plainrisk_reloads_total") == {'plainrisk_reloads_total{model="model",result="failed"}': 1}
    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(PATIENCE) == 0


def test_a_new_model_reaches_all_workers_and_the_metric_of_the_old_one_goes(service, paths, rows):
    other = service.model.with_name("next.json")
    other.write_bytes(Path(paths[1]).read_bytes())
    os.replace(other, service.model)
    wanted = pr.load(paths[1]).certify().form_sha256
    until(lambda: all(service.score(rows[:1])[1]["model"]["sha256"] == wanted for _ in range(20)))
    for _ in range(10):
        assert service.counter("plainrisk_model{") == {f'plainrisk_model{{model="model",sha256="{wanted}"}}': 1}
    assert service.counter("plainrisk_reloads_total") == {'plainrisk_reloads_total{model="model",result="done"}': 1}


def test_a_killed_supervisor_leaves_no_workers_and_the_next_one_removes_its_files(service, paths, tmp_path):
    """Defect: its folder of models and counters stayed for ever."""
    workers, left = service.workers(), set(service.temporary.iterdir())
    service.process.kill()
    service.process.wait()
    gone, alive = psutil.wait_procs(workers, PATIENCE)
    assert len(gone) == 2
    assert not alive
    assert left
    next_one = Service(tmp_path, paths[0])
    there = set(next_one.temporary.iterdir())
    next_one.kill()
    assert there
    assert not left & there


def test_workers_that_cannot_start_end_the_service_with_an_error(paths, tmp_path):
    """Defect: the supervisor ended with code 0."""
    broken = tmp_path / "sitecustomize.py"
    broken.write_text("import sys\nif any('spawn_main' in word for word in sys.orig_argv): sys.exit(9)\n")
    command = [*COMMAND, paths[0], "--port", "0", "--workers", "2"]
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 2
    assert "workers in a row ended as they started" in done.stderr


def test_a_port_that_is_taken(service, paths):
    command = [*COMMAND, paths[0], "--port", str(service.port), "--workers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2
    assert "cannot listen" in done.stderr


def test_connections_are_shared(service, rows):
    """Defect: the first of the workers took nearly all connections that came together."""
    pids = {worker.pid: worker.cpu_times().user for worker in service.workers()}
    end = time.monotonic() + 3
    while time.monotonic() < end:
        service.score(rows[:1])
    spent = {worker.pid: worker.cpu_times().user - pids[worker.pid] for worker in service.workers()}
    assert min(spent.values()) > 0.2 * max(spent.values())
