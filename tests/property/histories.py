"""Random histories: trees, pools, gangs, pod groups, plain pods, growth, reclaim, node loss, edits.

Scenario files know workloads alone. Here some are given another form when the scheduler is told of them: pods
of a *group*, which name it and how many of them start together, *plain* pods, which stand for themselves, and *jobs*,
which are through when twice as many pods as they began with have succeeded, and replace those that fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final
from zlib import crc32

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from sluice.decisions import Admit, AdmitWorkload, Decision, Evict
from sluice.events import Change, PodSetFacts
from sluice_scheduler.simulator import run
from sluice_scheduler.simulator.cell import outcome
from sluice_scheduler.simulator.scenario import Resize, Scenario
from sluice_scheduler.simulator.world import SimPod, SimWorkload, World

#: By what its name begins with the scheduler is told of an application in this form or that.
WORKLOAD: Final = "workload"
GROUP: Final = "group"
PLAIN: Final = "plain"
JOB: Final = "job"
#: What queues may say of those who would take from them.
RECLAIMS: Final = ({"graceSeconds": 2}, {"graceSeconds": 2}, {"minimumRunTimeSeconds": 3}, {"enabled": False})
GUARANTEES: Final = ({"cpu": "1"}, {"cpu": "2"}, {"gpu": "2"}, {"cpu": "25%"}, {"cpu": "2", "gpu": "1"})
#: Of ten decisions these are not done, and so it is answered.
UNDONE: Final = {0: "Conflict", 1: "Failed", 2: "Superseded"}

SETTINGS = settings(
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.function_scoped_fixture,
        HealthCheck.data_too_large,
    ],
)


def scenarios(**kinds: Any) -> st.SearchStrategy[Scenario]:
    return contents(**kinds).map(Scenario.model_validate)


@st.composite
def contents(
    draw: Any,
    *,
    policies: Sequence[str] = ("drf",),
    deep: bool = True,
    edits: bool = True,
    busy: bool = False,
    groups: bool = True,
) -> dict[str, Any]:
    """What a scenario file would say. `busy`: more work, so that more is taken back."""
    forms = [WORKLOAD, WORKLOAD, PLAIN, JOB, *([GROUP] if groups else [])]
    pools = draw(_pools())
    queues: list[dict[str, Any]] = []
    parents = [""]
    for number in range(draw(st.integers(2, 6))):
        queue: dict[str, Any] = {"name": f"q{number}", "weight": draw(st.sampled_from([1, 1, 2, 3]))}
        parent = draw(st.sampled_from(parents)) if deep else ""
        if parent:
            queue["parent"] = parent
        if draw(st.integers(0, 3)) == 0:
            queue["limit"] = {"cpu": draw(st.sampled_from(["3", "5", "60%"]))}
        if draw(st.integers(0, 2)) == 0 and not _is_promised(queues, parent):
            queue["guaranteed"] = draw(st.sampled_from(GUARANTEES))
        queue["ordering"] = draw(st.sampled_from(["bestEffortFifo", "bestEffortFifo", "strictFifo"]))
        queue["preemption"] = draw(st.sampled_from(["never", "lowerPriority"]))
        if draw(st.integers(0, 4)) == 0:
            queue["reclaim"] = draw(st.sampled_from(RECLAIMS))
        depth = len(_path(queues, parent))
        if depth < 2:
            parents.append(queue["name"])
        queues.append(queue)
    events: list[dict[str, Any]] = []
    pod_sets: dict[str, list[str]] = {}  # by workload
    for at in range(draw(st.integers(5, 14) if busy else st.integers(2, 9))):
        name = f"{draw(st.sampled_from(forms))}-{at}"  # of what may be submitted
        where = [{}, {}, {}, {}, *({"pool": pool["name"]} for pool in pools)]
        events.append({"at": at, **draw(_happening(queues, pod_sets, name, where=where, edits=edits))})
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Scenario",
        "policy": draw(st.sampled_from(policies)),
        "halfLife": draw(st.sampled_from(["3s", "1h"])),
        "tenure": draw(st.sampled_from(["1h", "3s", "6s"])),
        "patience": draw(st.sampled_from(["5m", "2s", "4s"])),
        "reclaimAfter": draw(st.sampled_from(["0s", "0s", "1s"])),
        "pools": pools,
        "queues": queues,
        "events": events,
        "until": 30,
    }


def faults() -> st.SearchStrategy[dict[str, int]]:
    """Where in a history something raises, and how often (0: always)."""
    return st.fixed_dictionaries(
        {"permille": st.integers(0, 999), "times": st.sampled_from([0, 0, 1, 2, 3, 4])}
    )


@st.composite
def restless_jobs(draw: Any) -> dict[str, Any]:
    """Jobs that grow, shrink, succeed and fail, where others wait for whatever they leave."""
    names = [f"{JOB}-{number}" for number in range(draw(st.integers(1, 2)))]
    size = st.integers(1, 3)
    happenings = st.one_of(
        st.builds(_resized, st.sampled_from(["grow", "shrink"]), st.sampled_from(names), size),
        st.builds(_ended, st.sampled_from(["succeed", "fail"]), st.sampled_from([*names, "plain"]), size),
    )
    jobs = [
        {
            "name": name,
            "queue": "a",
            "podSets": [{"name": "main", "count": draw(size), "requests": {"cpu": "1"}}],
        }
        for name in names
    ]
    others = {
        "name": "main",
        "count": 9,
        "minCount": 0,
        "requests": {"cpu": draw(st.sampled_from(["1", "2"]))},
    }
    return {
        "policy": "drf",
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Scenario",
        "pools": [{"name": "p", "nodes": 1, "capacity": {"cpu": "5"}}],
        "queues": [{"name": "a"}, {"name": "b"}],
        "events": [
            *({"at": 0, "submit": each} for each in jobs),
            {"at": 1, "submit": {"name": "plain", "queue": "b", "podSets": [others]}},
            *(
                {"at": 2 + number // 2, **happening}
                for number, happening in enumerate(draw(st.lists(happenings, min_size=4, max_size=14)))
            ),
        ],
        "until": 30,
    }


def _resized(kind: str, workload: str, by: int) -> dict[str, Any]:
    return {kind: {"workload": workload, "podSet": "main", "by": by}}


def _ended(kind: str, workload: str, count: int) -> dict[str, Any]:
    return {kind: {"workload": workload, "podSet": "main", "count": count}}


@st.composite
def comebacks(draw: Any) -> dict[str, Any]:
    """Pods of many sizes are taken back for small ones, which take their room while others end: to get
    it back, its owner would have to push out those that came."""
    sizes = [("small", "1"), ("big", draw(st.sampled_from(["2", "3", "4"])))]
    first = [
        {"name": name, "count": draw(st.integers(1, 4)), "minCount": 0, "requests": {"cpu": cpu}}
        for name, cpu in sizes
    ]
    others = [{"name": "small", "count": 8, "minCount": 0, "requests": {"cpu": "1"}}]
    ends = st.tuples(st.sampled_from(["first", "other"]), st.integers(1, 2))
    return {
        "policy": "drf",
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Scenario",
        "pools": [{"name": "p", "nodes": 1, "capacity": {"cpu": "8"}}],
        "queues": [{"name": "a"}, {"name": "b"}],
        "events": [
            {"at": 0, "submit": {"name": "first", "queue": "a", "podSets": first}},
            {"at": 1, "submit": {"name": "other", "queue": "b", "podSets": others}},
            *(
                {"at": 2 + n, "succeed": {"workload": name, "podSet": "small", "count": count}}
                for n, (name, count) in enumerate(draw(st.lists(ends, min_size=2, max_size=6)))
            ),
        ],
        "until": 30,
    }


@st.composite
def gangs_apart(draw: Any) -> dict[str, Any]:
    """Gangs whose parts go each to a pool of its own, where others end in one pool or in the other."""
    pools = [
        {"name": "c", "nodes": 1, "capacity": {"cpu": "4"}},
        {"name": "g", "nodes": 1, "capacity": {"cpu": "9", "gpu": draw(st.sampled_from(["2", "3"]))}},
    ]
    sizes = st.integers(1, 3).map(str)
    happenings = st.one_of(
        st.builds(_alone, st.sampled_from("ab"), st.sampled_from("cg"), sizes, st.integers(1, 6)),
        st.builds(_apart, st.sampled_from("ab"), sizes, sizes, st.sampled_from(["", *"123"])),
    )
    submits = draw(st.lists(happenings, min_size=3, max_size=9))
    limits = st.sampled_from([{}, {}, {"cpu": "5"}])
    return {
        "policy": "drf",
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Scenario",
        "patience": "1000h",
        "pools": pools,
        "queues": [{"name": name, "limit": draw(limits)} for name in "ab"],
        "events": [
            {"at": at, "submit": {"name": f"{WORKLOAD}-{at}", **submit}} for at, submit in enumerate(submits)
        ],
        "until": 30,
    }


def _alone(queue: str, pool: str, cpu: str, runtime: int) -> dict[str, Any]:
    pods = {"name": "main", "count": 1, "requests": {"cpu": cpu}, "nodeSelector": {"pool": pool}}
    return {"queue": queue, "runtime": runtime, "podSets": [pods]}


def _apart(queue: str, head: str, worker: str, gpu: str) -> dict[str, Any]:
    asked = {"head": ("c", {"cpu": head}), "worker": ("g", {"cpu": worker, **({"gpu": gpu} if gpu else {})})}
    sets = [
        {"name": name, "count": 1, "requests": requests, "nodeSelector": {"pool": pool}}
        for name, (pool, requests) in asked.items()
    ]
    return {"queue": queue, "runtime": 3, "podSets": sets}


@st.composite
def _pools(draw: Any) -> list[dict[str, Any]]:
    pools = [{"name": "p", "nodes": draw(st.integers(1, 3)), "capacity": {"cpu": "6", "gpu": "3"}}]
    if draw(st.booleans()):
        pools.append({"name": "r", "nodes": 1, "capacity": {"cpu": "5"}})
    if draw(st.integers(0, 2)) == 0:
        pools.append({"name": "s", "nodes": 2, "capacity": {"cpu": "3", "gpu": "2"}})
    for pool in pools:
        pool["supply"] = draw(st.sampled_from(["", "", "other"]))
    return pools


def _is_promised(queues: list[dict[str, Any]], name: str) -> bool:
    """Whether a queue or one above it names a guarantee: what its children add to that might be too much."""
    by_name = {queue["name"]: queue for queue in queues}
    return any("guaranteed" in by_name[above] for above in _path(queues, name))


def _path(queues: list[dict[str, Any]], name: str) -> list[str]:
    by_name = {queue["name"]: queue.get("parent", "") for queue in queues}
    path = []
    while name:
        path.append(name)
        name = by_name[name]
    return path


@st.composite
def _happening(
    draw: Any,
    queues: list[dict[str, Any]],
    pod_sets: dict[str, list[str]],
    name: str,
    *,
    where: list[dict[str, str]],
    edits: bool,
) -> dict[str, Any]:
    """`where`: what pods may say of the nodes that they go to. Two sets of a gang may say that they go apart."""
    kinds = ["submit"] * 3 + (["grow", "succeed", "fail", "cancel", "shrink"] if pod_sets else [])
    kinds += ["setPool", "setQueue"] if edits else []
    kind = draw(st.sampled_from(kinds))
    queue = draw(st.sampled_from(queues))["name"]
    if kind == "submit":
        sets = pod_sets[name] = ["main", "other"][: draw(st.sampled_from([1, 1, 2]))]
        submit = {
            "name": name,
            "queue": queue,
            "priority": draw(st.integers(0, 2)),
            "podSets": [
                {**draw(_pod_set(each)), "nodeSelector": draw(st.sampled_from(where))} for each in sets
            ],
        }
        if draw(st.booleans()):
            submit["runtime"] = draw(st.integers(1, 6))
        if draw(st.integers(0, 2)) == 0:  # true or not
            submit["endsIn"] = draw(st.integers(1, 8))
        return {"submit": submit}
    if kind == "setPool":
        return {"setPool": {"name": "p", "nodes": draw(st.integers(0, 3))}}
    if kind == "setQueue":
        return {
            "setQueue": {
                "name": queue,
                "weight": draw(st.integers(1, 3)),
                "limit": draw(st.sampled_from([{}, {"cpu": "2"}])),
            }
        }
    workload = draw(st.sampled_from(sorted(pod_sets)))
    if kind == "cancel":
        return {"cancel": {"workload": workload}}
    amount = "by" if kind in ("grow", "shrink") else "count"
    pod_set = draw(st.sampled_from(pod_sets[workload]))
    return {kind: {"workload": workload, "podSet": pod_set, amount: draw(st.integers(1, 3))}}


@st.composite
def _pod_set(draw: Any, name: str) -> dict[str, Any]:
    count = draw(st.integers(1, 5 if name == "main" else 2))
    requests = [{"cpu": "1"}, {"cpu": "2"}, {"gpu": "1"}, {"cpu": "1", "gpu": "1"}, {"cpu": 0.5}]
    return {
        "name": name,
        "count": count,
        "minCount": draw(st.integers(0, count)),
        "requests": draw(st.sampled_from(requests)),
    }


class LooseWorld(World):
    """A world in which not every pod belongs to a workload."""

    def __init__(self) -> None:
        super().__init__()
        self._group_sizes: dict[str, int] = {}  # as they were at first: pods of a group agree on it
        self._of_jobs: dict[tuple[str, str], tuple[int, int]] = {}  # minimum and completions of a pod set

    def _tell_workload(self, workload: SimWorkload, change: Change) -> None:
        if workload.name.startswith((GROUP, PLAIN)):
            return
        if workload.name.startswith(JOB):
            told = tuple(self._of_a_job(workload, each) for each in workload.facts.pod_sets)
            workload.facts = replace(workload.facts, pod_sets=told, replaces_failed=True)
        super()._tell_workload(workload, change)

    def _of_a_job(self, workload: SimWorkload, pod_set: PodSetFacts) -> PodSetFacts:
        first = (pod_set.min_count, 2 * pod_set.count)
        minimum, completions = self._of_jobs.setdefault((workload.name, pod_set.name), first)
        return replace(pod_set, min_count=min(minimum, pod_set.count), completions=completions)

    def finish_pod(self, pod: SimPod) -> None:
        workload = pod.workload
        if workload.name.startswith(JOB):
            (pod_set,) = (each for each in workload.facts.pod_sets if each.name == pod.pod_set)
            _, completions = self._of_jobs[workload.name, pod.pod_set]
            to_run = completions - workload.succeeded.get(pod.pod_set, 0) - 1
            if min(pod_set.count, to_run) >= len(workload.of(pod.pod_set)):
                self._create_pod(workload, pod_set)
        super().finish_pod(pod)

    def _tell_pod(self, pod: SimPod, change: Change) -> None:
        name = pod.workload.name
        if name.startswith(PLAIN):
            pod.facts = replace(pod.facts, workload="", pod_set="")
        elif name.startswith(GROUP):
            asked = sum(each.min_count for each in pod.workload.facts.pod_sets)
            pod.facts = replace(pod.facts, group_size=self._group_sizes.setdefault(name, asked or 1))
        super()._tell_pod(pod, change)


class Simulation(run.Simulation):
    def __init__(self, scenario: Scenario, **settings: Any) -> None:
        super().__init__(scenario, **settings)
        self.world = LooseWorld()
        self.decided: list[Decision] = []

    def _tell(self, decisions: list[Decision]) -> None:
        self.decided += decisions
        super()._tell(decisions)

    def _grow(self, index: int, change: Resize) -> None:
        """Chance does not know what has ended."""
        if not self.world.workloads[change.workload].ended:
            super()._grow(index, change)


class FlakySimulation(Simulation):
    """A part of what is decided can't be done: which, is a matter of kind, name and time alone."""

    def _carry_out(self, decision: Decision) -> None:
        if isinstance(decision, Admit | Evict | AdmitWorkload):
            lot = crc32(f"{decision.type} {decision.uid} {decision.time_ms}".encode()) % 10
            if lot in UNDONE:
                failed = replace(outcome(decision, self.world.now_ms), result=UNDONE[lot])
                self.world._news.append(failed)
                return
        super()._carry_out(decision)

    def _waits_for_time(self) -> bool:
        """Pauses end with ticks."""
        return self.world.now_ms < self._scenario.until
