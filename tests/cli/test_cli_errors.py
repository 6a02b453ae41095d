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
from plainrisk._native import kernels
from plainrisk.cli.main import ExitCode, main
from plainrisk.errors import PlainriskWarning, missing_extra

PLAINRISK = [sys.executable, "-c", "from plainrisk.cli.main import main; main()"]


def test_version_and_help(run) -> None:
    assert run("--version").stdout == f"plainrisk {__version__} ({kernels()})\n"
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
    def fail(*_: object, **__: object) -> None:
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


def wrapped_interrupt() -> RuntimeError:
    """What Python 3.11 makes of an interrupt that comes while a class is made."""
    error = RuntimeError("Error calling __set_name__ on 'Field' instance 'target' in 'WhatIfOptions'")
    error.__cause__ = KeyboardInterrupt()
    return error


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "error: interrupted"),
        (wrapped_interrupt(), 130, "error: interrupted"),
        (missing_extra("matplotlib", "plot"), 3, "pip install 'plainrisk[plot]'"),
        (OSError(28, "No space left on device", "out.csv"), 2, "out.csv: No space left on device."),
    ],
)
def test_how_other_errors_end(run, credit, monkeypatch, error, code, message) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("plainrisk.cli.source.open_source", fail)
    result = run("schema", "infer", credit.csv)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stdout == ""


def test_notes_are_said_once_and_only_on_stderr(run, credit, monkeypatch) -> None:
    from plainrisk.cli import source

    opened = source.open_source

    def warned(*words: object, **options: object) -> object:
        for share in (11, 12):
            warnings.warn(f"{share}% of the rows are odd", PlainriskWarning, stacklevel=1)
        warnings.warn("another thing", PlainriskWarning, stacklevel=1)
        return opened(*words, **options)

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


# ---- signals

UNIX = pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
# The slow model makes sure that the signal arrives while the file is written.
SLOW = """
import time, plainrisk; risk = plainrisk.RiskForm.risk
def wait(self, X):
    open('started', 'w').close(); time.sleep(0.5); return risk(self, X)
plainrisk.RiskForm.risk = wait
from plainrisk.cli.main import main; main()
"""


def started(folder, code, *words, before=None) -> subprocess.Popen[bytes]:
    """Start a command and wait until it says by a file that it is where the signal should meet it."""
    command = [sys.executable, "-c", code, *words]

    def heed() -> None:
        # The tests may run where signals are ignored, as under nohup, which the command would inherit.
        for number in (signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)

    job = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, preexec_fn=before or heed)
    while not (folder / "started").exists() and job.poll() is None:
        time.sleep(0.02)
    return job


@pytest.fixture
def many(credit, tmp_path):
    pl.concat([credit.frame] * 100).write_parquet(tmp_path / "many.parquet", row_group_size=2_000)
    return ["score", str(credit.model_file), "many.parquet", "-o", "risks.parquet"]


@UNIX
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_with_its_code_and_leaves_nothing(tmp_path, many, name) -> None:
    number = getattr(signal, name)
    job = started(tmp_path, SLOW, *many)
    job.send_signal(number)
    job.send_signal(number)  # the second does not disturb the cleaning up
    _, err = job.communicate(timeout=600)
    assert job.returncode == 128 + number
    assert err == b"error: interrupted\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["many.parquet", "started"]


@UNIX
def test_a_signal_that_was_to_be_ignored_is_ignored(tmp_path, many) -> None:
    """As under nohup, or in the background of a script."""

    def ignore() -> None:
        for number in (signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)

    job = started(tmp_path, SLOW, *many, before=ignore)
    job.send_signal(signal.SIGHUP)
    assert job.communicate(timeout=600)[1] == b""
    assert job.returncode == 0
    assert pl.read_parquet(tmp_path / "risks.parquet").height == 60_000


@UNIX
def test_what_ignores_interrupts_can_be_terminated(tmp_path, many) -> None:
    job = started(tmp_path, SLOW, *many, before=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    job.send_signal(signal.SIGTERM)
    assert job.communicate(timeout=600)[1] == b"error: interrupted\n"
    assert job.returncode == 128 + signal.SIGTERM


@UNIX
def test_an_interrupt_in_a_destructor_is_not_lost(tmp_path) -> None:
    code = """
import time
from plainrisk.cli import source
class Slow:
    def __del__(self):
        open('started', 'w').close(); time.sleep(60)
def open_source(*words, **options):
    Slow(); time.sleep(60)
source.open_source = open_source
from plainrisk.cli.main import main; main()
"""
    job = started(tmp_path, code, "schema", "infer", "german")
    job.send_signal(signal.SIGINT)
    assert job.communicate(timeout=600)[1] == b"error: interrupted\n"
    assert job.returncode == 130


def interrupted(folder, module, *words) -> subprocess.Popen[bytes]:
    """Start a command, and interrupt it while it imports a module."""
    (folder / module).mkdir()
    (folder / module / "__init__.py").write_text("import time; open('started', 'w').close(); time.sleep(600)")
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); from plainrisk_command import main; main()"
    job = started(folder, code, *words)
    job.send_signal(signal.SIGINT)
    return job


@UNIX
@pytest.mark.parametrize("module", ["rich", "typer"])
def test_an_interrupt_of_the_imports_says_nothing(tmp_path, module) -> None:
    job = interrupted(tmp_path, module, "--version")
    assert job.communicate(timeout=600)[1] == b""
    assert job.returncode == -signal.SIGINT


@UNIX
def test_an_interrupt_of_the_imports_of_a_command_is_one_of_the_command(tmp_path) -> None:
    job = interrupted(tmp_path, "sklearn", "fit", "german")
    assert job.communicate(timeout=600)[1] == b"error: interrupted\n"
    assert job.returncode == 130


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
