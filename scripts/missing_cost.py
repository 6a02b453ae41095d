"""Measure what it costs to forbid that an empty or special field is better than every measured level.

    PLAINRISK_DATA=folder python scripts/missing_cost.py [--data heloc german] [--models SmoothARM1]

Ten stratified folds, shuffled with seed 0; AUC is the mean over the folds, log loss that of all held-out predictions.
"free" lifts all rules, "default" is the rule if the schema states none (missing values of features with a direction
are not better), "all" is 'not_better' for missing values, special values and values below the bound of every feature.
The last column counts the special levels with rows that are better than every measured level in the free model, fitted
to all rows. Prints Markdown.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import msgspec

import plainrisk as pr

DATA = ("heloc", "gmsc", "taiwan", "german")
MODELS = ("SmoothARM1", "BandARM1")


def strict(feature: pr.Feature) -> pr.Feature:
    """Return a feature none of whose special levels may be better than the best measured one."""
    return msgspec.structs.replace(
        feature,
        missing="not_better",
        special_rules={pr.schema.label_of(value): "not_better" for value in feature.special_values},
        below_bound=None if feature.lower_bound is None else "not_better",
    )


def judge(data: Any, name: str) -> str:
    """Cross-validate a model under the three settings; return a line of the table."""
    everywhere = {feature: strict(known) for feature, known in data.schema.features.items()}
    settings = {
        "free": pr.make_classifier(name, data.schema, rules="free"),
        "default": pr.make_classifier(name, data.schema),
        "all": pr.make_classifier(name, msgspec.structs.replace(data.schema, features=everywhere)),
    }
    found = {key: pr.cross_validate(model, data.frame, data.target) for key, model in settings.items()}
    auc = {key: one.mean["auc"] for key, one in found.items()}
    loss = {key: one.pooled["log_loss"] for key, one in found.items()}
    changes = [f"{figure[key] - figure['free']:+.4f}" for figure in (auc, loss) for key in ("default", "all")]
    outside = [o for o in settings["free"].fit(data.frame, data.target).certify().outside if o.rows > 0]
    better = f"{sum(level.below > 0 for level in outside)} of {len(outside)}"
    cells = [f"{auc['free']:.4f}", *changes[:2], f"{loss['free']:.4f}", *changes[2:], better]
    return f"| {data.name} | {name} | {' | '.join(cells)} |"


def main() -> None:
    """Run what was asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    given = parser.parse_args()
    print("| | | AUC, free | default | all | log loss, free | default | all | better levels |")
    print("|" + " --- |" * 9)
    warnings.simplefilter("ignore", pr.errors.PlainriskWarning)
    for name in given.data:
        data = pr.datasets.load(name)
        for model in given.models:
            print(judge(data, model), flush=True)


if __name__ == "__main__":
    main()
