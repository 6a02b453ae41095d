"""What is fuzzed: every reader of what comes from outside, each as a function of bytes.

A reader may take its input or refuse it by an error of ours. Anything else is a finding: another exception, an answer
that is none, a risk that is no probability, a file that does not come back as it was written.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import plainrisk as pr
from plainrisk.data.reader import open_table
from plainrisk.errors import ModelFileError, PlainriskError
from plainrisk.explain import certify
from plainrisk.files import parse_json
from plainrisk.form import ModelFile, RiskForm, read_model, write_model
from plainrisk.report import Subject, collect
from plainrisk.serve import Settings, make_app
from plainrisk.serve.requests import ARROW, JSON
from plainrisk_lab.study.plan import load_plan

CORPUS = Path(__file__).parents[1] / "tests" / "fuzz" / "corpus"
SERVED = CORPUS / "model" / "mixture.json"  # whose service is asked
MOST_ROWS, MOST_BYTES = 500, 2**18
# Values under which every form is scored: an ordinary one, special, missing, huge, and text.
VALUES: tuple[Any, ...] = (1.5, -9.0, None, 1e300, "a")


class WrongError(Exception):
    """A reader took its input and gave what it must not give."""


class RefusedError(PlainriskError):
    """The service refused a request in its own words."""


class Place:
    """A folder for the input of one target, which is written to one name after the other."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fuzz-")
        self.path = Path(self._folder.name)

    def close(self) -> None:
        """Remove the folder."""
        self._folder.cleanup()

    def put(self, name: str, data: bytes) -> Path:
        """Write the input to a file."""
        path = self.path / name
        path.write_bytes(data)
        return path


def require(holds: bool, what: str) -> None:
    """Raise if something that always holds does not."""
    if not holds:
        raise WrongError(what)


# ---- files


def read_model_file(place: Place, data: bytes) -> None:
    """A model file as it stands: its hashes are checked, too."""
    path = place.put("model.json", data)
    content = read_model(path)
    write_model(place.path / "again.json", content.form, content.fit, content.certificate)
    require(
        read_model(place.path / "again.json").form == content.form, "the form changed on its way to a file and back"
    )


def read_signed_form(place: Place, data: bytes) -> None:
    """A model file whose hashes are made to fit: what stands behind them is checked, and then used."""
    text = data.decode("utf-8", "replace")
    given = parse_json(text, ModelFile, "model.json", ModelFileError, "a plainrisk model")
    path = place.path / "signed.json"
    write_model(path, given.form, given.fit)
    model = pr.load(path)
    require(model.form_ == given.form, "the form changed on its way to a file and back")
    certify(given.form)
    use_form(given.form)
    use_record(model)


def use_form(form: RiskForm) -> None:
    """Score, explain and decide about rows that the schema knows nothing of."""
    model = pr.RiskModel(form)
    for shift in range(len(VALUES)):
        row = {name: VALUES[(k + shift) % len(VALUES)] for k, name in enumerate(form.features)}
        risks = []
        for rows in (row, {name: [value] * 3 for name, value in row.items()}):
            try:
                risks += model.predict_proba(rows)[:, 1].tolist()
            except pr.errors.DataError:
                risks.append(None)
                continue
            model.explain(rows)
            model.reasons(rows)
        require(len(set(risks)) == 1, f"one row and three of the same differ: {risks}")
        require(risks[0] is None or 0.0 <= risks[0] <= 1.0, f"the risk is {risks[0]}")


def use_record(model: pr.RiskModel) -> None:
    """Use what the file says of the fit: the page, another base rate, intervals."""
    repr(model), repr(model.fit_record_)
    uses = (
        lambda: collect([Subject("model", model.form_, model.fit_record_)]),
        lambda: model.at_base_rate(0.1),
        lambda: model.posterior(2),
    )
    for use in uses:
        with contextlib.suppress(PlainriskError):
            use()


def read_schema(place: Place, data: bytes) -> None:
    """A schema in TOML, or in JSON where it begins with a brace."""
    suffix = ".json" if data.lstrip().startswith(b"{") else ".toml"
    schema = pr.Schema.load(place.put(f"schema{suffix}", data))
    for kind in (".toml", ".json"):
        schema.save(place.path / f"again{kind}")
        require(pr.Schema.load(place.path / f"again{kind}") == schema, f"the schema changed by {kind}")
    str(schema), repr(schema)


