"""Ledgers as the console finds them: entities with only what a test is about filled in."""

from __future__ import annotations

from typing import Any

from sluice.values import Epoch
from sluice_console.redis_reader import Entity, Position, Snapshot

NOW_MS = 1_750_000_000_000


def queue(name: str, *, cluster: str = "home", **facts: Any) -> Entity:
    spec = {
        "cell": "",
        "parent": "",
        "weight": 1,
        "guaranteed": {},
        "limit": {},
        "guaranteed_by_pool": {},
        "limit_by_pool": {},
        "namespaces": {"names": [], "requirements": []},
        "ordering": "bestEffortFifo",
        "preemption": "never",
        "reclaim": True,
        "grace_ms": 0,
        "minimum_run_ms": 0,
        "tenure_ms": None,
        "patience_ms": None,
        "reserves": True,
        "start_deadline_ms": None,
        "policy": "",
        "generation": 1,
        "problem": "",
    }
    return {"name": name, "cluster": cluster, "facts": spec | facts}


def condition(kind: str, *, problem: str = "", status: str = "True") -> dict[str, Any]:
    return {
        "type": kind,
        "status": status,
        "reason": "Problem" if problem else "AsExpected",
        "message": problem,
        "since_ms": NOW_MS,
    }


def report(name: str, *conditions: Entity, **figures: Any) -> dict[str, Any]:
    all_figures = {
        "generation": 1,
        "usage": {},
        "demand": {},
        "fair_share": {},
        "dominant_share": "0.0000",
        "dominant_resource": "",
        "pending": 0,
        "running": 0,
    }
    return {"about": f"queue/{name}", "figures": all_figures | figures, "conditions": list(conditions)}


def pool_report(name: str, **capacity: int) -> Entity:
    return {"about": f"resourcepool/{name}", "figures": {"capacity": capacity}, "conditions": []}


def cluster(name: str = "home", **fields: Any) -> Entity:
    return {"name": name, "fence": 1, "resync": 2, "synced": [], "live": True} | fields


def snapshot(
    *entities: tuple[str, Entity],
    cell: str = "default",
    next_offset: int = 10,
    next_seq: int = 5,
    published: int = 5,
) -> Snapshot:
    times = {"tenure_ms": 3_600_000, "patience_ms": 300_000, "start_deadline_ms": 600_000}
    config = {"cell": cell, "clusters": ["home"], "policy": "drf", **times}
    about = {"config": config, "time_ms": NOW_MS}
    by_kind: dict[str, tuple[Entity, ...]] = {"cell": (about,)}
    for kind, entity in entities:
        by_kind[kind] = (*by_kind.get(kind, ()), entity)
    position = Position(
        epoch=Epoch(1, 42), next_offset=next_offset, next_seq=next_seq, published=published, chain=""
    )
    return Snapshot(cell=cell, position=position, entities=by_kind)
