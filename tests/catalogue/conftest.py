"""The catalog of bad inputs: what every case shares, and what every case must keep.

A case of the library is `"what a user does": (call, expected)`. The call gets the `World` below. What is expected is
either `"DataError: some words of its message"` (a regular expression), or a check of the result: a function that
returns whether it is right. A case of a command is `"what a user does": (words, exit code, "words of the output")`.

Whatever the case, `judge` and `command` see to it that no error but ours is raised and no warning but ours is given,
that no error and no note quotes an applicant's value, that the inputs are as they were, that nothing is left behind
half-written, that nothing but plain text reaches the terminal, and that all ends within a minute.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import gzip
import json
import re
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

import plainrisk as pr
from plainrisk.errors import PlainriskError, PlainriskWarning

#: Cells that must never be read in a message.
SECRETS = ("987654321.125", "987654321", "SECRET-7")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_APART = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}


class World:
    """Small data, fitted models and files that all cases share; `given` is watched for changes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rng = np.random.default_rng(5)
        n = 120
        a = np.round(rng.normal(size=n) * 3 + 10, 2)
        b = rng.integers(0, 6, n).astype(float)
        c = rng.choice(np.array(["x", "y", "z"], dtype=object), n)
        self.y = (a + b + 2 * (c == "z") + rng.normal(size=n) * 3 > 14).astype(int)
        b[::13] = np.nan
        self.X = pd.DataFrame({"a": a, "b": b, "c": c})
        features = {
            "a": {"direction": "increasing"},
            "b": {"direction": "increasing"},
            "c": {"kind": "categorical"},
        }
        subscales = {"money": ["a", "b"], "person": ["c"]}
        self.schema = pr.Schema(target="bad", positive=1, features=features, subscales=subscales)
        self.numbers = pr.Schema(features={"a": {"direction": "increasing"}, "b": {"direction": "increasing"}})
        self._watched: list[tuple[Any, Any]] = []

    def given(self, thing: Any) -> Any:
        """Hand a thing to the library, and see afterward that it is as it was."""
        with contextlib.suppress(TypeError, RecursionError):
            self._watched.append((thing, copy.deepcopy(thing)))
        return thing

    def check_given(self) -> None:
        watched, self._watched = [*self._watched, (self.X, self._first[0]), (self.y, self._first[1])], []
        for now, before in watched:
            assert is_same(now, before), f"the call changed its input, a {type(now).__name__}"

    @functools.cached_property
    def _first(self) -> tuple[pd.DataFrame, Any]:
        return self.X.copy(), self.y.copy()

    def start(self) -> None:
        self._watched = []
        assert self._first is not None

    # ---- models

    @functools.cache  # noqa: B019  (one world per run)
    def model(self, name: str = "BandARM1") -> Any:
        """A classifier by name, fitted to the world's rows."""
        straight = name in ("NNLR", "LinNNLR")
        made = pr.make_classifier(name, self.numbers if straight else self.schema)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PlainriskWarning)
            return made.fit(self.X[["a", "b"]].fillna(2.0) if straight else self.X, self.y)

    @functools.cached_property
    def logistic(self) -> LogisticRegression:
        """A model of another library, on the world's numbers."""
        return LogisticRegression().fit(self.X[["a", "b"]].fillna(2.0), self.y)

    def fit(self, X: Any = None, y: Any = None, *, name: str = "ARM1", schema: Any = None, **options: Any) -> Any:
        """Fit a classifier to rows or outcomes of the case's own."""
        weight = options.pop("sample_weight", None)
        X = self.X if X is None else self.given(X)
        y = self.y if y is None else self.given(y)
        made = pr.make_classifier(name, self.schema if schema is None else schema, **options)
        return made.fit(X, y) if weight is None else made.fit(X, y, sample_weight=self.given(weight))

    def fit_column(self, column: Any, y: Any = None, *, name: str = "ARM1", **feature: Any) -> Any:
        """Fit to one column `a` of the case's own."""
        frame = column if hasattr(column, "columns") else pd.DataFrame({"a": column})
        outcome = np.arange(len(frame)) % 2 if y is None else y
        return self.fit(frame, outcome, name=name, schema=pr.Schema(features={"a": feature}))

    def score(self, X: Any, name: str = "ARM1") -> Any:
        """The risks of rows of the case's own."""
        return self.model(name).predict_proba(self.given(X))[:, 1]

    def row(self, **cells: Any) -> pd.DataFrame:
        """One applicant."""
        return self.X.head(1).assign(**{name: [value] for name, value in cells.items()})

    # ---- files

    def file(self, name: str, content: bytes | str) -> Path:
        """Write a file of the case's own into its folder (the current one)."""
        path = Path(name)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def model_text(self, change: Callable[[dict[str, Any]], Any] | None = None, name: str = "ARM1") -> str:
        """The text of a model file, changed by the case."""
        path = self.folder / f"{name}.json"
        data = json.loads(path.read_text())
        if change is not None:
            change(data)
        return json.dumps(data)


