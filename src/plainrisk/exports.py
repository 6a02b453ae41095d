"""Exports of a model with its explanations and reasons, and the check that they agree with it."""

from __future__ import annotations

import html
import importlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from plainrisk import export
from plainrisk._version import __version__
from plainrisk.checks import NOTHING, check_parameters, instance, words
from plainrisk.data.reader import suffix_of
from plainrisk.errors import DataError, PlainriskError
from plainrisk.explain import Certificate, certify
from plainrisk.explain.atoms import value_frame
from plainrisk.explain.contributions import Explainer, explainer
from plainrisk.explain.options import FEATURES, ExplainOptions, ReasonOptions
from plainrisk.explain.reasons import Reasoner, reasoner
from plainrisk.export.c import c_file
from plainrisk.export.engines import Answer, Job, engine_of
from plainrisk.export.from_form import build_program
from plainrisk.export.javascript import javascript_module
from plainrisk.export.python import python_module
from plainrisk.export.self_test import TEST_ROWS, WORKBOOK_ROWS, Row, SelfTest, make_rows
from plainrisk.export.sql import DIALECTS, sql_query, sql_test
from plainrisk.files import SIZE_LIMIT, output_target, parse_json, read_text, replacing, write_text, write_texts
from plainrisk.form import Mixture, RiskForm, form_hash

__all__ = [
    "ENDINGS",
    "Answerer",
    "ExportOptions",
    "Verification",
    "compare_answers",
    "prepare",
    "read_facts",
    "self_test_path",
    "target_of",
    "verify_export",
    "write_export",
    "write_program",
]


@dataclass(frozen=True)
class Answerer:
    """The model's answers: the explainers and the reasoner that an export copies; for mixtures, from zero."""

    explainer: Explainer
    reasoner: Reasoner
    from_zero: Explainer | None

    @classmethod
    def of(cls, form: RiskForm, options: ReasonOptions) -> Answerer:
        """Return the answerer of a form: explanations against the typical applicant, reasons as the options say."""
        explain = ExplainOptions(portfolio=options.portfolio)
        from_zero = explainer(form, ExplainOptions(reference="zero")) if isinstance(form.pool, Mixture) else None
        return cls(explainer(form, explain), reasoner(form, options), from_zero)

    def program(self, facts: Mapping[str, Any], certificate: Certificate) -> export.Program:
        """Return all of it as a program."""
        ranking = self.reasoner.ranking
        return build_program(self.explainer.form, self.explainer.comparison, ranking, facts, certificate)

    def answers(self, program: export.Program, rows: Sequence[Row]) -> SelfTest:
        """Return rows with the model's answers for them."""
        columns = zip(program.inputs, zip(*rows, strict=True), strict=True)
        frame = value_frame({i.feature: values for i, values in columns})
        explained, ranked = self.explainer.explain(frame), self.reasoner.reasons(frame)
        parts = [explained.risk, explained.constant, *explained.by_subscale.values(), *explained.contributions.T]
        if self.from_zero is not None:
            terms = self.from_zero.explain(frame)
            assert terms.part_risks is not None  # those of a pool's experts
            parts += [*terms.part_risks.T, *terms.contributions.T]
        answers: list[Any] = [part.tolist() for part in parts]
        if ranked.refused is not None:
            answers.append(["refused" if refused else "approved" for refused in ranked.refused])
        named = [np.array([*words, None], dtype=object) for words in (ranked.texts, ranked.candidates)]
        for r in range(self.reasoner.ranking.width):
            answers += [named[0][ranked.text_codes[:, r]], named[1][ranked.codes[:, r]]]
            answers.append([None if math.isnan(cost) else cost for cost in ranked.costs[:, r].tolist()])
        answers.append(ranked.withheld.astype(float).tolist())
        return SelfTest(rows, [list(row) for row in zip(*answers, strict=True)])


# ---- writing

# By target: the endings that its file may have.
ENDINGS = {
    "sql": (".sql",),
    "python": (".py",),
    "javascript": (".js", ".mjs"),
    "c": (".c",),
    "onnx": (".onnx",),
    "xlsx": (".xlsx",),
    "pmml": (".pmml", ".xml"),
}


@dataclass(frozen=True)
class ExportOptions:
    """The options of an export.

    Attributes
    ----------
    target : the kind of file; None takes it from the ending of the path
    dialect, table, keep : for SQL: the dialect, the table to read, and its columns to keep in the answer
    k : the largest number of reasons, not above the policy's
    portfolio : rows that define the typical applicant, for lines and curves
    """

    target: str | None = None
    dialect: str | None = None
    table: str = "applicants"
    keep: Sequence[str] = ()
    _: KW_ONLY
    k: int | None = None
    portfolio: Any = None


