"""Carries an effect out, whatever the API server answers, and says what became of it.

| answer to the write         | then                                                                       |
|-----------------------------|----------------------------------------------------------------------------|
| 2xx                         | Applied                                                                    |
| 404                         | Gone                                                                       |
| 429                         | it was not carried out: wait, write again                                  |
| 409, 5xx, none at all       | it may have been: read, compare; only if it was not, wait and write again  |
| any other                   | a refusal, unless it had been carried out before: read, compare; Rejected  |
| the call can't be made      | the same: an object that it is made of makes no sense                      |

Writes are bounded (then Failed), reads are not: nothing is called failed before somebody has looked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from random import Random
from typing import Final

from sluice.texts import cut

from sluice_actuator.effects import GONE, Effect, Outcome
from sluice_actuator.kube import Answer, Unreachable

#: Writes, past the time that an effect is patient until, before a decision is given up.
WRITES_MAX: Final = 10
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 10.0
#: What reading an object of somebody else's may raise.
NONSENSE: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
FENCED_OUT: Final = Outcome("Superseded", "a fence of a later epoch has shut it out")


async def settle(
    effect: Effect,
    *,
    now_ms: Callable[[], int],
    pause: Callable[[float], Awaitable[None]],
    barred: Callable[[], bool],
    random: Random,
) -> Outcome:
    """`barred` says whether the decision may make no further call."""
    settlement = _Settlement(effect, now_ms=now_ms, barred=barred)
    for pause_s in _pauses(random):
        outcome = await settlement.advance()
        if outcome is not None:
            return outcome
        await pause(settlement.wait_s(pause_s))
    raise AssertionError("the pauses do not end")


class _Settlement:
    """One effect on its way: what is known of it, and what is to be tried next."""

    def __init__(self, effect: Effect, *, now_ms: Callable[[], int], barred: Callable[[], bool]) -> None:
        self._effect = effect
        self._now_ms = now_ms
        self._barred = barred
        self._certain = effect.blind  # that it has not been carried out
        self._writes = 0
        self._trouble = ""
        self._asked_wait_s = 0.0

    async def advance(self) -> Outcome | None:
        """What became of the effect, or None: wait, and advance again."""
        self._asked_wait_s = 0.0
        try:
            return await self._look() or self._give_up() or await self._write()
        except Unreachable as error:
            self._certain, self._trouble = False, str(error)
            return None

    def wait_s(self, pause_s: float) -> float:
        """As long as the API server asked for, but not past the moment when patience ends."""
        wait_s = max(pause_s, self._asked_wait_s)
        patient_s = (self._effect.patient_until_ms - self._now_ms()) / 1000
        return min(wait_s, patient_s) if patient_s > 0 else wait_s

    async def _look(self) -> Outcome | None:
        seen = None if self._certain else await self._effect.compare()
        self._certain = True
        return seen

    def _give_up(self) -> Outcome | None:
        if self._barred():
            return FENCED_OUT
        if self._writes >= WRITES_MAX:
            return Outcome("Failed", f"given up after {WRITES_MAX} attempts: {self._trouble}")
        return None

    async def _write(self) -> Outcome | None:
        now_ms = self._now_ms()
        if now_ms >= self._effect.patient_until_ms:
            self._writes += 1
        try:
            answer = await self._effect.write(now_ms)
        except NONSENSE as error:
            return await self._refused(f"it can't be written: {type(error).__name__}: {cut(str(error))}")
        if answer.ok:
            return Outcome("Applied")
        if answer.status == 404:
            return GONE
        self._trouble = f"{answer.status} {answer.message}"
        self._certain = answer.status == 429
        self._asked_wait_s = answer.retry_after_s or 0.0
        return await self._refused(self._trouble) if _is_refusal(answer) else None

    async def _refused(self, why: str) -> Outcome:
        self._certain = False
        return await self._look() or Outcome("Rejected", why)


def _is_refusal(answer: Answer) -> bool:
    """It would be refused again."""
    return 400 <= answer.status < 500 and answer.status not in (409, 429)


def _pauses(random: Random) -> Iterator[float]:
    """Twice as long each time, up to a bound, and never in step with others."""
    longest_s = FIRST_PAUSE_S
    while True:
        yield longest_s * random.uniform(0.5, 1.0)
        longest_s = min(2 * longest_s, LONGEST_PAUSE_S)
