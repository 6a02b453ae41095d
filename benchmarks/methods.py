"""The methods that are timed: plainrisk's models and their rivals, behind one small interface.

Every method gets the same numbers, in which categories are numbers already: plainrisk as a polars frame, since it
knows features by name, trees and glum as a matrix. optbinning asks for a pandas frame, and "ARM1 (frame)" starts from a
polars frame with text. `prepare` is outside the clock; `fit` holds all that a user would wait for.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.data import Data

TREES = {"max_depth": 2, "learning_rate": 0.1}
N_TREES = 50


@dataclass(frozen=True)
class Rows:
    """Rows as a method likes them, outcomes, and what is known of the features."""

    X: Any
    y: Any
    schema: Any


class Plainrisk:
    """One of plainrisk's classifiers, by its name."""

    ours, reads_rows = True, True

    def __init__(self, name: str, *, says: str, frame: bool = False, **options: Any) -> None:
        self.name, self.says, self.frame, self.options = name, says, frame, options

    def prepare(self, data: Data) -> Rows:
        import plainrisk

        assert self.name in plainrisk.CLASSIFIERS
        return Rows(data.frame, data.target, data.schema) if self.frame else number_rows(data)

    def fit(self, rows: Rows) -> Any:
        import plainrisk

        return plainrisk.make_classifier(self.name, rows.schema, **self.options).fit(rows.X, rows.y)

    def predict(self, model: Any, rows: Rows) -> Any:
        return model.predict_proba(rows.X)[:, 1]

    def single(self, model: Any, rows: Rows) -> Callable[[], Any]:
        """Return a call that scores one applicant, given as a dict."""
        applicant = rows.X.row(0, named=True)
        return lambda: model.predict_proba(applicant)


class XGBoost:
    """XGBoost with the paper's parameters, 50 trees of depth 2, rate 0.1, the schema's directions; or as it comes."""

    reads_rows = True
    ours = False

    def __init__(self, *, as_it_comes: bool = False) -> None:
        self.as_it_comes = as_it_comes
        paper = "the paper's parameters: 50 trees of depth 2, rate 0.1, the schema's directions"
        self.says = "100 trees of depth 6, without directions" if as_it_comes else paper

    def prepare(self, data: Data) -> Rows:
        import xgboost  # noqa: F401

        return tree_rows(data)

    def fit(self, rows: Rows) -> Any:
        from xgboost import XGBClassifier

        if self.as_it_comes:
            return XGBClassifier(n_jobs=threads()).fit(rows.X, rows.y)
        limits = tuple(signs(rows.schema))
        return XGBClassifier(**TREES, n_estimators=N_TREES, n_jobs=threads(), monotone_constraints=limits).fit(
            rows.X, rows.y
        )

    def predict(self, model: Any, rows: Rows) -> Any:
        """Score in place, which is faster than through a DMatrix or predict_proba."""
        return model.get_booster().inplace_predict(rows.X)

    def single(self, model: Any, rows: Rows) -> Callable[[], Any]:
        """Return a call that scores one row on one thread, which is the faster way."""
        booster, one = model.get_booster().copy(), rows.X[:1].copy()
        booster.set_param({"nthread": 1})
        return lambda: booster.inplace_predict(one)


class LightGBM:
    """LightGBM with the budget that XGBoost has, or as it comes."""

    reads_rows = True
    ours = False

    def __init__(self, *, as_it_comes: bool = False) -> None:
        self.as_it_comes = as_it_comes
        paper = "50 trees of depth 2, rate 0.1, the schema's directions"
        self.says = "100 trees of 31 leaves, without directions" if as_it_comes else paper

    def prepare(self, data: Data) -> Rows:
        import lightgbm  # noqa: F401

        return tree_rows(data)

    def fit(self, rows: Rows) -> Any:
        import lightgbm

        if self.as_it_comes:
            settings = {"objective": "binary", "num_threads": threads(), "verbosity": -1}
            return lightgbm.train(settings, lightgbm.Dataset(rows.X, rows.y), num_boost_round=100)
        settings = {**TREES, "objective": "binary", "num_leaves": 4, "num_threads": threads(), "verbosity": -1}
        settings["monotone_constraints"] = signs(rows.schema)
        return lightgbm.train(settings, lightgbm.Dataset(rows.X, rows.y), num_boost_round=N_TREES)

    def predict(self, model: Any, rows: Rows) -> Any:
        return model.predict(rows.X)

    def single(self, model: Any, rows: Rows) -> Callable[[], Any]:
        one = rows.X[:1].copy()
        return lambda: model.predict(one, num_threads=1)


