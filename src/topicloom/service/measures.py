"""What the service counts of itself, in the text format of Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.process_collector import ProcessCollector

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class Measures:
    """Counters of one service. Requests for unknown paths share one entry, so that nobody can make it grow."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "topicloom_requests", "Requests answered.", ("route", "method", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "topicloom_request_seconds", "Time to answer.", ("route",), buckets=_BUCKETS, registry=self.registry
        )
        self.in_progress = Gauge("topicloom_requests_in_progress", "Requests worked on.", registry=self.registry)
        self.texts = Counter("topicloom_inferred_texts", "Texts whose topics were inferred.", registry=self.registry)
        self.refused = Counter(
            "topicloom_refused", "Requests refused because too many were worked on.", registry=self.registry
        )

    def text(self) -> bytes:
        """Return all measures in the text format."""
        return generate_latest(self.registry)
