"""What Queues and ResourcePools show of themselves: a status, written once a tick and only if it changed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final, NamedTuple

from sluice.decisions import Condition, ReportPool, ReportQueue
from sluice.events import QueueFacts
from sluice.texts import NAMED, few

from sluice_scheduler.core.applications.binding import lost_label, named_in_vain
from sluice_scheduler.core.fairness.tree import QueueNode
from sluice_scheduler.core.reports.counts import Counts, count
from sluice_scheduler.core.reports.figures import PoolFigures, QueueFigures, pool_figures, queue_figures
from sluice_scheduler.core.reports.guaranteed import too_much_guaranteed
from sluice_scheduler.core.reports.kept_aside import (
    all_are_silent,
    by_queue,
    conditions_of,
    is_plain,
    is_silent,
    plain_pool,
    plain_queue,
)
from sluice_scheduler.core.reports.shown import show
from sluice_scheduler.core.state.conditions import condition, since
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.accounts import Pod
from sluice_scheduler.core.stored.entities import Pool, Queue, Report

#: Statuses of Queues at one tick at the most: a thousand that change would be all that the API server does.
TOLD_MAX: Final = 20


def report(state: State) -> None:
    if all_are_silent(state):
        return
    show(state)
    _forget_old_losses(state)
    if not state.report_due or not state.is_live(state.home):
        return
    state.report_due = False
    counts = count(state)
    asides = by_queue(state) if len(state.asides) else {}
    too_much = too_much_guaranteed(state)
    told = 0
    queues = (queue for queue in state.own_queues if not is_silent(state, queue.key))
    for queue in sorted(queues, key=partial(_last_told, state)):
        node = state.tree.get(queue.name)
        if told == TOLD_MAX:
            state.report_due = True
            break
        if is_plain(state, queue):
            told += _tell_queue(state, queue, *plain_queue(state, queue))
        elif node is not None:
            figures = queue_figures(state, node, counts)
            conditions = _queue_conditions(state, node, counts, too_much.get(node.name, ""))
            conditions += conditions_of(state, queue.key, asides.get(queue.name, ""))
            told += _tell_queue(state, queue, figures, conditions)
    for pool in (pool for pool in state.own_pools if not is_silent(state, pool.key)):
        if is_plain(state, pool):
            _tell_pool(state, pool, *plain_pool(state, pool))
        else:
            shown = pool_figures(state, pool)
            conditions = [*_pool_conditions(state, pool, shown), *conditions_of(state, pool.key)]
            _tell_pool(state, pool, shown, conditions)


def _last_told(state: State, queue: Queue) -> tuple[int, str]:
    """Whose status is the oldest comes first."""
    last = state.reports.get(f"{Report.kind}/{queue.kind}/{queue.name}")
    return (last.told_ms if last is not None else 0, queue.name)


def _tell_queue(state: State, queue: Queue, figures: QueueFigures, conditions: Iterable[Condition]) -> bool:
    """Decide to write a Queue's status, unless it is what was last written; whether it was not."""
    news = _news_of(state, queue, {**figures}, conditions)
    if news is None:
        return False
    state.decide(
        ReportQueue(
            **state.status_about(queue),
            **figures,
            generation=queue.facts.generation,
            conditions=news.conditions,
            reason="Changed",
            sentence=_queue_in_words(queue, figures) + news.turned,
        )
    )
    return True


def _queue_in_words(queue: Queue, figures: QueueFigures) -> str:
    standing = f"queue {queue.name} has {figures['running']} running and {figures['pending']} pending"
    if waiting := figures["pending_workloads"]:
        standing += f", and {waiting} {'application waits' if waiting == 1 else 'applications wait'}"
    return standing


def _tell_pool(state: State, pool: Pool, figures: PoolFigures, conditions: Iterable[Condition]) -> None:
    """The same for a ResourcePool."""
    news = _news_of(state, pool, {**figures}, conditions)
    if news is None:
        return
    nodes = figures["nodes"]
    state.decide(
        ReportPool(
            **state.status_about(pool),
            **figures,
            generation=pool.facts.generation,
            conditions=news.conditions,
            reason="Changed",
            sentence=f"pool {pool.name} has {nodes} node{'s' * (nodes != 1)}{news.turned}",
        )
    )


class _News(NamedTuple):
    """A status that differs from the one that was last written."""

    conditions: tuple[Condition, ...]  # those that did not turn keep their time
    turned: str  # says which conditions have turned


def _news_of(
    state: State, about: Queue | Pool, figures: dict[str, Any], conditions: Iterable[Condition]
) -> _News | None:
    """Remember a status as written, if it differs from the last one."""
    report = f"{about.kind}/{about.name}"
    last = state.reports.get(f"{Report.kind}/{report}")
    before = {each.type: each for each in last.conditions} if last else {}
    now = since(last, conditions)
    figures["generation"] = about.facts.generation
    if last is not None and last.says(figures, now):
        return None
    state.reports.put(Report(about=report, told_ms=state.now_ms, figures=figures, conditions=now))
    turned = [
        f"; {each.type} is {each.status} now"
        for each in now
        if (old := before.get(each.type)) and old.status != each.status
    ]
    return _News(now, "".join(turned))