def write_export(form: RiskForm, path: str | Path, options: ExportOptions) -> None:
    """Write a form as a target; before that, its program has passed the self-test."""
    target = target_of(path) if options.target is None else options.target
    _check(target, path, options)
    facts: dict[str, Any] = {"target": target}
    if target == "sql":
        facts |= {"dialect": options.dialect, "table": options.table, "keep": list(options.keep)}
    write_program(path, *prepare(form, ReasonOptions(options.k, portfolio=options.portfolio), facts))


def target_of(path: str | Path) -> str:
    """Return the format that the extension of a path stands for."""
    ending = Path(path).suffix.lower()
    for target, endings in ENDINGS.items():
        if ending in endings:
            return target
    raise DataError(f"export: {path} must end in {_all_endings()}.")


def write_program(path: str | Path, program: export.Program, test: SelfTest) -> None:
    """Write a program as the target that its facts name."""
    facts = program.facts
    texts = {"python": python_module, "javascript": javascript_module, "c": c_file}
    target = facts["target"]
    if target == "sql":
        query = sql_query(program, facts["dialect"], facts["table"], facts["keep"])
        write_texts({path: query, self_test_path(path): sql_test(program, facts["dialect"], test)})
    elif target in texts:
        write_text(path, texts[target](program, test))
    else:
        module = importlib.import_module(f"plainrisk.export.{target}")
        with replacing(path) as temporary:
            getattr(module, f"write_{target}")(temporary, program, test)


def _check(target: str, path: str | Path, options: ExportOptions) -> None:
    given = {"target": target, "dialect": options.dialect, "table": options.table, "keep": options.keep}
    dialect = words(*DIALECTS) if target == "sql" else NOTHING
    table = {"target": words(*ENDINGS), "dialect": dialect, "table": instance("a text", str), "keep": FEATURES}
    if target == "sql" and options.dialect is None:
        dialects = ", ".join(DIALECTS)
        raise DataError(
            f"export: which SQL? Choose the dialect of your database ({dialects}), such as {_example(path)}"
        )
    check_parameters("export", given, table)
    suffix_of(Path(path), ENDINGS[target], "write")
    output_target(path)


def _example(path: str | Path) -> str:
    first = next(iter(DIALECTS))
    return f"dialect={first!r}, or on the command line: plainrisk export MODEL --dialect {first} -o {path}"


def self_test_path(path: str | Path) -> Path:
    """Return the path of an SQL file's self-test, next to the file: score.test.sql for score.sql."""
    path = Path(path)
    return path.with_name(f"{path.stem}.test{path.suffix}")


def prepare(form: RiskForm, options: ReasonOptions, facts: Mapping[str, Any]) -> tuple[export.Program, SelfTest]:
    """Return the program of a form and its self-test, which the program has passed."""
    certificate: Certificate = certify(form)
    broken = [check.name for check in certificate.checks if not check.holds]
    more_facts: dict[str, Any] = {
        "plainrisk": __version__,
        "form_sha256": form_hash(form),
        "certificate": f"broken: {'; '.join(broken)}" if broken else "valid",
        "adverse": form.schema.adverse,
    }
    if converted := [name for name in form.features if form.schema.features[name].reading is not None]:
        more_facts["converted_by_the_caller"] = converted  # from texts, by the schema's read and null_values
    answerer = Answerer.of(form, options)
    more_facts["k"] = answerer.reasoner.ranking.k
    program = answerer.program({**facts, **more_facts}, certificate)
    module: dict[str, Any] = {"__name__": "export"}
    exec(compile(python_module(program), "export", "exec"), module)
    count = WORKBOOK_ROWS if facts.get("target") == "xlsx" else TEST_ROWS
    rows = make_rows(program, lambda row: _refusing(program, module["find_problem"], row), count)
    test = answerer.answers(program, rows)
    _require_agreement(program, test, module["score"])
    return program, test


def _refusing(program: export.Program, find_problem: Callable[[Mapping[str, Any]], int | None], row: Any) -> str | None:
    problem = find_problem(row)
    return None if problem is None else program.checks[problem].feature


def _require_agreement(program: export.Program, test: SelfTest, score: Callable[[Mapping[str, Any]], Any]) -> None:
    """Compare the program with the model before anything is written."""
    for row, expected in zip(test.rows, test.answers, strict=True):
        answer = score({i.feature: value for i, value in zip(program.inputs, row, strict=True)})
        far = max(difference(answer[o.name], value) for o, value in zip(program.outputs, expected, strict=True))
        if far > 1e-12:
            raise PlainriskError("export: the program does not agree with the model. This is a bug in plainrisk.")


