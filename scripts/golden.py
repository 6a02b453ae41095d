"""Write the golden models of tests/golden: what model files of every format must give for ever.

    python scripts/golden.py models     fit every classifier on German credit, write its model file and its answers
    python scripts/golden.py answers    write only the answers, of the model files that are there

Nothing else writes there. Model files that were written once are never written again: a new format gets new files.
New answers are right only if answers are meant to change; say in the commit which, and why.
To write files as another checkout does: PYTHONPATH=<checkout>/src python scripts/golden.py models
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import msgspec

import plainrisk as pr
from plainrisk.explain import certify
from plainrisk.form import Bins, Categories, PairTable, RiskForm, write_model

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "golden"
OF_FORMAT_2 = ("ARM1", "BandARM1", "MonoXGB")  # one file of every classifier is of format 1
PAIRS = "Pairs.format2"  # made from the form of ARM1
N_ROWS = 50
DECIMALS = 15  # the test asks for 1e-12


def rows(frame) -> list[dict]:
    """Return every 20th applicant of the 1,000."""
    return frame[:: len(frame) // N_ROWS].to_dicts()


def answers(model, applicants: list[dict]) -> dict:
    """Return what the test compares: risks, contributions, reasons and the certificate's verdicts."""
    import polars

    frame = polars.DataFrame(applicants)
    explained = model.explain(frame, reference=applicants[0])
    reasons = model.reasons(frame, adverse="negative", portfolio=frame)  # the model predicts the good outcome
    return {
        "risk": rounded(model.predict_proba(frame)[:, 1]),
        "unit": explained.unit,
        "contributions": {n: rounded(c) for n, c in zip(explained.names, explained.contributions.T, strict=True)},
        "reasons": [list(reasons.named(i)) for i in range(len(frame))],
        "certificate": {check.name: check.holds for check in model.certify().checks},
    }


def rounded(values) -> list[float]:
    return [round(float(value), DECIMALS) for value in values]


def write(path: Path, content) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")


def with_pairs(form: RiskForm) -> RiskForm:
    """Return a form with two pairs written by hand, and one feature that stands in a pair only."""
    length = Bins((15.5, 30.0), (-1000.0,), -1000.0), (0.3, 0.0, -0.4, 0.0, 0.0, 0.1)
    savings = Bins((62.5,), (-1000.0,), -1000.0), (-0.2, 0.25, 0.0, 0.0, -0.05)
    housing = Categories(("A151", "A152", "A153"), 3), (0.5, 1.0, 0.75, 0.0, 0.0)
    pairs = [
        by_hand("Duration in month", length, "Savings account/bonds", savings, lambda a, b: b * (1.0 - a)),
        by_hand("Savings account/bonds", savings, "Housing", housing, lambda a, b: a * b),
    ]
    part = form.parts[0]
    shapes = {name: shape for name, shape in part.shapes.items() if name != "Housing"}
    return msgspec.structs.replace(form, parts=(msgspec.structs.replace(part, shapes=shapes, pairs=tuple(pairs)),))


def by_hand(u: str, first: tuple, v: str, second: tuple, score) -> PairTable:
    """Return a pair from a number per level of each feature; levels with the number 0 have no rows, others have 40."""
    scores = tuple(tuple(round(score(a, b), 6) if a and b else 0.0 for b in second[1]) for a in first[1])
    weights = tuple(tuple(40.0 * bool(s) for s in row) for row in scores)
    positives = tuple(tuple(w / 4 for w in row) for row in weights)
    levels = (first[0], second[0])
    return PairTable(features=(u, v), levels=levels, scores=scores, weights=weights, positives=positives)


def write_models() -> None:
    data = pr.datasets.load("german", backend="polars")
    write(GOLDEN / "rows.json", rows(data.frame))
    names = {name: name for name in pr.CLASSIFIERS} | {f"{name}.format2": name for name in OF_FORMAT_2}
    for stem, name in names.items():
        path = GOLDEN / f"{stem}.model.json"
        if path.exists():
            print(f"{path.name} is there and stays")
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pr.make_classifier(name, data.schema).fit(data.frame, data.target).save(path)
    path = GOLDEN / f"{PAIRS}.model.json"
    if not path.exists():
        form = with_pairs(pr.load(GOLDEN / "ARM1.format2.model.json").form_)
        write_model(path, form, certificate=certify(form))


def write_answers() -> None:
    applicants = json.loads((GOLDEN / "rows.json").read_text(encoding="utf-8"))
    for path in sorted(GOLDEN.glob("*.model.json")):
        write(GOLDEN / path.name.replace(".model.", ".answers."), answers(pr.load(path), applicants))


if __name__ == "__main__":
    if sys.argv[1:] == ["models"]:
        write_models()
    elif sys.argv[1:] != ["answers"]:
        sys.exit(__doc__)
    write_answers()
    print(f"written to {GOLDEN} by {Path(pr.__file__).parent}")