# ---- queues


def _forget_old_losses(state: State) -> None:
    """What was lost more than an hour ago leaves the figures, though nothing else may happen."""
    for lost in list(state.lost_work):
        if lost.forget_old(state.now_ms):
            state.lost_work.put(lost)
            state.report_due = True


def _queue_conditions(state: State, node: QueueNode, counts: Counts, too_much: str) -> list[Condition]:
    over = _over(state, node)
    return [
        condition(state, "Ready", good=True, problem=node.problem),
        condition(state, "ResolvedRefs", good=True, problem=_unresolved(state, node)),
        condition(
            state,
            "WithinLimits",
            good=True,
            problem=over and f"holds more than {over}: what is over is taken back",
        ),
        condition(state, "GuaranteesFit", good=True, problem=too_much),
        condition(
            state, "Bypassed", good=False, problem=_bypassed(state, counts.bypassed.get(node.name, []))
        ),
        condition(
            state, "Misdirected", good=False, problem=_misdirected(counts.misdirected.get(node.name, []))
        ),
    ]


def _unresolved(state: State, node: QueueNode) -> str:
    """Names that lead nowhere, and what holds meanwhile."""
    facts, found = node.facts, []
    if facts.policy and facts.policy not in state.policies:
        found.append(
            f"spec.policy: there is no policy {facts.policy}, so its parent's (at a root the cell's) holds: "
            f"install it in the scheduler, or name one of {', '.join(sorted(state.policies))}"
        )
    pools = {pool.name for pool in state.own_pools}
    named = {*facts.guaranteed_by_pool, *facts.limit_by_pool}
    found += [
        f"spec.pools.{pool}: there is no ResourcePool {pool}, so nothing comes of what is said of it: create "
        "it, or take it out"
        for pool in sorted(named - pools)
    ]
    there = {resource for _, _, resource in state.forest.capacity}
    missing = sorted(_bounded(facts) - there) if there else []
    found += [
        f"a bound is set on {resource}, which no pool has: write one of {', '.join(sorted(there))}, or add "
        "nodes with it"
        for resource in missing
    ]
    in_vain = named_in_vain(state, node)
    found += [f"spec.namespaces: {problem}" for problem in in_vain[:NAMED]]
    if len(in_vain) > NAMED:
        found.append(f"and {len(in_vain) - NAMED} more namespaces")
    return "; ".join(found)


def _bounded(facts: QueueFacts) -> set[str]:
    """The resources that a Queue's guarantees and limits name."""
    by_pool = [*facts.guaranteed_by_pool.values(), *facts.limit_by_pool.values()]
    return {resource for amounts in (facts.guaranteed, facts.limit, *by_pool) for resource in amounts}


def _bypassed(state: State, pods: list[Pod]) -> str:
    """Which pods run that nobody admitted, and what to do: by namespace where its label is gone."""
    if not pods:
        return ""
    places = sorted({(pod.cluster, pod.namespace) for pod in pods})
    namespaces = [found for place in places if (found := state.namespace_of(*place))]
    lost = [sentence for namespace in namespaces if (sentence := lost_label(state, namespace))]
    remedies = lost[:NAMED]
    if len(lost) < len(places):
        remedies.append(
            "see that the admission policies are installed, and delete the pods if they should queue"
        )
    run = "1 pod runs" if len(pods) == 1 else f"{len(pods)} pods run"
    return f"{run} that Sluice did not admit: {_few(pods)}; {'; '.join(remedies)}"


def _misdirected(pods: Iterable[Pod]) -> str:
    """Which pods can't wait in any line, by what is wrong with them."""
    by_problem: dict[str, list[Pod]] = {}
    for pod in sorted(pods, key=lambda pod: (pod.namespace, pod.name)):
        if pod.problem and pod.phase == "Waiting":
            by_problem.setdefault(pod.problem, []).append(pod)
    told = [f"{_few(alike)}: {problem}" for problem, alike in by_problem.items()]
    more = sum(len(alike) for alike in list(by_problem.values())[NAMED:])
    return "; ".join(told[:NAMED]) + (f"; and {more} more" if more else "")


def _few(pods: Iterable[Pod]) -> str:
    return few(sorted(f"{pod.namespace}/{pod.name}" for pod in pods))


def _over(state: State, node: QueueNode) -> str:
    branch = state.forest.branch(node.name)
    over = (
        [room.bound for room in branch.rooms if branch.used(room.bound) > room.bound.amount] if branch else []
    )
    return over[0].name if over else ""


# ---- pools


def _pool_conditions(state: State, pool: Pool, figures: PoolFigures) -> list[Condition]:
    capacity = figures["capacity"]
    over = sorted(name for name, held in figures["reserved"].items() if held > max(0, capacity.get(name, 0)))
    problem = f"more {', '.join(over)} is held than there is: what is over is taken back" if over else ""
    return [
        condition(state, "Ready", good=True, problem=state.problem_of(pool)),
        condition(state, "Overlapping", good=False, problem=state.places.overlap(pool.name)),
        condition(state, "WithinCapacity", good=True, problem=problem),
    ]
