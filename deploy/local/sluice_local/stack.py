"""A stack: one Kafka, one Redis, one control plane and Sluice's services, under a name."""

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sluice_local import build, paths
from sluice_local.build import Artefact, Say
from sluice_local.cluster import Cluster
from sluice_local.component import Component
from sluice_local.errors import StackError
from sluice_local.kafka import USERNAME, Kafka
from sluice_local.kubectl import KUBECTL
from sluice_local.kubernetes import ADMIN, ApiServer, ControllerManager, Etcd, Kwok, Scheduler
from sluice_local.node import conditions
from sluice_local.node.real import RealNode
from sluice_local.operators import OPERATORS
from sluice_local.redis import Redis
from sluice_local.services import SERVICES, Service
from sluice_local.state import State

PARTS = ("kafka", "redis", "kubernetes")
OPTIONAL = ("kube-controller-manager", "kube-scheduler", "kwok")
# Set by `user_env` beside the endpoints, which are then a stack's own and not given by somebody else.
STACK_VARIABLE = "SLUICE_STACK"
#: Endpoints that stand in for servers of a stack's own.
GIVEN_VARIABLES = (
    "KUBECONFIG",
    "SLUICE_KAFKA",
    "SLUICE_KAFKA_USERNAME",
    "SLUICE_KAFKA_PASSWORD",
    "SLUICE_REDIS",
)
# Where `sluice` is installed, beside this package.
_PROGRAMS = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where the stack's servers are and how to log in. What there is not, or not yet, is empty."""

    kubeconfig: Path
    api_server: str
    ca_file: Path
    admin_token: str
    kafka: str
    kafka_username: str
    kafka_password: str
    redis: str


@dataclass(frozen=True, slots=True)
class Status:
    name: str
    pid: int | None
    address: str
    ready: bool
    memory_bytes: int


def forget_given_endpoints() -> None:
    """From here on stacks have servers of their own, whatever this process was told in its environment."""
    for name in (*GIVEN_VARIABLES, STACK_VARIABLE):
        os.environ.pop(name, None)


def _quiet(_: str) -> None:
    pass


