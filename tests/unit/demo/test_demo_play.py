"""The demo's scenes go on whatever happens."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from sluice_local.demo.api import ApiError
from sluice_local.demo.audit import Account
from sluice_local.demo.observation import Observation
from sluice_local.demo.scenario import BATCH, ETL, ML
from sluice_local.demo.scenes import Simulated


class Nothing:
    """A cluster in which nothing comes of anything."""

    def __init__(self) -> None:
        self.created: list[str] = []
        self.deleted: list[str] = []
        self.broken = False

    def get(self, path: str) -> None:
        if self.broken:
            raise ApiError("GET", path, 500, "out of order")

    def create(self, path: str, manifest: dict[str, Any]) -> None:
        self.created.append(f"{path}/{manifest['metadata']['name']}")

    def merge(self, path: str, part: dict[str, Any]) -> None: ...

    def delete(self, path: str) -> None:
        self.deleted.append(path)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Nothing:
    monkeypatch.setattr(Simulated, "within_s", 0.01)
    return Nothing()


def played(cluster: Nothing) -> Simulated:
    playing = Simulated(cluster, Observation(), Account(), threading.Lock())  # type: ignore[arg-type]
    playing.start()
    playing.join(20)
    return playing


def test_each_tenant_comes_and_what_was_not_seen_is_remembered(cluster: Nothing) -> None:
    playing = played(cluster)
    assert playing.is_over
    assert playing.error is None
    assert cluster.created == [ETL.application_path, ML.application_path, BATCH.application_path]
    assert cluster.deleted == [ML.application_path]
    assert len(playing.unseen) == 7
    for operator in playing.operators:
        operator.join(5)
        assert not operator.is_alive()


def test_the_trouble_of_an_operator_is_told(cluster: Nothing) -> None:
    cluster.broken = True
    playing = Simulated(cluster, Observation(), Account(), threading.Lock())  # type: ignore[arg-type]
    for operator in playing.operators:
        operator.start()
        operator.join(5)
    assert "out of order" in str(playing.error)
