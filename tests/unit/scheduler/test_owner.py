"""One cell's owner between a fake log, a fake feed and a ledger in memory."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from typing import Any

import pytest
from fakes.owned_cell import SETTINGS, OwnedCell, until
from kafka.errors import KafkaError
from sluice.codec import EVENTS, Message
from sluice.events import ConfigEvent, SetAsideEvent
from sluice.kafka import DEAD_LETTER_PREFIX
from sluice.topics import TopicsMadeAnewError
from sluice.values import Epoch
from sluice_scheduler import owner, published, quarantine
from sluice_scheduler.core.passes import schedule
from sluice_scheduler.ledger import SCHEMA, Commit, FencedError, LedgerError
from sluice_scheduler.ledger.memory import MemoryLedger
from sluice_scheduler.published import DivergenceError


@pytest.fixture
async def cell() -> OwnedCell:
    """It is open, ten pods are admitted, and nobody owns it."""
    cell = OwnedCell()
    async with cell.owned():
        await cell.open()
        cell.pods(0, 10)
        await until(lambda: cell.admitted == 10)
        await cell.settled()
    return cell


# ---- taking over


async def test_a_first_owner_rebuilds_and_admits(cell: OwnedCell) -> None:
    assert cell.rebuilds == ["the ledger is empty"]
    assert cell.seqs == list(range(1, 13))
    assert cell.feed.acknowledged == list(range(cell.read))


async def test_the_next_owner_goes_on_where_the_last_one_was(cell: OwnedCell) -> None:
    async with cell.owned() as taken:
        await until(lambda: not taken.missing)
        cell.pods(10, 20)
        await until(lambda: cell.admitted == 20)
        assert cell.topics.closed
    assert cell.seqs == list(range(1, 23))
    assert len(cell.rebuilds) == 1


async def test_what_was_committed_and_not_published_is_published_first(cell: OwnedCell) -> None:
    cell.topics.log.hold()
    async with cell.owned():
        cell.pods(10, 20)
        await until(lambda: cell.read == len(cell.topics.log.messages[SETTINGS.events_topic, 0]))
    cell.topics.log.release()
    assert cell.admitted == 10
    async with cell.owned():
        cell.pods(20, 21)
        await until(lambda: cell.admitted == 21)
    assert cell.seqs == list(range(1, 24))


async def test_other_settings_enter_through_the_log(cell: OwnedCell) -> None:
    other = SETTINGS.model_copy(update={"policy": "fifo"})
    async with cell.owned(settings=other):
        await until(lambda: isinstance(cell.topics.log.events(SETTINGS.events_topic)[-1], ConfigEvent))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda cell: setattr(cell.topics, "id", "made anew"), "Kafka was made anew"),
        (lambda cell: setattr(cell.lease, "cluster_uid", "moon"), "the home cluster is another one"),
        (
            lambda cell: cell.topics.begins.update({SETTINGS.events_topic: 10**6}),
            "the log holds offsets 1000000 to",
        ),
    ],
)
async def test_a_ledger_that_does_not_fit_the_world_is_rebuilt(
    cell: OwnedCell, change: Any, why: str
) -> None:
    change(cell)
    async with cell.owned():
        await until(lambda: len(cell.rebuilds) == 2)
    assert cell.rebuilds[1].startswith(why)


async def test_who_finds_other_topics_ends_for_its_feed_holds_records_of_the_former_ones(
    cell: OwnedCell,
) -> None:
    """What it has set aside, by offset, says nothing there either."""
    owner = cell.owner()
    task = asyncio.create_task(owner.run())
    await until(lambda: not owner.missing)
    cell.topics.id = "made anew"
    cell.topics.log.failure = KafkaError("there is no such topic")
    cell.pods(10, 11)
    await until(lambda: "no such topic" in owner.missing)
    cell.topics.log.failure = None
    with pytest.raises(ExceptionGroup) as ended:
        await task
    assert ended.value.subgroup(TopicsMadeAnewError)
    assert cell.rebuilds[1:] == ["Kafka was made anew"]
    async with cell.owned() as other:
        await until(lambda: not other.missing)
    assert len(cell.rebuilds) == 2


async def test_who_began_to_read_other_topics_steps_nothing_of_them(cell: OwnedCell) -> None:
    """Its feed holds a record of the former topic at the offset at which the ledger begins in the new one."""
    cell.topics.id = "made anew"
    read = cell.read
    with pytest.raises(ExceptionGroup) as ended:
        await cell.owner(topics="made first").run()
    assert ended.value.subgroup(TopicsMadeAnewError)
    assert cell.rebuilds[1:] == ["Kafka was made anew"]
    assert cell.read == read, "the next owner steps the REBUILD first"


@pytest.mark.parametrize("first", ["nobody can read it", "it sets something aside"])
async def test_whatever_the_first_record_is_the_owner_goes_on(cell: OwnedCell, first: str) -> None:
    """What is derived was derived by records that are stepped alone."""
    if first == "nobody can read it":
        cell.topics.tell([Message(key=b"", value=b"?", headers=[])])
    else:
        cell.tell(SetAsideEvent(offset=0, what="pod/x", reason="", time_ms=1, cluster=SETTINGS.cluster))
    async with cell.owned() as taken:
        await cell.settled()
        cell.pods(10, 11)
        await until(lambda: cell.admitted == 11)
        assert not taken.missing
    assert cell.seqs == list(range(1, 14))


# ---- the log and the feed


async def test_a_hole_is_read_from_the_log_in_pieces(
    cell: OwnedCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is committed before the next is read, however long it is."""
    monkeypatch.setattr(owner, "BATCH_MAX", 20)
    monkeypatch.setattr(quarantine, "PIECE", 20)
    held: list[int] = []
    write = cell.ledger.write

    def counted(name: str, commit: Commit) -> None:
        held.append(commit.next_offset - commit.expected_offset)
        write(name, commit)

    monkeypatch.setattr(cell.ledger, "write", counted)
    cell.pods(10, 1_010)
    cell.feed.at += 995
    async with cell.owned():
        await until(lambda: cell.admitted == 1_010)
    assert cell.topics.most_read == 20
    assert max(held) == 20
    assert cell.seqs == list(range(1, 1_013))


