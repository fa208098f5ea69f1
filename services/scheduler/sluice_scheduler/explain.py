"""`sluice-explain`: why something waits. `sluice explain` runs it.

It reads the ledger, and works out from it the state that a scheduler which takes over now would begin with.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from sluice import settings as sluice_settings
from sluice.settings import Settings

from sluice_scheduler.core.explain import Answer, keys_of, waiting, why
from sluice_scheduler.core.fair import FairFigures
from sluice_scheduler.core.state import State
from sluice_scheduler.installed import installed_policies
from sluice_scheduler.ledger.redis import RedisLedger
from sluice_scheduler.ports import LedgerError

#: So many claims of a queue are told about.
MOST: Final = 20


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="sluice explain",
        description="Say why something waits, where it stands, and when it may be served: by how fast its "
        "queue's pods lately ended, and nothing where there is no ground for an estimate.",
    )
    parser.add_argument("name", metavar="NAME", help="a queue, or NAMESPACE/NAME of a pod or an application")
    name = parser.parse_args(arguments).name
    try:
        states = asyncio.run(_states(sluice_settings.load()))
    except LedgerError as error:
        print(f"sluice explain: {error}", file=sys.stderr)
        return 1
    told = [line for state in states for line in explain(state, name)]
    if not told:
        print(
            f"sluice explain: no queue, pod or application {name} is known; what could not be read is in "
            "`sluice audit dead-letters`",
            file=sys.stderr,
        )
        return 1
    print("\n".join(told))
    return 0


async def _states(settings: Settings) -> list[State]:
    """Of every cell whose ledger has begun."""
    ledger = RedisLedger(settings.redis)
    policies = installed_policies()
    try:
        loaded = [await ledger.load(cell) for cell in settings.cells]
    finally:
        await ledger.close()
    return [State(policies, entities) for entities, _ in loaded if entities]


def explain(state: State, name: str) -> Iterator[str]:
    namespace, slash, own = name.partition("/")
    fair = FairFigures(state)
    if slash:
        yield from (tell(state, key, why(state, key, fair)) for key in keys_of(state, namespace, own))
    elif state.forest.branch(name) is not None:
        keys = waiting(state, name)
        wait = f"{len(keys)} claim{'s wait' if len(keys) != 1 else ' waits'}" if keys else "nothing waits"
        yield f"queue {name}: {wait}"
        yield from (tell(state, key, why(state, key, fair)) for key in keys[:MOST])
        if len(keys) > MOST:
            yield f"and {len(keys) - MOST} more"


def tell(state: State, key: str, answer: Answer) -> str:
    account = state.workloads.get(key) or state.pods.get(key)
    named = f"{account.kind} {account.namespace}/{account.name}" if account else key
    place = f", number {answer.position} in its line" if answer.position else ""
    when = f", about {_when(answer.eta_ms - state.cell.time_ms, answer.eta_ms)}" if answer.eta_ms else ""
    return f"{named}{place}{when}: {answer.reason}: {answer.sentence}"


def _when(in_ms: int, at_ms: int) -> str:
    """In seconds, and on the clock."""
    clock = datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%H:%M:%SZ")
    return f"in {max(0, in_ms) // 1000} s ({clock})"


if __name__ == "__main__":
    sys.exit(main())
