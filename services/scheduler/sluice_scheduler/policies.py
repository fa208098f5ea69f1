"""What a policy of one's own imports, and nothing else of Sluice: docs/policies.md shows one.

A policy is asked which of several queues comes next, and compares what it is shown of them. It must go by that
alone: no clock, no chance, nothing that another process would answer otherwise, for replays must decide the
same. What is named here stays as it is within a version; the modules below `core` do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Protocol

from sluice.events import QueueFacts

from sluice_scheduler.core.fairness.claims import Claim
from sluice_scheduler.core.fairness.policies import Policy
from sluice_scheduler.core.fairness.shares import SHARE_ONE

__all__ = ["SHARE_ONE", "Branch", "Claim", "Policy", "Queue"]


class Queue(Protocol):
    """A Queue, as its author wrote it."""

    @property
    def name(self) -> str: ...

    @property
    def facts(self) -> QueueFacts: ...


class Branch(Protocol):
    """A queue with all below it, as policies see it. Nothing of it is theirs to change."""

    @property
    def name(self) -> str: ...

    @property
    def weight(self) -> int: ...

    @property
    def share(self) -> int:
        """Its dominant share, divided by its weight, in parts of `SHARE_ONE`."""
        ...

    @property
    def past_share(self) -> int:
        """The same of what was used lately. Only policies that look back have it kept up to date."""
        ...

    @property
    def usage(self) -> Mapping[tuple[str, str, str], int]:
        """What it holds, in base units, by cluster, pool and resource."""
        ...

    @property
    def line(self) -> Sized:
        """The claims that wait; those of a queue with others below it wait in a child of its own name."""
        ...

    @property
    def children(self) -> Sequence[Branch]: ...

    @property
    def queue(self) -> Queue | None:
        """None at the root above all queues."""
        ...