async def test_holes_within_a_batch_are_read_too(cell: OwnedCell) -> None:
    cell.pods(10, 40)
    taken = cell.feed.take

    async def with_holes(most: int) -> Any:
        batch = await taken(most)
        return [incoming for incoming in batch if incoming.received.offset % 5 == 0] or batch[-1:]

    cell.feed.take = with_holes  # type: ignore[method-assign]
    async with cell.owned():
        await until(lambda: cell.admitted >= 35)
        cell.pods(40, 41)
        await until(lambda: cell.admitted == 41)
    assert cell.seqs == list(range(1, 44))


async def test_what_was_read_before_is_skipped_and_acknowledged(cell: OwnedCell) -> None:
    cell.feed.at = 0
    cell.feed.acknowledged.clear()
    cell.pods(10, 11)
    async with cell.owned():
        await until(lambda: cell.admitted == 11)
        await until(lambda: len(cell.feed.acknowledged) == cell.read)
    assert cell.feed.acknowledged == list(range(cell.read))
    assert cell.seqs == list(range(1, 14))


async def test_a_hole_that_the_log_has_lost_ends_in_a_rebuild(cell: OwnedCell) -> None:
    cell.pods(10, 20)
    at = cell.read
    cell.feed.at += 5
    taken = cell.feed.take

    async def late(most: int) -> Any:
        batch = await taken(most)
        cell.topics.begins[SETTINGS.events_topic] = at + 3  # retention was faster
        return batch

    cell.feed.take = late  # type: ignore[method-assign]
    async with cell.owned():
        await until(lambda: len(cell.rebuilds) == 2)
    assert cell.rebuilds[1].startswith(f"the log holds offsets {at + 3}")


async def test_what_cannot_be_read_is_set_aside_and_the_rest_goes_on(cell: OwnedCell) -> None:
    garbage = Message(key=b"k", value=b"{{{", headers=[("ce_type", EVENTS.ce_type("pod").encode())])
    cell.topics.log.messages[SETTINGS.events_topic, 0].append(garbage)
    cell.pods(10, 11)
    async with cell.owned():
        await until(lambda: cell.admitted == 11)
    [letter] = cell.topics.log.messages[DEAD_LETTER_PREFIX + SETTINGS.events_topic, 0]
    assert letter.value == b"{{{"


# ---- what fails


async def test_an_owner_that_is_fenced_off_changes_nothing_and_ends(cell: OwnedCell) -> None:
    fenced = cell.owner()
    task = asyncio.create_task(fenced.run())
    await until(lambda: not fenced.missing)
    await cell.ledger.acquire("default", Epoch(9, 9))
    before = cell.backup()
    cell.pods(10, 11)
    with pytest.raises(ExceptionGroup) as ending:
        await asyncio.wait_for(task, 10)
    assert ending.group_contains(FencedError)
    assert cell.admitted == 10
    assert cell.ledger._cells == before._cells


