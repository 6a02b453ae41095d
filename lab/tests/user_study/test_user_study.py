"""The study with people: its page in Chromium, answered at random and as the model says, and its analysis."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy import stats

import plainrisk as pr
from plainrisk.errors import DataError
from plainrisk_lab.user_study import analyze, build, german_form, make_study, people_needed
from plainrisk_lab.user_study.analysis import AnswerFile, Given, read_answers

PAGE = Path(__file__).parents[3] / "page"
ASSET = Path(__file__).parents[2] / "src" / "plainrisk_lab" / "user_study" / "page.html"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    build(german_form(), folder / "study.html", folder / "key.json")
    return folder


@pytest.fixture(scope="module")
def key(study):
    return json.loads((study / "key.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def browser():
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed; it is in the dev extra")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        assert "CI" not in os.environ, "in CI nothing is skipped: install Chromium"
        pytest.skip("no Chromium: apt-get install chromium")
    with sync.sync_playwright() as play:
        found = play.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


def take(browser, study, code, choose, seconds=8.0, **context):
    """Go through the page as a person would, and return the file that it saves."""
    opened = browser.new_context(accept_downloads=True, **context)
    page, noise = opened.new_page(), []
    page.on("console", lambda message: noise.append(message.text))
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.on("request", lambda request: request.url.startswith(("file:", "blob:")) or noise.append(request.url))
    page.clock.install()
    page.goto((study / "study.html").as_uri())
    page.get_by_role("checkbox").check()
    page.get_by_label("Code").fill(code)
    page.get_by_role("button", name="Start").click()
    for _ in range(14):
        if page.get_by_role("button", name="Go on").count():
            page.get_by_role("button", name="Go on").click()
            continue
        asked = page.locator("form[data-question]")
        unit, question = asked.get_attribute("data-unit"), asked.get_attribute("data-question")
        page.get_by_role("radio").nth(choose(unit, question, page.get_by_role("radio").count())).check()
        page.clock.fast_forward(int(1000 * seconds))
        page.get_by_role("button", name="Next").click()
    page.get_by_role("button", name="Finish").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save my answers").click()
    path = study / f"{code}-{download.value.suggested_filename}"
    download.value.save_as(path)
    opened.close()
    assert noise == []
    return path


def at_random(seed):
    rng = np.random.default_rng(seed)
    return lambda unit, question, n: int(rng.integers(n))


def as_the_model_says(key):
    """Right in probability; in log odds, effects are added as if they were hundreds of percentage points."""
    return lambda unit, question, n: key["key"][unit][question]["right" if unit == "probability" else "naive"]


# ---- in Chromium


def test_answers_at_random_show_nothing_and_answers_of_the_model_do(browser, study, key):
    people = [(f"{'AB'[k % 2]}{k}", k) for k in range(6)]
    random = analyze(read_answers([take(browser, study, code, at_random(k)) for code, k in people]), key)
    assert random.people == {"A": 3, "B": 3}
    assert random.correct.low < 0 < random.correct.high
    assert min(random.correct.t, random.correct.wilcoxon, random.correct.sign) > 0.05
    assert random.seconds.difference == pytest.approx(1.0, abs=0.2)  # the clock is the page's, and it is held
    knowing = analyze(read_answers([take(browser, study, code, as_the_model_says(key)) for code, _ in people]), key)
    assert knowing.correct.probability == 1.0
    assert knowing.correct.low > 0.3
    assert max(knowing.correct.t, knowing.correct.wilcoxon, knowing.correct.sign) < 0.05
    kinds = {kind.kind: kind for kind in knowing.kinds}
    assert (kinds["same_change"].log_odds, kinds["riskier"].log_odds) == (0.0, 1.0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_is_for_the_keyboard_and_for_phones(browser, study, scheme):
    opened = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme=scheme)
    page = opened.new_page()
    page.goto((study / "study.html").as_uri())
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert "tick the box" in page.get_by_role("alert").inner_text()
    page.get_by_role("checkbox").focus()
    page.keyboard.press("Space")
    page.get_by_label("Code").fill("C9")
    page.keyboard.press("Enter")
    assert "not one of the study" in page.get_by_role("alert").inner_text()
    page.get_by_label("Code").fill("a7")
    page.keyboard.press("Enter")
    assert page.evaluate(wide) == 0
    on_heading = "text => document.activeElement.tagName === 'H1' && document.activeElement.innerText.includes(text)"
    page.wait_for_function(on_heading, arg="log odds")  # the heading has the focus once its screen is drawn
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_function(on_heading, arg="Question 1 of 12")
    assert "The probability is 1 / (1 + e" in page.locator("form").inner_text()  # the key is beside every question
    assert page.evaluate(wide) == 0
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    assert page.get_by_role("radio").nth(1).is_checked()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Question 2 of 12").wait_for()
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(252, 251, 249)") == (scheme == "light")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    assert axe.Axe().run(page).response["violations"] == []
    opened.close()


# ---- the page and its questions


def test_page_is_that_of_its_source_and_reaches_nothing(study):
    if not PAGE.is_dir():
        pytest.skip("no folder 'page': this is an installed package")
    shared = ["package-lock.json", "package.json", "tsconfig.json", "vite.config.ts", "src/tokens.css"]
    inside = [path.relative_to(PAGE).as_posix() for path in (PAGE / "study").rglob("*") if path.is_file()]
    digest = hashlib.sha256()
    for path in sorted([*shared, *inside]):
        digest.update(f"{path}\n{hashlib.sha256((PAGE / path).read_bytes()).hexdigest()}".encode())
    text = ASSET.read_text(encoding="utf-8")
    stated = re.search(r'name="plainrisk-source" content="(\w+)"', text)[1]
    assert stated == digest.hexdigest(), "page/ has changed: run make page, and commit lab's page.html"
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)[1]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert not re.search(r"(src|href)=[\"']?https?:", text)
    assert "right" not in json.loads(_payload(study))["questions"]["probability"]["1-total"]  # the key is not in it


def _payload(study):
    text = (study / "study.html").read_text(encoding="utf-8")
    return text.split('id="payload">')[1].split("</script>")[0]


@pytest.mark.parametrize("seed", range(8))
def test_right_answers_are_those_of_the_model(seed):
    form = german_form()
    payload, key = make_study(form, seed)
    part = form.parts[0]
    for number in (1, 2):
        for unit in ("log_odds", "probability"):
            asked, known = payload["questions"][unit][f"{number}-total"], key["key"][unit][f"{number}-total"]
            shown = [
                float(row[2].replace("\N{MINUS SIGN}", "-").removesuffix(" points"))
                for row in asked["applicants"][0]["rows"]
            ]
            scale = 1.0 if unit == "log_odds" else 100 / (2 * 2.5996819083143223)
            score = part.intercept + sum(shown) / scale
            risk = 1 / (1 + np.exp(-score)) if unit == "log_odds" else 0.5 + score * scale / 100
            chosen = [float(choice.removesuffix("%")) for choice in asked["choices"]]
            assert np.argmin(np.abs(np.array(chosen) - 100 * risk)) == known["right"]
            assert np.diff(sorted(chosen)).min() >= 4  # rounded to whole percent
            same = key["key"][unit][f"{number}-same_change"]
            assert payload["questions"][unit][f"{number}-same_change"]["choices"][same["naive"]] == "The same for both"
            assert (same["right"] == same["naive"]) == (unit == "probability")
    assert make_study(form, seed) == (payload, key)


def test_models_without_tables_or_log_odds_are_refused():
    with pytest.raises(DataError, match="logistic link"):
        make_study(pr.linearise(pr.RiskModel(german_form())).form_)
    with pytest.raises(DataError, match="tables without pairs"):
        make_study(pr.load(PAGE.parent / "tests" / "golden" / "NNLR.model.json").form_)


# ---- the analysis


def person(key, number, choose, seconds=lambda unit: 10.0):
    """The file of somebody who is simulated without a page."""
    form = "AB"[number % 2]
    asked = [(name, block["unit"]) for block in key["forms"][form] for name in block["questions"]]
    n = {"total": 4, "change": 4, "contribution": 4, "riskier": 2, "better_change": 2, "same_change": 3}
    answers = tuple(Given(name, unit, choose(unit, name, n[name[2:]]), seconds(unit)) for name, unit in asked)
    return AnswerFile(key["study"], f"{number:016x}", form, form, answers)


def test_one_study_in_twenty_of_random_answers_finds_something(key):
    found = []
    for seed in range(300):
        choose = at_random(seed)
        found.append(analyze([person(key, k, choose) for k in range(20)], key).correct.t < 0.05)
    assert stats.binomtest(sum(found), len(found), 0.05).pvalue > 0.001


def test_differences_are_those_of_scipy_where_forms_do_not_matter(key):
    rng = np.random.default_rng(4)

    def slower(unit):
        return float(rng.lognormal(2.5 if unit == "log_odds" else 2.2, 0.2))

    people = [person(key, k, at_random(k), slower) for k in range(40)]
    found = analyze(people, key, level=0.9)
    logs = {
        unit: np.array([np.mean([np.log(a.seconds) for a in p.answers if a.unit == unit]) for p in people])
        for unit in ("log_odds", "probability")
    }
    gaps = logs["probability"] - logs["log_odds"]
    assert np.log(found.seconds.difference) == pytest.approx(gaps.mean())
    forms = np.array([p.form for p in people])
    slope = stats.linregress(np.where(forms == "A", -0.5, 0.5), gaps)  # its intercept is the mean of the forms' means
    reach = stats.t.ppf(0.95, 38) * slope.intercept_stderr
    assert np.log(found.seconds.low) == pytest.approx(slope.intercept - reach)
    assert np.log(found.seconds.high) == pytest.approx(slope.intercept + reach)
    assert found.seconds.difference < 0.85
    assert "times" in str(found)


def test_an_effect_of_the_sets_alone_is_no_difference(key):
    """Set 1 is right throughout and set 2 is wrong: within every form the ways differ, over both they do not."""

    def choose(unit, name, n):
        right = key["key"][unit][name]["right"]
        return right if name.startswith("1") else (right + 1) % n

    found = analyze([person(key, k, choose) for k in range(10)], key)
    assert found.correct.difference == 0
    assert found.correct.t == 1


def test_rules_of_exclusion(key):
    choose = at_random(1)
    people = [person(key, k, choose) for k in range(6)]
    replace = msgspec.structs.replace
    fast = replace(person(key, 6, choose), answers=tuple(replace(a, seconds=1.0) for a in people[0].answers))
    away = replace(person(key, 8, choose), answers=tuple(replace(a, away=8.0) for a in people[0].answers))
    short = replace(person(key, 10, choose), answers=people[0].answers[:11])
    found = analyze([*people, people[0], fast, away, short], key)
    assert found.people == {"A": 3, "B": 3}
    assert found.excluded == {
        "sent twice": 1,
        "too fast to have read": 1,
        "away for half of the time": 1,
        "not finished": 1,
    }
    with pytest.raises(DataError, match="is of the study"):
        analyze([replace(people[0], study="other")], key)
    with pytest.raises(DataError, match="two people are needed for each form"):
        analyze(people[:2], key)


def test_power_is_that_of_simulated_differences():
    n = people_needed(0.10, 0.25, power=0.9)
    rng = np.random.default_rng(2)
    forms = np.arange(n) % 2
    gaps = rng.normal(0.10, 0.25, (4000, n))
    means = (gaps[:, forms == 0].mean(axis=1) + gaps[:, forms == 1].mean(axis=1)) / 2
    spread = np.sqrt((gaps[:, forms == 0].var(axis=1, ddof=1) + gaps[:, forms == 1].var(axis=1, ddof=1)) / 2)
    share = (np.abs(means) / (spread / np.sqrt(n)) > stats.t.ppf(0.975, n - 2)).mean()
    assert share == pytest.approx(0.9, abs=0.02)
    with pytest.raises(DataError, match="above 0"):
        people_needed(0.0, 0.25)


def test_commands(tmp_path, key):
    def run(*words):
        command = [sys.executable, "-m", "plainrisk_lab.user_study", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, encoding="utf-8")

    assert run("build").returncode == 0
    written = json.loads((tmp_path / "key.json").read_text(encoding="utf-8"))
    assert written == key  # the same model and seed give the same study
    for k in range(8):
        answers = person(key, k, as_the_model_says(key))
        (tmp_path / f"{k}.json").write_bytes(msgspec.json.encode(answers))
    files = [tmp_path / f"{k}.json" for k in range(8)]
    told = json.loads(run("analyze", "key.json", *files, "--json").stdout)
    assert told["correct"]["probability"] == 1.0
    assert "right answers" in run("analyze", "key.json", *files).stdout
    assert run("power", "--difference", 0.1).stdout.startswith("68 people")
    (tmp_path / "bad.json").write_text("{}", encoding="utf-8")
    wrong = run("analyze", "key.json", "bad.json")
    assert (wrong.returncode, "bad.json" in wrong.stderr) == (1, True)
