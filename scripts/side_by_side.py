"""Put SmoothARM1 beside what people use today, on the same folds: the table of README.

    make .venv-bench/.installed                  an environment with all methods but scorecardpy
    pip install scorecardpy 'pandas<3'           in it, for scorecardpy, which fails with pandas 3
    python scripts/side_by_side.py [DATA ...] [--folds 5]

DATA are names of `plainrisk data list`; German credit is built in. Every method has its default settings, the schema's
kinds and special values, and one thread. Seconds are CPU seconds of one fit, the mean over folds.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import time
import warnings

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

import plainrisk as pr
from plainrisk_lab.paper.rivals import EBM, MainEffectsEBM, OptbinningScorecard, Scorecardpy, XGBoostAsItComes

METHODS = {
    "plainrisk": lambda schema: pr.make_classifier("SmoothARM1", schema),
    "plainrisk, pairs": lambda schema: pr.make_classifier("SmoothARM1", schema, pairs="auto"),
    "EBM, main effects": MainEffectsEBM,
    "EBM": EBM,
    "XGBoost": XGBoostAsItComes,
    "optbinning": OptbinningScorecard,
    "scorecardpy": Scorecardpy,
}


def held_out(make, data, folds):
    """Return the log loss, the AUC and the CPU seconds of a fit, as means over the folds."""
    rows, y = data.frame, np.asarray(data.target)
    figures = []
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=0).split(np.zeros(len(y)), y):
        model, begin = make(data.schema), time.process_time()
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            model.fit(rows[train], y[train])
            seconds = time.process_time() - begin
            risk = model.predict_proba(rows[test])[:, 1]
        risk = np.clip(risk, 1e-6, 1 - 1e-6)  # a probability of exactly 0 would lose without bound
        figures.append((log_loss(y[test], risk), roc_auc_score(y[test], risk), seconds))
    return np.mean(figures, axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="*", default=["german"])
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    given = parser.parse_args()
    threadpool_limits(1)
    print("| data | method | log loss | AUC | CPU s of a fit |\n| --- | --- | ---: | ---: | ---: |")
    for name in given.data:
        data = pr.datasets.load(name)
        for method in given.methods:
            try:
                loss, auc, seconds = held_out(METHODS[method], data, given.folds)
            except Exception as error:
                print(f"| {name} | {method} | failed: {type(error).__name__} | | |", flush=True)
                print(f"{method}: {error}", file=sys.stderr)
                continue
            print(f"| {name} | {method} | {loss:.4f} | {auc:.4f} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
