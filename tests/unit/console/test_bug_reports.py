"""What `sluice audit export` writes is what `sluice replay` and `sluice audit verify` read, without any server."""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes.owned_cell import SETTINGS, OwnedCell, until
from sluice.bugreport import FileRecords
from sluice.chain import BEGINNING, link
from sluice.codec import DECISIONS, EPOCH_HEADER
from sluice.events import PodEvent, PodFacts, SetAsideEvent, TickEvent
from sluice.values import Epoch
from sluice_console.commands import export, verify
from sluice_console.main import main
from sluice_console.redis_reader import Position, RedisReader
from sluice_scheduler.core.passes import schedule
from sluice_scheduler.replay.main import main as replay

#: As the fake clock has it.
BEGAN_MS = 1_000_000
EACH_20 = SETTINGS.model_copy(update={"snapshot_records": 20})


async def lived(monkeypatch: pytest.MonkeyPatch) -> OwnedCell:
    """Seventy pods; one of them raises, and is set aside by a record far behind."""
    cell = OwnedCell(EACH_20)
    open_gate = schedule.open_gate

    def raising(state: Any, pod: Any, *args: Any, **named: Any) -> None:
        if pod.key.endswith("pod-pod-33"):
            raise ZeroDivisionError("poison")
        open_gate(state, pod, *args, **named)

    monkeypatch.setattr(schedule, "open_gate", raising)
    async with cell.owned():
        await cell.open()
        for first in range(0, 70, 10):
            at_ms = BEGAN_MS + 1_000 * first
            for each in range(first, first + 10):
                pod = PodFacts(requests={"cpu": 1}, created_ms=each, gated=True)
                cell.see(PodEvent, f"pod-{each}", time_ms=at_ms, namespace="a", pod=pod)
            cell.tell(TickEvent(time_ms=at_ms, cluster=SETTINGS.cluster))
            wanted = first + 10 - (first >= 30)
            await until(lambda wanted=wanted: cell.admitted == wanted)
        await cell.settled()
        await asyncio.sleep(0.05)
    return cell


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> OwnedCell:
    cell = asyncio.run(lived(monkeypatch))

    @contextmanager
    def reading(context: object) -> Iterator[None]:
        yield

    def position(reader: RedisReader, name: str) -> Position:
        meta = cell.ledger._cells[name].meta
        return Position(
            epoch=meta.epoch,
            next_offset=meta.next_offset,
            next_seq=meta.next_seq,
            published=meta.published,
            chain=meta.chain,
        )

    for module in (export, verify):
        monkeypatch.setattr(module, "KafkaRecords", lambda settings: cell.topics)
        monkeypatch.setattr(module, "reading", reading)
    monkeypatch.setattr(RedisReader, "position", position)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}")
    return cell


