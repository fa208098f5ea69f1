"""Drives a scenario: events of one time are one input, then comes a pass, then expectations are compared."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from sluice.decisions import Admit, Decision, Evict
from sluice.events import TickEvent

from sluice_scheduler.core.fairness.claims import Kind
from sluice_scheduler.core.fairness.policies import Policy
from sluice_scheduler.core.fairness.shares import SHARE_ONE, dominant_share
from sluice_scheduler.core.passes.move import PATIENCE_MS
from sluice_scheduler.core.passes.schedule import next_due_ms, waits_for_time
from sluice_scheduler.core.stored.entities import LostWork
from sluice_scheduler.installed import installed_policies
from sluice_scheduler.simulator.cell import CLUSTER, CONFIG, SimulatedCell
from sluice_scheduler.simulator.fairness import evenness, tree_of
from sluice_scheduler.simulator.scenario import Event, Expectation, Queue, Resize, Scenario, copies
from sluice_scheduler.simulator.statistics import Statistics, whole
from sluice_scheduler.simulator.told import Told
from sluice_scheduler.simulator.world import SimPod, World

#: At one time, in this order: pods whose runtime ends, victims whose grace ends, the file's events, ticks,
#: and what is expected.
_END, _LEAVE, _EVENT, _TICK, _EXPECT = range(5)
_TICK_MS: Final = 1_000
#: More rounds than this at one time are no scheduling any more.
_ROUNDS_MAX: Final = 2_000


class RestlessError(Exception):
    """Decisions at one time did not come to an end."""


class ImpossibleEventError(Exception):
    """An event of the scenario asks for what the world can't do any more; which one."""

    def __init__(self, index: int, message: str) -> None:
        super().__init__(index, message)
        self.index = index
        self._message = message

    def __str__(self) -> str:
        return f"events.{self.index}: {self._message}"


class Measured(NamedTuple):
    """A queue's share, and what it comes from. Of a capacity that changes the core makes another."""

    usage: dict[Kind, int]
    capacity: dict[Kind, int]
    weight: int
    share: float


@dataclass(slots=True)
class Result:
    lines: list[dict[str, Any]] = field(default_factory=list)
    #: The index of an expectation, and what did not hold of it.
    failures: list[tuple[int, str]] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)
    series: list[tuple[int, dict[str, float]]] = field(default_factory=list)  # shares over time
    mean_waits_ms: dict[str, float] = field(default_factory=dict)  # by queue
    mean_wait_ms: float = 0.0
    wait_quantiles_ms: dict[str, int] = field(default_factory=dict)
    #: Of the time in which some pod waited.
    contended_ms: int = 0
    contended_use: dict[str, float] = field(default_factory=dict)
    mean_shares: dict[str, float] = field(default_factory=dict)
    evenness: float = 1.0


