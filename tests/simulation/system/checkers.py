"""What must hold whatever happens, checked from outside: by what the API server, Kafka and Redis show.

Some hold at every moment, and are asked at each change; the others once everything has come to rest.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple

from kafka.errors import KafkaError
from simulation.system.api import Json
from simulation.system.cluster import JOBS, PODS, cpu_of, is_open
from simulation.system.redis import at_once
from simulation.system.run import System
from sluice.beginnings import NoBeginningError, find_beginning
from sluice.codec import DECISIONS, EPOCH_HEADER, EVENTS, Message, UnreadableRecordError
from sluice.decisions import Admit, Decision, Fence, ObjectDecision, Resync
from sluice.events import NodeEvent, OutcomeEvent, QueueEvent
from sluice.kafka import Received
from sluice.values import DecisionId, Epoch
from sluice.vocabulary import DECISION_ANNOTATION, QUEUE_LABEL
from sluice_console.chains import Verifier
from sluice_scheduler.core.stored.accounts import Pod
from sluice_scheduler.installed import installed_policies
from sluice_scheduler.ledger import entities
from sluice_scheduler.ports import SCHEMA, Commit, FencedError
from sluice_scheduler.replay.run import Comparison, HoleError, Player

CELL: Final = "default"
#: Of `/api/v1/namespaces/a`.
NAMESPACE_DEPTH: Final = 4
UNCOUNTED_S: Final = 30.0
#: The watcher ticks every second, and a record is stepped within that.
TICKS_ON_THE_WAY: Final = 3


class Violation(NamedTuple):
    checker: str
    what: str
    at_s: float


class Published(NamedTuple):
    decision: Decision
    epoch: Epoch


class Witness:
    """Hears everything, and complains."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.violations: list[Violation] = []
        self._committed: set[tuple[int, bytes]] = set()
        #: Since when its maker may have known what it knew, by seq.
        self._decided_from: dict[int, float] = {}
        self.published: dict[tuple[Epoch, int], Decision] = {}
        self._published_at: dict[
            tuple[int, bytes], tuple[str, int]
        ] = {}  # topic and offset, by seq and value
        self.answered: set[tuple[Epoch, int]] = set()
        self.fence = Epoch(0, 0)
        self._counts_from_s = 0.0
        self.chain = Verifier(CELL)
        self._first_topic = ""
        self._chained = ("", 0)  # the topic in which it stands, and where that begins
        self.capacity = History()
        self.limits: dict[str, History] = {}
        self._nodes: dict[str, int] = {}
        self._writer = Epoch(0, 0)
        self._losses = 0  # of Redis: then nobody can tell who had it
        system.api.heard.append(self._changed)
        system.broker.heard.append(self._appended)
        system.servers.redis.heard.append(self._commit)

    def complain(self, checker: str, what: str) -> None:
        self.violations.append(Violation(checker, what, self.system.loop.time()))
        self.system.loop.halt()

    # ---- commits

    def _commit(self, cell: str, commit: Commit) -> None:
        losses = self.system.servers.redis.losses
        if commit.epoch < self._writer and losses == self._losses:
            self.complain("epochs rise", f"{commit.epoch} has committed behind {self._writer}")
        self._writer, self._losses = commit.epoch, losses
        log = self.system.broker.at(self.system.settings.events_topic, 0)
        at = commit.expected_offset - log.first
        since = log.times[at] if 0 <= at < len(log.times) else 0.0
        for entry in commit.decisions:
            self._committed.add((entry.seq, entry.value))
            self._decided_from.setdefault(entry.seq, since)

    # ---- records

    def _appended(self, topic: str, partition: int, offset: int, message: Message) -> None:
        settings = self.system.settings
        try:
            if topic == settings.decisions_topic:
                self._decided(partition, offset, message)
            elif topic == settings.events_topic:
                self._happened(message)
        except UnreadableRecordError:
            return  # somebody has put it there

    def _decided(self, partition: int, offset: int, message: Message) -> None:
        decision = DECISIONS.decode(message.headers, message.value)
        received = Received(
            partition=partition, offset=offset, key=message.key, value=message.value, headers=message.headers
        )
        self._read_anew_if_cut(offset)
        self.chain.take(received)
        self.look_at_chain()
        if not decision.seq:
            return
        if (decision.seq, message.value) not in self._committed:
            self.complain("committed before it is published", f"#{decision.seq} is in no ledger")
        if not self._was_cut_off(offset, decision.seq, message.value):
            epoch = Epoch.parse(message.header(EPOCH_HEADER) or "")
            self.published[epoch, decision.seq] = decision

    def _was_cut_off(self, offset: int, seq: int, value: bytes) -> bool:
        """Whether it is published once more because the log of the first time is cut off. Its outcome of then
        counts."""
        topic = self.system.broker.topics[self.system.settings.decisions_topic]
        known = self._published_at.get((seq, value))
        self._published_at[seq, value] = (topic.id, offset)
        return known is not None and known[0] == topic.id and known[1] < topic.partitions[0].first

    def look_at_chain(self) -> None:
        """In a topic that was made anew the first decisions are indeed missing."""
        for found in self.chain.findings:
            if not (self._chained[0] != self._first_topic and found.what.endswith("are missing")):
                self.complain("the chain holds", found.what)

    def _read_anew_if_cut(self, end: int) -> None:
        """Whoever verifies the log begins with what there is of it."""
        topic = self.system.broker.topics[self.system.settings.decisions_topic]
        chained = (topic.id, topic.partitions[0].first)
        self._first_topic = self._first_topic or topic.id
        if chained != self._chained:
            self.chain, self._chained = Verifier(CELL), chained
            for received in topic.partitions[0].records(0, chained[1], end):
                with suppress(UnreadableRecordError):
                    DECISIONS.decode(received.headers, received.value)
                    self.chain.take(received)

    def _happened(self, message: Message) -> None:
        event = EVENTS.decode(message.headers, message.value)
        now = self.system.loop.time()
        if isinstance(event, OutcomeEvent) and event.seq:
            epoch = Epoch.parse(event.epoch)
            self.answered.add((epoch, event.seq))
            if event.decision == Fence.type and event.result == "Applied":
                self.fence = max(self.fence, epoch)
        elif isinstance(event, NodeEvent):
            gone = event.change == "DELETED" or not event.node.schedulable
            self._nodes[event.uid] = 0 if gone else event.node.allocatable.get("cpu", 0)
            self.capacity.put(now, sum(self._nodes.values()))
        elif isinstance(event, QueueEvent) and (limit := event.queue.limit.get("cpu", "1000000")):
            self.limits.setdefault(event.name, History()).put(now, int(limit) * 1000)

    # ---- objects

    def _changed(self, path: str, before: Json | None, after: Json | None) -> None:
        if path.count("/") == NAMESPACE_DEPTH and before is not None:
            self._look_at_binding(before, after)
        if "/pods/" not in path or before is None or after is None:
            return
        carried, carries = _carried(before), _carried(after)
        if carried and carries != carried:
            self._said_again(path, after, carried, carries)
        if before["spec"].get("schedulingGates") and not after["spec"].get("schedulingGates"):
            self._opened(path, after, carries)

    def _look_at_binding(self, before: Json, after: Json | None) -> None:
        """While a namespace is unbound, and until its pods are listed again, nobody counts what runs there."""
        bound = [QUEUE_LABEL in each["metadata"].get("labels", {}) for each in (before, after) if each]
        if bound != [True, True]:
            self._counts_from_s = self.system.loop.time() + UNCOUNTED_S

    def _said_again(self, path: str, pod: Json, carried: str, carries: str) -> None:
        """Who loses sight of a pod while its gate is being opened (its namespace was unbound and bound again) admits it
        once more, and the calls for the two may come in either order; but nothing else is written over."""
        uid = pod["metadata"]["uid"]
        both = [self._admitted_by(each) for each in (carried, carries)]
        are_its = all(each is not None and each.uid == uid for each in both)
        if not (are_its and self.system.loop.time() < self._counts_from_s):
            self.complain("a gate is opened once", f"{path} carried {carried}, and now {carries}")

    def _admitted_by(self, carries: str) -> Admit | None:
        identity = DecisionId.parse(carries)
        decision = self.published.get((identity.epoch, identity.seq)) if identity else None
        return decision if isinstance(decision, Admit) else None

    def _opened(self, path: str, pod: Json, carries: str) -> None:
        identity, decision = DecisionId.parse(carries), self._admitted_by(carries)
        if identity is None or decision is None or decision.uid != pod["metadata"]["uid"]:
            self.complain("a gate is opened by a decision", f"{path} was opened by {carries or 'nobody'}")
            return
        if identity.epoch < self.fence:
            self.complain("fences hold", f"{path} was opened by {carries}, behind a fence of {self.fence}")
        # What was reserved stays so though capacity falls: nothing more is reserved by opening it.
        since = 0.0 if decision.reason == "Reserved" else self._decided_from.get(identity.seq, 0.0)
        if self.system.loop.time() < self._counts_from_s:
            return
        pods = [each for each in self.system.api.of(PODS) if is_open(each) and _carried(each)]
        held = sum(map(cpu_of, pods))
        if held > (most := self.capacity.most(since)):
            self.complain("capacity is never passed", f"with {path} {held}m are open of {most}m")
        self._check_limit(decision.queue, since, pods)

    def _check_limit(self, queue: str, since: float, pods: list[Json]) -> None:
        if queue not in self.limits:
            return
        held = sum(cpu_of(each) for each in pods if self._queue_of(each) == queue)
        if held > (most := self.limits[queue].most(since)):
            self.complain("limits are never passed", f"{queue} has {held}m open, its limit is {most}m")

    def _queue_of(self, pod: Json) -> str:
        decision = self._admitted_by(_carried(pod))
        return decision.queue if decision else ""


