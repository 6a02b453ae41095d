"""Tables, verdicts and exponents from rows that are made up."""

from __future__ import annotations

import pytest

from benchmarks import growth, report, targets
from benchmarks.results import Results

ABOUT = {
    "command": "python -m benchmarks.run",
    "threads": 2,
    "repeats": 3,
    "timeout": 240.0,
    "scale": 1.0,
    "machine": {
        "cores": 2,
        "processor": "a processor",
        "memory_gb": 8,
        "system": "Linux",
        "python": "3.11.0",
        "versions": {"numpy": "2.0", "glum": None},
    },
}


def fit(at, method, **values):
    return {"part": "fit", "at": at, "method": method, **values}


ROWS = [
    fit("S1", "ARM1", seconds=0.05, peak_mb=10.0, auc=0.8, objective=0.40, kkt=1e-12, bytes=2000),
    fit("S1", "ARM1 (matrix)", seconds=0.05, peak_mb=10.0, held_mb=100.0),
    fit("S1", "DirectARM1", seconds=0.04, peak_mb=9.0),
    fit("S1", "XGBoost", seconds=0.1, peak_mb=40.0),
    fit("S1", "EBM", error="not done in 240 s (seconds)", over=240.0),
    fit("S1", "glum", error="MemoryError: | too much"),
    fit("S1", "SLSQP", seconds=0.2, peak_mb=90.0, objective=0.40 + 5e-10),
    fit("S2", "ARM1", seconds=1.0),
    fit("S2", "EBM", error="not run: S1 already took > 240 s"),
    {"part": "score", "at": "1M x 30", "method": "ARM1", "seconds": 0.2, "pass_seconds": 0.02, "rows": 10**6}
    | {"bytes": 2000, "latency_us": 120.0, "explain_seconds": 2.0, "explain_rows": 10**5},
    {"part": "import", "at": "import", "method": "sklearn", "seconds": 0.5},
    {"part": "import", "at": "import", "method": "plainrisk", "seconds": 0.6},
    {"part": "cv", "at": "S2", "method": "ARM1", "seconds": 4.0},
]


def found(claim, rows=ROWS):
    return next(f for f in targets.findings(Results(rows)) if f.claim == claim)


@pytest.mark.parametrize(
    ("claim", "measured", "verdict"),
    [
        ("ARM1 (matrix) fits S1 faster than XGBoost", "2x", "met"),
        ("ARM1 fits S1 faster than SLSQP", "4x", "not met"),
        ("ARM1 fits S1 faster than EBM", "> 4.8e+03x", "met"),
        ("ARM1 fits S2 faster than EBM", "", "not measured"),
        ("ARM1 (matrix) fits S1 faster than every rival (nearest: XGBoost)", "2x", "met"),
        (
            "Memory of ARM1 (matrix) on S1 beyond its data, by the least rival's (XGBoost)",
            "0.25x",
            "met",
        ),
        ("Scoring 1M x 30 as multiples of one numpy pass, compiled", "10x", "not met"),
        ("Scoring 1M x 30 as multiples of one numpy pass, without a compiler", "", "not measured"),
        ("A single applicant from a dict", "120 us", "not met"),
        ("Import of plainrisk as a multiple of scikit-learn's", "1.2x", "met"),
    ],
)
def test_verdicts(claim, measured, verdict):
    finding = found(claim)
    assert (finding.measured, finding.verdict) == (measured, verdict)


def test_a_lower_bound_below_the_target_is_open():
    rows = [fit("S2", "ARM1", seconds=100.0), fit("S2", "EBM", over=240.0, error="not done")]
    assert found("ARM1 fits S2 faster than EBM", rows).verdict == "open: the rival was stopped"


def test_the_objective_may_be_below_the_rivals():
    finding = found("ARM1's objective on S1 above the best of glum and SLSQP")
    assert finding.value == pytest.approx(-5e-10, rel=1e-6)
    assert finding.verdict == "met"


