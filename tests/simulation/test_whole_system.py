"""The whole system in one process: the real services between simulated servers, in simulated time."""

from __future__ import annotations

from simulation.system.checkers import Witness, check_at_rest
from simulation.system.cluster import PODS
from simulation.system.run import System, pod


def test_pods_of_two_queues_go_through() -> None:
    system = System(seed=1)
    witness = Witness(system)
    system.furnish()
    system.start()
    for number in range(20):
        path = f"/api/v1/namespaces/{'ab'[number % 2]}/pods/p{number}"
        body = pod(1 + number % 2, runs=5)
        system.loop.call_later(5 + number * 0.3, system.api.make, path, body)
    system.loop.run_until(60)
    check_at_rest(witness)
    assert witness.violations == []
    assert [each["status"]["phase"] for each in system.api.of(PODS)] == ["Succeeded"] * 20
