"""What the modeller knows: kinds, directions, special values, subscales and the words for reasons."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from plainrisk.data.columns import EXACT, label_of
from plainrisk.errors import SchemaError, did_you_mean, listing
from plainrisk.files import parse_json, parse_toml, read_text, write_text
from plainrisk.schema.check import Problem, check_schema
from plainrisk.schema.draft import draft_schema
from plainrisk.schema.editing import edited, known_names, renamed
from plainrisk.schema.findings import Finding
from plainrisk.schema.rules import feature_problems, schema_problems
from plainrisk.schema.toml import schema_to_toml

__all__ = ["RARE", "Feature", "Rule", "Schema"]

RARE = "(rare)"  # the level of all rare categories

Label = str | float
Kind = Literal["continuous", "categorical"]
Direction = Literal["increasing", "decreasing", "none"]
Unseen = Literal["neutral", "error"]
Actionable = Literal["free", "up", "down", "fixed"]
Adverse = Literal["positive", "negative"]
Rule = Literal["free", "not_better", "worst", "neutral", "error"]


_SIGNS = {"increasing": 1, "decreasing": -1, "none": 0}


class Feature(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is known of one feature.

    Parameters
    ----------
    kind : "continuous" or "categorical"
    direction : "increasing", "decreasing" or "none"
        Which way the risk may move when the feature rises. On a categorical feature it means that the
        categories are ordered, as listed in `categories` or else numerically.
    special_values : tuple
        Codes that are not measurements (-9: no record). Each gets its own effect, outside the order.
    lower_bound : float, optional
        Values below it are not measurements either, and share one effect.
    missing : "free", "not_better", "worst", "neutral" or "error", optional
        What an empty field may do. "free": it has an effect of its own. "not_better": the same, but never better for
        the applicant than the best measured level. "worst": it counts as the worst measured level. "neutral": it has
        no effect, as for the typical applicant. "error": it is refused, at fit and at scoring. Default: "not_better"
        if the feature has a direction, else "free".
    special_rules : dict of special value to rule
        The same for special values; those not named are "free", since a code such as "never late" may be the best.
    below_bound : rule, optional
        The same for values below `lower_bound`; default "free".
    max_bins : int, optional
        The largest number of bins; without it the estimator's `max_bins` holds.
    edges : tuple of float, optional
        Fixed bin edges; a value equal to an edge falls into the bin on its left.
    categories : tuple of str, optional
        The categories, in order where a direction is given.
    groups : dict of name to list of categories
        Categories that count as one level, under the group's name: {"other": ["A", "B"]}.
    rare : float, optional
        Categories with a smaller share of the training rows count as one level, "(rare)". Stated groups stay.
    unseen : "neutral" or "error"
        What to do at scoring time with a level that training never saw.
    reason : str, optional
        The words for an adverse-action reason.
    reasons : dict of level to str
        Words for single levels, instead of `reason`: by special value, category, "missing", "unseen", or by bin as
        the model labels it ("x <= 10", "10 < x <= 20"). Special values, values below the bound and missing values
        have default words, since `reason` speaks of measurements.
    actionable : "free", "up", "down" or "fixed"
        Which way an applicant can move the feature, for what-if answers. "up" and "down" are about the value.
    step_cost : float
        What moving the feature by one bin costs, in units of the modeller's choice.
    note : str, optional
        A remark for the person who edits the schema; no model reads it.
    """

    kind: Kind = "continuous"
    direction: Direction = "none"
    special_values: tuple[Label, ...] = ()
    lower_bound: float | None = None
    missing: Rule | None = None
    special_rules: dict[str, Rule] = {}
    below_bound: Rule | None = None
    max_bins: int | None = None
    edges: tuple[float, ...] | None = None
    categories: tuple[Label, ...] | None = None
    groups: dict[str, tuple[Label, ...]] = {}
    rare: float | None = None
    unseen: Unseen = "neutral"
    reason: str | None = None
    reasons: dict[str, str] = {}
    actionable: Actionable = "free"
    step_cost: float = 1.0
    note: str | None = None

    @property
    def sign(self) -> int:
        """+1 increasing, -1 decreasing, 0 none."""
        return _SIGNS[self.direction]

    @property
    def category_labels(self) -> tuple[str, ...] | None:
        """The listed categories as text."""
        return None if self.categories is None else tuple(label_of(c) for c in self.categories)

    @property
    def group_of(self) -> dict[str, str]:
        """The group of every category that is in one, as text."""
        return {label_of(c): group for group, members in self.groups.items() for c in members}

    def with_rules(self, *, free: bool = False) -> Feature:
        """Return the feature with the default rule for missing values stated; see `Schema.with_rules`."""
        missing = self.missing or ("not_better" if self.sign else None)
        rules: dict[str, Any] = {"missing": missing}
        if free:
            rules = {
                "missing": _without_bound(missing),
                "special_rules": {label: _without_bound(rule) for label, rule in self.special_rules.items()},
                "below_bound": _without_bound(self.below_bound),
            }
        return self if missing is None and not free else msgspec.structs.replace(self, **rules)

    def problems(self) -> list[str]:
        """Return what is wrong with this feature by itself, in words."""
        return feature_problems(self)


