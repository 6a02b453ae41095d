"""Changes to a schema: every one returns the fields of a new schema, which is checked as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from plainrisk.data.columns import label_of
from plainrisk.errors import SchemaError, did_you_mean, quoted
from plainrisk.schema.policy import Letter, Limits, Outcome, Policy

if TYPE_CHECKING:
    from plainrisk.schema.feature import Feature
    from plainrisk.schema.schema import Schema

__all__ = ["ANNOTATIONS", "annotated", "annotations_of", "edited", "known_names", "renamed", "words_of"]

# What may be changed after a fit, of a schema and of a feature: no probability depends on it.
ANNOTATIONS = ("outcome", "policy", "features")
FEATURE_ANNOTATIONS = (
    "label",
    "labels",
    "unit",
    "reason",
    "reasons",
    "protected",
    "actionable",
    "step_cost",
    "why",
    "note",
)


def known_names(schema: Schema, names: Iterable[str]) -> list[str]:
    """Return the names as a list; raise for the first that is not a feature."""
    listed = list(names)
    for name in listed:
        if name not in schema.features:
            raise SchemaError(f"Schema: there is no feature {name!r}.{did_you_mean(str(name), schema.features)}")
    return listed


def edited(name: str, feature: Feature, merge: Iterable[Sequence[Any]], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a feature after a change; bins are merged last."""
    field_names = feature.__struct_fields__
    for field in changes:
        if field not in field_names:
            raise SchemaError(f"Schema: a feature has no field {field!r}.{did_you_mean(field, field_names)}")
    fields = {field: getattr(feature, field) for field in field_names}
    for field, other in (("edges", "max_bins"), ("max_bins", "edges")):
        if changes.get(field) is not None:
            fields[other] = None  # one takes the place of the other
    fields |= changes
    merge_levels = _merged_categories if fields["kind"] == "categorical" else _merged_bins
    return merge_levels(name, fields, [_run(name, run) for run in merge])


def _run(name: str, run: Any) -> list[Any]:
    if isinstance(run, str) or not isinstance(run, Iterable) or len(members := list(run)) < 2:
        raise SchemaError(f"Schema: feature {name!r}: merge needs runs of two or more, such as merge=[(0, 1)].")
    return members


def _merged_bins(name: str, fields: dict[str, Any], runs: list[list[Any]]) -> dict[str, Any]:
    """Leave out the edges inside the runs: edge j is between bin j and bin j + 1."""
    if not runs:
        return fields
    if fields["edges"] is None:
        raise SchemaError(
            f"Schema: feature {name!r} has no edges to merge bins of. Give edges=[...], or take those of a fitted "
            "model: model.schema_with_bins()."
        )
    edges = list(fields["edges"])
    gone = set()
    for run in runs:
        if not all(type(bin_) is int and 0 <= bin_ <= len(edges) for bin_ in run):
            raise SchemaError(f"Schema: feature {name!r} has the bins 0 to {len(edges)}, so it has not all of {run}.")
        if any(b - a != 1 for a, b in pairwise(sorted(run))):
            raise SchemaError(f"Schema: feature {name!r}: bins {run} are not neighbors. Only neighbors can be merged.")
        gone.update(sorted(run)[:-1])
    return fields | {"edges": [edge for j, edge in enumerate(edges) if j not in gone]}


def _merged_categories(name: str, fields: dict[str, Any], runs: list[list[Any]]) -> dict[str, Any]:
    """Put the categories of each run into one group, which is named after them; groups among them are dissolved."""
    groups = {group: [label_of(c) for c in members] for group, members in fields["groups"].items()}
    listed = None if fields["categories"] is None else [label_of(c) for c in fields["categories"]]
    for run in runs:
        labels = [label_of(c) for c in run]
        _require_levels(name, labels, groups, listed)
        merged = " + ".join(labels)
        # The name of a group is a category, too.
        groups[merged] = list(dict.fromkeys(c for label in labels for c in (*groups.pop(label, ()), label)))
        if listed is not None:
            listed = list(dict.fromkeys(merged if c in labels else c for c in listed))
    return fields | {"groups": groups, "categories": listed} if runs else fields


def _require_levels(
    name: str, labels: Iterable[str], groups: Mapping[str, Sequence[str]], listed: Sequence[str] | None
) -> None:
    for label in labels:
        home = next((group for group, members in groups.items() if label in members and label != group), None)
        if home is not None:
            raise SchemaError(f"Schema: feature {name!r}: category {label!r} is in group {home!r}. Merge the group.")
        if listed is not None and label not in (known := [*listed, *groups]):
            raise SchemaError(f"Schema: feature {name!r} has no category {label!r}.{did_you_mean(label, known)}")


