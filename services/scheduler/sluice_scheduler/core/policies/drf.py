"""Dominant Resource Fairness: serve the queue that has least of what it has most of."""

from __future__ import annotations

from fractions import Fraction

from sluice.values import POD_SLOTS

from sluice_scheduler.core.books import Books
from sluice_scheduler.core.entities import Pod
from sluice_scheduler.core.tree import QueueNode


class Drf:
    def rank(self, queue: QueueNode, claim: Pod, books: Books) -> tuple[bool, Fraction, int, int]:
        """First claims that a guarantee covers, then the lowest share, then priority, then age."""
        share, _ = books.dominant_share(queue)
        covered = is_covered(queue, claim, books)
        return (not covered, share, -claim.facts.priority, claim.facts.created_ms)


def is_covered(queue: QueueNode, claim: Pod, books: Books) -> bool:
    """Whether the queue would be within its guarantee in every resource that the claim asks for."""
    if not (queue.facts.guaranteed or queue.facts.guaranteed_by_pool):
        return False
    return all(
        books.used(queue.name, resource) + amount <= books.guaranteed(queue, resource)
        for resource, amount in claim.facts.requests.items()
        if amount and resource != POD_SLOTS  # which no author of a guarantee thinks of
    )
