"""A bug report written again with pseudonyms: events and snapshot have other names, and decisions are decided anew."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from sluice.beginnings import Beginning, find_beginning
from sluice.bugreport import FileRecords, Log, write
from sluice.chain import BEGINNING, link
from sluice.codec import DECISIONS, EPOCH_HEADER, EVENTS, Message, UnreadableRecordError, find_header
from sluice.decisions import Decision
from sluice.events import Event
from sluice.kafka import Received
from sluice.snapshots import Part
from sluice.values import Epoch

from sluice_scheduler.core.fairness.policies import Policy
from sluice_scheduler.core.stored.entities import Report
from sluice_scheduler.ledger.entities import dump
from sluice_scheduler.ports import SCHEMA
from sluice_scheduler.replay.pseudonyms import Names
from sluice_scheduler.replay.run import Comparison, Player
from sluice_scheduler.snapshots import entities_of

_SOURCE: Final = "sluice/pseudonyms"


class PseudonymsError(Exception):
    """The file with pseudonyms would tell another story."""


async def write_anew(records: FileRecords, policies: Mapping[str, Policy], path: Path) -> None:
    """PseudonymsError, and no file, unless the core decides the same with both kinds of names."""
    header = records.header
    first, _ = await records.bounds(header.partition)
    beginning = await find_beginning(records, header.cell, header.partition, first, schema=SCHEMA)
    about: dict[str, Any] = {"cell": header.cell, "partition": header.partition, "policies": policies}
    found = Comparison(Player(records, beginning=beginning, **about))
    await found.run()
    if found.difference is not None:
        raise PseudonymsError(f"its own decisions are not what the core decides: {found.difference.what}")
    names = Names()
    events = await _events(records)
    for event in events.values():
        if event is not None:
            names.learn(event)
    for entity in entities_of(beginning.snapshot) if beginning.snapshot else ():
        names.learn(entity)
    names.settle()
    replaced = [*_snapshot(beginning, names, header.cell), *_replaced(events, names)]
    again = FileRecords(replace(header, pseudonyms=True), replaced)
    begins = await find_beginning(again, header.cell, header.partition, first, schema=SCHEMA)
    decided = await _decided(Player(again, beginning=begins, **about))
    _compare(await _decided(Player(records, beginning=beginning, **about)), decided, names)
    published = await _published(records, decided[: len(decided) - found.unpublished])
    await write(path, again.header, _each([*replaced, *published]))


async def _events(records: FileRecords) -> dict[int, Event | None]:
    """By offset; None for what can't be read."""
    found: dict[int, Event | None] = {}
    for received in await records.events(0, *await records.bounds(0)):
        found[received.offset] = None
        with suppress(UnreadableRecordError):
            found[received.offset] = EVENTS.decode(received.headers, received.value)
    return found


def _replaced(events: Mapping[int, Event | None], names: Names) -> Iterator[tuple[Log, Received]]:
    unreadable = Message(key=b"", value=b"", headers=[])
    for offset, event in events.items():
        message = EVENTS.encode(names.replaced(event), source=_SOURCE) if event else unreadable
        yield "event", _as_received(offset, message)


def _snapshot(beginning: Beginning, names: Names, cell: str) -> Iterator[tuple[Log, Received]]:
    """Without what people were last shown: nothing is decided by that."""
    if beginning.snapshot is None:
        return
    entities = [names.replaced(each) for each in entities_of(beginning.snapshot) if each.kind != Report.kind]
    rows = {entity.key: dump(entity) for entity in entities}
    standing = beginning.snapshot.standing
    yield (
        "snapshot",
        _as_received(0, Part(cell=cell, snapshot=_SOURCE, number=0, rows=rows, standing=standing).message()),
    )


async def _decided(player: Player) -> list[Decision]:
    return [each async for played in player.play(None) for each in played.decisions if each.seq]


def _compare(before: list[Decision], again: list[Decision], names: Names) -> None:
    for one, other in zip_longest(before, again):
        alike = one and other and replace(names.replaced(one), sentence=other.sentence) == other
        if not alike:
            seq = one.seq if one else other.seq if other else 0
            raise PseudonymsError(
                f"with pseudonyms decision #{seq} would be another: the file was not written"
            )


async def _published(records: FileRecords, decided: list[Decision]) -> list[tuple[Log, Received]]:
    """As the log held them, under their epochs and at their offsets; statuses are left out."""
    places: dict[int, tuple[int, Epoch]] = {}
    for received in await records.decisions(0, *await records.decision_bounds(0)):
        with suppress(UnreadableRecordError, ValueError):
            seq = DECISIONS.decode(received.headers, received.value).seq
            places[seq] = received.offset, Epoch.parse(find_header(received.headers, EPOCH_HEADER) or "")
    found: list[tuple[Log, Received]] = []
    previous = BEGINNING
    for decision in decided:
        if decision.seq in places:
            offset, epoch = places[decision.seq]
            message = DECISIONS.encode(decision, source=_SOURCE, epoch=epoch, previous=previous)
            found.append(("decision", _as_received(offset, message)))
            previous = link(previous, DECISIONS.ce_type(decision.type), message.value)
    return found


def _as_received(offset: int, message: Message) -> Received:
    return Received(partition=0, offset=offset, key=message.key, value=message.value, headers=message.headers)


async def _each(records: list[tuple[Log, Received]]) -> AsyncIterator[tuple[Log, Received]]:
    for each in records:
        yield each