@pytest.mark.parametrize("error", [LedgerError("Redis: away"), KafkaError("away"), OSError("away")])
async def test_what_comes_of_an_outage_is_that_it_starts_over(
    cell: OwnedCell, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    write, away = cell.ledger.write, True

    def refuse(name: str, commit: Commit) -> None:
        if away:
            raise error
        write(name, commit)

    monkeypatch.setattr(cell.ledger, "write", refuse)
    async with cell.owned() as taken:
        for times in range(1, 4):
            cell.pods(9 + times, 10 + times)
            await until(lambda times=times: cell.clock.pauses_s.count(owner.PAUSE_S) == times)
        assert cell.admitted == 10
        away = False
        cell.pods(13, 14)
        await until(lambda: cell.admitted == 14)
        assert taken.missing == ""
    assert cell.seqs == list(range(1, 17))


async def test_silence_is_told_of(cell: OwnedCell) -> None:
    async with cell.owned() as taken:
        await until(lambda: not taken.missing)
        await cell.clock.sleep(owner.SILENT_S + 1)
        assert "nothing was read for" in taken.missing


async def test_other_bytes_under_a_seq_that_was_published_are_a_divergence(cell: OwnedCell) -> None:
    """A published decision that the ledger, set back, does not come to again."""
    backup = cell.backup()
    async with cell.owned():
        cell.pods(10, 20)
        await until(lambda: cell.admitted == 20)
    message = cell.published[-3]
    cell.published[-3] = replace(message, value=message.value.replace(b"pod-17", b"pod-71"))
    cell.ledger = backup
    cell.pods(20, 21)
    with pytest.raises(ExceptionGroup) as ending:
        await asyncio.wait_for(cell.owner().run(), 10)
    assert ending.group_contains(DivergenceError)


# ---- a ledger that came back older


async def set_back(cell: OwnedCell, count: int) -> list[Message]:
    """Redis loses what came of `count` pods; what was published until then."""
    backup = cell.backup()
    async with cell.owned():
        cell.pods(10, 10 + count)
        await until(lambda: cell.admitted == 10 + count)
        await cell.settled()
    cell.ledger = backup
    return list(cell.published)


@pytest.mark.parametrize("piece", [5, 50, published.PIECE])
async def test_what_was_published_is_decided_again_and_published_no_second_time(
    cell: OwnedCell, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    """Be it further back than the end of the decisions that is read at first."""
    before = await set_back(cell, 300)
    monkeypatch.setattr(published, "PIECE", piece)
    async with cell.owned():
        cell.pods(310, 320)
        await until(lambda: cell.admitted == 320)
        await cell.settled()
    assert cell.published[: len(before)] == before
    assert cell.seqs == list(range(1, 323))
    assert cell.rebuilds == ["the ledger is empty"]
    assert cell.topics.most_read <= max(piece, owner.BATCH_MAX)


async def test_a_divergence_is_found_further_back_than_the_end_that_is_read_first(
    cell: OwnedCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    await set_back(cell, 300)
    monkeypatch.setattr(published, "PIECE", 20)
    message = cell.published[30]
    cell.published[30] = replace(message, value=message.value.replace(b"pod-", b"dop-"))
    cell.pods(310, 311)
    with pytest.raises(ExceptionGroup) as ending:
        await asyncio.wait_for(cell.owner().run(), 10)
    assert ending.group_contains(DivergenceError)


async def test_what_has_no_place_in_the_sequence_is_no_part_of_the_comparison(
    cell: OwnedCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statuses, and what cannot be read, stand between the decisions, and at the end in great number."""
    before = await set_back(cell, 100)
    status = replace(before[0], value=before[0].value.replace(b'"seq":1,', b'"seq":0,'))
    foreign = Message(key=b"k", value=b"{{{", headers=[])
    cell.published.insert(40, status)
    cell.published.insert(60, foreign)
    cell.published.extend([status, foreign] * 50)
    count = len(cell.published)
    monkeypatch.setattr(published, "PIECE", 10)
    async with cell.owned():
        cell.pods(110, 120)
        await until(lambda: cell.read == len(cell.topics.log.messages[SETTINGS.events_topic, 0]))
        await until(lambda: len(cell.published) == count + 10)
    assert cell.rebuilds == ["the ledger is empty"]


async def test_only_if_the_events_are_gone_is_it_a_rebuild(cell: OwnedCell) -> None:
    await set_back(cell, 100)
    cell.topics.begins[SETTINGS.events_topic] = cell.read + 1
    cell.feed.at = len(cell.topics.log.messages[SETTINGS.events_topic, 0])
    async with cell.owned():
        await until(lambda: cell.seqs[-1] == 113)
    assert cell.seqs == list(range(1, 114))
    assert len(cell.rebuilds) == 2


async def test_seq_goes_on_from_decisions_that_lie_far_behind_statuses(
    cell: OwnedCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis is lost, and nothing but statuses was published lately."""
    message = cell.published[0]
    status = replace(message, value=message.value.replace(b'"seq":1,', b'"seq":0,'))
    cell.published.extend([status] * 50)
    cell.ledger = MemoryLedger()
    monkeypatch.setattr(published, "PIECE", 10)
    async with cell.owned():
        await until(lambda: cell.seqs[-1] == 13)


# ---- a ledger of another version


async def test_a_ledger_of_an_older_version_is_rebuilt(cell: OwnedCell) -> None:
    held = cell.ledger._cells["default"]
    held.meta = replace(held.meta, schema=SCHEMA - 1)
    async with cell.owned():
        await until(lambda: cell.seqs[-1] == 13)
    assert "of an older version" in cell.rebuilds[1]


async def test_a_ledger_with_what_nobody_knows_is_rebuilt_and_says_why(cell: OwnedCell) -> None:
    cell.ledger._cells["default"].state["comet/local/1"] = b"{}"
    async with cell.owned() as taken:
        await until(lambda: cell.seqs[-1] == 13)
        assert taken.missing == ""
    assert "comet/local/1, of a kind that this version does not know" in cell.rebuilds[1]


async def test_a_ledger_of_a_newer_version_is_left_alone_until_it_can_be_read(cell: OwnedCell) -> None:
    held = cell.ledger._cells["default"]
    held.meta = replace(held.meta, schema=SCHEMA + 1)
    before = cell.backup()
    async with cell.owned() as taken:
        await until(lambda: cell.clock.pauses_s.count(owner.REFUSED_PAUSE_S) > 3)
        assert "written by a newer scheduler" in taken.missing
        assert "Run the newer version again" in taken.missing
        assert cell.ledger._cells == before._cells
        assert len(cell.rebuilds) == 1
        held.meta = replace(held.meta, schema=SCHEMA)
        cell.pods(10, 11)
        await until(lambda: cell.admitted == 11)


# ---- what raises an exception


@pytest.mark.parametrize("where", ["open_gate", "admit"])
async def test_a_pod_that_raises_is_set_aside_and_everybody_else_goes_on(
    cell: OwnedCell, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    poison(monkeypatch, where)
    async with cell.owned() as taken:
        cell.pods(10, 20)
        await until(lambda: cell.admitted == 19)
        await cell.settled()
        assert not taken.missing
    told = [e for e in cell.topics.log.events(SETTINGS.events_topic) if isinstance(e, SetAsideEvent)]
    assert {event.what.rpartition("/")[2] for event in told} == {"pod-pod-13"}
    assert "ZeroDivisionError" in told[0].reason
    before = cell.decisions
    async with cell.owned():  # a restart changes nothing
        cell.pods(20, 22)
        await until(lambda: cell.admitted == 21)
    assert cell.decisions[: len(before)] == before


async def test_what_was_set_aside_is_so_again_when_the_ledger_came_back_older(
    cell: OwnedCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though nothing raises this time, the same is decided: the log says what was set aside, and where."""
    backup = cell.backup()
    with monkeypatch.context() as patch:
        poison(patch, "open_gate")
        async with cell.owned():
            cell.pods(10, 20)
            await until(lambda: cell.admitted == 19)
            await cell.settled()
    before = list(cell.published)
    cell.ledger = backup
    async with cell.owned() as taken:
        cell.pods(20, 21)
        await until(lambda: cell.admitted == 20)
        assert not taken.missing
    assert cell.published[: len(before)] == before


async def test_what_raises_once_is_stepped_once_more(
    cell: OwnedCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_gate = schedule.open_gate
    raised: list[bool] = []

    def raising(*args: Any, **named: Any) -> None:
        if not raised:
            raised.append(True)
            raise MemoryError("just now")
        open_gate(*args, **named)

    monkeypatch.setattr(schedule, "open_gate", raising)
    async with cell.owned():
        cell.pods(10, 20)
        await until(lambda: cell.admitted == 20)
    log = cell.topics.log.events(SETTINGS.events_topic)
    assert not any(isinstance(event, SetAsideEvent) for event in log)


async def test_a_record_that_raises_whatever_is_set_aside_is_passed_over(
    cell: OwnedCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    step_module = sys.modules["sluice_scheduler.core.step"]
    on_object = step_module.on_object

    def raising(state: Any, event: Any) -> None:
        if event.uid == "pod-pod-13":
            raise ValueError("nobody to blame")
        on_object(state, event)

    monkeypatch.setattr(step_module, "on_object", raising)
    async with cell.owned() as taken:
        cell.pods(10, 20)
        await until(lambda: cell.admitted == 19)
        await cell.settled()
        assert not taken.missing


def poison(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Whatever admits the fourteenth pod divides by nothing."""
    function = getattr(schedule, where)

    def raising(state: Any, what: Any, *args: Any, **named: Any) -> None:
        claim = args[0] if where == "admit" else what
        if claim.key.endswith("pod-pod-13"):
            raise ZeroDivisionError("poison")
        function(state, what, *args, **named)

    monkeypatch.setattr(schedule, where, raising)
