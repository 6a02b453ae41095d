"""PMML 4.4: a Scorecard in probability.

Its initial score is the risk of the typical applicant, and the partial score of a feature is its contribution: the
Scorecard's score is the risk. All answers are output fields. The Scorecard's own reason codes are turned off:
evaluators rank them in their own ways, disagree about costs of 0, and would name protected features.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from plainrisk.export import expression as ex
from plainrisk.export.code import digits
from plainrisk.export.self_test import SelfTest

__all__ = ["write_pmml"]

NAMESPACE = "http://www.dmg.org/PMML-4_4"
_COMPARES = {"<": "lessThan", "<=": "lessOrEqual", ">": "greaterThan", ">=": "greaterOrEqual", "==": "equal"}


def node(tag: str, *children: Element, **attributes: str) -> Element:
    """Return an element."""
    made = Element(tag, attributes)
    made.extend(children)
    return made


def apply(function: str, *arguments: Element) -> Element:
    """Return the call of a built-in function."""
    return node("Apply", *arguments, function=function)


def constant(value: float | str) -> Element:
    """Return a constant."""
    made = node("Constant", dataType="string" if isinstance(value, str) else "double")
    made.text = value if isinstance(value, str) else digits(value)
    return made


def _cell(column: str, value: float | str) -> Element:
    made = node(column)
    made.text = value if isinstance(value, str) else digits(value)
    return made


def _given(attributes: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in attributes.items() if value}


class _Printer:
    """Prints expressions as elements; steps have a prefix, so that no feature has their name."""

    def __init__(self, program: ex.Program) -> None:
        self.fields = {i.id: i.feature for i in program.inputs}

    def show(self, e: ex.Expr) -> Element:
        """Return an expression as an element."""
        if isinstance(e, ex.If):
            return apply("if", self.show(e.condition), self.show(e.then), self.show(e.other))
        made = getattr(self, type(e).__name__.lower())(e)
        assert isinstance(made, Element)
        return made

    def field(self, id: str) -> str:
        """Return the name of the field of an input or a step."""
        return self.fields.get(id, f"plainrisk.{id}")

    def name(self, e: ex.Name) -> Element:
        return node("FieldRef", field=self.field(e.id))

    def number(self, e: ex.Number) -> Element:
        return constant(e.value)

    def text(self, e: ex.Text) -> Element:
        return constant(e.value)

    def op(self, e: ex.Op) -> Element:
        return apply(_COMPARES.get(e.symbol, e.symbol), self.show(e.a), self.show(e.b))

    def call(self, e: ex.Call) -> Element:
        first = e.values[0]
        if e.function == "max" and len(e.values) == 1:
            return self.show(first)
        element = apply(e.function, *map(self.show, e.values))
        # Some evaluators refuse the absolute value of a missing input.
        is_input = e.function == "abs" and isinstance(first, ex.Name) and first.id in self.fields
        return self._unless_missing(first, ex.Number(0.0), element) if is_input else element

    def clip(self, e: ex.Clip) -> Element:
        x = self.show(e.x)
        x = x if math.isinf(e.low) else apply("max", x, constant(e.low))
        return apply("min", x, constant(e.high))

    def cells(self, e: ex.Cells) -> Element:
        """Bins if the values are numbers, else branches by halving."""
        values = [v.value for v in e.values if isinstance(v, ex.Number)]
        if e.cuts and not e.open and len(values) == len(e.values):
            element = self._bins(e, values)
        else:
            element = self._halve(self.show(e.x), e.cuts, e.values, "lessThan" if e.open else "lessOrEqual")
        return element if e.missing is None else self._unless_missing(e.x, e.missing, element)

    def _unless_missing(self, x: ex.Expr, missing: ex.Expr, found: Element) -> Element:
        return apply("if", apply("isMissing", self.show(x)), self.show(missing), found)

    def _bins(self, e: ex.Cells, values: Sequence[float | str]) -> Element:
        kind = "string" if isinstance(values[0], str) else "double"
        made = node("Discretize", field=self.field(e.x.id), dataType=kind)
        for (left, right), value in zip(itertools.pairwise(["", *map(digits, e.cuts), ""]), values, strict=True):
            ends = {"leftMargin": left, "rightMargin": right}
            interval = node("Interval", closure="openClosed" if right else "openOpen", **_given(ends))
            made.append(node("DiscretizeBin", interval, binValue=value if isinstance(value, str) else digits(value)))
        return made

    def _halve(self, x: Element, cuts: Sequence[float], values: Sequence[ex.Expr], less: str) -> Element:
        if not cuts:
            return self.show(values[0])
        m = len(cuts) // 2
        return apply(
            "if",
            apply(less, x, constant(cuts[m])),
            self._halve(x, cuts[:m], values[: m + 1], less),
            self._halve(x, cuts[m + 1 :], values[m + 1 :], less),
        )

    def labels(self, e: ex.Labels) -> Element:
        rows = []
        for label, value in e.values.items():
            rows.append(node("row", _cell("label", label), _cell("value", value.value)))
        if not rows:
            return self._unless_missing(e.x, e.missing, self.show(e.unseen))
        pair = node("FieldColumnPair", field=self.field(e.x.id), column="label")
        more = {"outputColumn": "value", "defaultValue": digits(e.unseen.value), "dataType": "double"}
        return self._unless_missing(e.x, e.missing, node("MapValues", pair, node("InlineTable", *rows), **more))

    def table(self, e: ex.Table) -> Element:
        """A table by index, by halving; rows of a table of tables are tables themselves."""
        cuts = [n + 0.5 for n in range(len(e.values) - 1)]
        texts = [v.value for v in e.values if isinstance(v, ex.Text)]
        if texts and isinstance(e.index, ex.Name):
            # In attributes, because PMML4S drops the text before an emoji in an element.
            return self._bins(ex.Cells(e.index, tuple(cuts), (), None), texts)
        return self._halve(self.show(e.index), cuts, e.values, "lessThan")

    def position(self, e: ex.Position) -> Element:
        element = constant(float(len(e.values) - 1))
        for n, v in reversed(list(enumerate(e.values[:-1]))):
            element = apply("if", apply("equal", self.show(v), self.show(e.x)), constant(float(n)), element)
        return element


def write_pmml(path: Path, program: ex.Program, test: SelfTest) -> None:
    """Write the document."""
    ex.refuse_characters(program, r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]", "XML")
    document = node(
        "PMML",
        node(
            "Header",
            node("Extension", name="plainrisk", value=program.head),
            node("Application", name="plainrisk", version=str(program.facts["plainrisk"])),
        ),
        _dictionary(program),
        _scorecard(program, test),
        version="4.4",
        xmlns=NAMESPACE,
    )
    ElementTree.indent(document, " ")
    path.write_bytes(ElementTree.tostring(document, encoding="utf-8", xml_declaration=True) + b"\n")


def _kind(is_text: bool) -> dict[str, str]:
    return {"optype": "categorical" if is_text else "continuous", "dataType": "string" if is_text else "double"}


def _dictionary(program: ex.Program) -> Element:
    fields = [node("DataField", name=i.feature, **_kind(i.is_text)) for i in program.inputs]
    return node("DataDictionary", *fields, numberOfFields=str(len(fields)))


def _scorecard(program: ex.Program, test: SelfTest) -> Element:
    printer = _Printer(program)
    steps = (*program.steps, ex.Step("problem", _problem(program)))
    derived = [
        node("DerivedField", printer.show(step.value), name=printer.field(step.id), **_kind(False)) for step in steps
    ]
    mining = [node("MiningField", name=i.feature, invalidValueTreatment="asIs") for i in program.inputs]
    return node(
        "Scorecard",
        node("MiningSchema", *mining),
        node("Output", *_outputs(program, printer)),
        node("LocalTransformations", *derived),
        node("Characteristics", *_characteristics(program, printer)),
        _verification(program, test),
        modelName="plainrisk",
        functionName="regression",
        initialScore=digits(_typical(program)),
        useReasonCodes="false",
    )


def _problem(program: ex.Program) -> ex.Expr:
    """The number of the first problem, from 1, or 0."""
    number: ex.Expr = ex.Number(0.0)
    for n, check in reversed(list(enumerate(program.checks, 1))):
        number = ex.If(check.condition, ex.Number(float(n)), number)
    return number


def _outputs(program: ex.Program, printer: _Printer) -> Iterator[Element]:
    """Yield the answers, which are missing if there is a problem."""
    good = ex.Name("problem").equals(0.0)

    def output(name: str, condition: ex.Expr, value: ex.Expr, is_text: bool) -> Element:
        made = apply("if", printer.show(condition), printer.show(value))
        return node("OutputField", made, name=f"plainrisk_{name}", feature="transformedValue", **_kind(is_text))

    yield node("OutputField", name="score", feature="predictedValue", **_kind(False))
    for o in program.outputs:
        there = good & (ex.Name(o.there) >= 0.0) if o.there else good
        value: ex.Expr = ex.Table(ex.Name(o.step), tuple(map(ex.Text, o.words))) if o.words else ex.Name(o.step)
        yield output(o.name, there, value, bool(o.words))
    if program.checks:
        messages = (ex.Text(""), *(ex.Text(check.message) for check in program.checks))
        yield output("problem", ex.Name("problem") > 0.0, ex.Table(ex.Name("problem"), messages), True)


def _typical(program: ex.Program) -> float:
    """The risk of the typical applicant, which is a constant."""
    typical = next(o.step for o in program.outputs if o.name == "typical_risk")
    return next(s.value.value for s in program.steps if s.id == typical and isinstance(s.value, ex.Number))


def _characteristics(program: ex.Program, printer: _Printer) -> Iterator[Element]:
    """Yield what each feature or pair adds to the risk of the typical applicant."""
    for n, o in enumerate(program.outputs_of("part_"), 1):
        score = node("ComplexPartialScore", printer.show(ex.Name(o.step)))
        yield node("Characteristic", node("Attribute", node("True"), score), name=f"{n}. {o.title}")


def _verification(program: ex.Program, test: SelfTest) -> Element:
    """The self-test: inputs, and the answers that an evaluator must give."""
    fields = [i.feature for i in program.inputs] + [f"plainrisk_{o.name}" for o in program.outputs]
    columns = [f"c{n}" for n in range(len(fields))]
    pairs = [
        node("VerificationField", field=field, column=column, precision="1E-12", zeroThreshold="1E-12")
        for field, column in zip(fields, columns, strict=True)
    ]
    rows = []
    for values in zip(test.rows, test.answers, strict=True):
        row = node("row")
        for column, value in zip(columns, itertools.chain(*values), strict=True):
            if value is not None:
                row.append(_cell(column, value))
        rows.append(row)
    table = node("InlineTable", *rows)
    return node(
        "ModelVerification",
        node("VerificationFields", *pairs),
        table,
        recordCount=str(len(rows)),
        fieldCount=str(len(fields)),
    )
