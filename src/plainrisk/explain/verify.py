#!/usr/bin/env python3
"""Check a plainrisk model file without plainrisk: python verify.py MODEL [--json]. Python 3.11 or later, nothing else.

Hashes, directions, rules for empty fields and codes, range, weights and protected features are decided for all possible
applicants, in exact fractions; that contributions add up is tried on sampled levels. docs/model-file.md says more.
Ends with 0 if every claim holds and the certificate in the file says the same, 1 if not, 2 if the file is damaged.
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
BOUNDS = ("not_better", "worst", "neutral")
COUNTED = ("scores", "weights", "positives")
COUNTS = "levels scores weights positives"
# What may stand in a record, by its kind.
CONTENT = f"""file format plainrisk sha256 form_sha256 form fit certificate cutoff about
form schema columns classes parts pool ranges
additive kind name intercept shapes link pairs; trees kind name intercept inputs trees link
input feature category order missing; tree inputs edges missing_left left right values
table kind {COUNTS}; line kind slope center {COUNTS}; curve kind breaks coefficients {COUNTS}
pair kind features {COUNTS}; bins kind edges special_values lower_bound; categories kind categories n_ordered groups
logistic kind; linear kind slope offset low high; bands kind knots values
alone kind; mixture kind weights link; layer kind intercept weights link"""
KEYS = {kind: set(keys) for kind, *keys in map(str.split, CONTENT.replace(";", "\n").splitlines())}


def canonical(value: Any) -> str:
    """Write JSON without spaces, every number with the fewest digits that give it."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{canonical(k)}:{canonical(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if not isinstance(value, float):
        return json.dumps(value, ensure_ascii=False)
    digits, _, power = repr(value).partition("e")
    if power and -5 <= int(power) < 0:
        return f"{Decimal(repr(value)):f}"
    return f"{digits}e{int(power)}" if power else digits


