"""Which cells a scheduler owns, as Kafka tells it."""

from __future__ import annotations

from typing import Any

from sluice.settings import Settings
from sluice_scheduler.app import Owners


async def test_it_is_ready_when_it_is_told_what_it_owns_though_that_be_nothing() -> None:
    def own(**_: Any) -> Any:
        raise AssertionError("nothing was assigned")

    owners = Owners(Settings(), own)
    assert owners.unready() == "no assignment from Kafka yet"
    await owners.assigned(set())
    assert owners.unready() == ""
