"""The cell itself: its time, its settings, its decisions in their order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypedDict, TypeVar

from sluice.decisions import Decision, Status
from sluice.events import CellConfig
from sluice.values import answering_cell

from sluice_scheduler.core.fairness.tree import cell_problem
from sluice_scheduler.core.stored.accounts import Pod
from sluice_scheduler.core.stored.entities import (
    Aside,
    Cell,
    Cluster,
    Entity,
    Pool,
    Promise,
    Queue,
    TrackedObject,
)
from sluice_scheduler.core.stored.names import latest_of_each
from sluice_scheduler.core.stored.tables import Tables

D = TypeVar("D", bound=Decision)


class Stamp(TypedDict):
    """What every decision is made with: its place in the cell's order, whom it concerns, and when it was made."""

    seq: int
    cell: str
    cluster: str
    time_ms: int


class StampAbout(Stamp):
    """What a decision about an object is made with: it names that object."""

    namespace: str
    name: str
    uid: str


class Barren(NamedTuple):
    """A search found no victims: what it depended on, and when the next claim or victim becomes ripe."""

    version: int
    grounds: int
    coarse_ms: int
    minute: int
    until_ms: int


class CellTables(Tables):
    """All that is stored of one cell, and the only way to decide."""

    def __init__(self, entities: Iterable[Entity]) -> None:
        super().__init__(entities)
        self.decided: list[Decision] = []

    @property
    def cell(self) -> Cell:
        cell = self.cells.get(Cell.kind)
        assert cell is not None, "no event is read before REBUILD"
        return cell

    @property
    def begun(self) -> bool:
        return self.cells.get(Cell.kind) is not None

    @property
    def config(self) -> CellConfig:
        return self.cell.config

    @property
    def now_ms(self) -> int:
        return self.cell.time_ms

    @property
    def coarse_now_ms(self) -> int:
        """The time as taking back sees it. It moves in steps, so that a search is repeated for time alone only now and
        then."""
        return self.now_ms - self.now_ms % self.pace_ms

    @property
    def pace_ms(self) -> int:
        return min(60_000, max(1_000, self.config.tenure_ms // 64))

    @property
    def home(self) -> str:
        """The cluster whose Queues and ResourcePools rule the cell."""
        return self.config.clusters[0]

    @property
    def own_pools(self) -> list[Pool]:
        """The cell's ResourcePools, by name."""
        if not self.begun:
            return []
        pools = (pool for pool in self.pools if pool.cluster == self.home)
        ours = (p for p in pools if answering_cell(p.facts.cell, self.config.all_cells) == self.config.cell)
        return latest_of_each(ours)

    @property
    def own_queues(self) -> list[Queue]:
        """The home cluster's Queues, by name, whichever cell they are of."""
        return latest_of_each(queue for queue in self.queues if queue.cluster == self.home)

    def problem_of(self, pool: Pool) -> str:
        """Why a ResourcePool can't be used."""
        return pool.facts.problem or cell_problem(pool.facts.cell, self.config.all_cells)

    def new_grounds(self) -> None:
        """Capacity was added or a queue edited: who lost pods may push others out again."""
        cell = self.cell
        cell.grounds += 1
        self.cells.put(cell)

    def advance_time(self, time_ms: int) -> None:
        """A cell's time is the largest seen."""
        cell = self.cell
        cell.time_ms = max(time_ms, cell.time_ms)
        self.cells.put(cell)

    def leave_unfinished(self, what: str) -> None:
        """Say what the last pass has left to the next records."""
        cell = self.cell
        if cell.unfinished != what:
            cell.unfinished = what
            self.cells.put(cell)

    def leave_in_vain(self, claimants: int) -> None:
        """Say how many claimants the search that was left to the next records has tried in vain."""
        cell = self.cell
        if cell.in_vain != claimants:
            cell.in_vain = claimants
            self.cells.put(cell)

    def next_round(self) -> None:
        """All claimants were tried in vain, with some of their claims at some of the places."""
        cell = self.cell
        cell.rounds += 1
        self.cells.put(cell)

    def is_live(self, cluster: str) -> bool:
        found = self.clusters.get(f"{Cluster.kind}/{cluster}")
        return found is not None and found.live

    def aside(self, what: str) -> Aside | None:
        return self.asides.get(f"{Aside.kind}/{what}")

    def is_aside(self, what: str) -> bool:
        """Whether something raised an exception, and is worked on no more."""
        return bool(len(self.asides)) and f"{Aside.kind}/{what}" in self.asides

    def is_stuck(self, what: str) -> bool:
        """Whether it raised again although it was set aside: then not even its end is looked at."""
        if not len(self.asides):
            return False
        found = self.aside(what)
        return found is not None and found.stuck

    def stamp(self, cluster: str) -> Stamp:
        """What the next decision is made with. It uses up nothing before `decide` has the decision."""
        cell = self.cell
        return {
            "seq": cell.next_seq,
            "cell": cell.config.cell,
            "cluster": cluster,
            "time_ms": cell.time_ms,
        }

    def about(self, found: TrackedObject) -> StampAbout:
        """The same, for a decision about an object."""
        cell = self.cell
        return {
            "seq": cell.next_seq,
            "cell": cell.config.cell,
            "cluster": found.cluster,
            "time_ms": cell.time_ms,
            "namespace": found.namespace,
            "name": found.name,
            "uid": found.uid,
        }

    def status_about(self, found: TrackedObject) -> StampAbout:
        """What a status is made with. Statuses have no place in the order of decisions, because they may be told
        again or in other words."""
        return {**self.about(found), "seq": 0}

    def decide(self, decision: D) -> D:
        """The only way to have an effect on the world: the next decision in the cell's order, or a status."""
        if decision.seq or not isinstance(decision, Status):
            cell = self.cell
            assert decision.seq == cell.next_seq, f"{decision.id} is not the next decision"
            cell.next_seq += 1
            self.changes[Cell.kind] = cell
        self.decided.append(decision)
        return decision

    def take_decisions(self) -> list[Decision]:
        decided, self.decided = self.decided, []
        return decided

    def pod(self, key: str) -> Pod:
        found = self.pods.get(key)
        assert found is not None, f"{key} is in a book or line, but has no account"
        return found

    def promise_for(self, claim: str) -> Promise | None:
        return self.promises.get(f"{Promise.kind}/{claim}")