def is_same(a: Any, b: Any) -> bool:
    """Whether an input is what it was."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and repr(a.tolist()) == repr(b.tolist())
    if hasattr(a, "equals"):
        return bool(a.equals(b)) or repr(a) == repr(b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(is_same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(is_same, a, b))
    return " object at 0x" in repr(a) or repr(a) == repr(b)


def csv_of(frame: pd.DataFrame) -> str:
    """The world's rows as they stand in a file, all columns."""
    return pl.from_pandas(frame).write_csv()


def make_files(world: World, folder: Path) -> None:
    """Write the files that commands read: good ones, and hostile ones by name."""
    rows = world.X.assign(bad=world.y)
    good = csv_of(rows)
    head, first, *rest = good.splitlines()
    secret = "987654321.125,1,SECRET-7,0"
    text = {
        "good.csv": good,
        "secret.csv": f"{head}\n{secret}\n" + "\n".join([first, *rest]) + "\n",
        "too_many_fields.csv": f"{head}\n{first}\n987654321,125,1,SECRET-7,0\n" + "\n".join(rest) + "\n",
        "too_few_fields.csv": f"{head}\n{first}\n987654321.125,1\n" + "\n".join(rest) + "\n",
        "truncated.csv": "\n".join([head, first, *rest])[:-9],
        "two_a.csv": good.replace("a,b,c,bad", "a,b,a,bad", 1),
        "semicolons.csv": good.replace(",", ";"),
        "tabs.csv": good.replace(",", "\t"),
        "decimal_commas.csv": good.replace(",", ";").replace(".", ","),
        "empty.csv": "",
        "blank_lines.csv": "\n\n\n",
        "header.csv": head + "\n",
        "nul.csv": f"{head}\n{first}\n98765\0,1,SECRET-7,0\n" + "\n".join(rest) + "\n",
        "bom.csv": "\ufeff" + good,
        "crlf.csv": good.replace("\n", "\r\n"),
        "open_quote.csv": f'{head}\n{first}\n1,2,"SECRET-7,0\n' + "\n".join(rest) + "\n",
        "quoted_newline.csv": f'{head}\n{first}\n12.5,2,"x\ny",0\n' + "\n".join(rest) + "\n",
        "words.csv": f"{head}\n{first}\nSECRET-7,2,x,0\n" + "\n".join(rest) + "\n",
        "infinite.csv": f"{head}\n{first}\ninf,2,x,0\n" + "\n".join(rest) + "\n",
        "no_target.csv": csv_of(world.X),
        "only_a.csv": csv_of(world.X[["a"]]),
        "other_columns.csv": "p,q\n1,2\n3,4\n",
        "one_class.csv": csv_of(rows.assign(bad=1)),
        "three_classes.csv": csv_of(rows.assign(bad=np.arange(len(rows)) % 3)),
        "missing_outcome.csv": f"{head}\n{first}\n12.5,2,x,\n" + "\n".join(rest) + "\n",
        "escapes.csv": good.replace("a,b,c,bad", "\x1b[31ma\x1b[0m,b,c,bad", 1),
        "escape_cells.csv": good.replace(",x,", ",\x1b]0;owned\x07,"),
        "formula.csv": csv_of(rows.assign(id=["=cmd|'/C calc'!A0"] * len(rows))),
        "rows.txt": good,
        "good.json": good,
        "schema.toml": "",
        "broken.toml": "target = \n",
        "unknown_key.toml": '[features.a]\nkind = "continous"\n',
        "deep.toml": "a = " + "[" * 600 + "]" * 600,
        "dots.toml": ".".join(["a"] * 100_000) + " = 1\n",
        "digits.toml": f"[features.a]\nlower_bound = {'9' * 5000}\n",
        "deep.json": "[" * 100_000 + "]" * 100_000,
        "digits.json": '{"features": {"a": {"lower_bound": ' + "9" * 5000 + "}}}",
        "list.json": "[1, 2]",
        "escape.json": '{"format":99,"plainrisk":"\\u001b]0;pwned\\u001b[2J"}',
        "half.json": (folder / "ARM1.json").read_text()[:400],
        "results.csv": "data,NNLR,ARM1,XGB\n"
        + "".join(f"d{k},0.{70 + k},0.{72 + k},0.{71 + k % 7}\n" for k in range(9)),
        "predictions.csv": "row,bad,ARM1,XGB\n"
        + "".join(f"{k},{k % 2},{0.1 + k / 999:.4f},{0.2 + k / 999:.4f}\n" for k in range(400)),
        "plan.toml": 'name = "p"\ndatasets = ["german"]\nclassifiers = ["ARM1"]\ncv = 2\n',
        "no_metrics.toml": 'name = "p"\ndatasets = ["german"]\nclassifiers = ["ARM1"]\nmetrics = []\n',
        "deep_plan.toml": 'name = "p"\nx = ' + "[" * 600 + "]" * 600 + "\n",
    }
    for name, content in text.items():
        (folder / name).write_bytes(content.encode())
    world.schema.save(folder / "schema.toml")
    packed = gzip.compress(good.encode())
    binary = {
        "good.csv.gz": packed,
        "cut_in_header.csv.gz": packed[:5],
        "cut.csv.gz": packed[: len(packed) // 2],
        "not_gzip.csv.gz": good.encode(),
        "latin1.csv": good.replace(",x,", ",Gr\xfcn,").encode("latin-1"),
        "utf16.csv": good.encode("utf-16"),
        "text.parquet": good.encode(),
        "latin1.toml": b'target = "Gr\xfcn"\n',
    }
    for name, content in binary.items():
        (folder / name).write_bytes(content)
    table = pl.from_pandas(rows)
    table.write_parquet(folder / "good.parquet")
    whole = (folder / "good.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (folder / "damaged.parquet").write_bytes(whole[:40] + b"\xff" * 60 + whole[100:])
    table.head(0).write_parquet(folder / "no_rows.parquet")
    table.with_columns(a=pl.lit([1.0, 2.0])).write_parquet(folder / "lists.parquet")
    (folder / "parts").mkdir()
    table.head(60).write_csv(folder / "parts" / "1.csv")
    table.tail(60).drop("c").write_csv(folder / "parts" / "2.csv")
    (folder / "types").mkdir()
    table.head(60).write_parquet(folder / "types" / "1.parquet")
    table.tail(60).with_columns(pl.col("bad").cast(pl.String)).write_parquet(folder / "types" / "2.parquet")
    (folder / "a_folder.csv").mkdir()


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("catalog")
    made = World(folder)
    for name in ("ARM1", "BandARM1", "LinNNLR", "MixARM1"):
        made.model(name).save(folder / f"{name}.json")
    make_files(made, folder)
    return made


@contextlib.contextmanager
def within_memory() -> Iterator[None]:
    """End a case that reads an endless file before the machine does."""
    used = Path("/proc/self/statm")
    if not used.exists():
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    limit = int(used.read_text().split()[0]) * resource.getpagesize() + 4 * 2**30
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextlib.contextmanager
def within_a_minute() -> Iterator[None]:
    """End a case that hangs."""
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise TimeoutError("the case takes over a minute")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def listed(folder: Path) -> dict[str, tuple[int, int]]:
    """The files of a folder, with size and time of the last change."""
    return {str(p.relative_to(folder)): (s.st_size, s.st_mtime_ns) for p in folder.rglob("*") for s in [p.lstat()]}


def check_text(text: str) -> None:
    assert not CONTROL.search(text), f"control characters are shown: {text!r}"
    for secret in SECRETS:
        assert secret not in text, f"a message quotes an applicant's value: {text}"


def check_nothing_half_written(folder: Path) -> None:
    left = [name for name in listed(folder) if Path(name).name.startswith(".") or re.search(r"tmp|temp|part$", name)]
    assert not left, f"left behind: {left}"


@pytest.fixture
def judge(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, Any], None]:
    """Run a case of the library."""
    monkeypatch.chdir(tmp_path)

    def run(call: Callable[[World], Any], expected: Any) -> None:
        world.start()
        result, error = None, None
        with warnings.catch_warnings(record=True) as told, within_a_minute(), within_memory():
            warnings.simplefilter("always")
            try:
                result = call(world)
            except (PlainriskError, NotFittedError) as raised:
                error = raised
        for warning in told:
            ours = issubclass(warning.category, PlainriskWarning | DataConversionWarning)  # the latter is a convention
            assert ours, f"not ours: {warning.category}: {warning.message}"
            check_text(str(warning.message))
        world.check_given()
        check_nothing_half_written(tmp_path)
        if error is not None:
            said = f"{type(error).__name__}: {error}"
            check_text(str(error))
            assert isinstance(expected, str), f"must work, but: {said}"
            kind, words = expected.split(": ", 1)
            assert re.fullmatch(kind, type(error).__name__), said
            assert re.search(words, str(error), re.DOTALL), said
            return
        assert not isinstance(expected, str), f"must raise {expected}, but returned {str(result)[:200]}"
        assert expected(result), str(result)[:500]

    return run


@pytest.fixture
def command(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int, str], None]:
    """Run a case of the command line; words such as {good.csv} stand for files of the world."""
    from plainrisk.cli.app import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "240")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PLAINRISK_DEBUG", raising=False)
    monkeypatch.delenv("PLAINRISK_DATA", raising=False)
    runner = CliRunner(**_APART)

    def run(words: str, code: int, expected: str) -> None:
        before = listed(world.folder)
        filled = [re.sub(r"\{(.*?)\}", lambda m: str(world.folder / m[1]), word) for word in words.split()]
        filled = [word.encode().decode("unicode_escape") if "\\" in word else word for word in filled]
        with within_a_minute(), within_memory():
            result = runner.invoke(app, filled)
        said = result.stdout + result.stderr
        assert result.exit_code == code, f"exit code {result.exit_code}: {said} {result.exception!r}"
        assert re.search(expected, said, re.DOTALL), said
        assert "bug in plainrisk" not in said
        assert "Traceback" not in said
        check_text(said if code else result.stderr)
        assert not CONTROL.search(said)
        assert listed(world.folder) == before
        check_nothing_half_written(tmp_path)
        if code:
            assert not listed(tmp_path), "a command that fails leaves nothing"
        if code and "--json" in filled:
            assert set(json.loads(result.stdout)["error"]) >= {"kind", "message", "exit_code"}

    return run
