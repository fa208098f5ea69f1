"""`make sim`: runs of the whole system, each from a seed, for as long or as many as one says.

What fails is shrunk and kept under tests/regressions/system, where `make test` plays it from then on.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from itertools import count
from typing import Final, NamedTuple

from asked import at_least_one, some_minutes
from simulation.system.actions import KEPT, Trace, draw_trace
from simulation.system.checkers import Violation
from simulation.system.play import play
from simulation.system.shrink import shrink

TOLD_S: Final = 5.0


class Played(NamedTuple):
    seed: int
    violation: Violation | None = None
    trace: Trace | None = None  # the shortest


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="make sim")
    parser.add_argument("--seeds", type=at_least_one, help="so many runs")
    parser.add_argument("--minutes", type=some_minutes, help="for so long")
    parser.add_argument("--seed", type=int, help="repeat one, and say what did not hold")
    parser.add_argument("--workers", type=at_least_one, default=os.cpu_count())
    options = parser.parse_args()
    if options.seed is not None:
        failed = _told([play_and_shrink(options.seed)])
        print(f"seed {options.seed}: {'it fails' if failed else 'all holds'}")
        return failed
    seconds = options.minutes * 60 if options.minutes else (float("inf") if options.seeds else 60.0)
    started, failed, played = time.monotonic(), 0, 0
    told_s = started
    seeds = Seeds(options.seeds, started + seconds, ahead=2 * options.workers)
    # A Ctrl-C is for this process alone.
    with multiprocessing.Pool(options.workers, signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
        try:
            for found in pool.imap_unordered(play_and_shrink, seeds):
                seeds.is_played()
                played += 1
                failed += _told([found])
                if time.monotonic() - told_s > TOLD_S:
                    told_s = time.monotonic()
                    _say(played, failed, started)
        except KeyboardInterrupt:
            seeds.end()
    _say(played, failed, started)
    return 1 if failed else 0


class Seeds:
    """One after another, and only so far ahead of what was played: the pool would take all at once."""

    def __init__(self, most: int | None, until_s: float, *, ahead: int) -> None:
        self._most = most
        self._until_s = until_s
        self._ahead = threading.Semaphore(ahead)
        self._has_ended = False

    def __iter__(self) -> Iterator[int]:
        begins = random.SystemRandom().randrange(2**31)
        print(f"seeds from {begins} on; SEED={begins} repeats the first", flush=True)
        for number in count():
            if time.monotonic() > self._until_s or number == self._most:
                return
            self._ahead.acquire()
            if self._has_ended:
                return
            yield begins + number

    def is_played(self) -> None:
        self._ahead.release()

    def end(self) -> None:
        self._has_ended = True
        self._ahead.release()


def play_and_shrink(seed: int) -> Played:
    trace = draw_trace(seed)
    violations = play(trace)
    if not violations:
        return Played(seed)
    checker = violations[0].checker

    def fails(shorter: Trace) -> bool:
        return any(each.checker == checker for each in play(shorter)[:1])

    return Played(seed, violations[0], shrink(trace, fails))


def _told(all_played: list[Played]) -> int:
    """How many have failed."""
    failed = [played for played in all_played if played.violation and played.trace]
    for played in failed:
        assert played.violation is not None
        assert played.trace is not None
        name = f"{played.violation.checker.replace(' ', '-')}-{played.seed}.json"
        KEPT.mkdir(parents=True, exist_ok=True)
        (KEPT / name).write_text(played.trace.dump())
        print(f"seed {played.seed}: {played.violation.checker}: {played.violation.what[:300]}", flush=True)
        print(
            f"  {len(played.trace.actions)} actions are left of it, in tests/regressions/system/{name}",
            flush=True,
        )
    return len(failed)


def _say(played: int, failed: int, started: float) -> None:
    rate = played / (time.monotonic() - started)
    print(f"{played} seeds, {rate:.1f} a second, {failed} failed", flush=True)


if __name__ == "__main__":
    sys.exit(main())
