"""The service's OpenAPI 3.1 description, made from the schemas of its models, with examples ready to send."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from plainrisk._version import __version__
from plainrisk.errors import DataError
from plainrisk.serve.answers import answer, values_of
from plainrisk.serve.requests import ARROW, JSON, VERBS
from plainrisk.serve.served import Served
from plainrisk.serve.settings import Settings

__all__ = ["document"]

SUMMARIES = {
    "score": "The risk of every row",
    "decide": "Who is approved and who is refused, with reasons in words and the letter",
    "explain": "What every subscale and feature contributes to the risk of each row",
    "reasons": "The reasons against each row, ranked, in words",
    "what-if": "The cheapest changes that bring each row to a target, proved to be the cheapest",
}
LOOKS = {
    "/health/live": "Whether the process answers",
    "/health/ready": "Whether requests should be sent here",
    "/v2": "The server, by the Open Inference Protocol",
    "/v2/health/live": "Whether the process answers, by the Open Inference Protocol",
    "/v2/health/ready": "Whether requests should be sent here, by the Open Inference Protocol",
}
RECEIPT = {
    "name": "receipt",
    "in": "query",
    "description": "1 adds a signed receipt to every decision",
    "schema": {"type": "string", "enum": ["0", "1"]},
}
PROBLEM = {
    "type": "object",
    "required": ["title", "status", "detail"],
    "properties": {"title": {"type": "string"}, "status": {"type": "integer"}, "detail": {"type": "string"}},
}


def document(models: Sequence[Served], settings: Settings) -> dict[str, Any]:
    """Return the description of all paths, for the models served now."""
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {"Problem": PROBLEM}
    for i, served in enumerate(models):
        prefix = f"/models/{_segment(served.name)}"
        for path, item in _paths(served, prefix, f"m{i}_", schemas, settings.receipt_key is not None):
            paths[path] = item
            if i == 0 and not path.startswith("/v2"):
                paths[path.removeprefix(prefix) or "/"] = _named(item, "first_")
    for path, summary in LOOKS.items():
        paths[path] = {"get": _get(summary, path, may_wait=path.endswith("ready"))}
    paths["/metrics"] = {"get": _get("Counters for Prometheus", "metrics", kind="text/plain")}
    paths["/openapi.json"] = {"get": _get("This document", "openapi")}
    description: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "plainrisk", "version": __version__, "summary": "Risks, contributions, reasons, what-if."},
        "paths": paths,
        "components": {"schemas": schemas},
    }
    if settings.needs_key:
        description["components"]["securitySchemes"] = {
            "key": {"type": "http", "scheme": "bearer"},
            "browser": {"type": "http", "scheme": "basic"},
        }
        description["security"] = [{"key": []}, {"browser": []}]
    return description


def _segment(name: str) -> str:
    from urllib.parse import quote

    return quote(name, safe="")


def _paths(
    served: Served, prefix: str, key: str, schemas: dict[str, Any], receipts: bool
) -> Iterator[tuple[str, dict[str, Any]]]:
    types = served.requests.types
    found, parts = msgspec.json.schema_components(
        [types[verb] for verb in VERBS], ref_template=f"#/components/schemas/{key}{{name}}"
    )
    schemas |= {f"{key}{name}": schema for name, schema in parts.items()}
    for verb, schema in zip(VERBS, found, strict=True):
        yield f"{prefix}/{verb}", {"post": _post(served, verb, schema, f"{key}{verb}", receipts)}
    yield f"{prefix}/model", {"get": _get(f"Features, fit and certificate of {served.name}", f"{key}model")}
    yield prefix, {"get": _get(f"The decision page of {served.name}", f"{key}page", kind="text/html")}
    oip = f"/v2/models/{_segment(served.name)}"
    yield oip, {"get": _get(f"Inputs and outputs of {served.name}", f"{key}metadata")}
    yield f"{oip}/ready", {"get": _get(f"Whether {served.name} answers", f"{key}ready")}
    yield f"{oip}/infer", {"post": _infer(served, f"{key}infer")}


def _post(served: Served, verb: str, schema: Any, operation: str, receipts: bool) -> dict[str, Any]:
    example: dict[str, Any] = {"rows": [served.requests.example]}
    cutoff = served.model.cutoff
    if verb == "what-if" and cutoff is None:
        example["target"] = 0.5
    answered: dict[str, Any] = {}
    with contextlib.suppress(DataError):  # a model without a cut-off, or trees, whose references need rows
        asked = served.requests.read(verb, msgspec.json.encode(example))
        table = served.requests.table(asked.rows)
        given = answer(served, asked.options(), table).to_dict(0)
        answered = {"example": {"model": served.identity, "rows": [given], "values": values_of(served, table)}}
    accepted: dict[str, Any] = {JSON: {"schema": schema, "example": example}}
    if verb != "what-if":
        accepted[ARROW] = {"schema": {"type": "string", "contentMediaType": ARROW}}
    rows = {
        "type": "object",
        "required": ["model", "rows", "values"],
        "properties": {
            "model": {"type": "object"},
            "rows": {"type": "array", "items": {"type": "object"}},
            "values": {"type": "object", "description": "Per feature, how many are missing, unseen or out of range"},
        },
    }
    return {
        "operationId": operation,
        "summary": SUMMARIES[verb],
        **({"parameters": [RECEIPT]} if verb == "decide" and receipts else {}),
        "requestBody": {"required": True, "content": accepted},
        "responses": {
            "200": {
                "description": "One entry per row; with `rejects`, the error of a row that cannot be answered for",
                "headers": {"x-model-sha256": {"schema": {"type": "string"}}},
                "content": {JSON: {"schema": rows, **answered}, ARROW: {"schema": {"type": "string"}}},
            },
            **_problems("408", "413", "415", "422", "503"),
        },
    }


def _infer(served: Served, operation: str) -> dict[str, Any]:
    inputs = [
        {"name": name, "shape": [1], "datatype": "BYTES" if isinstance(value, str) else "FP64", "data": [value]}
        for name, value in served.requests.example.items()
    ]
    tensor = {
        "type": "object",
        "required": ["name", "shape", "datatype", "data"],
        "properties": {
            "name": {"type": "string"},
            "shape": {"type": "array", "items": {"type": "integer"}},
            "datatype": {"type": "string"},
            "data": {"type": "array"},
        },
    }
    schema = {
        "type": "object",
        "required": ["inputs"],
        "properties": {"inputs": {"type": "array", "items": tensor}, "id": {"type": "string"}},
    }
    return {
        "operationId": operation,
        "summary": f"The risk by {served.name}, by the Open Inference Protocol",
        "requestBody": {"required": True, "content": {JSON: {"schema": schema, "example": {"inputs": inputs}}}},
        "responses": {
            "200": {"description": "One tensor, risk", "content": {JSON: {"schema": {"type": "object"}}}},
            **_problems("408", "413", "415", "422", "503"),
        },
    }


def _get(summary: str, operation: str, *, kind: str = JSON, may_wait: bool = False) -> dict[str, Any]:
    schema = {"type": "object"} if kind == JSON else {"type": "string"}
    responses: dict[str, Any] = {"200": {"description": summary, "content": {kind: {"schema": schema}}}}
    if may_wait:
        responses["503"] = {"description": "Not yet, or no longer", "content": {JSON: {"schema": schema}}}
    return {"operationId": operation.strip("/").replace("/", "_"), "summary": summary, "responses": responses}


def _problems(*statuses: str) -> dict[str, Any]:
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": "Refused, with the reason", "content": content} for status in statuses}


def _named(item: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Return a path item with operations of another name."""
    return {method: {**body, "operationId": prefix + body["operationId"]} for method, body in item.items()}
