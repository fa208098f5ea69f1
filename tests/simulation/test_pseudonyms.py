"""A bug report with pseudonyms tells the same story, and names nobody."""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
import random
import re
import string
import typing
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fakes.cell import FakeTopics
from fakes.recorded import SETTINGS, churn
from sluice.beginnings import find_beginning
from sluice.bugreport import FileRecords, Header, Log, write
from sluice.chain import PREVIOUS_HEADER, link
from sluice.codec import DECISIONS, find_header
from sluice.decisions import DECISION_TYPES, Status
from sluice.events import EVENT_TYPES, PodEvent, PodFacts
from sluice.kafka import Received
from sluice.snapshots import Part, Standing
from sluice_scheduler.core.stored.entities import Report
from sluice_scheduler.core.stored.tables import ENTITY_TYPES
from sluice_scheduler.installed import installed_policies
from sluice_scheduler.ledger.entities import dump
from sluice_scheduler.ports import SCHEMA
from sluice_scheduler.replay.anew import PseudonymsError, write_anew
from sluice_scheduler.replay.main import main
from sluice_scheduler.replay.pseudonyms import RULES, Names
from sluice_scheduler.replay.run import Comparison, Player

TENANTS = ("ant", "bee", "cat")


@pytest.fixture(scope="module")
def lived() -> FakeTopics:
    return churn(seed=2, lasts_s=400, every_s=4)


async def report(topics: FakeTopics, path: Path, *, first: int = 0) -> Path:
    """From an offset on, with a snapshot if that is not the beginning."""
    header = Header(cell="default", partition=0, since="a test", until="its end")
    records: list[tuple[Log, Received]] = []
    if first:
        records.append(("snapshot", await snapshot(topics, first)))
    records += [("event", each) for each in topics.records(SETTINGS.events_topic, 0, first, 10**6)]
    records += [("decision", each) for each in topics.records(SETTINGS.decisions_topic, 0, 0, 10**6)]

    async def each() -> AsyncIterator[tuple[Log, Received]]:
        for record in records:
            yield record

    await write(path, header, each())
    return path


async def snapshot(topics: FakeTopics, next_offset: int) -> Received:
    """What an owner would have written there."""
    beginning = await find_beginning(topics, "default", 0, "rebuild", schema=SCHEMA)
    player = Player(topics, cell="default", partition=0, policies=installed_policies(), beginning=beginning)
    await Comparison(player).run(next_offset - 1)
    state = player.state
    standing = Standing(
        next_offset=next_offset, next_seq=state.cell.next_seq, time_ms=state.now_ms, schema=SCHEMA
    )
    rows: dict[str, bytes | None] = {key: dump(state.entity(key)) for key in state.all_keys()}  # type: ignore[arg-type]
    message = Part(cell="default", snapshot="s", number=0, rows=rows, standing=standing).message()
    return Received(partition=0, offset=0, key=message.key, value=message.value, headers=message.headers)


@pytest.mark.parametrize("first", [0, 700])
def test_it_tells_the_same_story_and_names_nobody(
    lived: FakeTopics, tmp_path: Path, capsys: pytest.CaptureFixture[str], first: int
) -> None:
    path = asyncio.run(report(lived, tmp_path / "named.gz", first=first))
    out = tmp_path / "pseudonyms.gz"
    assert main([str(path), "--pseudonyms", str(out)]) == 0
    assert main([str(path)]) == main([str(out)]) == 0
    with_names, remark, without = capsys.readouterr().out.splitlines()
    assert remark == f"{out}: names are pseudonyms, and decisions were decided anew with them"
    assert without.partition(";")[0] == with_names.partition(";")[0], "as many decisions, and identical"
    text = gzip.decompress(out.read_bytes()).decode()
    text = re.sub(r'\\"uid\\":\\"[^"]*"|\["ce_id","[^"]*"\]', "", text)  # theirs are random, in earnest
    assert "pod/" in text
    assert not {*TENANTS, "plain", "main"} & set(re.findall("[a-z0-9]+", text))
    records = FileRecords.open(out)
    assert records.header.pseudonyms
    assert_chained(records)


def assert_chained(records: FileRecords) -> None:
    expected = None
    for each in asyncio.run(records.decisions(0, 0, 10**6)):
        carried = find_header(each.headers, PREVIOUS_HEADER) or ""
        assert expected in (None, carried)
        expected = link(carried, find_header(each.headers, "ce_type") or "", each.value or b"")


