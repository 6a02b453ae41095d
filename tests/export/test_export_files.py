"""What exports say of themselves, refuse and leave untouched; what happens to rows the model refuses."""

from __future__ import annotations

import itertools
import json
import math
import os
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import plainrisk as pr
from plainrisk.errors import DataError, OutputError
from plainrisk.explain.options import ReasonOptions
from plainrisk.export.engines import Job, engine_of
from plainrisk.export.sql import DIALECTS
from plainrisk.exports import ENDINGS, prepare, read_facts, self_test_path, write_program


def made(unseen="neutral"):
    rng = np.random.default_rng(3)
    n = 400
    X = pd.DataFrame({
        "age": rng.integers(18, 80, n).astype(float),
        "debt": np.where(rng.random(n) < 0.1, -9.0, rng.normal(5, 2, n).round(1)),
        "job": rng.choice(["cook", "clerk", "smith"], n),
    })  # fmt: skip
    y = (X["debt"] / 4 + (X["job"] == "cook") + rng.normal(size=n) > 1.5).astype(int)
    features = {"age": {}, "debt": {"special_values": (-9,), "lower_bound": 0.0}, "job": {"kind": "categorical"}}
    schema = pr.Schema(
        features={name: {**f, "unseen": unseen} for name, f in features.items()},
        subscales={"person": ("age", "job"), "money": ("debt",)},
    )
    return pr.make_classifier("BandARM1", schema).fit(X, y)


@pytest.fixture(scope="module")
def model():
    return made()


@pytest.fixture(scope="module")
def strict():
    return made("error")


@pytest.mark.parametrize("name", ["MixARM1", "CalibratedMixARM1"])
def test_a_mixture_answers_what_each_expert_says_and_adds(name, tmp_path):
    credit = pr.datasets.make_credit(400, 7)
    model = pr.make_classifier(name, credit.schema).fit(credit.frame, credit.target)
    model.export(tmp_path / "score.py")
    module = {"__name__": "exported"}
    exec((tmp_path / "score.py").read_text(encoding="utf-8"), module)
    for row, risk in zip(credit.frame.head(50).to_dicts(), model.predict_proba(credit.frame)[:50, 1], strict=True):
        said = module["score"](row)
        own = [value for key, value in said.items() if key.startswith("expert_")]
        shares = [value for key, value in said.items() if key.startswith("share_")]
        if name == "MixARM1":
            terms = [w * r for w, r in zip(model.weights_.values(), own, strict=True)]
            assert shares == pytest.approx(terms, abs=1e-12)
        start = 0.0 if name == "MixARM1" else model.form_.last_link.value(np.zeros(1))[0]
        assert start + sum(shares) == pytest.approx(risk, abs=1e-12)
    experts = [expert.model.predict_proba(credit.frame[:1])[0, 1] for expert in model.experts_.values()]
    first = module["score"](credit.frame.to_dicts()[0])
    assert [v for k, v in first.items() if k.startswith("expert_")] == pytest.approx(experts, abs=1e-12)


FILES = [(target, endings[0], "sqlite" if target == "sql" else None) for target, endings in ENDINGS.items()]


@pytest.mark.parametrize(("target", "ending", "dialect"), FILES)
def test_a_file_carries_hash_and_verdict_and_is_the_same_every_time(model, target, ending, dialect, tmp_path):
    paths = [tmp_path / f"{n}{ending}" for n in range(2)]
    for path in paths:
        model.export(path, target=target, dialect=dialect, k=2)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    facts = read_facts(paths[0])
    assert facts["form_sha256"] == model.certify().form_sha256
    assert facts["certificate"] == "valid"
    assert facts["k"] == 2


def test_verify_says_what_agrees(model, tmp_path):
    model.export(tmp_path / "score.sql", dialect="sqlite", keep=["id"])
    found = pr.verify_export(tmp_path / "score.sql", model)
    assert (found.target, found.engine, found.rows, found.reasons, found.agrees) == ("sql", "SQLite", 100, 0, True)


def test_a_changed_number_is_found(model, tmp_path):
    path = tmp_path / "score.py"
    model.export(path)
    text = path.read_text()
    name = next(line for line in text.splitlines() if line.startswith("C1 = "))
    path.write_text(text.replace(name, f"{name[:-1]}, 0.0)".replace("(", "(9.0, ", 1)))
    assert not pr.verify_export(path, model).agrees
    assert subprocess.run([sys.executable, path], capture_output=True).returncode == 1