def renamed(schema: Schema, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a schema in which features, and perhaps the target, have new names."""
    known_names(schema, (name for name in names if name != schema.target))
    features = [names.get(name, name) for name in schema.features]
    twice = sorted({name for name in features if features.count(name) > 1}, key=str)
    if twice:
        raise SchemaError(f"Schema: rename would give two features one name: {quoted(twice)}.")
    return {
        "target": None if schema.target is None else names.get(schema.target, schema.target),
        "positive": schema.positive,
        "adverse": schema.adverse,
        "outcome": schema.outcome,
        "features": dict(zip(features, schema.features.values(), strict=True)),
        "subscales": {s: tuple(names.get(f, f) for f in own) for s, own in schema.subscales.items()},
        "policy": msgspec.structs.replace(
            schema.policy, inquiries=tuple(names.get(f, f) for f in schema.policy.inquiries)
        ),
    }


def annotated(schema: Schema, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a schema after changes of words and policy, which a fitted model may take.

    Tables are changed entry by entry: ``{"policy": {"cutoff": 0.2}}`` does not change the rest of the policy.
    """
    if not isinstance(changes, Mapping):
        raise SchemaError(f"annotate: a table of changes or a Schema is needed, not {type(changes).__name__}.")
    _require_annotations(changes, ANNOTATIONS, "")
    plain = schema.to_dict()
    features = changes.get("features", {})
    if not isinstance(features, Mapping) or not all(isinstance(fields, Mapping) for fields in features.values()):
        raise SchemaError("annotate: features must be a table of features, each with its fields.")
    known_names(schema, features)
    for name, fields in features.items():
        _require_annotations(fields, FEATURE_ANNOTATIONS, f" of feature {name!r}")
        moved = _actionable(schema.features[name], fields)
        plain["features"][name] = _updated(plain["features"][name], {**moved, **fields})
    outcome = changes.get("outcome")
    if isinstance(outcome, Mapping) and outcome.get("adverse", schema.adverse) != schema.adverse:
        raise SchemaError(
            f"annotate: the adverse outcome, {schema.adverse!r}, is part of the fit. Change it in the schema "
            "and fit again."
        )
    for field, known in (("outcome", ("adverse", *Outcome.__struct_fields__)), ("policy", Policy.__struct_fields__)):
        if field in changes:
            if isinstance(changes[field], Mapping):
                _require_annotations(changes[field], known, f" of {field}")
            plain[field] = _updated(plain.get(field, {}), changes[field])
    _require_entries(changes.get("policy"))
    return plain


def words_of(schema: Schema, other: Schema) -> dict[str, Any]:
    """Return what `annotated` takes from another schema, which must agree on everything that the fit used."""
    known_names(schema, other.features)
    features, plain = schema.to_dict()["features"], other.to_dict()["features"]
    for name, fields in plain.items():
        for field, value in fields.items():
            if field not in FEATURE_ANNOTATIONS and value != features[name].get(field):
                raise SchemaError(
                    f"annotate: {field!r} of feature {name!r} is another than in the fit. Leave it out, or fit again."
                )
    found = annotations_of(other, other.features)
    return {**found, "outcome": {**found["outcome"], "adverse": other.adverse}}


def _require_annotations(changes: Iterable[str], known: Sequence[str], where: str) -> None:
    for field in changes:
        if field not in known:
            raise SchemaError(
                f"annotate: {field!r}{where} is part of the fit, or no field. Change it in the schema and fit again. "
                f"What may be changed is {quoted(known)}.{did_you_mean(field, known)}"
            )


def _require_entries(policy: Any) -> None:
    """Refuse an unknown entry of a table inside the policy, which could not be removed."""
    for name, kind in (("letter", Letter), ("drift", Limits)):
        table = policy.get(name) if isinstance(policy, Mapping) else None
        for entry in table if isinstance(table, Mapping) else ():
            if entry not in kind.__struct_fields__:
                entries = quoted(kind.__struct_fields__)
                raise SchemaError(f"annotate: policy.{name} has no entry {entry!r}. It may hold {entries}.")


def _actionable(feature: Feature, changes: Mapping[str, Any]) -> dict[str, str]:
    """Return what a change of `protected` does to `actionable`: protected features are fixed, others were free."""
    if "protected" not in changes or bool(changes["protected"]) == feature.protected:
        return {}
    return {"actionable": "fixed" if changes["protected"] else "free"}


def _updated(table: Mapping[str, Any], changes: Any) -> Any:
    """Return a table with some entries changed; None removes one."""
    if not isinstance(changes, Mapping):
        return changes
    updated = dict(table)
    for key, value in changes.items():
        updated[key] = _updated(updated.get(key) or {}, value) if isinstance(value, Mapping) else value
    return {key: value for key, value in updated.items() if value is not None}


def annotations_of(schema: Schema, features: Iterable[str]) -> dict[str, Any]:
    """Return the entries of a schema for these features that may be changed after a fit."""
    plain = schema.to_dict()
    fields_of = {name: plain["features"][name] for name in features if name in plain["features"]}
    return {
        "outcome": plain.get("outcome", {}),
        "policy": plain.get("policy", {}),
        "features": {
            name: {field: fields[field] for field in FEATURE_ANNOTATIONS if field in fields}
            for name, fields in fields_of.items()
        },
    }
