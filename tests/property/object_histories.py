"""What may happen to the objects of a cluster, drawn by chance (see objects.py).

Each step is drawn from a number of its own, so that a history shrinks by leaving steps out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, TypeAlias, TypeVar

from hypothesis import strategies as st
from sluice_scheduler.core.passes.budget import PIECES

Facts: TypeAlias = dict[str, Any]
Step: TypeAlias = dict[str, Any]
_T = TypeVar("_T")

_PODS: Final = tuple(f"x{number}" for number in range(12))
_QUEUES: Final = ("q0", "q1", "q2", "q3")
_NAMESPACES: Final = ("s0", "s1", "s2")
_NODES: Final = ("n0", "n1", "n2", "n3")
_POOLS: Final = ("p0", "p1", "p2")
#: Applications, and of which kind they are.
_KINDS: Final = {
    "ray": "RayCluster",
    "spark": "SparkApplication",
    "batch": "Job",
    "job": "QueueJob",
    "dask": "DaskCluster",
    "hand": "DynamicWorkload",
}
_NAMES: Final[dict[str, Sequence[str]]] = {
    "pod": _PODS,
    "workload": tuple(_KINDS),
    "node": _NODES,
    "queue": _QUEUES,
    "resourcepool": _POOLS,
    "namespace": _NAMESPACES,
    "priorityclass": ("high", "low"),
}
_LISTED: Final = (
    *(kind for kind in _NAMES if kind != "workload"),
    *(f"workload/{kind}" for kind in _KINDS.values()),
)
#: What pods may name: Spark in client mode, a pod group, an application.
_TITLES: Final = ("SparkDriver/c0", "SparkDriver/c1", "g0", "g1", "RayCluster/ray", "QueueJob/job", "hand")
_OWNERS: Final = ("workload/ray", "workload/spark", "pod/x0", "pod/x1")
_SETTINGS: Final = ({"policy": "fifo"}, {"policy": "drf"}, {"tenure_ms": 2000}, {"core_version": 99})
_SETS: Final = ("main", "worker", "driver", "executor")


class Lot(Random):
    """A step's own chance."""

    def seldom(self, what: _T, otherwise: _T, odds: int = 5) -> _T:
        """Once in so many times."""
        return what if self.randrange(odds) == 0 else otherwise

    def amounts(self, *cpus: int) -> dict[str, int]:
        return {"cpu": self.choice(cpus), **self.seldom({"gpu": self.randint(1, 2)}, {}, 3)}

    def requests(self) -> dict[str, int]:
        odd = self.choice(({}, {"cpu": 0}, {"cpu": 9000}, {"disk": 1}, {"cpu": 10**18}))
        return self.seldom(odd, self.amounts(500, 1000, 1000, 2000, 3000), 20)

    def selector(self) -> dict[str, str]:
        return self.seldom({"pool": self.choice(_POOLS)}, {})

    def gang(self) -> Facts | None:
        return self.seldom(
            {"deadline_ms": self.choice((1000, 5000)), "hard": self.seldom(False, True, 2)}, None
        )

    def name(self, kind: str) -> dict[str, str]:
        return {"kind": kind, "name": self.choice(_NAMES[kind])}


def _node(lot: Lot) -> Facts:
    labels = lot.seldom({}, {"pool": lot.choice(("p0", "p0", *_POOLS))}, 9)
    return {
        "allocatable": lot.amounts(2000, 4000, 6000),
        "labels": labels,
        "schedulable": lot.seldom(False, True),
    }


def _pool(lot: Lot) -> Facts:
    selector = lot.seldom({}, {"pool": lot.choice(_POOLS)}, 9)
    return {"node_selector": selector, "supply": lot.seldom("other", "", 3)}


def _queue(lot: Lot) -> Facts:
    """Most of what a Queue may say it does not say."""
    return {
        "namespaces": lot.sample(_NAMESPACES, lot.choice((0, 1, 1, 2))),
        "parent": lot.seldom(lot.choice(_QUEUES), "", 3),
        "weight": lot.choice((1, 1, 2)),
        "limit": lot.seldom({"cpu": lot.choice(("2", "50%"))}, {}),
        "limit_by_pool": lot.seldom({lot.choice(_POOLS): {"cpu": lot.choice(("0", "2"))}}, {}, 9),
        "guaranteed_by_pool": lot.seldom({lot.choice(_POOLS): {"cpu": "1"}}, {}, 9),
        "guaranteed": lot.seldom(lot.choice(({"cpu": "1"}, {"gpu": "1"}, {"cpu": "25%"})), {}, 3),
        "ordering": lot.seldom("strictFifo", "bestEffortFifo"),
        "preemption": lot.seldom("lowerPriority", "never", 3),
        "reclaim": lot.seldom(False, True, 8),
        "grace_ms": lot.seldom(2000, 0),
        "minimum_run_ms": lot.seldom(3000, 0),
        "lost_work_per_hour_ms": lot.seldom(3000, None, 8),
        "tenure_ms": lot.seldom(2000, None),
        "patience_ms": lot.seldom(1000, None),
        "start_deadline_ms": lot.seldom(2000, None),
    }