class History:
    """A figure as it was published, from when on."""

    def __init__(self) -> None:
        self._values: list[tuple[float, int]] = []

    def put(self, at_s: float, value: int) -> None:
        self._values.append((at_s, value))

    def most(self, since_s: float) -> int:
        """The largest that it was from that time on."""
        before = [value for at_s, value in self._values if at_s <= since_s][-1:]
        return max([*before, *(value for at_s, value in self._values if at_s > since_s)], default=0)


def _carried(found: Json) -> str:
    text: str = found["metadata"].get("annotations", {}).get(DECISION_ANNOTATION, "")
    return text


# ---- at rest


def services_live(witness: Witness) -> str:
    """A service ends itself only when another has its cell, or because of Kafka."""
    for service in witness.system.services.values():
        for death in service.deaths:
            if not _is_to_be(death):
                return f"{service.name} has died: {death!r}"
    unheard = [each for each in witness.system.loop.unheard if "destroyed" not in each.get("message", "")]
    return f"nobody has heard of {unheard[0]}" if unheard else ""


def _is_to_be(death: BaseException) -> bool:
    if isinstance(death, BaseExceptionGroup):
        return all(map(_is_to_be, death.exceptions))
    return isinstance(death, FencedError | KafkaError)


def nobody_waits(witness: Witness) -> str:
    waiting = [
        each["metadata"]["name"]
        for each in witness.system.api.of(PODS)
        if each["spec"].get("schedulingGates")
    ]
    waiting += [
        each["metadata"]["name"]
        for each in witness.system.api.of(JOBS)
        if "conditions" not in each.get("status", {})
    ]
    return f"they wait still: {', '.join(waiting)}" if waiting else ""


