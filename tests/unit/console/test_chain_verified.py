"""Whatever was done to the decisions in the log is named; what owners do to each other is not taken for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from sluice.chain import BEGINNING, PREVIOUS_HEADER, link
from sluice.codec import DECISIONS, EPOCH_HEADER, Message
from sluice.decisions import Admit, Decision, Fence, ReportPool
from sluice.kafka import Received
from sluice.values import Epoch
from sluice_console.chains import Verifier

FIRST, SECOND = Epoch(1, 7), Epoch(1, 9)


def admit(seq: int, queue: str = "a") -> Admit:
    about: dict[str, Any] = {
        "cell": "c",
        "cluster": "k",
        "time_ms": seq,
        "reason": "Fits",
        "sentence": "fits",
    }
    return Admit(seq=seq, name=f"pod-{seq}", uid=f"u{seq}", namespace="a", queue=queue, pool="p", **about)


def fence(seq: int) -> Fence:
    return Fence(seq=seq, cell="c", cluster="k", time_ms=seq, reason="Rebuild", sentence="stop")


def chained(
    decisions: Iterable[Decision], *, epoch: Epoch = FIRST, previous: str = BEGINNING
) -> list[Message]:
    found = []
    for decision in decisions:
        message = DECISIONS.encode(decision, source="test", epoch=epoch, previous=previous)
        found.append(message)
        previous = hash_of(message)
    return found


def hash_of(message: Message) -> str:
    return link(message.header(PREVIOUS_HEADER) or "", message.header("ce_type") or "", message.value)


def verified(log: Iterable[Message], *, first: int = 0, **ledger: Any) -> Verifier:
    verifier = Verifier("c")
    for offset, message in enumerate(log, first):
        verifier.take(
            Received(
                partition=0, offset=offset, key=message.key, value=message.value, headers=message.headers
            )
        )
    verifier.finish()
    if ledger:
        verifier.anchor(**ledger)
    return verifier


def log() -> list[Message]:
    """#1 to #9, with a status among them."""
    about: dict[str, Any] = {
        "cell": "c",
        "cluster": "k",
        "time_ms": 5,
        "reason": "Tick",
        "sentence": "status",
    }
    amounts: dict[str, Any] = {"capacity": {}, "reserved": {}, "unmanaged": {}, "conditions": ()}
    status = ReportPool(seq=0, name="p", uid="p", generation=1, nodes=1, **amounts, **about)
    found = chained([fence(1), *map(admit, range(2, 10))])
    found.insert(5, DECISIONS.encode(status, source="test", epoch=FIRST))
    return found


def whole(found: list[Message]) -> dict[str, Any]:
    return {"published": 10, "next_seq": 10, "chain": hash_of(found[-1])}


def edited(message: Message, **changes: Any) -> Message:
    decision = DECISIONS.decode(message.headers, message.value)
    return replace(message, value=DECISIONS.value(replace(decision, **changes)))


def with_header(message: Message, name: str, value: bytes | None) -> Message:
    kept = [each for each in message.headers if each[0] != name]
    return replace(message, headers=kept if value is None else [*kept, (name, value)])


def test_a_log_as_it_was_written_is_in_order() -> None:
    found = verified(log(), **whole(log()))
    assert found.findings == []
    assert (found.decisions, found.statuses, found.seq, found.hash) == (9, 1, 9, hash_of(log()[-1]))


def edit(found: list[Message]) -> None:
    found[3] = edited(found[3], queue="mine")


def edit_the_last(found: list[Message]) -> None:
    found[-1] = edited(found[-1], queue="mine")


def edit_and_mend(found: list[Message]) -> None:
    """All hashes behind it are made anew."""
    decisions = [DECISIONS.decode(each.headers, each.value) for each in found]
    decisions = [each for each in decisions if each.seq]
    found[:] = chained([*decisions[:3], replace(decisions[3], reason="Bribed"), *decisions[4:]])


def drop(found: list[Message]) -> None:
    del found[3]


def drop_two(found: list[Message]) -> None:
    del found[2:4]


def drop_the_first(found: list[Message]) -> None:
    del found[0]


def drop_the_last_two(found: list[Message]) -> None:
    del found[-2:]


def double(found: list[Message]) -> None:
    found.insert(8, found[3])


def double_at_once(found: list[Message]) -> None:
    found.insert(4, found[3])


def double_the_last(found: list[Message]) -> None:
    found.append(found[-1])


def swap(found: list[Message]) -> None:
    found[3], found[4] = found[4], found[3]


def move_back(found: list[Message]) -> None:
    found.append(found.pop(3))


def forge(found: list[Message]) -> None:
    """A second one behind the first, which would have been as good."""
    found.insert(4, chained([admit(4, "mine")], previous=hash_of(found[2]))[0])


def edit_a_hash(found: list[Message]) -> None:
    found[3] = with_header(found[3], PREVIOUS_HEADER, b"f" * 64)


def take_a_hash(found: list[Message]) -> None:
    found[3] = with_header(found[3], PREVIOUS_HEADER, None)


