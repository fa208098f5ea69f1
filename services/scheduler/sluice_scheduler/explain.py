"""`sluice-explain`: why something waits. `sluice explain` runs it.

It reads the ledger, and works out from it the state that a scheduler which takes over now would begin with.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from sluice import settings as sluice_settings
from sluice.programs import START_OR_POINT, ends_quietly
from sluice.settings import Settings

from sluice_scheduler.core.reports.explain import Answer, by_application, keys_of, pausing, waiting, why
from sluice_scheduler.core.state.members import application_by_claim
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.accounts import Pod, Workload
from sluice_scheduler.installed import installed_policies
from sluice_scheduler.ledger.redis import RedisLedger
from sluice_scheduler.ports import LedgerError, SilentLedgerError

#: So many claims of a queue are told about.
MOST: Final = 20


@ends_quietly()
def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    settings = sluice_settings.load()
    if options.cell is not None and options.cell not in settings.cells:
        known = ", ".join(settings.cells)
        print(f"sluice explain: there is no cell {options.cell}; there are {known}", file=sys.stderr)
        return 1
    cells = list(settings.cells) if options.cell is None else [options.cell]
    try:
        states = asyncio.run(_states(settings, cells))
    except SilentLedgerError as error:
        remedy = START_OR_POINT.format(variable="SLUICE_REDIS")
        print(f"sluice explain: {error}\n  remedy: {remedy}", file=sys.stderr)
        return 1
    except LedgerError as error:
        print(f"sluice explain: {error}", file=sys.stderr)
        return 1
    found = {cell: told for cell, state in states.items() if (told := look_up(state, options.name))}
    if not found:
        print(
            f"sluice explain: no queue, pod or application {options.name} is known; what could not be read "
            "is in `sluice audit dead-letters`",
            file=sys.stderr,
        )
        return 1
    if options.json:
        print(json.dumps([as_json(cell, told) for cell, told in found.items()], ensure_ascii=False))
    else:
        print("\n".join(line for told in found.values() for line in as_text(told)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sluice explain",
        description="Say why something waits, where it stands, and when it may be served: by how fast its "
        "queue's pods lately ended, and nothing where there is no ground for an estimate.",
    )
    parser.add_argument("name", metavar="NAME", help="a queue, or NAMESPACE/NAME of a pod or an application")
    parser.add_argument("--json", action="store_true", help="for machines: a list with an object a cell")
    parser.add_argument("--cell", metavar="NAME", help="only this cell (default: all of SLUICE_CELLS)")
    return parser


async def _states(settings: Settings, cells: Iterable[str]) -> dict[str, State]:
    """Of every cell whose ledger has begun."""
    ledger = RedisLedger(settings.redis)
    policies = installed_policies()
    try:
        loaded = {cell: await ledger.load(cell) for cell in cells}
    finally:
        await ledger.close()
    return {cell: State(policies, entities) for cell, (entities, _) in loaded.items() if entities}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What one cell says of a name."""

    name: str
    state: State
    answers: Mapping[str, Answer]  # by key
    #: If it is the name of a queue: how many claims wait, and what else pauses; as how many claims each waits; and of
    #: how many no answer is told.
    waiting: int | None
    pausing: int = 0
    claims: Mapping[str, int] = field(default_factory=dict)
    more: int = 0


def look_up(state: State, name: str) -> Told | None:
    """None if the cell knows nothing of that name."""
    namespace, slash, own = name.partition("/")
    if slash:
        keys = keys_of(state, namespace, own)
        return Told(name=name, state=state, answers=_answers(state, keys), waiting=None) if keys else None
    if state.forest.branch(name) is None:
        return None
    waits, pauses = waiting(state, name), pausing(state, name)
    claims = by_application(state, waits)
    keys = list(dict.fromkeys([*claims, *pauses]))
    return Told(
        name=name,
        state=state,
        answers=_answers(state, keys[:MOST]),
        waiting=len(waits),
        pausing=len(pauses),
        claims=claims,
        more=len(keys[MOST:]),
    )


def _answers(state: State, keys: Iterable[str]) -> dict[str, Answer]:
    return {key: why(state, key) for key in keys}


def explain(state: State, name: str) -> Iterator[str]:
    """In lines for people; none if nothing of that name is known."""
    told = look_up(state, name)
    if told is not None:
        yield from as_text(told)


def as_text(told: Told) -> Iterator[str]:
    if told.waiting is not None:
        yield f"queue {told.name}: {_in_words(told.waiting, told.pausing)}"
    yield from (_tell(told, key, answer) for key, answer in told.answers.items())
    if told.more:
        yield f"and {told.more} more"


def _in_words(waits: int, pauses: int) -> str:
    line = f"{waits} claim{'s wait' if waits != 1 else ' waits'}"
    if not pauses:
        return line if waits else "nothing waits"
    others = f"{pauses} application{'s or pods pause' if pauses != 1 else ' or pod pauses'}"
    return f"{line}, {others}" if waits else f"nothing waits in line, {others}"


def as_json(cell: str, told: Told) -> dict[str, Any]:
    shown: dict[str, Any] = {"cell": cell, "name": told.name}
    if told.waiting is not None:
        shown |= {"waiting": told.waiting, "pausing": told.pausing}
    return shown | {"answers": [_answer_as_json(told, *each) for each in told.answers.items()]}


def _answer_as_json(told: Told, key: str, answer: Answer) -> dict[str, Any]:
    """`position` and `etaMs` are null where there is no line, and no ground for an estimate."""
    shown: dict[str, Any] = {"key": key}
    if key in told.claims:
        shown["claims"] = told.claims[key]
    account = _account(told.state, key)
    if account is not None:
        named = {"kind": account.kind, "cluster": account.cluster, "namespace": account.namespace}
        shown |= named | {"name": account.name, "queue": account.queue}
    return shown | {
        "reason": answer.reason,
        "sentence": answer.sentence,
        "position": answer.position,
        "etaMs": answer.eta_ms,
    }


def _account(state: State, key: str) -> Workload | Pod | None:
    return state.workloads.get(key) or state.pods.get(key)


def _tell(told: Told, key: str, answer: Answer) -> str:
    state, several = told.state, told.claims.get(key, 1)
    claims = f" ({several} claims)" if several > 1 else ""
    place = f", number {answer.position} in {answer.line}'s line" if answer.position else ""
    when = f", about {_when(answer.eta_ms - state.cell.time_ms, answer.eta_ms)}" if answer.eta_ms else ""
    return f"{_named(state, key)}{claims}{place}{when}: {answer.reason}: {answer.sentence}"


def _named(state: State, key: str) -> str:
    account = _account(state, key)
    if account is not None:
        return f"{account.kind} {account.namespace}/{account.name}"
    group = application_by_claim(state, key)
    if group is None:
        return key
    _, namespace, title = group.key
    kind, _, name = title.partition("/")
    return f"{kind} {namespace}/{name}"


def _when(in_ms: int, at_ms: int) -> str:
    """In seconds, and on the clock."""
    clock = datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%H:%M:%SZ")
    return f"in {max(0, in_ms) // 1000} s ({clock})"


if __name__ == "__main__":
    sys.exit(main())
