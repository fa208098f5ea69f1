"""A Kubernetes control plane: etcd, API server, controller manager, scheduler; KWOK for nodes and kubelets.

etcd listens on a socket in its private folder only. The API server makes its own certificate, knows its
clients by tokens and answers nobody else.
"""

import socket
import ssl
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sluice_local import paths
from sluice_local.build import Artefact, GoBinary
from sluice_local.component import Component
from sluice_local.keys import Keys
from sluice_local.kubectl import apply, kubeconfig, kubectl
from sluice_local.probes import https_ok
from sluice_local.state import State

_COMMANDS = "k8s.io/kubernetes/cmd"
_NODE_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
ETCD = GoBinary("etcd", "etcd", "go.etcd.io/etcd/server/v3", takes="a minute")
APISERVER = GoBinary("kube-apiserver", "kubernetes", f"{_COMMANDS}/kube-apiserver", takes="3–5 minutes")
CONTROLLER_MANAGER = GoBinary(
    "kube-controller-manager", "kubernetes", f"{_COMMANDS}/kube-controller-manager", takes="1–2 minutes"
)
SCHEDULER = GoBinary("kube-scheduler", "kubernetes", f"{_COMMANDS}/kube-scheduler", takes="half a minute")
#: By this address pods find the API server: the first of those that services get.
SERVICE_ADDRESS = "10.96.0.1"
KWOK = GoBinary("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", takes="1–2 minutes")


class Etcd(Component):
    reached_by = "unix socket"

    def __init__(self, state: State) -> None:
        super().__init__("etcd", state)
        self.socket = self.directory / "etcd.sock"

    def artefacts(self) -> Sequence[Artefact]:
        return [ETCD]

    def argv(self) -> Sequence[str | Path]:
        # Sockets are named relative to the working folder: an absolute path can be too long for one.
        return [
            ETCD.path,
            "--name=local",
            "--data-dir=data",
            f"--listen-client-urls=unix://{self.socket.name}",
            f"--advertise-client-urls=unix://{self.socket.name}:0",
            "--listen-peer-urls=unix://peer.sock",
            "--initial-advertise-peer-urls=unix://peer.sock:0",
            "--initial-cluster=local=unix://peer.sock:0",
            "--unsafe-no-fsync",  # what it wrote survives its own end all the same, only not the machine's
            "--log-level=warn",
        ]

    def ready(self) -> bool:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(2)
            connection.connect(f"/proc/{self.daemon.pid()}/cwd/{self.socket.name}")
            connection.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            return b'"health":"true"' in connection.makefile("rb").read()


@dataclass(frozen=True, slots=True)
class User:
    """Somebody whom the API server knows by a token."""

    name: str
    group: str


ADMIN = User("admin", "system:masters")
#: A real node's kubelet, of which there may be one.
NODE_NAME = "real"
NODE = User(f"system:node:{NODE_NAME}", "system:nodes")


def _account(namespace: str, name: str) -> User:
    """A service account, by a token that doesn't run out."""
    return User(f"system:serviceaccount:{namespace}:{name}", "")


#: What answers the names that a real node's pods look up.
DNS = User("coredns", "")
#: Other projects' operators, as the accounts to which their manifests give rights.
KUBERAY = _account("default", "kuberay-operator")
SPARK_CONTROLLER = _account("spark-operator", "spark-operator-controller")
SPARK_WEBHOOK = _account("spark-operator", "spark-operator-webhook")
TRAINING_OPERATOR = _account("kubeflow", "training-operator")
_USERS = (
    ADMIN,
    User("system:kube-controller-manager", ""),
    User("system:kube-scheduler", ""),
    User("kwok", ""),
    NODE,
    DNS,
    KUBERAY,
    SPARK_CONTROLLER,
    SPARK_WEBHOOK,
    TRAINING_OPERATOR,
)


