"""Model files that were changed and signed again: what a careful forger would hand in."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import math

import msgspec

RULES = ("free", "not_better", "worst", "neutral")


def signed(form):
    """Return a model file of a form as plain data, with the hashes that it would have."""
    file = {"format": 3, "plainrisk": "0.1.0", "form_sha256": _hash(form), "form": form}
    return {**file, "sha256": _hash(file)}


def _hash(plain):
    return hashlib.sha256(msgspec.json.encode(plain)).hexdigest()


def plain_form(form):
    """Return a form as its file holds it."""
    return json.loads(msgspec.json.encode(form))


def payload(form):
    """Return what the script of the page is given for a form."""
    shapes = [list(part.get("shapes", ())) for part in form["parts"]]
    schema = form["schema"]
    order = {"features": list(schema["features"]), "subscales": list(schema.get("subscales", ())), "shapes": shapes}
    return {"models": [{"form": form, "order": order, "typical": {}}]}


def tampered(form, rng):
    """Return a form, as plain data, with one change, and what it was."""
    form = copy.deepcopy(form)
    while (what := (change := rng.choice(CHANGES))(form, rng)) is None:
        pass  # there is nothing of this kind to change
    return form, f"{change.__name__}: {what}"


def _shapes(form):
    return [shape for part in form["parts"] for shape in part.get("shapes", {}).values()]


def _other(values, k, rng):
    """Return another number for one of several: a neighbor's, one a little beside it, or one far off."""
    near = values[rng.randrange(len(values))]
    return rng.choice([
        near,
        math.nextafter(near, math.inf),
        math.nextafter(near, -math.inf),
        values[k] + rng.gauss(0.0, 0.5),
        -values[k],
        0.0,
    ])  # fmt: skip


def scores(form, rng):
    if not (shapes := _shapes(form)):
        return None
    shape = rng.choice(shapes)
    k = rng.randrange(len(shape["scores"]))
    if shape["kind"] != "table" and k == 0:
        return None
    shape["scores"][k] = _other(shape["scores"], k, rng)
    return shape["scores"][k]


def swaps(form, rng):
    if not (shapes := [shape for shape in _shapes(form) if shape["kind"] == "table"]):
        return None
    values = rng.choice(shapes)["scores"]
    a, b = rng.randrange(len(values)), rng.randrange(len(values))
    values[a], values[b] = values[b], values[a]
    return (a, b)


def lines(form, rng):
    if not (shapes := [shape for shape in _shapes(form) if "slope" in shape]):
        return None
    shape = rng.choice(shapes)
    shape["slope"] *= rng.choice([-1.0, 0.0, 2.0])
    return shape["slope"]


def curves(form, rng):
    if not (shapes := [shape for shape in _shapes(form) if "coefficients" in shape]):
        return None
    piece = rng.choice(rng.choice(shapes)["coefficients"])
    k = rng.randrange(len(piece))
    piece[k] += rng.choice([-0.5, 0.5])
    return k


def cells(form, rng):
    if not (pairs := [pair for part in form["parts"] for pair in part.get("pairs", ())]):
        return None
    row = rng.choice(rng.choice(pairs)["scores"])
    k = rng.randrange(len(row))
    row[k] = _other(row, k, rng)
    return row[k]


def counts(form, rng):
    if not (shapes := _shapes(form)):
        return None
    weights = rng.choice(shapes)["weights"]
    k = rng.randrange(len(weights))
    weights[k] = 0.0 if weights[k] else 5.0
    return weights[k]


def links(form, rng):
    link = rng.choice([part["link"] for part in form["parts"]] + [form["pool"].get("link") or {"kind": "logistic"}])
    if link["kind"] == "logistic":
        return None
    field = rng.choice([name for name in link if name != "kind"])
    if link["kind"] == "bands":
        k = rng.randrange(len(link[field]))
        link[field][k] = _other(link[field], k, rng)
    else:
        link[field] = rng.choice([-link[field], link[field] + 0.1, 0.5, 0.0])
    return field


def pool(form, rng):
    if "weights" not in form["pool"]:
        return None
    weights = form["pool"]["weights"]
    a, b = rng.randrange(len(weights)), rng.randrange(len(weights))
    step = rng.choice([1e-7, weights[a] + 0.01, 0.01])
    weights[a], weights[b] = weights[a] - step, weights[b] + step * rng.choice([0.0, 1.0])
    return step


