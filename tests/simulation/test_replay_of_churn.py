"""A log of twenty-five minutes of churn is played again: identical, fast, and whatever was changed is seen."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from fakes.cell import FakeTopics
from fakes.recorded import SETTINGS, churn
from sluice.beginnings import find_beginning
from sluice.codec import DECISIONS, EVENTS, Message
from sluice.decisions import Admit, Decision
from sluice.events import PodEvent
from sluice_scheduler.core import State
from sluice_scheduler.installed import installed_policies
from sluice_scheduler.ports import SCHEMA
from sluice_scheduler.replay.run import Comparison, Player

#: About as many decisions as the churn of the end-to-end tests makes.
LASTS_S, EVERY_S = 1_500, 6
MIDDLE = 900


@pytest.fixture(scope="module")
def lived() -> FakeTopics:
    return churn(seed=1, lasts_s=LASTS_S, every_s=EVERY_S)


@pytest.fixture
def topics(lived: FakeTopics) -> FakeTopics:
    """To be changed."""
    changed = FakeTopics(SETTINGS)
    for place, messages in lived.log.messages.items():
        changed.log.messages[place] = list(messages)
    return changed


def events(topics: FakeTopics) -> list[Message]:
    return topics.log.messages[SETTINGS.events_topic, 0]


def decisions(topics: FakeTopics) -> list[Message]:
    return topics.log.messages[SETTINGS.decisions_topic, 0]


async def replay(topics: FakeTopics) -> Comparison:
    beginning = await find_beginning(topics, "default", 0, "rebuild", schema=SCHEMA)
    policies = installed_policies()
    found = Comparison(Player(topics, cell="default", partition=0, policies=policies, beginning=beginning))
    await found.run()
    return found


async def test_it_is_identical_and_fast(lived: FakeTopics, capsys: pytest.CaptureFixture[str]) -> None:
    found = await replay(lived)
    assert found.difference is None
    assert found.records == len(events(lived)) > 5_000
    assert found.same == len(decisions(lived)) > 1_500
    times = found.lived_s / found.cpu_s
    with capsys.disabled():
        print(f"\n{found.records} records with {found.same} decisions: {times:.0f} times as fast as lived")
    assert times > 300


# ---- a changed core


def says_another_word(monkeypatch: pytest.MonkeyPatch) -> None:
    decide = State.decide

    def other(state: State, decision: Any) -> Any:
        return decide(state, replace(decision, sentence="so") if decision.seq == MIDDLE else decision)

    monkeypatch.setattr(State, "decide", other)


def takes_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """What passes do with ticks is left out."""
    module = sys.modules["sluice_scheduler.core.step"]
    schedule = module.schedule
    monkeypatch.setattr(module, "schedule", lambda state, ticks: schedule(state, ticks=False))


def raises(monkeypatch: pytest.MonkeyPatch) -> None:
    decide = State.decide

    def other(state: State, decision: Decision) -> Decision:
        if decision.seq == MIDDLE:
            raise KeyError("odd")
        return decide(state, decision)

    monkeypatch.setattr(State, "decide", other)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (says_another_word, f"decision #{MIDDLE} differs in sentence"),
        (takes_nothing_back, "differs in"),
        (raises, "the core raised KeyError: 'odd', and the log sets nothing aside"),
    ],
)
async def test_a_changed_core_is_caught(
    topics: FakeTopics,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[pytest.MonkeyPatch], None],
    what: str,
) -> None:
    change(monkeypatch)
    found = await replay(topics)
    assert found.difference is not None
    assert what in found.difference.what


# ---- an edited log


def _find(topics: FakeTopics) -> int:
    return next(at for at, each in enumerate(decisions(topics)) if _decision(each).seq >= MIDDLE)


def _decision(message: Message) -> Decision:
    return DECISIONS.decode(message.headers, message.value)


def edit_a_decision(topics: FakeTopics) -> None:
    found = next(
        at for at, each in enumerate(decisions(topics)) if at > MIDDLE and isinstance(_decision(each), Admit)
    )
    decision = _decision(decisions(topics)[found])
    assert isinstance(decision, Admit)
    other = DECISIONS.value(replace(decision, queue="mine"))
    decisions(topics)[found] = replace(decisions(topics)[found], value=other)


def remove_a_decision(topics: FakeTopics) -> None:
    del decisions(topics)[_find(topics)]


def swap_two_numbers(topics: FakeTopics) -> None:
    at = _find(topics)
    here, there = decisions(topics)[at : at + 2]
    one, other = _decision(here), _decision(there)
    swapped = replace(one, seq=other.seq), replace(other, seq=one.seq)
    decisions(topics)[at : at + 2] = [
        replace(message, value=DECISIONS.value(decision))
        for message, decision in zip((here, there), swapped, strict=True)
    ]


def add_a_decision(topics: FakeTopics) -> None:
    """Of a time that is over: the log of one that is not may still be on its way."""
    message = next(each for each in reversed(decisions(topics)) if _decision(each).seq)
    last = _decision(message)
    more = replace(last, seq=last.seq + 1, time_ms=last.time_ms - 1)
    decisions(topics).append(replace(message, value=DECISIONS.value(more)))


def _new_pod(topics: FakeTopics) -> tuple[int, PodEvent]:
    for at, message in enumerate(events(topics)):
        event = EVENTS.decode(message.headers, message.value)
        if at > MIDDLE and isinstance(event, PodEvent) and event.change == "ADDED":
            return at, event
    raise AssertionError


def edit_an_event(topics: FakeTopics) -> None:
    """A pod asks for ten times as much."""
    at, event = _new_pod(topics)
    larger = {name: 10 * amount for name, amount in event.pod.requests.items()}
    other = replace(event, pod=replace(event.pod, requests=larger))
    events(topics)[at] = replace(events(topics)[at], value=EVENTS.value(other))


def remove_an_event(topics: FakeTopics) -> None:
    """Others move up: in Kafka nobody can do that, in a file he can."""
    at, _ = _new_pod(topics)
    del events(topics)[at]


@pytest.mark.parametrize(
    ("edit", "what"),
    [
        (edit_a_decision, "differs in queue"),
        (remove_a_decision, f"the log holds no decision #{MIDDLE}"),
        (swap_two_numbers, f"decision #{MIDDLE} differs in"),
        (add_a_decision, "and the core has not decided it"),
        (edit_an_event, "differs in"),
        (remove_an_event, "differs in"),
    ],
)
async def test_an_edited_log_is_caught(
    topics: FakeTopics, edit: Callable[[FakeTopics], None], what: str
) -> None:
    edit(topics)
    found = await replay(topics)
    assert found.difference is not None
    assert what in found.difference.what
