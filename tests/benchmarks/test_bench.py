"""The benchmarks run, their claims are told rightly, and failures are results. No test looks at a time."""

from __future__ import annotations

import contextlib
import json
import signal
import threading
import time

import numpy as np
import pytest

from benchmarks import data, launch, plan, report, run, worker
from benchmarks.claims import Claim, Results, claims
from benchmarks.methods import METHODS

pytest.importorskip("polars")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    data.make(folder, "credit-1200x9")
    return data.Data(folder)


@pytest.fixture(scope="module")
def arm1(rows):
    method = METHODS["ARM1"]
    prepared = method.prepare(rows)
    return method.predict(method.fit(prepared), prepared)


@pytest.mark.filterwarnings("ignore")  # of other libraries, and that a line is clipped
@pytest.mark.parametrize("name", [name for name in METHODS if name != "EBM as it comes"])  # half a minute of EBM
def test_every_method_fits_and_ranks(rows, name):
    needed = {"XGBoost": ["xgboost"], "optbinning": ["optbinning", "pandas"], "EBM": ["interpret.glassbox"]}
    for library in needed.get(name, [name.split()[0].lower()]):
        if not METHODS[name].ours:
            pytest.importorskip(library)
    method = METHODS[name]
    prepared = method.prepare(rows)
    risk = method.predict(method.fit(prepared), prepared)
    assert worker.auc(rows.target, risk) > 0.6


def test_glum_solves_the_problem_of_arm1(rows, arm1):
    pytest.importorskip("glum")
    method = METHODS["glum"]
    prepared = method.prepare(rows)
    np.testing.assert_allclose(method.predict(method.fit(prepared), prepared), arm1, atol=1e-4)


def test_a_matrix_and_a_frame_hold_the_same_rows(rows, arm1):
    method = METHODS["ARM1 (frame)"]
    prepared = method.prepare(rows)
    np.testing.assert_allclose(method.predict(method.fit(prepared), prepared), arm1, atol=1e-9)


def test_wide_rows_are_as_many_as_asked_for(tmp_path):
    data.make(tmp_path / "wide-20x7", "wide-20x7")
    wide = data.Data(tmp_path / "wide-20x7")
    assert wide.matrix.shape == (20, 7)
    assert len(wide.matrix_schema.features) == 7


def test_own_rows_are_those_of_the_data_set(tmp_path):
    data.make(tmp_path / "own-german", "own-german")
    german = data.Data(tmp_path / "own-german")
    assert german.frame.shape == (1000, 20)
    assert german.target.mean() == 0.7
    assert german.schema.target == "good"


def test_pairs_and_commands_note_what_claims_ask_for(rows):
    noted = {}
    worker.measure_pairs(METHODS["SmoothARM1 + pairs"], rows, {"repeats": 1}, lambda **values: noted.update(values))
    worker.measure_commands(METHODS["SmoothARM1"], rows, {"repeats": 0}, lambda **values: noted.update(values))
    found = [
        result("pairs", "taiwan", "SmoothARM1 + pairs", **noted),
        result("commands", "commands", "SmoothARM1", **noted),
    ]
    told = {claim.text: claim.value for claim in claims(Results(found))}
    assert told.pop("Pairs on taiwan as a multiple of the fit without") == noted["seconds"] / noted["alone"]
    assert sorted(value for value in told.values() if value is not None) == sorted(
        noted[name] for name in ("version_cpu", "certify_cpu", "explain_cpu", "reasons_us")
    )


def test_growth_is_told_as_a_multiple():
    seconds = {"rows": 1.0, "ten times the rows": 9.0, "features": 0.5, "four times the features": 9.0}
    found = claims(Results([result("growth", shape, "SmoothARM1", seconds=s) for shape, s in seconds.items()]))
    assert [(claim.value, claim.verdict) for claim in found] == [(9.0, "met"), (18.0, "NOT MET")]


def test_streams_that_were_not_run_are_not_claimed():
    found = claims(Results([result("stream", "stream", "ARM1", whole_mb=900.0)]))
    assert [claim.verdict for claim in found] == ["not measured", "met", "not measured"]
    assert all("10,000,000 rows x 30" in claim.text for claim in found)


def test_data_that_nobody_has_are_not_claimed():
    absent = result("pairs", "heloc", "SmoothARM1 + pairs", error="no data: there is no heloc")
    failed = result("pairs", "gmsc", "SmoothARM1 + pairs", error="not done in 200 s", over=200.0)
    found = {claim.text: claim.verdict for claim in claims(Results([absent, failed]))}
    assert not [text for text in found if "heloc" in text]
    assert found["Pairs on gmsc as a multiple of the fit without"] == "not measured"


