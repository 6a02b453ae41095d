"""The model file: a risk form, the record of its fit and its certificate, as versioned JSON.

Reading is strict: a file is decoded into known fields of known types, checked, and never executed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from plainrisk._version import __version__
from plainrisk.errors import ModelFileError
from plainrisk.files import SIZE_LIMIT, parse_json, read_text, write_text
from plainrisk.form.form import RiskForm
from plainrisk.form.links import LARGEST
from plainrisk.form.risks import TrainedRisks
from plainrisk.form.shapes import Part
from plainrisk.schema import Rule, Schema
from plainrisk.text import visible

__all__ = [
    "FORMAT",
    "Certificate",
    "Check",
    "FitRecord",
    "GroupEvidence",
    "GroupKind",
    "ModelFile",
    "OutsideLevel",
    "PackedState",
    "Regret",
    "form_hash",
    "parse_model",
    "read_model",
    "write_model",
]

FORMAT = 3

# Steps between ordered levels, those near either end, effects of special levels and of categories, cells of a pair.
GroupKind = Literal["steps", "lower tail", "upper tail", "outside", "levels", "pair"]


class GroupEvidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Coefficients of smooth shapes that were shrunk together, as much as the marginal likelihood asked for.

    Attributes
    ----------
    features : the feature, or the two of a pair
    kind : "steps" between ordered levels, those of the "lower tail" and the "upper tail", levels "outside" the order,
        "levels" of a categorical feature, or "pair"
    size : how many coefficients
    precision : of their normal prior, lambda; one for the special levels of all features
    edf : effective degrees of freedom, from 0 to `size`
    left : whether there is no evidence for the group, so that it adds nothing
    """

    features: tuple[str, ...]
    kind: GroupKind
    size: int
    precision: float
    edf: float
    left: bool = False

    @property
    def feature(self) -> str:
        """The feature, or both of a pair."""
        return " × ".join(self.features)


