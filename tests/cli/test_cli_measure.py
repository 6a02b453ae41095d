"""The commands evaluate, cutoffs and fairness say what the library says."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import polars as pl
import pytest

import plainrisk as pr
from plainrisk.explain.groups import compare_groups


@pytest.fixture(scope="module")
def second(credit, tmp_path_factory):
    """A second file with months, amounts, weights and groups, and a second model."""
    folder = tmp_path_factory.mktemp("second")
    made = pr.datasets.make_credit(500, 8, backend="polars")
    rng = np.random.default_rng(2)
    frame = made.frame.with_columns(
        pl.Series("bad", made.target),
        month=pl.Series([f"2024-0{k % 3 + 1}" for k in range(500)]),
        lent=pl.Series(rng.integers(1, 50, 500) * 100),
        w=pl.Series(rng.uniform(0.5, 2, 500)),
        region=pl.Series(["north"] * 300 + ["south"] * 180 + ["east"] * 8 + [None] * 12),
    )
    frame.write_csv(folder / "test.csv")
    X, y = credit.frame.select(list(credit.schema.features)), credit.frame["bad"].to_numpy()
    pr.NonnegativeLogisticRegression(credit.schema, ridge=0.01).fit(X, y).save(folder / "old.json")
    return folder / "test.csv", folder / "old.json", frame


def same(found, expected):
    """JSON holds the same numbers, null where one is not finite."""
    kept = json.loads(json.dumps(expected).replace("NaN", "null").replace("Infinity", "null"))
    for name, value in kept.items():
        assert found[name] == value, name


def test_evaluate_says_what_the_library_says(run, credit, second):
    file, old, frame = second
    words = ("evaluate", credit.model_file, file, "--against", old, "--by", "month", "--weight", "w")
    result = run(*words, "--level", "0.9", "--seed", "3", "--json")
    assert result.exit_code == 0, result.stderr
    expected = pr.evaluate(
        pr.load(credit.model_file),
        frame,
        against=pr.load(old),
        by="month",
        sample_weight=frame["w"].to_numpy(),
        level=0.9,
        seed=3,
    ).to_dict()
    expected["other"] = expected.pop("against")
    same(json.loads(result.stdout), expected)
    shown = run(*words).stdout
    for text in ("AUC", "DeLong's test of equal AUC: p = ", "Calibration, in ten bins", "2024-03", "Gini", "log loss"):
        assert text in shown


def test_evaluate_fits_a_screen(run, credit, second, monkeypatch):
    file, old, _ = second
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("evaluate", credit.model_file, file, "--against", old, "--by", "month").stdout
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert any(line.startswith("intercept ") for line in shown.splitlines())


def test_an_infinite_log_loss_is_said(run, credit, second, tmp_path):
    file, _, frame = second
    X, y = credit.frame.select(list(credit.schema.features)), credit.frame["bad"].to_numpy()
    direct = pr.make_classifier("DirectARM1", credit.schema)
    with pytest.warns(UserWarning, match="cut off"):
        direct.fit(X, y)
    direct.save(tmp_path / "d.json")
    found = pr.evaluate(direct, frame)
    assert found.certain_and_wrong, "or the test shows nothing"
    shown = run("evaluate", tmp_path / "d.json", file).stdout
    assert "infinite" in shown
    assert f"The log loss is infinite: {len(found.certain_and_wrong)} rows have a risk of 0 or 1 that is wrong" in shown
    against = run("evaluate", credit.model_file, file, "--against", tmp_path / "d.json").stdout
    assert "Of --against: The log loss is infinite" in against


def test_cutoffs_say_what_the_library_says(run, credit, second):
    file, _, frame = second
    words = (
        "cutoffs",
        credit.model_file,
        file,
        "--gain-good",
        "0.15",
        "--cost-bad",
        "0.6",
        "--amount",
        "lent",
    )
    result = run(*words, "--weight", "w", "--approval", "0.7", "--cutoff", "0.25", "--bad-rate", "0.1", "--json")
    assert result.exit_code == 0, result.stderr
    risk = pr.load(credit.model_file).predict_proba(frame)[:, 1]
    options = {"cost_bad": 0.6, "gain_good": 0.15, "amount": frame["lent"], "sample_weight": frame["w"]}
    expected = pr.cutoffs(risk, None, frame["bad"], **options)
    found = json.loads(result.stdout)
    same(found, expected.to_dict())
    assert found["chosen"]["approval 0.7"] == expected.at(approval=0.7).to_dict()
    assert found["chosen"]["cutoff 0.25"] == expected.at(cutoff=0.25).to_dict()
    assert found["chosen"]["bad_rate 0.1"] == expected.at(bad_rate=0.1).to_dict()
    shown = run(*words).stdout
    assert "approved are risks below the cut-off" in shown
    unweighted = pr.cutoffs(risk, None, frame["bad"], **{**options, "sample_weight": None})
    assert f"largest profit: cut-off {unweighted.best.cutoff:.6g}" in shown
    turned = file.with_name("turned.json")
    form = pr.load(credit.model_file).form_
    pr.RiskModel(msgspec.structs.replace(form, schema=form.schema.replace(adverse="negative"))).save(turned)
    plain = run("cutoffs", turned, file).stdout
    assert "from the cut-off on" in plain
    assert "profit" not in plain
    pr.load(credit.model_file).save(turned, cutoff=0.25)
    own = json.loads(run("cutoffs", turned, file, "--gain-good", "0.15", "--json").stdout)["chosen"]
    assert own == {"the model's own": pr.cutoffs(risk, None, frame["bad"], gain_good=0.15).at(cutoff=0.25).to_dict()}


def test_fairness_says_what_the_library_says(run, credit, second):
    file, _, frame = second
    words = ("fairness", credit.model_file, file, "--by", "region", "--cutoff", "0.3")
    result = run(*words, "--json")
    assert result.exit_code == 0, result.stderr
    risk = pr.load(credit.model_file).predict_proba(frame)[:, 1]
    expected = compare_groups(frame["bad"], risk, frame["region"], cutoff=0.3)
    found = json.loads(result.stdout)
    same(found, expected.to_dict())
    assert sum(group["rows"] for group in found["groups"]) == 500
    assert {group["group"]: group["small"] for group in found["groups"]}["(no group)"]
    shown = run(*words, "--reference", "south").stdout
    assert "compared with 'south'" in shown
    assert "Equal opportunity" in shown
    assert "8, small" in shown


def test_fairness_reports_every_protected_feature(run, credit, second):
    """Without a column of groups, by the levels of the protected features, in the words of the schema."""
    file, _, frame = second
    model_file = file.with_name("protected.json")
    features = {"housing": {"protected": True, "labels": {"own": "owner"}}, "age": {"protected": True, "unit": "years"}}
    model = pr.load(credit.model_file).annotate({"features": features}, cutoff=0.3)
    model.save(model_file)
    result = run("fairness", model_file, file, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert set(found["protected"]) == {"housing", "age"}
    risk = model.predict_proba(frame)[:, 1]
    owners = frame["housing"].cast(pl.String) == "own"
    groups = {group["group"]: group for group in found["protected"]["housing"]["groups"]}
    assert groups["owner"]["rows"] == owners.sum()
    assert groups["owner"]["approval"]["estimate"] == pytest.approx(np.mean(risk[owners.to_numpy()] < 0.3))
    assert sum(group["rows"] for group in found["protected"]["age"]["groups"]) == 500
    shown = run("fairness", model_file, file).stdout
    for words in ("rows by housing, approved below 0.3", "rows by age, approved below 0.3", "owner"):
        assert words in shown


def test_fairness_needs_groups(run, credit, second, tmp_path):
    free = {name: {"protected": False} for name in credit.schema.protected}
    pr.load(credit.model_file).annotate({"features": free}).save(tmp_path / "m.json")
    result = run("fairness", tmp_path / "m.json", second[0], "--cutoff", "0.3")
    assert result.exit_code == 2
    assert "names no protected feature. Add --by COLUMN" in result.stderr


def test_fairness_without_outcomes(run, credit, second, tmp_path):
    frame = second[2].drop("bad")
    frame.write_csv(tmp_path / "new.csv")
    words = ("fairness", credit.model_file, tmp_path / "new.csv", "--by", "region", "--cutoff", "0.3")
    shown = run(*words).stdout
    assert "adverse impact ratio" in shown
    assert "No outcomes in the data" in shown
    assert json.loads(run(*words, "--json").stdout)["groups"][0]["auc"]["estimate"] is None
    assert "--column 'end' is not in the data" in run(*words, "--column", "end").stderr


def test_groups_below_four_fifths_are_marked(run, credit, second):
    file, _, frame = second
    risk = pr.load(credit.model_file).predict_proba(frame)[:, 1]
    split = pl.Series(np.where(risk < np.median(risk), "low", "high"))
    frame.with_columns(side=split).write_csv(file.with_name("split.csv"))
    words = ("fairness", credit.model_file, file.with_name("split.csv"), "--by", "side", "--cutoff", "0.3")
    assert "below 4/5" in run(*words, "--reference", "low").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("evaluate", "--by", "mnth"), "--by 'mnth' is not in the data. Did you mean 'month'?"),
        (("evaluate", "--weight", "weight"), "--weight 'weight' is not in the data"),
        (("evaluate", "--column", "month"), "outcome 'month': Data: row 0"),
        (("evaluate", "--column", "none"), "--column 'none' is not in the data"),
        (("evaluate", "--level", "95"), "level must be a finite number above 0 and below 1"),
        (("evaluate", "--weight", "month"), "sample_weight: must hold numbers"),
        (("evaluate", "--against", "none.json"), "none.json"),
        (("cutoffs", "--cost-bad", "-1"), "cost_bad must be"),
        (("cutoffs", "--approval", "70"), "approval must be None or a probability"),
        (("cutoffs", "--adverse", "negative"), "No such option: --adverse"),
        (("cutoffs", "--amount", "month"), "amount: must hold numbers"),
        (("fairness", "--by", "region", "--cutoff", "3"), "--cutoff must be None or a probability"),
        (
            ("fairness", "--by", "region", "--cutoff", "0.3", "--reference", "nrth"),
            "There is no group 'nrth'. Did you mean",
        ),
        (("fairness", "--by", "region", "--cutoff", "0.3", "--adverse", "negative"), "No such option: --adverse"),
        (("fairness", "--by", "region"), "has no cut-off to decide by. Add --cutoff RISK"),
    ],
)
def test_what_cannot_be_done_is_said(run, credit, second, words, message):
    command, *options = words
    result = run(command, credit.model_file, second[0], *options)
    assert result.exit_code == 2
    assert message in result.stderr


def test_models_of_different_outcomes_are_not_compared(run, credit, second, tmp_path):
    schema = pr.Schema(features=credit.schema.features, target="bad", positive=0)
    X, y = credit.frame.select(list(credit.schema.features)), credit.frame["bad"].to_numpy()
    pr.AdditiveRiskModel(schema).fit(X, y).save(tmp_path / "t.json")
    result = run("evaluate", credit.model_file, second[0], "--against", tmp_path / "t.json")
    assert result.exit_code == 2
    assert "predict different outcomes" in result.stderr


def test_the_schema_says_which_outcome_is_bad(run, credit, second, tmp_path):
    """A model of the good outcome: cut-offs and groups are judged the other way round, without an option."""
    schema = pr.Schema(features={"income": {}, "debt_ratio": {}}, target="bad", positive=0, adverse="negative")
    pr.AdditiveRiskModel(schema).fit(credit.frame, credit.frame["bad"].to_numpy()).save(tmp_path / "g.json")
    words = (tmp_path / "g.json", second[0])
    told = json.loads(run("cutoffs", *words, "--json").stdout)
    assert told["adverse"] == "negative"
    rates = [one["bad_rate"]["estimate"] for one in told["cutoffs"]]
    assert rates[0] > rates[-1], "the higher the cut-off, the fewer bad applicants"
    bad = json.loads(run("cutoffs", credit.model_file, second[0], "--json").stdout)
    assert bad["adverse"] == "positive"
    groups = json.loads(run("fairness", *words, "--by", "region", "--cutoff", "0.7", "--json").stdout)
    assert groups["adverse"] == "negative"


@pytest.mark.parametrize("words", [("evaluate", "--by"), ("fairness", "--cutoff", "0.3", "--by")])
def test_of_many_groups_fifty_are_shown(run, credit, second, tmp_path, words):
    file = tmp_path / "many.csv"
    second[2].head(200).with_columns(customer=pl.format("c{}", pl.int_range(200) % 60 + 1000)).write_csv(file)
    command, *options = words
    words = (command, credit.model_file, file, *options, "customer")
    shown = run(*words)
    assert "... and 10 more groups (--json has all)" in shown.stdout
    assert "1049" in shown.stdout
    assert "1050" not in shown.stdout
    assert len(json.loads(run(*words, "--json").stdout)["groups"]) == 60
