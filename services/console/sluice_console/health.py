"""Whether all is well: judged from the ledger and from what lately stood in the logs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from pydantic.alias_generators import to_camel
from rich.console import Console
from rich.markup import escape
from rich.text import Text
from sluice.codec import EPOCH_HEADER
from sluice.decisions import Fence, Resync
from sluice.events import OutcomeEvent
from sluice.values import Epoch

from sluice_console import asides, wording
from sluice_console.asides import SetAside, asides_of
from sluice_console.lines import Line
from sluice_console.redis_reader import Entity, Snapshot
from sluice_console.tables import plain_table
from sluice_console.topics import Bounds
from sluice_console.views import KINDS as QUEUE_KINDS
from sluice_console.views import NAMESPACES, complaints_of, queue_views, roots_first

#: What `judge` reads of a ledger.
KINDS: Final = (*QUEUE_KINDS, NAMESPACES, "cluster", asides.KIND)
#: How much of each log's end it wants to see.
RECENT: Final = 500
#: Each watcher writes a tick a second, so this long without one means that it is not there.
SILENT_MS: Final = 10_000
#: A decision is answered as soon as the API server has answered; evictions may take their grace.
UNANSWERED_MS: Final = 10_000

#: What a pass may leave to the next records, beyond what one step may do.
_LEFT: Final = {
    "serve": "still serving: the next records go on with it",
    "reclaim": "still taking back: the next records go on with it",
}

_FROM_ELSEWHERE: Final = ("outcome", "config", "rebuild")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    name: str
    live: bool
    waits_for: str  # before anything is decided about it
    heard_ms: int | None  # since its watcher last wrote something; None: not lately
    unanswered: int  # recent decisions that its actuator has not answered
    unanswered_ms: int  # since the oldest of them


@dataclass(frozen=True, slots=True, kw_only=True)
class CellStatus:
    cell: str
    partition: int
    now_ms: int  # when this was judged
    policy: str
    epoch: str
    next_offset: int
    end_offset: int
    lag: int
    committed_ms: int  # since the time of the last record that was committed
    decided: int  # decisions, ever
    published: int  # of these
    queues: int
    pending: int
    running: int
    pending_workloads: int  # applications, as are those that were admitted
    admitted_workloads: int
    pass_pending: str  # what the last pass has left to the next records; empty: nothing
    unreadable: int  # of the recent records
    diverged: tuple[int, ...]  # recent seqs that two different decisions bear
    dead_letters: int  # that are kept; how many of them are of old nobody knows
    set_aside: tuple[SetAside, ...]  # for work on it raised an exception
    complaints: tuple[str, ...]  # of Queues, ResourcePools and bindings
    clusters: tuple[ClusterStatus, ...]

    @property
    def problems(self) -> list[str]:
        """What somebody should look at, each with where to look; none while all is well."""
        of_clusters = (text for cluster in self.clusters for text in _problems_of(cluster))
        of_asides = asides.complaints(self.set_aside, self.now_ms)
        return [*self._of_scheduler(), *of_clusters, *of_asides, *self.complaints]

    def as_json(self) -> dict[str, Any]:
        clusters = [_camel_case(asdict(cluster)) for cluster in self.clusters]
        aside = [each.as_json() for each in self.set_aside]
        whole = _camel_case(asdict(self)) | {"clusters": clusters, "setAside": aside}
        return whole | {"problems": self.problems}

    def _of_scheduler(self) -> Iterator[str]:
        if self.lag < 0:
            yield (
                f"the ledger stands at offset {self.next_offset}, the log ends at {self.end_offset}: Kafka "
                "was lost or made anew. The scheduler rebuilds when it takes the cell over; see its log"
            )
        elif self.lag and self.committed_ms > SILENT_MS:
            yield (
                f"the scheduler is {wording.count(self.lag, 'record')} behind and has committed nothing of "
                f"the last {wording.age(self.committed_ms)}: see its /readyz and its log"
            )
        if self.published < self.decided and self.committed_ms > SILENT_MS:
            waiting = wording.count(self.decided - self.published, "decision")
            yield f"{waiting} in the outbox: the scheduler publishes when it runs and reaches Kafka"
        for seq in self.diverged:
            yield (
                f"divergence: two different decisions bear seq {seq}. Each actuator stops before the second: "
                "see divergence in docs/runbook.md"
            )
        if self.unreadable:
            yield (
                f"{wording.count(self.unreadable, 'recent record')} can't be read: `sluice audit tail` shows "
                "which and why, `sluice audit dead-letters` what the services have set aside"
            )


def judge(
    snapshot: Snapshot,
    *,
    partition: int,
    events: Bounds,
    recent_events: Sequence[Line],
    recent_decisions: Sequence[Line],
    dead_letters: int,
    now_ms: int,
) -> CellStatus:
    position = snapshot.position
    decided = position.next_seq - 1
    views = queue_views([snapshot])
    figures = [view.figures for depth, view in roots_first(views) if not depth and view.figures]
    return CellStatus(
        cell=snapshot.cell,
        partition=partition,
        now_ms=now_ms,
        policy=snapshot.about.get("config", {}).get("policy", ""),
        epoch=str(position.epoch),
        next_offset=position.next_offset,
        end_offset=events.end,
        lag=events.end - position.next_offset,
        committed_ms=now_ms - snapshot.about.get("time_ms", 0),
        decided=decided,
        published=min(decided, max([position.published - 1, *(line.seq for line in recent_decisions)])),
        queues=len(views),
        pending=sum(each.pending for each in figures),
        running=sum(each.running for each in figures),
        pending_workloads=sum(each.pending_workloads for each in figures),
        admitted_workloads=sum(each.admitted_workloads for each in figures),
        pass_pending=snapshot.about.get("unfinished", ""),
        unreadable=sum(1 for line in (*recent_events, *recent_decisions) if line.error),
        diverged=tuple(_diverged(recent_decisions)),
        dead_letters=dead_letters,
        set_aside=asides_of(snapshot),
        complaints=tuple(complaints_of(snapshot)),
        clusters=tuple(
            _cluster(cluster, recent_events, recent_decisions, now_ms) for cluster in snapshot.of("cluster")
        ),
    )


def show_status(console: Console, status: CellStatus) -> None:
    lines = {
        "epoch": status.epoch,
        "policy": status.policy,
        "ledger": f"offset {status.next_offset} of {status.end_offset} ({status.lag} behind), "
        f"last record {wording.age(status.committed_ms)} ago",
        "decisions": f"{status.decided} decided, {status.published} published",
        "queues": f"{status.queues}, with {wording.count(status.pending, 'pod')} pending "
        f"and {status.running} running",
        "apps": f"{status.pending_workloads} pending, {status.admitted_workloads} admitted",
        "last pass": _LEFT.get(status.pass_pending, "complete"),
        "dead letters": f"{status.dead_letters}: `sluice audit dead-letters` shows what could not be read, and why"
        if status.dead_letters
        else "none",
        "set aside": wording.count(len(status.set_aside), "thing") if status.set_aside else "nothing",
    }
    for cluster in status.clusters:
        lines[f"cluster {cluster.name}"] = ", ".join(_words(cluster))
    grid = plain_table(show_header=False)
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, value in lines.items():
        grid.add_row(name, escape(value))
    console.print(Text.assemble((f"cell {status.cell}", "bold"), (f"  partition {status.partition}", "dim")))
    console.print(grid)
    for problem in status.problems:
        console.print(Text(f"! {problem}", style="red"), soft_wrap=True)


def _diverged(decisions: Sequence[Line]) -> Iterator[int]:
    """As actuators judge it: what a fence has shut out does not count, and a fence begins its seqs anew."""
    fence = Epoch(0, 0)
    known: dict[int, object] = {}
    for line in decisions:
        epoch = _epoch_of(line)
        if line.error or not line.seq or epoch < fence:
            continue
        if line.type == Fence.type and epoch > fence:
            fence, known = epoch, {seq: record for seq, record in known.items() if seq < line.seq}
        if known.setdefault(line.seq, line.record) != line.record:
            yield line.seq


def _epoch_of(line: Line) -> Epoch:
    try:
        return Epoch.parse(line.headers.get(EPOCH_HEADER, ""))
    except ValueError:
        return Epoch(0, 0)


def _cluster(
    cluster: Entity, recent_events: Sequence[Line], recent_decisions: Sequence[Line], now_ms: int
) -> ClusterStatus:
    name = cluster["name"]
    events = [(line, line.record) for line in recent_events if line.record and line.record["cluster"] == name]
    heard = [record["timeMs"] for line, record in events if line.type not in _FROM_ELSEWHERE]
    answered = {line.seq for line, _ in events if line.type == OutcomeEvent.type}
    known_from_ms = recent_events[0].time_ms if recent_events else now_ms
    owed = [
        line.time_ms
        for line in recent_decisions
        if line.record
        and line.seq  # a status is answered only if it could not be written
        and line.record["cluster"] == name
        and line.type != Resync.type  # the watcher answers it with a list
        and line.time_ms > known_from_ms  # the answers to earlier ones may lie further back
        and line.record.get("deadlineMs", 0) < now_ms  # an eviction may take its grace
        and line.seq not in answered
    ]
    return ClusterStatus(
        name=name,
        live=cluster["live"],
        waits_for=_waits_for(cluster),
        heard_ms=now_ms - max(heard) if heard else None,
        unanswered=len(owed),
        unanswered_ms=now_ms - min(owed) if owed else 0,
    )


def _waits_for(cluster: Entity) -> str:
    """The next step of FENCE → RESYNC → SYNC of every kind → live."""
    if cluster["live"]:
        return ""
    if not cluster["resync"]:
        return f"its actuator's answer to fence #{cluster['fence']}"
    listed = ", ".join(cluster["synced"]) or "none"
    return f"its watcher's lists, asked for by #{cluster['resync']} (listed so far: {listed})"


def _words(cluster: ClusterStatus) -> Iterator[str]:
    yield "live" if cluster.live else f"not live: waits for {cluster.waits_for}"
    yield (
        "watcher silent" if cluster.heard_ms is None else f"watcher heard {wording.age(cluster.heard_ms)} ago"
    )
    if cluster.unanswered:
        yield f"actuator owes {wording.count(cluster.unanswered, 'answer')}"
    else:
        yield "actuator has answered everything"


def _problems_of(cluster: ClusterStatus) -> Iterator[str]:
    if not cluster.live:
        yield f"nothing is decided about cluster {cluster.name} before it has {cluster.waits_for}"
    if cluster.heard_ms is None or cluster.heard_ms > SILENT_MS:
        since = "lately" if cluster.heard_ms is None else f"for {wording.age(cluster.heard_ms)}"
        yield f"the watcher of cluster {cluster.name} has written nothing {since}: see its /readyz and log"
    if cluster.unanswered and cluster.unanswered_ms > UNANSWERED_MS:
        yield (
            f"the actuator of cluster {cluster.name} owes {wording.count(cluster.unanswered, 'answer')}, the "
            f"oldest for {wording.age(cluster.unanswered_ms)}: see its /readyz and log"
        )


def _camel_case(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {to_camel(name): value for name, value in fields.items()}
