"""What the parity tests share: fitted models, rows, and a PostgreSQL server."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

import plainrisk as pr
from plainrisk.errors import MissingExtraError, PlainriskWarning
from plainrisk.explain.atoms import value_frame
from plainrisk.explain.options import ReasonOptions
from plainrisk.export.engines import engine_of
from plainrisk.exports import Answerer, compare_answers, prepare, write_program

TARGETS = {
    "python": ("python", "score.py", None),
    "javascript": ("javascript", "score.mjs", None),
    "c": ("c", "score.c", None),
    "onnx": ("onnx", "score.onnx", None),
    "duckdb": ("sql", "score.sql", "duckdb"),
    "sqlite": ("sql", "score.sql", "sqlite"),
    "postgres": ("sql", "score.sql", "postgres"),
    "xlsx": ("xlsx", "score.xlsx", None),
    "pmml": ("pmml", "score.pmml", None),
}
# What the extra dev installs; elsewhere a missing runtime skips.
REQUIRED = ("python", "onnx", "duckdb", "sqlite")
PAIRS = {
    "german": [("Credit amount", "Duration in month"), ("Credit amount", "Purpose")],
    "heloc": [("ExternalRiskEstimate", "NumSatisfactoryTrades"), ("AverageMInFile", "PercentTradesNeverDelq")],
}


@pytest.fixture(scope="session")
def fitted():
    """Fit a model of a data set, once."""
    known = {}

    def fit(dataset, name):
        if (dataset, name) not in known:
            try:
                data = pr.datasets.load(dataset)
            except pr.errors.PlainriskError as error:
                pytest.skip(str(error))
            more = {"pairs": PAIRS[dataset]} if name.endswith("with pairs") else {}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PlainriskWarning)
                model = pr.make_classifier(name.split()[0], data.schema, **more).fit(data.frame, data.target)
            known[dataset, name] = model, data.frame
        return known[dataset, name]

    return fit


def _as_other_user(folder: Path) -> list[str]:
    """PostgreSQL does not run as root: hand the folder to another user, and return how to run as that one."""
    if os.geteuid() != 0:
        return []
    shutil.chown(folder, "nobody")
    return ["setpriv", "--reuid=nobody", "--clear-groups"]


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server on a socket in a temporary folder; returns the variables that lead psql to it."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    initdb = shutil.which("initdb") or (str(found[-1]) if found else None)
    if initdb is None:
        pytest.skip("no PostgreSQL server: install the package postgresql")
    folder = Path(tempfile.mkdtemp(prefix="plainrisk-pg-"))
    user = _as_other_user(folder)
    control = str(Path(initdb).with_name("pg_ctl"))
    data = str(folder / "data")
    options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"

    def run(*command):
        subprocess.run([*user, *command], check=True, capture_output=True, cwd=folder, timeout=120)

    try:
        run(initdb, "-D", data, "-U", "plainrisk", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        run(control, "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
        yield {"PGHOST": str(folder), "PGUSER": "plainrisk", "PGDATABASE": "postgres"}
    finally:
        with contextlib.suppress(subprocess.SubprocessError):
            run(control, "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


# ---- the harness


@pytest.fixture
def target(request, monkeypatch):
    """The name of a target, with its server if it needs one."""
    if request.param == "postgres":
        for name, value in request.getfixturevalue("postgres").items():
            monkeypatch.setenv(name, value)
    return request.param


@pytest.fixture(scope="session")
def check(tmp_path_factory):
    """Export a model, run the export on rows, and compare its answers with the model's."""
    folder = tmp_path_factory.mktemp("exports")
    known = {}

    def answered(form, rows, portfolio, **reasons):
        """The program of a form and the model's answers, kept for the next engine."""
        key = (id(form), len(rows), *reasons.items())
        if key not in known:
            frame = None if portfolio is None else value_frame({n: [row[n] for row in portfolio] for n in portfolio[0]})
            options = ReasonOptions(portfolio=frame, **reasons)
            program, _ = prepare(form, options, {})
            given = [tuple(row[i.feature] for i in program.inputs) for row in rows]
            # The form stays, so that no other gets its id.
            known[key] = program, Answerer.of(form, options).answers(program, given), form
        return known[key][:2]

    def run(model, target, rows, portfolio=None, **reasons):
        kind, name, dialect = TARGETS[target]
        facts = {"target": kind, "dialect": dialect, "table": "applicants", "keep": []}
        program, test = answered(model.form_, rows, portfolio, **reasons)
        program = replace(program, facts={**program.facts, **facts})
        try:
            write_program(folder / name, program, test)
            engine, engine_run = engine_of(facts)
            answers = engine_run(folder / name, program, test.rows)
        except MissingExtraError as error:
            if os.environ.get("CI") == "true" and target in REQUIRED:
                raise
            pytest.skip(str(error))
        return compare_answers(kind, engine, program, test, answers)

    return run
