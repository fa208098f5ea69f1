"""The whole system in one process: servers, services, a cluster that lives, and somebody who watches it all."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from simulation.system.api import ApiServer, Faults
from simulation.system.cluster import Controllers
from simulation.system.kafka import Broker
from simulation.system.loop import VirtualLoop
from simulation.system.network import Network
from simulation.system.processes import Serve, Servers, Supervisor, act, schedule, watch
from simulation.system.redis import RedisServer
from sluice.settings import Settings
from sluice.vocabulary import API_VERSION, MANAGED_LABEL, QUEUE_LABEL
from sluice_watcher.kinds import watched_kinds

#: Often, since logs are short here.
SNAPSHOT_RECORDS: Final = 150
SERVICES: Final[dict[str, Serve]] = {
    "watcher": watch,
    "scheduler-0": schedule,
    "scheduler-1": schedule,
    "actuator-0": act,
    "actuator-1": act,
}
#: The queues, each with a namespace of its name; and the nodes of the pool, each with so many CPUs.
QUEUES: Final = ("a", "b")
POOLED: Final = ("one", "two")
CPU: Final = 4
APPLICATIONS: Final = ("DynamicWorkload", "Job")


class System:
    def __init__(self, seed: int, settings: Settings | None = None) -> None:
        self.settings = settings or Settings(applications=APPLICATIONS, snapshot_records=SNAPSHOT_RECORDS)
        self.loop = loop = VirtualLoop()
        kinds = watched_kinds({}, self.settings.applications)
        network = Network(loop, Random(f"{seed}/network"))
        self.api = ApiServer(loop, *(kind.path for kind in kinds))
        self.broker = Broker(loop, network, Random(f"{seed}/kafka"), self.settings)
        self.servers = Servers(
            loop=loop,
            network=network,
            api=self.api,
            faults=Faults(loop, Random(f"{seed}/api")),
            broker=self.broker,
            redis=RedisServer(),
            settings=self.settings,
        )
        Controllers(loop, self.api, Random(f"{seed}/cluster"))
        self.services = {
            name: Supervisor(self.servers, name, serve, Random(f"{seed}/{name}"))
            for name, serve in SERVICES.items()
        }
        self._expire()

    def _expire(self) -> None:
        self.broker.expire()
        self.loop.call_later(0.5, self._expire)

    def make(self, path: str, **body: Any) -> None:
        self.api.make(path, body)

    def furnish(self) -> None:
        """A pool with two nodes, and two queues with a namespace each."""
        self.make("/api/v1/namespaces/kube-system")
        self.make("/api/v1/namespaces/sluice-system")
        self.make(f"/apis/{API_VERSION}/resourcepools/p", spec={"nodeSelector": {"pool": "p"}})
        for name in POOLED:
            self.node(name, cpu=CPU)
        for name in QUEUES:
            self.make(f"/apis/{API_VERSION}/queues/{name}", spec={"namespaces": {"names": [name]}})
            self.namespace(name)

    def namespace(self, name: str) -> None:
        labels = {MANAGED_LABEL: "true", QUEUE_LABEL: name}
        self.make(f"/api/v1/namespaces/{name}", metadata={"labels": labels})

    def node(self, name: str, *, cpu: int) -> None:
        status = {"allocatable": {"cpu": str(cpu), "pods": "110"}}
        self.make(f"/api/v1/nodes/{name}", metadata={"labels": {"pool": "p"}}, spec={}, status=status)

    def start(self) -> None:
        for service in self.services.values():
            service.start()


def pod(cpu: int, runs: float) -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": {"cpu": str(cpu)}}}
    return {"metadata": {"annotations": {"test/runs": str(runs)}}, "spec": {"containers": [container]}}