def levels(form, rng):
    lists = [shape["levels"] for shape in _shapes(form)]
    lists += [side for part in form["parts"] for pair in part.get("pairs", ()) for side in pair["levels"]]
    if not lists:
        return None
    some = rng.choice(lists)
    field = rng.choice([name for name in ("edges", "special_values", "categories") if some.get(name)] or ["none"])
    if field != "none":
        values = some[field]
        a, b = rng.randrange(len(values)), rng.randrange(len(values))
        if field == "special_values" or rng.random() < 0.3:
            values[a] = "other" if field == "categories" else values[a] + 0.25
        else:
            values[a], values[b] = values[b], values[a]
    elif some.get("lower_bound") is not None:
        some["lower_bound"] += rng.choice([-1.0, 1.0])
    else:
        return None
    return field


def schema(form, rng):
    name, feature = rng.choice(list(form["schema"]["features"].items()))
    what = rng.choice(["direction", "missing", "special_rules", "below_bound", "protected", "inquiries", "adverse"])
    if what == "direction":
        feature[what] = rng.choice(["increasing", "decreasing"])
    elif what == "missing":
        feature[what] = rng.choice(RULES)
    elif what == "special_rules" and feature.get("special_values"):
        value = feature["special_values"][0]
        feature[what] = {value if isinstance(value, str) else f"{value:g}": rng.choice(RULES)}
    elif what == "below_bound" and feature.get("lower_bound") is not None:
        feature[what] = rng.choice(RULES)
    elif what == "protected":
        feature |= {"protected": True, "actionable": rng.choice(["fixed", "fixed", "up", "free"])}
    elif what == "inquiries" and feature.get("protected"):
        form["schema"]["policy"] = {"inquiries": [name]}
    elif what == "adverse":
        if form["schema"].get("adverse") != "negative":
            return None  # a default is left out of a file, and what is new has its place among the others
        del form["schema"]["adverse"]
    else:
        return None
    form["schema"]["features"][name] = dict(_in_order(feature))
    return what


def _in_order(feature):
    """Yield the fields of a feature as a file has them: hashes depend on their order, and a default is left out."""
    from plainrisk.schema import Feature

    defaults = {"direction": "none", "protected": False, "actionable": "free"}
    for field in Feature.__struct_fields__:
        if field in feature and feature[field] != defaults.get(field, ...):
            yield field, feature[field]


def trees(form, rng):
    if not (parts := [part for part in form["parts"] if part["kind"] == "trees"]):
        return None
    tree = rng.choice(rng.choice(parts)["trees"])
    k = rng.randrange(len(tree["inputs"]))
    if tree["inputs"][k] >= 0:
        tree["left"][k], tree["right"][k] = tree["right"][k], tree["left"][k]
    else:
        tree["values"][k] = _other(tree["values"], k, rng)
    return k


CHANGES = (scores, swaps, lines, curves, cells, counts, links, pool, levels, schema, trees)


def variety(make_form, golden):
    """Return forms of every kind as plain data: fitted ones, and random ones whose schemas have directions."""
    found = [json.loads(path.read_text(encoding="utf-8"))["form"] for path in sorted(golden.glob("*.model.json"))]
    known = {
        "age": {"direction": "decreasing"},
        "debt": {"direction": "increasing"},
        "rent": {"direction": "increasing"},
    }
    for seed, (pairs, has_trees) in enumerate(itertools.product((False, True), (False, True))):
        for extra in range(6):
            made = plain_form(make_form(10 * seed + extra, features=known, pairs=pairs, trees=has_trees))
            if made["pool"]["kind"] == "mixture" and extra % 3:
                made["pool"]["link"] = {"kind": "bands", "knots": [0.1, 0.4, 0.9], "values": [0.05, 0.5, 0.95]}
            found.append(_ordered(made) if extra % 2 else made)
    return found


def _ordered(form):
    """Sort the scores of measured levels, so that there is something to break."""
    for part in form["parts"]:
        for name, shape in part.get("shapes", {}).items():
            direction = form["schema"]["features"][name].get("direction")
            if direction:
                n = len(shape["levels"]["edges"]) + 1
                shape["scores"][:n] = sorted(shape["scores"][:n], reverse=direction == "decreasing")
        for pair in part.get("pairs", ()):
            pair["scores"] = [[0.0] * len(row) for row in pair["scores"]]
    return form
