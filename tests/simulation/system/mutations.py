"""The product broken on purpose, one defect at a time: which checker sees it, and in which run.

Each is a defect that somebody could write; some of them were there.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any, Final

import pytest
from simulation.system import conditions, processes
from simulation.system.actions import KEPT, Trace, draw_trace
from sluice.chain import BEGINNING
from sluice.values import DecisionId
from sluice_actuator import worker
from sluice_actuator.effects.base import Outcome
from sluice_actuator.effects.pods import AdmitEffect
from sluice_actuator.history import CellHistory
from sluice_actuator.outcomes import Outcomes
from sluice_scheduler.core.fairness import ground
from sluice_scheduler.core.fairness.places import Places
from sluice_scheduler.core.intake import recovery
from sluice_scheduler.ledger.memory import MemoryLedger
from sluice_scheduler.owner import CellOwner
from sluice_scheduler.published import Published
from sluice_scheduler.quarantine import Quarantine
from sluice_scheduler.takeover import TakeOver

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Mutation:
    """A defect, and who complains of it first: a checker, in the run of a seed.

    What the product draws from chance moves when the product does, and traces when a kind of action is added. Then
    one of the next seeds shows the same, among those in whose runs all of `needs` happens. What few seeds show is
    shown by a run that was `kept`.
    """

    break_it: Callable[[Patch], None]
    checker: str
    seed: int
    needs: frozenset[str]
    kept: str

    def traces(self) -> Iterator[Trace]:
        if self.kept:
            yield Trace.load((KEPT / f"{self.kept}.json").read_text())
            return
        for trace in map(draw_trace, count(self.seed)):
            if self.needs <= {action.kind for action in trace.actions}:
                yield trace


MUTATIONS: Final[dict[str, Mutation]] = {}


def shown_by(
    checker: str, *, seed: int = 0, needs: Iterable[str] = (), kept: str = ""
) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    def add(break_it: Callable[[Patch], None]) -> Callable[[Patch], None]:
        MUTATIONS[break_it.__name__] = Mutation(break_it, checker, seed, frozenset(needs), kept)
        return break_it

    return add


# ---- the owner


@shown_by("committed before it is published", seed=1)
def publishes_what_it_has_not_committed(patch: Patch) -> None:
    commit, step = CellOwner._commit, CellOwner._step

    async def committing(self: Any, records: Any, meta: Any, state: Any, box: Any) -> Any:
        self.mutated_box = box
        return await commit(self, records, meta, state, box)

    async def stepping(self: Any, epoch: Any, state: Any, received: Any, chain: Any) -> Any:
        entries, chain = await step(self, epoch, state, received, chain)
        self.mutated_box.put(entries, time_ms=0)
        return entries, chain

    patch.setattr(CellOwner, "_commit", committing)
    patch.setattr(CellOwner, "_step", stepping)


@shown_by("outcomes settle", seed=12, needs=("fail_over",))
def publishes_again_what_is_published(patch: Patch) -> None:
    async def nothing(self: Any, entry: Any) -> bool:
        return False

    patch.setattr(Published, "holds", nothing)


@shown_by("the chain holds", seed=0, needs=("kill",))
def begins_the_chain_anew_with_each_owner(patch: Patch) -> None:
    run = TakeOver.run

    async def unchained(self: Any) -> Any:
        meta, state, box = await run(self)
        return replace(meta, chain=BEGINNING), state, box

    patch.setattr(TakeOver, "run", unchained)


@shown_by("the log replays", seed=0)
def decides_by_chance(patch: Patch) -> None:
    step = conditions.step

    def sometimes(state: Any, event: Any, *, passes: bool = True) -> Any:
        return step(state, event, passes=passes and random.random() < 0.7)

    patch.setattr(conditions, "step", sometimes)


@shown_by("services live", seed=808, needs=("junk_first",))
def derives_nothing_of_what_it_cannot_read(patch: Patch) -> None:
    """As it was: an owner whose first record can't be read never went on."""
    step = Quarantine.step

    def underived(self: Any, state: Any, offset: int, event: Any) -> Any:
        return [] if event is None else step(self, state, offset, event)

    patch.setattr(Quarantine, "step", underived)


