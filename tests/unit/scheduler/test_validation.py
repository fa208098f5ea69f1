"""A change of an account that books, lines and sums were not told of is found."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from applications_of_one_cell import Applications, pod_set
from sluice_scheduler import metrics
from sluice_scheduler.core.state.alike import Alike
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.state.validate import Validation
from sluice_scheduler.core.stored.accounts import Pod
from sluice_scheduler.validator import Validator


def busy() -> State:
    """One pod holds alone, one of an application, and one of each waits."""
    cell = Applications(cpu=2000)
    cell.pods("holds")
    cell.application("ray", pod_set("worker", 2, 0))
    cell.pods("of-ray", "grows", of="ray", pod_set="worker")
    cell.pods("waits", ends_in_ms=60_000)
    cell.pass_seconds(1)
    assert cell.state.validate() == []
    return cell.state


def pod(state: State, name: str) -> Pod:
    return next(each for each in state.pods if each.name == name)


FORGOTTEN: dict[str, Callable[[State], None]] = {
    "another phase": lambda state: setattr(pod(state, "waits"), "phase", "Withdrawn"),
    "another queue": lambda state: setattr(pod(state, "holds"), "queue", "other"),
    "a pool": lambda state: setattr(pod(state, "holds"), "pool", ""),
    "an eviction": lambda state: setattr(pod(state, "holds"), "evicting", 99),
    "an eviction of an application's pod": lambda state: setattr(pod(state, "of-ray"), "evicting", 99),
    "a pause": lambda state: setattr(pod(state, "waits"), "retry_ms", 1 << 50),
    "a problem": lambda state: setattr(pod(state, "grows"), "problem", "something is wrong"),
    "an end": lambda state: state.pods.drop(pod(state, "holds").key),
    "an end of one that waits": lambda state: state.pods.drop(pod(state, "waits").key),
    "an application": lambda state: setattr(pod(state, "of-ray"), "application", ""),
    "a charge": lambda state: state.forest.charge("team", ((("sim", "default", "cpu"), 1),), 1),
    "a room": lambda state: setattr(state.forest.root.rooms[0], "left", 1),
    "a line": lambda state: state.forest.leave(pod(state, "waits").key),
    "a unit": lambda state: state.units["team"].growth.clear(),
    "a size": lambda state: setattr(state.units["team"], "alike", Alike(())),
    "an index": lambda state: state.retries.update({"pod/sim/nobody": 1}),
}


@pytest.mark.parametrize("what", FORGOTTEN)
def test_what_was_forgotten_is_found(what: str) -> None:
    state = busy()
    FORGOTTEN[what](state)
    assert state.validate() != []


def test_a_round_in_pieces_finds_what_one_at_once_does() -> None:
    state = busy()
    whole = Validation(state)
    assert [whole.go_on(1) for _ in range(10)] == [[]] * 10
    pod(state, "waits").phase = "Withdrawn"
    pieces = Validation(state)
    found = [each for _ in range(10) for each in pieces.go_on(1)]
    assert set(found) == set(state.validate())
    assert any(each.startswith(f"{pod(state, 'waits').key}: ") for each in found)


def test_what_ends_between_two_pieces_is_no_difference() -> None:
    for pieces in range(1, 8):
        cell = Applications()
        for number in range(3):
            cell.application(f"ray-{number}", pod_set("worker", 1, 1))
        cell.pass_seconds(1)
        validation = Validation(cell.state)
        validation.go_on(1)  # a round begins
        assert validation.go_on(pieces) == []
        for number in range(3):
            cell.delete_application(f"ray-{number}")
        assert validation.go_on(100) == []


def test_it_changes_nothing() -> None:
    state = busy()
    state.take_changes()
    before = (state.applications.keys(), state.units.keys(), state.holders.keys(), state.forest.version)
    state.validate()
    assert (
        state.applications.keys(),
        state.units.keys(),
        state.holders.keys(),
        state.forest.version,
    ) == before
    assert state.take_changes() == {}


def test_what_it_finds_beside_the_work_is_logged_and_counted_and_stops_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = busy()
    pod(state, "waits").phase = "Withdrawn"
    validator = Validator("default", state, ticks=2)
    counted = metrics.MISMATCHES.labels("default")._value
    before = counted.get()
    validator.tick()
    validator.tick()  # begins a round
    validator.tick()
    assert counted.get() == before
    validator.tick()
    assert counted.get() > before
    assert f"{pod(state, 'waits').key}: " in caplog.text

    def raises(*_: object) -> None:
        raise KeyError("nobody")

    monkeypatch.setattr(Validation, "go_on", raises)
    validator.tick()
    validator.tick()
    assert "validation raised KeyError" in caplog.text


def test_it_may_be_turned_off() -> None:
    state = busy()
    pod(state, "waits").phase = "Withdrawn"
    validator = Validator("silent", state, ticks=0)
    for _ in range(5):
        validator.tick()
    assert metrics.MISMATCHES.labels("silent")._value.get() == 0
