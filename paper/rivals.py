"""Other people's models on the same folds: EBM, logistic regression on our bins, optbinning, LightGBM, tuned XGBoost.

Each rival reads the same rows under the same schema, is set as it comes where nothing is said, and runs on one thread.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.data.frame import Frame, as_frame
from plainrisk.models.boosted import read_inputs, tree_inputs
from plainrisk.models.fitting import encode_rows
from plainrisk.models.training import Training, read_training
from plainrisk.schema import Schema

__all__ = ["RIVALS", "Rival"]

Floats = npt.NDArray[np.float64]


class _Rival:
    """What rivals share: a schema, a seed, and one column of risk made two of probabilities."""

    def __init__(self, schema: Schema, *, seed: int = 0) -> None:
        self.schema = schema
        self.seed = seed

    def fit(self, X: Any, y: Any) -> Any:
        """Fit to rows and outcomes."""
        self._fit(read_training(X, y, self.schema, None, None))
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of both outcomes."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            risk = np.clip(self._risk(as_frame(X)), 0.0, 1.0)
        return np.column_stack([1.0 - risk, risk])

    def _fit(self, training: Training) -> None:
        raise NotImplementedError

    def _risk(self, frame: Frame) -> Floats:
        raise NotImplementedError


class BinnedLogistic(_Rival):
    """scikit-learn's logistic regression on one indicator per level of ARM1's bins: no directions, its own penalty."""

    def _fit(self, training: Training) -> None:
        from sklearn.linear_model import LogisticRegression

        encoded = encode_rows(training, max_bins=5)
        self.levels_ = dict(zip(encoded.names, encoded.levels, strict=True))
        self.model_ = LogisticRegression(max_iter=10_000).fit(self._indicators(training.frame), training.target)

    def _risk(self, frame: Frame) -> Floats:
        return np.asarray(self.model_.predict_proba(self._indicators(frame))[:, 1])

    def _indicators(self, frame: Frame) -> Any:
        from scipy.sparse import csr_array, hstack

        blocks = []
        for name, levels in self.levels_.items():
            codes = levels.codes(frame, name).astype(np.int64)
            starts = np.arange(len(codes) + 1)
            blocks.append(csr_array((np.ones(len(codes)), codes, starts), shape=(len(codes), len(levels))))
        return hstack(blocks, format="csr")


class LightGBM(_Rival):
    """LightGBM as it comes: 100 trees of 31 leaves."""

    def _fit(self, training: Training) -> None:
        from lightgbm import LGBMClassifier

        self.inputs_ = tree_inputs(training)
        self.model_ = LGBMClassifier(n_jobs=1, random_state=self.seed, verbose=-1)
        self.model_.fit(read_inputs(self.inputs_, training.frame), training.target)

    def _risk(self, frame: Frame) -> Floats:
        return np.asarray(self.model_.predict_proba(read_inputs(self.inputs_, frame)))[:, 1]


class TunedXGBoost(_Rival):
    """XGBoost, its depth and number of trees chosen on a fifth of the training rows, then fitted on all of them."""

    DEPTHS = (1, 2, 3, 5)
    MOST_TREES = 1000
    RATE = 0.05

    def _fit(self, training: Training) -> None:
        from sklearn.model_selection import train_test_split

        self.inputs_ = tree_inputs(training)
        X, y = read_inputs(self.inputs_, training.frame), training.target
        inside, held_out = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=self.seed)
        tried = []
        for depth in self.DEPTHS:
            one = self._booster(depth, self.MOST_TREES, early_stopping_rounds=30)
            one.fit(X[inside], y[inside], eval_set=[(X[held_out], y[held_out])], verbose=False)
            tried.append((float(one.best_score), depth, int(one.best_iteration) + 1))
        _, self.depth_, self.trees_ = min(tried)
        self.model_ = self._booster(self.depth_, self.trees_).fit(X, y)

    def _risk(self, frame: Frame) -> Floats:
        return np.asarray(self.model_.predict_proba(read_inputs(self.inputs_, frame))[:, 1], dtype=np.float64)

    def _booster(self, depth: int, trees: int, **more: Any) -> Any:
        from xgboost import XGBClassifier

        return XGBClassifier(
            max_depth=depth,
            n_estimators=trees,
            learning_rate=self.RATE,
            eval_metric="logloss",
            n_jobs=1,
            random_state=self.seed,
            **more,
        )


class MainEffectsEBM(_Rival):
    """An explainable boosting machine without interactions; everything else as it comes."""

    def _fit(self, training: Training) -> None:
        names = list(self.schema.features)
        kinds = [self.schema.features[n].kind for n in names]
        # By name, since these packages carry no types and may be missing.
        self.model_ = import_module("interpret.glassbox").ExplainableBoostingClassifier(
            interactions=0,
            feature_names=names,
            feature_types=["continuous" if k == "continuous" else "nominal" for k in kinds],
            n_jobs=1,
            random_state=self.seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model_.fit(_mixed_columns(training.frame, self.schema), training.target)

    def _risk(self, frame: Frame) -> Floats:
        return np.asarray(self.model_.predict_proba(_mixed_columns(frame, self.schema))[:, 1])


class OptbinningScorecard(_Rival):
    """optbinning's optimal bins with weights of evidence, and logistic regression on them."""

    def _fit(self, training: Training) -> None:
        from sklearn.linear_model import LogisticRegression

        features = self.schema.features
        special = {n: {"special_codes": list(f.special_values)} for n, f in features.items() if f.special_values}
        self.process_ = import_module("optbinning").BinningProcess(
            list(features),
            categorical_variables=[n for n, f in features.items() if f.kind == "categorical"],
            binning_fit_params=special or None,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            woe = self.process_.fit_transform(_mixed_columns(training.frame, self.schema), training.target)
            self.model_ = LogisticRegression(max_iter=10_000).fit(np.asarray(woe), training.target)

    def _risk(self, frame: Frame) -> Floats:
        woe = self.process_.transform(_mixed_columns(frame, self.schema))
        return np.asarray(self.model_.predict_proba(np.asarray(woe))[:, 1])


def _mixed_columns(frame: Frame, schema: Schema) -> Any:
    """Return a data frame: numbers with NaN for missing, and text."""
    from plainrisk.data.frame import frame_like

    columns: dict[str, Any] = {}
    for name, feature in schema.features.items():
        if feature.kind == "continuous":
            columns[name] = frame.numbers(name)
        else:
            found = frame.labels(name)
            words = np.array([*found.labels, "(missing)"], dtype=object)
            columns[name] = words[found.codes].tolist()
    return frame_like(columns)


@dataclass(frozen=True)
class Rival:
    """A rival by name.

    Attributes
    ----------
    name : in plans and tables
    needs : the packages that must be installed
    make : from a schema and options to the unfitted model
    """

    name: str
    needs: tuple[str, ...]
    make: Callable[..., Any]


RIVALS: Mapping[str, Rival] = {
    rival.name: rival
    for rival in (
        Rival("BinnedLR", (), BinnedLogistic),
        Rival("EBM", ("interpret",), MainEffectsEBM),
        Rival("Optbinning", ("optbinning",), OptbinningScorecard),
        Rival("LightGBM", ("lightgbm",), LightGBM),
        Rival("TunedXGB", ("xgboost",), TunedXGBoost),
    )
}