class Glum:
    """glum with bounds on dense indicators of ARM1's bins: ARM1's own problem, the binning outside the clock."""

    reads_rows = False
    ours, says = False, "bounds, on indicators of ARM1's bins, which are given"

    def prepare(self, data: Data) -> Rows:
        import glum  # noqa: F401

        rows = number_rows(data)
        dense, lower = indicators(Plainrisk("ARM1", says="").fit(rows), rows)
        return Rows(dense, data.target.astype(np.float64), lower)

    def fit(self, rows: Rows) -> Any:
        """Fit with one thread of linear algebra: on these sizes it is the faster way, or as fast."""
        from glum import GeneralizedLinearRegressor
        from threadpoolctl import threadpool_limits

        lower = rows.schema
        model = GeneralizedLinearRegressor(
            family="binomial",
            alpha=1.0 / len(rows.y),  # glum's penalty is alpha / 2 ||beta||^2, ARM1's 1 / (2 n) ||beta||^2
            l1_ratio=0,
            lower_bounds=lower,
            upper_bounds=np.full(len(lower), np.inf),
            gradient_tol=1e-7,
            max_iter=1000,
            copy_X=False,
            check_input=False,
        )
        with threadpool_limits(1, user_api="blas"):
            return model.fit(rows.X, rows.y)

    def predict(self, model: Any, rows: Rows) -> Any:
        return model.predict(rows.X)


class Optbinning:
    """optbinning: optimal bins with trends, weights of evidence, logistic regression, a scorecard."""

    reads_rows = True
    ours, says = False, "Scorecard, at most 5 bins, trends by the schema"

    def prepare(self, data: Data) -> Rows:
        import optbinning  # noqa: F401

        frame = data.frame.to_pandas()
        for name, feature in data.schema.features.items():
            if feature.kind == "categorical":
                frame[name] = frame[name].astype(str).astype(object)
        return Rows(frame, data.target, data.schema)

    def fit(self, rows: Rows) -> Any:
        from optbinning import BinningProcess, Scorecard
        from sklearn.linear_model import LogisticRegression

        trends = {1: "ascending", -1: "descending", 0: "auto"}
        options: dict[str, dict[str, Any]] = {}
        for name, feature in rows.schema.features.items():
            options[name] = {"max_n_bins": 5}
            if feature.kind == "continuous":
                options[name]["monotonic_trend"] = trends[feature.sign]
                if feature.special_values:
                    options[name]["special_codes"] = list(feature.special_values)
        process = BinningProcess(
            list(options),
            categorical_variables=[n for n, f in rows.schema.features.items() if f.kind == "categorical"],
            binning_fit_params=options,
            n_jobs=threads(),
        )
        return Scorecard(process, LogisticRegression(max_iter=1000)).fit(rows.X, rows.y)

    def predict(self, model: Any, rows: Rows) -> Any:
        return np.asarray(model.predict_proba(rows.X))[:, 1]


class EBM:
    """An explainable boosting machine, the directions left to itself."""

    ours, reads_rows = False, True

    def __init__(self, *, says: str, **options: Any) -> None:
        self.says, self.options = says, options

    def prepare(self, data: Data) -> Rows:
        import interpret.glassbox  # noqa: F401

        return tree_rows(data)

    def fit(self, rows: Rows) -> Any:
        from interpret.glassbox import ExplainableBoostingClassifier

        return ExplainableBoostingClassifier(n_jobs=threads(), random_state=0, **self.options).fit(rows.X, rows.y)

    def predict(self, model: Any, rows: Rows) -> Any:
        return model.predict_proba(rows.X)[:, 1]


