"""The whole product on an embedded stack of its own."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator

import pytest
from audit import Audit, differences
from cluster import Tenants
from cluster_api import Api, eventually
from sluice_local import Stack
from stacks import Stacks

SERVICES = ("watcher", "scheduler", "actuator")
KINDS = {
    "queues": "/apis/sluice.dev/v1alpha1/queues",
    "resourcepools": "/apis/sluice.dev/v1alpha1/resourcepools",
    "nodes": "/api/v1/nodes",
}
STACKS = pytest.StashKey[Stacks]()
TENANTS = pytest.StashKey[Tenants]()


@pytest.fixture(scope="session")
def stacks(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Stacks]:
    with Stacks().in_folder(tmp_path_factory.mktemp("state")) as stacks:
        pytestconfig.stash[STACKS] = stacks
        yield stacks


@pytest.fixture
def running(stacks: Stacks, request: pytest.FixtureRequest) -> Stack:
    """All servers and services, which are well, beside the operators that the test's module names: those would
    also do the work of simulated ones."""
    return stacks.well(getattr(request.module, "OPERATORS", ()))


@pytest.fixture
def tenants(running: Stack, stacks: Stacks, request: pytest.FixtureRequest) -> Iterator[Tenants]:
    """An empty cluster with all services up; emptied again afterwards."""
    api = Api(running.endpoints)
    tenants = request.node.stash[TENANTS] = Tenants(api)
    yield tenants
    if stacks.is_suspect:
        return
    running.up(services=True)  # whatever the test has killed
    for namespace in tenants.settled:
        api.delete(f"/api/v1/namespaces/{namespace}/pods?gracePeriodSeconds=0")
        api.delete(f"/api/v1/namespaces/{namespace}")
    for path in KINDS.values():
        api.delete(path)
    for namespace in tenants.settled:
        eventually(lambda n=namespace: api.get(f"/api/v1/namespaces/{n}").status == 404, seconds=60)
    assert differences(running) == []


@pytest.fixture
def audit(running: Stack) -> Audit:
    return Audit(running)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that fails in any of its phases leaves a bug report, and shows how the services' logs end and what
    there is in its namespaces. Its stack is not used again.
    """
    report = yield
    stacks = item.config.stash.get(STACKS, None)
    if not report.failed or stacks is None or stacks.is_suspect:
        return report
    tenants = item.stash.get(TENANTS, None)
    if tenants is not None:
        report.sections += [(f"namespace {each}", tenants.described(each)) for each in tenants.settled]
    for log in stacks.logs():
        if log.parent.name.startswith(SERVICES):
            report.sections.append(
                (f"log of {log.parent.name}", "\n".join(log.read_text().splitlines()[-25:]))
            )
    folder = stacks.report(f"{item.name}-{os.environ['SLUICE_TEST_SEED']}", report.longreprtext)
    report.sections.append(("what happened", f"topics, ledger and logs are in {folder}"))
    return report
