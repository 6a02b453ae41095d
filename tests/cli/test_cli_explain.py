"""The commands explain, reasons, what-if, certify and drift."""

from __future__ import annotations

import json
import subprocess
import sys

import msgspec
import numpy as np
import polars as pl
import pytest

import plainrisk as pr
from plainrisk.form import form_hash, read_model, write_model


@pytest.fixture(scope="module")
def straight(credit, tmp_path_factory):
    """The same model as a line of bands, in a file."""
    path = tmp_path_factory.mktemp("models") / "bands.json"
    fitted = pr.load(credit.model_file)
    pr.linearise(fitted, credit.frame, pieces=3).save(path)
    return path


# ---- explain


def test_one_row_is_shown(run, credit):
    result = run("explain", credit.model_file, credit.csv, "--row", 7)
    assert result.exit_code == 0
    model = pr.load(credit.model_file)
    risk = model.predict_proba(credit.frame[7])[0, 1]
    assert f"{risk:.1%}" in result.stdout
    for name in (*map(credit.schema.title, credit.schema.features), *credit.schema.subscales, "Age (protected)"):
        assert name in result.stdout
    assert "The points are shares of the whole difference and add up exactly" in result.stdout
    told = json.loads(run("explain", credit.model_file, credit.csv, "--row", 7, "--json").stdout)
    parts = sum(s["contribution"] for s in told["subscales"])
    assert (told["unit"], told["reference"], told["bends"]) == ("probability", "typical", True)
    assert told["constant"] + parts == pytest.approx(risk, abs=1e-12)
    assert told["further_step"]["rate"] == pytest.approx(risk * (1 - risk))
    curved = run("explain", credit.model_file, credit.csv, "--row", 7, "--unit", "log odds", "--json")
    told = json.loads(curved.stdout)
    parts = sum(s["contribution"] for s in told["subscales"])
    assert told["constant"] + parts == pytest.approx(model.form_.score(credit.frame[7])[0])


def test_one_row_is_shown_in_the_words_of_the_schema(run, credit, tmp_path):
    words = {"housing": {"label": "Home", "labels": {"own": "owned", "rent": "rented"}}, "income": {"unit": "a year"}}
    with_policy(credit, tmp_path / "m.json", {"features": words})
    row = credit.frame["housing"].cast(pl.String).to_list().index("own")
    shown = " ".join(run("explain", tmp_path / "m.json", credit.csv, "--row", row).stdout.split())
    assert "Home owned" in shown
    assert f"{credit.frame['income'][row]:,.0f} a year" in shown
    assert "housing" not in shown