METHODS: dict[str, Any] = {
    "SmoothARM1": Plainrisk("SmoothARM1", says="smooth shapes, in as few bands as follow the curve: the default"),
    "ARM1": Plainrisk("ARM1", says="one-layer additive risk model"),
    "BandARM1": Plainrisk("BandARM1", says="ARM1, linearised in three bands"),
    "DirectARM1": Plainrisk("DirectARM1", says="ARM1 fitted directly in probability"),
    "ARM1 (frame)": Plainrisk("ARM1", says="ARM1 from a polars frame, categories as text", frame=True),
    "NNLR": Plainrisk("NNLR", says="nonnegative logistic regression"),
    "XGBoost": XGBoost(),
    "LightGBM": LightGBM(),
    "glum": Glum(),
    "optbinning": Optbinning(),
    "EBM": EBM(says="main effects, as it comes, without directions", interactions=0),
    "SmoothARM1 + pairs": Plainrisk("SmoothARM1", says="with pairs of features by evidence", pairs="auto"),
    "EBM as it comes": EBM(says="with interactions, without directions"),
    "XGBoost as it comes": XGBoost(as_it_comes=True),
    "LightGBM as it comes": LightGBM(as_it_comes=True),
}


def threads() -> int:
    """Return the number of threads that this process was given."""
    return int(os.environ.get("OMP_NUM_THREADS", "1"))


def signs(schema: Any) -> list[int]:
    """Return the direction of every feature: -1, 0 or 1."""
    return [int(feature.sign) for feature in schema.features.values()]


def number_rows(data: Data) -> Rows:
    """Return the matrix with its names, as a polars frame of numbers."""
    import polars

    return Rows(polars.DataFrame(data.matrix, list(data.matrix_schema.features)), data.target, data.matrix_schema)


def tree_rows(data: Data) -> Rows:
    """Return the matrix as boosted trees like it: float32, and NaN for codes that are no measurements."""
    X = data.matrix.astype(np.float32)
    for j, feature in enumerate(data.matrix_schema.features.values()):
        if feature.kind != "continuous":
            continue
        if feature.lower_bound is not None:
            X[X[:, j] < feature.lower_bound, j] = np.nan
        for code in feature.special_values:
            X[X[:, j] == code, j] = np.nan
    return Rows(X, data.target, data.matrix_schema)


def indicators(model: Any, rows: Rows) -> tuple[Any, Any]:
    """Return ARM1's problem as a dense matrix and the lower bounds of its coefficients.

    A feature with a direction has a nonnegative step between each two neighboring ordered levels; if other levels
    occur (missing, special values), a free coefficient for each and one for all ordered levels together. A feature
    without a direction has a free coefficient per level.
    """
    from plainrisk.data.frame import as_frame

    frame = as_frame(rows.X)
    tables, lower = [], []
    for name, shape in model.form_.parts[0].shapes.items():
        sign, levels = rows.schema.features[name].sign, np.arange(len(shape.levels))
        seen, ordered = levels[np.asarray(shape.weights) > 0], levels < shape.levels.n_ordered
        cuts = seen[ordered[seen]][1:] if sign else seen[:0]
        others = seen[~ordered[seen]] if sign else seen
        steps = [ordered & ((levels >= cut) if sign > 0 else (levels < cut)) for cut in cuts]
        free = [*([ordered] if sign and len(others) else []), *(levels == level for level in others)]
        table = np.array([*steps, *free], dtype=np.float64).reshape(-1, len(levels)).T
        tables.append((table, shape.levels.codes(frame, name)))
        lower += [0.0] * len(steps) + [-np.inf] * len(free)
    dense = np.empty((len(rows.y), len(lower)))
    at = 0
    for table, codes in tables:
        dense[:, at : at + table.shape[1]] = table[codes]
        at += table.shape[1]
    return dense, np.array(lower)
