"""One fold of one data set at a time: fit, score, measure."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from plainrisk._version import __version__
from plainrisk.errors import DataError, MissingExtraError, PlainriskWarning, StoppedEarly
from plainrisk.models.base import RiskClassifier
from plainrisk.models.classifiers import CLASSIFIERS
from plainrisk.models.linearised import Linearised, linearise
from plainrisk.study.build import build
from plainrisk.study.measure import METRICS
from plainrisk.study.plan import ClassifierSpec, DataSpec
from plainrisk.study.rivals import RIVALS
from plainrisk.study.sources import StudyData, load_data
from plainrisk.study.store import Cell, CellKey

__all__ = ["Bench", "Job"]

Floats = npt.NDArray[np.float64]
_PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "xgboost",
    "xgboost-cpu",
    "lightgbm",
    "interpret-core",
    "optbinning",
)


@dataclass(frozen=True)
class Job:
    """Some classifiers to be fitted without one fold of one data set, and judged on it."""

    data: DataSpec
    fingerprint: str
    fold_of: npt.NDArray[np.uint8]
    folds: int
    seed: int
    fold: int
    conventions: str
    lineup: tuple[ClassifierSpec, ...]
    metrics: tuple[str, ...]

    def key(self, spec: ClassifierSpec) -> CellKey:
        """Return the key of one classifier's cell."""
        return CellKey(self.fingerprint, spec.key(self.conventions), self.folds, self.seed, self.fold)


@dataclass
class Bench:
    """What a worker keeps between jobs: the data set at hand, and fitted models that others build on.

    A linearised model is its logistic model with another link. So the logistic model is fitted once per fold, and
    each of them is charged its time.
    """

    data: StudyData | None = None
    _fitted: dict[str, tuple[Any, float]] = field(default_factory=dict)

    def cells(self, job: Job) -> Iterator[Cell]:
        """Yield the cells of a job, one after the other; what goes wrong is a cell too."""
        self._fitted.clear()
        for spec in job.lineup:
            yield self._cell(job, spec)
        self._fitted.clear()

    def _cell(self, job: Job, spec: ClassifierSpec) -> Cell:
        facts: dict[str, Any] = {"key": job.key(spec), "versions": _versions()}
        _forget_peak()
        try:
            with _quiet() as said:
                found = self._measure(job, spec)
        except MissingExtraError as error:
            return Cell(**facts, status="skipped", reason=str(error), finished=_now())
        except Exception as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            return Cell(**facts, status="failed", reason=reason[:2000], finished=_now())
        note = next((str(w.message) for w in said if issubclass(w.category, StoppedEarly)), "")
        return Cell(**facts, status="done", note=note, peak_mb=_peak_mb(), finished=_now(), **found)

    def _measure(self, job: Job, spec: ClassifierSpec) -> dict[str, Any]:
        data = self._rows(job)
        inside, held_out = np.flatnonzero(job.fold_of != job.fold), np.flatnonzero(job.fold_of == job.fold)
        ours = spec.kind in CLASSIFIERS or spec.kind in RIVALS or spec.kind.startswith("plainrisk.")
        rows = data.frame.rows if ours else data.native_rows
        train, test = rows(inside), rows(held_out)
        start = time.perf_counter()
        model, shared = self._fit(build(spec, data.schema, job.conventions), train, data.target[inside])
        fitted = time.perf_counter()
        risks = _risks(model, test, len(held_out))
        scored = time.perf_counter()
        return {
            "risks": risks,
            "fit_seconds": fitted - start + shared,
            "shared_seconds": shared,
            "score_seconds": scored - fitted,
            "figures": {m: METRICS[m].of(data.target[held_out], risks) for m in job.metrics},
        }

    def _fit(self, model: Any, X: Any, y: Any) -> tuple[Any, float]:
        """Return the fitted model and the seconds that were spent on it before."""
        if isinstance(model, Linearised) and isinstance(model.estimator, RiskClassifier):
            base, seconds = self._shared(model.estimator, X, y)
            own = {name: getattr(model, name) for name in ("alpha", "epsilon", "pieces", "knots")}
            return linearise(base, X, **own), seconds
        if isinstance(model, RiskClassifier):
            return self._shared(model, X, y)
        model.fit(X, y)
        return model, 0.0

    def _shared(self, model: Any, X: Any, y: Any) -> tuple[Any, float]:
        key = _settings(model)
        if key in self._fitted:
            return self._fitted[key]
        start = time.perf_counter()
        model.fit(X, y)
        self._fitted[key] = (model, time.perf_counter() - start)
        return model, 0.0

    def _rows(self, job: Job) -> StudyData:
        if self.data is None or self.data.fingerprint != job.fingerprint:
            self.data = None  # let go of the last one first
            self.data = load_data(job.data)
        if self.data.fingerprint != job.fingerprint:
            found, self.data = self.data.fingerprint, None
            raise DataError(f"{job.data.name} changed while the study ran: {job.fingerprint} became {found}.")
        return self.data


def _risks(model: Any, X: Any, n_rows: int) -> Floats:
    both = np.asarray(model.predict_proba(X), dtype=np.float64)
    if both.shape != (n_rows, 2):
        raise DataError(f"predict_proba must return shape {(n_rows, 2)}, not {both.shape}.")
    return np.ascontiguousarray(both[:, 1])


def _settings(model: Any) -> str:
    """Return the kind and the parameters of a model as text, the schema aside: within a data set it is the same."""
    params = {k: v for k, v in model.get_params().items() if not k.endswith("schema")}
    return f"{type(model).__name__} {sorted(params.items(), key=lambda item: item[0])!r}"


@contextlib.contextmanager
def _quiet() -> Iterator[list[warnings.WarningMessage]]:
    """Catch warnings: a study fits thousands of models, and what matters is in the cell's note."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", PlainriskWarning)
        yield said


def _versions() -> str:
    return _VERSIONS


def _installed() -> str:
    found = {"plainrisk": __version__}
    for package in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return msgspec.json.encode(found).decode()


_VERSIONS = _installed()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _forget_peak() -> None:
    """Ask Linux to start counting the peak memory anew; elsewhere there is none to report."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak_mb() -> float | None:
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024.0
    return None
