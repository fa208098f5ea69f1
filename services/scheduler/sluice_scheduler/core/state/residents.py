"""Residents: the pods that hold, by the node that they run on."""

from __future__ import annotations

from sluice_scheduler.core.stored.accounts import Pod


class Residents:
    def __init__(self) -> None:
        self._on_node: dict[tuple[str, str], set[str]] = {}
        self._homeless: set[str] = set()  # pods that hold and are charged to no pool

    def of(self, cluster: str, node: str) -> set[str]:
        """The pods whose pool may change when a node changes."""
        return self._on_node.get((cluster, node), set()) | self._homeless

    def add(self, pod: Pod) -> None:
        if pod.facts.node:
            self._on_node.setdefault((pod.cluster, pod.facts.node), set()).add(pod.key)
        if not pod.pool:
            self._homeless.add(pod.key)

    def remove(self, pod: Pod) -> None:
        self._homeless.discard(pod.key)
        node = (pod.cluster, pod.facts.node)
        there = self._on_node.get(node)
        if there is not None:
            there.discard(pod.key)
            if not there:
                del self._on_node[node]
