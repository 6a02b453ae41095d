"""Exports of a model, with its explanations and reasons, and the proof that they agree with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from plainrisk import export
from plainrisk._version import __version__
from plainrisk.errors import PlainriskError
from plainrisk.explain import Certificate, certify
from plainrisk.explain.atoms import value_frame
from plainrisk.explain.contributions import MOST, Explainer, explainer
from plainrisk.explain.options import ExplainOptions, ReasonOptions
from plainrisk.explain.reasons import NOTHING, Reasoner, reasoner
from plainrisk.export.from_form import Comparison, Ranking, build_program
from plainrisk.export.python import python_module
from plainrisk.export.self_test import Row, SelfTest, make_rows
from plainrisk.form import RiskForm, form_hash

__all__ = ["Answerer", "prepare"]


@dataclass(frozen=True)
class Answerer:
    """What the model itself says: the explainer and the reasoner that an export copies."""

    explainer: Explainer
    reasoner: Reasoner

    @classmethod
    def of(cls, form: RiskForm, options: ReasonOptions) -> Answerer:
        """Return the answerer of a form: explanations against the typical applicant, reasons as the options say."""
        explain = ExplainOptions(portfolio=options.portfolio, adverse=options.adverse)
        return cls(explainer(form, explain), reasoner(form, options))

    def program(self, facts: Mapping[str, Any]) -> export.Program:
        """Return all of it as a program."""
        r = self.reasoner
        ranking = Ranking(
            comparison=_comparison(r.explainer),
            candidates=r.candidates,
            subscales=r.subscales,
            words=r.texts.words,
            base=r.texts.base,
            by_level=r.texts.by_level,
            shared=r.texts.shared(),
            barred=r.barred,
            k=r.most,
            sign=r.options.sign,
            by_subscale=r.options.order == "subscale",
            least=NOTHING,
            most=MOST,
        )
        return build_program(self.explainer.form, _comparison(self.explainer), ranking, facts)

    def answers(self, program: export.Program, rows: Sequence[Row]) -> SelfTest:
        """Return rows with what the model says of them."""
        columns = zip(program.inputs, zip(*rows, strict=True), strict=True)
        frame = value_frame({i.feature: values for i, values in columns})
        explained, found = self.explainer.explain(frame), self.reasoner.reasons(frame)
        parts = [explained.risk, explained.constant, *explained.by_subscale.values(), *explained.contributions.T]
        k = program.rank.k
        texts, names = (np.array([*words, None], dtype=object) for words in (found.texts, found.candidates))
        return SelfTest(
            rows=rows,
            numbers=np.column_stack(parts).tolist(),
            reasons=texts[found.text_codes[:, :k]].tolist(),
            features=names[found.codes[:, :k]].tolist(),
        )


def _comparison(explain: Explainer) -> Comparison:
    form, reference = explain.form, explain.reference
    return Comparison(reference.points, reference.score(form), reference.risk(form), explain.keys)


def prepare(
    form: RiskForm, options: ReasonOptions, facts: Mapping[str, Any]
) -> tuple[export.Program, SelfTest]:
    """Return the program of a form and its self-test, which the program has passed."""
    certificate: Certificate = certify(form)
    broken = [check.name for check in certificate.checks if not check.holds]
    known = {
        "plainrisk": __version__,
        "form_sha256": form_hash(form),
        "certificate": f"broken: {'; '.join(broken)}" if broken else "valid",
        "k": int(options.k),
        "adverse": options.adverse,
        "order": options.order,
        "barred": list(options.barred),
    }
    answerer = Answerer.of(form, options)
    program = answerer.program({**facts, **known})
    module: dict[str, Any] = {"__name__": "export"}
    exec(compile(python_module(program), "export", "exec"), module)
    rows = make_rows(program, lambda row: _refusing(program, module["find_problem"], row))
    test = answerer.answers(program, rows)
    _require_agreement(program, test, module["score"])
    return program, test


def _refusing(program: export.Program, find_problem: Callable[[Mapping[str, Any]], int | None], row: Any) -> str | None:
    found = find_problem(row)
    return None if found is None else program.checks[found].feature


def _require_agreement(program: export.Program, test: SelfTest, score: Callable[[Mapping[str, Any]], Any]) -> None:
    """Compare the program with the model before anything is written."""
    names = [o.name for o in program.outputs]
    for row, numbers, reasons in zip(test.rows, test.numbers, test.reasons, strict=True):
        found = score({i.feature: value for i, value in zip(program.inputs, row, strict=True)})
        far = max(abs(found[name] - wanted) for name, wanted in zip(names, numbers, strict=True))
        if far > 1e-12 or [found[f"reason_{r}"] for r in range(1, program.rank.k + 1)] != reasons:
            raise PlainriskError("export: the program does not agree with the model. This is a bug in plainrisk.")
