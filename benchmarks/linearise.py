"""Linearise every library's additive logistic model: what the paper's line and three bands cost.

    PLAINRISK_DATA=folder python -m benchmarks.linearise [--models EBM pyGAM] [--json PATH]

HELOC, five stratified folds, shuffled with seed 0. Every model is fitted once per fold by its own library, with its
defaults where they run in a minute, and read into a risk form. AUC is the mean over the folds: the model's own, and
after `linearise` with one piece and with three. The clipped share is that of held-out rows. The difference is the
largest, over all held-out rows, between the form's log odds and the model's own. Failures are rows.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.table_text import Row, describe, markdown, one_thread, write_json

one_thread()

import numpy as np  # noqa: E402
from sklearn.model_selection import StratifiedKFold  # noqa: E402

import plainrisk as pr  # noqa: E402
from plainrisk.errors import PlainriskWarning  # noqa: E402

CODES = ["MaxDelq2PublicRecLast12M", "MaxDelqEver"]
COLUMNS = [
    ("model", "model", ""),
    ("AUC", "auc", ".4f"),
    ("one piece", "line", ".4f"),
    ("loss", "line_loss", "+.5f"),
    ("clipped", "line_clipped", ".3f"),
    ("three pieces", "bands", ".4f"),
    ("loss", "bands_loss", "+.5f"),
    ("clipped", "bands_clipped", ".4f"),
    ("difference in log odds", "difference", ".0e"),
    ("seconds per fit", "seconds", ".1f"),
]


@dataclass(frozen=True)
class Rival:
    """A library's model: how to fit it, its own log odds, and the rows as it wants them."""

    fit: Callable[[Any, Any], Any]
    log_odds: Callable[[Any, Any], Any]
    rows: Callable[[Any], Any] = lambda X: X


def _decision(model: Any, X: Any) -> Any:
    return model.decision_function(X)


def _ebm(X: Any, y: Any) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(interactions=0, n_jobs=1, random_state=0).fit(X, y)


def _pygam(X: Any, y: Any) -> Any:
    from pygam import LogisticGAM

    return LogisticGAM(max_iter=20).fit(X.to_numpy(), y)


def _statsmodels(X: Any, y: Any) -> Any:
    import statsmodels.api as sm

    return sm.Logit(y, X).fit(disp=0)


def _with_constant(X: Any) -> Any:
    import statsmodels.api as sm

    return sm.add_constant(X, has_constant="add")


def _pipeline(X: Any, y: Any) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = [c for c in X if c not in CODES]
    parts = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), CODES))
    return make_pipeline(parts, LogisticRegression(max_iter=1000)).fit(X, y)


def _glum(X: Any, y: Any) -> Any:
    from glum import GeneralizedLinearRegressor

    return GeneralizedLinearRegressor(family="binomial", alpha=1e-3).fit(X, y)


def _with_categories(X: Any) -> Any:
    return X.assign(**{c: X[c].astype(int).astype(str).astype("category") for c in CODES})


def _xgboost(X: Any, y: Any) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(max_depth=1, n_estimators=300, learning_rate=0.1, n_jobs=1).fit(X, y)


def _lightgbm(X: Any, y: Any) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(max_depth=1, num_leaves=2, n_estimators=300, n_jobs=1, verbose=-1).fit(X, y)


def _histogram(X: Any, y: Any) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_depth=1, max_iter=300, random_state=0).fit(X, y)


def _arm(X: Any, y: Any) -> Any:
    return pr.AdditiveRiskModel(pr.datasets.load("heloc").schema).fit(X, y)


RIVALS = {
    "EBM (interactions=0)": Rival(_ebm, _decision),
    "pyGAM LogisticGAM": Rival(_pygam, lambda m, X: m._linear_predictor(X.to_numpy())),
    "statsmodels Logit": Rival(_statsmodels, lambda m, X: np.asarray(m.predict(X, which="linear")), _with_constant),
    "scikit-learn pipeline": Rival(_pipeline, _decision),
    "glum": Rival(_glum, lambda m, X: m.linear_predictor(X), _with_categories),
    "XGBoost, depth 1": Rival(_xgboost, lambda m, X: m.predict(X, output_margin=True)),
    "LightGBM, depth 1": Rival(_lightgbm, lambda m, X: m.predict(X, raw_score=True)),
    "HistGradientBoosting, depth 1": Rival(_histogram, _decision),
    "plainrisk ARM1": Rival(_arm, lambda m, X: _logit(m.predict_proba(X)[:, 1])),
}


def _logit(p: Any) -> Any:
    return np.log(p) - np.log1p(-p)


def judge(rival: Rival, X: Any, y: Any) -> Row:
    """Cross-validate one model, its line and its bands."""
    folds: list[Row] = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(y, y):
        rows, held = rival.rows(X.iloc[train]), rival.rows(X.iloc[test])
        started = time.perf_counter()
        model = rival.fit(rows, y[train])
        seconds = time.perf_counter() - started
        own = rival.log_odds(model, held)
        form = pr.extract_form(model, rows)
        found = {"auc": pr.metrics.roc_auc(y[test], _sigmoid(own)), "seconds": seconds}
        found["difference"] = float(np.abs(form.score(held) - own).max())
        for name, pieces in (("line", 1), ("bands", 3)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PlainriskWarning)
                risk = pr.linearise(form, rows, pieces=pieces).predict_proba(held)[:, 1]
            found[name] = pr.metrics.roc_auc(y[test], risk)
            found[f"{name}_clipped"] = pr.metrics.certainty(y[test], risk)
        folds.append(found)
    means = {key: float(np.mean([f[key] for f in folds])) for key in folds[0]}
    means["difference"] = max(f["difference"] for f in folds)
    return {**means, "line_loss": means["auc"] - means["line"], "bands_loss": means["auc"] - means["bands"]}


def _sigmoid(score: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-np.asarray(score, dtype=np.float64)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(RIVALS), metavar="NAME", help="parts of their names")
    parser.add_argument("--json", metavar="PATH", help="also write the table's rows to this file")
    chosen = parser.parse_args()
    data = pr.datasets.load("heloc", backend="pandas")
    rows: list[Row] = []
    for name, rival in RIVALS.items():
        if not any(part in name for part in chosen.models):
            continue
        try:
            result = judge(rival, data.frame, np.asarray(data.target).astype(int))
        except Exception as error:
            result = {"error": describe(error)}
        rows.append({"model": name, **result})
    print(markdown(rows, COLUMNS))
    write_json(chosen.json, rows)


if __name__ == "__main__":
    main()