def _binding(lot: Lot) -> Facts:
    return {"managed": lot.seldom(False, True), "queue": lot.seldom("", lot.choice(_QUEUES))}


def _class(lot: Lot) -> Facts:
    return {"value": lot.randint(-1, 3), "global_default": lot.seldom(True, False)}


def _put(kind: str, facts: Callable[[Lot], Facts]) -> Callable[[Lot], Step]:
    return lambda lot: {"put": {**lot.name(kind), "facts": facts(lot)}}


def _new_pods(lot: Lot) -> Step:
    """A few that are alike."""
    facts = {
        "requests": lot.requests(),
        "created_ms": lot.choice((0, 0, -1000, -5000)),
        "gated": lot.seldom(False, True, 8),
        "priority": lot.choice((0, 0, 1, 2)),
        "queue": lot.seldom(lot.choice(_QUEUES), "", 8),
        "node_selector": lot.selector(),
        "ends_in_ms": lot.seldom(lot.choice((1000, 4000)), 0),
    }
    if lot.seldom(True, False, 2):
        facts |= {
            "workload": lot.choice(_TITLES),
            "pod_set": lot.choice(("", *_SETS)),
            "group_size": lot.randint(0, 3),
            "gang": lot.gang(),
        }
    if lot.seldom(True, False):
        facts |= {"owner": lot.choice(_OWNERS), "pod_set": lot.choice(_SETS)}
    where = lot.choice(("s0", *_NAMESPACES))
    names = lot.sample(_PODS, lot.randint(1, 4))
    steps = [{"make": {"kind": "pod", "name": name, "facts": facts, "namespace": where}} for name in names]
    return {"together": {"steps": steps}} if lot.seldom(True, False, 3) else {"apart": {"steps": steps}}


def _pod_edit(lot: Lot) -> Step:
    edits: tuple[Facts, ...] = (
        *({"phase": phase} for phase in ("Running", "Succeeded", "Succeeded", "Failed", "Failed")),
        {"deleting": True},
        {"gated": False, "node": lot.choice(("", *_NODES))},
        {"workload": lot.choice(("", *_TITLES))},
        {"owner": lot.choice(("", *_OWNERS))},
        {"queue": lot.choice(("", *_QUEUES))},
        {"requests": lot.requests()},
        {"node_selector": lot.selector()},
        {"group_size": lot.randint(0, 3)},
        {"saved_ms": lot.choice((0, 2000, 9000))},
        {"priority": lot.randint(0, 2)},
    )
    return {"edit": {**lot.name("pod"), "facts": lot.choice(edits)}}


def _pod_set(lot: Lot, name: str) -> Facts:
    count = lot.randint(0, 4)
    return {
        "name": name,
        "count": count,
        "min_count": lot.randint(0, count),
        "max_count": lot.seldom(4, None),
        "completions": lot.seldom(4, None, 3),
        "requests": lot.requests(),
        "node_selector": lot.selector(),
        "replica_size": lot.seldom(2, 1),
    }


def _pod_sets(lot: Lot) -> list[Facts]:
    return [_pod_set(lot, name) for name in lot.sample(_SETS, lot.randint(1, 2))]


def _application(lot: Lot) -> Step:
    name = lot.choice(_NAMES["workload"])
    kind = _KINDS[name]
    is_job = kind == "QueueJob"
    job = {"restart_limit": lot.seldom(1, None), "backoff_limit": 3, "backoff_ms": lot.choice((0, 2000))}
    facts = {
        "kind": kind,
        "pod_sets": [_pod_set(lot, "main")] if is_job else _pod_sets(lot),
        "created_ms": lot.choice((0, -1000)),
        "queue": lot.seldom(lot.choice(_QUEUES), "", 8),
        "priority_class": lot.seldom(lot.choice(("high", "low")), "", 3),
        "released": lot.seldom(True, False),
        "suspendable": kind in ("RayCluster", "SparkApplication", "Job"),
        "gang": lot.gang(),
        "job": job if is_job else None,
        "replaces_failed": kind == "Job",
        "problem": lot.seldom("spec: unreadable", "", 9),
    }
    where = lot.choice(("s0", *_NAMESPACES))
    return {"make": {"kind": "workload", "name": name, "facts": facts, "namespace": where}}