class ApiServer(Component):
    def __init__(self, state: State) -> None:
        super().__init__("kube-apiserver", state)
        self.certificate = self.directory / "certificates" / "apiserver.crt"
        self.keys = Keys(self.certificate.parent)
        self._tokens = self.directory / "tokens.csv"

    def token(self, user: str) -> str:
        return self.state.secret(f"token of {user}")

    def kubeconfig(self, user: str) -> str:
        trust = b64encode(self.certificate.read_bytes()).decode()
        cluster = {"server": f"https://{self.address}", "certificate-authority-data": trust}
        return kubeconfig(cluster, {"token": self.token(user)})

    def artefacts(self) -> Sequence[Artefact]:
        return [APISERVER]

    def prepare(self) -> None:
        lines = (f'{self.token(user.name)},{user.name},{user.name},"{user.group}"\n' for user in _USERS)
        paths.write_private(self._tokens, "".join(lines))

    def argv(self) -> Sequence[str | Path]:
        key = self.certificate.with_suffix(".key")
        return [
            APISERVER.path,
            "--etcd-servers=unix://../etcd/etcd.sock",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--cert-dir={self.certificate.parent}",
            f"--token-auth-file={self._tokens}",
            "--anonymous-auth=false",
            *self._about_nodes(),
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={key}",
            f"--service-account-key-file={key}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--endpoint-reconciler-type=none",  # it refuses to publish a loopback address
            "--profiling=false",
        ]

    def knows_nodes(self) -> bool:
        """Whether it has been started since there are keys for a real node."""
        return self._as_kubelets_client() in self.daemon.argv()

    def ready(self) -> bool:
        return self.answers("/readyz")

    def answers(self, path: str) -> bool:
        verified = ssl.create_default_context(cafile=self.certificate)
        return https_ok(self.port, path, verified, token=self.token(ADMIN.name))

    def _about_nodes(self) -> list[str]:
        """How it reaches a kubelet, and that one may do with its own node and pods only."""
        if not self.keys.exist():
            return ["--authorization-mode=RBAC"]
        return [
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            self._as_kubelets_client(),
            f"--kubelet-client-key={self.keys.client.with_suffix('.key')}",
            f"--kubelet-certificate-authority={self.keys.authority}",
            "--kubelet-preferred-address-types=InternalIP",
        ]

    def _as_kubelets_client(self) -> str:
        return f"--kubelet-client-certificate={self.keys.client}"


class Client(Component):
    """What talks to the API server as a user of its own."""

    user: str
    binary: GoBinary
    #: Another name than its program's, of which there may be several.
    called = ""

    def __init__(self, state: State, api_server: ApiServer) -> None:
        super().__init__(self.called or self.binary.name, state)
        self.api_server = api_server
        self.kubeconfig = self.directory / "kubeconfig"
        #: Of whoever sets up what it needs in the cluster.
        self.administrator = state.directory / "kubeconfig"

    def artefacts(self) -> Sequence[Artefact]:
        return [self.binary]

    def prepare(self) -> None:
        paths.write_private(self.kubeconfig, self.api_server.kubeconfig(self.user))

    def ready(self) -> bool:
        # Its certificate is made in memory at each start: nobody could verify it, and nothing secret is sent.
        return https_ok(self.port, "/healthz", ssl._create_unverified_context())


class _Controller(Client):
    """A part of the control plane that acts; there is one of each, so nobody has to be elected."""

    def argv(self) -> Sequence[str | Path]:
        return [
            self.binary.path,
            f"--kubeconfig={self.kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            "--leader-elect=false",
            # By default it sends 20 to 50 requests a second, which is slower than anything else here.
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        ]


class Scheduler(_Controller):
    user = "system:kube-scheduler"
    binary = SCHEDULER


class ControllerManager(_Controller):
    user = "system:kube-controller-manager"
    binary = CONTROLLER_MANAGER

    def argv(self) -> Sequence[str | Path]:
        more = ["--use-service-account-credentials", f"--root-ca-file={self.api_server.certificate}"]
        return [*super().argv(), *more]


class Kwok(Client):
    """Simulates every node that is annotated `kwok.x-k8s.io/node: fake`, and the pods on it."""

    user = "kwok"
    binary = KWOK
    reached_by = "-"  # its server would hand out logs and shells without asking who is there

    def prepare(self) -> None:
        super().prepare()
        apply(self.administrator, (paths.RECIPES / "kwok" / "rbac.yaml").read_text())
        # KWOK takes a lease on each node under a name that it makes up at its start, so a new one would leave
        # the nodes alone until the last one's leases have run out. The last one has ended: this is a start.
        kubectl(f"--kubeconfig={self.administrator}", "delete", f"--raw={_NODE_LEASES}")

    def argv(self) -> Sequence[str | Path]:
        return [
            self.binary.path,
            f"--kubeconfig={self.kubeconfig}",
            f"--config={paths.RECIPES / 'kwok' / 'stages.yaml'}",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            "--node-lease-duration-seconds=40",
        ]

    def ready(self) -> bool:
        return True  # there is nothing to ask: as long as it runs, it keeps trying
