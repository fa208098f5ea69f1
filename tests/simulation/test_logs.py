"""Logs of events that once stopped a cell are played to their end."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from pathlib import Path

import pytest
from sluice.codec import EVENTS, UnreadableRecordError
from sluice_scheduler.core import State, step
from sluice_scheduler.installed import installed_policies

LOGS = sorted((Path(__file__).parents[1] / "logs").glob("*.jsonl.gz"))
assert LOGS


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name.partition(".")[0])
def test_nothing_in_it_stops_a_cell(log: Path) -> None:
    """A Job whose pods were all given back was admitted with no pool, and a failed pod's share reserved one."""
    state, decided = State(installed_policies()), 0
    with gzip.open(log, "rt") as lines:
        for line in lines:
            record = json.loads(line)
            if record["p"] == 0:
                headers = [(name, value.encode("latin1")) for name, value in record["h"]]
                with suppress(UnreadableRecordError):  # the churn writes such too
                    decided += len(step(state, EVENTS.decode(headers, record["v"].encode())))
    assert decided > 1_000