def _application_edit(lot: Lot) -> Step:
    name = lot.choice(_NAMES["workload"])
    edits: tuple[Facts, ...] = (
        {"pod_sets": [_pod_set(lot, "main")]},
        {"pod_sets": [_pod_set(lot, "main")] if name == "job" else _pod_sets(lot)},
        {"finished": lot.seldom(False, True), "failed": lot.seldom(True, False)},
        {"released": lot.seldom(True, False, 2)},
        {"queue": lot.choice(("", *_QUEUES))},
        {"problem": lot.choice(("", "spec: unreadable"))},
    )
    return {"edit": {"kind": "workload", "name": name, "facts": lot.choice(edits)}}


def _tick(lot: Lot) -> Step:
    seconds = lot.choice((1, 1, 1, 1, 2, 2, 5, 30, 61))
    return {"tick": {"seconds": seconds, "do": lot.choice((10, 10, 10, 8, 4, 0))}}


def _relist(lot: Lot) -> Step:
    listed = lot.choice(_LISTED)
    names = _NAMES[listed.partition("/")[0]]
    return {"relist": {"listed": listed, "unseen": lot.sample(names, lot.choice((0, 1, 2)))}}


def _any(lot: Lot) -> str:
    return lot.choice(("pod", "pod", "pod", *_NAMES))


#: What may happen, and how often.
_STEPS: Final[dict[Callable[[Lot], Step], int]] = {
    _tick: 14,
    _new_pods: 9,
    _pod_edit: 7,
    _put("node", _node): 4,
    _application: 4,
    _application_edit: 2,
    _put("queue", _queue): 2,
    _put("resourcepool", _pool): 2,
    _put("namespace", _binding): 2,
    _put("priorityclass", _class): 1,
    (lambda lot: {"delete": lot.name(_any(lot))}): 3,
    (lambda lot: {"anew": {**lot.name(_any(lot)), "first": lot.seldom(True, False, 2)}}): 2,
    (lambda lot: {"again": lot.name(_any(lot))}): 1,
    _relist: 1,
    (lambda lot: {"unmanaged": {"pool": lot.choice(_POOLS), "cpu": lot.choice((0, 1000, 3000))}}): 1,
    (lambda lot: lot.seldom({"configure": lot.choice(_SETTINGS)}, _tick(lot), 4)): 1,
    (lambda lot: lot.seldom({"aside": lot.name(_any(lot))}, _tick(lot), 3)): 1,
}


def _step(number: int) -> Step:
    lot = Lot(number)
    (what,) = lot.choices([*_STEPS], [*_STEPS.values()])
    return what(lot)


def _begin(lot: Lot) -> list[Step]:
    """Something in which pods can run."""
    queues = [
        {**_queue(lot), "namespaces": [f"s{at}"], "parent": lot.seldom(f"q{at - 1}" if at else "", "", 3)}
        for at in range(lot.randint(2, 3))
    ]
    return [
        {"put": {"kind": "resourcepool", "name": "p0", "facts": {"node_selector": {"pool": "p0"}}}},
        *(
            {"put": {"kind": "node", "name": name, "facts": {**_node(lot), "labels": {"pool": "p0"}}}}
            for name in _NODES[: lot.randint(1, 3)]
        ),
        *({"put": {"kind": "queue", "name": f"q{at}", "facts": facts}} for at, facts in enumerate(queues)),
        *(
            {"put": {"kind": "namespace", "name": f"s{at}", "facts": {"managed": True, "queue": f"q{at}"}}}
            for at in range(len(queues))
        ),
    ]


_NUMBERS: Final = st.integers(0, 2**32 - 1)


@st.composite
def object_histories(draw: Any) -> dict[str, Any]:
    """A cell in which something can be admitted, and then anything."""
    return {
        "config": {
            "policy": draw(st.sampled_from(("drf", "drf", "drf", "usage-drf", "fifo", "priority"))),
            "tenure_ms": draw(st.sampled_from((3_600_000, 3000))),
            "patience_ms": draw(st.sampled_from((300_000, 2000))),
            "start_deadline_ms": draw(st.sampled_from((600_000, 4000))),
        },
        "pieces": draw(st.sampled_from((PIECES, PIECES, PIECES, 20, 4))),
        "steps": [
            *draw(_NUMBERS.map(Lot).map(_begin)),
            *draw(st.lists(_NUMBERS.map(_step), min_size=20, max_size=90)),
        ],
    }
