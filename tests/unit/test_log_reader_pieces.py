"""A reader outlives an outage of Kafka, and nothing else that its client complains of."""

from __future__ import annotations

from typing import Any

import pytest
import sluice.kafka
from kafka.errors import KafkaConnectionError, TopicAuthorizationFailedError
from sluice.kafka import LogReader
from sluice.settings import Settings


class Consumer:
    """Kafka's, as far as it is polled: it says what it was told to say."""

    says: list[Any]

    def __init__(self, **_: Any) -> None: ...

    def poll(self, timeout_ms: int) -> dict[Any, Any]:
        said = self.says.pop(0)
        if isinstance(said, Exception):
            raise said
        return dict(said)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> LogReader:
    monkeypatch.setattr(sluice.kafka, "KafkaConsumer", Consumer)
    return LogReader(Settings(), "topic")


async def test_an_outage_is_a_poll_that_brings_nothing(reader: LogReader) -> None:
    Consumer.says = [KafkaConnectionError("111 ECONNREFUSED"), {}]
    assert await reader.poll(0.01) == []
    assert await reader.poll(0.01) == []
    assert Consumer.says == []


async def test_what_trying_again_will_not_change_is_raised(reader: LogReader) -> None:
    Consumer.says = [TopicAuthorizationFailedError("topic")]
    with pytest.raises(TopicAuthorizationFailedError):
        await reader.poll(0.01)


@pytest.mark.parametrize("bounds", [(7, 7), (0, 3), (0, 0)], ids=["deleted", "shorter", "made anew"])
async def test_what_is_gone_before_it_is_read_is_not_waited_for(
    reader: LogReader, monkeypatch: pytest.MonkeyPatch, bounds: tuple[int, int]
) -> None:
    """Nothing comes behind it either, when who would write that waits for it."""

    async def assign(positions: dict[int, int]) -> None:
        assert positions == {0: 3}

    async def there(partition: int) -> tuple[int, int]:
        return bounds

    monkeypatch.setattr(reader, "assign", assign)
    monkeypatch.setattr(reader, "bounds", there)
    Consumer.says = [{}]
    assert [received async for received in reader.between(0, 3, 7)] == []
