"""The actuator as a process, on a real API server and a real Kafka."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen
from uuid import uuid4

import orjson
import pytest
from cluster_api import Api, Object, eventually, made
from sluice.codec import DECISIONS, EVENTS, Message
from sluice.credentials import of_kubeconfig
from sluice.decisions import (
    Admit,
    Decision,
    Evict,
    Fence,
    LabelNamespace,
    Notice,
    ReportPool,
    ReportQueue,
)
from sluice.events import OutcomeEvent
from sluice.kafka import DEAD_LETTER_PREFIX, LogReader, LogWriter, ensure_topics
from sluice.kube import KubeClient
from sluice.settings import Settings
from sluice.values import DecisionId, Epoch
from sluice.vocabulary import DECISION_ANNOTATION, GATE, MANAGED_LABEL, QUEUE_LABEL
from sluice_local import Stack

pytestmark = pytest.mark.integration

EPOCH = Epoch(1, 5)
ABOUT: dict[str, Any] = {
    "cell": "default",
    "cluster": "local",
    "time_ms": 1_700_000_000_000,
    "reason": "Test",
    "sentence": "a test",
}


class World:
    """A bound namespace, topics of the test's own, and actuators that come and go."""

    def __init__(self, stack: Stack, folder: Path, settings: Settings, environment: dict[str, str]) -> None:
        self.api = Api(stack.endpoints)
        self.namespace = f"actuated-{uuid4().hex[:8]}"
        self.settings = settings
        self.processes: list[subprocess.Popen[bytes]] = []
        self._environment = environment
        self._folder = folder
        self._stack = stack
        self._seq = 0

    # ---- actuators

    def start(self) -> subprocess.Popen[bytes]:
        command = Path(sys.executable).with_name("sluice-actuator")
        with (self._folder / f"actuator-{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen([command], env=os.environ | self._environment, stderr=log)
        self.processes.append(process)
        return process

    def address(self, index: int = -1) -> str:
        """Where an actuator serves: its log says so."""
        log = self._folder / f"actuator-{range(len(self.processes))[index]}.log"

        def bound() -> str:
            found = re.search(r"/metrics on ([0-9.:]+)", log.read_text())
            return found[1] if found else ""

        return str(eventually(bound, seconds=60))

    def is_ready(self, index: int = -1) -> bool:
        try:
            return bool(urlopen(f"http://{self.address(index)}/readyz").status == 200)
        except URLError:
            return False

    def metric(self, pattern: str) -> float:
        """The sum of the samples that match, of the actuator started last."""
        text = urlopen(f"http://{self.address()}/metrics").read().decode()
        return sum(float(line.split()[-1]) for line in text.splitlines() if re.match(pattern, line))

    def requests_for_pods(self, verb: str) -> float:
        """What the API server itself has counted."""
        text = self.api.get("/metrics").message
        samples = [line for line in text.splitlines() if line.startswith("apiserver_request_total{")]
        wanted = [f'verb="{verb}"', 'resource="pods"', 'subresource=""']
        return sum(float(line.split()[-1]) for line in samples if all(part in line for part in wanted))

    # ---- pods

    def create_pods(self, count: int) -> list[Object]:
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        spec = {"containers": [{"name": "main", "image": "none"}]}
        pods = [
            made(self.api.create(path, {"metadata": {"name": f"pod-{n}"}, "spec": spec}))
            for n in range(count)
        ]
        assert all(pod["spec"]["schedulingGates"] == [{"name": GATE}] for pod in pods)
        return pods

    def pods(self) -> dict[str, Object]:
        items = made(self.api.get(f"/api/v1/namespaces/{self.namespace}/pods"))["items"]
        return {pod["metadata"]["name"]: pod for pod in items}

    @asynccontextmanager
    async def changes_of_pods(self) -> AsyncIterator[Counter[str]]:
        """How often each pod has changed since, as a watch shows it."""
        changes: Counter[str] = Counter()
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        version = made(self.api.get(path))["metadata"]["resourceVersion"]
        client = KubeClient(of_kubeconfig(self._stack.endpoints.kubeconfig), connections=1)

        async def watch() -> None:
            query = {"watch": "1", "resourceVersion": version}
            async with client.stream(path, query=query, silence_s=600) as response:
                async for line in response.content:
                    change = orjson.loads(line)
                    if change["type"] == "MODIFIED":
                        changes[change["object"]["metadata"]["name"]] += 1

        watching = asyncio.create_task(watch())
        yield changes
        watching.cancel()
        await client.close()

    # ---- decisions and outcomes

    def next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def admissions(self, pods: list[Object]) -> list[Admit]:
        return [
            Admit(
                **ABOUT,
                seq=self.next_seq(),
                name=pod["metadata"]["name"],
                namespace=self.namespace,
                uid=pod["metadata"]["uid"],
                queue="team-a",
                pool="main",
                node_selector={"pool": "main"},
            )
            for pod in pods
        ]

    async def publish(self, *decisions: Decision, epoch: Epoch = EPOCH) -> None:
        await self.append(*(DECISIONS.encode(decision, source="test", epoch=epoch) for decision in decisions))

    async def append(self, *messages: Message) -> None:
        log = LogWriter(self.settings)
        await log.append(self.settings.decisions_topic, 0, messages)
        await log.close()

    async def outcomes(self, count: int, *, seconds: float = 60) -> list[OutcomeEvent]:
        """All that there are as soon as `count` decisions have theirs."""
        reader = LogReader(self.settings, self.settings.events_topic)
        await reader.assign({0: 0})
        found: list[OutcomeEvent] = []
        deadline = time.monotonic() + seconds
        while len({outcome.seq for outcome in found}) < count:
            assert time.monotonic() < deadline, f"{len(found)} outcomes of {count}"
            for received in await reader.poll(0.2):
                event = EVENTS.decode(received.headers, received.value)
                assert isinstance(event, OutcomeEvent)
                found.append(event)
        await reader.close()
        return found


@pytest.fixture
def world(stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    environment = stack.service_env("actuator") | {"SLUICE_TOPICS": f"t{uuid4().hex[:8]}"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    ensure_topics(settings)
    world = World(stack, tmp_path, settings, environment)
    labels = {MANAGED_LABEL: "true", QUEUE_LABEL: "team-a"}
    path = f"/api/v1/namespaces/{world.namespace}"
    made(world.api.create("/api/v1/namespaces", {"metadata": {"name": world.namespace, "labels": labels}}))
    made(world.api.create(f"{path}/serviceaccounts", {"metadata": {"name": "default"}}))
    yield world
    for process in world.processes:
        process.kill()
        process.wait()
    world.api.delete(path)


def check_all_open(world: World, decisions: list[Admit]) -> None:
    pods = world.pods()
    for decision in decisions:
        pod = pods[decision.name]
        assert not pod["spec"].get("schedulingGates")
        assert pod["spec"]["nodeSelector"] == {"pool": "main"}
        assert pod["metadata"]["annotations"][DECISION_ANNOTATION] == str(DecisionId(EPOCH, decision.seq))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.05)


# ---- admissions


async def test_one_gate_costs_one_write(world: World) -> None:
    decisions = world.admissions(world.create_pods(60))
    world.start()
    eventually(world.is_ready, seconds=60)
    before = {verb: world.requests_for_pods(verb) for verb in ("PATCH", "GET", "PUT")}
    await world.publish(*decisions)
    outcomes = await world.outcomes(60)
    assert Counter(outcome.result for outcome in outcomes) == {"Applied": 60}
    check_all_open(world, decisions)
    after = {verb: world.requests_for_pods(verb) for verb in before}
    assert {verb: after[verb] - before[verb] for verb in before} == {"PATCH": 60, "GET": 0, "PUT": 0}
    assert world.metric(r"sluice_actuator_api_requests_total") == 60
    assert world.metric(r'sluice_actuator_decisions_total\{.*result="Applied"') == 60


@pytest.mark.parametrize("kills", [1, 3])
async def test_killed_in_the_middle_it_goes_on_where_it_was(world: World, kills: int) -> None:
    decisions = world.admissions(world.create_pods(200))
    async with world.changes_of_pods() as changes:
        await world.publish(*decisions)
        for kill in range(kills):
            process = world.start()
            await world.outcomes((kill + 1) * 30)
            process.send_signal(signal.SIGKILL)
            process.wait()
        world.start()
        outcomes = await world.outcomes(200)
        check_all_open(world, decisions)
        await until(lambda: len(changes) == 200)
        await asyncio.sleep(0.5)  # for what must not come
        assert set(changes.values()) == {1}
    assert {outcome.result for outcome in outcomes} <= {"Applied", "AlreadyApplied"}


async def test_one_takes_over_from_another_and_nothing_is_done_twice(world: World) -> None:
    decisions = world.admissions(world.create_pods(200))
    async with world.changes_of_pods() as changes:
        first = world.start()
        eventually(lambda: world.is_ready(0), seconds=60)
        await world.publish(*decisions)
        await world.outcomes(10)
        world.start()
        await world.outcomes(60)
        first.send_signal(signal.SIGTERM)
        await world.outcomes(200)
        check_all_open(world, decisions)
        await until(lambda: len(changes) == 200)
        await asyncio.sleep(0.5)  # for what must not come
        assert set(changes.values()) == {1}
    assert first.wait(timeout=10) == 0


def test_who_stands_by_is_ready(world: World) -> None:
    """There is one partition: a rollout and a disruption budget wait for both."""
    world.start()
    world.start()
    eventually(lambda: world.is_ready(0) and world.is_ready(1), seconds=60)


async def test_who_restarts_with_nothing_to_do_does_nothing(world: World) -> None:
    decisions = world.admissions(world.create_pods(20))
    process = world.start()
    await world.publish(*decisions)
    await world.outcomes(20)
    process.send_signal(signal.SIGKILL)  # before it has committed, as likely as not
    world.start()
    eventually(world.is_ready, seconds=60)
    await world.publish(*decisions)  # once more, as an outbox may
    eventually(lambda: world.metric('sluice_actuator_dropped_total.*why="duplicate"') >= 20)
    assert world.metric("sluice_actuator_api_requests_total") == 0
    assert len(await world.outcomes(20)) == 20


# ---- everything else


async def test_every_decision_does_to_its_object_what_it_says(world: World) -> None:
    waiting, evicted = world.create_pods(2)
    queue, pool = (
        made(
            world.api.create(
                f"/apis/sluice.dev/v1alpha1/{kind.lower()}s",
                {
                    "apiVersion": "sluice.dev/v1alpha1",
                    "kind": kind,
                    "metadata": {"name": f"{world.namespace}-{kind.lower()}"},
                    "spec": {},
                },
            )
        )["metadata"]
        for kind in ("Queue", "ResourcePool")
    )
    namespace = made(world.api.get(f"/api/v1/namespaces/{world.namespace}"))["metadata"]
    pod: Object = {"namespace": world.namespace}
    decisions: list[Decision] = [
        Evict(**ABOUT, **pod, seq=1, **named(evicted["metadata"]), queue="team-a", deadline_ms=0),
        LabelNamespace(**ABOUT, seq=2, **named(namespace), queue="team-b"),
        ReportQueue(
            **ABOUT,
            **named(queue),
            seq=0,
            generation=1,
            usage={"main/cpu": 1500},
            demand={},
            fair_share={},
            dominant_share="0.5000",
            dominant_resource="main/cpu",
            pending=1,
            running=2,
            conditions=(),
        ),
        ReportPool(
            **ABOUT,
            **named(pool),
            seq=0,
            generation=1,
            nodes=3,
            capacity={"memory": 2**30},
            reserved={},
            unmanaged={},
            conditions=(),
        ),
        Notice(**ABOUT, **pod, seq=3, **named(waiting["metadata"]), about="pod"),
        Notice(**ABOUT, seq=4, **named(namespace), about="namespace"),
        Fence(**ABOUT, seq=5),
    ]
    world.start()
    await world.publish(*decisions)
    outcomes = {outcome.seq: (outcome.result, outcome.message) for outcome in await world.outcomes(5)}
    assert outcomes == dict.fromkeys(range(1, 6), ("Applied", "")), "nor is a status answered"
    assert set(world.pods()) == {"pod-0"}
    labels = made(world.api.get(f"/api/v1/namespaces/{world.namespace}"))["metadata"]["labels"]
    assert labels[QUEUE_LABEL] == "team-b"
    status = made(world.api.get(f"/apis/sluice.dev/v1alpha1/queues/{queue['name']}"))["status"]
    assert (status["usage"], status["dominantShare"]) == ({"main/cpu": "1.5"}, "0.5000")
    assert (status["decision"], status["observedGeneration"]) == (f"{EPOCH}.2", 1), "its offset"
    status = made(world.api.get(f"/apis/sluice.dev/v1alpha1/resourcepools/{pool['name']}"))["status"]
    assert (status["nodes"], status["capacity"]) == (3, {"memory": "1Gi"})
    # As `kubectl describe` looks for them.
    for uid in (waiting["metadata"]["uid"], namespace["uid"]):
        found = made(world.api.get(f"/api/v1/events?fieldSelector=involvedObject.uid={uid}"))["items"]
        assert [event["message"] for event in found] == ["a test"]
    for kind, name in (("queues", queue["name"]), ("resourcepools", pool["name"])):
        world.api.delete(f"/apis/sluice.dev/v1alpha1/{kind}/{name}")


def named(metadata: Object) -> Object:
    return {key: metadata[key] for key in ("name", "uid")}


async def test_a_refusal_says_it_in_the_servers_words(world: World) -> None:
    [decision] = world.admissions(world.create_pods(1))
    patch = {"spec": {"nodeSelector": {"pool": "other"}}}
    made(world.api.merge(f"/api/v1/namespaces/{world.namespace}/pods/pod-0", patch))
    world.start()
    await world.publish(decision)
    [outcome] = await world.outcomes(1)
    assert outcome.result == "Rejected"
    assert "nodeSelector" in outcome.message
    assert world.pods()["pod-0"]["spec"]["schedulingGates"] == [{"name": GATE}]


async def test_unreadable_decisions_end_in_the_dead_letters(world: World) -> None:
    decisions = world.admissions(world.create_pods(1))
    ce_type = b"dev.sluice.decision.admit.v9"
    garbage = Message(key=b"key", value=b"\x00garbage", headers=[("ce_type", ce_type)])
    await world.append(garbage)
    await world.publish(*decisions)
    world.start()
    assert [outcome.result for outcome in await world.outcomes(1)] == ["Applied"]
    topic = DEAD_LETTER_PREFIX + world.settings.decisions_topic
    reader = LogReader(world.settings, topic)
    while not (letters := await reader.tail(0, 10)):  # noqa: ASYNC110 - as in `until`
        await asyncio.sleep(0.1)
    await reader.close()
    [letter] = letters
    assert (letter.key, letter.value) == (b"key", garbage.value)
    headers = dict(letter.headers)
    assert headers["ce_type"] == ce_type
    assert headers["sluice_offset"] == b"0"
    assert b"version '9'" in headers["sluice_error"]


async def test_a_divergence_is_shown_where_people_look(world: World) -> None:
    one, other = world.admissions(world.create_pods(2))
    await world.publish(one)
    world.start()
    eventually(world.is_ready, seconds=60)
    await world.outcomes(1)
    await world.publish(replace(other, seq=one.seq))
    eventually(lambda: not world.is_ready())
    assert world.metric(r'sluice_actuator_divergences_total\{cell="default"\}') == 1
    assert world.pods()[other.name]["spec"]["schedulingGates"] == [{"name": GATE}]
