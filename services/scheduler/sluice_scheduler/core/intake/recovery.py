"""Beginning, and beginning again: REBUILD → FENCE → RESYNC → SYNC of every kind → live.

Nothing is decided about a cluster's objects before the last step. The fence makes sure that no decision of an
earlier life is applied after the re-list that this life builds upon.
"""

from __future__ import annotations

from typing import Final

from sluice.decisions import Fence, Resync
from sluice.events import ConfigEvent, OutcomeEvent, RebuildEvent, SyncEvent

from sluice_scheduler.core.applications.binding import bind_namespaces
from sluice_scheduler.core.intake.observe import on_sync_end
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.entities import Cell, Cluster

#: A request is made again that nobody has begun to answer for so long: it may be gone from the log, where no watcher
#: ran for longer than that is kept. Where each kind begins to be listed it is given longer.
UNANSWERED_MS: Final = 120_000
LISTING_MS: Final = 1_800_000


def on_rebuild(state: State, event: RebuildEvent) -> None:
    state.clear()
    state.cells.put(Cell(config=event.config, next_seq=event.next_seq, time_ms=event.time_ms))
    state.derive()
    for name in event.config.clusters:
        sentence = f"fence off earlier decisions: {event.reason}"
        fence = state.decide(Fence(**state.stamp(name), reason="Rebuild", sentence=sentence))
        state.clusters.put(Cluster(name=name, fence=fence.seq))


def on_config(state: State, event: ConfigEvent) -> None:
    """Another core takes up what was set aside, and has everything listed: what has happened to it meanwhile was
    passed over."""
    cell = state.cell
    others = [aside for aside in state.asides if aside.core_version != event.config.core_version]
    for aside in others:
        state.asides.drop(aside.key)
    cell.config = event.config
    cell.rules_due = cell.rules_due or bool(others)
    state.cells.put(cell)
    state.derive()
    for cluster in sorted(state.clusters, key=lambda cluster: cluster.name):
        if others and cluster.live:
            sentence = "another version of the core takes up what was set aside: list everything again"
            state.decide(Resync(**state.stamp(cluster.name), reason="TakenUpAgain", sentence=sentence))


def on_fence_outcome(state: State, cluster: Cluster, event: OutcomeEvent) -> None:
    if event.seq != cluster.fence or cluster.resync:
        return
    _ask_for_everything(state, cluster, "the fence stands: list everything again")


def ask_again(state: State) -> None:
    """With a tick: nothing is decided about a cluster before it was listed."""
    for cluster in sorted(state.clusters, key=lambda cluster: cluster.name):
        patience_ms = LISTING_MS if cluster.answering else UNANSWERED_MS
        if cluster.resync and not cluster.live and state.now_ms - cluster.asked_ms >= patience_ms:
            waited = f"{patience_ms // 60_000}m"
            _ask_for_everything(state, cluster, f"nothing was listed for {waited}: list everything again")


def _ask_for_everything(state: State, cluster: Cluster, sentence: str) -> None:
    resync = state.decide(Resync(**state.stamp(cluster.name), reason="Rebuild", sentence=sentence))
    cluster.resync, cluster.synced, cluster.answering = resync.seq, (), False
    cluster.asked_ms = state.now_ms
    state.clusters.put(cluster)


def on_sync(state: State, event: SyncEvent) -> None:
    cluster = state.clusters.get(f"{Cluster.kind}/{event.cluster}")
    if cluster is None:
        return  # not one of the cell's
    if event.phase == "BEGIN":
        cluster.open_syncs = {**cluster.open_syncs, event.kind: event.sync}
        if cluster.resync and event.request == cluster.resync:
            cluster.answering, cluster.asked_ms = True, state.now_ms
        state.clusters.put(cluster)
        return
    if cluster.open_syncs.get(event.kind) != event.sync:
        return  # its beginning was not seen, or another list has begun since
    on_sync_end(state, event)
    cluster.open_syncs = {kind: sync for kind, sync in cluster.open_syncs.items() if kind != event.kind}
    if cluster.resync and event.request == cluster.resync:
        cluster.synced = tuple(sorted({*cluster.synced, event.kind}))
        if not cluster.live and set(state.config.kinds) <= set(cluster.synced):
            cluster.live = True
            state.clusters.put(cluster)
            state.derive()
            bind_namespaces(state)
    state.clusters.put(cluster)
