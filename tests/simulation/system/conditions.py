"""What a run draws from its seed besides its actions: how small everything is, and a core that may raise."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from types import ModuleType
from typing import Any, Final
from unittest.mock import patch

from sluice.decisions import Decision
from sluice.events import Event, PodEvent
from sluice_actuator import worker
from sluice_scheduler import feed, owner, published, quarantine, snapshots
from sluice_scheduler.core import State, step

#: A pod of such a name makes the core raise, as a defect of the core would.
POISON: Final = "poison"
#: What bounds memory and the length of a step, and what else it may be: each bound is to be met in some runs.
BOUNDS: Final[tuple[tuple[ModuleType, str, int], ...]] = (
    (owner, "BATCH_MAX", 5),
    (feed, "FEED_MAX", 20),
    (quarantine, "PIECE", 7),
    (published, "PIECE", 20),
    (snapshots, "ROWS_MAX", 5),
    (worker, "WAITING_MAX", 3),
    (worker, "IN_FLIGHT_MAX", 2),
)
SMALL: Final = 0.25


@contextmanager
def drawn_from(seed: int) -> Iterator[None]:
    rng = Random(f"{seed}/conditions")
    with ExitStack() as changed:
        for module, name, small in BOUNDS:
            if rng.random() < SMALL:
                changed.enter_context(patch.object(module, name, small))
        changed.enter_context(patch.object(quarantine, "step", _step))
        yield


def _step(state: State, event: Event, **options: Any) -> list[Decision]:
    if isinstance(event, PodEvent) and _makes_no_sense(state, event):
        raise ValueError(f"{event.name} makes no sense")
    return step(state, event, **options)


def _makes_no_sense(state: State, pod: PodEvent) -> bool:
    if not pod.name.startswith(POISON) or pod.change == "DELETED":
        return False
    return not state.is_aside(f"pod/{pod.cluster}/{pod.uid}")


@contextmanager
def silence() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