class Simulation:
    def __init__(
        self,
        scenario: Scenario,
        *,
        policy: str = "",
        policies: dict[str, Policy] | None = None,
        after_feed: Callable[[SimulatedCell], None] | None = None,
    ) -> None:
        self._scenario = scenario
        config = replace(CONFIG, policy=policy or scenario.policy, half_life_ms=scenario.half_life)
        config = replace(
            config,
            tenure_ms=scenario.tenure,
            patience_ms=scenario.patience,
            reclaim_after_ms=scenario.reclaim_after,
        )
        self.cell = SimulatedCell(policies or installed_policies(), config, tells=False)
        self.world = World()
        self._told = Told()
        self.result = Result(lines=self._told.lines)
        self._after_feed = after_feed
        self._statistics = Statistics([queue.name for queue in scenario.queues])
        self._agenda: list[tuple[int, int, int, Callable[[], object]]] = []
        self._entries = 0
        self._changed_ms = 0
        self._measured_at = (-1, -1)  # the world's version and the decisions when shares were measured last
        self._evenness = 1.0
        self._grown_from: list[Queue] = []
        self._tree = tree_of(())
        self._measured: dict[str, Measured] = {}
        self._tick_ms: int | None = None  # when the next tick is planned
        slowest = max((queue.reclaim.minimum_run_time_seconds for queue in scenario.queues), default=0)
        settled_ms = config.tenure_ms + config.patience_ms
        self._patience_ms = max(PATIENCE_MS, slowest * 1000, settled_ms) + 2 * 60_000

    def run(self) -> Result:
        for pool in self._scenario.pools:
            self.world.add_pool(pool)
        for queue in self._scenario.queues:
            self.world.add_queue(queue)
        self._settle()
        for index, event in enumerate(self._scenario.events):
            for at, act in self._actions(index, event):
                self._plan(at, _EVENT, act)
        for index, expectation in enumerate(self._scenario.expect):
            self._plan(expectation.at, _EXPECT, partial(self._compare, index, expectation))
        until = self._scenario.until
        while not self._is_over() and (until is None or self._agenda[0][0] <= until):
            self._play(self._agenda[0][0])
        if until is not None:
            self._advance(until)
        for index, expectation in enumerate(self._scenario.expect):
            if until is not None and expectation.at > until:
                self.result.failures.append((index, f"the scenario ends before {expectation.at / 1000:g}s"))
        self._statistics.over(self.world.pods.values(), self.world.now_ms)
        self.result.summary = self._summary()
        self.result.mean_waits_ms = self._statistics.mean_waits()
        self.result.mean_wait_ms = self._statistics.mean_wait()
        self.result.wait_quantiles_ms = self._statistics.wait_quantiles()
        self.result.contended_ms = self._statistics.contended_ms
        self.result.contended_use = self._statistics.contended_use.mean()
        self.result.mean_shares = self._statistics.mean_shares()
        self.result.evenness = self._statistics.evenness()
        return self.result

    def _play(self, at_ms: int) -> None:
        """All of one time: what happens, the pass behind it, and what was expected of that."""
        self._advance(at_ms)
        while self._agenda and self._agenda[0][0] == at_ms:
            if self._agenda[0][1] == _EXPECT:
                self._settle()
            heapq.heappop(self._agenda)[3]()
        self._settle()

    # ---- time

    def _plan(self, at_ms: int, kind: int, act: Callable[[], object]) -> None:
        self._entries += 1
        heapq.heappush(self._agenda, (at_ms, kind, self._entries, act))

    def _advance(self, at_ms: int) -> None:
        _, shares = self.result.series[-1]
        self._statistics.advance(at_ms, self.world, shares, self._evenness)
        self.world.now_ms = at_ms

    def _settle(self) -> None:
        """Feed what happened, carry out what is decided, feed that, until nothing is decided any more."""
        for _ in range(_ROUNDS_MAX):
            if not self._feed_news() and not self.cell.state.cell.unfinished:
                break
        else:
            raise RestlessError(f"at {self.world.now_ms / 1000:g}s decisions do not come to an end")
        self._measure()
        if self._waits_for_time():
            due_ms = next_due_ms(self.cell.state)
            if self._tick_ms is None or due_ms < self._tick_ms:
                self._tick_ms = due_ms
                self._plan(due_ms, _TICK, self._tick)

    def _measure(self) -> None:
        """Who holds how much now, and how evenly that is, unless nothing has happened since the last time."""
        stands_at = (self.world.version, self.cell.decided)
        if stands_at == self._measured_at:
            return
        self._measured_at = stands_at
        shares = {queue.name: self._share(queue.name) for queue in self._scenario.queues}
        self.result.series.append((self.world.now_ms, shares))
        self._evenness = self._measure_evenness()

    def _feed_news(self) -> bool:
        """Whether there was any."""
        news = self.world.take_news()
        if news:
            self._changed_ms = self.world.now_ms
        if news or self.cell.state.cell.unfinished:
            self._feed(news)
        return bool(news)

    def _feed(self, news: list[Any]) -> None:
        """What happened at one time, and a tick behind it: so what is shown of a time is settled."""
        decisions = self.cell.feed([*news, TickEvent(time_ms=self.world.now_ms, cluster=CLUSTER)])
        if self._after_feed is not None:
            self._after_feed(self.cell)
        self._tell(decisions)
        self._told.rejected(self.world, self.cell.state, news)
        for decision in decisions:
            self._carry_out(decision)

    def _tick(self) -> None:
        if self._tick_ms != self.world.now_ms:
            return  # an earlier one was planned since
        self._tick_ms = None
        if not self._feed_news():
            self._feed([])

    def _is_over(self) -> bool:
        """Whether nothing happens any more but ticks that nobody waits for."""
        if any(kind != _TICK for _, kind, *_ in self._agenda):
            return False
        return not self._agenda or not waits_for_time(self.cell.state)

    def _waits_for_time(self) -> bool:
        """Ticks go on while time alone may change something, and that not for ever."""
        busy = bool(self._agenda) or self.world.now_ms - self._changed_ms < self._patience_ms
        return busy and waits_for_time(self.cell.state)

    # ---- what happens

    def _actions(self, index: int, event: Event) -> Iterator[tuple[int, Callable[[], object]]]:
        world = self.world
        if (submit := event.submit) is not None:
            for number, name in enumerate(copies(submit)):
                yield event.at + number * submit.every, partial(world.submit, submit, name)
        if (grow := event.grow) is not None:
            yield event.at, lambda: self._grow(index, grow)
        if (shrink := event.shrink) is not None:
            yield event.at, lambda: world.shrink(shrink)
        if (succeed := event.succeed) is not None:
            yield event.at, lambda: self._told.finished(world, world.succeed(succeed))
        if (fail := event.fail) is not None:
            yield event.at, lambda: world.fail(fail)
        if (cancel := event.cancel) is not None:
            yield event.at, lambda: world.cancel(cancel.workload)
        if (change := event.set_queue) is not None:
            yield event.at, lambda: world.set_queue(change)
        if (pool := event.set_pool) is not None:
            yield event.at, lambda: world.set_pool(pool.name, pool.nodes, pool.capacity)

    def _grow(self, index: int, change: Resize) -> None:
        if self.world.workloads[change.workload].ended:
            at = f"{self.world.now_ms / 1000:g}s"
            raise ImpossibleEventError(
                index, f"grow: {change.workload} has ended by {at}: let it grow earlier, or submit another"
            )
        self.world.grow(change)

    def _end(self, pod: SimPod, admitted_ms: int) -> None:
        if pod.uid in self.world.pods and pod.admitted_ms == admitted_ms:
            self.world.finish_pod(pod)
            self._told.finished(self.world, [pod])

    def _carry_out(self, decision: Decision) -> None:
        pod = self.world.obey(decision)
        if pod is None:
            return
        now, runtime = self.world.now_ms, pod.workload.runtime_ms
        if isinstance(decision, Admit):
            self._statistics.waited(pod, now)
            if runtime is not None:
                self._plan(now + runtime, _END, lambda: self._end(pod, now))
        elif isinstance(decision, Evict):
            self._statistics.reclaims += 1
            if decision.deadline_ms <= now:
                self.world.leave(pod)
            else:
                self._plan(decision.deadline_ms, _LEAVE, lambda: self.world.leave(pod))

    # ---- what is told

    def _tell(self, decisions: list[Decision]) -> None:
        self._told.decided(self.world, decisions)

    def _counts(self, *, running: bool) -> dict[str, dict[str, int]]:
        counts: dict[str, dict[str, int]] = {}
        for workload in self.world.workloads.values():
            if workload.pods:
                sets = {each.name: 0 for each in workload.facts.pod_sets}
                for pod in workload.pods.values():
                    sets[pod.pod_set] += pod.runs is running
                counts[workload.name] = sets
        return counts

    def _share(self, queue: str) -> float:
        forest = self.cell.state.forest
        branch = forest.branch(queue)
        assert branch is not None
        weight = branch.queue.facts.weight if branch.queue else 1
        known = self._measured.get(queue)
        if (
            known is not None
            and known.capacity is forest.whole
            and known.usage == branch.held  # most queues at most times
            and known.weight == weight
        ):
            return known.share
        share = round(dominant_share(branch.held, forest.whole, weight) / SHARE_ONE, 6)
        self._measured[queue] = Measured(dict(branch.held), forest.whole, weight, share)
        return share

    def _deserved(self, queue: str) -> float:
        forest = self.cell.state.forest
        branch = forest.branch(queue)  # none of a queue that was set aside
        return round(branch.deserved_share(forest.whole) / SHARE_ONE, 6) if branch is not None else 0.0

    def _measure_evenness(self) -> float:
        world = self.world
        if not world.waiting:
            return 1.0
        held, asked = world.parts(world.running), world.parts(world.asked)
        queues = list(world.queues.values())
        if any(queue is not known for queue, known in zip_longest(queues, self._grown_from)):
            self._grown_from, self._tree = queues, tree_of(queues)
        return evenness(self._tree, held, asked)

    def _usage(self, queue: str) -> dict[str, float]:
        branch = self.cell.state.forest.branch(queue)
        held = sorted(branch.usage.items()) if branch else []
        return {f"{pool}/{resource}": whole(resource, amount) for (_, pool, resource), amount in held}

    def _lost_work_ms(self, queue: str) -> int:
        """The running time of its own pods that was thrown away when they were taken back."""
        lost = self.cell.state.lost_work.get(f"{LostWork.kind}/{queue}")
        return lost.total_ms if lost is not None else 0

    def _compare(self, index: int, expectation: Expectation) -> None:
        def check(what: str, found: float, wanted: float, tolerance: float = 0.0) -> None:
            if abs(found - wanted) > tolerance + 1e-9:
                at = f"at {expectation.at / 1000:g}s"
                self.result.failures.append((index, f"{at} {what} is {found:g}, expected {wanted:g}"))

        for what, wanted, running in (
            ("admitted", expectation.admitted, True),
            ("pending", expectation.pending, False),
        ):
            counts = self._counts(running=running)
            for workload, sets in wanted.items():
                for pod_set, count in sets.items():
                    check(f"{what} {workload}.{pod_set}", counts.get(workload, {}).get(pod_set, 0), count)
        for queue, share in expectation.shares.items():
            check(f"share of {queue}", self._share(queue), share, 0.0001)
        for queue, amounts in expectation.usage.items():
            usage = self._usage(queue)
            for name, amount in amounts.items():
                check(f"usage of {queue} {name}", usage.get(name, 0), amount)
        if expectation.reclaims is not None:
            check("reclaims", self._statistics.reclaims, expectation.reclaims)

    def _summary(self) -> dict[str, Any]:
        queues = [queue.name for queue in self._scenario.queues]
        return {
            "type": "summary",
            "at": self.world.now_ms / 1000,
            "admitted": self._counts(running=True),
            "pending": self._counts(running=False),
            "usage": {queue: self._usage(queue) for queue in queues},
            "shares": {queue: self._share(queue) for queue in queues},
            "deserved": {queue: self._deserved(queue) for queue in queues},
            "reclaims": self._statistics.reclaims,
            "lost_work_ms": {queue: self._lost_work_ms(queue) for queue in queues},
            "lost_work_total_ms": sum(self._lost_work_ms(queue) for queue in queues),
            "decisions": self.cell.decided,
            "wait_ms": self._statistics.waits(),
            "still_waiting": self._statistics.still_waiting,
            "utilisation": self._statistics.use.mean(),
        }
