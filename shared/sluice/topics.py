"""Whether Sluice's topics are still those that a service began with."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

from sluice.kafka import LogError, ensure_topics, topic_ids
from sluice.settings import Settings

#: So often a service asks.
INTERVAL_S: Final = 10.0


class TopicsMadeAnewError(LogError):  # type: ignore[misc]
    """What was read of the topics, and how far, is of no account any more."""


async def topics_id(settings: Settings) -> str:
    """Of the two logs together: another one as soon as either was made anew. What is missing is made."""
    return _of_both(settings, await asyncio.to_thread(ensure_topics, settings))


async def standing_topics_id(settings: Settings) -> str:
    """The same for who only reads."""
    return _of_both(settings, await asyncio.to_thread(topic_ids, settings))


def _of_both(settings: Settings, ids: Mapping[str, str]) -> str:
    return f"{ids[settings.events_topic]}/{ids[settings.decisions_topic]}"


async def while_topics_last(known: str, ask: Callable[[], Awaitable[str]]) -> None:
    """Ends with TopicsMadeAnewError. Nobody else would notice: where a new topic has as many records as were read
    of the former one, its reader goes on as if they were the same."""
    while True:
        await asyncio.sleep(INTERVAL_S)
        found = known
        with suppress(LogError):  # while Kafka is away nothing is read either
            found = await ask()
        if found != known:
            raise TopicsMadeAnewError(f"Kafka was made anew: its topics were {known}, and are {found}")
