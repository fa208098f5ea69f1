"""What a run is made of: actions at their times. A seed makes a list of them; a shorter list is a run as well."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from simulation.system.run import System

#: Runs that have failed, as files.
KEPT: Final = Path(__file__).parents[2] / "regressions" / "system"
#: What an action does.
Act = Callable[..., None]
#: Draws what an action is told.
Draw = Callable[[Random], dict[str, Any]]


@dataclass(frozen=True)
class Kind:
    act: Act
    draw: Draw
    weight: int
    is_trouble: bool


KINDS: Final[dict[str, Kind]] = {}


def workload(weight: int, draw: Draw) -> Callable[[Act], Act]:
    """A kind of action that tenants and administrators take; it bears its function's name."""
    return _kind(weight, draw, is_trouble=False)


def trouble(weight: int, draw: Draw) -> Callable[[Act], Act]:
    """A kind of action that nobody wants."""
    return _kind(weight, draw, is_trouble=True)


def _kind(weight: int, draw: Draw, *, is_trouble: bool) -> Callable[[Act], Act]:
    def add(act: Act) -> Act:
        KINDS[act.__name__] = Kind(act, draw, weight, is_trouble)
        return act

    return add


@dataclass(frozen=True)
class Action:
    at_s: float
    kind: str
    told: dict[str, Any]

    def take(self, system: System) -> None:
        KINDS[self.kind].act(system, **self.told)


@dataclass(frozen=True)
class Trace:
    """A run: what its servers and services draw from, and what happens in it."""

    seed: int
    lasts_s: float
    actions: tuple[Action, ...] = field(default=())

    def dump(self) -> str:
        lines = [json.dumps([each.at_s, each.kind, each.told]) for each in self.actions]
        actions = "[\n  " + ",\n  ".join(lines) + "\n ]" if lines else "[]"
        return f'{{\n "seed": {self.seed},\n "lasts_s": {self.lasts_s},\n "actions": {actions}\n}}\n'

    @classmethod
    def load(cls, text: str) -> Trace:
        found = json.loads(text)
        actions = tuple(Action(at_s, kind, told) for at_s, kind, told in found["actions"])
        return cls(found["seed"], found["lasts_s"], actions)


#: The first actions come when the system stands.
BEGINS_S: Final = 8.0


def draw_trace(seed: int) -> Trace:
    """Some kinds of trouble are left out in each run, or one would hide what another does."""
    rng = Random(f"{seed}/trace")
    lasts_s = round(rng.uniform(30, 90), 1)
    wanted = [name for name, kind in KINDS.items() if not kind.is_trouble]
    unwanted = [name for name, kind in KINDS.items() if kind.is_trouble]
    unwanted = rng.sample(unwanted, rng.randint(1, min(6, len(unwanted))))
    drawn = [
        *_draw(rng, wanted, rng.randint(8, 40), lasts_s),
        *_draw(rng, unwanted, rng.randint(0, 10), lasts_s),
    ]
    return Trace(seed, lasts_s, tuple(sorted(drawn, key=lambda action: action.at_s)))


def _draw(rng: Random, kinds: list[str], count: int, lasts_s: float) -> list[Action]:
    chosen = rng.choices(kinds, [KINDS[name].weight for name in kinds], k=count)
    return [
        Action(round(rng.uniform(BEGINS_S, BEGINS_S + lasts_s), 3), name, KINDS[name].draw(rng))
        for name in chosen
    ]
