"""Kinship: a pod belongs to the application that its controllers lead to, or else to the one that it names.

Objects name their controller by uid, and may arrive in any order: when an account comes, changes hands or goes,
those below it are looked at again. Nobody is charged for objects of another namespace, whatever these say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from sluice.applications import APPLICATION_KINDS, BY_HAND

from sluice_scheduler.core.stored.accounts import Pod, Workload

if TYPE_CHECKING:
    from sluice_scheduler.core.state.state import State

#: Executor → driver → SparkApplication is a short way; a much longer one is a circle.
LINKS_MAX: Final = 8
#: What an account may stand below: a uid, or a title in a namespace.
_Above: TypeAlias = tuple[str, str, str]


class Kinship:
    """Accounts by what they say is above them."""

    def __init__(self, accounts: Iterable[Pod | Workload] = ()) -> None:
        self._below: dict[_Above, set[str]] = {}
        for account in accounts:
            self.add(account)

    def add(self, account: Pod | Workload) -> None:
        for above in _named_above(account):
            self._below.setdefault(above, set()).add(account.key)

    def remove(self, account: Pod | Workload) -> None:
        for above in _named_above(account):
            below = self._below.get(above, set())
            below.discard(account.key)
            if not below:
                self._below.pop(above, None)

    def workloads_below(self, state: State, account: Workload) -> Iterator[Workload]:
        """The workloads that an application controls."""
        for key in sorted(self._below.get((account.cluster, account.namespace, account.uid), ())):
            if (below := state.workloads.get(key)) is not None:
                yield below

    def pods_below(self, state: State, account: Pod | Workload) -> Iterator[Pod]:
        """The pods whose way up may lead past an account, the nearest first. Each is met once, however many ways
        lead to it."""
        seen: set[str] = set()
        level: list[Pod | Workload] = [account]
        for _ in range(LINKS_MAX + 1):
            below: list[Pod | Workload] = []
            for each in level:
                for found in self._next_below(state, each):
                    if found.key not in seen:
                        seen.add(found.key)
                        below.append(found)
                        if isinstance(found, Pod):
                            yield found
            level = below

    def _next_below(self, state: State, account: Pod | Workload) -> Iterator[Pod | Workload]:
        names = (account.uid, account.title) if isinstance(account, Workload) else (account.uid,)
        for name in names:
            for key in sorted(self._below.get((account.cluster, account.namespace, name), ())):
                below = state.pods.get(key) or state.workloads.get(key)
                if below is not None:
                    yield below


def _named_above(account: Pod | Workload) -> Iterator[_Above]:
    if isinstance(account, Workload):
        names: tuple[str, ...] = (account.facts.controller,)
    else:
        names = (account.facts.owner, account.facts.workload)
    return ((account.cluster, account.namespace, name) for name in names if name)


def charged_to(state: State, pod: Pod) -> tuple[str, str]:
    """The title of the application that a pod belongs to, and which of its pod sets; both may be empty.

    A title without an account is that of a pod group, or of a workload that somebody still has to write.
    """
    facts = pod.facts
    found = _led_to(state, pod, facts.owner, facts.pod_set, LINKS_MAX)
    if found is None and facts.workload:
        named = state.workload_by_title.get((pod.cluster, pod.namespace, facts.workload))
        if named is not None and not _is_later(named, pod):
            found = _highest(state, named, facts.pod_set, LINKS_MAX)
        elif facts.workload.partition("/")[0] not in APPLICATION_KINDS:
            return facts.workload, ""  # a group starts as one, whatever sets its pods say they are of
    return (found[0].title, found[1]) if found else ("", "")


def _is_later(named: Workload, pod: Pod) -> bool:
    """Whether a pod was there before the application that it names, and so means another of that name."""
    has_object = named.facts.kind in APPLICATION_KINDS and named.facts.kind != BY_HAND
    return has_object and pod.facts.created_ms < named.facts.created_ms


def members_of(state: State, workload: Workload) -> list[Pod]:
    """The pods that an application is charged for, whatever has become of them. A pod may name two, and is one's."""
    pods = state.kinship.pods_below(state, workload)
    return [pod for pod in pods if pod.application == workload.title]


def controlled(state: State, workload: Workload) -> bool:
    """Whether another application is charged for what this one holds."""
    above = _account(state, workload, workload.facts.controller)
    return isinstance(above, Workload)


def _highest(state: State, workload: Workload, pod_set: str, links: int) -> tuple[Workload, str]:
    facts = workload.facts
    above = _led_to(state, workload, facts.controller, facts.as_pod_set or pod_set, links)
    return above or (workload, pod_set)


def _led_to(
    state: State, below: Pod | Workload, uid: str, pod_set: str, links: int
) -> tuple[Workload, str] | None:
    above = _account(state, below, uid)
    if above is None or not links:
        return None
    if isinstance(above, Pod):
        return _led_to(state, above, above.facts.owner, pod_set, links - 1)
    return _highest(state, above, pod_set, links - 1)


def _account(state: State, below: Pod | Workload, uid: str) -> Pod | Workload | None:
    found: Pod | Workload | None = None
    if uid:
        found = state.workloads.get(f"{Workload.kind}/{below.cluster}/{uid}") or state.pods.get(
            f"{Pod.kind}/{below.cluster}/{uid}"
        )
    return found if found is not None and found.namespace == below.namespace else None
