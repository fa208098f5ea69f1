"""Keeps what the last release leaves behind, its records and a ledger in the middle of its work, for later versions.

`PYTHONPATH=tests:tests/e2e:tests/integration python -m last_release` makes the files anew, with the services of
`releases.LAST` on a stack of its own; to be run once behind each release.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from audit import Audit
from cluster import Tenants, node, observed, pod, pool, queue
from cluster_api import Api
from redis import Redis
from releases import programs_of_the_last
from sluice_local import Stack
from sluice_local.services import SERVICES

from last_release import RECORDS, keep_ledger

#: Statuses are written, and ticks pass.
SETTLES_S = 5.0


def main() -> None:
    with TemporaryDirectory() as state, TemporaryDirectory() as release:
        os.environ["XDG_STATE_HOME"] = state
        old = programs_of_the_last(Path(release))
        stack = Stack("sample", say=print)
        stack.up()
        try:
            for service in SERVICES:
                stack.start(service, instance=f"old-{service}", programs=old)
            work(stack)
            stack.stop("old-scheduler")
            keep_ledger(Redis.from_url(stack.endpoints.redis, decode_responses=True))
            Audit(stack).report(RECORDS)
        finally:
            stack.down(purge=True)


def work(stack: Stack) -> None:
    """Two queues want more than there is: pods that run, that end, that wait, and that were taken back."""
    tenants = Tenants(Api(stack.endpoints))
    tenants.provide(pool(), node("n0", cpu="10"), queue("ant"), queue("bee"))
    tenants.settle("ant", "bee")
    with observed(stack.endpoints, "ant", "bee") as seen:
        for number in range(3):
            tenants.submit("ant", pod(f"ends{number}", run_for="1s"))
        for number in range(12):
            tenants.submit("ant", pod(f"stays{number}"))
        seen.wait_for(lambda s: len(s.opened) >= 13, seconds=60)
        for number in range(4):
            tenants.submit("bee", pod(f"comes{number}"))
        seen.wait_for(lambda s: len(s.opened) >= 17, seconds=60)
    time.sleep(SETTLES_S)


if __name__ == "__main__":
    main()