def read_plan(place: Place, data: bytes) -> None:
    """A study plan."""
    plan = load_plan(place.put("plan.toml", data))
    require(type(plan).from_json(plan.to_json()) == plan, "the plan changed on its way to JSON and back")


def read_csv(place: Place, data: bytes) -> None:
    """A CSV file, packed or not, by its types and as text."""
    path = place.put("rows.csv.gz" if data.startswith(b"\x1f\x8b") else "rows.csv", data)
    table = open_table(path)
    for kinds in (None, dict.fromkeys(table.lazy.collect_schema().names(), "categorical")):
        found = table.read_as(kinds).collect()
        require(found.height == table.n_rows, f"{found.height} rows were read, {table.n_rows} counted")


def read_parquet(place: Place, data: bytes) -> None:
    """A Parquet file."""
    table = open_table(place.put("rows.parquet", data))
    found = table.read_as(None).collect()
    require(found.height == table.n_rows, f"{found.height} rows were read, {table.n_rows} counted")


# ---- requests


class Service:
    """The whole service, asked without a network; an input is the path in one line, then the body."""

    def __init__(self) -> None:
        self.app = make_app(Settings(models=(str(SERVED),), max_rows=MOST_ROWS, max_bytes=MOST_BYTES))
        self.app.state.service.shelf.open()
        self.loop = asyncio.new_event_loop()
        self.failures: list[logging.LogRecord] = []
        log = logging.getLogger("plainrisk.serve")
        handler = logging.Handler(logging.ERROR)
        handler.emit = self.failures.append  # type: ignore[method-assign]
        log.addHandler(handler)
        log.propagate = False

    def ask(self, data: bytes, kind: str) -> None:
        """Post a body; an answer below 500 is one of ours."""
        line, _, body = data.partition(b"\n")
        path, _, query = line.partition(b"?")
        scope = {"type": "http", "method": "POST", "path": path.decode("latin-1"), "query_string": query}
        scope |= {"http_version": "1.1", "scheme": "http", "server": ("localhost", 80), "root_path": ""}
        scope["headers"] = [(b"host", b"localhost"), (b"content-type", kind.encode())]
        status, answer = self.loop.run_until_complete(self._answer(scope, body))
        if self.failures:
            record = self.failures.pop()
            self.failures.clear()
            raise WrongError(f"status {status}") from (record.exc_info and record.exc_info[1])
        require(isinstance(answer, dict) and status < 500, f"status {status}: {answer!r:.300}")
        if status != 200:
            raise RefusedError(f"{status} {answer['detail']}")

    async def _answer(self, scope: dict[str, Any], body: bytes) -> tuple[int, Any]:
        waiting = [{"type": "http.request", "body": body, "more_body": False}]
        sent: list[Mapping[str, Any]] = []

        async def receive() -> Mapping[str, Any]:
            return waiting.pop() if waiting else {"type": "http.disconnect"}

        async def send(message: Mapping[str, Any]) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        raw = b"".join(message.get("body", b"") for message in sent[1:])
        return sent[0]["status"], json.loads(raw, parse_constant=no_number) if raw.startswith(b"{") else raw


def no_number(literal: str) -> float:
    """Refuse NaN and infinity, which JSON does not have."""
    raise WrongError(f"an answer holds {literal}")


SERVICE: list[Service] = []


def ask_service(data: bytes, kind: str) -> None:
    """Ask the one service of this process."""
    if not SERVICE:
        SERVICE.append(Service())
    SERVICE[0].ask(data, kind)


TARGETS: Mapping[str, Callable[[Place, bytes], None]] = {
    "model": read_model_file,
    "form": read_signed_form,
    "schema": read_schema,
    "plan": read_plan,
    "csv": read_csv,
    "parquet": read_parquet,
    "json": lambda place, data: ask_service(data, JSON),
    "arrow": lambda place, data: ask_service(data, ARROW),
}
