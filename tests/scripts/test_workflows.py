"""The workflows run what is there, with rights and actions that nobody else can change."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
WORKFLOWS = {path.name: yaml.safe_load(path.read_text("utf-8")) for path in (ROOT / ".github/workflows").glob("*.yml")}
JOBS = [(f"{name}: {job}", content) for name, flow in WORKFLOWS.items() for job, content in flow["jobs"].items()]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.mark.parametrize(("job", "content"), JOBS, ids=[job for job, _ in JOBS])
def test_a_job_is_bounded_and_its_actions_are_pinned(job, content):
    assert content["timeout-minutes"] <= 90
    for step in content["steps"]:
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"])
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize(("name", "flow"), WORKFLOWS.items(), ids=WORKFLOWS)
def test_a_workflow_may_read_only_but_for_jobs_that_publish(name, flow):
    assert flow["permissions"] == {"contents": "read"}
    more = {job for job, content in flow["jobs"].items() if "permissions" in content}
    assert more == ({"publish"} if name == "release.yml" else set())


def test_what_is_run_is_there():
    """Files, tests, extras and targets of make that the commands name."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = 0
    for _, content in JOBS:
        steps = [step.get("run", "") for step in content["steps"]]
        steps += [
            step["env"]["CIBW_TEST_COMMAND"] for step in content["steps"] if "CIBW_TEST_COMMAND" in step.get("env", {})
        ]
        for command in steps:
            for word in shlex.split(command):
                if re.match(r"(tests|scripts|\.ci)/", word):
                    assert (ROOT / word).exists(), word
                    named += 1
                for extra in re.findall(r"^\.\[([\w,]+)\]$", word):
                    assert set(extra.split(",")) <= set(PROJECT["optional-dependencies"])
            assert set(re.findall(r"^make (\S+)$", command, re.MULTILINE)) <= targets
    assert named > 20


def test_every_python_and_system_that_is_promised_is_tried():
    promised = {c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)}
    matrix = WORKFLOWS["tests.yml"]["jobs"]["platforms"]["strategy"]["matrix"]
    assert set(matrix["python"]) == promised
    assert {system.partition("-")[0] for system in matrix["os"]} == {"ubuntu", "macos", "windows"}