def test_all_rows_are_written(run, credit, straight, tmp_path):
    out = tmp_path / "parts.parquet"
    result = run("explain", straight, credit.parquet, "-o", out, "--keep", "id", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["rows"] == 600
    written = pl.read_parquet(out)
    expected = pr.load(straight).explain(credit.frame)
    assert written["id"].to_list() == credit.frame["id"].to_list()
    np.testing.assert_array_equal(written["risk"], expected.risk)
    np.testing.assert_array_equal(written["band"], expected.band)
    total = sum(written[n].to_numpy() for n in [*expected.names, "constant"])
    np.testing.assert_allclose(total, written["risk"], rtol=0, atol=1e-12)


# ---- reasons


def with_policy(credit, path, changes):
    """Write the model with another policy, and return it."""
    model = pr.load(credit.model_file).annotate(changes)
    model.save(path)
    return model


def test_a_letter(run, credit, tmp_path):
    model = with_policy(credit, tmp_path / "m.json", {"policy": {"cutoff": 0.2}})
    risk = model.predict_proba(credit.frame)[:, 1]
    for row, decision in ((int(np.argmax(risk)), "refused"), (int(np.argmin(risk)), "approved")):
        words = (credit.csv, "--row", row, "-k", 3)
        expected = model.reasons(credit.frame[row], 3)
        for result in (
            run("reasons", tmp_path / "m.json", *words),
            run("reasons", credit.model_file, *words, "--cutoff", 0.2),
        ):
            assert result.exit_code == 0
            assert result.stdout.strip() == expected.letter(0).strip()
        assert ("Principal reasons" in result.stdout) == (decision == "refused")
        told = json.loads(run("reasons", tmp_path / "m.json", *words, "--json").stdout)
        assert told["decision"] == decision
        assert [r["feature"] for r in told["reasons"]] == list(expected.named(0))


def test_without_a_cutoff_nobody_is_written_to(run, credit, tmp_path):
    words = ("reasons", credit.model_file, credit.csv)
    for more in ((), ("--json",), ("--refused", "-o", tmp_path / "r.csv")):
        result = run(*words, *more)
        assert result.exit_code == 2
        assert f"reasons: {credit.model_file} has no cut-off to decide by. Add --cutoff RISK" in result.stderr
    assert list(tmp_path.iterdir()) == []
    assert run(*words, "-o", tmp_path / "r.csv").exit_code == 0  # the reasons of all rows need none
    assert pl.read_csv(tmp_path / "r.csv").height == 600


def test_reasons_of_all_refused_rows(run, credit, tmp_path):
    out = tmp_path / "reasons.csv"
    policy = {"policy": {"inquiries": ["inquiries"]}, "features": {"age": {"protected": True}}}
    model = with_policy(credit, tmp_path / "m.json", policy)
    words = ("--cutoff", 0.2, "--refused", "--keep", "id", "-k", 2)
    result = run("reasons", tmp_path / "m.json", credit.parquet, "-o", out, *words)
    assert result.exit_code == 0
    expected = model.reasons(credit.frame, 2)
    refused = np.flatnonzero(expected.risk >= 0.2)
    assert 0 < len(refused) < 600
    written = pl.read_csv(out)
    assert written["row"].to_list() == refused.tolist()
    assert written["id"].to_list() == (refused + 100).tolist()
    columns = expected.columns()
    for name in ("reason_1", "feature_2", "reason_3", "withheld"):
        assert written[name].to_list() == [columns[name][i] for i in refused], name
    np.testing.assert_allclose(written["cost_1"], columns["cost_1"][refused])
    assert written["withheld"].sum() > 0
    assert "age" not in {*written["feature_1"], *written["feature_2"], *written["feature_3"]}


def test_reasons_are_listed_in_the_order_of_the_policy(run, credit, tmp_path):
    written = {}
    for order in ("feature", "subscale"):
        model = with_policy(credit, tmp_path / "m.json", {"policy": {"order": order}})
        assert run("reasons", tmp_path / "m.json", credit.csv, "-o", tmp_path / "r.csv").exit_code == 0
        table = pl.read_csv(tmp_path / "r.csv")
        written[order] = table.select("feature_1", "feature_2", "feature_3", "feature_4").rows()
        named = model.reasons(credit.frame).named
        assert [tuple(f for f in row if f is not None) for row in written[order]] == [named(i) for i in range(600)]
        falls = (table["cost_1"] >= table["cost_2"]).fill_null(value=True)
        assert falls.all() == (order == "feature")
    assert written["feature"] != written["subscale"]


def test_protected_features_are_told_of(run, credit, tmp_path):
    free = {name: {"protected": False} for name in credit.schema.protected}
    plain = pr.load(credit.model_file).annotate({"features": free}, cutoff=0.2).reasons(credit.frame)
    row = int(np.argmax(plain.risk))
    first, second = plain.named(row)[:2]
    for names, message in (
        ([first], "1 protected feature also counts; it is never given as a reason."),
        ([first, second], "2 protected features also count; they are never given as a reason."),
    ):
        features = free | {name: {"protected": True} for name in names}
        model = with_policy(credit, tmp_path / "m.json", {"features": features, "policy": {"cutoff": 0.2}})
        assert not set(model.reasons(credit.frame[row]).named(0)) & set(names)
        result = run("reasons", tmp_path / "m.json", credit.csv, "--row", row)
        assert message in result.stderr
    approved = run("reasons", tmp_path / "m.json", credit.csv, "--row", int(np.argmin(plain.risk)))
    assert approved.stderr == ""


# ---- what-if


def test_the_cheapest_way_is_shown(run, credit):
    model = pr.load(credit.model_file)
    risk = model.predict_proba(credit.frame)[:, 1]
    row = int(np.argmax(risk))
    words = ("what-if", credit.model_file, credit.csv, "--row", row, "--frozen", "age")
    result = run(*words, "--cutoff", 0.2)
    assert result.exit_code == 0
    expected = model.what_if(credit.frame[row], 0.2, frozen=["age"])
    assert f"The smallest change: {expected.answers[0].risk:.1%}" in result.stdout
    assert all(change.feature in result.stdout for change in expected.answers[0].changes)
    told = json.loads(run(*words, "--cutoff", 0.2, "--json").stdout)
    assert told["answers"][0]["risk"] == expected.answers[0].risk
    assert "cannot be reached" in run(*words, "--cutoff", 0.0001).stdout
    assert "Nothing needs to change" in run(*words, "--cutoff", 1).stdout


def test_without_a_target_the_cutoff_of_the_file_is_passed(run, credit, tmp_path):
    words = {name: {"label": f"Your {name}"} for name in credit.schema.features}
    words["age"]["protected"] = True
    model = with_policy(credit, tmp_path / "m.json", {"policy": {"cutoff": 0.2}, "features": words})
    row = int(np.argmax(model.predict_proba(credit.frame)[:, 1]))
    asked = (credit.csv, "--row", row, "--values", "income=5000,9000", "--answers", 1)
    told = json.loads(run("what-if", tmp_path / "m.json", *asked, "--json").stdout)
    expected = model.what_if(credit.frame[row], 0.2, values={"income": [5000.0, 9000.0]}, answers=1)
    assert told["target"] == 0.2
    assert [a["risk"] for a in told["answers"]] == [a.risk for a in expected.answers]
    assert "age" not in {c["feature"] for a in told["answers"] for c in a["changes"]}
    shown = run("what-if", tmp_path / "m.json", *asked).stdout
    assert "approved if below 20.0%" in shown
    assert expected.answers[0].changes
    assert all(f"Your {change.feature}" in shown for change in expected.answers[0].changes)
    missing = run("what-if", credit.model_file, *asked)
    assert missing.exit_code == 2
    assert f"what-if: {credit.model_file} has no cut-off. Add --cutoff RISK" in missing.stderr


def test_the_cheapest_ways_of_all_rows(run, credit, tmp_path):
    out = tmp_path / "ways.jsonl"
    frame = credit.frame[:40]
    frame.write_parquet(tmp_path / "few.parquet")
    result = run("what-if", credit.model_file, tmp_path / "few.parquet", "--cutoff", 0.1, "-o", out)
    assert result.exit_code == 0
    written = pl.read_ndjson(out)
    expected = pr.load(credit.model_file).what_ifs(frame, 0.1)
    assert written["reached"].to_list() == [w.reached for w in expected.rows]
    assert written["new_risk"].to_list() == expected.columns()["new_risk"]
    assert written["changes"].to_list() == expected.columns()["changes"]


def test_values_to_try_are_read_by_feature(run, credit):
    model = pr.load(credit.model_file)
    row = int(np.argmax(model.predict_proba(credit.frame)[:, 1]))
    words = ("what-if", credit.model_file, credit.csv, "--row", row, "--cutoff", 0.2, "--json")
    told = json.loads(run(*words, "--values", "income=5000,9000", "--values", "housing=own").stdout)
    expected = model.what_if(credit.frame[row], 0.2, values={"income": [5000.0, 9000.0], "housing": ["own"]})
    assert [a["risk"] for a in told["answers"]] == [a.risk for a in expected.answers]
    moved = {c["feature"]: c["to_value"] for a in told["answers"] for c in a["changes"]}
    assert moved.get("income", 5000.0) in (5000.0, 9000.0)
    wrong = run(*words, "--values", "income")
    assert wrong.exit_code == 2
    assert "--values income: write the feature and its values as FEATURE=VALUE,VALUE" in wrong.stderr


def test_the_portfolio_is_read_like_the_data(run, credit):
    words = ("explain", credit.model_file, credit.csv, "--reference", "typical", "--json")
    told = json.loads(run(*words, "--portfolio", credit.parquet).stdout)
    expected = pr.load(credit.model_file).explain(credit.frame[0], reference="typical", portfolio=credit.frame)
    assert told["constant"] == pytest.approx(expected.to_dict(0)["constant"], abs=1e-12)


# ---- certify


def test_a_model_file_is_certified_again(run, credit):
    result = run("certify", credit.model_file)
    assert result.exit_code == 0
    assert "The stored certificate agrees." in result.stdout
    told = json.loads(run("certify", credit.model_file, "--json", "--thin", 100).stdout)
    assert told["valid"]
    assert told["stored"]
    assert told["certificate"]["thin"] == 100
    assert told["certificate"]["form_sha256"] == form_hash(pr.load(credit.model_file).form_)


def test_certify_writes_a_checker_and_claims_for_a_solver(run, credit, tmp_path):
    checker, smt = tmp_path / "verify.py", tmp_path / "model.smt2"
    assert run("certify", credit.model_file, "--checker", checker, "--smt", smt).exit_code == 0
    done = subprocess.run(
        [sys.executable, "-I", checker, credit.model_file, "--json"], capture_output=True, text=True, check=True
    )
    told = json.loads(run("certify", credit.model_file, "--json").stdout)["certificate"]["checks"]
    assert {name: holds for name, holds, _ in json.loads(done.stdout)["claims"]} == {
        c["name"]: c["holds"] for c in told
    }
    assert smt.read_text(encoding="utf-8").count("(check-sat)") >= 4


def test_a_forged_certificate_ends_with_4(run, credit, tmp_path):
    import msgspec

    content = read_model(credit.model_file)
    part = content.form.parts[0]
    table = part.shapes["income"]
    turned = msgspec.structs.replace(table, scores=(table.scores[0] - 9.0, *table.scores[1:]))  # must fall, now rises
    other = msgspec.structs.replace(part, shapes={**part.shapes, "income": turned})
    form = msgspec.structs.replace(content.form, parts=(other,))
    forged = msgspec.structs.replace(content.certificate, form_sha256=form_hash(form))
    write_model(tmp_path / "m.json", form, content.fit, forged)
    result = run("certify", tmp_path / "m.json")
    assert result.exit_code == 4
    assert "monotone in income: stored it holds, checked now it is broken" in result.stdout
    text = credit.model_file.read_text().replace(repr(table.scores[0]), repr(table.scores[0] - 9.0))
    (tmp_path / "changed.json").write_text(text)
    refused = run("certify", tmp_path / "changed.json")
    assert refused.exit_code == 2
    assert "does not match its hash" in refused.stderr


# ---- drift


def test_drift_between_two_files(run, credit, tmp_path):
    credit.frame.filter(pl.col("income") < credit.frame["income"].median()).write_parquet(tmp_path / "new.parquet")
    words = ("drift", credit.model_file, tmp_path / "new.parquet")
    result = run(*words, "--old", credit.parquet, "-o", tmp_path / "levels.csv")
    assert result.exit_code == 0
    assert "large shift" in result.stdout
    assert "from 0.1 on a moderate shift, from 0.25 on a large one" in result.stdout
    told = json.loads(run(*words, "--old", credit.csv, "--json").stdout)
    assert told["features"][0]["feature"] == "income"
    assert told["subscales"][0]["subscale"] == "risk"
    expected = pr.load(credit.model_file).drift(pl.read_parquet(tmp_path / "new.parquet"), credit.frame)
    assert told["features"][0]["psi"] == pytest.approx(expected.features[0].psi)
    levels = pl.read_csv(tmp_path / "levels.csv")
    assert levels.filter(pl.col("feature") == "income")["psi"].sum() == pytest.approx(expected.features[0].psi)
    trained = json.loads(run("drift", credit.model_file, credit.csv, "--json").stdout)
    assert max(f["psi"] for f in trained["features"]) < 1e-9


def test_the_policy_says_which_shift_is_large(run, credit, tmp_path):
    credit.frame.filter(pl.col("income") < credit.frame["income"].median()).write_parquet(tmp_path / "new.parquet")
    with_policy(credit, tmp_path / "m.json", {"policy": {"drift": {"moderate": 0.05, "large": 90.0}}})
    words = ("drift", tmp_path / "m.json", tmp_path / "new.parquet", "--old", credit.parquet)
    shown = run(*words).stdout
    assert "large shift" not in shown
    assert "moderate shift" in shown
    assert "from 0.05 on a moderate shift, from 90 on a large one" in shown
    sizes = {f["feature"]: (f["psi"], f["size"]) for f in json.loads(run(*words, "--json").stdout)["features"]}
    assert sizes["income"][1] == "moderate"
    assert all((psi >= 0.05) == (size == "moderate") for psi, size in sizes.values())


def test_drift_of_risk_and_performance(run, credit, tmp_path):
    made = pr.datasets.make_credit(500, 12, backend="polars")
    new = made.frame.with_columns(pl.Series("bad", made.target))
    new.write_csv(tmp_path / "new.csv")
    words = ("drift", credit.model_file, tmp_path / "new.csv")
    told = json.loads(run(*words, "--old", credit.csv, "--json").stdout)
    model = pr.load(credit.model_file)
    expected = model.drift(made.frame, credit.frame, y=made.target, old_y=credit.frame["bad"])
    assert told["new_performance"]["auc"] == vars(expected.new_performance.auc)
    assert told["auc_change"] == vars(expected.auc_change)
    shown = run(*words, "--old", credit.csv).stdout
    assert "AUC changed by" in shown
    assert "then" in shown
    alone = run(*words).stdout
    assert "AUC changed by" not in alone
    assert json.loads(run(*words, "--json").stdout)["subscales"][0]["psi"] == model.drift(made.frame).risk.psi
    pr.RiskModel(model.form_, msgspec.structs.replace(model.fit_record_, risks=None)).save(tmp_path / "older.json")
    assert "Add --old DATA to see the shift of the risk" in run("drift", tmp_path / "older.json", *words[2:]).stdout
    new.drop("bad").write_csv(tmp_path / "new.csv")
    assert "AUC" not in run(*words).stdout
    assert "--column 'bad' is not in the data" in run(*words, "--column", "bad").stderr


# ---- what goes wrong


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("explain", "--reference", "worst"), "reference must be"),
        (("explain", "--row", "9999"), "there is no row 9999. It has 600 rows"),
        (("explain", "--keep", "risk", "-o", "x.csv"), "--keep 'risk' is not in the data"),
        (("reasons", "--reference", "worst"), "reference must be"),
        (("reasons", "--barred", "age"), "No such option: --barred"),
        (("reasons", "--cutoff", "2"), "--cutoff must be None or a probability"),
        (("what-if", "--cutoff", "2"), "what-if: --cutoff must be a probability"),
        (("what-if", "--cutoff", "0.1", "--frozen", "agee"), "frozen: there is no feature 'agee'"),
        (("what-if", "--cutoff", "0.1", "--cost", "none"), "cost must be"),
        (("drift", "--old", "nothing.csv"), "does not exist"),
        (("explain", "-o", "x.txt"), "The name must end in"),
    ],
)
def test_mistakes_are_told_in_words(run, credit, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    result = run(words[0], credit.model_file, credit.csv, *words[1:])
    assert result.exit_code == 2
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_row_that_cannot_be_explained_is_named(run, credit, tmp_path):
    frame = credit.frame.with_columns(
        pl.when(pl.int_range(pl.len()) == 123).then(float("inf")).otherwise(pl.col("income")).alias("income")
    )
    frame.write_parquet(tmp_path / "bad.parquet")
    result = run("reasons", credit.model_file, tmp_path / "bad.parquet", "-o", tmp_path / "out.parquet")
    assert result.exit_code == 2
    assert "holds infinity" in result.stderr
    assert not (tmp_path / "out.parquet").exists()


def test_a_mixture_explained_from_zero_shows_weight_times_risk(run, credit, tmp_path):
    made = pr.datasets.make_credit(600, 7, backend="polars")
    model = pr.make_classifier("MixARM1", made.schema).fit(made.frame, made.target)
    model.save(tmp_path / "mix.json")
    asked = ("explain", tmp_path / "mix.json", credit.csv, "--reference", "zero", "--row", 3)
    shown = json.loads(run(*asked, "--json").stdout)
    assert shown["reference"] == "zero"
    for part, weight in zip(shown["subscales"], model.weights_.values(), strict=True):
        assert part["contribution"] == pytest.approx(weight * part["risk"], abs=1e-15)
    assert sum(part["contribution"] for part in shown["subscales"]) == pytest.approx(shown["risk"], abs=1e-12)
    text = run(*asked).stdout
    for risk in model.form_.part_risks(made.frame[3:4])[0]:
        assert f"{risk:.1%} by itself" in text


def test_a_row_is_explained_in_eighty_columns(run, credit):
    lines = run("explain", credit.model_file, credit.csv, "--row", 3).stdout.splitlines()
    bars = [line for line in lines if "│" in line]
    assert len({line.index("│") for line in bars}) == 1
    parts = pr.load(credit.model_file).explain(pl.read_csv(credit.csv)[3:4]).to_dict(0)["subscales"]
    assert len(bars) == sum(1 + len(part["features"]) for part in parts)  # no bar goes on in a second line


def test_effects_need_no_data(run, credit, tmp_path):
    found = run("explain", credit.model_file, "--effects")
    assert found.exit_code == 0, found.stderr
    model = pr.load(credit.model_file)
    row = model.effects().rows[0]
    assert row.points in found.stdout
    shown = json.loads(run("explain", credit.model_file, "--effects", "--json").stdout)
    assert [r["score"] for r in shown["rows"]] == [r.score for r in model.effects().rows]
    ranged = json.loads(run("explain", credit.model_file, credit.csv, "--effects", "--json").stdout)
    assert ranged["notes"][0].endswith("rows given.")
    written = run("explain", credit.model_file, "--effects", "-o", tmp_path / "effects.parquet")
    assert written.exit_code == 0, written.stderr
    assert pl.read_parquet(tmp_path / "effects.parquet")["most"].to_list() == [r.most for r in model.effects().rows]


def test_only_effects_do_without_data(run, credit):
    found = run("explain", credit.model_file)
    assert found.exit_code == 2
    assert "DATA is missing. Only --effects does without." in found.stderr
