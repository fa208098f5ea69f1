"""What Prometheus reads of a watcher."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Gauge, Histogram

EVENTS: Final = Counter("sluice_watcher_events", "Objects seen, by how they came", ["kind", "change"])
RELISTS: Final = Counter("sluice_watcher_relists", "Lists begun, and why", ["kind", "reason"])
ERRORS: Final = Counter("sluice_watcher_errors", "Failed calls to the API server", ["kind", "error"])
WATCH_AGE: Final = Gauge(
    "sluice_watcher_watch_age_seconds", "Since the API server last said anything", ["kind"]
)
DEAD_LETTERS: Final = Counter("sluice_watcher_dead_letters", "Objects that could not be read", ["kind"])
RECORDS: Final = Counter("sluice_watcher_records", "Records that Kafka has acknowledged", ["type"])
UNACKNOWLEDGED: Final = Gauge("sluice_watcher_unacknowledged_records", "Records that wait for Kafka")
LAG: Final = Histogram(
    "sluice_watcher_lag_seconds",
    "From seeing an object to Kafka's acknowledgement, for the first record of each append",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120),
)
