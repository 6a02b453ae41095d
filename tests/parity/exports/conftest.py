"""What the parity tests share: fitted models, rows, and a PostgreSQL server."""

from __future__ import annotations

import contextlib
import math
import os
import random
import shutil
import subprocess
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import plainrisk as pr
from plainrisk.errors import DataError, MissingExtraError, PlainriskWarning
from plainrisk.explain.atoms import value_frame
from plainrisk.explain.options import ReasonOptions
from plainrisk.export.engines import Job, complete, engine_of, find_package, find_tool
from plainrisk.exports import Answerer, compare_answers, prepare, write_program
from plainrisk.form import Categories

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
    "jpmml": ("pmml", "score.pmml", None),
}
PAIRS = {
    "german": [("Credit amount", "Duration in month"), ("Credit amount", "Purpose")],
    "heloc": [("ExternalRiskEstimate", "NumSatisfactoryTrades"), ("AverageMInFile", "PercentTradesNeverDelq")],
}


def skip(reason):
    """Skip a test whose runtime is not here; in CI, where make test installs all of them, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason} CI needs every engine.")
    pytest.skip(reason)


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
        skip("No PostgreSQL server is here: install the package postgresql.")
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
def check_all(tmp_path_factory):
    """Export models, run the exports on rows, and compare their answers with the models'."""
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

    def run(target, cases, **reasons):
        """Return a verification for each (model, rows, rows of the portfolio or None)."""
        kind, name, dialect = TARGETS[target]
        facts = {"target": kind, "dialect": dialect, "table": "applicants", "keep": []}
        jobs, tests = [], []
        try:
            for n, (model, rows, portfolio) in enumerate(cases):
                program, test = answered(model.form_, rows, portfolio, **reasons)
                program = replace(program, facts={**program.facts, **facts})
                path = folder / f"{n}{name}"
                write_program(path, program, test)
                jobs.append(Job(path, program, test.rows))
                tests.append(test)
            engine, engine_run = ("JPMML", by_jpmml) if target == "jpmml" else engine_of(facts)
            answers = engine_run(jobs)
        except MissingExtraError as error:
            skip(str(error))
        return [
            compare_answers(kind, engine, job.program, test, found)
            for job, test, found in zip(jobs, tests, answers, strict=True)
        ]

    return run


@pytest.fixture(scope="session")
def check(check_all):
    """Export one model, run the export on rows, and compare its answers with the model's."""
    return lambda model, target, rows, portfolio=None, **reasons: check_all(
        target, [(model, rows, portfolio)], **reasons
    )[0]


def by_jpmml(jobs):
    """Let JPMML score, another evaluator of PMML than the one that `verify_export` runs."""
    find_package("jpmml_evaluator", "agpl")
    find_tool("java")
    import pandas as pd
    from jpmml_evaluator import make_evaluator
    from jpmml_evaluator.py4j import Py4JBackend

    def run(path, program, rows):
        evaluator = make_evaluator(str(path), backend=backend)
        columns = [i.feature for i in program.inputs]
        frame = evaluator.evaluateAll(pd.DataFrame(rows, columns=columns, dtype=object), parallelism=1)
        answers = frame.astype(object).where(frame.notna(), None).to_dict("records")
        return [complete(program, {str(k).removeprefix("plainrisk_"): v for k, v in a.items()}) for a in answers]

    backend = Py4JBackend()
    process = backend.gateway.java_process
    try:
        return [run(*job) for job in jobs]
    finally:
        Py4JBackend.destroyGateway()
        process.stdin.close()
        process.wait(60)


# ---- rows


@pytest.fixture(scope="session")
def edge_rows():
    """Make rows of the edge cases of a form that the model does not refuse."""

    def make(form, n=60, seed=0, near=True):
        return accepted(form, all_edge_rows(form, n, seed, near))

    return make


def accepted(form, rows):
    """Return the rows that the model does not refuse."""
    model = pr.RiskModel(form)

    def takes(row):
        try:
            model.predict_proba(row)
        except DataError:
            return False
        return True

    return [row for row in rows if takes(row)]


def all_edge_rows(form, n, seed, near):
    """Return rows at the cuts of the form, beside them, far away, missing, with special values and strange labels.

    Parameters
    ----------
    near : whether numbers may differ from cuts in the last bit, and be far away; spreadsheets keep 15 digits
    """
    pick = random.Random(seed)
    values = {name: [] for name in form.features}
    for part in form.parts:
        known = [(name, shape.levels) for name, shape in part.shapes.items()]
        known += [item for pair in part.pairs for item in zip(pair.features, pair.levels, strict=True)]
        for name, levels in known:
            values[name] += _edge_values(levels, near)
    return [{name: pick.choice(own) for name, own in values.items()} for _ in range(n)]


def _edge_values(levels, near):
    if isinstance(levels, Categories):
        return [*levels.categories, None, "never seen", "A"]
    cuts = [*levels.edges, *levels.special_values, *([] if levels.lower_bound is None else [levels.lower_bound]), 1.5]
    found = [None, 0.0, 2.25, -0.75, *cuts]
    if near:
        # Beside 0 stand numbers whose products underflow, which PostgreSQL refuses.
        found += [math.nextafter(cut, side) for cut in cuts if cut for side in (-math.inf, math.inf)]
        found += [-0.0, -1e-100, 1e15, -1e15, 1e-100, float(np.float32(0.1))]
    return found
