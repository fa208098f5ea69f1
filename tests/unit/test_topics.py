"""A service begins anew when its topics were made anew, and does not mind that Kafka is away."""

from __future__ import annotations

import pytest
from kafka.errors import KafkaTimeoutError
from sluice import topics
from sluice.topics import TopicsMadeAnewError, while_topics_last


async def test_other_topics_are_noticed_and_an_outage_is_borne(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "INTERVAL_S", 0.0)
    answers: list[str | Exception] = ["1/2", KafkaTimeoutError("away"), "1/2", "1/3"]

    async def ask() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(TopicsMadeAnewError, match="its topics were 1/2, and are 1/3"):
        await while_topics_last("1/2", ask)
    assert answers == []
