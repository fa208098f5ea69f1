"""Who hands on batches waits longer only while there is a lasting stream."""

from __future__ import annotations

from sluice.pace import Pace


def test_single_records_are_handed_on_soon() -> None:
    pace = Pace(0.04)
    assert [pace.pause_s(1) for _ in range(3)] == [0.04] * 3


def test_one_large_batch_among_small_ones_delays_nobody() -> None:
    pace = Pace(0.04)
    assert [pace.pause_s(count) for count in (1, 10, 1, 10, 2)] == [0.04] * 5


def test_a_stream_is_gathered_into_larger_batches_within_bounds() -> None:
    pace = Pace(0.04)
    assert [pace.pause_s(count) for count in (12, 12, 100, 100, 1)] == [0.04, 0.08, 0.08, 0.16, 0.04]


def test_behind_a_full_batch_nothing_is_waited_for() -> None:
    pace = Pace(0.04, full=500)
    assert [pace.pause_s(count) for count in (500, 500, 499)] == [0.0, 0.0, 0.16]
