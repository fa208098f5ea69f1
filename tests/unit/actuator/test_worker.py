"""The whole actuator between a fake cluster, a fake log and a fake consumer group."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from decisions_made import EPOCH, POD, QUEUE, a_cluster, admit, common, evict, identity, report_queue
from fakes.actuated_cluster import Fault
from fakes.clock import FakeClock
from fakes.group import POLLED_MAX, FakeGroup, FakeMember, FakeTopic
from fakes.log import FakeLog
from sluice.applications import APPLICATION_KINDS
from sluice.codec import DECISIONS, EPOCH_HEADER, Message
from sluice.decisions import CreateWorkload, Decision, Delete, Fence, Resync
from sluice.events import OutcomeEvent
from sluice.kafka import DEAD_LETTER_PREFIX
from sluice.settings import Settings
from sluice.values import Epoch
from sluice.vocabulary import DECISION_ANNOTATION, GATE
from sluice_actuator import outcomes, worker
from sluice_actuator.history import DivergenceError
from sluice_actuator.kube import Unreachable, pod_path
from sluice_actuator.worker import Actuator

LATER = Epoch(1, 60)


class Ended(Exception):  # noqa: N818 - a test's, not an error
    """The test is over."""


class World:
    """One cluster, one group, two topics; actuators come and go."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.cluster = a_cluster()
        self.log = FakeLog()
        self.group = FakeGroup(0)
        self.clock = FakeClock()
        self.decisions = FakeTopic(self.log, self.settings.decisions_topic)
        self.events = FakeTopic(self.log, self.settings.events_topic)

    async def publish(self, *decisions: Decision, epoch: Epoch = EPOCH) -> None:
        messages = [DECISIONS.encode(decision, source="test", epoch=epoch) for decision in decisions]
        await self.append(*messages)

    async def append(self, *messages: Message) -> None:
        self.log.messages[self.settings.decisions_topic, 0] += messages

    @asynccontextmanager
    async def acting(self, topics: str = "1/2") -> AsyncIterator[tuple[Actuator, FakeMember]]:
        """An actuator at work, which then dies as if it were killed."""
        member = FakeMember(self.group, self.decisions)
        try:
            async with asyncio.TaskGroup() as tasks:
                actuator = Actuator(
                    tasks,
                    settings=self.settings,
                    cluster=self.cluster,
                    inbox=member,
                    decisions=self.decisions,
                    events=self.events,
                    log=self.log,
                    clock=self.clock,
                    topics=topics,
                )
                tasks.create_task(actuator.run())
                yield actuator, member
                raise Ended
        except* Ended:
            pass

    @property
    def outcomes(self) -> list[OutcomeEvent]:
        events = self.log.events(self.settings.events_topic)
        return [event for event in events if isinstance(event, OutcomeEvent)]

    @property
    def results(self) -> dict[int, str]:
        """The first outcome of each decision: the one that counts."""
        return {outcome.seq: outcome.result for outcome in reversed(self.outcomes)}

    async def answered(self, count: int) -> dict[int, str]:
        await until(lambda: len(self.outcomes) >= count)
        return self.results

    async def committed(self, offset: int) -> None:
        await until(lambda: 0 in self.group.positions and self.group.positions[0].offset == offset)

    def put_pods(self, *names: str) -> None:
        for name in names:
            gated = {"schedulingGates": [{"name": GATE}]}
            self.cluster.put(pod_path("team", name), {"metadata": {"uid": name}, "spec": gated})

    def carried(self, name: str) -> str | None:
        pod = self.cluster.objects[pod_path("team", name)]
        found: str | None = pod["metadata"].get("annotations", {}).get(DECISION_ANNOTATION)
        return found


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(outcomes, "PACE_S", 0.001)
    monkeypatch.setattr(worker, "COMMIT_INTERVAL_S", 0.0)
    return World()


def admit_named(seq: int, name: str) -> Decision:
    return admit(seq, name=name, uid=name)


def fence(seq: int) -> Fence:
    return Fence(seq=seq, cell="default", cluster="local", time_ms=0, reason="Rebuild", sentence="")


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.001)


async def quiet() -> None:
    """Time enough for what must not happen."""
    await asyncio.sleep(0.05)


# ---- the happy path


