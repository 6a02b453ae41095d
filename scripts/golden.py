"""Write the golden models in tests/golden: the answers that model files of every format must always give.

    python scripts/golden.py models     fit classifiers on German credit, write missing model files and answers
    python scripts/golden.py answers    write only the answers, for all existing model files

Nothing else writes there. Existing model files are never written again: a new format gets new files. Change answers
only if they are meant to change, and say in the commit which ones and why. To write files with another checkout:
PYTHONPATH=<checkout>/src python scripts/golden.py models
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
from plainrisk.form.file import FORMAT

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "golden"
# One file of every classifier of the paper is of format 1. Those of format 3 hold the words, the protected features
# and the cut-off of German credit.
OF_FORMAT = {2: ("ARM1", "BandARM1", "MonoXGB"), 3: ("ARM1", "ARM2", "BandARM1", "MonoXGB", "SmoothARM1")}
PAIRS = "Pairs.format2"  # made from the form of ARM1
POLICY = "Policy.format3"  # ARM1 with a policy that states everything, and texts about the model
N_ROWS = 50
DECIMALS = 15  # the test asks for 1e-12


def rows(frame) -> list[dict]:
    """Return every 20th applicant of the 1,000."""
    return frame[:: len(frame) // N_ROWS].to_dicts()


def answers(model, applicants: list[dict], of_format: int) -> dict:
    """Return what the test compares: risks, contributions, reasons and the certificate's verdicts.

    From format 3 on also what the policy says: reasons in words, what is withheld, decisions and letters.
    """
    import polars

    frame = polars.DataFrame(applicants)
    explained = model.explain(frame, reference=applicants[0])
    reasons = (model if of_format > 2 else as_asked_then(model)).reasons(frame, portfolio=frame)
    found = {
        "risk": rounded(model.predict_proba(frame)[:, 1]),
        "unit": explained.unit,
        "contributions": {n: rounded(c) for n, c in zip(explained.names, explained.contributions.T, strict=True)},
        "reasons": [list(reasons.named(i)) for i in range(len(frame))],
        "certificate": {check.name: check.holds for check in model.certify().checks},
    }
    if of_format > 2:
        decided = model.decide(frame, portfolio=frame)
        found["words"] = [list(reasons.words(i)) for i in range(len(frame))]
        found["withheld"] = reasons.withheld.tolist()
        found["refused"] = decided.refused.tolist()
        found["letters"] = [decided.letter(i) for i in range(len(frame))]
    return found


def as_asked_then(model: pr.RiskModel) -> pr.RiskModel:
    """Return a model of format 1 or 2 with what calls said then: a good end is predicted, reasons go by subscale."""
    schema = model.form_.schema.replace(adverse="negative", policy={"order": "subscale"})
    return pr.RiskModel(msgspec.structs.replace(model.form_, schema=schema))


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


def with_policy(model: pr.RiskModel) -> pr.RiskModel:
    """Return the model with other words, and a policy whose every entry is stated."""
    changes = {
        "outcome": {"positive": "pays back", "negative": "does not pay back"},
        "features": {
            "Housing": {"label": "Home", "labels": {"A151": "rented", "A152": "own"}, "protected": True},
            "Credit amount": {"unit": "DM", "reason": "The loan is large", "actionable": "down", "step_cost": 2.5},
            "Duration in month": {"reasons": {"missing": "You gave no duration"}, "note": "As asked for"},
        },
        "policy": {
            "cutoff": 0.75,
            "reasons": 3,
            "order": "subscale",
            "inquiries": ["Number of existing credits at this bank"],
            "reference": "typical",
            "letter": {
                "refused": "We must refuse you:\n{reasons}\n({comparison})\n",
                "approved": "We lend to you.\n",
                "typical": "as against most",
                "missing": "No word on {feature}",
            },
            "drift": {"moderate": 0.05, "large": 0.2},
        },
    }
    return model.annotate(changes, about={"owner": "Retail credit"})


def write_models() -> None:
    """Write the model files of this checkout's format that are not there yet."""
    data = pr.datasets.load("german", backend="polars")
    write(GOLDEN / "rows.json", rows(data.frame))
    if FORMAT == 1:
        names = {name: name for name, classifier in pr.CLASSIFIERS.items() if classifier.in_paper}
    else:
        names = {f"{name}.format{FORMAT}": name for name in OF_FORMAT[FORMAT]}
    for stem, name in names.items():
        path = GOLDEN / f"{stem}.model.json"
        if path.exists():
            print(f"{path.name} is there and stays")
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pr.make_classifier(name, data.schema).fit(data.frame, data.target).save(path)
    pairs, policy = (GOLDEN / f"{stem}.model.json" for stem in (PAIRS, POLICY))
    if FORMAT == 2 and not pairs.exists():
        form = with_pairs(pr.load(GOLDEN / "ARM1.format2.model.json").form_)
        write_model(pairs, form, certificate=certify(form))
    if FORMAT == 3 and not policy.exists():
        with_policy(pr.load(GOLDEN / "ARM1.format3.model.json")).save(policy)


def write_answers(*, replace: bool) -> None:
    """Write the answers of all model files, or of those that have none yet."""
    applicants = json.loads((GOLDEN / "rows.json").read_text(encoding="utf-8"))
    for path in sorted(GOLDEN.glob("*.model.json")):
        to = GOLDEN / path.name.replace(".model.", ".answers.")
        if replace or not to.exists():
            of_format = json.loads(path.read_text(encoding="utf-8"))["format"]
            write(to, answers(pr.load(path), applicants, of_format))


if __name__ == "__main__":
    if sys.argv[1:] == ["models"]:
        write_models()
    elif sys.argv[1:] != ["answers"]:
        sys.exit(__doc__)
    write_answers(replace=sys.argv[1] == "answers")
    print(f"written to {GOLDEN} by {Path(pr.__file__).parent}")
