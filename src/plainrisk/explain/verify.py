"""Check a plainrisk model file without plainrisk: python verify.py MODEL [--json]. Python 3.11 or later, nothing else.

Hashes, directions, rules for empty fields and codes, range, weights and protected features are checked for all
possible applicants, in exact fractions; that contributions add up is tested on sampled levels. The exit code is 0 if
every claim holds and the file says the same of its certificate, 1 if not, 2 if it is damaged (docs/model-file.md).
"""

import bisect
import hashlib
import itertools
import json
import math
import random
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

ROWS = 256  # combinations of levels on which contributions are added up
COUNTS = "scores weights positives"
# The allowed fields of a record, by its kind.
CONTENT = f"""file format plainrisk sha256 form_sha256 form fit certificate cutoff about
form schema columns classes parts pool ranges; alone kind; mixture kind weights link; layer kind intercept weights link
additive kind name intercept shapes link pairs; trees kind name intercept inputs trees link
input feature category order missing; tree inputs edges missing_left left right values
table kind levels {COUNTS}; line kind slope center levels {COUNTS}; curve kind breaks coefficients levels {COUNTS}
pair kind features levels {COUNTS}; bins kind edges special_values lower_bound; logistic kind
categories kind categories n_ordered groups; linear kind slope offset low high; bands kind knots values"""
KEYS = {kind: set(keys) for kind, *keys in map(str.split, CONTENT.replace(";", "\n").splitlines())}
# The consistency checks of a record, by its kind.
FITS: Any = {
    "form": lambda parts, **_: all("kind" in r for p in parts for r in (p, *p.get("shapes", {}).values())),
    "table": lambda levels, **r: {len(r[field]) for field in COUNTS.split()} == {size(levels)},
    "line": lambda levels, **r: FITS["table"](levels, **r) and not levels["edges"],
    "curve": lambda **r: FITS["line"](**r),
    "pair": lambda levels, **r: all([*map(len, r[f])] == [size(*levels[1:])] * size(levels[0]) for f in COUNTS.split()),
    "bins": lambda edges, **_: edges == sorted({*edges}),
    "categories": lambda **r: 0 <= r["n_ordered"] <= len(r["categories"]) and len(dict(labels(r))) == len(labels(r)),
    "tree": lambda inputs, left, right, **r: all(
        j < 0 or k < min(a, b) for k, (j, a, b, *_) in enumerate(zip(inputs, left, right, *r.values(), strict=True))
    ),
    "linear": lambda slope, low, high, **_: slope > 0 and 0 <= low < high <= 1,
    "bands": lambda knots, values, **_: (
        len(knots) == len(values) > 1
        and all(numbers == sorted({*numbers}) for numbers in (knots, values))
        and all(0 <= value <= 1 for value in values[1:-1])
    ),
    "mixture": lambda weights, **_: min(weights) >= 0 and abs(math.fsum(weights) - 1) <= 1e-9,
}


