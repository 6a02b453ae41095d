"""What the service counts, for Prometheus: requests, seconds, rows, models and reloads; nothing of an applicant."""

from __future__ import annotations

import os
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

__all__ = ["Counts"]

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Counts:
    """The counters of one process; where several work together, `text` adds up those of all."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        own: dict[str, Any] = {"registry": registry}
        self.requests = Counter("plainrisk_requests", "Requests answered.", ("path", "status"), **own)
        self.seconds = Histogram("plainrisk_seconds", "Seconds per request.", ("path",), buckets=SECONDS, **own)
        self.rows = Counter("plainrisk_rows", "Rows answered for.", ("model", "verb"), **own)
        self.reloads = Counter("plainrisk_reloads", "Model files read anew.", ("model", "result"), **own)
        self.models = Gauge(
            "plainrisk_model", "1 for the model that answers.", ("model", "sha256"), multiprocess_mode="liveall", **own
        )
        self._registry = registry

    def text(self) -> bytes:
        """Return all counters in Prometheus' format."""
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)
