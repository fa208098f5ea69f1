"""Accounts: what the ledger stores of pods and workloads."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import ClassVar, Final, Literal, TypeAlias

from sluice.applications import BY_HAND, listed_as
from sluice.events import PodFacts, WorkloadFacts
from sluice.values import Resources

from sluice_scheduler.core.stored.entities import TrackedObject

#: Waiting: gated. Assumed: a decision to admit is out. Holding: seen open. Withdrawn: known to be gone.
PodPhase: TypeAlias = Literal["Waiting", "Assumed", "Holding", "Withdrawn"]
#: So many characters of an application's name stand in the name of its DynamicWorkload.
_NAME_MAX: Final = 200


@dataclass(slots=True, kw_only=True)
class Pod(TrackedObject):
    """A managed pod's account."""

    kind: ClassVar[str] = "pod"
    facts: PodFacts
    phase: PodPhase = "Waiting"
    queue: str = ""  # charged to, or waiting in; empty while `problem` says why
    pool: str = ""  # where it holds its share
    seq: int = 0  # the decision that admitted it; 0: found open
    retry_ms: int = 0  # it pauses until the first tick from then on; 0: it doesn't
    problem: str = ""  # why it can't wait in any queue
    evicting: int = 0  # seq of the decision to evict it
    admitted_ms: int = 0
    application: str = ""  # the title of what it is charged with; empty: it stands for itself
    pod_set: str = ""
    judged: bool = False  # whether the minimum of its group came up in time
    stranger: bool = False  # first seen open, and not in a rebuild: this ledger did not open it
    until_ms: int = 0  # it was let into room that is kept for another, for it said that it ends by then
    #: The node selector by which it waited, if its gate was seen: who opened it has bound it to a pool.
    waited_by: dict[str, str] | None = None

    @property
    def asked_selector(self) -> dict[str, str]:
        """Where it could go before it was told where to."""
        return self.facts.node_selector if self.waited_by is None else self.waited_by

    @property
    def ends_ms(self) -> int:
        """When it ends at the latest, as it says itself; 0: it does not say, or nobody knows since when it runs."""
        return self.admitted_ms + self.facts.ends_in_ms if self.seq and self.facts.ends_in_ms else 0

    @property
    def holds(self) -> bool:
        return self.phase in ("Assumed", "Holding")

    @property
    def waits(self) -> bool:
        """Whether it may stand in a line at all."""
        return (
            self.phase == "Waiting"
            and not self.facts.deleting
            and not self.problem
            and not self.evicting
            and bool(self.queue)
        )

    @property
    def bypassed(self) -> bool:
        """Open without a decision, or with one that nobody made: the policies were got round."""
        return self.phase == "Holding" and self.seq == 0 and (self.stranger or not self.facts.decision)


@dataclass(slots=True, kw_only=True)
class JobRecord:
    """How far a QueueJob is. Its pods are `<job>-<index>-<attempt>`; an index is done when one succeeds."""

    attempts: dict[str, int] = field(default_factory=dict)  # index → pods made of it so far
    done: tuple[tuple[int, int], ...] = ()  # the first and the last index of each row of them, in order
    failures: int = 0
    in_a_row: int = 0
    resume_ms: int = 0  # no new pod before
    asked_for: dict[str, tuple[int, int]] = field(default_factory=dict)  # unseen pods → index, decision
    refusal: str = ""  # why its pods can't be made, until one is there
    outcome: Literal["", "Finished", "Failed"] = ""
    why: str = ""
    start_ms: int = 0
    end_ms: int = 0

    @property
    def successes(self) -> int:
        return sum(last - first + 1 for first, last in self.done)


@dataclass(slots=True, kw_only=True)
class Workload(TrackedObject):
    """An application's account. While admitted, what is missing of its minima is reserved."""

    kind: ClassVar[str] = "workload"
    facts: WorkloadFacts
    queue: str = ""
    problem: str = ""
    admitted: bool = False
    admitted_ms: int = 0
    priority: int = 0  # of its class, or its own
    seq: int = 0  # the last decision to release or suspend it; 0: there was none
    deadline_ms: int = 0  # until when its pods may hold up its suspension
    found: bool = False  # first seen in a rebuild: an earlier ledger may have released it
    retry_ms: int = 0  # it has no claim of its own until the first tick from then on
    #: What was granted at its admission: where each pod set is held, how many pods of it, and how large.
    pools: dict[str, str] = field(default_factory=dict)
    granted: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, Resources] = field(default_factory=dict)
    succeeded: dict[str, int] = field(default_factory=dict)  # finished pods of each pod set
    kept: dict[str, int] = field(default_factory=dict)  # shares of failed pods, for those that replace them
    judged: bool = False  # whether its minimum came up in time
    minima: dict[str, int] = field(default_factory=dict)  # smaller ones, since the rest did not come in time
    requeued_ms: int = 0  # it lost its place in line then
    reclaimed: dict[str, int] = field(default_factory=dict)  # pods given back; never falls while admitted
    taken: dict[str, int] = field(default_factory=dict)  # pods that were taken back
    shown: str = ""  # its DynamicWorkload, once that was asked for
    failed_ms: int = 0  # of Spark in client mode: when an executor failed that nobody has replaced
    job: JobRecord = field(default_factory=JobRecord)
    #: It lost pods when the cell's `grounds` stood there: it pushes nobody out until they rise, or until a
    #: tenure has passed.
    barred: int = -1
    barred_ms: int = 0
    #: For so many pods something was reserved at the last tick, and since when it has been as many.
    unclaimed: int = 0
    unclaimed_ms: int = 0
    no_shows: int = 0  # starts in a row of which no pod came
    late_starts: int = 0  # starts in a row in which its minimum did not come up in time
    no_show: str = ""  # that nobody came for what it was granted, until somebody comes

    @property
    def title(self) -> str:
        """What its pods call it; nothing else in its namespace has this title."""
        return self.name if self.facts.kind == BY_HAND else f"{self.facts.kind}/{self.name}"

    @property
    def shown_name(self) -> str:
        """The name of its DynamicWorkload. A later application of the same name has another."""
        if self.facts.kind == BY_HAND:
            return self.name
        mark = sha256(self.uid.encode()).hexdigest()[:5]
        return f"{self.facts.kind.lower()}-{self.name[:_NAME_MAX]}-{mark}"

    @property
    def place(self) -> tuple[str, str, str]:
        """The place in which applications are looked up."""
        return self.cluster, self.namespace, self.title

    @property
    def in_line_ms(self) -> int:
        """Since when it stands in line."""
        return max(self.facts.created_ms, self.requeued_ms)

    def with_one_more(self, counts: dict[str, int], pod_set: str) -> dict[str, int]:
        """Pods of a set are counted if the application has such a set: a pod may name any."""
        if all(each.name != pod_set for each in self.facts.pod_sets):
            return counts
        return {**counts, pod_set: counts.get(pod_set, 0) + 1}

    @property
    def listed_as(self) -> str:
        return listed_as(self.facts.kind)
