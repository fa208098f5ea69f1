"""What each decision does to its object: one idempotent call, and how to see whether it was carried out.

An effect knows its object and nothing of retries, queues or logs; `settle` drives it. `write` makes the call
under a precondition that fails when the object is no longer what the decision was about. `compare` reads the
object and says what became of the decision, or None when it has not been carried out yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

from sluice.events import Result
from sluice.values import DecisionId

from sluice_actuator.kube import Answer, Cluster, Unreachable


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a decision, and in words why."""

    result: Result
    message: str = ""


GONE: Final = Outcome("Gone", "the object is gone, or another bears its name")


class Effect(Protocol):
    #: Whether the first write needs no look at the object.
    blind: bool
    #: Refusals for now are borne at least until then.
    patient_until_ms: int

    async def write(self, now_ms: int) -> Answer: ...

    async def compare(self) -> Outcome | None: ...


async def read(cluster: Cluster, path: str) -> dict[str, Any] | None:
    """The object, or None when there is none; Unreachable when the API server does not say."""
    answer = await cluster.get(path)
    if answer.status == 404:
        return None
    if not answer.ok:
        raise Unreachable(f"GET {path}: {answer.status} {answer.message}")
    found: dict[str, Any] = answer.json()
    return found


def carried_by(text: str | None) -> DecisionId | None:
    return DecisionId.parse(text) if text else None


def judge_carried(carried: DecisionId | None, identity: DecisionId) -> Outcome | None:
    if carried is None or carried < identity:
        return None
    if carried == identity:
        return Outcome("AlreadyApplied", "the object carries this decision")
    return Outcome("Superseded", f"the object carries the later decision {carried}")