def outcomes_settle(witness: Witness) -> str:
    """Every decision that counts has its outcome."""
    unanswered = [
        f"{epoch}.{seq} {decision.type}"
        for (epoch, seq), decision in witness.published.items()
        if epoch >= witness.fence
        and isinstance(decision, ObjectDecision | Fence)
        and not isinstance(decision, Resync)
        and (epoch, seq) not in witness.answered
    ]
    return f"no outcome of {', '.join(unanswered)}" if unanswered else ""


def the_log_is_read(witness: Witness) -> str:
    """But for ticks on the way. Whoever still waits for a server to take over has yet to meet what the log holds."""
    held = witness.system.servers.redis.ledger._cells.get(CELL)
    end = witness.system.broker.at(witness.system.settings.events_topic, 0).end
    if held is None or held.meta.next_offset < end - TICKS_ON_THE_WAY:
        return f"the ledger stands at {held.meta.next_offset if held else 'nothing'}, the log ends at {end}"
    return ""


def accounts_agree(witness: Witness) -> str:
    """The ledger holds and has waiting what the cluster shows."""
    held = witness.system.servers.redis.ledger._cells.get(CELL)
    if held is None:
        return "there is no ledger"
    accounts = {each.uid: each.phase for each in entities.load_all(held.state) if isinstance(each, Pod)}
    found: dict[str, str] = {uid: phase for uid, phase in accounts.items() if phase != "Withdrawn"}
    shown = {
        each["metadata"]["uid"]: "Holding" if is_open(each) else "Waiting"
        for each in witness.system.api.of(PODS)
        if is_open(each) or each["spec"].get("schedulingGates")
    }
    wrong = {uid for uid in found.keys() | shown.keys() if found.get(uid) != shown.get(uid)}
    return "; ".join(
        f"{uid}: {found.get(uid)} in the ledger, {shown.get(uid)} shown" for uid in sorted(wrong)
    )


