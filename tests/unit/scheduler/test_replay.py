"""A replay begins where it is told to, and comes to what the owner came to."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes.owned_cell import SETTINGS, OwnedCell, until
from kafka.errors import KafkaError, KafkaTimeoutError
from sluice.beginnings import Beginning, NoBeginningError, find_beginning
from sluice.bugreport import FileRecords, Header, Log, write
from sluice.codec import DECISIONS, Message
from sluice.events import PodEvent, PodFacts, TickEvent
from sluice.kafka import Received
from sluice.places import Place, Time, Where
from sluice.records import KafkaRecords
from sluice.snapshots import Part
from sluice_scheduler.core.passes import schedule
from sluice_scheduler.explain import main as explain
from sluice_scheduler.installed import installed_policies
from sluice_scheduler.ledger.entities import dump
from sluice_scheduler.ports import SCHEMA
from sluice_scheduler.replay.main import main
from sluice_scheduler.replay.run import Comparison, HoleError, Player

EACH_30 = SETTINGS.model_copy(update={"snapshot_records": 30, "snapshot_minutes": 0})
#: As the fake clock has it.
BEGAN_MS = 1_000_000
NEVER = SETTINGS.model_copy(update={"snapshot_records": 0, "snapshot_minutes": 0})


async def lived(settings: Any = EACH_30) -> OwnedCell:
    """Its first owner rebuilds it; the second one goes on; both admit, with ticks that show the time."""
    cell = OwnedCell(settings)
    async with cell.owned():
        await cell.open()
        await passes(cell, 0, 50)
    async with cell.owned() as owner:
        await until(lambda: not owner.missing)
        await passes(cell, 50, 100)
    return cell


async def passes(cell: OwnedCell, first: int, end: int) -> None:
    for number in range(first, end, 10):
        at_ms = BEGAN_MS + 1_000 * number
        for each in range(number, number + 10):
            pod = PodFacts(requests={"cpu": 1}, created_ms=each, gated=True)
            cell.see(PodEvent, f"pod-{each}", time_ms=at_ms, namespace="a", pod=pod)
        cell.tell(TickEvent(time_ms=at_ms, cluster=SETTINGS.cluster))
        await until(lambda n=number: cell.admitted == n + 10)
    await cell.settled()
    await asyncio.sleep(0.05)  # what was written of snapshots is taken up


async def found_at(cell: OwnedCell, where: Where) -> Beginning:
    return await find_beginning(cell.topics, "default", 0, where, schema=SCHEMA)


async def replay(cell: OwnedCell, beginning: Beginning, to: Place | None = None) -> Comparison:
    policies = installed_policies()
    player = Player(cell.topics, cell="default", partition=0, policies=policies, beginning=beginning)
    found = Comparison(player)
    await found.run(to)
    return found


def parts(cell: OwnedCell) -> list[Message]:
    return cell.topics.log.messages[SETTINGS.snapshots_topic, 0]


def end_of(cell: OwnedCell) -> int:
    return len(cell.topics.log.messages[SETTINGS.events_topic, 0])


# ---- where it begins


async def test_from_the_last_rebuild_through_a_take_over() -> None:
    cell = await lived()
    beginning = await found_at(cell, "rebuild")
    assert (beginning.next_offset, beginning.next_seq, beginning.snapshot) == (0, 1, None)
    found = await replay(cell, beginning)
    assert found.difference is None
    assert (found.records, found.same) == (end_of(cell), 102)


async def test_from_the_last_snapshot() -> None:
    cell = await lived()
    beginning = await found_at(cell, "snapshot")
    assert beginning.snapshot is not None
    assert beginning.next_offset > 60
    found = await replay(cell, beginning)
    assert found.difference is None
    assert found.same == 103 - beginning.next_seq > 0


async def test_from_every_snapshot_comes_the_state_that_the_owner_came_to() -> None:
    cell = await lived()
    begun: list[Beginning] = []
    for offset in range(end_of(cell)):
        beginning = await found_at(cell, offset)
        assert beginning.next_offset <= offset
        if beginning not in begun:
            begun.append(beginning)
    assert len(begun) > 3
    rows = dict(cell.ledger._cells["default"].state)
    for beginning in begun:
        state = (await replay(cell, beginning)).player.state
        known = {key: dump(state.entity(key)) for key in state.all_keys()}  # type: ignore[arg-type]
        assert without_statuses(known) == without_statuses(rows)


def without_statuses(rows: dict[str, bytes]) -> dict[str, Any]:
    """Who takes over tells them again; nothing is decided by them."""
    return {key: json.loads(row) for key, row in rows.items() if not key.startswith("report/")}


async def test_from_a_time() -> None:
    cell = await lived()
    at_ms = BEGAN_MS + 60_000
    beginning = await found_at(cell, Time(at_ms))
    assert beginning.snapshot is not None
    assert BEGAN_MS + 30_000 < beginning.time_ms <= at_ms
    assert (await replay(cell, beginning)).difference is None


async def test_a_snapshot_of_another_schema_is_passed_over() -> None:
    cell = await lived()
    with pytest.raises(NoBeginningError, match=f"holds events 0 to {end_of(cell) - 1} of cell default"):
        await find_beginning(cell.topics, "default", 0, "snapshot", schema=SCHEMA + 1)


async def test_a_snapshot_of_former_topics_is_passed_over() -> None:
    cell = await lived()
    assert (await found_at(cell, "snapshot")).snapshot is not None
    cell.topics.id = "made anew"
    with pytest.raises(NoBeginningError):
        await found_at(cell, "snapshot")


async def test_where_retention_has_eaten_the_rebuild_the_oldest_snapshot_is_the_beginning() -> None:
    cell = await lived()
    cell.topics.begins[SETTINGS.events_topic] = 40
    beginning = await found_at(cell, "rebuild")
    assert beginning.next_offset >= 40
    assert (await replay(cell, beginning)).difference is None
    before = beginning.next_offset - 1
    with pytest.raises(NoBeginningError, match=f"up to offset {before}"):
        await found_at(cell, before)


async def test_decisions_that_are_no_longer_in_the_log_are_no_difference() -> None:
    cell = await lived()
    cell.topics.begins[SETTINGS.decisions_topic] = 20
    found = await replay(cell, await found_at(cell, "rebuild"))
    assert found.difference is None
    gone = sum(1 for decision in cell.decisions[:20] if decision.seq)
    assert (found.gone, found.same) == (gone, 102 - gone)


async def test_decisions_that_are_not_published_yet_are_none_either() -> None:
    cell = await lived()
    lost = sum(1 for decision in cell.decisions[-5:] if decision.seq)
    del cell.published[-5:]
    found = await replay(cell, await found_at(cell, "rebuild"))
    assert found.difference is None
    assert (found.unpublished, found.same) == (lost, 102 - lost)
    assert lost


# ---- what was set aside


async def test_what_was_set_aside_is_set_aside_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record that says so stands behind the one that it is about."""
    cell = OwnedCell(NEVER)
    with monkeypatch.context() as patch:
        open_gate = schedule.open_gate

        def raising(state: Any, pod: Any, *args: Any, **named: Any) -> None:
            if pod.key.endswith("pod-pod-13"):
                raise ZeroDivisionError("poison")
            open_gate(state, pod, *args, **named)

        patch.setattr(schedule, "open_gate", raising)
        async with cell.owned():
            await cell.open()
            cell.pods(10, 20)
            await until(lambda: cell.admitted == 9)
            await cell.settled()
    found = await replay(cell, await found_at(cell, "rebuild"))
    assert found.difference is None
    assert found.same == len([seq for seq in cell.seqs if seq])