def test_a_report_whose_own_decisions_differ_gets_none(lived: FakeTopics, tmp_path: Path) -> None:
    path = asyncio.run(report(lived, tmp_path / "named.gz"))
    records = FileRecords.open(path)
    decisions = records._logs["decision"]
    decision = DECISIONS.decode(decisions[9].headers, decisions[9].value)
    decisions[9] = replace(decisions[9], value=DECISIONS.value(replace(decision, reason="Bribed")))
    with pytest.raises(PseudonymsError, match="#10 differs in reason"):
        asyncio.run(write_anew(records, installed_policies(), tmp_path / "out.gz"))
    assert not list(tmp_path.glob("out*"))


def test_names_that_change_their_order_are_noticed(
    lived: FakeTopics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle = Names.settle

    def the_other_way_round(names: Names) -> None:
        settle(names)
        names._codes = dict(zip(names._codes, reversed(names._codes.values()), strict=True))

    monkeypatch.setattr(Names, "settle", the_other_way_round)
    path = asyncio.run(report(lived, tmp_path / "named.gz"))
    with pytest.raises(PseudonymsError, match="the file was not written"):
        asyncio.run(write_anew(FileRecords.open(path), installed_policies(), tmp_path / "out.gz"))
    assert not list(tmp_path.glob("out*"))


def test_the_order_of_names_is_kept_alone_and_joined() -> None:
    rng = random.Random(1)
    letters = string.ascii_lowercase[:4] + string.ascii_uppercase[:2] + "_-./019"
    texts = ["".join(rng.choices(letters, k=rng.randint(1, 6))) for _ in range(2_000)]
    names = Names()
    pods = [
        PodEvent(
            time_ms=0, cluster="c", change="ADDED", uid="u", name=text, resource_version=1,
            pod=PodFacts(requests={}, created_ms=0),
        )
        for text in texts
    ]  # fmt: skip
    for pod in pods:
        names.learn(pod)
    names.settle()
    pseudonym = {pod.name: names.replaced(pod).name for pod in pods}
    assert len(set(pseudonym.values())) == len(set(texts))
    assert [pseudonym[each] for each in sorted(pseudonym)] == sorted(pseudonym.values())
    joined = {f"{one}/{other}-1": f"{pseudonym[one]}/{pseudonym[other]}-1" for one, other in pairwise(texts)}
    assert [joined[each] for each in sorted(joined)] == sorted(joined.values())


# ---- what is replaced and what is not

#: These name no tenant, and nothing that a tenant has named.
KEPT = {
    "application", "cell", "cells", "change", "cluster", "clusters", "kinds", "kind", "key", "decision", "epoch",
    "guaranteed", "guaranteed_by_pool", "limit", "limit_by_pool", "operator", "ordering", "oversubscription", "phase",
    "policy", "pool", "pools", "preemption", "previous", "requests", "allocatable", "result", "supply", "sync",
    "synced", "open_syncs", "cost", "used", "recent", "ends", "attempts", "object_kind", "outcome",
    "unfinished", "about", "sentence", "reason",
}  # fmt: skip


def texts_in(root: type[Any]) -> Iterator[tuple[str, str]]:
    """Class and field of whatever holds text."""
    for name, hint in typing.get_type_hints(root).items():
        if typing.get_origin(hint) is typing.ClassVar:
            continue
        if holds_text(hint):
            yield root.__name__, name
        for inner in parts_of(hint):
            if dataclasses.is_dataclass(inner) and isinstance(inner, type):
                yield from texts_in(inner)


def parts_of(hint: Any) -> Iterator[Any]:
    yield hint
    for argument in typing.get_args(hint):
        yield from parts_of(argument)


def holds_text(hint: Any) -> bool:
    return any(part is str or part is Any for part in parts_of(hint))


def test_whoever_adds_a_field_says_whether_it_names_anybody() -> None:
    decisions = (each for each in DECISION_TYPES if not issubclass(each, Status))
    entities = (each for each in ENTITY_TYPES if each is not Report)
    found = {text for root in (*EVENT_TYPES, *decisions, *entities) for text in texts_in(root)}
    unknown = {(owner, name) for owner, name in found if (owner, name) not in RULES and name not in RULES}
    assert {each for each in unknown if each[1] not in KEPT} == set()