class Regret(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much more Hedge's weights lost on the rows that judged the experts than the best expert did, summed.

    Attributes
    ----------
    best : the expert that lost least
    least, greatest : between which numbers the regret lies, whatever the order of the rows
    bound : what it can be at most, by the learning rate and the spread of the losses
    """

    best: str
    least: float
    greatest: float
    bound: float

    def __str__(self) -> str:
        between = f"{self.least:,.4g} to {self.greatest:,.4g} against {self.best!r}"
        return visible(f"{between}, summed over the rows; at most {self.bound:,.4g}")


class FitRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a form was fitted: for readers and for `at_base_rate`, never used in scoring.

    Attributes
    ----------
    estimator : the class that fitted the form
    parameters : its parameters, as text
    rows, weight, positive_weight : the training data; positive_weight / weight is the base rate trained at
    base_rate : share of the positive outcome in the rows as given, before any class weight
    objective, kkt, iterations, converged, reason : what the solver certifies, one entry per problem solved
    clipped : weighted share of the training rows at which the output is clipped
    evidence : of smooth shapes, one entry per group of coefficients
    covariance : if intervals were asked for, that of the intercept, the scores of all levels and the cells of all pairs
        in the order of the form: its lower triangle, row by row
    risks : the probabilities of the training rows as counts, without class weights; older files have none
    regret : of a mixture with Hedge weights, that of the weights against the best expert
    """

    estimator: str
    parameters: dict[str, str]
    rows: int
    weight: float
    positive_weight: float
    base_rate: float
    objective: tuple[float, ...] = ()
    kkt: tuple[float, ...] = ()
    iterations: tuple[int, ...] = ()
    converged: bool = True
    reason: str = ""
    clipped: float = 0.0
    evidence: tuple[GroupEvidence, ...] = ()
    covariance: tuple[float, ...] = ()
    risks: TrainedRisks | None = None
    regret: Regret | None = None

    @property
    def features_left(self) -> tuple[str, ...]:
        """The features of smooth shapes that the rows are no evidence for."""
        stay = {name for group in self.evidence if not group.left for name in group.features}
        return tuple(dict.fromkeys(n for group in self.evidence for n in group.features if n not in stay))

    def __repr__(self) -> str:
        end = "converged" if self.converged else "not converged"
        return visible(f"FitRecord({self.estimator}, {self.rows:,} rows, base rate {self.base_rate:.4f}, {end})")


class Check(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One property: its name, whether it holds, and the evidence."""

    name: str
    holds: bool
    detail: str


class OutsideLevel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The largest effect of an empty or special field, whatever the other features are.

    Lower and better are meant for the applicant: if the positive outcome is the good one, a higher probability.

    Attributes
    ----------
    feature, level : which field
    rule : what the schema allows it
    rows : its training weight
    below, below_risk : how far it can be below the best measured level, in score and in probability; 0 if never
    lowers, lowers_risk : how far it can be below the worst measured level: what emptying a field can win
    """

    feature: str
    level: str
    rule: Rule
    rows: float
    below: float
    below_risk: float
    lowers: float
    lowers_risk: float

    def __str__(self) -> str:
        return (
            f"{self.feature}, {self.level} ({self.rule}): up to {100 * self.below_risk:.3g} points better than the "
            f"best measured level, and {100 * self.lowers_risk:.3g} than the worst"
        )


class Certificate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All properties of a model, checked.

    Attributes
    ----------
    checks : the properties; a model is valid if all hold
    notes : facts worth knowing that break no property
    form_sha256 : the hash of the form they were checked on
    thin : levels with less training weight than this are in the notes
    outside : what empty fields and codes can do; files written before there were rules have none
    """

    checks: tuple[Check, ...]
    notes: tuple[str, ...]
    form_sha256: str = ""
    thin: float = 30.0
    outside: tuple[OutsideLevel, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether every property holds."""
        return all(check.holds for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain data."""
        return {"valid": self.valid, **msgspec.to_builtins(self)}

    def __repr__(self) -> str:
        broken = [check.name for check in self.checks if not check.holds]
        state = "valid" if self.valid else f"BROKEN ({'; '.join(broken)})"
        held = len(self.checks) - len(broken)
        return visible(f"Certificate: {state}, {held} of {len(self.checks)} checks hold, {len(self.notes)} notes")

    def __str__(self) -> str:
        lines = [f"{'holds ' if c.holds else 'BROKEN'}  {c.name}: {c.detail}" for c in self.checks]
        better = [level for level in self.outside if level.below > 0]
        if self.outside:
            kept = f"{len(self.outside) - len(better)} of {len(self.outside)} empty or special levels"
            lines.append(f"empty fields and codes: {kept} are never better than the best measured one")
            lines += [f"outside {level}" for level in sorted(better, key=lambda level: -level.below_risk)]
        return visible("\n".join([*lines, *(f"note    {n}" for n in self.notes)]))


class ModelFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents of the file.

    Attributes
    ----------
    format : FORMAT of the version that wrote it
    plainrisk : that version
    sha256 : the hash of everything else in the file; format 1 has none
    form_sha256 : the hash of the form alone, by which a certificate identifies its form
    cutoff : of format 2, whose forms had no policy to hold it; read into the policy
    about : free texts by name, such as owner, purpose or approval; not in the file if there are none
    """

    format: int
    plainrisk: str
    sha256: str = ""
    form_sha256: str
    form: RiskForm
    fit: FitRecord | None = None
    certificate: Certificate | None = None
    cutoff: Annotated[float, msgspec.Meta(ge=0, le=1)] | UnsetType = UNSET
    about: dict[str, str] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.fit is not None and self.fit.covariance:
            part = self.form.parts[0]
            if len(self.form.parts) > 1 or not isinstance(part, Part):
                raise ModelFileError("Model: only a model of one additive part has a covariance.")
            n = 1 + sum(len(shape.scores) for shape in part.shapes.values())
            n += sum(len(row) for pair in part.pairs for row in pair.scores)
            if len(self.fit.covariance) != n * (n + 1) // 2 or not all(abs(c) <= LARGEST for c in self.fit.covariance):
                raise ModelFileError(f"Model: the covariance of {n} numbers has {n * (n + 1) // 2:,} entries.")

    @property
    def protected(self) -> bool:
        """Whether a change of the fit record would have been found; in format 1 the hash covers the form alone."""
        return self.format > 1


class _Head(msgspec.Struct):
    format: int
    plainrisk: str


def form_hash(form: RiskForm) -> str:
    """Return the SHA-256 of the form's canonical JSON."""
    return hashlib.sha256(msgspec.json.encode(_canonical(form))).hexdigest()


def _canonical(form: RiskForm) -> RiskForm:
    """Return the form as it will be read back: a bound given as 0 is 0.0 in the file and in the hash."""
    return msgspec.json.decode(msgspec.json.encode(form), type=RiskForm)


def _file_hash(text: bytes | str) -> str:
    """Return the SHA-256 of a file's content without its own hash and without white space.

    It is taken over the contents of the file, not over today's types, so a field that is added later is covered, and
    files without it keep their hash.
    """
    plain = msgspec.json.decode(text)
    plain.pop("sha256", None)
    try:
        return hashlib.sha256(msgspec.json.encode(plain)).hexdigest()
    except OverflowError:  # a whole number beyond 64 bits, which no version wrote
        return ""


def write_model(
    path: str | Path,
    form: RiskForm,
    fit: FitRecord | None = None,
    certificate: Certificate | None = None,
    about: Mapping[str, str] | None = None,
) -> None:
    """Write a model file; the same content gives the same bytes."""
    form = _canonical(form)
    content = ModelFile(
        format=FORMAT,
        plainrisk=__version__,
        form_sha256=form_hash(form),
        form=form,
        fit=fit,
        certificate=certificate,
        about=dict(about) if about else UNSET,
    )
    content = msgspec.structs.replace(content, sha256=_file_hash(msgspec.json.encode(content)))
    write_text(path, msgspec.json.format(msgspec.json.encode(content), indent=1).decode() + "\n")


def read_model(path: str | Path, check: Callable[[bytes], None] | None = None) -> ModelFile:
    """Read a model file, or raise a `ModelFileError` that says what is wrong with it.

    Parameters
    ----------
    path : the file
    check : is given the bytes of the file before they are read, and raises if they must not be used
    """
    return parse_model(read_text(path, limit=SIZE_LIMIT, error=ModelFileError, check=check), path)


def parse_model(text: str, path: str | Path) -> ModelFile:
    """Read the text of a model file; errors name the file."""
    head = parse_json(text, _Head, path, ModelFileError, "a plainrisk model")
    if head.format > FORMAT:
        raise ModelFileError(
            f"{path} has format {head.format}, written by plainrisk {head.plainrisk}; this version reads up to "
            f"{FORMAT}. Upgrade plainrisk."
        )
    if head.format < 1:
        raise ModelFileError(f"{path} has format {head.format}, which no version of plainrisk wrote.")
    content = parse_json(text, ModelFile, path, ModelFileError, "a plainrisk model")
    if not content.protected and (content.cutoff, content.about) != (UNSET, UNSET):
        raise ModelFileError(f"{path} has format 1, whose hash covers no cut-off and no texts about the model.")
    if not content.protected and content.sha256:
        raise ModelFileError(f"{path} was changed after it was written: no file of format 1 has a hash of its content.")
    if form_hash(content.form) != content.form_sha256:
        raise ModelFileError(f"{path} was changed after it was written: the form does not match its hash.")
    if content.certificate is not None and content.certificate.form_sha256 != content.form_sha256:
        raise ModelFileError(f"{path} holds a certificate of another form: its hash does not match.")
    if content.protected and _file_hash(text) != content.sha256:
        raise ModelFileError(f"{path} was changed after it was written: its content does not match its hash.")
    if content.format > 2 and content.cutoff is not UNSET:
        raise ModelFileError(f"{path} has a cut-off outside its policy, where no version of plainrisk wrote one.")
    return content if content.cutoff is UNSET else _with_policy(content, content.cutoff)


def _with_policy(content: ModelFile, cutoff: float) -> ModelFile:
    """Return a file of format 2 with its cut-off in the policy; its certificate is for the current form."""
    replace = msgspec.structs.replace
    schema = content.form.schema
    form = replace(content.form, schema=schema.replace(policy=replace(schema.policy, cutoff=cutoff)))
    sha256 = form_hash(form)
    certificate = content.certificate and replace(content.certificate, form_sha256=sha256)
    return replace(content, form=form, form_sha256=sha256, certificate=certificate, cutoff=UNSET)


# ---- the state of Python objects

# Structs in the state of an object are kept as bytes: skops makes objects without their constructor, Structs cannot be
# made so, and bytes need no trust.
_PACKED: dict[str, Any] = {kind.__name__: kind for kind in (FitRecord, RiskForm, Schema)}


class PackedState:
    """An object whose forms, records and schemas are bytes in a pickle or a skops file."""

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        return {name: _pack(value) for name, value in state.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # scikit-learn's estimators have such a method, which compares versions.
        restore = getattr(super(), "__setstate__", vars(self).update)
        restore({name: _unpack(value) for name, value in state.items()})


def _pack(value: Any) -> Any:
    name = type(value).__name__
    return ("packed", name, msgspec.msgpack.encode(value)) if type(value) is _PACKED.get(name) else value


def _unpack(value: Any) -> Any:
    if isinstance(value, tuple) and len(value) == 3 and value[0] == "packed":
        return msgspec.msgpack.decode(value[2], type=_PACKED[value[1]])
    return value