def sha256(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def read(path: str) -> Any:
    """Return a model file of known content that has the hashes it states."""
    model = json.loads(Path(path).read_text(encoding="utf-8"))
    check(model, "file")
    check(model["form"], "form")
    stored = model.get("certificate") or model
    rest = {key: value for key, value in model.items() if key != "sha256"}
    if model["format"] not in (1, 2, 3) or (model["format"] > 1 and sha256(rest) != model["sha256"]):
        raise ValueError("the content does not match its hash, or the format is not known here")
    if not sha256(model["form"]) == model["form_sha256"] == stored["form_sha256"]:
        raise ValueError("the form does not match its hash")
    return model


def check(value: Any, kind: str = "") -> None:
    """Raise where a record has unknown content, which may mean anything, or does not fit together."""
    if isinstance(value, dict):
        tree, entry = {"edges", "missing_left"} <= value.keys(), isinstance(value.get("feature"), str)
        kind = kind or ("tree" if tree else "input" if entry else "")  # other tables have records by name
        kind = value["kind"] if isinstance(value.get("kind"), str) else kind
        if kind and not (value.keys() <= KEYS[kind] and fits(kind, value)):
            raise ValueError(f"{kind}: unknown content, or content that does not fit together")
        value = [] if kind == "file" else [value["parts"], value["pool"]] if kind == "form" else [*value.values()]
    for entry in value if isinstance(value, list) else ():
        check(entry)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is not finite")


def fits(kind: str, r: Any) -> Any:
    """Whether what stands in a record fits together."""
    if kind in ("table", "line", "curve"):
        return {len(r[f]) for f in COUNTED} == {size(r["levels"])} and (kind == "table" or not r["levels"]["edges"])
    if kind == "pair":
        rows, columns = map(size, r["levels"])
        return all([*map(len, r[field])] == [columns] * rows for field in COUNTED)
    if kind == "linear":
        return r["slope"] > 0 and 0 <= r["low"] < r["high"] <= 1
    if kind == "bands":
        rising = rises(r["knots"]) and rises(r["values"]) and len(r["knots"]) == len(r["values"]) > 1
        return rising and all(0 <= value <= 1 for value in r["values"][1:-1])
    if kind == "tree":
        return all(j < 0 or k < min(r["left"][k], r["right"][k]) for k, j in enumerate(r["inputs"]))
    if kind == "categories":
        return 0 <= r["n_ordered"] <= len(r["categories"]) and len(dict(labels(r))) == len(labels(r))
    if kind == "mixture":
        return min(r["weights"]) >= 0 and abs(math.fsum(r["weights"]) - 1) <= 1e-9
    return kind != "bins" or rises(r["edges"])


def rises(numbers: list[float]) -> bool:
    return all(a < b for a, b in itertools.pairwise(numbers))


def weights(form: Any) -> list[float]:
    return [1.0] if form["pool"]["kind"] == "alone" else form["pool"]["weights"]


def pairs(part: Any, name: str, field: str = "scores") -> list[tuple[Any, list[Any]]]:
    """Return the levels of a feature in each of its pairs, with a row of the table for each level."""
    joined = [(p["features"].index(name), p) for p in part.get("pairs") or () if name in p["features"]]
    return [(p["levels"][k], [*zip(*p[field], strict=True)] if k else p[field]) for k, p in joined]


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
    """Return the greatest number in (low, high] that is not special; where there is no end, one beyond all codes."""
    value = high if high < math.inf else max(abs(n) for n in (low, 0.0, *special) if abs(n) < math.inf) * 2 + 1
    while value in special and value > low:
        value = math.nextafter(value, -math.inf)
    return value if value > low else None


class Feature:
    """A feature of a form, with a value for every set of values that its levels treat alike."""

    def __init__(self, form: Any, name: str) -> None:
        said = form["schema"]["features"][name]
        self.name, self.said = name, said
        self.sign = {"increasing": 1, "decreasing": -1}.get(said.get("direction"), 0)
        self.rules = {"missing": said.get("missing"), "below": said.get("below_bound"), **said.get("special_rules", {})}
        self.worse = -1 if form["schema"].get("adverse") == "negative" else 1
        given = [
            (p, w, [entry["feature"] for entry in p.get("inputs", ())])
            for p, w in zip(form["parts"], weights(form), strict=True)
        ]
        self.parts = [(p, w) for p, w, read in given if name in p.get("shapes", read) or pairs(p, name)]
        shapes = [p["shapes"][name] for p, _ in self.parts if name in p.get("shapes", ())]
        rows = [(levels, [*map(math.fsum, t)]) for p, _ in self.parts for levels, t in pairs(p, name, "weights")]
        self.counts = [*((shape["levels"], shape["weights"]) for shape in shapes), *rows]
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

    def adds(self, part: Any, value: Any) -> tuple[Fraction, list[list[Fraction]]]:
        """Return what a value adds to the score of a part, and in each pair for every level of the other feature."""
        shape, rows = part["shapes"].get(self.name), pairs(part, self.name)
        k = 0 if shape is None else level_of(shape["levels"], value)
        straight = shape is None or (shape["kind"] != "table" and k == 0)  # of a line, the mean measurement
        single = Fraction(0 if straight else shape["scores"][k])
        return single, [[*map(Fraction, table[level_of(levels, value)])] for levels, table in rows]

    def least(self, part: Any, after: Any, before: Any) -> Fraction:
        """Return how far one value is above another at least, whatever the other features are."""
        (high, ups), (low, downs) = self.adds(part, after), self.adds(part, before)
        return high - low + sum(min(map(Fraction.__sub__, *rows)) for rows in zip(ups, downs, strict=True))

    def ordered(self, part: Any) -> bool:
        """Whether a part has no step against the direction of the feature."""
        if part["kind"] == "trees":
            return all(self.splits_ordered(part, tree) for tree in part["trees"])
        shape, tables = part["shapes"].get(self.name, {"kind": "none"}), pairs(part, self.name)
        if shape["kind"] == "line" and self.sign * shape["slope"] < 0:
            return False
        if shape["kind"] == "curve" and not curve_ordered(shape, self.sign):
            return False
        if tables:
            steps = [step[:: self.sign] for step in itertools.pairwise(self.measured)]
            one_bound = len({levels.get("lower_bound") for levels in self.levels}) == 1
            return one_bound and all(self.least(part, after, before) >= 0 for before, after in steps)
        if shape["kind"] != "table":
            return True
        n = shape["levels"].get("n_ordered", len(shape["levels"].get("edges", ())) + 1)
        return all(self.sign * (b - a) >= 0 for a, b in itertools.pairwise(shape["scores"][:n]))

    def splits_ordered(self, part: Any, tree: Any) -> bool:
        """Whether every leaf above a split on the feature is on the right side of every leaf below it."""
        leaves: dict[int, set[float]] = {}
        for k in reversed(range(len(tree["inputs"]))):
            entry = part["inputs"][tree["inputs"][k]] if tree["inputs"][k] >= 0 else None
            sides = [leaves[tree[side][k]] for side in ("left", "right")[:: self.sign]] if entry else []
            leaves[k] = set().union(*sides) if entry else {tree["values"][k]}
            if not entry or entry["feature"] != self.name:
                continue
            if entry["category"] is not None or min(sides[1]) < max(sides[0]):
                return False
        return True

    def keeps_order(self, levels: Any) -> bool:
        """Whether levels take no value out of the order that the schema does not, and have its order of categories."""
        if levels["kind"] == "categories":
            place = {plain(label): k for k, label in enumerate(self.said.get("categories") or ())}
            known = sorted((k, place[c]) for c, k in labels(levels) if c in place and k < levels["n_ordered"])
            return rises([rank for _, rank in known])
        low, bound = levels["lower_bound"], self.said.get("lower_bound")
        return {*map(plain, levels["special_values"])} <= self.codes and low in (None, bound)

    def keeps_rule(self, part: Any, label: str, rule: str) -> bool:
        """Whether a part keeps the rule of a value that is no measurement."""
        if part["kind"] == "trees" or label not in self.outside:
            return False
        score, rows = self.adds(part, self.outside[label])
        if rule == "neutral":
            return not score and not any(map(any, rows))
        counts = [(levels, given) for levels, given in self.counts if sum(given) > 0]
        seen = [v for v in self.measured if all(given[level_of(levels, v)] > 0 for levels, given in counts)]
        above = [self.least(part, *(self.outside[label], v)[:: self.worse]) >= 0 for v in seen or self.measured]
        return not above or (any if rule == "not_better" else all)(above)


def curve_ordered(curve: Any, sign: int) -> bool:
    """Whether a curve of degree 3 at most never moves against a sign; where two pieces meet, but for rounding."""
    last, end = len(curve["coefficients"]) - 1, None
    for k, piece in enumerate(curve["coefficients"]):
        width = Fraction(curve["breaks"][k + 1]) - Fraction(curve["breaks"][k])
        a, b, c, d = (sign * Fraction(number) for number in (*piece, 0, 0, 0)[:4])
        far = [side * (d * side if d else c) >= 0 for side, outer in ((-1, 0), (1, last)) if k == outer]
        at = [t for t in (0, width, -c / (3 * d) if d else 0) if (k == 0 or t >= 0) and (k == last or t <= width)]
        if len(piece) > 4 or not all(far) or any(b + 2 * c * t + 3 * d * t * t < 0 for t in at):
            return False
        if end is not None and a - end < -1e-9 * (1 + abs(end)):
            return False
        end = a + b * width + c * width**2 + d * width**3
    return True


def claims(form: Any) -> list[tuple[str, bool, str]]:
    """Return every claim of the certificate: its name, whether it holds, and how that is known."""
    schema, given, claims_made = form["schema"], weights(form), []
    features = [Feature(form, name) for name in schema["features"]]
    for f in [f for f in features if f.sign]:
        holds = all(map(f.keeps_order, f.levels)) and all(w >= 0 and f.ordered(part) for part, w in f.parts)
        claims_made.append((f"monotone in {f.name}", holds, "proved"))
    rules = [(f, label, rule) for f in features if f.parts for label, rule in f.rules.items() if rule in BOUNDS]
    if rules:
        holds = all(w >= 0 and f.keeps_rule(part, *rule) for f, *rule in rules for part, w in f.parts)
        claims_made.append(("empty fields and codes", holds, "proved"))
    protected = {f.name: f.said.get("actionable") for f in features if f.said.get("protected")}
    if protected:
        named = protected.keys() & schema.get("policy", {}).get("inquiries", ())
        claims_made.append(
            ("protected features", {*protected.values()} == {"fixed"} and not named, "read in the schema")
        )
    claims_made.append(("risk inside [0, 1]", True, "proved"))  # a file with a link that leaves its range was refused
    names = {"mixture": "weights are a distribution", "layer": "subscale weights not negative"}
    claims_made.append((names.get(form["pool"]["kind"], "weights"), min(given) >= 0, "proved"))
    return [
        *claims_made,
        ("contributions add up", largest_gap(form) <= 1e-9, f"sampled on {ROWS} combinations of levels"),
    ]


def risk(link: Any, score: float) -> Any:
    """Return the probability of a score; where there is no link, the score itself."""
    if not link or link["kind"] == "linear":
        return min(max(link["offset"] + link["slope"] * score, link["low"]), link["high"]) if link else score
    if link["kind"] == "logistic":
        return 1.0 / (1.0 + math.exp(min(-score, 700.0)))
    k = bisect.bisect_right(link["knots"][1:-1], score)
    (a, z), (b, y) = link["knots"][k : k + 2], link["values"][k : k + 2]
    return min(max(b + (y - b) / (z - a) * (score - a), 0.0), 1.0)


def largest_gap(form: Any) -> Any:
    """Return how far contributions, differences of scores at mean slopes, are from the difference of two risks."""
    rng, gaps, old, pool = random.Random(0), [], None, form["pool"]
    for _ in range(ROWS):
        terms, runs = [], []  # what features, pairs and trees add, by part; the score and the risk of each part
        for p in form["parts"]:
            lines = [shape.get("slope", 0.0) * rng.uniform(-9, 9) for shape in p.get("shapes", {}).values()]
            single = [*p.get("shapes", {}).values(), *({"scores": tree["values"]} for tree in p.get("trees", ()))]
            cells = [rng.choice(rng.choice(pair["scores"])) for pair in p.get("pairs") or ()]
            terms.append([*lines, *(rng.choice(shape["scores"]) for shape in single), *cells])
            score = p["intercept"] + math.fsum(terms[-1])
            runs.append((score, risk(p["link"], score)))
        pooled = pool.get("intercept", 0.0) + sum(w * r for w, (_, r) in zip(weights(form), runs, strict=True))
        runs.append((pooled, risk(pool.get("link"), pooled)))
        old = old or (terms, runs)
        rates = [0.0 if a == b else (q - p) / (b - a) for (a, p), (b, q) in zip(old[1], runs, strict=True)]
        scale = [rates[-1] * w * rate for w, rate in zip(weights(form), rates[:-1], strict=True)]
        pieces = [
            rate * (b - a) for rate, *rows in zip(scale, old[0], terms, strict=True) for a, b in zip(*rows, strict=True)
        ]
        gap = abs(old[1][-1][1] + math.fsum(pieces) - runs[-1][1])
        gaps.append(gap / (1.0 + math.fsum(map(abs, pieces))))
    return max(gaps)


def main(path: str, *options: str) -> int:
    """Print the claims of a model file; return the exit code."""
    try:
        model = read(path)
        claimed = claims(model["form"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        damaged = json.dumps({"valid": False, "damaged": str(error)})
        print(damaged if "--json" in options else f"DAMAGED  {path}: {error}")
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
