"""Counters for Prometheus: requests, rows, values, models, reloads; never an applicant's values."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, values
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from plainrisk.errors import PlainriskError
from plainrisk.serve.served import Shelf

__all__ = ["Counts"]

LOG = logging.getLogger("plainrisk.serve")

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Counts:
    """The counters of one process; `text` adds up those of all workers.

    Parameters
    ----------
    folder : of the counters of all workers; None for a single process
    who : the name of this worker; its replacement continues its counters
    """

    def __init__(self, folder: Path | None = None, who: str = "") -> None:
        self.folder, registry = folder, CollectorRegistry()
        if folder is not None:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
            values.ValueClass = values.MultiProcessValue(lambda: who)  # type: ignore[no-untyped-call]
        options: dict[str, Any] = {"registry": registry}
        self.requests = Counter("plainrisk_requests", "Requests answered.", ("path", "status"), **options)
        self.seconds = Histogram("plainrisk_seconds", "Seconds per request.", ("path",), buckets=SECONDS, **options)
        self.rows = Counter("plainrisk_rows", "Rows answered for.", ("model", "verb"), **options)
        self.rejects = Counter("plainrisk_rejects", "Rows set aside with their errors.", ("model", "verb"), **options)
        self._values = Counter(
            "plainrisk_values",
            "Values that are missing, unseen (categories) or out of the training rows' range.",
            ("model", "feature", "what"),
            **options,
        )
        self._reloads = Counter("plainrisk_reloads", "Model files read anew.", ("model", "result"), **options)
        self.workers = Counter("plainrisk_workers_replaced", "Workers that ended and were replaced.", **options)
        self._registry = registry

    def note_values(self, model: str, counts: Mapping[str, Mapping[str, int]]) -> None:
        """Add the counts of `plainrisk.form.beyond`."""
        for name, of_feature in counts.items():
            for what, n in of_feature.items():
                self._values.labels(model, name, what).inc(n)

    def refresh(self, shelf: Shelf) -> None:
        """Read models whose file was replaced; count and log what changed, or why the old one stays."""
        for name, outcome in shelf.refresh():
            failed = isinstance(outcome, PlainriskError)
            self._reloads.labels(name, "failed" if failed else "done").inc()
            if failed:
                LOG.error("model %s was not replaced: %s", name, outcome)
            else:
                LOG.info("model %s was replaced: %s", name, outcome)

    def text(self, shelf: Shelf) -> bytes:
        """Return all counters, and the models in force, in Prometheus' format."""
        registry = self._registry
        if self.folder is not None:
            registry = CollectorRegistry()
            MultiProcessCollector(registry, str(self.folder))  # type: ignore[no-untyped-call]
        models = CollectorRegistry()
        models.register(_InForce(shelf))
        return generate_latest(registry) + generate_latest(models)


class _InForce(Collector):
    """A gauge of the models that answer now in this process."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf

    def collect(self) -> Iterator[Metric]:
        """Yield one gauge."""
        gauge = GaugeMetricFamily("plainrisk_model", "1 for the model that answers.", labels=("model", "sha256"))
        for served in self.shelf.models.values():
            gauge.add_metric((served.name, served.sha256), 1)
        yield gauge
