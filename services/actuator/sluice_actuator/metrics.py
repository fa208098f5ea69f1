"""What Prometheus is told."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Gauge, Histogram

DECISIONS: Final = Counter(
    "sluice_actuator_decisions", "Decisions answered with an outcome", ["cell", "type", "result"]
)
DECISION_SECONDS: Final = Histogram(
    "sluice_actuator_decision_seconds",
    "From reading a decision to knowing what became of it",
    ["type"],
    buckets=(0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300),
)
IN_FLIGHT: Final = Gauge("sluice_actuator_in_flight", "Decisions read and not settled")
DUPLICATES: Final = Counter("sluice_actuator_duplicates", "Decisions read again, and dropped", ["cell"])
DIVERGENCES: Final = Counter(
    "sluice_actuator_divergences", "Cells stopped: one seq, two different decisions", ["cell"]
)
DEAD_LETTERS: Final = Counter("sluice_actuator_dead_letters", "Unreadable decisions set aside")

API_REQUESTS: Final = Counter(
    "sluice_actuator_api_requests", "Calls of the Kubernetes API; status 0: no answer", ["verb", "status"]
)
API_SECONDS: Final = Histogram(
    "sluice_actuator_api_request_seconds",
    "Time to the API server's answer",
    ["verb"],
    buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 40),
)
