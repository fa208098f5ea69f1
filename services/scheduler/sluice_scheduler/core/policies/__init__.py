"""Policies order claims; they see the state and cannot touch the books.

One is named in the cell's configuration and found by the entry point group `sluice.policies`.
"""

from __future__ import annotations

from typing import Any, Protocol

from sluice_scheduler.core.books import Books
from sluice_scheduler.core.entities import Pod
from sluice_scheduler.core.tree import QueueNode


class Policy(Protocol):
    def rank(self, queue: QueueNode, claim: Pod, books: Books) -> Any:
        """Compares queues by the claim at the head of each: the lowest is served next.

        Ties go to the queue named first.
        """
        ...
