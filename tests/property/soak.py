"""Random histories for as long as one says: `make soak-core MINUTES=60`.

Each round has a fresh seed, which is printed. What fails is shrunk and kept under tests/regressions, where
`make test` plays it from then on (test_regressions.py).
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path
from typing import Final

from asked import some_minutes
from hypothesis import HealthCheck, Phase, given, seed, settings
from properties import Content
from registry import HISTORIES, Check

REGRESSIONS: Final = Path(__file__).parents[1] / "regressions"
_ROUND: Final = 20  # histories of one seed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="make soak-core")
    parser.add_argument("--minutes", type=some_minutes, default=60)
    parser.add_argument("--seed", type=int, help="play only the round of this seed")
    arguments = parser.parse_args()
    until = time.monotonic() + arguments.minutes * 60
    failures = rounds = 0
    while time.monotonic() < until:
        number = random.SystemRandom().randrange(2**31) if arguments.seed is None else arguments.seed
        failed = play_round(number, until)
        rounds += 1
        failures += len(failed)
        print(f"seed {number}: {', '.join(failed) or 'all holds'}", flush=True)
        if arguments.seed is not None:
            break
    print(f"{rounds} rounds of {_ROUND} histories, {failures} failures", flush=True)
    return 1 if failures else 0


def play_round(number: int, until: float) -> list[str]:
    """The properties that failed; of each the smallest history that shows it is kept."""
    failed = []
    for check in HISTORIES:
        if time.monotonic() > until:
            break
        found = smallest_failure(check, number)
        if found is not None:
            keep(check.__name__, number, found)
            failed.append(check.__name__)
    return failed


def smallest_failure(check: Check, number: int) -> Content | None:
    last: list[Content] = []

    @seed(number)
    @settings(
        max_examples=_ROUND,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(HISTORIES[check]())
    def play(content: Content) -> None:
        try:
            check(content)
        except Exception:
            last.append(content)  # the last one is the smallest
            raise

    try:
        play()
    except Exception as error:
        if not last:
            raise
        print(f"{check.__name__}: {type(error).__name__}: {str(error)[:500]}", file=sys.stderr)
    return last[-1] if last else None


def keep(name: str, number: int, content: Content) -> None:
    REGRESSIONS.mkdir(exist_ok=True)
    file = REGRESSIONS / f"{name.replace('_', '-')}-{number}.json"
    file.write_text(json.dumps({"property": name, "seed": number, "history": content}, indent=1) + "\n")
    print(f"kept as {file.relative_to(REGRESSIONS.parents[1])}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
