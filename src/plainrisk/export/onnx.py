"""An ONNX graph in double precision: named inputs of shape (rows, 1) to risk, contributions and reasons.

A missing number is NaN and a missing text "", since ONNX has no missing text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from plainrisk.errors import DataError, missing_extra
from plainrisk.export import expression as ex
from plainrisk.export.self_test import SelfTest

__all__ = ["group_of", "read_facts", "write_onnx"]

OPSET, ML_OPSET, IR = 18, 4, 8
_OPS = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div", "and": "And", "or": "Or"}
_OPS |= {"<": "Less", "<=": "LessOrEqual", ">": "Greater", ">=": "GreaterOrEqual", "==": "Equal"}


class _Graph(ex.Printer):
    """Collects nodes; `show` returns the name of an expression's tensor, of shape (rows, 1)."""

    def __init__(self, program: ex.Program) -> None:
        self.nodes: list[Any] = []
        self.counts: dict[tuple[str, tuple[float, ...], bool], str] = {}
        self.constants: dict[tuple[str, bytes, tuple[int, ...]], Any] = {}
        self.named = {i.id: i.feature for i in program.inputs}
        first = self.node("Shape", program.inputs[0].feature)
        self.ones = self.node("Expand", self.constant([[1.0]]), first)

    def node(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """Add a node and return its first output; the other outputs get derived names."""
        from onnx import helper

        id = f"plainrisk/{len(self.nodes)}"
        names = [id, *(f"{id}/{n}" for n in range(1, outputs))]
        domain = "ai.onnx.ml" if kind in ("LabelEncoder", "TreeEnsembleRegressor") else ""
        self.nodes.append(helper.make_node(kind, list(inputs), names, domain=domain, **attributes))
        return id

    def constant(self, values: Any, kind: Any = np.float64) -> str:
        """Return the name of a constant tensor."""
        from onnx import numpy_helper

        array = np.asarray(values, dtype=kind)
        key = (str(kind), repr(array.tolist()).encode(), array.shape)
        if key not in self.constants:
            self.constants[key] = numpy_helper.from_array(array, f"plainrisk/constant/{len(self.constants)}")
        return str(self.constants[key].name)

    def strings(self, texts: Sequence[str]) -> str:
        """Return the name of a constant tensor of texts."""
        return self.constant(np.array(texts, dtype=object), object)

    # ---- expressions

    def name(self, e: ex.Name) -> str:
        return self.named[e.id]

    def number(self, e: ex.Number) -> str:
        return self.constant([[e.value]])

    def op(self, e: ex.Op) -> str:
        return self.node(_OPS[e.symbol], self.show(e.a), self.show(e.b))

    def call(self, e: ex.Call) -> str:
        return self.node(e.function.title(), *map(self.show, e.values))

    def clip(self, e: ex.Clip) -> str:
        ends = [self.constant(end) if math.isfinite(end) else "" for end in (e.low, e.high)]
        return self.node("Clip", self.show(e.x), *ends)

    def where(self, condition: str, then: str, other: str) -> str:
        return self.node("Where", condition, then, other)

    def cells(self, e: ex.Cells) -> str:
        """Find the cell of a number: by a search among its cuts, or by one branch after the other."""
        x = self.show(e.x)
        less = "LessOrEqual" if e.open else "Less"
        numbers = [v.value for v in e.values if isinstance(v, ex.Number)]
        if len(numbers) == 1 and not e.cuts:
            tensor = self._like(x, numbers[0])
        elif len(numbers) == len(e.values):
            tensor = self.node("Gather", self.constant(numbers), self._count(x, e.cuts, e.open))
        else:
            tensor = self.show(e.values[-1])
            for cut, value in reversed(list(zip(e.cuts, e.values, strict=False))):
                beyond = self.node(less, self.constant([[cut]]), x)
                tensor = self.where(beyond, tensor, self.show(value))
        return tensor if e.missing is None else self.where(self.node("IsNaN", x), self.show(e.missing), tensor)

    def _count(self, x: str, cuts: Sequence[float], open: bool) -> str:
        """The number of cuts below x, by a search tree; comparing x with every cut would take rows times cuts cells."""
        key = (x, tuple(cuts), open)
        if key not in self.counts:
            tree = self.node("TreeEnsembleRegressor", x, **_search_tree(cuts, "BRANCH_LT" if open else "BRANCH_LEQ"))
            self.counts[key] = self.node("Cast", tree, to=7)
        return self.counts[key]

    def _like(self, x: str, value: float) -> str:
        """A constant for every row of a tensor."""
        shape = self.node("Shape", x)
        return self.node("Expand", self.constant([[value]]), shape)

    def labels(self, e: ex.Labels) -> str:
        from onnx import numpy_helper

        if "" in e.values:
            raise DataError(
                f"export: feature {self.named[e.x.id]!r} has the category '', which ONNX cannot tell from missing. "
                "Rename the category, or export another target (sql, python, javascript, c)."
            )
        values = {"": e.missing, **e.values}
        return self.node(
            "LabelEncoder",
            self.show(e.x),
            keys_tensor=numpy_helper.from_array(np.array(list(values), dtype=object)),
            values_tensor=numpy_helper.from_array(np.array([v.value for v in values.values()])),
            default_tensor=numpy_helper.from_array(np.array([e.unseen.value])),
        )

    def table(self, e: ex.Table) -> str:
        index = self.show(e.index)
        constants, width, second = e.flat
        if not constants:
            return self.node("GatherElements", self.matrix(e.values), self.node("Cast", index, to=7), axis=1)
        if second is not None:
            start = self.node("Mul", index, self.constant([[float(width)]]))
            index = self.node("Add", start, self.show(second))
        return self.node("Gather", self.constant(constants), self.node("Cast", index, to=7))

    def if_(self, e: ex.If) -> str:
        return self.where(self.show(e.condition), self.show(e.then), self.show(e.other))

    def position(self, e: ex.Position) -> str:
        same = self.node("Equal", self.matrix(e.values), self.show(e.x))
        first = self.node("ArgMax", self.node("Cast", same, to=6), axis=1)
        last = self.constant([[float(len(e.values) - 1)]])
        some = self.node(
            "Cast", self.node("ReduceMax", self.node("Cast", same, to=6), self.constant([1], np.int64)), to=9
        )
        return self.where(some, self.node("Cast", first, to=11), last)

    def matrix(self, values: Sequence[ex.Expr]) -> str:
        """Return values as columns, (rows, values); constants get as many rows as the others."""
        return self.node("Concat", *(self.node("Mul", self.show(v), self.ones) for v in values), axis=1)


def _search_tree(cuts: Sequence[float], mode: str) -> dict[str, Any]:
    """Return the attributes of a balanced tree that counts the cuts below a number; it compares doubles."""
    from onnx import numpy_helper

    nodes: list[tuple[str, float, int, int]] = []  # mode, cut, the next node if true and if false
    leaves: dict[int, float] = {}

    def grow(low: int, high: int) -> int:
        at, middle = len(nodes), (low + high) // 2
        nodes.append(("LEAF", 0.0, 0, 0))
        if low == high:
            leaves[at] = low
        else:
            nodes[at] = (mode, cuts[middle], grow(low, middle), grow(middle + 1, high))
        return at

    grow(0, len(cuts))
    modes, values, true, false = map(list, zip(*nodes, strict=True))
    return {
        "n_targets": 1,
        "nodes_treeids": [0] * len(nodes),
        "nodes_nodeids": list(range(len(nodes))),
        "nodes_featureids": [0] * len(nodes),
        "nodes_modes": modes,
        "nodes_values_as_tensor": numpy_helper.from_array(np.array(values, dtype=np.float64)),
        "nodes_truenodeids": true,
        "nodes_falsenodeids": false,
        "target_treeids": [0] * len(leaves),
        "target_nodeids": list(leaves),
        "target_ids": [0] * len(leaves),
        "target_weights_as_tensor": numpy_helper.from_array(np.array(list(leaves.values()), dtype=np.float64)),
    }


def write_onnx(path: Path, program: ex.Program, test: SelfTest) -> None:
    """Write the model."""
    path.write_bytes(onnx_model(program, test))


def read_facts(path: str | Path) -> Any:
    """Return the facts that a model states about itself."""
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise missing_extra("onnx", "export") from None
    try:
        props = {p.key: p.value for p in onnx.load(str(path)).metadata_props}
        return json.loads(props.get("plainrisk export", "{}"))
    except (OSError, ValueError, DecodeError) as error:
        raise DataError(f"{path} cannot be read as an ONNX model: {error}") from None


def onnx_model(program: ex.Program, test: SelfTest) -> bytes:
    """Return the model's bytes; its metadata contain the facts, the column names and the self-test."""
    try:
        import onnx
        from onnx import TensorProto, helper
    except ImportError:
        raise missing_extra("onnx", "export") from None
    clash = {i.feature for i in program.inputs} & {"problem", *(group_of(o.name) for o in program.outputs)}
    if clash:
        raise DataError(f"export: {min(clash)!r} is the name of an output of the ONNX model. Rename the feature.")
    graph = _Graph(program)
    for step in program.steps:
        graph.named[step.id] = graph.show(step.value)
    columns, texts = _answers(graph, program)
    for name, tensor in columns.items():
        graph.nodes.append(helper.make_node("Identity", [tensor], [name]))
    kinds = {name: TensorProto.STRING if name in texts else TensorProto.DOUBLE for name in columns}
    inputs = [
        helper.make_tensor_value_info(i.feature, TensorProto.STRING if i.is_text else TensorProto.DOUBLE, ["rows", 1])
        for i in program.inputs
    ]
    outputs = [helper.make_tensor_value_info(name, kinds[name], ["rows", None]) for name in columns]
    made = helper.make_graph(graph.nodes, "plainrisk", inputs, outputs, list(graph.constants.values()))
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    model = helper.make_model(made, opset_imports=opsets, ir_version=IR, producer_name="plainrisk")
    helper.set_model_props(model, {name: json.dumps(value) for name, value in _metadata(program, test).items()})
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString(deterministic=True))


