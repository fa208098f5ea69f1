"""The whole watcher between a fake cluster and a fake log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

import orjson
import pytest
from fakes.cluster import FakeCluster
from fakes.log import FakeLog
from samples_of_objects import container
from sluice.crds.values import LabelSelector
from sluice.events import Event, ObjectEvent, SyncEvent, TickEvent, UnmanagedEvent, WorkloadEvent
from sluice.settings import Settings
from sluice.vocabulary import GATE
from sluice_watcher import publisher
from sluice_watcher.kinds import watched_kinds
from sluice_watcher.main import Watcher

KINDS = watched_kinds({}, Settings().applications)
PATHS = {kind.type: kind.path for kind in KINDS}
APPLICATIONS = [kind.type for kind in KINDS if kind.optional]
MANAGED = {"sluice.dev/managed": "true"}


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "PACE_S", 0.0)


class World:
    """Two cells on partitions 0 and 3; names of pods say what tests want to know of them."""

    def __init__(self) -> None:
        self.settings = Settings(cluster="east", cells={"one": 0, "two": 3})
        self.cluster = FakeCluster(*PATHS.values())
        self.log = FakeLog()
        self.watcher = Watcher(self.settings, cluster=self.cluster, writer=self.log)

    def put(self, kind: str, name: str, namespace: str = "", **parts: Any) -> None:
        self.cluster.put(PATHS[kind], name, namespace, **parts)

    def put_namespace(self, name: str, queue: str = "") -> None:
        labels = MANAGED | ({"sluice.dev/queue": queue} if queue else {})
        self.put("namespace", name, metadata={"labels": labels})

    def put_pod(
        self, name: str, namespace: str, *, node: str = "", requests: str = "1", **labels: str
    ) -> None:
        spec = {"containers": [container(cpu=requests)], "nodeName": node}
        metadata = {"labels": labels}
        self.put("pod", name, namespace, metadata=metadata, spec=spec, status={"phase": "Running"})

    def put_job(
        self,
        name: str,
        namespace: str,
        *,
        suspend: bool = False,
        cpu: str = "1",
        runtime_class: str = "",
        **labels: str,
    ) -> None:
        spec = {
            "suspend": suspend,
            "parallelism": 3,
            "template": {
                "spec": {"containers": [container(cpu=cpu)], "runtimeClassName": runtime_class or None}
            },
        }
        self.put("workload/Job", name, namespace, metadata={"labels": labels}, spec=spec)

    def put_node(self, name: str, **labels: str) -> None:
        self.put("node", name, metadata={"labels": labels}, spec={}, status={"allocatable": {"cpu": "4"}})

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        running = asyncio.create_task(self.watcher.run())
        await self.settle()
        assert not running.done(), running.exception()
        yield
        await self.settle()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    async def settle(self) -> None:
        for _ in range(400):
            await asyncio.sleep(0)

    def events(self, cell: str) -> list[Event]:
        return self.log.events(self.settings.events_topic, self.settings.cells[cell])

    def told(self, cell: str, *kinds: str) -> list[str]:
        """Records of these kinds, in words."""
        return [words for event in self.events(cell) if (words := in_words(event, kinds))]

    def forget_log(self) -> None:
        self.log.messages.clear()


def in_words(event: Event, kinds: Iterable[str]) -> str:
    match event:
        case SyncEvent() if event.kind in kinds:
            return event.phase
        case ObjectEvent() if event.listed_as in kinds:
            return f"{event.change} {event.name}"
        case _:
            return ""


@pytest.fixture
def world() -> World:
    """Queue `a` leads to cell one, `b` to cell two; each has a namespace, a pool and a node."""
    world = World()
    for queue, cell in (("a", "one"), ("b", "two")):
        world.put("queue", queue, spec={"cell": cell})
        world.put("resourcepool", f"pool-{queue}", spec={"cell": cell, "nodeSelector": {"pool": queue}})
        world.put_namespace(f"team-{queue}", queue)
        world.put_node(f"node-{queue}", pool=queue)
    return world


async def test_at_the_start_every_kind_is_listed_and_routes_come_first(world: World) -> None:
    world.put_pod("pod-a", "team-a")
    async with world.watching():
        assert world.watcher.unready() == ""
        assert world.cluster.lists == list(PATHS.values())
        marks = [e for e in world.events("two") if isinstance(e, SyncEvent)]
        assert [(mark.kind, mark.phase) for mark in marks] == [
            (kind, phase) for kind in PATHS for phase in ("BEGIN", "END")
        ]
        assert len({mark.sync for mark in marks}) == len(PATHS)
        assert [mark.more for mark in marks] == [True, False] * len(PATHS)


async def test_each_cell_gets_its_own_pods_and_nodes(world: World) -> None:
    world.put_pod("pod-a", "team-a")
    world.put_pod("pod-b", "team-b")
    world.put_pod("pod-c", "team-c")
    async with world.watching():
        for cell, own in (("one", "a"), ("two", "b")):
            assert world.told(cell, "pod") == ["BEGIN", f"ADDED pod-{own}", "END"]
            assert world.told(cell, "node") == ["BEGIN", f"ADDED node-{own}", "END"]
            assert world.told(cell, "queue") == ["BEGIN", "ADDED a", "ADDED b", "END"]
        world.put_pod("pod-a2", "team-a")
        world.cluster.delete(PATHS["pod"], "pod-b", "team-b")
        await world.settle()
        assert world.told("one", "pod")[-1] == "ADDED pod-a2"
        assert world.told("two", "pod")[-1] == "DELETED pod-b"


async def test_it_is_unready_until_what_is_missing_is_there(world: World) -> None:
    world.cluster = FakeCluster(*(path for kind, path in PATHS.items() if kind not in ("queue", "pod")))
    world.watcher = Watcher(world.settings, cluster=world.cluster, writer=world.log)
    async with world.watching():
        missing = ", ".join(
            ["queue", "resourcepool", "priorityclass", "runtimeclass", "node", *APPLICATIONS, "pod"]
        )
        assert world.watcher.unready().endswith(f"yet: {missing}")


async def test_applications_go_where_their_namespace_goes_if_their_kind_is_configured(world: World) -> None:
    world.settings = Settings(cluster="east", cells={"one": 0, "two": 3}, applications=("Job",))
    world.watcher = Watcher(world.settings, cluster=world.cluster, writer=world.log)
    world.put_job("nightly", "team-b")
    world.put("workload/RayCluster", "ray", "team-b")
    async with world.watching():
        assert world.told("two", *APPLICATIONS) == ["BEGIN", "ADDED nightly", "END"]
        assert world.told("one", *APPLICATIONS) == ["BEGIN", "END"]
        [job] = [event for event in world.events("two") if isinstance(event, WorkloadEvent)]
        assert (job.workload.kind, job.workload.pod_sets[0].count) == ("Job", 3)
        world.put_job("nightly", "team-b", suspend=True)
        await world.settle()
        assert world.told("two", "workload/Job")[-1] == "MODIFIED nightly"


async def test_what_the_selector_leaves_out_is_no_application(world: World) -> None:
    world.settings = world.settings.model_copy(update={"application_selector": {"through": "sluice"}})
    world.watcher = Watcher(world.settings, cluster=world.cluster, writer=world.log)
    async with world.watching():
        world.put_job("in", "team-a", through="sluice")
        world.put_job("in", "team-a")
        await world.settle()
        assert world.told("one", "workload/Job") == ["BEGIN", "END", "ADDED in", "DELETED in"]


async def test_a_workload_that_shows_an_application_is_none_itself(world: World) -> None:
    job = {"kind": "Job", "name": "nightly", "uid": "j", "controller": True}
    spec = {"podSets": [{"name": "main", "count": 2, "requests": {"cpu": "1"}}]}
    kind = "workload/DynamicWorkload"
    async with world.watching():
        world.put(kind, "shown", "team-a", spec=spec, metadata={"ownerReferences": [job]})
        of_pods_alone = {"application": {"kind": "SparkDriver", "name": "spark-1"}, **spec}
        world.put(kind, "shown-without-object", "team-a", spec=of_pods_alone)
        world.put(kind, "by-hand", "team-a", spec=spec)
        await world.settle()
        assert world.told("one", kind) == ["BEGIN", "END", "ADDED by-hand"]


async def test_what_a_runtime_class_takes_on_top_is_asked_for_too(world: World) -> None:
    world.put("runtimeclass", "sandboxed", overhead={"podFixed": {"cpu": "250m"}})
    world.put_job("boxed", "team-a", runtime_class="sandboxed")
    async with world.watching():
        world.put("runtimeclass", "sandboxed", overhead={"podFixed": {"cpu": "500m"}})
        await world.settle()
        asked = [
            e.workload.pod_sets[0].requests["cpu"]
            for e in world.events("one")
            if isinstance(e, WorkloadEvent)
        ]
        assert asked == [1250, 1500]
        assert world.told("one", "runtimeclass") == ["BEGIN", "END"]


async def test_an_application_that_makes_no_sense_says_why_and_the_rest_goes_on(world: World) -> None:
    async with world.watching():
        world.put_job("odd", "team-a", cpu="a lot")
        world.put_job("fine", "team-a")
        await world.settle()
        odd, fine = (e.workload for e in world.events("one") if isinstance(e, WorkloadEvent))
        assert "spec.template.spec.containers[0].resources.requests.cpu" in odd.problem
        assert fine.problem == ""


async def test_an_absent_kind_of_applications_holds_nothing_up_and_may_come_later(world: World) -> None:
    ray = PATHS["workload/RayCluster"]
    world.cluster = FakeCluster(*(path for path in PATHS.values() if path != ray))
    world.watcher = Watcher(world.settings, cluster=world.cluster, writer=world.log)
    async with world.watching():
        assert world.watcher.unready() == ""
        assert world.told("one", "workload/RayCluster") == ["BEGIN", "END"]
        world.watcher.relist_all("one", 42)
        await world.settle()
        marks = [e for e in world.events("one") if isinstance(e, SyncEvent) and e.request == 42]
        assert {mark.kind for mark in marks} == set(PATHS)


async def test_it_is_unready_until_kafka_has_acknowledged(world: World) -> None:
    world.log.hold()
    async with world.watching():
        assert "namespace" in world.watcher.unready()
        world.log.release()
        await world.settle()
        assert world.watcher.unready() == ""


async def test_pods_of_a_namespace_that_changes_cells_end_in_the_former(world: World) -> None:
    world.put_pod("pod-a", "team-a")
    world.put_pod("stays", "team-b")
    async with world.watching():
        world.forget_log()
        world.put_namespace("team-a", "b")
        await world.settle()
        assert world.told("one", "pod") == ["BEGIN", "END"]
        assert world.told("two", "pod") == ["BEGIN", "ADDED pod-a", "ADDED stays", "END"]


async def test_pods_of_a_namespace_that_is_no_longer_bound_end(world: World) -> None:
    world.put_pod("pod-a", "team-a", node="node-a")
    async with world.watching():
        world.forget_log()
        world.put_namespace("team-a")
        await world.settle()
        assert world.told("one", "pod") == ["BEGIN", "END"]
        [*_, sum] = [e for e in world.events("one") if isinstance(e, UnmanagedEvent)]
        assert (sum.pool, sum.pods, sum.requests) == ("pool-a", 1, {"cpu": 1000, "pods": 1})


async def test_pods_that_come_before_their_namespace_are_found(world: World) -> None:
    async with world.watching():
        world.put_pod("early", "team-new")
        await world.settle()
        world.put_namespace("team-new", "b")
        await world.settle()
        assert world.told("two", "pod") == ["BEGIN", "END", "BEGIN", "ADDED early", "END"]


async def test_nodes_move_with_their_pool(world: World) -> None:
    async with world.watching():
        world.forget_log()
        world.put_node("node-a", pool="b")
        await world.settle()
        assert world.told("one", "node") == ["BEGIN", "END"]
        assert world.told("two", "node")[0] == "MODIFIED node-a"
        assert world.told("two", "node")[1:] == ["BEGIN", "ADDED node-a", "ADDED node-b", "END"]


async def test_a_resync_lists_everything_with_the_requests_number(world: World) -> None:
    world.put_pod("pod-a", "team-a")
    async with world.watching():
        world.forget_log()
        world.watcher.relist_all("two", 42)
        await world.settle()
        for cell, request in (("one", 0), ("two", 42)):
            marks = [e for e in world.events(cell) if isinstance(e, SyncEvent)]
            assert sorted((m.kind, m.phase) for m in marks) == sorted(
                (kind, phase) for kind in PATHS for phase in ("BEGIN", "END")
            )
            assert {m.request for m in marks} == {request}


async def test_sums_of_unmanaged_pods_come_before_decisions_may_be_made(world: World) -> None:
    world.put_pod("agent", "kube-system", node="node-b", requests="250m")
    async with world.watching():
        records = world.events("two")
        ends = [e for e in records if isinstance(e, SyncEvent) and (e.kind, e.phase) == ("pod", "END")]
        sum = records[records.index(ends[0]) - 1]
        assert isinstance(sum, UnmanagedEvent)
        assert (sum.pool, sum.pods, sum.requests) == ("pool-b", 1, {"cpu": 250, "pods": 1})


async def test_pods_that_the_selector_leaves_out_are_in_the_sums_and_in_no_queue(world: World) -> None:
    selector = {"matchExpressions": [{"key": "interactive", "operator": "DoesNotExist"}]}
    world.settings = Settings(
        cluster="east", cells={"one": 0, "two": 3}, pod_selector=LabelSelector.model_validate(selector)
    )
    world.watcher = Watcher(world.settings, cluster=world.cluster, writer=world.log)
    world.put_pod("batch", "team-a", node="node-a")
    world.put_pod("shell", "team-a", node="node-a", interactive="")
    async with world.watching():
        assert world.told("one", "pod") == ["BEGIN", "ADDED batch", "END"]
        [sum] = [event for event in world.events("one") if isinstance(event, UnmanagedEvent) and event.pods]
        assert (sum.pool, sum.pods) == ("pool-a", 1)


async def test_what_cannot_be_read_is_set_aside_and_the_rest_goes_on(world: World) -> None:
    world.put("pod", "odd", "team-a", spec={"containers": [container(cpu="a lot")]}, status={})
    world.put_pod("fine", "team-a")
    async with world.watching():
        assert world.told("one", "pod") == ["BEGIN", "ADDED fine", "END"]
        [letter] = world.log.messages[f"dlq.{world.settings.events_topic}", 0]
        assert letter.key == b"pod/team-a/odd"
        assert orjson.loads(letter.value)["spec"]["containers"] == [container(cpu="a lot")]
        assert "a lot" in (letter.header("sluice_error") or "")
        assert (letter.header("sluice_kind"), letter.header("sluice_cluster")) == ("pod", "east")


async def test_what_is_passed_over_of_a_pod_is_told_once_and_the_pod_goes_on(world: World) -> None:
    def put(namespace: str, saved_at: str) -> None:
        metadata = {"annotations": {"sluice.dev/saved-at": saved_at}}
        spec = {"containers": [container(cpu="1")]}
        world.put("pod", "calm", namespace, metadata=metadata, spec=spec, status={"phase": "Running"})

    def letters() -> list[str]:
        found = world.log.messages.get((f"dlq.{world.settings.events_topic}", 0), [])
        return [f"{(letter.key or b'').decode()}: {letter.header('sluice_error')}" for letter in found]

    for namespace in ("team-a", "nobodys"):
        put(namespace, "yesterday")
    async with world.watching():
        assert world.told("one", "pod") == ["BEGIN", "ADDED calm", "END"]
        [letter] = letters()
        assert letter.startswith(
            "pod/team-a/calm: ApplicationError: metadata.annotations.sluice.dev/saved-at: 'yesterday' is no time: "
            "write one such as 2026-01-31T12:00:00Z"
        )
        put("team-a", "today")
        put("team-a", "2026-01-31T12:00:00Z")
        await world.settle()
        assert world.told("one", "pod")[-2:] == ["MODIFIED calm", "MODIFIED calm"]
        assert letters() == [letter]


async def test_time_never_goes_back_within_a_cell(world: World) -> None:
    async with world.watching():
        for number in range(50):
            world.put_pod(f"pod-{number}", "team-a")
    times = [event.time_ms for event in world.events("one")]
    assert times == sorted(times)
    assert any(isinstance(event, TickEvent) for event in world.events("one"))


async def test_a_kafka_that_refuses_ends_the_watcher(world: World) -> None:
    world.log.failure = RuntimeError("not acknowledged in time")
    with pytest.raises(ExceptionGroup) as raised:
        await asyncio.wait_for(world.watcher.run(), 5)
    assert raised.value.subgroup(lambda error: error is world.log.failure)


async def test_whatever_length_somebody_writes_at_the_rest_goes_on(world: World) -> None:
    """Objects may be larger than records, and what is wrong with one is said in its own words."""
    text = "x" * 1_100_000
    world.put("workload/SparkApplication", "heap", "team-a", spec={"driver": {"memory": text}})
    selector = {f"example.com/{number}": "x" * 63 for number in range(12_000)}
    template = {"spec": {"containers": [container(cpu="1")], "nodeSelector": selector}}
    world.put("workload/Job", "choosy", "team-a", spec={"template": template})
    world.put(
        "pod",
        "group",
        "team-a",
        metadata={"annotations": {"sluice.dev/pod-group-size": text[:250_000]}},
        spec={"containers": [container(cpu="1")], "schedulingGates": [{"name": GATE}], "notes": text},
    )
    world.put_pod("fine", "team-a")
    async with world.watching():
        assert world.told("one", "pod") == ["BEGIN", "ADDED fine", "END"]
        assert world.told("one", "workload/Job") == ["BEGIN", "END"]
        [heap] = [event for event in world.events("one") if isinstance(event, WorkloadEvent)]
        assert heap.workload.problem.startswith("spec.driver.memory: 'xxx")
        letters = world.log.messages[f"dlq.{world.settings.events_topic}", 0]
        assert [letter.key for letter in letters] == [b"workload/team-a/choosy", b"pod/team-a/group"]
        assert (letters[0].header("sluice_error") or "").startswith("its record would have")
