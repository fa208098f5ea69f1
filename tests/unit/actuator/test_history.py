"""New, duplicate, fenced, diverging: what a decision is to one who has read those before it."""

from __future__ import annotations

import pytest
from decisions_made import admit, report_queue
from sluice.codec import DECISIONS
from sluice.decisions import Decision, Fence
from sluice.values import Epoch
from sluice_actuator import history as history_module
from sluice_actuator.history import CellHistory, DivergenceError, Standing

FIRST, SECOND = Epoch(1, 10), Epoch(1, 20)


def take(history: CellHistory, decision: Decision, epoch: Epoch = FIRST) -> Standing:
    return history.take(decision, epoch=epoch, value=DECISIONS.value(decision))


def fence(seq: int) -> Fence:
    return Fence(seq=seq, cell="default", cluster="local", time_ms=0, reason="Rebuild", sentence="")


def test_a_decision_is_new_once() -> None:
    history = CellHistory()
    assert [take(history, admit(seq)) for seq in (1, 2, 1, 2, 3)] == [
        Standing.NEW,
        Standing.NEW,
        Standing.DUPLICATE,
        Standing.DUPLICATE,
        Standing.NEW,
    ]


def test_a_duplicate_may_come_under_a_later_epoch() -> None:
    history = CellHistory()
    take(history, admit(1))
    assert take(history, admit(1), SECOND) is Standing.DUPLICATE


def test_one_seq_with_two_contents_is_a_divergence() -> None:
    history = CellHistory()
    take(history, admit(1, name="a"))
    with pytest.raises(DivergenceError, match="seq 1"):
        take(history, admit(1, name="b"))
    with pytest.raises(DivergenceError):
        take(history, admit(1, name="b"), SECOND)


def test_behind_a_fence_older_epochs_are_shut_out() -> None:
    history = CellHistory()
    assert not history.fences(FIRST)
    take(history, fence(5), SECOND)
    assert history.fences(FIRST)
    assert not history.fences(SECOND)
    assert take(history, admit(6), FIRST) is Standing.FENCED
    assert take(history, admit(6, name="another"), SECOND) is Standing.NEW


def test_a_fence_makes_what_it_did_not_see_forgotten() -> None:
    """The rebuilt ledger has read the log's tail before the fenced scheduler put seq 5 there."""
    history = CellHistory()
    for seq in (4, 5, 6):
        take(history, admit(seq))
    assert take(history, fence(5), SECOND) is Standing.NEW
    assert take(history, admit(6, name="another"), SECOND) is Standing.NEW
    with pytest.raises(DivergenceError):
        take(history, admit(4, name="another"), SECOND)


def test_a_fence_of_no_later_epoch_excuses_nothing() -> None:
    history = CellHistory()
    take(history, admit(5), SECOND)
    with pytest.raises(DivergenceError):
        take(history, fence(5), SECOND)


def test_the_fences_of_several_clusters_stand_side_by_side() -> None:
    history = CellHistory()
    take(history, admit(5))
    assert take(history, fence(5), SECOND) is Standing.NEW
    assert take(history, fence(6), SECOND) is Standing.NEW
    assert take(history, fence(5), SECOND) is Standing.DUPLICATE


def test_a_status_may_come_again_in_other_words_but_not_of_an_owner_that_was_fenced_off() -> None:
    history = CellHistory()
    first, other = report_queue(0), report_queue(0, usage={})
    assert [take(history, each) for each in (first, other, first)] == [Standing.NEW] * 3
    assert take(history, other, SECOND) is Standing.NEW
    assert take(history, first, FIRST) is Standing.FENCED
    take(history, admit(1), Epoch(1, 30))
    assert take(history, other, SECOND) is Standing.FENCED, "who decides later tells later"
    assert take(history, admit(2), SECOND) is Standing.NEW, "a decision counts, whoever publishes it"


def test_memory_is_bounded_and_what_is_forgotten_is_taken_for_a_duplicate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(history_module, "REMEMBERED", 10)
    history = CellHistory()
    for seq in range(1, 31):
        assert take(history, admit(seq)) is Standing.NEW
    assert take(history, admit(20, name="another")) is Standing.DUPLICATE
    with pytest.raises(DivergenceError):
        take(history, admit(21, name="another"))
