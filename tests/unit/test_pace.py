"""Who hands on batches waits only while there is a lasting stream."""

from __future__ import annotations

import math

from sluice.pace import Pace


class Hand:
    """Hands on batches by a clock that only the pauses move, and what `apart_s` lies between them."""

    def __init__(self, least_s: float = 0.04, full: float = math.inf) -> None:
        self._now_s = 0.0
        self._pace = Pace(least_s, lambda: self._now_s, full=full)

    def on(self, *counts: int, apart_s: float = 0.0) -> list[float]:
        """How long it pauses behind each of these batches."""
        pauses = []
        for count in counts:
            pauses.append(self._pace.pause_s(count))
            self._now_s += pauses[-1] + apart_s
        return pauses


def test_a_few_records_are_handed_on_at_once_and_those_behind_them_too() -> None:
    assert Hand().on(*[1] * 8) == [0.0] * 8


def test_ten_pods_a_second_wait_for_nothing() -> None:
    assert set(Hand().on(*[1, 2, 1, 1, 1] * 100, apart_s=0.02)) == {0.0}


def test_small_batches_that_do_not_end_are_gathered() -> None:
    pauses = Hand().on(*[1] * 1000, apart_s=0.002)
    took_s = sum(pauses) + 1000 * 0.002
    assert sum(pause == 0.0 for pause in pauses) <= 8 + 4 * took_s / 0.04
    assert max(pauses) == 0.04


def test_one_large_batch_among_small_ones_delays_those_behind_it_for_a_moment() -> None:
    assert Hand().on(1, 10, 1, 10, 2) == [0.0, 0.04, 0.0, 0.04, 0.0]


def test_a_stream_is_gathered_into_larger_batches_within_bounds() -> None:
    assert Hand().on(12, 12, 100, 100, 6) == [0.04, 0.08, 0.08, 0.16, 0.04]


def test_behind_a_full_batch_nothing_is_waited_for() -> None:
    assert Hand(full=500).on(500, 500, 499) == [0.0, 0.0, 0.16]


def test_without_a_pause_there_is_none() -> None:
    assert set(Hand(0.0).on(*[1, 100] * 20)) == {0.0}
