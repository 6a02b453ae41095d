"""One feature of a schema: its fields, and how they are read from plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from plainrisk.checks import is_finite
from plainrisk.data.columns import EXACT, label_of
from plainrisk.data.texts import Read, Reading
from plainrisk.errors import SchemaError
from plainrisk.schema.policy import CONVERSION_ERRORS, as_python, conversion_error
from plainrisk.schema.rules import feature_problems

__all__ = ["RARE", "Adverse", "Feature", "Label", "Rule", "as_feature", "feature_error", "with_defaults"]

RARE = "(rare)"  # the level of all rare categories

Label = str | float
Kind = Literal["continuous", "categorical"]
Direction = Literal["increasing", "decreasing", "none"]
Unseen = Literal["neutral", "error"]
Actionable = Literal["free", "up", "down", "fixed"]
Adverse = Literal["positive", "negative"]
Rule = Literal["free", "not_better", "worst", "neutral", "error"]


_SIGNS = {"increasing": 1, "decreasing": -1, "none": 0}


class Feature(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, repr_omit_defaults=True
):
    """What the schema states about one feature.

    Parameters
    ----------
    kind : "continuous" or "categorical"
    direction : "increasing", "decreasing" or "none"
        Which way the risk may move when the feature rises. On a categorical feature it means that the
        categories are ordered, as listed in `categories` or else numerically.
    read : "number", "percent", "amount" or "decimal_comma", optional
        How the numbers of a continuous feature are written where they come as text: plain, "35.5%", "$1,100.00" (a
        currency sign and commas for thousands) or "1.100,50". Without it, and without `null_values`, text is an error.
    null_values : tuple of str
        Texts that mean missing: "NA", "?". Spaces around them do not count; "" is a blank.
    special_values : tuple
        Codes that are not measurements (-9: no record). Each is a special level with an effect of its own.
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
        What to do at scoring time with a level that is not in the training rows.
    reason : str, optional
        The words for an adverse-action reason.
    reasons : dict of level to str
        Words for single levels, instead of `reason`: by special value, category, "missing", "unseen", or by bin as
        the model labels it ("x <= 10", "10 < x <= 20"). Special values, values below the bound and missing values
        have default words, since `reason` is about measurements.
    label : str, optional
        What people call the feature; its name, unless stated.
    labels : dict of level to str
        What people call its categories and special values.
    unit : str, optional
        The unit of its numbers, in words: "months".
    protected : bool
        Whether it is protected by law or by choice: never a reason, never changed by what-if, always "fixed".
    actionable : "free", "up", "down" or "fixed"
        Which way an applicant can move the feature, for what-if answers. "up" and "down" are about the value.
    step_cost : float
        What moving the feature by one bin costs, in units of the modeler's choice.
    why : str, optional
        The modeler's reason for what is stated of the feature: its direction, its rules, that it is protected, its
        bins. It is printed in the model document; no model reads it.
    note : str, optional
        A remark for the person who edits the schema; no model reads it.

    Examples
    --------
    >>> income = Feature(direction="decreasing", special_values=(-9,), label="Income", unit="EUR a year")
    >>> income
    Feature(direction='decreasing', special_values=(-9,), label='Income', unit='EUR a year')
    """

    kind: Kind = "continuous"
    direction: Direction = "none"
    read: Read | None = None
    null_values: tuple[str, ...] = ()
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
    label: str | None = None
    labels: dict[str, str] = {}
    unit: str | None = None
    protected: bool = False
    actionable: Actionable = "free"
    step_cost: float = 1.0
    why: str | None = None
    note: str | None = None

    @property
    def sign(self) -> int:
        """+1 increasing, -1 decreasing, 0 none."""
        return _SIGNS[self.direction]

    @property
    def has_order(self) -> bool:
        """Whether its levels have an order."""
        return self.kind == "continuous" or self.sign != 0

    @property
    def reading(self) -> Reading | None:
        """How to read its texts; None if nothing is stated."""
        if self.read is None and not self.null_values:
            return None
        nulls = frozenset(text.strip() for text in self.null_values)
        return Reading(self.kind == "continuous", self.read or "number", nulls)

    @property
    def written(self) -> Literal["categorical", "continuous", "text"]:
        """The type of its column in a file without types: "text" if a rule says how its numbers are written."""
        return "text" if self.kind == "continuous" and self.reading is not None else self.kind

    def title(self, name: str) -> str:
        """Return what people call the feature of this name."""
        return name if self.label is None else self.label

    @property
    def category_labels(self) -> tuple[str, ...] | None:
        """The listed categories as text."""
        return None if self.categories is None else tuple(label_of(c) for c in self.categories)

    @property
    def group_of(self) -> dict[str, str]:
        """The group of every grouped category, as text."""
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
        """Return what is wrong with this feature by itself."""
        return feature_problems(self)


def _without_bound(rule: Rule | None) -> Rule | None:
    return rule if rule in (None, "error") else "free"


def as_feature(who: str, value: Feature | Mapping[str, Any]) -> Feature:
    """Check the fields of a feature, however it was made: a Struct's own constructor checks none."""
    try:
        plain = msgspec.to_builtins(dict(value) if isinstance(value, Mapping) else value, enc_hook=as_python)
        feature = msgspec.convert(_with_text_keys(_with_exact_labels(who, plain)), Feature)
    except CONVERSION_ERRORS as error:
        raise feature_error(f"{who}: ", error) from None
    if feature.protected and feature.actionable == "free":
        return msgspec.structs.replace(feature, actionable="fixed")
    return feature


def _with_exact_labels(who: str, plain: Any) -> Any:
    """Write large integers as text, the form in which labels are compared: floats cannot distinguish them all."""

    def exact(value: Any) -> Any:
        if not isinstance(value, int) or abs(value) <= EXACT:
            return value
        if plain.get("kind") == "categorical":
            return str(value)
        shown = f"{value:.6g}" if is_finite(value) else "a number of over 300 digits"
        raise SchemaError(
            f"Schema: {who}: {shown} is beyond 2**53, where neighboring whole numbers become one. "
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
    """Write the levels that have rules or labels as text, in which they are compared."""
    if not isinstance(plain, dict):
        return plain
    tables = {field: plain[field] for field in ("special_rules", "labels") if isinstance(plain.get(field), dict)}
    return plain | {field: {label_of(key): v for key, v in table.items()} for field, table in tables.items()}


def with_defaults(defaults: Mapping[str, Any], body: Any) -> Any:
    """Defaults fill what a feature leaves out; those that make no sense for its kind are not for it."""
    if not isinstance(body, Mapping):
        return body
    foreign = {"categories", "groups", "rare", "label"}
    if body.get("kind", defaults.get("kind")) == "categorical":
        foreign = {"special_values", "special_rules", "lower_bound", "below_bound", "max_bins", "edges", "reasons"}
        foreign |= {"label", "unit", "read"}
    if "edges" in body:
        foreign.add("max_bins")
    if "max_bins" in body:
        foreign.add("edges")
    return {**{k: v for k, v in defaults.items() if k not in foreign}, **body}


def feature_error(who: str, error: Exception, *others: str) -> SchemaError:
    """Return msgspec's complaint as an error of ours; `others` are known fields in addition to those of a feature."""
    choices = {"kind": Kind, "direction": Direction, "unseen": Unseen, "actionable": Actionable, "adverse": Adverse}
    return conversion_error(who, error, [*Feature.__struct_fields__, *others], {**choices, "read": Read}, Rule)
