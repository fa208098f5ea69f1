"""What a step does for applications, counted in looks at accounts: in proportion to what happens, however many pods an
application has."""

from __future__ import annotations

from typing import Any

import pytest
from one_cell import OneCell
from sluice_scheduler.core.stored.tables import Table
from test_pieces_of_work import counted


def one_queue(cpu: int) -> OneCell:
    cell = OneCell()
    cell.pool(cpu=cpu)
    cell.queue("a")
    cell.namespace("a")
    return cell


def test_kinsfolk_are_met_once_however_many_ways_lead_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pod names two of them as what is above it, and these two each other."""
    cell = one_queue(10)
    hubs: Any = {"owner": "pod-x", "workload": "pod-y"}
    for name in ("y", *(f"p{number}" for number in range(100))):
        cell.pod(name, "a", **hubs)
    looked = counted(monkeypatch, Table, "get")
    cell.pod("x", "a", **hubs)
    assert len(looked) < 40 * 100