def take_the_first_hashes(found: list[Message]) -> None:
    for at in range(3):
        found[at] = with_header(found[at], PREVIOUS_HEADER, None)


def edit_a_header(found: list[Message]) -> None:
    found[3] = with_header(found[3], "ce_subject", b"pod/a/another")


def break_one(found: list[Message]) -> None:
    found[3] = replace(found[3], value=b"{")


def give_to_another_cell(found: list[Message]) -> None:
    found[3] = edited(found[3], cell="d")


@pytest.mark.parametrize(
    ("tamper", "named"),
    [
        (edit, ["#4 was edited: it is not the one whose hash #5 carries"]),
        (edit_the_last, ["the chain ends in another hash than the ledger's: #9 was edited, or"]),
        (edit_and_mend, ["the chain ends in another hash than the ledger's"]),
        (drop, ["#4 is missing: #5 follows #3"]),
        (drop_two, ["#3 is missing: #5 follows #2", "#4 is missing: #5 follows #2"]),
        (drop_the_first, ["decisions before #2 are missing"]),
        (drop_the_last_two, ["#8 to #9 are missing at the end: the ledger has published them"]),
        (double, ["#4 stands twice: again at offset 8"]),
        (double_at_once, ["#4 stands twice: again at offset 4"]),
        (double_the_last, ["#9 stands twice: again at offset 10"]),
        (swap, ["#4 is out of order: it stands behind #5"]),
        (move_back, ["#4 is out of order: it stands behind #9"]),
        (forge, ["a second #4, with other bytes"]),
        (edit_a_hash, ["#4 carries an edited hash"]),
        (take_a_hash, ["#4 has lost the hash that it carried"]),
        (take_the_first_hashes, ["decisions before #4 have lost the hashes that they carried"]),
        (edit_a_header, ["#4 was edited: ce_subject and its record differ"]),
        (break_one, ["a record that can't be read", "#4 is missing: #5 follows #3"]),
        (give_to_another_cell, ["a record of cell d", "#4 is missing: #5 follows #3"]),
    ],
)
def test_what_was_tampered_with_is_named(tamper: Callable[[list[Message]], None], named: list[str]) -> None:
    found = log()
    ledger = whole(found)
    tamper(found)
    told = [finding.what for finding in verified(found, **ledger).findings]
    assert len(told) == len(named), told
    for sentence, expected in zip(told, named, strict=True):
        assert expected in sentence


# ---- what owners do to each other


def test_a_log_that_retention_has_begun_to_eat_is_in_order() -> None:
    found = log()
    assert verified(found[4:], first=4, **whole(found)).findings == []


def test_numbers_that_a_fence_passes_over_were_never_published() -> None:
    found = log()
    found += chained([fence(13), admit(14)], epoch=SECOND, previous=hash_of(found[-1]))
    told = verified(found)
    assert (told.findings, told.passed_over, told.decisions) == ([], 3, 11)


def test_numbers_that_anything_else_passes_over_are_wrong() -> None:
    found = log()
    found += chained([admit(13)], epoch=SECOND, previous=hash_of(found[-1]))
    assert [each.what for each in verified(found).findings] == ["#13 follows #9: the number is wrong"]


def test_what_an_owner_was_still_publishing_when_the_next_one_rebuilt_counts_for_nobody() -> None:
    found = log()
    late = chained([admit(10), admit(11)], previous=hash_of(found[-1]))
    mine = chained([fence(12), admit(13)], epoch=SECOND, previous=hash_of(found[-1]))
    told = verified([*found, *late, *mine])
    assert (told.findings, len(told.late), told.decisions, told.seq) == ([], 2, 11, 13)
    told = verified([*found, *mine, *late])
    assert (told.findings, len(told.late), told.decisions, told.seq) == ([], 2, 11, 13)


@pytest.mark.parametrize("behind", [True, False])
def test_what_both_an_owner_and_its_successor_published_is_late(behind: bool) -> None:
    found = log()
    more = chained([admit(10)], epoch=SECOND, previous=hash_of(found[-1]))
    log_of_both = [*found, *more, *found[-2:]] if behind else [*found, *found[-2:], *more]
    told = verified(log_of_both)
    assert (told.findings, len(told.late), told.decisions) == ([], 2, 10)
    assert [each.seq for each in told.late] == [8, 9]


def test_a_chain_begins_behind_decisions_of_a_version_without() -> None:
    before = [with_header(each, PREVIOUS_HEADER, None) for each in log()]
    found = [*before, *chained([fence(10), admit(11)], epoch=SECOND)]
    told = verified(found)
    assert (told.findings, told.unchained, told.decisions) == ([], 9, 2)


def test_an_epoch_that_nobody_had_makes_a_hole() -> None:
    found = log()
    found[3] = with_header(found[3], EPOCH_HEADER, b"1-1")
    assert [each.what for each in verified(found).findings] == ["#4 is missing: #5 follows #3"]