def canonical(value: Any) -> str:
    """Write JSON without spaces, every number with the fewest digits that give it."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{canonical(k)}:{canonical(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if not isinstance(value, float) or "e" not in repr(value):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    digits, power = repr(value).split("e")
    return f"{Decimal(repr(value)):f}" if -5 <= int(power) < 0 else f"{digits}e{int(power)}"


def read(path: str) -> Any:
    """Return a model file of known content that has the hashes it states."""
    model = json.loads(Path(path).read_text(encoding="utf-8"))
    check(model, "file")
    check(model["form"], "form")
    stored, rest = model.get("certificate") or model, {key: model[key] for key in model if key != "sha256"}
    whole, form = (hashlib.sha256(canonical(content).encode()).hexdigest() for content in (rest, model["form"]))
    known = model["format"] == 1 or (model["format"] in (2, 3) and whole == model["sha256"])
    if not (known and form == model["form_sha256"] == stored["form_sha256"]):
        raise ValueError("the content does not match its hashes, or the format is not known here")
    return model


def check(value: Any, kind: str = "") -> None:
    """Raise where a record has unknown content, which may mean anything, or does not fit together."""
    if isinstance(value, dict):
        tree, entry = {"edges", "missing_left"} <= value.keys(), isinstance(value.get("feature"), str)
        kind = kind or ("tree" if tree else "input" if entry else "")  # other tables have records by name
        kind = value["kind"] if isinstance(value.get("kind"), str) else kind
        if kind and not (value.keys() <= KEYS[kind] and FITS.get(kind, dict)(**value)):
            raise ValueError(f"{kind}: unknown content, or content that does not fit together")
        value = [] if kind == "file" else [value["parts"], value["pool"]] if kind == "form" else [*value.values()]
    for entry in value if isinstance(value, list) else ():
        check(entry)


def labels(levels: Any) -> list[tuple[str, int]]:
    groups = levels.get("groups") or {}
    return [(name, k) for k, first in enumerate(levels["categories"]) for name in (first, *groups.get(first, ()))]


def plain(value: Any) -> str:
    return value if isinstance(value, str) else str(int(value)) if value == int(value) else repr(value)


def size(levels: Any) -> int:
    if levels["kind"] == "categories":
        return len(levels["categories"]) + 2
    return len(levels["edges"]) + len(levels["special_values"]) + (levels["lower_bound"] is not None) + 2


def level_of(levels: Any, value: Any) -> int:
    """Return the level of a number, of a label, or of None, a missing value."""
    if levels["kind"] == "categories":
        return size(levels) - 2 if value is None else dict(labels(levels)).get(value, size(levels) - 1)
    edges, special, bound = levels["edges"], levels["special_values"], levels["lower_bound"]
    if value is None or value in special:
        return size(levels) - 1 if value is None else len(edges) + len(special) - special[::-1].index(value)
    return size(levels) - 2 if bound is not None and value < bound else bisect.bisect_left(edges, value)


def cell(low: float, high: float, special: set[float]) -> float | None:
    """Return the largest number in (low, high] that is not special; without an upper end, one beyond all codes."""
    value = high if high < math.inf else max(abs(n) for n in (low, 0.0, *special) if abs(n) < math.inf) * 2 + 1
    while value in special and value > low:
        value = math.nextafter(value, -math.inf)
    return value if value > low else None


class Feature:
    """A feature of a form, with a value for every set of values that its levels treat alike."""

    def __init__(self, form: Any, weights: list[float], name: str) -> None:
        said = self.said = form["schema"]["features"][name]
        self.name, self.sign = name, {"increasing": 1, "decreasing": -1}.get(said.get("direction"), 0)
        self.rules = {"missing": said.get("missing"), "below": said.get("below_bound"), **said.get("special_rules", {})}
        self.worse = -1 if form["schema"].get("adverse") == "negative" else 1
        read = [{*p.get("shapes", ()), *(entry["feature"] for entry in p.get("inputs", ()))} for p in form["parts"]]
        joined = zip(form["parts"], weights, read, strict=True)
        self.parts = [(p, w) for p, w, names in joined if name in names or self.pairs(p)]
        self.counts = [(s["levels"], s["weights"]) for p, _ in self.parts if (s := p.get("shapes", {}).get(name))]
        self.counts += [(lv, [*map(math.fsum, t)]) for p, _ in self.parts for lv, t in self.pairs(p, "weights")]
        self.levels, self.codes = [levels for levels, _ in self.counts], {*map(plain, said.get("special_values", ()))}
        if said.get("kind") == "categorical":
            known = dict.fromkeys(label for levels in self.levels for label, _ in labels(levels))
            self.measured: list[Any] = [label for label in known if label not in self.codes]
            self.outside: dict[str, Any] = {label: label for label in known if label in self.codes} | {"missing": None}
            return
        special = {value for lv in self.levels for value in lv["special_values"]}
        bound = max((lv["lower_bound"] for lv in self.levels if lv["lower_bound"] is not None), default=-math.inf)
        below, edges = math.nextafter(bound, -math.inf), sorted({edge for lv in self.levels for edge in lv["edges"]})
        cells = [cell(max(a, below), b, special) for a, b in itertools.pairwise((-math.inf, *edges, math.inf))]
        self.measured = [value for value in cells if value is not None]
        self.outside = {plain(value): value for value in special} | {"missing": None}
        self.outside |= {"below": cell(-math.inf, below, special)} if bound > -math.inf else {}

    def pairs(self, part: Any, field: str = "scores") -> list[tuple[Any, list[Any]]]:
        """Return the levels of the feature in each of its pairs, with a row of the table for each level."""
        joined = [(p["features"].index(self.name), p) for p in part.get("pairs") or () if self.name in p["features"]]
        return [(p["levels"][k], [*zip(*p[field], strict=True)] if k else p[field]) for k, p in joined]

    def adds(self, part: Any, value: Any) -> tuple[Fraction, list[list[Fraction]]]:
        """Return what a value adds to the score of a part, and in each pair for every level of the other feature."""
        shape, rows = part["shapes"].get(self.name), self.pairs(part)
        k = 0 if shape is None else level_of(shape["levels"], value)
        straight = shape is None or (shape["kind"] != "table" and k == 0)  # of a line, the mean measurement
        single = Fraction(0 if straight else shape["scores"][k])
        return single, [[*map(Fraction, table[level_of(levels, value)])] for levels, table in rows]

    def least(self, part: Any, after: Any, before: Any) -> Fraction:
        """Return the least difference between two values, whatever the other features are."""
        (high, ups), (low, downs) = self.adds(part, after), self.adds(part, before)
        return high - low + sum(min(map(Fraction.__sub__, *rows)) for rows in zip(ups, downs, strict=True))

    def steps(self, part: Any) -> Any:
        """Yield how far each step of the feature moves the score of a part in its direction at least."""
        for tree in part.get("trees", ()):
            leaves = [{value} for value in tree["values"]]
            for k in reversed([k for k, j in enumerate(tree["inputs"]) if j >= 0]):
                entry = part["inputs"][tree["inputs"][k]]
                low, high = (leaves[tree[side][k]] for side in ("left", "right")[:: self.sign])
                leaves[k] = low | high
                if entry["feature"] == self.name:
                    yield -1 if entry["category"] is not None else min(high) - max(low)
        shape = part.get("shapes", {}).get(self.name, {"levels": {}, "scores": ()})
        yield from self.slopes(shape)
        if self.pairs(part):
            yield 1 - len({levels.get("lower_bound") for levels in self.levels})
            yield from (self.least(part, *step[:: -self.sign]) for step in itertools.pairwise(self.measured))
        else:
            n = shape["levels"].get("n_ordered", len(shape["levels"].get("edges", ())) + 1)
            yield from (self.sign * (b - a) for a, b in itertools.pairwise(shape["scores"][:n]))

    def slopes(self, shape: Any) -> Any:
        """Yield the smallest slopes of a line or a curve, and how its pieces meet, except for rounding."""
        pieces, breaks = shape.get("coefficients", [(0, shape.get("slope", 0))]), shape.get("breaks", (0, 1))
        last, end = len(pieces) - 1, Fraction(0)
        for k, piece in enumerate(pieces):
            width = Fraction(breaks[k + 1]) - Fraction(breaks[k])
            a, b, c, d = (self.sign * Fraction(number) for number in (*piece, 0, 0, 0)[:4])
            at = [t for t in (0, width, -c / (3 * d) if d else 0) if (k == 0 or t >= 0) and (k == last or t <= width)]
            yield from (b + 2 * c * t + 3 * d * t * t for t in at)
            yield from (side * (d * side if d else c) for side, outer in ((-1, 0), (1, last)) if k == outer)
            yield from (4 - len(piece), a - end + 1e-9 * (1 + abs(end)) if k else 0)
            end = a + b * width + c * width**2 + d * width**3

    def keeps_order(self, levels: Any) -> bool:
        """Whether levels take no value out of the order that the schema does not, and have its order of categories."""
        if levels["kind"] == "categories":
            place = {plain(label): k for k, label in enumerate(self.said.get("categories") or ())}
            known = sorted((k, place[c]) for c, k in labels(levels) if c in place and k < levels["n_ordered"])
            return all(a < b for (_, a), (_, b) in itertools.pairwise(known))
        low, bound = levels["lower_bound"], self.said.get("lower_bound")
        return {*map(plain, levels["special_values"])} <= self.codes and low in (None, bound)

    def keeps_rule(self, part: Any, label: str, rule: str) -> bool:
        """Whether a part obeys the rule of a value that is not a measurement."""
        if part["kind"] == "trees" or label not in self.outside:
            return False
        score, rows = self.adds(part, self.outside[label])
        if rule == "neutral":
            return not score and not any(map(any, rows))
        seen = [v for v in self.measured if all(n[level_of(lv, v)] > 0 for lv, n in self.counts if sum(n) > 0)]
        above = [self.least(part, *(self.outside[label], v)[:: self.worse]) >= 0 for v in seen or self.measured]
        return not above or (any if rule == "not_better" else all)(above)


def claims(form: Any) -> list[tuple[str, bool, str]]:
    """Return every claim of the certificate: its name, whether it holds, and the evidence."""
    schema, pool, made = form["schema"], form["pool"], []
    given = [1.0] if pool["kind"] == "alone" else pool["weights"]
    features = [Feature(form, given, name) for name in schema["features"]]
    for f in [f for f in features if f.sign]:
        holds = all(map(f.keeps_order, f.levels)) and all(min(w, *f.steps(part)) >= 0 for part, w in f.parts)
        made.append((f"monotone in {f.name}", holds, "proved"))
    bounds = ("not_better", "worst", "neutral")
    rules = [(f, label, rule) for f in features if f.parts for label, rule in f.rules.items() if rule in bounds]
    if rules:
        holds = all(w >= 0 and f.keeps_rule(part, *rule) for f, *rule in rules for part, w in f.parts)
        made.append(("empty fields and codes", holds, "proved"))
    protected = {f.name: f.said.get("actionable") for f in features if f.said.get("protected")}
    if protected:
        named = protected.keys() & schema.get("policy", {}).get("inquiries", ())
        made.append(("protected features", {*protected.values()} == {"fixed"} and not named, "read in the schema"))
    made.append(("risk inside [0, 1]", True, "proved"))  # a file with a link that leaves its range was refused
    names = {"mixture": "weights are a distribution", "layer": "subscale weights not negative"}
    made.append((names.get(pool["kind"], "weights"), min(given) >= 0, "proved"))
    return [*made, ("contributions add up", gap(form, given) <= 1e-9, f"sampled on {ROWS} combinations of levels")]


def risk(link: Any, score: float) -> Any:
    """Return the probability of a score or, without a link, the score itself."""
    if not link or link["kind"] == "linear":
        return min(max(link["offset"] + link["slope"] * score, link["low"]), link["high"]) if link else score
    if link["kind"] == "logistic":
        return 1.0 / (1.0 + math.exp(min(-score, 700.0)))
    k = bisect.bisect_right(link["knots"][1:-1], score)
    (a, z), (b, y) = link["knots"][k : k + 2], link["values"][k : k + 2]
    return min(max(b + (y - b) / (z - a) * (score - a), 0.0), 1.0)


def gap(form: Any, weights: list[float]) -> Any:
    """Return how far contributions, differences of scores at mean slopes, are from the difference of two risks."""
    rng, gaps, old, pool = random.Random(0), [], None, form["pool"]
    for _ in range(ROWS):
        terms, runs = [], []  # what features, pairs and trees add, by part; the score and the risk of each part
        for p in form["parts"]:
            shapes = [*p.get("shapes", {}).values()]
            rows = [rng.choice(pair["scores"]) for pair in p.get("pairs") or ()]
            rows += [tree["values"] for tree in p.get("trees", ())] + [shape["scores"] for shape in shapes]
            lines = [shape.get("slope", 0.0) * rng.uniform(-9, 9) for shape in shapes]
            terms.append([*lines, *map(rng.choice, rows)])
            score = p["intercept"] + math.fsum(terms[-1])
            runs.append((score, risk(p["link"], score)))
        pooled = pool.get("intercept", 0.0) + sum(w * r for w, (_, r) in zip(weights, runs, strict=True))
        runs.append((pooled, risk(pool.get("link"), pooled)))
        old = old or (terms, runs)
        rates = [0.0 if a == b else (q - p) / (b - a) for (a, p), (b, q) in zip(old[1], runs, strict=True)]
        steps = [[b - a for a, b in zip(*rows, strict=True)] for rows in zip(old[0], terms, strict=True)]
        scaled = zip(weights, rates[:-1], steps, strict=True)
        pieces = [rates[-1] * weight * rate * step for weight, rate, row in scaled for step in row]
        gaps.append(abs(old[1][-1][1] + math.fsum(pieces) - runs[-1][1]) / (1.0 + math.fsum(map(abs, pieces))))
    return max(gaps)


def main(path: str, *options: str) -> int:
    try:
        model = read(path)
        claimed = claims(model["form"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as err:
        print(json.dumps({"valid": False, "damaged": str(err)}) if "--json" in options else f"DAMAGED  {path}: {err}")
        return 2
    stored = {check["name"]: check["holds"] for check in (model.get("certificate") or {}).get("checks", ())}
    now = {name: holds for name, holds, _ in claimed}
    differs = [name for name in {**stored, **now} if stored and stored.get(name) != now.get(name)]
    valid = all(now.values()) and not differs
    lines = [f"holds   {name}: {how}" if holds else f"BROKEN  {name}" for name, holds, how in claimed]
    lines += [f"DIFFERS  {name}: the certificate in the file says otherwise" for name in differs]
    result = {"valid": valid, "claims": claimed, "certificate_differs": differs}
    print(json.dumps(result) if "--json" in options else "\n".join(lines))
    return 0 if valid else 1


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    sys.exit(main(*sys.argv[1:]) if sys.argv[1:] else __doc__)
