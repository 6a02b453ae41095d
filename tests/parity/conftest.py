"""The page's own script, run by Node, beside Python."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from pathlib import Path

import msgspec
import numpy as np
import pytest

from plainrisk import explain as py
from plainrisk.data.frame import as_frame
from plainrisk.decision import refused
from plainrisk.errors import DataError
from plainrisk.explain.reference import knows_typical
from plainrisk.form import Logistic, Part, Table
from plainrisk.form.beyond import names_beyond
from plainrisk.report import Subject, collect, page
from plainrisk.report.collect import row_values

FOLDER = Path(__file__).parent
ANSWER = (FOLDER / "answer.js").read_text(encoding="utf-8")
ROWS = 1000


def by_node(question):
    """Let Node answer, by the script in the page."""
    node = shutil.which("node")
    if node is None:
        assert "CI" not in os.environ, "in CI nothing is skipped: install Node"
        pytest.skip("no Node: the page's script is not compared with Python")
    text = msgspec.json.encode({"page": page(question["payload"]), "answer": ANSWER, **question})
    done = subprocess.run([node, str(FOLDER / "engine.mjs")], input=text, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return done.stdout


def ask(form, rows, *, data=None, by=by_node, **asked):
    """What the page says of rows, which are plain dicts."""
    payload = collect([Subject("model", form)], data)
    return json.loads(by({"payload": payload, "rows": rows, **asked}))


@pytest.fixture
def answers():
    """What the page says of rows."""
    return ask


@pytest.fixture
def policed():
    """Gives a form a random policy."""
    return with_policy


@pytest.fixture
def compare():
    """Compares the page with Python on rows."""
    return check


@pytest.fixture(scope="session")
def random_forms():
    """The random forms that `explain` is tested with, and rows that meet all their levels."""
    path = Path(__file__).parents[1] / "explain" / "conftest.py"
    spec = importlib.util.spec_from_file_location("forms_of_explain", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def with_policy(form, seed, cutoff):
    """The form with a random policy: what is protected, about inquiries or compared with, order, k and cut-off."""
    rng = np.random.default_rng([seed, 7])
    names = [name for name in form.schema.features if rng.random() < 0.5]
    policy = {"order": str(rng.choice(["feature", "subscale"])), "reasons": int(rng.integers(1, 6))}
    policy |= {"reference": str(rng.choice(["best", "best", "typical"])), "cutoff": cutoff if seed % 2 else None}
    policy |= {"inquiries": [name for name in form.schema.features if rng.random() < 0.3 and name not in names]}
    changes = {"features": {name: {"protected": True} for name in names}, "policy": policy}
    return msgspec.structs.replace(form, schema=form.schema.annotate(changes))


def check(form, frame, *, cutoff=0.3, what_ifs=0, by=by_node):
    rows = as_frame(frame)
    rows = rows.rows(np.arange(min(ROWS, rows.n_rows)))
    columns = {name: row_values(form, rows, name) for name in form.features}
    plain = [{name: column[i] for name, column in columns.items()} for i in range(rows.n_rows)]
    lines = any(not isinstance(s, Table) for p in form.parts if isinstance(p, Part) for s in p.shapes.values())
    data = frame if lines or not knows_typical(form) else None
    found = ask(form, plain, data=data, cutoff=cutoff, what_ifs=what_ifs, by=by)
    exact = not any(isinstance(link, Logistic) for link in form.links)
    check_risks(form, rows, found["answers"], exact)
    check_contributions(form, rows, data, found["answers"], exact)
    check_formula(form, rows, found["answers"])
    check_reasons(form, rows, data, found["answers"])
    check_decisions(form, rows, cutoff, found["answers"])
    check_what_if(form, rows, cutoff, found["whatIfs"])


def check_risks(form, rows, found, exact):
    page, python = np.array([a["risk"] for a in found]), form.risk(rows)
    assert np.array_equal(page, python) if exact else np.abs(page - python).max() < 1e-12


def check_contributions(form, rows, data, found, exact):
    python = py.explain(form, rows, portfolio=None if knows_typical(form) else data)
    explanations = [a["explanation"] for a in found]
    page = np.array([[v for part in e["parts"] for v in part_values(part)] for e in explanations])
    order = [k for name in dict.fromkeys(python.subscales) for k, s in enumerate(python.subscales) if s == name]
    wanted = python.contributions[:, order]
    assert page.shape == wanted.shape
    assert np.array_equal(page, wanted) if exact else np.abs(page - wanted).max() < 1e-12
    assert np.abs(np.array([e["referenceRisk"] for e in explanations]) - python.constant).max() < 1e-12
    assert [[p["name"] for p in e["parts"]] for e in explanations] == [list(dict.fromkeys(python.subscales))] * len(
        found
    )
    names = [python.features[k] for k in order]
    assert [t["name"] for p in explanations[0]["parts"] for t in p["terms"]] == [n for n in names if n is not None]


def check_formula(form, rows, found):
    try:
        python = py.explain(form, rows, reference="zero")
    except DataError:
        assert not any(a["formula"] for a in found)
        return
    page = [a["formula"] for a in found]
    assert [f["start"] for f in page] == pytest.approx(python.constant.tolist(), abs=1e-12)
    assert np.abs(np.array([[t["value"] for t in f["terms"]] for f in page]) - python.contributions).max() < 1e-12
    assert [f["total"] for f in page] == pytest.approx(python.total.tolist(), abs=1e-11)
    if python.part_risks is not None:
        assert np.abs(np.array([[t["own"] for t in f["terms"]] for f in page]) - python.part_risks).max() < 1e-12


def part_values(part):
    return [term["value"] for term in part["terms"]] or [part["total"]]


def check_reasons(form, rows, data, found):
    if knows_typical(form) and form.schema.policy.reference == "typical":
        data = None  # the page compares with the typical applicant that the form knows
    for a, said in zip(found, py.reasons(form, rows, portfolio=data).to_dict(), strict=True):
        page, wanted = a["reasons"], said["reasons"]
        assert [(r["feature"], r["subscale"], r["text"]) for r in page["reasons"]] == [
            (r["feature"], r["subscale"], r["reason"]) for r in wanted
        ]
        assert [r["cost"] for r in page["reasons"]] == pytest.approx([r["cost"] for r in wanted], abs=1e-12)
        if form.schema.policy.order == "subscale":
            sums = [r["subscale_cost"] for r in wanted]
            assert [r["subscaleCost"] for r in page["reasons"]] == pytest.approx(sums, abs=1e-12)
        assert page["withheld"] == said["withheld"]


def check_decisions(form, rows, cutoff, found):
    assert [a["refused"] for a in found] == refused([a["risk"] for a in found], cutoff, form.schema.adverse).tolist()
    assert [tuple(a["beyond"]) for a in found] == names_beyond(form, rows)


def check_what_if(form, rows, cutoff, found):
    for i, said in enumerate(found):
        try:
            python = py.what_if(form, rows.rows(np.array([i])), cutoff)
        except DataError:
            assert said == {"error": "SearchError"}
            continue
        assert [plain_answer(a) for a in said["answers"]] == [plain_change(a) for a in python.answers]
        assert plain_answer(said["reachable"]) == plain_change(python.reachable)
        assert said["reached"] == python.reached
        assert not any(refused(a["risk"], cutoff, form.schema.adverse) for a in said["answers"])
        page_risks, risks = ([a["risk"] for a in said["answers"]], [a.risk for a in python.answers])
        assert page_risks == pytest.approx(risks, abs=1e-12)


def plain_answer(answer):
    fields = ("feature", "from", "to", "cost")
    return [tuple(change[f] for f in fields) for change in answer["changes"]], answer["cost"]


def plain_change(answer):
    changes = [(c.feature, c.value, c.to_value, c.cost) for c in answer.changes]
    return changes, answer.cost
