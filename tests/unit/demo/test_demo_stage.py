"""The demo's stage in a stack that is empty, or holds something of somebody's."""

from __future__ import annotations

from typing import Any

import pytest
from sluice_local.demo import scenario
from sluice_local.demo.stage import set_stage
from sluice_local.errors import StackError

QUEUES = "/apis/sluice.dev/v1alpha1/queues"
POOLS = "/apis/sluice.dev/v1alpha1/resourcepools"


class Cluster:
    """Objects by path. Sluice binds each namespace and counts each pool's nodes at once."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}

    def get(self, path: str) -> dict[str, Any] | None:
        if path in self.objects:
            return self.objects[path]
        items = [each for at, each in self.objects.items() if at.rpartition("/")[0] == path]
        return {"items": items} if items else None

    def apply(self, path: str, manifest: dict[str, Any]) -> None:
        self.objects[path] = manifest | {"status": {"nodes": scenario.NODES}}
        labels = manifest["metadata"].get("labels", {})
        if manifest["kind"] == "Namespace":
            labels["sluice.dev/queue"] = manifest["metadata"]["name"].removeprefix("demo-")


def staged(cluster: Cluster) -> list[str]:
    said: list[str] = []
    set_stage(cluster, said.append)  # type: ignore[arg-type]
    return said


def test_whose_queues_and_pools_it_stands_beside_is_told_and_they_stay() -> None:
    cluster = Cluster()
    theirs = {f"{QUEUES}/team-a": "Queue", f"{POOLS}/example": "ResourcePool"}
    for path, kind in theirs.items():
        cluster.apply(path, {"kind": kind, "metadata": {"name": path.rpartition("/")[2]}})
    told = staged(cluster)[0]
    assert told.startswith("beside Queue team-a, ResourcePool example, which stay as they are")
    assert cluster.objects.keys() > theirs.keys()


def test_alone_or_beside_what_it_has_left_itself_it_has_nothing_to_tell() -> None:
    cluster = Cluster()
    for _ in range(2):
        assert [words for words in staged(cluster) if words.startswith("beside")] == []


def test_a_name_that_somebody_else_has_is_refused() -> None:
    cluster = Cluster()
    cluster.apply(f"{QUEUES}/etl", {"kind": "Queue", "metadata": {"name": "etl"}})
    with pytest.raises(StackError, match="needs the name etl"):
        staged(cluster)