class Stack:
    """Safe to use from several processes at once; its servers outlive all of them until `down`."""

    def __init__(
        self,
        name: str = "default",
        *,
        without: Iterable[str] = (),
        given: Mapping[str, str] | None = None,
        proxies: Mapping[str, int] | None = None,
        say: Say = _quiet,
    ) -> None:
        """`given`: endpoints in place of servers of its own; those of the environment unless told.
        `proxies`: of servers that services reach through one, the port of that."""
        if not re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", name):
            raise StackError(f"{name!r} can't name a stack: use small letters, digits and dashes.")
        self.name = name
        self.directory = paths.stacks() / name
        self._say = say
        self._without = _checked(without, (*PARTS, *OPTIONAL))
        self._given = _given_endpoints() if given is None else given
        self._state = State(self.directory)
        self._proxies = proxies or {}
        self._cluster = Cluster(self.directory, self._proxies.get("kube-apiserver", 0))
        self._kafka = Kafka(self._state, self._proxies.get("kafka", 0))
        self._redis = Redis(self._state)
        self._etcd = Etcd(self._state)
        self._api_server = ApiServer(self._state)
        self._clients: list[Component] = [
            client(self._state, self._api_server) for client in (ControllerManager, Scheduler, Kwok)
        ]
        self._operators: dict[str, list[Component]] = {
            operator: [process(self._state, self._api_server) for process in processes]
            for operator, processes in OPERATORS.items()
        }
        self._node = RealNode(self._state, self._api_server, say)
        servers: list[Component] = [self._kafka, self._redis, self._etcd, self._api_server, *self._clients]
        servers += [process for processes in self._operators.values() for process in processes]
        servers += self._node.components
        self._servers: dict[str, Component] = {server.name: server for server in servers}

    def build(self, operators: Iterable[str] = ()) -> None:
        """Build all that this stack may need, so that `up` takes seconds."""
        build.ensure(self._artefacts(set(PARTS) - self._without, self._belonging(operators)), self._say)

    def up(
        self, only: Iterable[str] = PARTS, *, services: bool = False, operators: Iterable[str] = ()
    ) -> None:
        """Start what does not run yet, building it first if need be, and return when all of it is ready. An
        operator belongs to the stack from then on."""
        wanted = _checked(only, PARTS) - self._without
        belonging = self._belonging(operators)
        if operators and "kubernetes" not in wanted:
            raise StackError(f"{', '.join(operators)} can't run without kubernetes: start that too.")
        lanes: dict[str, Callable[[], None]] = {
            "kafka": self._kafka_up,
            "redis": self._redis_up,
            "kubernetes": partial(self._kubernetes_up, belonging),
        }
        build.ensure(self._artefacts(wanted, belonging), self._say)
        with self._state.exclusive():
            _together(lane for part, lane in lanes.items() if part in wanted)
        if services:
            self.services_up()

    def services_up(self, names: Iterable[str] = SERVICES) -> None:
        wanted = _checked(names, SERVICES)
        with self._state.exclusive():
            _together(partial(self._start, self._service(name)) for name in wanted)

    def services_down(self, names: Iterable[str] = SERVICES) -> None:
        wanted = _checked(names, SERVICES)
        with self._state.exclusive():
            _together(partial(self._stop, self._service(name)) for name in wanted)

    def start(self, name: str, *, instance: str | None = None, programs: Path | None = None) -> None:
        """Start one server again, with its data and on its port; or one more instance of a service, be it of
        another version, whose programs are elsewhere."""
        component = self._servers.get(name) or self._service(name, instance, programs)
        with self._state.exclusive():
            self._start(component)

    def stop(self, name: str) -> None:
        """Ask one server or instance to end, and wait until it has."""
        with self._state.exclusive():
            self._stop(self._started(name))

    def kill(self, name: str) -> None:
        """End one server or instance as a crash would."""
        self._started(name).daemon.kill()

    def down(self, *, purge: bool = False) -> None:
        """End everything that runs; with purge, forget data, ports and credentials too."""
        with self._state.exclusive():
            self._node.down()
            if purge:
                _together(self._component(name).daemon.kill for name in self._names())
                shutil.rmtree(self.directory)
                return
            # Clients before their servers, so that nothing ends in a flood of lost connections.
            operators = [process for processes in self._operators.values() for process in processes]
            clients = {client.name for client in (*self._clients, *operators)}
            instances = set(self._names()) - self._servers.keys()
            servers = self._servers.keys() - clients - {"etcd"}
            for group in (instances, clients, servers, {"etcd"}):
                _together(partial(self._stop, self._component(name)) for name in group)

    def node_up(self, *, agreed: bool = False) -> None:
        """Have a real node beside the simulated ones. `agreed`: to packages that are missing, if somebody at a
        terminal could be asked."""
        if "KUBECONFIG" in self._given:
            raise StackError(
                "A real node belongs to a control plane of the stack's own, and KUBECONFIG names another."
            )
        if not self._api_server.is_ready():
            raise StackError(f"A real node needs a stack that runs: sluice-local up --name {self.name}")
        conditions.ensure(self._say, agreed=agreed)
        with self._state.exclusive():
            self._node.up()

    def node_down(self) -> None:
        """End it with its pods, and leave nothing of it on the machine; images and logs stay with the stack."""
        with self._state.exclusive():
            self._node.down()

    @property
    def node_name(self) -> str:
        """What the real node's bridge, rules and cgroups are called on this machine."""
        return self._node.name

    def node_status(self) -> list[Status]:
        return [self._status(component) for component in self._node.components]

    def image(self, wanted: str) -> str:
        """Make an image for the real node, one of ours or of a folder with a Dockerfile. What pods call it."""
        with self._state.exclusive():
            return self._node.image(wanted)

    def port_behind(self, proxied: str) -> int:
        """Where a server's proxy finds it."""
        return {"kafka": self._kafka.port_behind, "kube-apiserver": self._api_server.port}[proxied]

    def renew_accounts(self) -> None:
        """All tokens of services end, and new ones stand in their files, which they read once a minute."""
        self._cluster.renew_accounts()

    def status(self) -> list[Status]:
        return [self._status(self._component(name)) for name in self._names()]

    def logs(self, name: str | None = None) -> list[Path]:
        """The log of one server or instance, or everybody's."""
        names = [name] if name else self._names()
        return [self._started(name).daemon.log for name in names]

    @property
    def endpoints(self) -> Endpoints:
        settings = self._settings()
        is_up = self._cluster.kubeconfig.exists()
        return Endpoints(
            kubeconfig=self._cluster.kubeconfig,
            api_server=self._cluster.server() if is_up else "",
            ca_file=self._cluster.ca_file,
            admin_token=self._cluster.token() if is_up else "",
            kafka=settings["SLUICE_KAFKA"],
            kafka_username=settings.get("SLUICE_KAFKA_USERNAME", ""),
            kafka_password=settings.get("SLUICE_KAFKA_PASSWORD", ""),
            redis=settings["SLUICE_REDIS"],
        )

    def service_env(self, service: str) -> dict[str, str]:
        """What a service of Sluice finds in its environment, but for its own address."""
        proxy = self._proxies.get("kafka")
        kafka = {"SLUICE_KAFKA": f"127.0.0.1:{proxy}"} if proxy else {}
        return {**self._settings(), **kafka, "KUBECONFIG": str(self._cluster.kubeconfig_of(service))}

    def user_env(self) -> dict[str, str]:
        """What makes an administrator's clients talk to this stack."""
        return {
            **self._settings(),
            "KUBECONFIG": str(self._cluster.kubeconfig),
            STACK_VARIABLE: self.name,
            "PATH": os.pathsep.join(_ahead(os.environ["PATH"], _PROGRAMS, KUBECTL.path.parent)),
        }

    def _settings(self) -> dict[str, str]:
        kafka = {
            "SLUICE_KAFKA": self._kafka.address,
            "SLUICE_KAFKA_USERNAME": USERNAME,
            "SLUICE_KAFKA_PASSWORD": self._kafka.password,
        }
        given_kafka = {key: value for key, value in self._given.items() if key in kafka}
        return {
            **(given_kafka if "SLUICE_KAFKA" in given_kafka else kafka),
            "SLUICE_REDIS": self._given.get("SLUICE_REDIS") or self._redis.url,
            "SLUICE_CLUSTER": "local",
        }

    def _belonging(self, asked: Iterable[str]) -> Set[str]:
        """Operators that are asked for, and those that were once started here."""
        wanted = _checked(asked, tuple(OPERATORS))
        if wanted and "KUBECONFIG" in self._given:
            raise StackError(
                f"{', '.join(sorted(wanted))} would run beside a control plane of the stack's own, and KUBECONFIG "
                "names another: install it there as its project says."
            )
        return wanted | self.operators

    @property
    def operators(self) -> Set[str]:
        """Those of other projects that were once started here."""
        started = set(self._names())
        return {name for name, its in self._operators.items() if started & {each.name for each in its}}

    def _artefacts(self, wanted: Set[str], operators: Set[str]) -> list[Artefact]:
        """What has to be built for the wanted parts, the quickest first."""
        artefacts: list[Artefact] = []
        if "kafka" in wanted and "SLUICE_KAFKA" not in self._given:
            artefacts += self._kafka.artefacts()
        if "kubernetes" in wanted:
            artefacts.append(KUBECTL)
            if "KUBECONFIG" not in self._given:
                processes = [process for name in sorted(operators) for process in self._operators[name]]
                servers = [*self._control_plane(), *processes]
                artefacts += [artefact for server in servers for artefact in server.artefacts()]
        return artefacts

    def _control_plane(self) -> list[Component]:
        clients = [client for client in self._clients if client.name not in self._without]
        return [self._etcd, self._api_server, *clients]

    def _kafka_up(self) -> None:
        if given := self._given.get("SLUICE_KAFKA"):
            self._say(f"Kafka is given: {given}")
        else:
            self._start(self._kafka)

    def _redis_up(self) -> None:
        if "SLUICE_REDIS" in self._given:
            self._say("Redis is given")
        else:
            self._start(self._redis)

    def _kubernetes_up(self, operators: Set[str]) -> None:
        if "KUBECONFIG" in self._given:
            self._cluster.adopt()
            self._say(f"Kubernetes is given: {self._cluster.server()} gets CRDs, policies and accounts")
            self._cluster.set_up()
            return
        etcd, api_server, *clients = self._control_plane()
        self._start(etcd)
        self._start(api_server)
        self._cluster.open_with(self._api_server.kubeconfig(ADMIN.name))
        _together([self._cluster.set_up, *(partial(self._start, client) for client in clients)])
        _together(partial(self._start_all, self._operators[name]) for name in operators)

    def _start_all(self, components: Iterable[Component]) -> None:
        for component in components:
            self._start(component)

    def _start(self, component: Component) -> None:
        component.start_aloud(self._say)

    def _stop(self, component: Component) -> None:
        component.daemon.stop(grace_s=component.grace_s)

    def _service(self, service: str, instance: str | None = None, programs: Path | None = None) -> Service:
        return Service(
            service,
            self._state,
            self.service_env(service),
            instance=instance or service,
            programs=programs or Path(sys.executable).parent,
        )

    def _started(self, name: str) -> Component:
        if name not in self._names():
            there_are = ", ".join(self._names()) or "nothing yet"
            raise StackError(f"There is no {name} in stack {self.name}: it has {there_are}.")
        return self._component(name)

    def _component(self, name: str) -> Component:
        return self._servers.get(name) or self._service(name)

    def _names(self) -> list[str]:
        """Everything that was ever started: the servers in their order, then services and their instances."""
        started = {record.parent.name for record in self.directory.glob("*/process.json")}
        return [name for name in self._servers if name in started] + sorted(started - self._servers.keys())

    def _status(self, component: Component) -> Status:
        return Status(
            name=component.name,
            pid=component.daemon.pid(),
            address=component.address,
            ready=component.is_ready(),
            memory_bytes=component.daemon.memory_bytes(),
        )


def _ahead(search_path: str, *folders: Path) -> list[str]:
    """The folders first, each once, however often the result is exported."""
    ahead = [str(folder) for folder in folders]
    return ahead + [folder for folder in search_path.split(os.pathsep) if folder not in ahead]


def _given_endpoints() -> dict[str, str]:
    if STACK_VARIABLE in os.environ:  # they are a stack's own, exported by `sluice-local env`
        return {}
    return {name: os.environ[name] for name in GIVEN_VARIABLES if os.environ.get(name)}


def _checked(names: Iterable[str], known: Sequence[str]) -> Set[str]:
    wanted = set(names)
    if unknown := sorted(wanted.difference(known)):
        raise StackError(f"There is no {', '.join(unknown)} here; there are {', '.join(known)}.")
    return wanted


def _together(calls: Iterable[Callable[[], None]]) -> None:
    """Run calls at the same time; when all have ended, raise what the first that failed has raised."""
    calls = list(calls)
    with ThreadPoolExecutor(max(1, len(calls))) as pool:
        for future in [pool.submit(call) for call in calls]:
            future.result()