def the_log_replays(witness: Witness) -> str:
    """The code of `sluice replay` comes to the decisions of the log."""
    return at_once(_replayed(witness))


async def _replayed(witness: Witness) -> str:
    records = LoggedRecords(witness.system)
    try:
        beginning = await find_beginning(records, CELL, 0, "rebuild", schema=SCHEMA)
    except NoBeginningError:
        return ""  # it was truncated
    player = Player(records, cell=CELL, partition=0, policies=installed_policies(), beginning=beginning)
    found = Comparison(player)
    try:
        await found.run()
    except HoleError as error:
        return str(error)
    if found.difference is not None:
        return found.difference.what
    return "; ".join(player.state.validate()) if player.state.derived else ""


class LoggedRecords:
    """The topics as they are, read without a network."""

    def __init__(self, system: System) -> None:
        self._system = system

    def _all(self, topic: str, first: int = 0, end: int = 2**60) -> list[Received]:
        return self._system.broker.at(topic, 0).records(0, first, end)

    async def topic_id(self) -> str:
        return self._system.broker.topics_id()

    async def bounds(self, partition: int) -> tuple[int, int]:
        log = self._system.broker.at(self._system.settings.events_topic, partition)
        return log.first, log.end

    async def decision_bounds(self, partition: int) -> tuple[int, int]:
        log = self._system.broker.at(self._system.settings.decisions_topic, partition)
        return log.first, log.end

    async def events(self, partition: int, first: int, end: int) -> list[Received]:
        return self._all(self._system.settings.events_topic, first, end)

    async def decisions(self, partition: int, first: int, end: int) -> list[Received]:
        return self._all(self._system.settings.decisions_topic, first, end)

    async def decisions_tail(self, partition: int, count: int) -> list[Received]:
        return self._all(self._system.settings.decisions_topic)[-count:]

    async def snapshots(self, partition: int) -> Any:
        for received in reversed(self._all(self._system.settings.snapshots_topic)):
            yield received

    async def close(self) -> None:
        """Nothing to close."""


#: What comes to hold when nothing happens any more.
RESTING: Final[dict[str, Callable[[Witness], str]]] = {
    "the log is read": the_log_is_read,
    "nobody waits for ever": nobody_waits,
    "outcomes settle": outcomes_settle,
    "accounts agree": accounts_agree,
}
AT_REST: Final = {"services live": services_live, **RESTING, "the log replays": the_log_replays}


def is_at_rest(witness: Witness) -> bool:
    return not any(check(witness) for check in RESTING.values())


def check_at_rest(witness: Witness) -> None:
    witness.chain.finish()
    witness.look_at_chain()
    for name, check in AT_REST.items():
        if what := check(witness):
            witness.complain(name, what)