def difference(answer: float | str | None, expected: float | str | None) -> float:
    """Return the distance between an answer and the model's; infinity if they are not both numbers and not equal."""
    if isinstance(answer, float | int) and isinstance(expected, float | int):
        distance = abs(answer - expected)
        return math.inf if math.isnan(distance) else distance
    return 0.0 if answer == expected else math.inf


# ---- verifying


@dataclass(frozen=True)
class Verification:
    """How well an export agrees with its model.

    Attributes
    ----------
    target : str
    engine : the runtime that ran it
    rows : the number of rows compared; 0 if the export was only parsed
    largest : the largest difference of a risk, a contribution or a cost
    bit_equal : whether all risks have the same bits
    reasons : the number of rows in which the reasons, their features or the number withheld differ
    decisions : the number of rows in which the decision differs
    """

    target: str
    engine: str
    rows: int
    largest: float
    bit_equal: bool
    reasons: int
    decisions: int

    @property
    def agrees(self) -> bool | None:
        """Whether numbers agree to 1e-12 and all reasons and decisions are the same; None if nothing was run."""
        return None if self.rows == 0 else self.largest <= 1e-12 and self.reasons == 0 and self.decisions == 0


def verify_export(path: str | Path, model: Any, *, portfolio: Any = None) -> Verification:
    """Run an export on rows made from the model's levels, and compare its answers with the model's.

    The file is executed as a program or a query, so use only files that you trust.

    Parameters
    ----------
    path : str or Path
        A file written by `model.export`.
    model : fitted estimator or RiskModel
    portfolio : rows, default=None
        Those given to `model.export`, if any.

    Returns
    -------
    Verification
        Its `agrees` is the verdict.

    Raises
    ------
    DataError
        If the file is no export, or one of another model.
    MissingExtraError
        If its runtime is not installed.

    Examples
    --------
    >>> import tempfile
    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german")
    >>> model = pr.make_classifier("SmoothARM1", german.schema).fit(german.frame, german.target)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.export(f"{folder}/score.sql", dialect="sqlite")
    ...     check = pr.verify_export(f"{folder}/score.sql", model)
    >>> check.agrees, check.engine, check.rows
    (True, 'SQLite', 100)
    """
    model._require_form()
    form: RiskForm = model.form_
    facts = read_facts(path)
    if facts["form_sha256"] != form_hash(form):
        raise DataError(f"verify_export: {path} is an export of another model: the hash of its form differs.")
    options = ReasonOptions(facts["k"], portfolio=portfolio)
    program, test = prepare(form, options, {n: facts[n] for n in ("target", "dialect", "table", "keep") if n in facts})
    engine, run = engine_of(facts)
    (answers,) = run([Job(Path(path), program, test.rows)])
    return compare_answers(facts["target"], engine, program, test, answers)


def compare_answers(
    target: str, engine: str, program: export.Program, test: SelfTest, answers: Sequence[Answer]
) -> Verification:
    """Compare the answers of an engine with the model's."""
    if not answers:
        return Verification(target, engine, 0, 0.0, False, 0, 0)
    largest, wrong = 0.0, {"reasons": set[int](), "decisions": set[int]()}
    for n, (answer, expected) in enumerate(zip(answers, test.answers, strict=True)):
        for o, value in zip(program.outputs, expected, strict=True):
            far = difference(answer[o.name], value)
            if o.words or o.there or o.name == "withheld":
                if far > 1e-12:
                    wrong["decisions" if o.name == "decision" else "reasons"].add(n)
                far = 0.0 if math.isinf(far) else far
            largest = max(largest, far)
    return Verification(
        target=target,
        engine=engine,
        rows=len(answers),
        largest=largest,
        bit_equal=all(answer["risk"] == expected[0] for answer, expected in zip(answers, test.answers, strict=True)),
        reasons=len(wrong["reasons"]),
        decisions=len(wrong["decisions"]),
    )


def read_facts(path: str | Path) -> dict[str, Any]:
    """Return the facts that an export states about itself."""
    ending = Path(path).suffix.lower()
    target = next((name for name, endings in ENDINGS.items() if ending in endings), None)
    if target is None:
        raise DataError(f"verify_export: {path} has no ending of an export ({_all_endings()}).")
    if target in ("onnx", "xlsx"):
        facts = importlib.import_module(f"plainrisk.export.{target}").read_facts(path)
    else:
        text = read_text(path, limit=SIZE_LIMIT, error=DataError)
        match = re.search(r"plainrisk export (\{.*\})", text)
        facts = parse_json(html.unescape(match[1]), dict, path, DataError, "an export") if match else {}
    if not isinstance(facts, dict) or "form_sha256" not in facts or facts.get("target") != target:
        raise DataError(f"verify_export: {path} is not an export of plainrisk.")
    return facts


def _all_endings() -> str:
    return ", ".join(ending for endings in ENDINGS.values() for ending in endings)