def test_the_page_shows_limits_ratios_and_reasons():
    page = report.text(ABOUT, Results(ROWS), ["cost-rows.svg"])
    assert "| EBM | > 240 | - |" in page
    assert "| XGBoost | 2.00 |  |" in page
    assert "| SLSQP | +5.0e-10 |  |" in page
    assert "| ARM1 | 4 (4.0 fits) |" in page
    assert "| ARM1 | 5.00 | 10.0 | 1.00 | 50,000 | 120 | 2,000 |" in page
    assert "- fit, S2, EBM: not run: S1 already took > 240 s" in page
    assert "glum" not in page.split("## What must be shown")[0].split("Measured on")[1]
    assert "![cost-rows.svg](cost-rows.svg)" in page


def test_exponents_are_those_of_the_upper_half():
    sizes = [10, 100, 1000, 10_000]
    assert growth.exponent(sizes, [7.0, 7.0, 1000.0**1.5, 10_000.0**1.5]) == pytest.approx(1.5)
    assert growth.exponent([10], [1.0]) is None


def sweep(at, method, seconds):
    return {"part": "growth", "at": at, "method": method, "seconds": seconds, "data": "credit-5000x200"}


def test_curves_come_sorted_and_extend_by_their_power():
    rows = [sweep("rows=1000", "ARM1", 2.0), sweep("rows=10", "ARM1", 1.0), sweep("rows=100", "ARM1", 0.2)]
    rows.append({"part": "growth", "at": "rows=10000", "method": "ARM1", "error": "not done", "over": 9.0})
    (curve,) = growth.curves(Results(rows), "rows")
    assert curve.sizes == (10.0, 100.0, 1000.0)
    assert curve.extended(1e6) == pytest.approx(2000.0)
    flat = growth.Curve("ARM1", (10.0, 100.0, 1000.0), (1.0, 1.5, 2.0))
    assert flat.extended(10_000.0) == pytest.approx(20.0), "no fit is cheaper than its passes"


def test_files_of_a_run(tmp_path):
    rows = [sweep(f"{name}={k}", "ARM1", k / 1000) for name in ("rows", "features") for k in (10, 100, 1000)]
    written = report.write(tmp_path, tmp_path / "growth.md", ABOUT, [*ROWS, *rows])
    assert {p.name for p in written} == {
        *(f"cost-{s}.{kind}" for s in ("rows", "features") for kind in ("svg", "png")),
        "README.md",
        "growth.md",
    }
    page = (tmp_path / "growth.md").read_text()
    assert "| ARM1 | 1.00 | 1.00 |  |  |" in page
    assert "- features: 10 to 1,000, at 5,000 rows" in page
    assert "| ARM1 | 1,000 | 1 | 1,000 | 1.00 | 12 days |" in page


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(5.0, "5 seconds"), (600.0, "10 minutes"), (5400.0, "1.5 hours"), (86400.0, "24 hours"), (1e6, "12 days")],
)
def test_durations(seconds, text):
    assert growth.duration(seconds) == text


def test_the_first_runs_decide_and_all_runs_are_told_beside():
    rows = [
        fit("S1", "ARM1 (matrix)", seconds=0.05, seconds_at_first=[0.2, 0.1], peak_mb=10.0),
        fit("S1", "XGBoost", seconds=0.1, seconds_at_first=[0.11], peak_mb=40.0),
    ]
    claim = "ARM1 (matrix) fits S1 faster than XGBoost"
    assert found(claim, rows).verdict == "met"
    assert found(claim, Results(rows).at_first().rows).verdict == "not met"
    page = report.text(ABOUT, Results(rows), [])
    assert f"| {claim} | at least 1.2x | 1.1x | not met |" in page
    steady = page.split("By the best of all runs")[1]
    assert f"- {claim}:" not in steady
    assert "By the best of all runs" not in report.text(ABOUT, Results(ROWS), [])