def run(capfd: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    code = main([str(word) for word in words])
    told = capfd.readouterr()
    return code, told.out + told.err


def replayed(capfd: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    replay([*map(str, words), "--json"])
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, told = run(capfd, "audit", "export", tmp_path / "nowhere" / "bug.gz")
    assert code != 0
    assert f"there is no folder {tmp_path / 'nowhere'}" in told


def test_all_of_it_is_replayed(cell: OwnedCell, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.gz"
    code, told = run(capfd, "audit", "export", path)
    assert code == 0
    assert "cell default, from a REBUILD at offset 0" in told
    found = replayed(capfd, path)
    assert found["identical"]
    assert found["decisions"] == sum(1 for each in cell.decisions if each.seq)
    assert [each.name for each in tmp_path.iterdir()] == ["report.gz"]


@pytest.mark.parametrize(
    ("since", "to"),
    [
        ("45", "60"),
        ("1970-01-01T00:17:10+00:00", "1970-01-01T00:17:30+00:00"),
        ("snapshot", "1970-01-02T00:00:00Z"),
    ],
)
def test_a_piece_of_it_is_replayed_from_a_snapshot(
    cell: OwnedCell, tmp_path: Path, capfd: pytest.CaptureFixture[str], since: str, to: str
) -> None:
    path = tmp_path / "report.gz"
    code, told = run(capfd, "audit", "export", path, "--from", since, "--to", to)
    assert code == 0
    assert "from a snapshot at offset" in told
    found = replayed(capfd, path)
    assert found["identical"]
    assert 0 < found["decisions"] < 60
    records = FileRecords.open(path)
    first, _ = asyncio.run(records.bounds(0))
    assert first > 15


def test_what_was_set_aside_later_is_in_it(
    cell: OwnedCell, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report ends just behind the record that raised, and far before the one that sets it aside."""
    log = cell.topics.log.events(SETTINGS.events_topic)
    [aside] = [event for event in log if isinstance(event, SetAsideEvent)]
    at = log.index(aside)
    assert at > aside.offset
    path = tmp_path / "report.gz"
    run(capfd, "audit", "export", path, "--to", aside.offset)
    monkeypatch.undo()  # nothing raises any more
    found = replayed(capfd, path)
    assert found["identical"]
    assert found["nextOffset"] == at + 1


def test_its_chain_is_verified_and_its_decisions_are(
    cell: OwnedCell, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "report.gz"
    run(capfd, "audit", "export", path)
    code, told = run(capfd, "audit", "verify")
    assert code == 0
    assert f"its hash {cell.ledger._cells['default'].meta.chain}" in told
    code, told = run(capfd, "audit", "verify", path, "--json")
    assert (code, json.loads(told)["findings"]) == (0, [])
    code, told = run(capfd, "audit", "verify", path, "--replay")
    assert code == 0
    assert "in one chain" in told
    assert "identical" in told


def test_who_is_clever_enough_to_mend_the_chain_is_found_by_a_replay(
    cell: OwnedCell, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A file has no ledger to compare with."""
    previous = BEGINNING
    for at, (message, decision) in enumerate(zip(cell.published, cell.decisions, strict=True)):
        if decision.seq:
            changed = replace(decision, reason="Bribed") if decision.seq == 20 else decision
            epoch = Epoch.parse(message.header(EPOCH_HEADER) or "")
            cell.published[at] = DECISIONS.encode(changed, source="me", epoch=epoch, previous=previous)
            previous = link(previous, message.header("ce_type") or "", cell.published[at].value)
    path = tmp_path / "report.gz"
    run(capfd, "audit", "export", path)
    assert run(capfd, "audit", "verify", path)[0] == 0
    code, told = run(capfd, "audit", "verify")
    assert (code, "another hash than the ledger's" in told) == (1, True)
    code, told = run(capfd, "audit", "verify", path, "--replay")
    assert (code, "decision #20 differs in reason" in told) == (1, True)


def test_a_hand_edited_decision_is_named(cell: OwnedCell, capfd: pytest.CaptureFixture[str]) -> None:
    at, decision = next((at, each) for at, each in enumerate(cell.decisions) if each.seq == 20)
    edited = DECISIONS.value(replace(decision, reason="Bribed"))
    cell.published[at] = replace(cell.published[at], value=edited)
    code, told = run(capfd, "audit", "verify")
    assert code == 1
    assert f"cell default  @{at}" in told
    assert "#20 was edited: it is not the one whose hash #21 carries" in told
    assert "decisions with 1 fault, named above" in told
    assert "in one chain" not in told


def test_a_report_whose_last_decision_is_gone_is_not_in_order(
    cell: OwnedCell, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "report.gz"
    run(capfd, "audit", "export", path)
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    seq = max(each.seq for each in cell.decisions)
    [last] = [at for at, line in enumerate(lines) if rf"\"seq\":{seq}," in line.decode()]
    path.write_bytes(gzip.compress(b"".join(lines[:last] + lines[-1:])))
    code, told = run(capfd, "audit", "verify", path)
    assert (code, f", up to #{seq - 1}: #{seq} is missing" in told) == (1, True), told
    path.write_bytes(gzip.compress(b"".join(lines[:40])))
    code, told = run(capfd, "audit", "verify", path)
    assert (code, "cut off: it ends with the event at offset 38" in told) == (1, True), told
    assert "all decisions are missing" in told


def test_a_report_of_a_newer_version_wants_another_sluice(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "report.gz"
    path.write_bytes(gzip.compress(b'{"format": "sluice-bug-report", "version": 99}\n'))
    code, told = run(capfd, "audit", "verify", path)
    assert (code, "remedy: take the version of Sluice that wrote it" in told) == (1, True)
    assert "name a file" not in told


def test_a_file_that_is_there_is_replaced_only_on_demand(
    cell: OwnedCell, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "report.gz"
    path.write_text("a diary")
    for words in ((), ("--pseudonyms",)):
        code, told = run(capfd, "audit", "export", path, *words)
        assert (code, "say --force to replace it" in told, path.read_text()) == (1, True, "a diary")
    assert run(capfd, "audit", "export", path, "--force", "--pseudonyms")[0] == 0
    assert FileRecords.open(path).header.pseudonyms
    code, told = run(capfd, "audit", "export", tmp_path, "--force")
    assert (code, f"{tmp_path} is a folder" in told) == (1, True)


@pytest.mark.parametrize(
    "words",
    [
        ("--from", "2030-01-01T00:00:00Z"),
        ("--from", "999999"),
        ("--to", "999999"),
        ("--from", "60", "--to", "50"),
        ("--from", "1970-01-01T00:17:30Z", "--to", "1970-01-01T00:17:10Z"),
    ],
)
def test_a_report_of_nothing_is_not_written(
    cell: OwnedCell, tmp_path: Path, capfd: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    code, told = run(capfd, "audit", "export", tmp_path / "report.gz", *words)
    assert (code, "the log of cell default holds offsets 0 to" in told, "nothing lies" in told) == (
        1,
        True,
        True,
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("since", ["rebuild", "45"])
def test_with_pseudonyms_it_is_replayed_too(
    cell: OwnedCell, tmp_path: Path, capfd: pytest.CaptureFixture[str], since: str
) -> None:
    path = tmp_path / "report.gz"
    code, told = run(capfd, "audit", "export", path, "--pseudonyms", "--from", since)
    assert code == 0, told
    assert [each.name for each in tmp_path.iterdir()] == ["report.gz"]
    assert replayed(capfd, path)["identical"]
    assert FileRecords.open(path).header.pseudonyms


def test_a_report_about_several_cells_is_none(
    cell: OwnedCell, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICE_CELLS", '{"default": 0, "other": 1}')
    code, told = run(capfd, "audit", "export", tmp_path / "report.gz")
    assert (code, "name one with --cell: default, other" in told) == (1, True)


def test_what_has_no_beginning_is_no_report(
    cell: OwnedCell, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cell.topics.begins[SETTINGS.events_topic] = 10
    code, told = run(capfd, "audit", "export", tmp_path / "report.gz", "--from", "11")
    assert (code, "nothing to begin with" in told, "begin later" in told) == (1, True, True)
    assert not list(tmp_path.iterdir())