# ---- snapshots


async def test_they_are_written_as_often_as_settings_say() -> None:
    assert not parts(await lived(NEVER))
    often = await lived(EACH_30)
    assert len(ends(often)) >= 4
    seldom = await lived(SETTINGS)
    assert len(ends(seldom)) == 2, "one behind each take-over"


def ends(cell: OwnedCell) -> list[int]:
    records = cell.topics.records(SETTINGS.snapshots_topic, 0, 0, 10**6)
    read = [Part.read(record) for record in records]
    return [part.standing.next_offset for part in read if part and part.standing]


async def test_nobody_waits_for_a_topic_that_takes_none(caplog: pytest.LogCaptureFixture) -> None:
    cell = OwnedCell(EACH_30)
    append = cell.topics.append

    async def refuse(topic: str, partition: int, messages: Any) -> int:
        if topic == SETTINGS.snapshots_topic:
            raise KafkaError("no such topic")
        return await append(topic, partition, messages)

    cell.topics.append = refuse  # type: ignore[method-assign]
    async with cell.owned() as owner:
        await cell.open()
        await passes(cell, 0, 50)
        assert not owner.missing
    assert "a snapshot was given up: KafkaError: no such topic" in caplog.text
    assert len(cell.rebuilds) == 1


# ---- the command, on a file


async def reported(cell: OwnedCell, path: Path, *, pseudonyms: bool = False) -> Path:
    """All of a cell's logs in one file."""

    async def records() -> AsyncIterator[tuple[Log, Received]]:
        for name, log in ((SETTINGS.events_topic, "event"), (SETTINGS.decisions_topic, "decision")):
            for received in cell.topics.records(name, 0, 0, 10**6):
                yield log, received

    header = Header(
        cell="default", partition=0, since="its beginning", until="its end", pseudonyms=pseudonyms
    )
    await write(path, header, records())
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return asyncio.run(reported(asyncio.run(lived()), tmp_path / "report.gz"))


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    code = main([str(word) for word in words])
    told = capsys.readouterr()
    return code, told.out + told.err


