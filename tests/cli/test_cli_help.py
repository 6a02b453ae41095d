"""The help: panels in the order of work, a sentence for every option, an example for every command, no Python words."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest

import plainrisk as pr
from plainrisk.cli.annotate import _entry, read_about
from plainrisk.cli.commands import COMMANDS, EXAMPLES, LAB, LINES, PANELS, START, VALUES, added_lists, load_command
from plainrisk.cli.main import ExitCode
from plainrisk.cli.options import _values

PYTHON = re.compile(r"\b(dict|None|True|False|tuple|bool|int|str|float|path)\b(?!:)|<\w+>|\bRANGE\b|kwargs")
NAMES = [name for name in EXAMPLES if name in COMMANDS or len(name.split()) == 2]


def command_of(name):
    first, *rest = name.split()
    found = load_command(first)
    return found.commands[rest[0]] if rest else found


def test_commands_are_in_panels_in_the_order_of_work(run):
    shown = run("--help").stdout
    places = [shown.index(f"─ {panel} ─") for panel in PANELS]
    assert places == sorted(places)
    assert list(PANELS) == ["Data", "Fit", "Explain", "Decide", "Validate", "Deploy"]
    assert [name for names in PANELS.values() for name in names] == list(COMMANDS) == list(LINES)


def test_without_arguments_the_first_five_things_to_do_are_shown(run):
    done = run()
    assert done.exit_code == 0
    assert [f"{i}. {command}" in done.stdout for i, command in enumerate(START, 1)] == [True] * 5
    assert "plainrisk --help lists all" in done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_every_option_has_a_sentence_and_no_word_of_python(run, name):
    for parameter in command_of(name).params:
        sentence, _, _ = (parameter.help or "").partition(" (example: ")
        assert sentence.endswith("."), (parameter.name, sentence)
    shown = run(*name.split(), "--help")
    assert shown.exit_code == 0
    found = PYTHON.search(shown.stdout)
    assert found is None, found


def valued_options(command):
    return [p for p in command.params if p.param_type_name == "option" and not p.is_flag]


@pytest.mark.parametrize("name", NAMES)
def test_every_option_that_takes_a_value_shows_one_that_it_takes(name):
    command = command_of(name)
    places = ["model.json" if p.metavar in ("MODEL", "OLD", "NEW") else "loans.csv" for p in command.params]
    places = [place for place, p in zip(places, command.params, strict=True) if p.param_type_name == "argument"]
    for parameter in valued_options(command):
        shown = re.search(r" \(example: ([^()]+)\)$", parameter.help)
        assert shown, (parameter.name, parameter.help)
        flag, value = shlex.split(shown[1])
        assert flag in parameter.opts
        needed = [] if flag == "-o" or name not in ("fit", "export", "report") else ["-o", "file"]
        others = [p.opts[0] for p in valued_options(command) if p.required and p is not parameter]
        needed += [word for other in others for word in (other, VALUES[other])]
        taken = command.make_context(name, [*places, flag, value, *needed]).params[parameter.name]
        assert taken not in (None, [], ()), (flag, value)
        words = (parameter.metavar or "").split("|")
        assert len(words) == 1 or value in words or "NUMBER" in words, (parameter.metavar, value)
        endings = re.findall(r"\.[a-z]+\b", parameter.help.partition(" (example")[0]) if flag == "-o" else []
        assert not endings or value.endswith(tuple(endings)), (parameter.help, value)


def test_the_values_that_are_shown_are_those_of_options_that_there_are():
    flags = {name: {flag for p in valued_options(command_of(name)) for flag in p.opts} for name in NAMES}
    for key in VALUES:
        name, _, flag = key.rpartition(" ")
        assert flag in (flags[name] if name else set().union(*flags.values())), key


def test_the_names_that_are_shown_are_known(credit):
    assert VALUES["--model"] in pr.CLASSIFIERS
    assert read_about([VALUES["--about"]])
    assert _values(VALUES["--values"]) == ("income", [1500.0, 2000.0])
    (entry,) = shlex.split(VALUES["--set"])
    assert pr.load(credit.model_file).annotate(_entry(entry)).form_.schema.policy.reasons == 3


@pytest.mark.parametrize("example", [*EXAMPLES.values(), *START])
def test_examples_can_be_written_so(run, example):
    _, *words = shlex.split(example)
    group = words[0] in ("data", "schema")
    command = command_of(" ".join(words[: 1 + group]))
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if re.fullmatch("--?[a-z][a-z-]*", word)} <= known
    wanted = [p for p in command.params if p.param_type_name == "argument" and p.required]
    given = words[1 + group :]
    places = [w for i, w in enumerate(given) if not w.startswith("-") and not (i and given[i - 1].startswith("-"))]
    assert len(places) >= len(wanted)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_help_of_a_command_ends_with_an_example_of_it(run, name):
    shown = " ".join(run(*name.split(), "--help").stdout.split())
    assert shown.endswith(f"Example: {EXAMPLES[name]}")
    assert EXAMPLES[name].startswith(f"plainrisk {name}")


@pytest.mark.parametrize("words", [(), ("--help",)])
def test_the_start_loads_no_estimator(words):
    code = (
        "import sys; sys.argv = ['plainrisk', *sys.argv[1:]]\n"
        "from plainrisk.cli.app import app\n"
        "try: app()\nexcept SystemExit: pass\n"
        "print([name for name in ('sklearn', 'polars', 'numpy') if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize("data", ["loans.csv", "german", "-"])
def test_data_in_the_place_of_a_served_model_are_said(run, credit, data):
    result = run("serve", credit.model_file, data)
    assert result.exit_code == 2
    assert f"{data} is not a model file. serve takes model files alone; the rows come with requests." in result.stderr


@pytest.mark.parametrize(
    "command", ["score", "explain", "reasons", "what-if", "evaluate", "cutoffs", "fairness", "drift"]
)
def test_data_before_the_model_is_said(run, credit, command):
    result = run(command, credit.csv, credit.model_file)
    assert result.exit_code == 2
    message = f"{credit.csv} is not a model file. The model comes first: plainrisk {command} MODEL DATA"
    assert message in result.stderr


# ---- commands of other packages


@pytest.mark.parametrize("command", LAB)
def test_a_command_of_the_lab_says_how_to_install_it(run, command, monkeypatch):
    monkeypatch.setattr("plainrisk.cli.app.added_lists", lambda: ())
    done = run(command, "--help")
    assert done.exit_code == ExitCode.MISSING_EXTRA
    assert f"plainrisk {command} is a command of plainrisk-lab, which is not installed" in done.stderr
    assert "pip install ./lab" in done.stderr
    assert json.loads(run(command, "--json").stdout)["error"]["kind"] == "MissingExtraError"
    assert f"│ {command} " not in run("--help").stdout


@pytest.fixture
def broken(monkeypatch):
    """An installed package whose list of commands cannot be imported."""
    point = EntryPoint("other", "no_such_module", "plainrisk.commands")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [point._for(SimpleNamespace(name="other"))])
    added_lists.cache_clear()
    yield
    added_lists.cache_clear()


def test_a_package_that_adds_commands_and_is_broken_is_named(run, broken):
    for words in (["--help"], ["nothing"]):
        done = run(*words)
        assert done.exit_code == ExitCode.MISSING_EXTRA
        assert (
            "other adds commands to plainrisk and cannot be imported: No module named 'no_such_module'" in done.stderr
        )
        assert "pip uninstall other" in done.stderr
    assert run("data", "list").exit_code == 0
