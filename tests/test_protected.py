"""Whatever is asked, and wherever: a protected feature is no reason, no change and no advice.

Every public method, command and path of the service stands in a table below: either it is asked here in every way that
could make it name a protected feature, or it is for the modeler and the validator, who must see all features, or it
names no feature at all. What is new and stands in no table fails the test.
"""

from __future__ import annotations

import itertools
import json
import warnings

import pytest
from starlette.testclient import TestClient

import plainrisk as pr
from plainrisk.cli.commands import COMMANDS as EVERY
from plainrisk.cli.commands import load_command
from plainrisk.errors import DataError, PlainriskWarning, SchemaError
from plainrisk.model import RiskModel
from plainrisk.serve import Settings, make_app

METHODS = {
    "asked": {"decide", "export", "reasons", "receipt", "report", "what_if", "what_ifs"},
    "shown": {"annotate", "certify", "document", "drift", "effects", "explain", "feature_importances_", "overview"}
    | {"posterior", "schema_with_bins", "scorecard"},
    "silent": {"about", "at_base_rate", "clipped_", "cutoff", "fit", "from_fitted", "predict", "predict_proba", "save"}
    | {"score"},
}
COMMANDS = {
    "asked": {"demo", "export", "reasons", "report", "score", "serve", "verify", "what-if"},
    "shown": {"annotate", "bins", "certify", "diff", "document", "drift", "evaluate", "explain", "fairness", "fit"}
    | {"monitor", "overrides", "periods", "quality", "schema check", "schema infer", "scorecard", "stability"}
    | {"stress", "weak-spots"},
    "silent": {"audit", "cutoffs", "data check", "data list", "data show", "sign"},
}
PATHS = {
    "asked": {"/", "/decide", "/reasons", "/what-if"},
    "shown": {"/explain", "/model", "/openapi.json", "/v2/models/{model}"},
    "silent": {"/score", "/health/live", "/health/ready", "/metrics", "/v2", "/v2/health/live", "/v2/health/ready"}
    | {"/v2/models/{model}/infer", "/v2/models/{model}/ready"},
}
MODELS = ("SmoothARM1", "SmoothARM1 with pairs", "ARM2", "MixLinARM1", "MixXGB")
PAIRS = [("Age in years", "Credit amount"), ("Personal status and sex", "Purpose")]


@pytest.fixture(scope="module")
def german():
    return pr.datasets.load("german", backend="polars")


@pytest.fixture(scope="module")
def fitted(german):
    """Fit a model by name, once."""
    known = {}

    def fit(name):
        if name not in known:
            if "XGB" in name:
                pytest.importorskip("xgboost")
            more = {"pairs": PAIRS} if name.endswith("pairs") else {}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PlainriskWarning)
                model = pr.make_classifier(name.split()[0], german.schema, **more).fit(german.frame, german.target)
            known[name] = RiskModel(model.form_, model.fit_record_)
        return known[name]

    return fit


def words_of(schema):
    """All that would tell a reader of a protected feature."""
    known = schema.features
    each = [(n, known[n].title(n), known[n].reason, *known[n].reasons.values()) for n in schema.protected]
    return {text for texts in each for text in texts if text}


def names_none(schema, features=(), texts=()):
    """Whether neither features nor texts name a protected feature."""
    return not set(features) & set(schema.protected) and not any(w in text for w in words_of(schema) for text in texts)


# ---- nothing is left out


def test_every_method_stands_in_the_table():
    public = {name for name in dir(RiskModel) if not name.startswith("_")}
    assert public == set().union(*METHODS.values())


def test_every_command_stands_in_the_table():
    def walk(command, path=""):
        if not hasattr(command, "commands"):
            return {path.strip()}
        return set().union(*(walk(inner, f"{path} {name}") for name, inner in command.commands.items()))

    assert set().union(*(walk(load_command(name), name) for name in EVERY)) == set().union(*COMMANDS.values())


def test_every_path_stands_in_the_table():
    routes = {route.path for route in make_app(Settings(models=("model.json",))).routes}
    own = {path.removeprefix("/models/{model}") or "/" for path in routes}
    assert own == set().union(*PATHS.values())


# ---- the library


@pytest.mark.parametrize("name", MODELS)
def test_reasons_and_decisions(fitted, german, name):
    model, rows = fitted(name), german.frame[::5]
    schema = model.form_.schema
    assert len(schema.protected) == 3
    references = ["best", "typical", german.frame[3]]
    asked = 0
    for reference, k in itertools.product(references, (None, 1, 100)):
        try:
            found = model.reasons(rows, k=k, reference=reference)
        except DataError:  # trees have no best
            continue
        asked += len(rows)
        if not isinstance(reference, str):
            assert all(names_none(schema, found.named(i), found.words(i)) for i in range(len(rows)))
            continue
        decided = model.annotate({"policy": {"reference": reference}}).decide(rows, k=k)
        for i in range(len(rows)):
            for one in (found, decided):
                assert names_none(schema, one.named(i), one.words(i))
            assert names_none(schema, texts=[decided.letter(i), json.dumps(decided.to_dict(i))])
    assert asked > 500