def _without_bound(rule: Rule | None) -> Rule | None:
    return rule if rule in (None, "error") else "free"


class Schema(msgspec.Struct, frozen=True, kw_only=True, dict=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is known of the data before any model is fitted.

    Parameters
    ----------
    target : str, optional
        Name of the outcome column.
    positive : str or number, optional
        The outcome whose probability is the risk. Without it: 1 of 0/1, else the larger label.
    adverse : "positive" or "negative"
        Which outcome is bad for the applicant: "negative" if the positive outcome is the good one. Rules for missing
        and special values, reasons and what-if answers go by it.
    features : dict of name to Feature (or to a dict of its fields)
    subscales : dict of name to list of feature names
        Groups of features that are judged together. They may overlap and need not cover all features.

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
    features: dict[str, Feature] = {}
    subscales: dict[str, tuple[str, ...]] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Schema:
        return self  # frozen: scikit-learn's clone need not copy and check it again

    def __post_init__(self) -> None:
        force = msgspec.structs.force_setattr
        _require_tables(self.features, self.subscales)
        positive: Any = self.positive
        force(self, "positive", positive.tolist() if hasattr(positive, "tolist") else positive)
        force(self, "features", {k: _as_feature(f"feature {k!r}", v) for k, v in self.features.items()})
        force(self, "subscales", {k: tuple(v) for k, v in self.subscales.items()})
        problems = list(schema_problems(self))
        if problems:
            raise SchemaError(listing("Schema", problems))

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
        _as_feature("defaults", defaults)
        plain["features"] = {
            name: _as_feature(f"feature {name!r}", _with_defaults(defaults, body)) for name, body in features.items()
        }
        try:
            return msgspec.convert(plain, cls)
        except msgspec.ValidationError as error:
            # __post_init__ errors arrive wrapped; hand on ours as it is.
            if isinstance(error.__cause__, SchemaError):
                raise error.__cause__ from None
            raise SchemaError(f"Schema: {_in_words(error)}") from None

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema from a TOML or JSON file."""
        text = read_text(path, limit=16 * 2**20, error=SchemaError)
        path = Path(path)
        data: Any
        if path.suffix == ".json":
            data = parse_json(text, Any, path, SchemaError, "a schema")
        else:
            data = parse_toml(text, path, SchemaError)
        if not isinstance(data, dict):
            raise SchemaError(f"Schema: {path} must hold a table with 'features', not {type(data).__name__}.")
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
        """Return the schema as TOML for a person to edit; what a draft has seen stands in comments."""
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
    def infer(cls, frame: Any, target: str | None = None, *, positive: Label | None = None) -> Schema:
        """Draft a schema from data for a person to edit.

        Kinds come from the columns' types, and codes (-9, 98, 999, a spike far out) become special values. Row numbers,
        names, dates and columns that are the same in every row are left out. All else that was seen is in `findings`,
        and in comments of the TOML file: signs of leaks, near duplicates, missing values and their bad rate,
        information values, candidate directions with the evidence, subscales that names suggest. No direction and no
        subscale is set: the modeller decides.

        Parameters
        ----------
        frame : any table
        target : name of the outcome column; without it nothing is said of the outcome
        positive : the bad outcome. Without it: 1 of 0/1, True of False/True, a label that says so ("bad",
            "default", ...), or else the rarer label.

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
        fields, findings = draft_schema(frame, target, positive)
        schema = cls(**fields)
        schema.__dict__["findings"] = tuple(findings)
        return schema

    @functools.cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What `infer` has seen in the data, as `plainrisk.schema.findings.Finding`; nothing of any other schema."""
        return ()

    def check(self, frame: Any) -> list[Problem]:
        """Compare the schema with data and return every problem, the errors first."""
        return check_schema(self, frame)

    # ---- what is bad, and what empty and special fields may do

    @property
    def worse(self) -> int:
        """+1 if a higher probability is worse for the applicant, -1 if it is better."""
        return 1 if self.adverse == "positive" else -1

    def with_rules(self, *, free: bool = False) -> Schema:
        """Return the schema as a model keeps it: where a feature has a direction, its rule for missing is stated.

        In a model a feature without a rule is free, so that models of before there were rules stay what they were.

        Parameters
        ----------
        free : lift all rules but "error"

        Examples
        --------
        >>> Schema(features={"late": {"direction": "increasing"}}).with_rules().features["late"].missing
        'not_better'
        """
        return self._with(features={name: f.with_rules(free=free) for name, f in self.features.items()})

    # ---- subscales

    @property
    def overlaps(self) -> dict[str, tuple[str, ...]]:
        """Features that stand in more than one subscale, with the subscales."""
        homes = {f: tuple(s for s, members in self.subscales.items() if f in members) for f in self.features}
        return {f: s for f, s in homes.items() if len(s) > 1}

    @property
    def unassigned(self) -> tuple[str, ...]:
        """Features in no subscale: one-layer models use them, subscale models do not."""
        if not self.subscales:
            return ()
        assigned = {f for members in self.subscales.values() for f in members}
        return tuple(f for f in self.features if f not in assigned)

    # ---- changes, all of which return a new schema

    def edit(self, name: str, *, merge: Iterable[Sequence[Any]] = (), **fields: Any) -> Schema:
        """Return the schema with one feature changed.

        Parameters
        ----------
        name : the feature
        merge : lists of neighbouring bins, or of categories, that become one
            Bins are counted from 0, the lowest, as they stand in `edges`; `model.schema_with_bins()` writes those of a
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
        """Return the schema with other fields: `target`, `positive`, `features`, `subscales`.

        Examples
        --------
        >>> Schema(features={"age": {}}).replace(target="bad").target
        'bad'
        """
        known = self.__struct_fields__
        for field in fields:
            if field not in known:
                raise SchemaError(f"Schema: a schema has no field {field!r}.{did_you_mean(field, known)}")
        return Schema(**{**{field: getattr(self, field) for field in known}, **fields})

    def drop(self, *names: str) -> Schema:
        """Return the schema without these features; a subscale that holds no other goes too.

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
        subscales = {s: tuple(f for f in members if f in keep) for s, members in self.subscales.items()}
        return self._with(
            features={name: self.features[name] for name in keep},
            subscales={s: members for s, members in subscales.items() if members},
        )

    def part(self, names: Iterable[str]) -> Schema:
        """Return what is known of these features, and nothing else: neither target nor subscales."""
        features = {name: self.features[name] for name in names}
        return self._with(target=None, positive=None, features=features, subscales={})

    def _with(self, **fields: Any) -> Schema:
        """Return a copy with some fields replaced by parts of themselves, which need no second check."""
        schema = copy.copy(self)
        for name, value in fields.items():
            msgspec.structs.force_setattr(schema, name, value)
        return schema


def _require_tables(features: Any, subscales: Any) -> None:
    """Refuse tables and names of a wrong type, which would fail later with an error that does not say where."""
    for who, table in (("features", features), ("subscales", subscales)):
        if not isinstance(table, Mapping):
            raise SchemaError(f"Schema: {who!r} must be a table of names, not {type(table).__name__}.")
        odd = [key for key in table if not isinstance(key, str)]
        if odd:
            raise SchemaError(f"Schema: the names in {who!r} must be text, not {odd[0]!r}.")
    for subscale, members in subscales.items():
        if isinstance(members, str) or not isinstance(members, Iterable):
            raise SchemaError(f"Schema: subscale {subscale!r} must be a list of features, not {members!r}.")


def _as_feature(who: str, value: Feature | Mapping[str, Any]) -> Feature:
    """Check the fields of a feature, however it was made: a Struct's own constructor checks none."""
    try:
        plain = msgspec.to_builtins(dict(value) if isinstance(value, Mapping) else value, enc_hook=_python)
        return msgspec.convert(_with_text_keys(_with_exact_labels(who, plain)), Feature)
    except msgspec.ValidationError as error:
        raise SchemaError(f"Schema: {who}: {_in_words(error)}") from None
    except RecursionError:
        raise SchemaError(f"Schema: {who}: it is nested too deep, or holds itself.") from None
    except TypeError as error:
        raise SchemaError(f"Schema: {who}: {error}.") from None


def _with_exact_labels(who: str, plain: Any) -> Any:
    """Write large whole numbers as text, the form in which labels are compared: floats do not tell them all apart."""

    def exact(value: Any) -> Any:
        if not isinstance(value, int) or abs(value) <= EXACT:
            return value
        if plain.get("kind") == "categorical":
            return str(value)
        raise SchemaError(
            f"Schema: {who}: {value:.6g} is beyond 2**53, where numbers are not told apart from their neighbours. "
            "Set kind = 'categorical' if it is a code."
        )

    def listed(values: Any) -> Any:
        return [exact(v) for v in values] if isinstance(values, list | tuple) else values

    if not isinstance(plain, dict):
        return plain
    found = {field: listed(plain[field]) for field in ("categories", "special_values") if field in plain}
    if isinstance(plain.get("groups"), dict):
        found["groups"] = {group: listed(members) for group, members in plain["groups"].items()}
    return {**plain, **found}


def _with_text_keys(plain: Any) -> Any:
    """Write the special values that have rules as text, as they are compared."""
    rules = plain.get("special_rules") if isinstance(plain, dict) else None
    if not isinstance(rules, dict):
        return plain
    return {**plain, "special_rules": {label_of(label): rule for label, rule in rules.items()}}


def _python(value: Any) -> Any:
    """Turn numpy's numbers and arrays into Python's."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"expected text or a number, got `{type(value).__name__}`")


def _with_defaults(defaults: Mapping[str, Any], body: Any) -> Any:
    """Defaults fill what a feature leaves out; those that make no sense for its kind are not for it."""
    if not isinstance(body, Mapping):
        return body
    foreign = {"categories", "groups", "rare"}
    if body.get("kind", defaults.get("kind")) == "categorical":
        foreign = {"special_values", "special_rules", "lower_bound", "below_bound", "max_bins", "edges", "reasons"}
    if "edges" in body:
        foreign.add("max_bins")
    if "max_bins" in body:
        foreign.add("edges")
    return {**{k: v for k, v in defaults.items() if k not in foreign}, **body}


def _in_words(error: msgspec.ValidationError) -> str:
    """Add to msgspec's complaint what is allowed."""
    message = str(error)
    if message.startswith("Invalid enum value"):
        field = message.rpartition("$.")[2].rstrip("`").partition("[")[0]
        choices = {"kind": Kind, "direction": Direction, "unseen": Unseen, "actionable": Actionable, "adverse": Adverse}
        allowed = get_args(choices.get(field, Rule))
        came = message.split("'")[1]
        return f"{field} must be one of {', '.join(map(repr, allowed))}, not {came!r}."
    if "unknown field" in message:
        unknown = message.split("`")[1]
        known = [*Feature.__struct_fields__, *Schema.__struct_fields__, "defaults"]
        return f"{message}.{did_you_mean(unknown, known)}"
    return f"{message}."
