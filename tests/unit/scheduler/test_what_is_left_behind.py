"""What has come and gone leaves nothing behind: a cell that runs for years knows what is there."""

from __future__ import annotations

from applications_of_one_cell import Applications, pod_set
from sluice.events import NamespaceEvent, NodeEvent, NodeFacts, PoolEvent, PoolFacts, QueueEvent, QueueFacts


def test_applications_and_groups_of_pods() -> None:
    cell = Applications()
    cell.application("ray", pod_set("worker", 2, 1))
    cell.pods("w0", "w1", of="ray", pod_set="worker")
    cell.pods("g0", "g1", workload="group", group_size=2)
    cell.pods("waits", workload="other", group_size=2)
    cell.pass_seconds(1)
    assert len(cell.state.applications) == 3
    cell.delete_application("ray")
    cell.delete_pods("w0", "w1", "g0", "g1", "waits")
    cell.pass_seconds(2)
    assert cell.state.applications == {}


def test_an_application_without_a_pod_is_still_known() -> None:
    cell = Applications(cpu=0)
    cell.application("ray", pod_set("worker", 2, 1))
    cell.pass_seconds(2)
    assert len(cell.state.applications) == 1


def test_queues_namespaces_and_pools() -> None:
    cell = Applications("team", "other")
    cell.pool("elsewhere", cpu=1000)
    cell.pods("holds", tenant="other")
    cell.pods("waits", tenant="other", requests={"cpu": 99_000})
    cell.pods("chooses", tenant="other", queue="other", requests={"cpu": 99_000})
    cell.pass_seconds(1)
    cell.delete_pods("holds", "waits", "chooses")
    cell.tell(NamespaceEvent, "other", change="DELETED", managed=True, queue="other")
    cell.tell(QueueEvent, "other", change="DELETED", queue=QueueFacts())
    cell.tell(NodeEvent, "node-elsewhere", change="DELETED", node=NodeFacts(allocatable={}))
    cell.tell(PoolEvent, "elsewhere", change="DELETED", pool=PoolFacts())
    cell.pass_seconds(1)
    state = cell.state
    for index in (state.holders, state.waiting, state.units):
        assert "other" not in index
    for index in (state.bound, state.choosy):
        assert list(index) in ([], ["namespace/sim/namespace-team"])
    assert {dim[1] for dim in state.forest.root.rooms_of} == {"default"}
