"""Requests: their types, made from a model's schema, and reading a body as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from plainrisk.data.frame import Frame, as_frame
from plainrisk.errors import DataError
from plainrisk.explain.options import DecideOptions, ExplainOptions, ReasonOptions, WhatIfOptions
from plainrisk.form import RiskForm

__all__ = ["ARROW", "JSON", "VERBS", "Requests", "ScoreOptions", "TooLargeError"]

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"

FEW_ROWS = 10
MISSING = "Object missing required field "  # as msgspec says it
Number = float | None
Written = float | str | None  # a number, or as the schema says that numbers are written
Category = str | int | float | bool | None


class TooLargeError(DataError):
    """A request has more bytes or rows than the service takes."""


@dataclass(frozen=True)
class ScoreOptions:
    """Whether to name the features whose values are beyond training."""

    beyond: bool = False


class _Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request; every model adds the type of `rows`. With `rejects`, a wrong row gets an error of its own."""

    rejects: bool = False

    def options(self) -> Any:
        """Return the options of the verb."""
        raise NotImplementedError


class _Score(_Asked, frozen=True, kw_only=True):
    beyond: bool = False

    def options(self) -> ScoreOptions:
        return ScoreOptions(self.beyond)


class _Explain(_Asked, frozen=True, kw_only=True):
    reference: Literal["typical", "best", "zero"] = "typical"
    unit: Literal["probability", "log odds"] = "probability"

    def options(self) -> ExplainOptions:
        return ExplainOptions(reference=self.reference, unit=self.unit)


class _Reasons(_Asked, frozen=True, kw_only=True):
    k: Annotated[int, Meta(ge=1, le=100)] | None = None
    reference: Literal["best", "typical"] | None = None

    def options(self) -> ReasonOptions:
        return ReasonOptions(self.k, reference=self.reference)


class _Decide(_Asked, frozen=True, kw_only=True):
    k: Annotated[int, Meta(ge=1, le=100)] | None = None

    def options(self) -> DecideOptions:
        return DecideOptions(self.k)


class _WhatIf(_Asked, frozen=True, kw_only=True):
    target: Annotated[float, Meta(ge=0.0, le=1.0)] | None = None
    frozen: tuple[str, ...] = ()
    cost: Literal["features", "steps"] = "features"
    answers: Annotated[int, Meta(ge=1, le=10)] = 3

    def options(self) -> WhatIfOptions:
        return WhatIfOptions(self.target, frozen=self.frozen, cost=self.cost, answers=self.answers)


VERBS: Mapping[str, type[_Asked]] = {
    "score": _Score,
    "decide": _Decide,
    "explain": _Explain,
    "reasons": _Reasons,
    "what-if": _WhatIf,
}


def _type_of(verb: str, row: Any) -> Any:
    """Return the type of a verb's body, with rows of some type."""
    rows: Any = Annotated[list[row], Meta(min_length=1)]
    name = f"{verb.title().replace('-', '')}Request"
    return msgspec.defstruct(name, [("rows", rows)], bases=(VERBS[verb],), frozen=True, kw_only=True)


_ROW_BY_ROW = {verb: _type_of(verb, msgspec.Raw) for verb in VERBS}


class Requests:
    """The types of requests about rows for one model.

    Attributes
    ----------
    features : the names, in the order of the form
    example : a row, for documentation
    types : by verb, the type of the request's body
    """

    def __init__(self, form: RiskForm, example: Mapping[str, Any]) -> None:
        self.form, self.features, self.example = form, form.features, dict(example)
        types = {"continuous": Number, "text": Written, "categorical": Category}
        fields = [(f"f{i}", types[form.schema.features[name].written]) for i, name in enumerate(self.features)]
        names = {f"f{i}": name for i, name in enumerate(self.features)}
        self.row_type = msgspec.defstruct("Row", fields, rename=names, frozen=True)
        self.types = {verb: _type_of(verb, self.row_type) for verb in VERBS}
        self._decoders = {verb: msgspec.json.Decoder(kind) for verb, kind in self.types.items()}
        self._row_decoder = msgspec.json.Decoder(self.row_type)

    def read(self, verb: str, body: bytes) -> Any:
        """Read a body of JSON; errors name field and row, never a value.

        If the request asks for rejects, an invalid row is replaced by its error.
        """
        try:
            return self._decoders[verb].decode(body)
        except msgspec.ValidationError as error:
            asked = self._read_each(verb, body)
            if asked is None:
                raise DataError(_in_words(str(error))) from None
            return asked
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise DataError("The body is not JSON. Send an object with 'rows', a list of objects.") from None

    def _read_each(self, verb: str, body: bytes) -> Any:
        """Read every row by itself; None if rejects were not asked for, or if more than rows is wrong."""
        try:
            asked = msgspec.json.decode(body, type=_ROW_BY_ROW[verb])
            rows = [self._read_row(i, row) for i, row in enumerate(asked.rows)] if asked.rejects else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return None if rows is None else msgspec.structs.replace(asked, rows=rows)

    def _read_row(self, number: int, content: msgspec.Raw) -> Any:
        """Return a row, or its error."""
        try:
            return self._row_decoder.decode(content)
        except msgspec.ValidationError as error:
            what, _, path = str(error).partition(" - at `$")
            return DataError(_in_words(f"{what} - at `$.rows[{number}]{path or '`'}"))

    def row(self, values: Mapping[str, Any]) -> Any:
        """Return a row as a request has it."""
        return msgspec.convert(values, self.row_type)

    def table(self, rows: Sequence[Any]) -> dict[str, Any] | list[dict[str, Any]] | Frame:
        """Return rows as the model reads them: a few as dicts, which saves making columns, and many as columns."""
        if len(rows) <= FEW_ROWS:
            few = [dict(zip(self.features, msgspec.structs.astuple(row), strict=True)) for row in rows]
            return few if len(few) > 1 else few[0]
        columns = zip(*map(msgspec.structs.astuple, rows), strict=True)
        return as_frame({name: list(column) for name, column in zip(self.features, columns, strict=True)})


def _in_words(message: str) -> str:
    """Turn msgspec's message, which contains types and paths but no values, into a sentence.

    >>> _in_words("Object missing required field `age` - at `$.rows[2]`")
    'rows[2]: the field `age` is missing. Send null if there is no value.'
    >>> _in_words("Object missing required field `target`")
    'the field `target` is missing.'
    >>> _in_words("Expected `float | null`, got `str` - at `$.rows[0].age`")
    'rows[0].age: expected `float | null`, got `str`.'
    """
    what, _, path = message.partition(" - at `$")
    where = path.rstrip("`").lstrip(".")
    prefix = f"{where}: " if where else ""
    if what.startswith(MISSING):
        remedy = " Send null if there is no value." if where.startswith("rows[") else ""
        return f"{prefix}the field {what.removeprefix(MISSING)} is missing.{remedy}"
    return f"{prefix}{what[:1].lower()}{what[1:]}."