async def test_a_decision_is_carried_out_and_answered(world: World) -> None:
    async with world.acting():
        await world.publish(admit(7))
        await world.answered(1)
    [outcome] = world.outcomes
    assert (outcome.seq, outcome.epoch, outcome.decision, outcome.result) == (7, "1-50", "admit", "Applied")
    assert outcome.cluster == "local"
    assert world.cluster.objects[POD]["metadata"]["annotations"] == {DECISION_ANNOTATION: "1-50.7"}


async def test_what_is_answered_together_comes_as_one_moment(world: World) -> None:
    names = [f"pod-{number}" for number in range(300)]
    world.put_pods(*names)
    await world.publish(*(admit_named(seq, name) for seq, name in enumerate(names, 1)))
    async with world.acting():
        await world.answered(300)
    appends = iter(world.log.appends)
    flags = iter(outcome.more for outcome in world.outcomes)
    for size in appends:
        assert [next(flags) for _ in range(size)] == [True] * (size - 1) + [False]
    assert len(world.log.appends) < 300
    assert set(world.results.values()) == {"Applied"}


async def test_other_clusters_decisions_and_resyncs_are_passed_over(world: World) -> None:
    about: dict[str, Any] = {"seq": 1, "cell": "default", "time_ms": 0, "reason": "", "sentence": ""}
    await world.publish(
        Resync(cluster="local", **about), admit(2, cluster="elsewhere"), admit_named(3, "missing")
    )
    async with world.acting():
        assert await world.answered(1) == {3: "Gone"}
        await world.committed(3)
    assert [call.verb for call in world.cluster.calls] == ["patch"]


async def test_decisions_about_one_object_are_carried_out_in_order(world: World) -> None:
    await world.publish(admit(1), evict(2))
    world.cluster.faults.append(Fault.INTERNAL_ERROR)
    async with world.acting():
        assert await world.answered(2) == {1: "Applied", 2: "Applied"}
    assert [call.verb for call in world.cluster.writes] == ["patch", "patch", "evict"]


async def test_of_reports_that_wait_only_the_last_is_written(world: World) -> None:
    await world.publish(*(report_queue(seq, usage={"main/cpu": seq}) for seq in range(1, 6)))
    async with world.acting():
        results = await world.answered(5)
    assert results == {1: "Superseded", 2: "Superseded", 3: "Superseded", 4: "Superseded", 5: "Applied"}
    assert len(world.cluster.writes) == 1
    assert world.cluster.objects[QUEUE]["status"]["decision"] == "1-50.5"


# ---- statuses


def reports(*usage: int) -> list[Decision]:
    return [report_queue(0, usage={"main/cpu": each}) for each in usage]


async def test_a_status_carries_its_place_in_the_log_and_no_outcome_says_that_it_was_written(
    world: World,
) -> None:
    await world.publish(admit(1), *reports(1, 2, 3))
    async with world.acting():
        await world.committed(4)
    assert world.results == {1: "Applied"}
    assert world.cluster.objects[QUEUE]["status"]["decision"] == "1-50.3"
    assert len([call for call in world.cluster.writes if call.path.startswith(QUEUE)]) == 1


async def test_a_late_status_of_an_owner_that_was_fenced_off_is_dropped(world: World) -> None:
    async with world.acting():
        await world.publish(*reports(1))
        await world.publish(*reports(2), epoch=LATER)
        await world.publish(*reports(3))
        await world.committed(3)
    assert world.cluster.objects[QUEUE]["status"]["decision"] == "1-60.1"
    await world.publish(*reports(4))
    async with world.acting():  # nor by one that has read nothing before
        await world.committed(4)
        assert world.cluster.objects[QUEUE]["status"]["decision"] == "1-60.1"
        await world.publish(*reports(5), epoch=LATER)
        await world.committed(5)
    assert world.cluster.objects[QUEUE]["status"]["decision"] == "1-60.4"
    assert world.outcomes == []