def test_an_interrupt_is_timed():
    waited = threading.Event()

    def swallow():
        with contextlib.suppress(KeyboardInterrupt):
            waited.wait(60)
        time.sleep(0.2)

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in the background of a script
    try:
        heard = worker.interrupt_delay(lambda: waited.wait(60), 0.05)
        unheeded = worker.interrupt_delay(swallow, 0.05)
        assert worker.interrupt_delay(lambda: None, 60.0) == 0.0
    finally:
        signal.signal(signal.SIGINT, before)
    assert 0.0 < heard < 60.0
    assert unheeded >= 0.2


def test_tasks_cover_every_part_once():
    found = list(plan.tasks(list(plan.SHAPES), list(METHODS), plan.PARTS))
    assert len(set(found)) == len(found)
    assert {task.part for task in found} == set(plan.PARTS)
    assert {task.shape for task in found if task.part == "fit"} == set(plan.SHAPES)
    assert [task.data for task in plan.tasks(["S4"], ["ARM1"], ["fit"], 0.01)] == ["credit-20000x30"]


def result(part, shape, method, **values):
    return {"part": part, "shape": shape, "method": method, **values}


def test_claims_compare_with_the_nearest_rival():
    fits = {"ARM1": 1.0, "BandARM1": 2.0, "XGBoost": 8.0, "LightGBM": 4.0, "glum": 9.0}
    rows = [result("fit", "S1", name, seconds=value) for name, value in fits.items()]
    rows.append(result("fit", "S1", "optbinning", error="not done in 60 s", over=60.0))
    found = {claim.text: claim for claim in claims(Results(rows))}
    ahead = found["ARM1 fits S1 faster than every rival (nearest: LightGBM)"]
    assert (ahead.value, ahead.verdict) == (4.0, "met")
    assert found["BandARM1 on S1 as a multiple of ARM1"].verdict == "NOT MET"
    assert found["DirectARM1 fits S1 faster than every rival (nearest: LightGBM)"].verdict == "not measured"
    assert not [text for text in found if "S2" in text or "Parquet" in text]  # these were not run


def test_a_rival_without_a_result_is_named():
    rows = [result("fit", "S1", "ARM1", seconds=1.0), result("fit", "S1", "glum", seconds=2.0)]
    first = claims(Results(rows))[0]
    assert first.text.endswith("(nearest: glum; without LightGBM, XGBoost, optbinning)")


@pytest.mark.parametrize(
    ("sense", "value", "bound", "verdict"),
    [
        ("at least", 3.0, False, "met"),
        ("at least", 2.0, False, "NOT MET"),
        ("at least", 2.0, True, "open: the rival was stopped"),
        ("at most", 3.0, False, "met"),
        ("at most", 3.1, False, "NOT MET"),
        ("at most", 60.0, True, "NOT MET"),
        ("at most", None, False, "not measured"),
    ],
)
def test_verdicts(sense, value, bound, verdict):
    assert Claim("a claim", sense, 3.0, value, bound).verdict == verdict


def test_failures_are_results(tmp_path):
    task = {"part": "fit", "method": "no such method", "folder": str(tmp_path)}
    assert launch.run_task(task, 600.0, 1) == {"error": "KeyError: 'no such method'"}
    assert launch.run_task(task, 0.0, 1) == {"error": "not done in 0 s", "over": 0.0}
    assert launch.make_data(tmp_path / "odd", "odd-1x1") == "KeyError: 'odd'"


def test_a_run_writes_its_page_and_its_results(tmp_path):
    options = ["--shapes", "S1", "--methods", "ARM1", "--parts", "fit", "--scale", "0.1", "--repeats", "1"]
    run.main([*options, "--output", str(tmp_path), "--cache", str(tmp_path / "cache")])
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    stored = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert [row["method"] for row in stored["rows"]] == ["ARM1"]
    assert "error" not in stored["rows"][0]
    assert "| ARM1 | 1 |" in page
    assert page.endswith("## Failures\n\nNone.\n")


def test_a_brief_line_tells_what_was_measured():
    assert report.brief({"seconds": 0.5, "peak_mb": 3.0}) == "0.5 s, 3 MB"
    assert report.brief({"error": "not done in 60 s"}) == "not done in 60 s"


def test_short_calls_are_repeated_and_long_ones_are_not(monkeypatch):
    monkeypatch.setattr(worker, "LONG", 0.0)
    calls = []
    _, last = worker.seconds_of(lambda: calls.append(time.monotonic()) or len(calls), 3)
    assert last == 1
    monkeypatch.setattr(worker, "LONG", 1e9)
    monkeypatch.setattr(worker, "SPENT", 0.0)
    assert worker.seconds_of(lambda: calls.append(0) or len(calls), 3)[1] == 4
