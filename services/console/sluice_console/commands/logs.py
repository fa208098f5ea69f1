"""Reading whole logs: what may go wrong with that, told with a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sluice.kafka import LogError
from sluice.programs import START_OR_POINT

from sluice_console.commands import Context
from sluice_console.errors import ConsoleError
from sluice_console.topics import Topics


@contextmanager
def reading(context: Context) -> Iterator[None]:
    """Around a command that reads a cell's topics, which must exist."""
    settings = context.settings
    names = (settings.events_topic, settings.decisions_topic, settings.snapshots_topic)
    with Topics(settings, 0, names):
        pass
    try:
        yield
    except LogError as error:
        raise ConsoleError(
            f"Kafka at {settings.kafka} gives no answer: {error}",
            remedy=START_OR_POINT.format(variable="SLUICE_KAFKA"),
        ) from error
