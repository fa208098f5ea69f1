"""The whole product on an embedded stack of its own."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from audit import Audit
from cluster import Tenants
from cluster_api import Api, eventually
from sluice_local import Stack

SERVICES = ("watcher", "scheduler", "actuator")
FAILURES = Path(__file__).parents[2] / "build" / "failures"
KINDS = {
    "queues": "/apis/sluice.dev/v1alpha1/queues",
    "resourcepools": "/apis/sluice.dev/v1alpha1/resourcepools",
    "nodes": "/api/v1/nodes",
}


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        stack = Stack("e2e", say=print)
        stack.up(services=True)
        yield stack
        stack.down(purge=True)


@pytest.fixture
def tenants(running: Stack) -> Iterator[Tenants]:
    """An empty cluster with all services up; emptied again afterwards."""
    running.up(services=True)
    api = Api(running.endpoints)
    tenants = Tenants(api)
    yield tenants
    running.up(services=True)  # whatever the test has killed
    for namespace in tenants.settled:
        api.delete(f"/api/v1/namespaces/{namespace}/pods?gracePeriodSeconds=0")
        api.delete(f"/api/v1/namespaces/{namespace}")
    for path in KINDS.values():
        api.delete(path)
    for namespace in tenants.settled:
        eventually(lambda n=namespace: api.get(f"/api/v1/namespaces/{n}").status == 404, seconds=60)


@pytest.fixture
def audit(running: Stack) -> Audit:
    return Audit(running)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test leaves files of all that happened, and shows how the services' logs end and what there is
    in its namespaces: the stack is gone when anybody could look.
    """
    report = yield
    stack = getattr(item, "funcargs", {}).get("running")
    if report.failed and call.when == "call" and isinstance(stack, Stack):
        folder = FAILURES / f"{item.name}-{os.environ['SLUICE_TEST_SEED']}"
        Audit(stack).export(stack, folder)
        report.sections.append(("what happened", f"topics, ledger and logs are in {folder}"))
        for log in stack.logs():
            if log.parent.name.startswith(SERVICES):
                report.sections.append(
                    (f"log of {log.parent.name}", "\n".join(log.read_text().splitlines()[-25:]))
                )
    tenants = getattr(item, "funcargs", {}).get("tenants")
    if report.failed and call.when == "call" and isinstance(tenants, Tenants):
        report.sections += [(f"namespace {each}", tenants.described(each)) for each in tenants.settled]
    return report
