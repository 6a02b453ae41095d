from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings

import polars as pl
import pytest

from plainrisk import __version__
from plainrisk._native import COMPILED
from plainrisk.cli.main import ExitCode, main
from plainrisk.errors import PlainriskWarning, missing_extra

PLAINRISK = [sys.executable, "-c", "from plainrisk.cli.main import main; main()"]


def test_version_and_help(run) -> None:
    kernels = "compiled" if COMPILED else "numpy"
    assert run("--version").stdout == f"plainrisk {__version__} ({kernels} kernels)\n"
    text = " ".join(run("--help").stdout.split())
    for code in ExitCode:
        assert f"{code} {code.meaning}" in text
    for command in ("demo", "schema", "fit", "score", "data", "compare"):
        assert command in text


def test_usage_errors_end_with_2(run) -> None:
    for words in (("fit",), ("ft",), ("fit", "german", "--no-such-option"), ("fit", "german")):
        result = run(*words)
        assert result.exit_code == 2
        assert result.stdout == ""


@pytest.mark.parametrize("name", ["nothing.csv", "nothing.parquet", "no/nothing.csv.gz"])
def test_a_missing_file_ends_with_2(run, tmp_path, name) -> None:
    result = run("schema", "infer", tmp_path / name)
    assert result.exit_code == 2
    assert "nothing" in result.stderr
    assert "does not exist" in result.stderr
    assert "Traceback" not in result.stderr


def test_neither_file_nor_data_set(run) -> None:
    result = run("schema", "infer", "taiwn")
    assert result.exit_code == 2
    assert "nor the name of a data set. Did you mean 'taiwan'?" in result.stderr


def test_a_bug_says_so_and_shows_where_on_request(run, credit, monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("seven [bold]is[/bold] not eight")

    monkeypatch.setattr("plainrisk.cli.source.open_source", fail)
    result = run("schema", "infer", credit.csv)
    assert result.exit_code == 1
    assert "error: RuntimeError: seven [bold]is[/bold] not eight" in result.stderr
    assert "plainrisk --debug" in result.stderr
    assert "Traceback" not in result.stderr
    shown = run("--debug", "schema", "infer", credit.csv)
    assert shown.exit_code == 1
    assert "Traceback" in shown.stderr
    assert "in fail" in shown.stderr


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "error: interrupted"),
        (missing_extra("matplotlib", "plot"), 3, "pip install 'plainrisk[plot]'"),
        (OSError(28, "No space left on device", "out.csv"), 2, "out.csv: No space left on device."),
    ],
)
def test_how_other_errors_end(run, credit, monkeypatch, error, code, message) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("plainrisk.cli.source.open_source", fail)
    result = run("schema", "infer", credit.csv)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stdout == ""


def test_notes_are_said_once_and_only_on_stderr(run, credit, monkeypatch) -> None:
    from plainrisk.cli import source

    opened = source.open_source

    def warned(*words: object) -> object:
        for share in (11, 12):
            warnings.warn(f"{share}% of the rows are odd", PlainriskWarning, stacklevel=1)
        warnings.warn("another thing", PlainriskWarning, stacklevel=1)
        return opened(*words)

    monkeypatch.setattr(source, "open_source", warned)
    result = run("schema", "check", credit.csv, "--schema", credit.schema_file, "--json")
    assert result.stderr.splitlines() == ["note: 11% of the rows are odd", "note: another thing"]
    found = json.loads(result.stdout)
    assert found["valid"] is True
    assert found["warnings"] == ["11% of the rows are odd", "another thing"]
    assert "warnings" not in json.loads(run("certify", credit.model_file, "--json").stdout)


@pytest.mark.parametrize("package", ["typer", "rich", "polars"])
def test_missing_packages_end_with_3(monkeypatch, capsys, package) -> None:
    monkeypatch.setattr("plainrisk.cli.main.find_spec", lambda name: None if name == package else object())
    with pytest.raises(SystemExit, match="3"):
        main()
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{package} is needed" in err
    assert "pip install 'plainrisk[cli]'" in err


def test_the_command_line_starts_without_what_it_does_not_need() -> None:
    code = (
        "import sys; from plainrisk.cli.app import app; "
        "print(sorted({'polars', 'matplotlib', 'xgboost'} & set(sys.modules)))"
    )
    assert _python("-c", code).stdout == "[]\n"


def test_an_ascii_terminal(tmp_path) -> None:
    pl.DataFrame({"größe": [1, 2, 3]}).write_csv(tmp_path / "t.csv")
    words = ["schema", "infer", "t.csv", "-o", "s.toml"]
    done = subprocess.run(
        [*PLAINRISK, *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert b"gr??e" in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
def test_a_real_interrupt_ends_with_130_and_leaves_nothing(credit, tmp_path) -> None:
    # The slow model makes sure that the signal arrives while the file is written.
    slow = (
        "import time, plainrisk; predict = plainrisk.RiskModel.predict_proba\n"
        "def wait(self, X):\n"
        "    open('started', 'w').close(); time.sleep(0.5); return predict(self, X)\n"
        "plainrisk.RiskModel.predict_proba = wait\n"
        "from plainrisk.cli.main import main; main()"
    )
    pl.concat([credit.frame] * 100).write_parquet(tmp_path / "many.parquet", row_group_size=2_000)
    words = ["score", "many.parquet", "--model", str(credit.model_file), "-o", "risks.parquet"]
    job = subprocess.Popen([sys.executable, "-c", slow, *words], cwd=tmp_path, stderr=subprocess.PIPE)
    while not (tmp_path / "started").exists() and job.poll() is None:
        time.sleep(0.02)
    job.send_signal(signal.SIGINT)
    _, err = job.communicate(timeout=600)
    assert job.returncode == 130
    assert b"error: interrupted" in err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["many.parquet", "started"]


@pytest.mark.skipif(os.name == "nt", reason="pipes of Unix")
@pytest.mark.parametrize("words", [("data", "list"), ("data", "list", "--json"), ("schema", "infer", "german")])
def test_a_reader_that_ends_first_is_no_bug(words) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*PLAINRISK, *words], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert done.returncode == 141
    assert "error" not in done.stderr
    assert "bug" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def _python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