@pytest.mark.parametrize("name", ["SmoothARM1", "SmoothARM1 with pairs", "ARM2"])
def test_what_if(fitted, german, name):
    model = fitted(name)
    schema, protected = model.form_.schema, model.form_.schema.protected
    rows = german.frame.filter(model.decide(german.frame).refused)[:25]
    others = [n for n in model.form_.features if n not in protected]
    read = [n for n in protected if n in model.form_.features]
    values = {n: sorted(german.frame[n].unique().to_list()) for n in read if schema.features[n].kind == "continuous"}
    hostile = [
        {},
        {"cost": "steps"},
        {"frozen": others},
        {"target": 0.99},
    ]
    costs = {name: {"step_cost": 1e-6 if name in read else 1e6} for name in model.form_.features}
    tempting = model.annotate({"features": costs})
    for name in values:
        with pytest.raises(DataError, match="is protected and cannot change"):
            model.what_ifs(rows, values={name: values[name]})
    answered = 0
    for options in hostile:
        for one in (*model.what_ifs(rows, **options).rows, *tempting.what_ifs(rows, **options).rows):
            for answer in (*one.answers, one.reachable):
                if answer is not None:
                    assert names_none(schema, answer.features), options
                    answered += 1
    assert answered > 50


@pytest.mark.parametrize("ending", ["py", "mjs", "c", "sql", "pmml"])
def test_exports_hold_no_words_for_them(fitted, tmp_path, ending):
    model = fitted("SmoothARM1")
    model = model.annotate({"features": {n: {"reason": f"never say {n}"} for n in model.form_.schema.protected}})
    path = tmp_path / f"score.{ending}"
    model.export(path, **({"dialect": "duckdb"} if ending == "sql" else {}))
    assert "never say" not in path.read_text(encoding="utf-8")


def test_a_policy_cannot_name_them(fitted):
    model = fitted("SmoothARM1")
    (first, *_) = model.form_.schema.protected
    with pytest.raises(SchemaError, match=r"inquiries names .*, which is protected"):
        model.annotate({"policy": {"inquiries": [first]}})
    with pytest.raises(SchemaError, match="protected"):
        model.annotate({"features": {first: {"actionable": "up"}}})


# ---- commands and service


def test_commands_have_no_option_for_it():
    """What is protected stands in the model file alone."""
    for name in ("reasons", "what-if", "score", "report"):
        flags = {flag for parameter in load_command(name).params for flag in parameter.opts}
        assert not flags & {"--protected", "--barred", "--allow", "--adverse", "--order", "--inquiries"}


@pytest.fixture(scope="module")
def client(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "german.json"
    fitted("SmoothARM1").save(path)
    with TestClient(make_app(Settings(models=(str(path),))), base_url="http://localhost") as client:
        yield client


def test_the_service(client, fitted, german):
    schema = fitted("SmoothARM1").form_.schema
    rows = german.frame[:100].to_dicts()
    for verb, more in (
        ("reasons", {"k": 100}),
        ("reasons", {"reference": "typical"}),
        ("decide", {}),
        ("what-if", {"cost": "steps", "answers": 10}),
    ):
        found = client.post(f"/{verb}", json={"rows": rows, **more})
        assert found.status_code == 200, found.text
        for row in found.json()["rows"]:
            said = [r["feature"] for r in row.get("reasons", [])]
            said += [c["feature"] for a in row.get("answers", []) for c in a["changes"]]
            texts = [r["reason"] for r in row.get("reasons", [])] + [row.get("letter", "")]
            assert names_none(schema, said, texts)
    for option in ("protected", "barred", "adverse", "order", "inquiries", "values"):
        refused = client.post("/reasons", json={"rows": rows[:1], option: []})
        assert (refused.status_code, f"unknown field `{option}`" in refused.text) == (422, True)


def test_explanations_mark_them(client, fitted, german):
    """Contributions must add up, so they are shown, marked as protected."""
    schema = fitted("SmoothARM1").form_.schema
    (row,) = client.post("/explain", json={"rows": german.frame[:1].to_dicts()}).json()["rows"]
    parts = [part for group in row["subscales"] for part in group["features"]]
    assert {part["feature"] for part in parts if part.get("protected")} == set(schema.protected)
