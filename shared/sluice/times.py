"""Times as records' headers have them, and as people read and write them."""

from __future__ import annotations

from datetime import UTC, datetime


def clock(time_ms: int) -> str:
    """`2026-11-19T10:00:00.000+00:00`."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
