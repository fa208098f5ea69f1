"""Where things are, and under what they are remembered."""

from __future__ import annotations

from typing import Final

from sluice.applications import APPLICATION_KINDS, BY_HAND, QUEUE_JOB

WORKLOADS: Final = APPLICATION_KINDS[BY_HAND]
JOBS: Final = APPLICATION_KINDS[QUEUE_JOB]


def version_key(uid: str) -> str:
    """Under what the version of the DynamicWorkload of an application is remembered."""
    return f"dynamicworkload/{uid}"
