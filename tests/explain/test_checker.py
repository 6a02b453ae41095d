"""Certificates by three implementations: ours, the script that is written out, and an SMT solver."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest

import plainrisk as pr
from plainrisk.errors import PlainriskError
from plainrisk.explain import certify, recheck, verify
from plainrisk.explain.smt import smt_claims
from plainrisk.form import RiskForm, read_model, write_model

z3 = pytest.importorskip("z3", reason="z3-solver is not installed; it is in the dev extra")
GOLDEN = Path(__file__).parents[1] / "golden"
ENGINE = Path(__file__).parents[1] / "parity" / "engine.mjs"
MUTATIONS = int(os.environ.get("PLAINRISK_MUTATIONS", "200"))  # of which about one in six breaks a claim
ASKED = MUTATIONS // 5


def solve(script):
    """Return the answer of z3 to every claim, by its name."""
    answers = {}
    for block in script.split("(echo ")[1:]:
        name, _, rest = block.partition(")\n(push 1)")
        solver = z3.SolverFor("QF_LRA")
        solver.from_string(rest.split("(check-sat)")[0])
        answers[name.strip('"')] = str(solver.check())
    return answers


def ours(path):
    """Return what holds by our own certificate; None for a file that is refused."""
    try:
        return {check.name: check.holds for check in recheck(read_model(path)).fresh.checks}
    except PlainriskError:
        return None


def theirs(path):
    """Return what holds by the script; None for a file that is damaged."""
    try:
        return {name: bool(holds) for name, holds, _ in verify.claims(verify.read(path)["form"])}
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def in_the_page(payloads):
    """Return what holds by the engine of the page, of many forms; tests/browser asks Chromium."""
    if (node := shutil.which("node")) is None:
        pytest.skip("no Node: the page's own certificate is not compared")
    asked = {
        "page": files("plainrisk.report").joinpath("page.html").read_text(encoding="utf-8"),
        "answer": "(page, asked) => JSON.stringify(asked.payloads.map((one) => page.certify(page.prepare(one))))",
        "payloads": payloads,
    }
    done = subprocess.run(
        [node, str(ENGINE)], input=json.dumps(asked), capture_output=True, text=True, check=True, encoding="utf-8"
    )
    return [{claim["name"]: claim["holds"] for claim in claims} for claims in json.loads(done.stdout)]


def test_script_page_and_certificates_agree_on_changed_files(tampering, make_form, tmp_path):
    forms, rng, path = tampering.variety(make_form, GOLDEN), random.Random(7), tmp_path / "model.json"
    seen, read = {"valid": 0, "broken": 0, "refused": 0}, []
    for _ in range(MUTATIONS):
        form, what = tampering.tampered(rng.choice(forms), rng)
        path.write_text(json.dumps(tampering.signed(form)), encoding="utf-8")
        certified, checked = ours(path), theirs(path)
        if certified is None:
            assert checked is None or not all(checked.values()), what
        else:
            assert checked == certified, what
            read.append((tampering.plain_form(read_model(path).form), certified, what))
        seen["refused" if certified is None else "valid" if all(certified.values()) else "broken"] += 1
    assert min(seen.values()) >= 10, seen  # else the test sees too little
    for by_page, (_, certified, what) in zip(
        in_the_page([tampering.payload(form) for form, *_ in read]), read, strict=True
    ):
        assert by_page == certified, what


def test_a_solver_and_certificates_agree_on_changed_files(tampering, make_form, tmp_path):
    forms, rng, path = tampering.variety(make_form, GOLDEN), random.Random(11), tmp_path / "model.json"
    answered, broken = 0, 0
    for _ in range(ASKED):
        form, what = tampering.tampered(rng.choice(forms), rng)
        path.write_text(json.dumps(tampering.signed(form)), encoding="utf-8")
        if (certified := ours(path)) is None:
            continue
        answers = solve(smt_claims(read_model(path).form))
        assert {name: answer == "unsat" for name, answer in answers.items()} == {
            name: certified[name] for name in answers
        }, what
        answered, broken = answered + len(answers), broken + ("sat" in answers.values())
    assert answered > ASKED
    assert broken >= 5


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.model.json")), ids=lambda path: path.name)
def test_whole_files_are_found_whole(path):
    certified = ours(path)
    assert theirs(path) == certified
    answers = solve(smt_claims(read_model(path).form))
    assert {name: answer == "unsat" for name, answer in answers.items()} == {name: certified[name] for name in answers}


@pytest.fixture(scope="module")
def german():
    data = pr.datasets.load("german")
    return pr.make_classifier("SmoothARM1", data.schema).fit(data.frame, data.target)


def test_a_solver_confirms_german_credit_and_finds_the_step_that_was_changed(tampering, german):
    assert set(solve(smt_claims(german.form_)).values()) == {"unsat"}
    form = tampering.plain_form(german.form_)
    name = next(n for n, f in form["schema"]["features"].items() if f.get("direction"))
    scores = form["parts"][0]["shapes"][name]["scores"]
    scores[0], scores[1] = scores[1], scores[0]
    changed = msgspec.convert(form, type(german.form_))
    answers = solve(smt_claims(changed))
    assert [claim for claim, answer in answers.items() if answer == "sat"] == [f"monotone in {name}"]
    assert [c.name for c in certify(changed).checks if not c.holds] == [f"monotone in {name}"]


@pytest.mark.usefixtures("data_folder")
def test_a_solver_confirms_heloc():
    heloc = pr.datasets.load("heloc")
    model = pr.make_classifier("BandARM1", heloc.schema).fit(heloc.frame, heloc.target)
    assert set(solve(smt_claims(model.form_)).values()) == {"unsat"}


def test_hashes_are_those_of_the_file(german, tmp_path):
    numbers = [0.1, 1e16, 1e-5, 1.5e-7, 1e-6, -1.25e-5, 5e-324, 1.7976931348623157e308, -0.0, 123456789.0, 2**53, 1e21]
    rng = random.Random(3)
    numbers += [rng.choice([-1, 1]) * rng.random() * 10.0 ** rng.randrange(-30, 30) for _ in range(2000)]
    texts = ['é × \u2028 \x7f \x01 " \\ / \n', ""]
    plain = {"numbers": numbers, "texts": texts, "rest": [True, None, 3]}
    assert verify.canonical(plain) == msgspec.json.encode(plain).decode()
    path = tmp_path / "model.json"
    write_model(path, german.form_, german.fit_record_, german.certify())
    read = verify.read(path)
    for change in ({"about": {"owner": "x"}}, {"form_sha256": "0" * 64}, {"more": 1}):
        path.write_text(json.dumps({**read, **change}), encoding="utf-8")
        with pytest.raises(ValueError, match=r"hash|unknown content"):
            verify.read(path)


def test_script_is_short_and_needs_nothing(tampering, tmp_path, german):
    text = files("plainrisk.explain").joinpath("verify.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 300
    imported = set(re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE))
    assert imported <= sys.stdlib_module_names
    script, model = tmp_path / "verify.py", tmp_path / "model.json"
    script.write_text(text, encoding="utf-8")
    german.save(model)

    def run(*options):
        return subprocess.run(
            [sys.executable, "-I", str(script), *options], capture_output=True, text=True, check=False, encoding="utf-8"
        )

    assert run(str(model)).returncode == 0
    assert json.loads(run(str(model), "--json").stdout)["valid"] is True
    file = json.loads(model.read_text(encoding="utf-8"))
    file["form"]["schema"]["features"]["Duration in month"]["direction"] = "increasing"
    model.write_text(json.dumps(file), encoding="utf-8")
    damaged = run(str(model))
    assert (damaged.returncode, "hash" in damaged.stdout) == (2, True)
    feature = file["form"]["schema"]["features"]["Duration in month"]
    file["form"]["schema"]["features"]["Duration in month"] = {"direction": feature.pop("direction"), **feature}
    model.write_text(json.dumps(tampering.signed(file["form"])), encoding="utf-8")
    broken = run(str(model), "--json")
    claims = {name: holds for name, holds, _ in json.loads(broken.stdout)["claims"]}
    assert (broken.returncode, claims["monotone in Duration in month"]) == (1, False)


def test_features_may_be_called_as_fields_are(tampering, make_form):
    text = json.dumps(tampering.plain_form(make_form(1)))
    for old, new in (("age", "category"), ("job", "edges"), ("debt", "kind"), ("rent", "feature")):
        text = text.replace(f'"{old}"', f'"{new}"')
    verify.check(json.loads(text), "form")


@pytest.mark.parametrize("field", ["inputs", "edges", "left", "values"])
def test_trees_whose_arrays_differ_in_length_are_damaged(field):
    form = json.loads((GOLDEN / "MonoXGB.format3.model.json").read_text(encoding="utf-8"))["form"]
    form["parts"][0]["trees"][0][field].append(0)
    with pytest.raises(ValueError, match="argument"):
        verify.check(form, "form")


def test_parts_and_shapes_without_a_kind_are_damaged(tampering, make_form):
    form = tampering.plain_form(make_form(1))
    del next(iter(form["parts"][0]["shapes"].values()))["kind"]
    with pytest.raises(ValueError, match="form: unknown content"):
        verify.check(form, "form")


def test_a_certificate_that_says_otherwise_is_found(tmp_path, german, capsys):
    path = tmp_path / "model.json"
    certificate = german.certify()
    first = msgspec.structs.replace(certificate.checks[0], holds=False)
    write_model(path, german.form_, None, msgspec.structs.replace(certificate, checks=(first, *certificate.checks[1:])))
    assert verify.main(str(path)) == 1
    assert f"DIFFERS  {first.name}" in capsys.readouterr().out


def test_levels_with_another_order_than_the_schema_are_no_proof(tampering, make_form):
    """Special values, bounds and the order of categories are the schema's: levels cannot exempt a value from it."""
    form = tampering.plain_form(make_form(0, features={"rent": {"direction": "increasing"}}))
    holder = next(part for part in form["parts"] if "rent" in part["shapes"])
    for part in form["parts"]:
        if "rent" in part["shapes"]:
            part["shapes"]["rent"]["scores"] = [0.0, 1.0, 0.5]
    assert _verdict(form, "monotone in rent") == (True, True)
    shape = holder["shapes"]["rent"]
    shape["levels"]["special_values"] = [15.0]
    for field in ("scores", "weights", "positives"):
        shape[field] = [0.0, 1.0, -5.0, 0.5]  # 15 is now better than 5
    assert _verdict(form, "monotone in rent") == (False, False)


def test_a_rule_that_no_level_keeps_is_broken(tampering, make_form):
    fields = {"special_values": (-9.0,), "special_rules": {"-9": "worst"}}
    form = tampering.plain_form(make_form(0, features={"rent": fields}))  # whose levels know no -9
    assert _verdict(form, "empty fields and codes") == (False, False)


def _verdict(form, name):
    ours = {check.name: check.holds for check in certify(msgspec.convert(form, RiskForm)).checks}
    theirs = {claim: holds for claim, holds, _ in verify.claims(form)}
    return ours[name], theirs[name]