@shown_by("nobody waits for ever", seed=22, needs=("make_anew",))
def does_not_notice_other_topics(patch: Patch) -> None:
    """As it was: Kafka was made anew under services that ran, and they waited for offsets of before."""

    async def for_ever(known: Any, ask: Any) -> None:
        return None

    patch.setattr(processes, "while_topics_last", for_ever)


@shown_by("nobody waits for ever", kept="records-of-a-former-topic")
def takes_records_of_former_topics(patch: Patch) -> None:
    """As it was: what the feed still held was stepped where the REBUILD stood, so the ledger never began."""
    begin = CellOwner.__init__

    def unaware(self: Any, **about: Any) -> None:
        begin(self, **{**about, "topics": ""})

    patch.setattr(CellOwner, "__init__", unaware)


# ---- the ledger


@shown_by("epochs rise", seed=974, needs=("stop", "disturb"))
def takes_any_commit(patch: Patch) -> None:
    """The script without its checks: who was cut off and comes back overwrites what his successor wrote."""
    write = MemoryLedger.write

    def whatever(self: Any, cell: str, commit: Any) -> None:
        meta = self._cells[cell].meta
        held = {"epoch": meta.epoch, "expected_offset": meta.next_offset, "expected_seq": meta.next_seq}
        write(self, cell, replace(commit, **held))

    patch.setattr(MemoryLedger, "write", whatever)


# ---- the core


@shown_by("capacity is never passed", seed=5)
def counts_nodes_twice(patch: Patch) -> None:
    count = Places._count

    def twice(self: Any, cluster: str, pool: str, amounts: Any, sign: int) -> None:
        count(self, cluster, pool, {name: 2 * amount for name, amount in amounts.items()}, sign)

    patch.setattr(Places, "_count", twice)


@shown_by("limits are never passed", seed=10)
def knows_no_limits(patch: Patch) -> None:
    patch.setattr(ground, "limits_of", lambda *_: [])


@shown_by("accounts agree", seed=32, needs=("unwatch",))
def forgets_nothing_that_a_list_does_not_show(patch: Patch) -> None:
    patch.setattr(recovery, "on_sync_end", lambda state, event: None)


# ---- the actuator


@shown_by("a gate is opened by a decision", seed=0)
def writes_another_decision_into_the_pod(patch: Patch) -> None:
    begin = AdmitEffect.__init__

    def wrong(self: Any, cluster: Any, decision: Any, identity: DecisionId) -> None:
        begin(self, cluster, decision, replace(identity, seq=identity.seq + 1000))

    patch.setattr(AdmitEffect, "__init__", wrong)


@shown_by("a gate is opened once", seed=0)
def writes_over_what_a_pod_carries(patch: Patch) -> None:
    """Who tries again does not care whose decision has opened the pod."""
    write = AdmitEffect.write

    async def again(self: Any, now_ms: int) -> Any:
        await write(self, now_ms)
        self._identity = replace(self._identity, seq=self._identity.seq - 1)
        return await write(self, now_ms)

    patch.setattr(AdmitEffect, "write", again)


@shown_by("fences hold", seed=1122, needs=("empty_redis", "fault"))
def answers_fences_at_once(patch: Patch) -> None:
    async def at_once(self: Any, job: Any) -> None:
        self._answer(job, Outcome("Applied"))

    patch.setattr(worker.Actuator, "_answer_fence", at_once)
    patch.setattr(CellHistory, "fences", lambda self, epoch: False)


@shown_by("outcomes settle", seed=0)
def forgets_outcomes_on_the_way(patch: Patch) -> None:
    put = Outcomes.put

    def sometimes(self: Any, job: Any, outcome: Any) -> None:
        if outcome.seq % 7:
            put(self, job, outcome)

    patch.setattr(Outcomes, "put", sometimes)


@shown_by("nobody waits for ever", seed=10128, needs=("make_anew", "kill"))
def believes_positions_in_other_topics(patch: Patch) -> None:
    """As it was: a group's position was taken for one in a topic that had been made anew."""
    patch.setattr(worker, "counts", partial(_always, True))


def _always(answer: bool, *_: Any) -> bool:
    return answer
