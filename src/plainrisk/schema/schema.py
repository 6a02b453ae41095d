"""What the modeler knows and the lender decided: features, directions, special values, subscales, policy, words."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from plainrisk.data.columns import is_word
from plainrisk.errors import SchemaError, did_you_mean, listing
from plainrisk.files import parse_json, parse_toml, read_text, write_text
from plainrisk.schema.check import Problem, check_schema
from plainrisk.schema.draft import draft_schema
from plainrisk.schema.editing import annotated, annotations_of, edited, known_names, renamed, words_of
from plainrisk.schema.feature import Adverse, Feature, Label, as_feature, feature_error, with_defaults
from plainrisk.schema.findings import Finding
from plainrisk.schema.policy import Outcome, Policy, as_table
from plainrisk.schema.rules import schema_problems
from plainrisk.schema.summary import in_lines, in_one_line
from plainrisk.schema.toml import schema_to_toml

if TYPE_CHECKING:
    from plainrisk.data.reader import Kind
    from plainrisk.data.texts import Reading

__all__ = ["Schema"]

# Defaults, which are written to no file: msgspec omits these very objects.
_OUTCOME, _POLICY = Outcome(), Policy()


class Schema(msgspec.Struct, frozen=True, kw_only=True, dict=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is known about the data before any model is fitted.

    Parameters
    ----------
    target : str, optional
        Name of the outcome column.
    positive : str or number, optional
        The outcome whose probability is the risk. Without it: 1 of 0/1, else the larger label. Some meta-estimators of
        scikit-learn encode labels as 0 and 1 before the model sees them. A label that is then missing is refused, but
        of labels 1 and 2 with positive = 1 the model sees 0 and 1, and takes 2 for the positive one: recode them
        yourself first.
    adverse : "positive" or "negative"
        Which outcome is bad for the applicant: "negative" if the positive outcome is the good one. Rules for missing
        and special values, reasons, decisions and what-if answers go by it. It may also be given in `outcome`.
    outcome : Outcome, or a dict of its fields
        The two outcomes in words.
    features : dict of name to Feature (or to a dict of its fields)
    subscales : dict of name to list of feature names
        Groups of features that are judged together. They may overlap and need not cover all features.
    policy : Policy, or a dict of its fields
        What the lender decided: the cut-off, how many reasons, in which order, compared with whom, the letters.

    Examples
    --------
    >>> fields = {"age": {"direction": "decreasing"}, "job": {"kind": "categorical"}}
    >>> schema = Schema(target="bad", features=fields)
    >>> schema.features["age"].sign
    -1
    """

    target: str | None = None
    positive: Label | bool | None = None
    adverse: Adverse = "positive"
    outcome: Outcome = _OUTCOME
    features: dict[str, Feature] = {}
    subscales: dict[str, tuple[str, ...]] = {}
    policy: Policy = _POLICY

    def __deepcopy__(self, memo: dict[int, Any]) -> Schema:
        return self  # frozen: scikit-learn's clone need not copy and check it again

    def __post_init__(self) -> None:
        force = msgspec.structs.force_setattr
        _require_tables(self.features, self.subscales)
        positive: Any = self.positive
        force(self, "positive", positive.tolist() if hasattr(positive, "tolist") else positive)
        words, adverse = _adverse_outcome(self.outcome, self.adverse)
        force(self, "adverse", adverse)
        outcome, policy = as_table("outcome", words, Outcome), as_table("policy", self.policy, Policy)
        force(self, "outcome", _OUTCOME if outcome == _OUTCOME else outcome)
        force(self, "policy", _POLICY if policy == _POLICY else policy)
        force(self, "features", {k: as_feature(f"feature {k!r}", v) for k, v in self.features.items()})
        force(self, "subscales", {k: tuple(v) for k, v in self.subscales.items()})
        problems = list(schema_problems(self))
        if problems:
            raise SchemaError(listing("Schema", problems))

    def __repr__(self) -> str:
        return in_one_line(self)

    def __str__(self) -> str:
        return in_lines(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show the summary in notebooks."""
        printer.text(str(self))

    # ---- reading and writing

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schema:
        """Build a schema from plain data; a ``defaults`` entry fills what features leave out."""
        if not isinstance(data, Mapping):
            raise SchemaError(f"Schema: a table with 'features' is needed, not {type(data).__name__}.")
        plain = dict(data)
        defaults = plain.pop("defaults", {})
        features = plain.get("features", {})
        _require_tables(features, plain.get("subscales", {}))
        as_feature("defaults", defaults)
        plain["features"] = {
            name: as_feature(f"feature {name!r}", with_defaults(defaults, body)) for name, body in features.items()
        }
        if isinstance(plain.get("outcome"), Mapping):
            plain["outcome"], plain["adverse"] = _adverse_outcome(plain["outcome"], plain.get("adverse", "positive"))
        if isinstance(plain.get("policy"), Mapping):
            plain["policy"] = as_table("policy", plain["policy"], Policy)
        try:
            return msgspec.convert(plain, cls)
        except msgspec.ValidationError as error:
            # __post_init__ errors arrive wrapped; raise ours unchanged.
            if isinstance(error.__cause__, SchemaError):
                raise error.__cause__ from None
            raise feature_error("", error, *cls.__struct_fields__, "defaults") from None

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema from a TOML or JSON file, or from a model file, which contains its model's schema."""
        text = read_text(path, limit=16 * 2**20, error=SchemaError)
        path = Path(path)
        data: Any
        if path.suffix == ".json":
            data = parse_json(text, Any, path, SchemaError, "a schema")
        else:
            data = parse_toml(text, path, SchemaError)
        if not isinstance(data, dict):
            raise SchemaError(f"Schema: {path} must hold a table with 'features', not {type(data).__name__}.")
        if isinstance(form := data.get("form"), dict) and isinstance(form.get("schema"), dict):
            data = form["schema"]
        try:
            return cls.from_dict(data)
        except SchemaError as error:
            raise SchemaError(f"{path}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain data; `from_dict` gives it back."""
        plain = msgspec.to_builtins(self)
        assert isinstance(plain, dict)
        return plain

    def to_toml(self) -> str:
        """Return the schema as TOML for a person to edit, with the findings of a draft as comments."""
        return schema_to_toml(self.to_dict(), self.findings)

    def save(self, path: str | Path) -> None:
        """Write the schema to a .toml or .json file; `load` gives it back."""
        path = Path(path)
        if path.suffix == ".json":
            write_text(path, msgspec.json.format(msgspec.json.encode(self)).decode() + "\n")
        elif path.suffix == ".toml":
            write_text(path, self.to_toml())
        else:
            raise SchemaError(f"Schema: cannot save to {path}: the name must end in .toml or .json.")

    # ---- drafting and checking

    @classmethod
    def infer(
        cls,
        frame: Any,
        target: str | None = None,
        *,
        positive: Label | None = None,
        missing: Sequence[str] = (),
    ) -> Schema:
        """Draft a schema from data for a person to edit.

        Kinds come from the columns' types, and codes (-9, 98, 999, a spike far out) become special values. Texts that
        mean missing ("NA", "?"), signs of percent and currency, and commas become rules: `null_values` and `read`. Row
        numbers, names, dates and columns that are the same in every row are left out. So are leaks (columns that by
        themselves know the outcome) and identifiers, which the TOML file has as comments. All else that was seen is in
        `findings`, and in comments of the TOML file: near duplicates, missing values and their bad rate, information
        values, candidate directions with the evidence, numbers that may be codes, subscales that names suggest. No
        direction and no subscale is set: the modeler decides.

        Parameters
        ----------
        frame : any table
        target : name of the outcome column; without it nothing is said of the outcome
        positive : the bad outcome. Without it: 1 of 0/1, True of False/True, a label that says so ("bad",
            "default", ...), or else the rarer label.
        missing : texts that mean missing, in addition to the usual ones

        Warns
        -----
        PlainriskWarning
            Once, with the columns left out and why, and the bad outcome if it was guessed.

        Examples
        --------
        >>> rows = {"late": [0, 1, 2, 3] * 25 + [98] * 5, "bad": [0, 0, 1, 1, 0, 1, 0, 1] * 12 + [1] * 9}
        >>> schema = Schema.infer(rows, "bad")
        >>> schema.features["late"].special_values
        (98.0,)
        >>> for finding in schema.findings:
        ...     print(finding.text)
        98 may be a code: check
        candidate direction: increasing (AUC 0.86, bad rate rises in 2 of 3 steps)
        information value 3.35
        """
        fields, findings = draft_schema(frame, target, positive, missing)
        schema = cls(**fields)
        schema.__dict__["findings"] = tuple(findings)
        return schema

    @functools.cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of `infer` in the data, as `plainrisk.schema.findings.Finding`; empty for other schemas."""
        return ()

    def check(self, frame: Any) -> list[Problem]:
        """Compare the schema with data and return every problem, the errors first."""
        return check_schema(self, frame)

    # ---- the adverse outcome, and the effect of empty and special fields

    @property
    def worse(self) -> int:
        """+1 if a higher probability is worse for the applicant, -1 if it is better."""
        return 1 if self.adverse == "positive" else -1

    def with_rules(self, *, free: bool = False) -> Schema:
        """Return the schema as a model keeps it: where a feature has a direction, its rule for missing is stated.

        In a model, a feature without a rule is free, so that models from before these rules do not change.

        Parameters
        ----------
        free : lift all rules but "error"

        Examples
        --------
        >>> Schema(features={"late": {"direction": "increasing"}}).with_rules().features["late"].missing
        'not_better'
        """
        return self._with(features={name: f.with_rules(free=free) for name, f in self.features.items()})

    # ---- texts for people

    @property
    def kinds(self) -> dict[str, Kind]:
        """How the columns of a file without types are read: the kinds of features, and an outcome such as "01"."""
        outcome: dict[str, Kind] = {self.target: "text"} if self.target is not None and is_word(self.positive) else {}
        return {**outcome, **{name: feature.written for name, feature in self.features.items()}}

    @property
    def readings(self) -> dict[str, Reading]:
        """How to read the texts of features that state it; see `plainrisk.data.texts`."""
        stated = {name: feature.reading for name, feature in self.features.items()}
        return {name: reading for name, reading in stated.items() if reading is not None}

    @property
    def protected(self) -> tuple[str, ...]:
        """The features that are never a reason and never changed."""
        return tuple(name for name, feature in self.features.items() if feature.protected)

    def title(self, name: str) -> str:
        """Return what people call a feature; an unknown name does not change."""
        feature = self.features.get(name)
        return name if feature is None else feature.title(name)

    # ---- subscales

    @property
    def overlaps(self) -> dict[str, tuple[str, ...]]:
        """Features that are in more than one subscale, with the subscales."""
        homes = {f: tuple(s for s, members in self.subscales.items() if f in members) for f in self.features}
        return {f: s for f, s in homes.items() if len(s) > 1}

    @property
    def unassigned(self) -> tuple[str, ...]:
        """Features in no subscale: one-layer models use them, subscale models do not."""
        if not self.subscales:
            return ()
        assigned = {f for members in self.subscales.values() for f in members}
        return tuple(f for f in self.features if f not in assigned)

    # ---- changes, each of which returns a new schema

    def edit(self, name: str, *, merge: Iterable[Sequence[Any]] = (), **fields: Any) -> Schema:
        """Return the schema with one feature changed.

        Parameters
        ----------
        name : the feature
        merge : lists of neighboring bins, or of categories, that become one
            Bins are counted from 0, the lowest, as in `edges`; `model.schema_with_bins()` writes those of a
            fitted model. Merged categories become a group, named after them.
        **fields : any field of `Feature`
            `edges` take the place of `max_bins`, and the other way round. They are set before bins are merged.

        Examples
        --------
        >>> schema = Schema(features={"loan": {"edges": [10, 20, 30]}, "job": {"kind": "categorical"}})
        >>> schema.edit("loan", merge=[(1, 2)], direction="increasing").features["loan"].edges
        (10.0, 30.0)
        >>> schema.edit("job", merge=[("clerk", "boss")]).features["job"].groups
        {'clerk + boss': ('clerk', 'boss')}
        """
        known_names(self, [name])
        changed = edited(name, self.features[name], merge, fields)
        return self.replace(features={**self.features, name: changed})

    def replace(self, **fields: Any) -> Schema:
        """Return the schema with other fields: `target`, `positive`, `features`, `policy`, ...

        Examples
        --------
        >>> Schema(features={"age": {}}).replace(target="bad").target
        'bad'
        """
        field_names = self.__struct_fields__
        for field in fields:
            if field not in field_names:
                raise SchemaError(f"Schema: a schema has no field {field!r}.{did_you_mean(field, field_names)}")
        return Schema(**{**{field: getattr(self, field) for field in field_names}, **fields})

    def annotate(self, changes: Mapping[str, Any] | Schema) -> Schema:
        """Return the schema with new words and policy, which a fitted model may adopt.

        Parameters
        ----------
        changes : dict with "outcome", "policy" and "features", or a Schema
            Entries that are not named stay, None removes one. Of a feature, `label`, `labels`, `unit`, `reason`,
            `reasons`, `protected`, `actionable`, `step_cost`, `why` and `note` may change.

        Examples
        --------
        >>> schema = Schema(features={"age": {}}).annotate({"features": {"age": {"label": "Age", "protected": True}}})
        >>> schema.protected, schema.title("age")
        (('age',), 'Age')
        """
        if isinstance(changes, Schema):
            changes = words_of(self, changes)
        return Schema.from_dict(annotated(self, changes))

    @property
    def wordless(self) -> tuple[str, ...]:
        """The features that an applicant would see under the names of their columns."""
        return tuple(n for n, f in self.features.items() if not (f.protected or f.label or f.reason))

    @property
    def annotations(self) -> dict[str, Any]:
        """The entries that may change after a fit, as `annotate` takes them."""
        return annotations_of(self, self.features)

    def drop(self, *names: str) -> Schema:
        """Return the schema without these features, and without subscales that become empty.

        Examples
        --------
        >>> list(Schema(features={"age": {}, "job": {}}).drop("job").features)
        ['age']
        """
        gone = known_names(self, names)
        return self.select(name for name in self.features if name not in gone)

    def rename(self, names: Mapping[str, str]) -> Schema:
        """Return the schema with other names for some features, in subscales too, or for the target.

        Examples
        --------
        >>> schema = Schema(features={"age": {}}, subscales={"person": ["age"]})
        >>> schema.rename({"age": "years"}).subscales
        {'person': ('years',)}
        """
        return Schema(**renamed(self, names))

    def select(self, names: Iterable[str]) -> Schema:
        """Return the schema of these features alone, with the subscales cut down to them."""
        keep = known_names(self, names)
        inquiries = tuple(name for name in self.policy.inquiries if name in keep)
        subscales = {s: tuple(f for f in members if f in keep) for s, members in self.subscales.items()}
        return self._with(
            features={name: self.features[name] for name in keep},
            subscales={s: members for s, members in subscales.items() if members},
            policy=self.policy
            if inquiries == self.policy.inquiries
            else msgspec.structs.replace(self.policy, inquiries=inquiries),
        )

    def part(self, names: Iterable[str]) -> Schema:
        """Return the entries for these features alone, without target and subscales."""
        features = {name: self.features[name] for name in names}
        return self._with(target=None, positive=None, outcome=_OUTCOME, features=features, subscales={}, policy=_POLICY)

    def _with(self, **fields: Any) -> Schema:
        """Return a copy with some fields replaced by parts of themselves, which need no second check."""
        schema = copy.copy(self)
        for name, value in fields.items():
            msgspec.structs.force_setattr(schema, name, value)
        return schema


def _adverse_outcome(outcome: Any, adverse: Any) -> tuple[Any, Any]:
    """Return the outcome in words and which one is adverse, which may be stated in either place."""
    if not isinstance(outcome, Mapping) or "adverse" not in outcome:
        return outcome, adverse
    stated = outcome["adverse"]
    if adverse not in ("positive", stated):
        raise SchemaError(f"Schema: adverse is {adverse!r}, and outcome says {stated!r}. Keep one.")
    return {key: value for key, value in outcome.items() if key != "adverse"}, stated


def _require_tables(features: Any, subscales: Any) -> None:
    """Refuse tables and names of a wrong type, which would fail later with an error that does not name the place."""
    for who, table in (("features", features), ("subscales", subscales)):
        if not isinstance(table, Mapping):
            raise SchemaError(f"Schema: {who!r} must be a table of names, not {type(table).__name__}.")
        odd = [key for key in table if not isinstance(key, str)]
        if odd:
            raise SchemaError(f"Schema: the names in {who!r} must be text, not {odd[0]!r}.")
    for subscale, members in subscales.items():
        if isinstance(members, str) or not isinstance(members, Iterable):
            raise SchemaError(f"Schema: subscale {subscale!r} must be a list of features, not {members!r}.")