async def test_a_status_that_was_not_written_is_answered_and_stands_in_no_decisions_way(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands at offset 1, where decision 1 has an outcome; and the outcome of one status is none of others."""
    world.cluster.objects.pop(QUEUE)
    world.put_pods("a", "b")
    await world.publish(admit_named(1, "a"), *reports(1))
    async with world.acting():
        await world.committed(2)
    [outcome] = [each for each in world.outcomes if not each.seq]
    assert (outcome.decision, outcome.result, outcome.uid) == ("reportqueue", "Gone", "uid-1")
    world.cluster.put(QUEUE, {"metadata": {"uid": "uid-1"}, "spec": {}})
    world.group.positions.clear()  # everything is read again
    await world.publish(admit_named(2, "b"))
    async with world.acting():
        await world.committed(3)
    assert world.cluster.objects[QUEUE]["status"]["decision"] == "1-50.1"
    assert (world.carried("a"), world.carried("b")) == ("1-50.1", "1-50.2")


# ---- duplicates, divergences, fences


async def test_duplicates_are_dropped(world: World) -> None:
    await world.publish(admit(1), admit(1))
    await world.publish(admit(1), epoch=LATER)
    async with world.acting():
        await world.answered(1)
        await world.publish(admit(1))
        await world.committed(4)
    assert len(world.outcomes) == 1
    assert len(world.cluster.writes) == 1


async def test_a_divergence_stops_the_cell_and_ends_the_service(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.put_pods("a", "b", "c")
    alarm = asyncio.Event()

    async def sleep(seconds: float) -> None:
        assert seconds == worker.ALARM_S
        await alarm.wait()

    world.clock.sleep = sleep  # type: ignore[method-assign]

    async def diverge() -> None:
        async with world.acting() as (actuator, _):
            await world.publish(admit_named(1, "a"))
            await world.committed(1)
            await world.publish(admit_named(1, "b"), admit_named(2, "c"))
            await until(lambda: "cell default is stopped: seq 1" in actuator.unready)
            await quiet()
            assert world.carried("b") is None
            assert world.carried("c") is None
            assert world.group.positions[0].offset == 1
            alarm.set()
            await asyncio.sleep(30)

    with pytest.raises(ExceptionGroup) as ending:
        await diverge()
    assert ending.group_contains(DivergenceError)
    [line] = [line for line in caplog.records if line.levelno == logging.CRITICAL]
    assert (line.__dict__["cell"], line.__dict__["seq"]) == ("default", 1)


async def test_a_divergence_is_found_again_after_a_restart(world: World) -> None:
    world.put_pods("a", "b")
    async with world.acting():
        await world.publish(admit_named(1, "a"))
        await world.committed(1)
    world.clock.sleep = asyncio.sleep  # type: ignore[method-assign, assignment]
    await world.publish(admit_named(1, "b"))
    async with world.acting() as (actuator, _):
        await until(lambda: "stopped" in actuator.unready)
    assert world.carried("b") is None


async def test_a_fence_is_answered_once_nothing_older_is_in_flight(world: World) -> None:
    """The older decision's call hangs; another waits behind it. Neither may act after the fence's answer."""
    hanging, release = asyncio.Event(), asyncio.Event()
    patch = world.cluster.patch

    async def slow_patch(path: str, body: Any, *, form: str) -> Any:
        hanging.set()
        await release.wait()
        return await patch(path, body, form=form)

    world.cluster.patch = slow_patch  # type: ignore[method-assign, assignment]
    async with world.acting():
        await world.publish(admit(1), evict(2))
        await hanging.wait()
        await world.publish(fence(3), epoch=LATER)
        await quiet()
        assert world.outcomes == []
        release.set()
        results = await world.answered(3)
    assert results == {1: "Applied", 2: "Superseded", 3: "Applied"}
    assert [outcome.seq for outcome in world.outcomes][-1] == 3
    assert [call.verb for call in world.cluster.writes] == ["patch"]


async def test_a_fence_does_not_wait_for_grace_to_end(world: World) -> None:
    world.cluster.budgeted.add(POD)
    woken = asyncio.Event()

    async def sleep(seconds: float) -> None:
        await woken.wait()

    world.clock.sleep = sleep  # type: ignore[method-assign]
    async with world.acting():
        await world.publish(evict(1, deadline_ms=world.clock.now_ms() + 3_600_000))
        await until(lambda: bool(world.cluster.writes))
        await world.publish(fence(2), epoch=LATER)
        await quiet()
        woken.set()  # the next pause ends, long before the deadline
        assert await world.answered(2) == {1: "Superseded", 2: "Applied"}
    assert POD in world.cluster.objects


async def test_behind_a_fence_older_epochs_are_dropped(world: World) -> None:
    """An outcome of theirs would be taken for one of the decision that has their seq now."""
    world.put_pods("a", "b")
    await world.publish(fence(5), epoch=LATER)
    await world.publish(admit_named(6, "a"), epoch=EPOCH)
    await world.publish(admit_named(6, "b"), epoch=LATER)
    async with world.acting():
        await world.committed(3)
    assert {(o.seq, o.epoch, o.result) for o in world.outcomes} == {
        (5, "1-60", "Applied"),
        (6, "1-60", "Applied"),
    }
    assert (world.carried("a"), world.carried("b")) == (None, "1-60.6")


async def test_a_fence_stands_after_a_restart(world: World) -> None:
    async with world.acting():
        await world.publish(fence(5), epoch=LATER)
        await world.committed(1)
    await world.publish(admit(6), epoch=EPOCH)
    async with world.acting():
        await world.committed(2)
    assert set(world.results) == {5}
    assert world.cluster.writes == []


# ---- an API server that is away


async def test_in_an_outage_reading_stops_and_goes_on_when_there_is_room(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group is attended to all the while, and what it knows never passes what was not carried out."""
    count, bound = 3_000, 500
    monkeypatch.setattr(worker, "WAITING_MAX", bound)
    names = [f"pod-{number}" for number in range(count)]
    world.put_pods(*names)
    await world.publish(*(admit_named(seq, name) for seq, name in enumerate(names, 1)))
    back = asyncio.Event()
    patch, get = world.cluster.patch, world.cluster.get

    async def away(*_: Any, **__: Any) -> Any:
        raise Unreachable("no route to host")

    async def sleep(seconds: float) -> None:
        await back.wait()

    world.cluster.patch = world.cluster.get = away  # type: ignore[method-assign]
    world.clock.sleep = sleep  # type: ignore[method-assign]
    async with world.acting() as (actuator, member):
        await until(lambda: member.stood_by > 50)
        [tenure] = actuator._tenures.values()
        assert len(tenure.unsettled) == bound
        assert len(actuator._read) <= POLLED_MAX
        assert world.outcomes == []
        world.cluster.patch, world.cluster.get = patch, get  # type: ignore[method-assign]
        back.set()
        await world.committed(count)
    assert set(world.results.values()) <= {"Applied", "AlreadyApplied"}
    assert [world.carried(name) for name in names] == [str(identity(seq)) for seq in range(1, count + 1)]


async def test_what_waits_for_room_is_dropped_with_its_partition(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read again in order: what was read before must not come between."""
    monkeypatch.setattr(worker, "WAITING_MAX", 10)
    names = [f"pod-{number}" for number in range(100)]
    world.put_pods(*names)
    await world.publish(*(admit_named(seq, name) for seq, name in enumerate(names, 1)))
    woken = asyncio.Event()
    world.cluster.faults.extend([Fault.TOO_MANY_REQUESTS] * 10)

    async def sleep(seconds: float) -> None:
        await woken.wait()

    world.clock.sleep = sleep  # type: ignore[method-assign]
    async with world.acting() as (actuator, member):
        await until(lambda: member.stood_by > 5)
        assert len(actuator._read) == 90
        member.hand_out()
        woken.set()
        await world.committed(100)
        check_commits(world, member)
    assert set(world.results.values()) <= {"Applied", "AlreadyApplied"}


# ---- what can't be read


async def test_unreadable_records_are_set_aside_and_the_rest_goes_on(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    good = DECISIONS.encode(admit(1), source="test", epoch=EPOCH)
    no_epoch = DECISIONS.encode(admit(2), source="test")
    other_cell = DECISIONS.encode(admit(3, cell="other"), source="test", epoch=EPOCH)
    garbage = Message(key=b"k", value=b"\xff{", headers=good.headers)
    unknown = Message(key=b"k", value=b"{}", headers=[("ce_type", b"dev.sluice.decision.dance.v1")])
    await world.append(garbage, no_epoch, unknown, other_cell, good)
    async with world.acting():
        assert await world.answered(1) == {1: "Applied"}
        await world.committed(5)
    letters = world.log.messages[DEAD_LETTER_PREFIX + world.settings.decisions_topic, 0]
    assert [letter.value for letter in letters] == [
        each.value for each in (garbage, no_epoch, unknown, other_cell)
    ]
    assert [letter.header("sluice_offset") for letter in letters] == ["0", "1", "2", "3"]
    assert EPOCH_HEADER in str(letters[1].header("sluice_error"))
    assert "SLUICE_CELLS" in str(letters[3].header("sluice_error"))
    assert sum("set aside" in line.getMessage() for line in caplog.records) == 4


# ---- crashes and hand-overs


async def test_an_outcome_counts_only_once_it_is_acknowledged(world: World) -> None:
    world.log.hold()
    async with world.acting() as (_, member):
        await world.publish(admit(1))
        await until(lambda: bool(world.log.appends))
        await quiet()
        assert all(position[0].offset == 0 for position in member.commits)
        world.log.release()
        await world.committed(1)


async def test_what_a_crash_left_without_an_outcome_is_done_again_and_found_done(world: World) -> None:
    world.log.hold()
    async with world.acting():
        await world.publish(admit(1))
        await until(lambda: bool(world.cluster.writes))
        await quiet()
    assert world.outcomes == []
    world.log.release()
    before = world.cluster.objects[POD]
    async with world.acting():
        await world.answered(1)
    assert world.cluster.objects[POD] == before


async def test_what_had_failed_is_not_tried_again_after_a_crash(world: World) -> None:
    """Its share has gone to somebody else. An unanswered decision before it holds the group back."""
    world.put_pods("stuck", "failed")
    world.cluster.budgeted.add(pod_path("team", "stuck"))
    woken = asyncio.Event()

    async def sleep(seconds: float) -> None:
        await woken.wait()

    world.clock.sleep = sleep  # type: ignore[method-assign]
    async with world.acting():
        await world.publish(evict(1, name="stuck", uid="stuck", deadline_ms=world.clock.now_ms() + 10**9))
        await until(lambda: bool(world.cluster.writes))
        world.cluster.rejects_everything = True
        await world.publish(admit_named(2, "failed"))
        assert await world.answered(1) == {2: "Rejected"}
        await world.committed(0)
    world.cluster.rejects_everything = False
    async with world.acting():
        await quiet()
        assert world.carried("failed") is None
        await world.publish(admit_named(3, "failed"))
        assert (await world.answered(2))[3] == "Applied"
    assert Counter(outcome.seq for outcome in world.outcomes) == {2: 1, 3: 1}


async def test_what_showed_an_application_is_deleted_again_after_a_crash(world: World) -> None:
    """A status is carried out again. The group is held back by a decision that is not answered yet."""
    shown = APPLICATION_KINDS["DynamicWorkload"].path("team", "sparkdriver-s")
    about = {"name": "sparkdriver-s", "namespace": "team", "uid": "SparkDriver-team-s"}
    made = CreateWorkload(
        application="SparkDriver",
        application_name="s",
        queue="team",
        priority=0,
        priority_class="",
        pod_sets=(),
        application_spec={},
        **common(0, **about),
    )
    gone = Delete(about="dynamicworkload", **common(2, **about))
    world.put_pods("stuck")
    world.cluster.budgeted.add(pod_path("team", "stuck"))

    async def sleep(seconds: float) -> None:
        await asyncio.Event().wait()

    world.clock.sleep = sleep  # type: ignore[method-assign]
    async with world.acting():
        await world.publish(evict(1, name="stuck", uid="stuck", deadline_ms=world.clock.now_ms() + 10**9))
        await until(lambda: bool(world.cluster.writes))
        await world.publish(made, gone)
        assert await world.answered(1) == {2: "Applied"}
    async with world.acting():
        await until(lambda: [each.verb for each in world.cluster.calls].count("delete") == 2)
        await until(lambda: shown not in world.cluster.objects)
    assert Counter(outcome.seq for outcome in world.outcomes) == {2: 1}


async def test_a_position_in_topics_that_are_no_more_says_nothing(world: World) -> None:
    """A member that did not know yet has committed it once more, in a topic that is another now."""
    world.put_pods("one", "two", "three")
    await world.publish(admit_named(1, "one"), admit_named(2, "two"))
    async with world.acting():
        await world.answered(2)
        await world.committed(2)
    for topic in (world.settings.decisions_topic, world.settings.events_topic):
        world.log.messages[topic, 0].clear()
    await world.publish(*(admit_named(seq, "three") for seq in (3, 4, 5)), epoch=LATER)
    async with world.acting(topics="1/3"):
        assert set(await world.answered(3)) == {3, 4, 5}
        await world.committed(3)
    assert world.group.positions[0].note.endswith(" 1/3")


async def test_whose_partition_is_taken_away_makes_no_further_call(world: World) -> None:
    world.cluster.faults.extend([Fault.TOO_MANY_REQUESTS] * 5)
    woken = asyncio.Event()

    async def sleep(seconds: float) -> None:
        await woken.wait()

    world.clock.sleep = sleep  # type: ignore[method-assign]
    async with world.acting() as (_, first):
        await world.publish(admit(1))
        await until(lambda: bool(world.cluster.writes))
        first.take_away()
        woken.set()
        await quiet()
    assert len(world.cluster.writes) == 1


async def test_whose_partition_is_taken_away_says_nothing_more(world: World) -> None:
    """Its call is answered after the next one has begun: only the next one's outcome counts."""
    release = asyncio.Event()
    world.cluster.delay = release.wait
    async with world.acting() as (_, first):
        await world.publish(admit(1))
        await quiet()
        first.take_away()
        async with world.acting():
            await quiet()
            release.set()
            await world.committed(1)
            await quiet()
    assert len(world.cluster.writes) == 2
    assert len(world.outcomes) == 1


async def test_what_is_handed_out_again_is_begun_again(world: World) -> None:
    world.put_pods("a", "b")
    world.log.hold()
    async with world.acting() as (_, member):
        await world.publish(admit_named(1, "a"))
        await until(lambda: bool(world.cluster.writes))
        member.hand_out()
        world.log.release()
        await world.publish(admit_named(2, "b"))
        await world.committed(2)
    assert set(world.results) == {1, 2}


async def test_two_actuators_at_once_do_no_harm(world: World) -> None:
    """A rolling update gone wrong: both believe that the partition is theirs."""
    names = [f"pod-{number}" for number in range(100)]
    world.put_pods(*names)
    await world.publish(*(admit_named(seq, name) for seq, name in enumerate(names, 1)))
    async with world.acting(), world.acting():
        await until(lambda: len(world.results) == 100)
    assert set(world.results.values()) <= {"Applied", "AlreadyApplied"}
    assert [world.carried(name) for name in names] == [str(identity(seq)) for seq in range(1, 101)]
    assert max(Counter(world.cluster.changes).values()) == 1


@pytest.mark.parametrize("crashes", [0, 1, 5])
async def test_whatever_happens_every_decision_has_an_outcome_that_is_true(
    world: World, rng: random.Random, crashes: int
) -> None:
    """Random faults, answers in random order, crashes: no decision is lost, none is applied twice."""
    names = [f"pod-{number}" for number in range(60)]
    world.put_pods(*names)
    faults = [fault for fault in Fault for _ in range(6)]
    rng.shuffle(faults)
    world.cluster.faults.extend(faults)
    world.cluster.delay = lambda: asyncio.sleep(rng.random() / 500)
    await world.publish(*(admit_named(seq, name) for seq, name in enumerate(names, 1)))
    for _ in range(crashes):
        async with world.acting() as (_, member):
            await asyncio.sleep(rng.random() / 50)
        check_commits(world, member)
    async with world.acting() as (_, member):
        await world.committed(len(names))
    check_commits(world, member)
    for seq, name in enumerate(names, 1):
        is_open = world.results[seq] in ("Applied", "AlreadyApplied")
        assert world.carried(name) == (str(identity(seq)) if is_open else None), world.results[seq]
    assert max(Counter(world.cluster.changes).values()) == 1


def check_commits(world: World, member: FakeMember) -> None:
    """Nothing that was ever committed passes a decision that has no outcome even now."""
    for positions in filter(None, member.commits):
        assert all(seq in world.results for seq in range(1, positions[0].offset + 1))