def _metadata(program: ex.Program, test: SelfTest) -> dict[str, Any]:
    return {
        "plainrisk export": dict(program.facts),
        "subscales": [o.title for o in program.outputs if o.name.startswith("subscale_")],
        "contributions": [o.title for o in program.outputs if o.name.startswith("part_")],
        "experts": [o.title for o in program.outputs if o.name.startswith("expert_")],
        "self_test": {"outputs": [o.name for o in program.outputs], "rows": test.rows, "answers": test.answers},
    }


def group_of(name: str) -> str:
    """Return the tensor that contains an output; outputs of the same kind share a tensor."""
    kinds = {"subscale": "subscales", "part": "contributions", "cost": "costs", "reason": "reasons"}
    kinds |= {"expert": "experts", "share": "shares"}
    kind = "reason_feature" if name.startswith("reason_feature_") else name.partition("_")[0]
    return "reason_features" if kind == "reason_feature" else kinds.get(kind, name)


def _answers(graph: _Graph, program: ex.Program) -> tuple[dict[str, str], set[str]]:
    """Return the tensor of every output, and which are texts; rows with a problem have NaN and ""."""
    none = graph.constant([[len(program.checks)]], np.int64)
    message = graph.node("Mul", none, graph.node("Cast", graph.ones, to=7))
    for n, check in reversed(list(enumerate(program.checks))):
        message = graph.where(graph.show(check.condition), graph.constant([[n]], np.int64), message)
    good = graph.node("Equal", message, none)
    columns: dict[str, list[ex.Output]] = {}
    for o in program.outputs:
        columns.setdefault(group_of(o.name), []).append(o)
    tensors = {name: _columns(graph, outputs, good) for name, outputs in columns.items()}
    texts = graph.strings([*(c.message for c in program.checks), ""])
    tensors["problem"] = graph.node("Gather", texts, message)
    return tensors, {"problem", *(name for name, outputs in columns.items() if outputs[0].words)}


def _columns(graph: _Graph, outputs: Sequence[ex.Output], good: str) -> str:
    """Return outputs of one kind side by side: numbers, or texts by their numbers."""
    values = graph.matrix([ex.Name(o.step) for o in outputs])
    if outputs[0].there:
        there = graph.matrix([ex.Name(o.there) for o in outputs])
        good = graph.node("And", good, graph.node("GreaterOrEqual", there, graph.constant([[0.0]])))
    words = outputs[0].words
    if not words:
        return graph.where(good, values, graph.constant([[math.nan]]))
    at = graph.node("Cast", graph.where(good, values, graph.constant([[float(len(words))]])), to=7)
    return graph.node("Gather", graph.strings([*words, ""]), at)
