"""The Open Inference Protocol, version 2, by which platforms that serve models of many kinds ask for risks."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import numpy as np

from plainrisk._version import __version__
from plainrisk.data.frame import Frame, as_frame
from plainrisk.errors import DataError
from plainrisk.serve.served import Served

__all__ = ["infer", "model_metadata", "read_inference", "server_metadata"]

Scalar = float | int | bool | str | None


class Tensor(msgspec.Struct, frozen=True):
    """One input: a feature's values."""

    name: str
    shape: tuple[int, ...]
    datatype: Literal["FP64", "FP32", "INT64", "INT32", "INT16", "INT8", "UINT8", "UINT16", "UINT32", "BOOL", "BYTES"]
    data: list[Scalar]


class Inference(msgspec.Struct, frozen=True):
    """A request; its parameters are ignored."""

    inputs: list[Tensor]
    id: str | None = None


_DECODER = msgspec.json.Decoder(Inference)


def read_inference(body: bytes) -> Inference:
    """Read a request; errors name the field, never a value."""
    try:
        return _DECODER.decode(body)
    except msgspec.ValidationError as error:
        raise DataError(f"{error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise DataError("The body is not JSON of the Open Inference Protocol: send an object with 'inputs'.") from None


def rows_of(served: Served, request: Inference) -> Frame:
    """Return the inputs as columns of the same length, one for every feature."""
    given = {tensor.name: tensor for tensor in request.inputs}
    if len(given) < len(request.inputs):
        raise DataError("Two inputs have the same name.")
    absent = [name for name in served.requests.features if name not in given]
    if absent:
        raise DataError(f"There is no input {absent[0]!r}: send one for every feature, {len(absent)} are missing.")
    length = len(given[served.requests.features[0]].data)
    for name in served.requests.features:
        tensor = given[name]
        shape = tensor.shape
        if len(tensor.data) != length or shape not in ((length,), (length, 1)):
            raise DataError(
                f"Input {name!r} must have the shape [{length}] and as many values, as the first input has."
            )
        is_number = served.model.form_.schema.features[name].written == "continuous"
        if is_number and any(isinstance(value, str | bool) for value in tensor.data):
            raise DataError(f"Input {name!r} is a number: send FP64, with null for missing.")
    if length == 0:
        raise DataError("The inputs have no rows.")
    return as_frame({name: given[name].data for name in served.requests.features})


def infer(served: Served, request: Inference) -> dict[str, Any]:
    """Return the risks as the protocol has them."""
    risk = np.asarray(served.model.form_.risk(rows_of(served, request)))
    response: dict[str, Any] = {
        "model_name": served.name,
        "model_version": served.sha256,
        "outputs": [{"name": "risk", "shape": [len(risk)], "datatype": "FP64", "data": risk.tolist()}],
    }
    return response if request.id is None else {**response, "id": request.id}


def model_metadata(served: Served) -> dict[str, Any]:
    """Describe the inputs and outputs of a model as the protocol has it."""
    features = served.model.form_.schema.features
    kinds = {name: "FP64" if features[name].kind == "continuous" else "BYTES" for name in served.requests.features}
    return {
        "name": served.name,
        "versions": [served.sha256],
        "platform": "plainrisk",
        "inputs": [{"name": name, "shape": [-1], "datatype": kind} for name, kind in kinds.items()],
        "outputs": [{"name": "risk", "shape": [-1], "datatype": "FP64"}],
    }


def server_metadata() -> dict[str, Any]:
    """Describe the server as the protocol has it."""
    return {"name": "plainrisk", "version": __version__, "extensions": []}