def test_the_self_test_of_sql_counts_wrong_rows(model, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "score.sql"
    model.export(path, dialect="duckdb")
    test = self_test_path(path).read_text()
    assert duckdb.sql(test).fetchall() == [(100, 0)]
    tampered = test.replace("THEN 1.0e0 ELSE", "THEN 1.5e0 ELSE").replace(" AS risk", " + 1e-3 AS risk")
    assert duckdb.sql(tampered).fetchall()[0][1] > 0


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_is_parsed(model, dialect, tmp_path):
    sqlglot = pytest.importorskip("sqlglot")
    path = tmp_path / "score.sql"
    model.export(path, dialect=dialect, keep=["id"])
    for file in (path, self_test_path(path)):
        parsed = sqlglot.parse(file.read_text(encoding="utf-8"), read=dialect)
        assert len([statement for statement in parsed if statement is not None]) == 1


def test_a_query_that_is_only_parsed_does_not_agree(model, tmp_path):
    pytest.importorskip("sqlglot")
    model.export(tmp_path / "score.sql", dialect="bigquery")
    found = pr.verify_export(tmp_path / "score.sql", model)
    assert (found.rows, found.agrees) == (0, None)


# ---- names


@pytest.mark.parametrize(
    ("dialect", "quoted"),
    [
        ("bigquery", "`a\\`b\\\\c\\n\\'d]\"`"),
        ("spark", "`a``b\\c\n'd]\"`"),
        ("tsql", "[a`b\\c\n'd]]\"]"),
        *((name, '"a`b\\c\n\'d]"""') for name in DIALECTS if name not in ("bigquery", "spark", "tsql")),
    ],
)
def test_names_are_escaped(dialect, quoted):
    assert DIALECTS[dialect].quote("a`b\\c\n'd]\"") == quoted


def test_a_name_does_not_leave_the_quotes_of_bigquery(tmp_path):
    sqlglot = pytest.importorskip("sqlglot")
    name = "x` FROM secrets; --\\"
    named(name, "other").export(tmp_path / "score.sql", dialect="bigquery")
    (query,) = sqlglot.parse((tmp_path / "score.sql").read_text(encoding="utf-8"), read="bigquery")
    read = {table.name for table in query.find_all(sqlglot.exp.Table)}
    assert "secrets" not in read
    assert "applicants" in read


@pytest.mark.parametrize("dialect", DIALECTS)
def test_features_that_differ_in_case_only_are_refused_in_sql(dialect, tmp_path):
    found = named("Age", "age")
    with pytest.raises(DataError, match=r"takes 'Age' and 'age' for one column.*Rename one of them"):
        found.export(tmp_path / "score.sql", dialect=dialect)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("target", ["python", "javascript", "c", "onnx", "xlsx", "pmml"])
def test_features_that_differ_in_case_only_are_told_apart_elsewhere(target, tmp_path):
    path = tmp_path / f"score{ENDINGS[target][0]}"
    found = named("Age", "age")
    found.export(path, target=target)
    try:
        assert pr.verify_export(path, found).agrees
    except pr.errors.MissingExtraError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


def named(*names, **more):
    """Fit a model of features with these names, and with more that is said of each."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, len(names))).round(1), columns=list(names))
    schema = pr.Schema(features=dict.fromkeys(names, more))
    y = X.sum(axis=1) + rng.normal(size=300) > 0
    return pr.make_classifier("ARM1", schema).fit(X, y.astype(int))


def test_a_table_may_stand_in_a_schema(model, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    model.export(tmp_path / "score.sql", dialect="duckdb", table="risk.applicants", keep=["id"])
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA risk")
        connection.execute("CREATE TABLE risk.applicants AS SELECT 7 AS id, 40.0 AS age, 1.5 AS debt, 'cook' AS job")
        found = connection.execute((tmp_path / "score.sql").read_text(encoding="utf-8"))
        answer = dict(zip([c[0] for c in found.description], found.fetchone(), strict=True))
    row = pd.DataFrame([{"age": 40.0, "debt": 1.5, "job": "cook"}])
    assert (answer["id"], answer["risk"]) == (7, model.predict_proba(row)[0, 1])


def test_pmml_names_no_protected_feature_as_a_reason(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"sex": rng.normal(size=300).round(1), "debt": rng.normal(size=300).round(1)})
    features = {
        "sex": {"protected": True, "actionable": "fixed", "reason": "SECRET"},
        "debt": {"reason": "Debt is high"},
    }
    found = pr.make_classifier("ARM1", pr.Schema(features=features)).fit(X, (X.sum(axis=1) > 0).astype(int))
    found.export(tmp_path / "score.pmml")
    text = (tmp_path / "score.pmml").read_text(encoding="utf-8")
    assert 'useReasonCodes="false"' in text
    assert "reasonCode=" not in text
    assert "Debt is high" in text
    assert "SECRET" not in text


# ---- growth


@pytest.mark.parametrize(
    "more",
    [{}, {"reason": "the same", "reasons": {"missing": "not given"}}, {"protected": True, "actionable": "fixed"}],
    ids=["plain", "the same words", "protected"],
)
def test_programs_and_queries_grow_linearly_with_the_features(more, tmp_path):
    steps, sizes = [], []
    for n in (50, 100, 200):
        found = named(*(f"feature {j}" for j in range(n)), **more)
        found.export(tmp_path / "score.sql", dialect="duckdb")
        sizes.append((tmp_path / "score.sql").stat().st_size)
        steps.append(len(prepare(found.form_, ReasonOptions(), {})[0].steps))
    for counts in (steps, sizes):
        assert all(after / before < 2.3 for before, after in itertools.pairwise(counts)), counts


# ---- rows that the model refuses

REFUSED = [
    ({"age": math.inf, "debt": 1.0, "job": "cook"}, "'age' holds infinity"),
    ({"age": 30.0, "debt": 1.0, "job": "pilot"}, "'job' has a level that was not in the training data"),
    ({"age": 30.0, "debt": 1.0, "job": None}, "'job' has a level that was not in the training data"),
]


@pytest.mark.parametrize("target", ["python", "javascript", "c", "onnx", "duckdb", "sqlite"])
def test_refused_rows_have_a_problem_and_no_answer(strict, target, tmp_path):
    kind = target if target in ENDINGS else "sql"
    facts = {"target": kind, "dialect": target, "table": "applicants", "keep": []}
    program, test = prepare(strict.form_, ReasonOptions(), facts)
    path = tmp_path / f"score{ENDINGS[kind][-1]}"
    rows = [tuple(row[i.feature] for i in program.inputs) for row, _ in REFUSED]
    try:
        write_program(path, program, test)
        (answers,) = engine_of(facts)[1]([Job(path, program, [*rows, test.rows[0]])])
    except pr.errors.MissingExtraError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    for answer, (_, problem) in zip(answers, REFUSED, strict=False):
        assert problem in answer["problem"]
        assert [answer[name] for name in program.answer_names[:-1]] == [None] * (len(program.answer_names) - 1)
    assert answers[-1]["problem"] is None
    assert answers[-1]["risk"] == test.answers[0][0]


def test_javascript_refuses_a_row_without_a_feature(model, tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not here.")
    path = tmp_path / "score.mjs"
    model.export(path)
    code = f"const {{ score }} = await import({json.dumps(path.as_uri())}); score({{ age: 40, job: 'cook' }});"
    done = subprocess.run([node, "--input-type=module", "-e", code], capture_output=True, text=True)
    assert done.returncode != 0
    assert "feature 'debt' is not in the row; a missing value is null" in done.stderr


def test_sqlite_refuses_text_among_numbers(model, tmp_path):
    facts = {"target": "sql", "dialect": "sqlite", "table": "applicants", "keep": []}
    program, test = prepare(model.form_, ReasonOptions(), facts)
    write_program(tmp_path / "score.sql", program, test)
    rows = [tuple({"age": "old", "debt": 1.0, "job": "cook"}[i.feature] for i in program.inputs)]
    ((answer, *_),) = engine_of(facts)[1]([Job(tmp_path / "score.sql", program, rows)])
    assert answer["problem"] == "feature 'age' must be a number"
    assert answer["risk"] is None


# ---- refusals


def test_trees_are_refused_with_the_nearest_way(tmp_path):
    pytest.importorskip("xgboost")
    german = pr.datasets.load("german")
    trees = pr.make_classifier("XGB", german.schema).fit(german.frame, german.target)
    with pytest.raises(DataError, match=r"sum of trees.*Fit an additive model"):
        trees.export(tmp_path / "score.py", portfolio=german.frame)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("target", "name", "options", "message"),
    [
        ("sqll", "a.sql", {}, "target must be 'sql'.*Did you mean 'sql'"),
        ("sql", "a.sql", {}, r"which SQL\? Choose the dialect of your database"),
        ("sql", "a.sql", {"dialect": "oracle"}, "dialect must be 'duckdb'.*not 'oracle'"),
        ("python", "a.py", {"dialect": "duckdb"}, "dialect must be None"),
        ("python", "a.txt", {}, "must end in .py"),
        ("python", "a.py", {"k": 0}, "k must be None or a whole number"),
        ("sql", "a.sql", {"dialect": "sqlite", "keep": ["Risk"]}, "'Risk', which is also the answer 'risk'"),
        ("sql", "a.sql", {"dialect": "sqlite", "keep": ["AGE"]}, "'age' and 'AGE' for one column"),
        ("sql", "a.sql", {"dialect": "sqlite", "keep": ["id", "ID"]}, "'ID', which is also kept as 'id'"),
        ("sql", "a.sql", {"dialect": "sqlite", "keep": ["problem"]}, "also the answer 'problem'"),
        ("sql", "a.sql", {"dialect": "sqlite", "table": "a.b.c.d"}, "up to three names"),
        ("sql", "a.sql", {"dialect": "duckdb", "keep": "id"}, "keep must be a list"),
    ],
)
def test_wrong_options_are_refused(model, target, name, options, message, tmp_path):
    with pytest.raises(DataError, match=message):
        model.export(tmp_path / name, target=target, **options)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_refused(model, tmp_path):
    with pytest.raises(OutputError, match="does not exist"):
        model.export(tmp_path / "no" / "score.py")


def test_exports_of_other_models_and_other_files_are_refused(model, strict, tmp_path):
    path = tmp_path / "score.py"
    model.export(path)
    with pytest.raises(DataError, match="export of another model"):
        pr.verify_export(path, strict)
    path.write_text("print(1)")
    with pytest.raises(DataError, match="not an export of plainrisk"):
        pr.verify_export(path, model)
    with pytest.raises(DataError, match="no ending of an export"):
        pr.verify_export(tmp_path / "score.txt", model)
    for name in ("a.onnx", "a.xlsx"):
        (tmp_path / name).write_bytes(b"\x00\x01broken")
        with pytest.raises(DataError, match=r"cannot be read|not an export"):
            pr.verify_export(tmp_path / name, model)


@pytest.mark.parametrize("target", ["onnx", "xlsx"])
def test_an_empty_category_cannot_be_told_from_missing(target, tmp_path):
    X = pd.DataFrame({"job": ["", "a", "b"] * 50, "age": np.arange(150.0)})
    schema = pr.Schema(features={"job": {"kind": "categorical"}, "age": {}}, subscales={"s": ("job", "age")})
    found = pr.AdditiveRiskModel(schema).fit(X, np.arange(150) % 7 % 2)
    with pytest.raises(DataError, match="cannot tell from missing"):
        found.export(tmp_path / f"score.{target}")
    assert not list(tmp_path.iterdir())


def test_control_characters_are_refused_where_they_cannot_stand(tmp_path):
    X = pd.DataFrame({"a\x01ge": np.arange(150.0)})
    schema = pr.Schema(features={"a\x01ge": {}}, subscales={"s": ("a\x01ge",)})
    found = pr.AdditiveRiskModel(schema).fit(X, np.arange(150) % 7 % 2)
    for target in ("xlsx", "pmml"):
        with pytest.raises(DataError, match="cannot hold a control character"):
            found.export(tmp_path / f"score.{target}")
    found.export(tmp_path / "score.py")
    assert pr.verify_export(tmp_path / "score.py", found).agrees


# ---- the same answers as the verbs


def test_the_module_answers_as_the_verbs_do(model, tmp_path):
    path = tmp_path / "score.py"
    model.export(path, k=2)
    row = {"age": 40.0, "debt": -9.0, "job": "cook"}
    code = "import json, runpy, sys; print(json.dumps(runpy.run_path(sys.argv[1])['score'](json.loads(sys.argv[2]))))"
    done = subprocess.run([sys.executable, "-c", code, path, json.dumps(row)], capture_output=True, check=True)
    answer = json.loads(done.stdout)
    frame = pd.DataFrame([row])
    assert answer["risk"] == model.predict_proba(frame)[0, 1]
    explained = model.explain(frame)
    assert answer["typical_risk"] == explained.constant[0]
    assert answer["part_debt"] == explained.to_frame()["debt"][0]
    assert [answer["reason_1"], answer["reason_2"]] == [*model.reasons(frame, k=2).words(0), None, None][:2]
