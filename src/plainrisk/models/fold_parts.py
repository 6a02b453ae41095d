"""The parts of a model, each made as soon as its features are coded.

Coding is loops in C, which leave the interpreter to others; a small part's fits are mostly the interpreter's work. So
one thread fits a part while another codes the features of the next.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping, Sequence

from plainrisk.models.arm import AdditiveRiskModel
from plainrisk.models.fold_cells import fold_cells
from plainrisk.models.fold_fits import FoldPart
from plainrisk.models.fold_tables import Binning, FoldFeature, Folds, code_feature
from plainrisk.threads import side_by_side

__all__ = ["make_parts"]


def make_parts(
    folds: Folds, models: Mapping[str, AdditiveRiskModel], features: Mapping[str, Sequence[str]]
) -> list[FoldPart]:
    """Return the part of every model, its small fits done if there are several parts.

    Parameters
    ----------
    folds : the rows
    models : settings by name of the part
    features : those of each part
    """
    coded: dict[str, dict[str, FoldFeature]] = {name: {} for name in models}
    complete: queue.SimpleQueue[str] = queue.SimpleQueue()
    parts: dict[str, FoldPart] = {}
    errors: dict[str, Exception] = {}
    counting, fitting = threading.Lock(), threading.Lock()

    def code(task: tuple[str, str]) -> None:
        name, feature = task
        model = models[name]
        found = code_feature(folds, feature, Binning(model.max_bins, model.criterion, model.min_bin_rows))
        with counting:
            coded[name][feature] = found
            is_complete = len(coded[name]) == len(features[name])
        if is_complete and len(models) > 1:
            complete.put(name)
        # Two threads that fit would wait for each other, so the others go on with coding.
        while not complete.empty() and fitting.acquire(blocking=False):
            try:
                fit_one()
            finally:
                fitting.release()

    def fit_one() -> None:
        try:
            name = complete.get_nowait()
        except queue.Empty:  # another thread was faster
            return
        try:
            parts[name] = make(name).fitted_ahead()
        except Exception as error:
            errors[name] = error  # what is wrong with a column goes before

    def make(name: str) -> FoldPart:
        some = [coded[name][feature] for feature in features[name]]
        return FoldPart(name, models[name], some, fold_cells(some, len(folds.of)), folds).counted()

    for _ in side_by_side(code, _tasks(folds, features), len(folds.of)):
        pass
    for name in models:
        if name in errors:
            raise errors[name]
    return [parts[name] if name in parts else make(name) for name in models]


def _tasks(folds: Folds, features: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Return (part, feature) in an order in which threads seldom wait.

    Numbers take longest. So a part of few comes first, which can soon be fitted; then those of many, so that none of
    them is left at the end; and of each part its numbers before its labels.
    """

    def is_label(name: str) -> bool:
        return folds.training.schema.features[name].kind == "categorical"

    largest, *parts = sorted(features, key=lambda part: sum(map(is_label, features[part])) - len(features[part]))
    ordered = [*parts[-1:], largest, *parts[:-1]]
    return [(part, name) for part in ordered for name in sorted(features[part], key=is_label)]