def test_a_file_is_replayed_without_a_server(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = run(capsys, path)
    assert code == 0
    assert "identical: 102 decisions of" in told
    assert "from a REBUILD at offset 0, 1970-01-01T00:16:40.000+00:00" in told
    code, told = run(capsys, path, "--json")
    shown = json.loads(told)
    assert (shown["identical"], shown["decisions"], shown["cell"]) == (True, 102, "default")


@pytest.mark.parametrize("place", ["40", "1970-01-01T00:17:00Z"])
def test_what_was_known_at_a_moment_is_shown(
    path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    code, told = run(capsys, path, "--until", place, "--state", "a/pod-25", "--json")
    known = json.loads(told)["known"]
    if place == "40":
        assert (code, known) == (1, None)
    else:
        assert code == 0
        assert known["state"]["pod/local/pod-pod-25"]["phase"] == "Assumed"
        assert known["timeMs"] == BEGAN_MS + 20_000
    code, told = run(capsys, path, "--until", place, "--state", "a")
    assert "what the core knew of a at" in told
    assert "queue a: nothing waits" in told
    assert "queue/local/queue-a" in told


def test_the_first_difference_is_shown_with_its_record_both_decisions_and_both_states(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = asyncio.run(lived())
    at, admit = next((at, each) for at, each in enumerate(cell.decisions) if each.seq == 50)
    edited = DECISIONS.value(replace(admit, reason="Bribed"))
    cell.published[at] = replace(cell.published[at], value=edited)
    path = asyncio.run(reported(cell, tmp_path / "report.gz"))
    code, told = run(capsys, path, "--json")
    assert code == 1
    found = json.loads(told)["difference"]
    assert found["what"] == "decision #50 differs in reason"
    assert (found["logged"]["reason"], found["replayed"]["reason"]) == ("Bribed", "Fits")
    [pod] = [key for key in found["behind"] if key.startswith("pod/")]
    assert found["record"]["uid"] == found["behind"][pod]["uid"]
    assert pod not in found["before"], "it came with this record"
    assert found["behind"][pod]["seq"] == 50
    code, told = run(capsys, path)
    assert code == 1
    assert "decision #50 differs in reason, behind the record at offset" in told


def test_a_file_that_lacks_events_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = asyncio.run(reported(asyncio.run(lived()), tmp_path / "report.gz"))
    records = FileRecords.open(path)
    del records._logs["event"][30]
    beginning = Beginning(next_offset=0, next_seq=1, time_ms=0)
    player = Player(records, cell="default", partition=0, policies=installed_policies(), beginning=beginning)
    with pytest.raises(HoleError, match="the log lacks the events from offset 30 to 30"):
        asyncio.run(Comparison(player).run())


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (
            {"format": "sluice-bug-report", "version": 99},
            "has version 99, and this version of Sluice reads 2\n  remedy: take the version of Sluice that wrote it",
        ),
        ({"format": "diary"}, "is no bug report: `sluice audit export` writes them"),
    ],
)
def test_what_is_no_report_of_this_version_is_refused_with_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], header: dict[str, Any], why: str
) -> None:
    path = tmp_path / "other.gz"
    with gzip.open(path, "wt") as file:
        file.write(json.dumps(header) + "\n")
    code, told = run(capsys, path)
    assert (code, why in told) == (1, True)


