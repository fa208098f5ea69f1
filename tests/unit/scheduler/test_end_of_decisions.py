"""What a scheduler that takes a cell over makes of the end of the decision log, whatever it finds there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sluice.codec import DECISIONS, EPOCH_HEADER, Headers
from sluice.decisions import Fence
from sluice.kafka import Received
from sluice.values import Epoch
from sluice_scheduler.ports import OutboxEntry
from sluice_scheduler.published import DivergenceError, Published, epochs_in

EPOCH = Epoch(1, 7)
LATER = Epoch(1, 9)


def published(seq: int, sentence: str = "for a test", *, epoch: Epoch = EPOCH) -> Received:
    decision = Fence(seq=seq, time_ms=1, cell="default", cluster="local", reason="Rebuild", sentence=sentence)
    message = DECISIONS.encode(decision, source="test", epoch=epoch)
    return Received(partition=0, offset=seq, key=message.key, value=message.value, headers=message.headers)


def foreign(headers: Headers, value: bytes | None = b"{{{") -> Received:
    return Received(partition=0, offset=99, key=None, value=value, headers=headers)


FOREIGN = [
    foreign([]),
    foreign([("ce_type", b"dev.sluice.decision.admit.v99"), (EPOCH_HEADER, b"soon")]),
    foreign([("ce_type", DECISIONS.ce_type("fence").encode()), (EPOCH_HEADER, b"")]),
    foreign([("ce_type", DECISIONS.ce_type("fence").encode())], value=None),
]


class Log:
    """What stands in the decisions topic."""

    def __init__(self, records: list[Received]) -> None:
        self._records = [replace(each, offset=offset) for offset, each in enumerate(records)]
        self.read = 0

    async def decisions_tail(self, partition: int, count: int) -> list[Received]:
        return self._records[-count:]

    async def decisions(self, partition: int, first: int, end: int) -> list[Received]:
        self.read += end - first
        return self._records[first:end]


async def found(*records: Received, since: int) -> Published:
    before = Published(Log(list(records)), cell="default", partition=0)  # type: ignore[arg-type]
    await before.epochs()
    await before.find(since=since)
    return before


def entry(record: Received, seq: int) -> OutboxEntry:
    return OutboxEntry(seq=seq, epoch=EPOCH, ce_type="x", value=record.value or b"")


@pytest.mark.parametrize("record", FOREIGN)
async def test_what_cannot_be_read_does_not_hold_up_the_rest(record: Received) -> None:
    tail = [published(4), record, published(5)]
    assert epochs_in(tail) == [EPOCH, EPOCH]
    before = await found(*tail, since=6)
    assert (before.last, before.unused) == (5, 6)


async def test_an_empty_log_holds_nothing() -> None:
    before = await found(since=1)
    assert (before.last, before.unused) == (0, 1)
    assert not await before.holds(entry(published(1), 1))


async def test_nothing_up_to_the_last_one_is_published_again() -> None:
    """What can't be compared any more (retention has eaten it, another version wrote it) was there."""
    before = await found(*FOREIGN, published(3), published(5), since=1)
    assert [await before.holds(entry(published(seq), seq)) for seq in range(1, 8)] == [True] * 5 + [False] * 2


@pytest.mark.parametrize("piece", [2, 3, 100])
async def test_a_piece_at_a_time_is_read_and_compared(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr("sluice_scheduler.published.PIECE", piece)
    records = [published(seq) for seq in range(1, 50)]
    before = await found(*records, since=10)
    for seq in range(10, 50):
        assert await before.holds(entry(records[seq - 1], seq))
        assert len(before._chain.values) <= max(piece, 40)
    assert not await before.holds(entry(published(50), 50))


@pytest.mark.parametrize("piece", [2, 100])
async def test_late_words_of_an_owner_that_was_rebuilt_without_are_void(
    monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    """It had decided 3 to 6; the next one began again at 3, and was interrupted by 4 to 6."""
    monkeypatch.setattr("sluice_scheduler.published.PIECE", piece)
    late = [published(seq, "late") for seq in range(3, 7)]
    mine = [published(seq, "mine", epoch=LATER) for seq in range(3, 6)]
    records = [published(1), published(2), late[0], mine[0], *late[1:], *mine[1:]]
    before = await found(*records, since=1)
    assert (before.last, before.unused >= 6) == (5, True)
    for seq in (1, 2):
        assert await before.holds(entry(published(seq), seq))
    for seq, each in enumerate(mine, 3):
        assert await before.holds(entry(each, seq))
    assert not await before.holds(entry(published(6), 6))


@pytest.mark.parametrize("piece", [2, 100])
async def test_other_bytes_are_a_divergence(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr("sluice_scheduler.published.PIECE", piece)
    before = await found(*(published(seq) for seq in range(1, 10)), since=2)
    assert await before.holds(entry(published(2), 2))
    with pytest.raises(DivergenceError, match="published before was"):
        await before.holds(entry(published(3, "other"), 3))
