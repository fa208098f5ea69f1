"""What Prometheus is told. Metrics with labels are functions of them, remembered: looking them up is dear."""

from __future__ import annotations

from functools import cache
from typing import Final

from prometheus_client import Counter, Gauge, Histogram

DECISIONS: Final = cache(
    Counter(
        "sluice_actuator_decisions", "Decisions answered with an outcome", ["cell", "type", "result"]
    ).labels
)
DECISION_SECONDS: Final = cache(
    Histogram(
        "sluice_actuator_decision_seconds",
        "From reading a decision to knowing what became of it",
        ["type"],
        buckets=(0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300),
    ).labels
)
IN_FLIGHT: Final = Gauge("sluice_actuator_in_flight", "Decisions read and not settled")
DROPPED: Final = cache(
    Counter("sluice_actuator_dropped", "Decisions read again, or behind a fence", ["cell", "why"]).labels
)
DIVERGENCES: Final = cache(
    Counter("sluice_actuator_divergences", "Cells stopped: one seq, two different decisions", ["cell"]).labels
)
DEAD_LETTERS: Final = Counter("sluice_actuator_dead_letters", "Unreadable decisions set aside")

API_REQUESTS: Final = cache(
    Counter(
        "sluice_actuator_api_requests",
        "Calls of the Kubernetes API; status 0: no answer",
        ["verb", "status"],
    ).labels
)
API_SECONDS: Final = cache(
    Histogram(
        "sluice_actuator_api_request_seconds",
        "Time to the API server's answer",
        ["verb"],
        buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 40),
    ).labels
)
