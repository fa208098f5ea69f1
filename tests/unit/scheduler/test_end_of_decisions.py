"""What a scheduler that takes a cell over makes of the end of the decision log, whatever it finds there."""

from __future__ import annotations

import pytest
from sluice.codec import DECISIONS, EPOCH_HEADER, Headers
from sluice.decisions import Fence
from sluice.kafka import Received
from sluice.settings import Settings
from sluice.values import Epoch
from sluice_scheduler.outbox import Outbox, decided_in, epochs_in

EPOCH = Epoch(1, 7)


def published(seq: int) -> Received:
    decision = Fence(
        seq=seq, time_ms=1, cell="default", cluster="local", reason="Rebuild", sentence="for a test"
    )
    message = DECISIONS.encode(decision, source="test", epoch=EPOCH)
    return Received(partition=0, offset=seq, key=message.key, value=message.value, headers=message.headers)


def foreign(headers: Headers, value: bytes | None = b"{{{") -> Received:
    return Received(partition=0, offset=99, key=None, value=value, headers=headers)


FOREIGN = [
    foreign([]),
    foreign([("ce_type", b"dev.sluice.decision.admit.v99"), (EPOCH_HEADER, b"soon")]),
    foreign([("ce_type", DECISIONS.ce_type("fence").encode()), (EPOCH_HEADER, b"")]),
    foreign([("ce_type", DECISIONS.ce_type("fence").encode())], value=None),
]


@pytest.mark.parametrize("record", FOREIGN)
def test_what_cannot_be_read_does_not_hold_up_the_rest(record: Received) -> None:
    tail = [published(4), record, published(5)]
    assert set(decided_in(tail)) == {4, 5}
    assert epochs_in(tail) == [EPOCH, EPOCH]


def test_an_outbox_begins_behind_what_cannot_be_read() -> None:
    outbox = Outbox(
        log=None,  # type: ignore[arg-type]
        settings=Settings(),
        cell="default",
        published=6,
        waiting=[],
        tail=[published(5), *FOREIGN],
    )
    assert outbox.published == 6
