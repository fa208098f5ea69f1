"""The commands: read, look, print. What a command returns is the exit code: whether something is wrong.

A module is loaded when one of its commands is given: Kafka's client takes longer to load than Redis answers.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Self

from pydantic_core import to_json
from rich.console import Console
from sluice.settings import Settings, load

from sluice_console.errors import ConsoleError
from sluice_console.redis_reader import RedisReader, Snapshot


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Left to `main`: rich would exit with a code of its own."""
        raise BrokenPipeError


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    options: argparse.Namespace
    settings: Settings
    out: Console

    @classmethod
    def from_options(cls, options: argparse.Namespace) -> Self:
        out = _Console(highlight=False)
        if not out.is_terminal and "COLUMNS" not in os.environ:
            out.width = 1_000  # a file has no width
        return cls(options=options, settings=load(), out=out)

    @property
    def cells(self) -> list[str]:
        """Those that were asked for."""
        known = list(self.settings.cells)
        chosen = self.options.cell
        if chosen is None:
            return known
        if chosen not in known:
            raise ConsoleError(
                f"there is no cell {chosen}; there are {', '.join(known)}",
                remedy="name one of these, or add it to SLUICE_CELLS, as the services have it",
            )
        return [chosen]

    def print_json(self, shown: Any) -> None:
        sys.stdout.write(to_json(shown).decode() + "\n")

    def snapshots(self, kinds: Collection[str]) -> list[Snapshot]:
        """The ledger of each cell that has begun, of which there must be one."""
        reader = RedisReader(self.settings.redis)
        found = [reader.snapshot(cell, kinds) for cell in self.cells]
        snapshots = [snapshot for snapshot in found if snapshot is not None]
        if not snapshots:
            raise ConsoleError(
                f"there is no ledger of cell {' and cell '.join(self.cells)} yet: no scheduler took it over",
                remedy="start the services (make up); if they run, see the scheduler's /readyz and log, and "
                "that SLUICE_REDIS and SLUICE_CELLS are the same here and there",
            )
        return snapshots