def test_a_report_that_was_cut_off_is_refused(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_bytes(path.read_bytes()[:-100])
    code, told = run(capsys, path)
    assert (code, "can't be read: Compressed file ended" in told) == (1, True)


def cut(
    path: Path, *, keep: int = 10**6, without: Callable[[dict[str, Any]], bool] = lambda line: False
) -> int:
    """Leaves the first lines of a report, but for some; how many lines it had."""
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    kept = [line for line in lines[:keep] if not without(json.loads(line))]
    path.write_bytes(gzip.compress(b"".join(kept)))
    return len(lines)


def test_a_report_whose_tail_is_gone_is_not_identical(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = cut(path)
    cut(path, keep=whole - 1)
    code, told = run(capsys, path)
    assert (code, "the file was cut off: it ends with decisions up to #102, and at least" in told) == (
        1,
        True,
    )
    cut(path, keep=80)
    code, told = run(capsys, path)
    assert code == 1
    assert (
        "it ends with the event at offset 78, and was written up to its end; all decisions are missing"
        in told
    )
    assert "identical:" not in told
    assert "behind its end are not in the file" in told
    cut(path, keep=1)
    code, told = run(capsys, path, "--json")
    assert (code, "it ends with what stands before all events" in told) == (1, True)
    assert "the log holds no events of cell default" in told


def test_a_report_whose_last_decisions_are_gone_names_them(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def is_gone(line: dict[str, Any]) -> bool:
        return line.get("log") == "decision" and json.loads(line["value"])["seq"] >= 100

    cut(path, without=is_gone)
    code, told = run(capsys, path)
    assert (code, ", up to #99: #100 to #102 are missing" in told, "identical:" in told) == (1, True, False)
    main([str(path), "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert not shown["identical"]
    assert "#100 to #102 are missing" in shown["lacks"][0]
    code, told = run(capsys, path, "--pseudonyms", tmp_path / "out.gz")
    assert (code, "#100 to #102" in told, (tmp_path / "out.gz").exists()) == (1, True, False)


def test_of_a_report_of_an_older_version_it_is_said_that_its_end_can_not_be_checked(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = cut(path)
    cut(path, keep=whole - 1)
    lines = gzip.decompress(path.read_bytes()).replace(b'"version": 2', b'"version": 1', 1)
    path.write_bytes(gzip.compress(lines))
    code, told = run(capsys, path)
    assert (code, "identical: 102" in told, "whether its end is missing can't be checked" in told) == (
        0,
        True,
        True,
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"log": "event", \n', "line 101, column 18: Expecting property name"),
        ("[]\n", "line 101: it is no record"),
        ('{"log": "event"}\n', "line 101: the record has no 'offset'"),
        ('{"log": "diary"}\n', "line 101: it is no record: there is no log 'diary'"),
    ],
)
def test_a_line_that_is_broken_is_named(
    path: Path, capsys: pytest.CaptureFixture[str], line: str, why: str
) -> None:
    lines = gzip.decompress(path.read_bytes()).decode().splitlines(keepends=True)
    path.write_bytes(gzip.compress("".join([*lines[:100], line, *lines[101:]]).encode()))
    code, told = run(capsys, path)
    assert (code, why in told, "remedy: it was damaged" in told) == (1, True, True), told


# ---- places where nothing lies


@pytest.mark.parametrize(
    "words",
    [
        ("--from", "999999"),
        ("--from", "2030-01-01T00:00:00Z"),
        ("--until", "99999"),
        ("--from", "9999-12-31T23:59:59Z"),
        ("--until", "1960-01-01T00:00:00Z"),
        ("--from", "60", "--until", "50"),
    ],
)
def test_a_replay_of_nothing_is_not_identical(
    path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    end = asyncio.run(FileRecords.open(path).bounds(0))[1]
    code, told = run(capsys, path, *words)
    assert code == 2
    assert (
        f"the log of cell default holds offsets 0 to {end - 1}, of 1970-01-01T00:16:40.000+00:00 to 1970-"
        in told
    )
    assert "nothing lies" in told
    assert "identical" not in told


def test_who_names_no_place_hears_of_all_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--from", "foo"])
    assert "foo is neither rebuild nor snapshot, no offset and no time: write one" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--until", "rebuild"])
    assert "rebuild is no offset and no time: write 7282 or" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--until", "9999-12-31T23:59:59-12:00"])
    assert "is no offset and no time" in capsys.readouterr().err


def test_a_name_that_nobody_knew_is_a_problem(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = run(capsys, path, "--state", "nosuch")
    assert (code, "the core knew nothing of nosuch" in told) == (1, True)


def test_pseudonyms_do_not_replace_a_file(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = path.read_bytes()
    code, told = run(capsys, path, "--pseudonyms", path)
    assert (code, f"{path} is there already" in told, path.read_bytes()) == (1, True, before)


def test_without_a_server_the_remedy_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(records: KafkaRecords, partition: int) -> Any:
        raise KafkaTimeoutError("Unable to bootstrap")

    monkeypatch.setattr(KafkaRecords, "bounds", silent)
    monkeypatch.setenv("SLUICE_KAFKA", "127.0.0.1:1")
    monkeypatch.setenv("SLUICE_REDIS", "redis://127.0.0.1:1/0")
    code, told = run(capsys)
    assert (code, "Kafka at 127.0.0.1:1 gives no answer" in told, "make up" in told) == (1, True, True)
    code = explain(["a"])
    told = capsys.readouterr().err
    assert (code, "or set SLUICE_REDIS to where it is" in told) == (1, True)


def test_bytes_that_are_no_text_survive(tmp_path: Path) -> None:
    cell = OwnedCell()
    odd = Message(key=b"\xff", value=b"\x00\xfe{", headers=[("h", b"\x80")])
    cell.topics.tell([odd])
    path = asyncio.run(reported(cell, tmp_path / "report.gz"))
    [found] = asyncio.run(FileRecords.open(path).events(0, 0, 1))
    assert (found.key, found.value, found.headers) == (odd.key, odd.value, odd.headers)
