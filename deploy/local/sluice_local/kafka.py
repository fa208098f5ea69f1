"""One Kafka broker that is its own controller, small and quick to start."""

import secrets
import shutil
import socket
import struct
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import BinaryIO

from sluice_local import build, paths, tools
from sluice_local.build import Artefact, Command, Progress
from sluice_local.component import Component
from sluice_local.errors import StackError
from sluice_local.state import State

RECIPE = paths.RECIPES / "kafka"
USERNAME = "sluice"
_CONTROLLER = "kafka-controller"
_PROXIED = "kafka-proxied"


class Kafka(Component):
    def __init__(self, state: State, proxy: int = 0) -> None:
        """`proxy`: the port of one through which some clients come."""
        super().__init__("kafka", state)
        self._proxy = proxy
        self._data = self.directory / "data"
        self._settings = self.directory / "server.properties"

    @property
    def port_names(self) -> Sequence[str]:
        return [self.name, _CONTROLLER, *([_PROXIED] if self._proxy else [])]

    @property
    def port_behind(self) -> int:
        """Where the proxy finds it. A broker tells each client where to come, so such clients have a port of
        their own."""
        return self.state.port(_PROXIED)

    @property
    def password(self) -> str:
        return self.state.secret(self.name)

    def artefacts(self) -> Sequence[Artefact]:
        return [JARS, CLASSES]

    def prepare(self) -> None:
        paths.write_private(self._settings, self._properties())
        if not (self._data / "meta.properties").exists():
            self._format()

    def argv(self) -> Sequence[str | Path]:
        return [*java(), "kafka.Kafka", self._settings]

    def ready(self) -> bool:
        return _lists_itself(self.port, USERNAME, self.password)

    def _format(self) -> None:
        identity = urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=").replace("-", "_")
        tool = [*java(), "kafka.tools.StorageTool", "format"]
        Command(self.directory, {}).run([*tool, "-t", identity, "-c", self._settings])

    def _properties(self) -> str:
        broker, controller = self.port, self.state.port(_CONTROLLER)
        login = (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="{USERNAME}" password="{self.password}" user_{USERNAME}="{self.password}";'
        )
        listeners, advertised = f"CLIENT://127.0.0.1:{broker}", f"CLIENT://127.0.0.1:{broker}"
        if self._proxy:
            listeners += f",PROXIED://127.0.0.1:{self.port_behind}"
            advertised += f",PROXIED://127.0.0.1:{self._proxy}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": advertised,
            "listener.security.protocol.map": ",".join(
                f"{each}:SASL_PLAINTEXT" for each in ("CLIENT", "CONTROLLER", "PROXIED")
            ),
            "inter.broker.listener.name": "CLIENT",
            "controller.listener.names": "CONTROLLER",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            **{
                f"listener.name.{each}.plain.sasl.jaas.config": login
                for each in ("client", "controller", "proxied")
            },
            "log.dirs": str(self._data),
            # One node can't hold three replicas.
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            # A misspelt topic should be an error, as it is in production.
            "auto.create.topics.enable": "false",
            # Start quickly and stay small: the defaults are made for servers of their own.
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "8",
            "transaction.state.log.num.partitions": "4",
            "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
            # After a crash the broker may register again only when its old session has ended: 9 s by default.
            "broker.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "500",
            # Tests take consumers over within seconds.
            "group.min.session.timeout.ms": "1000",
        }
        return "".join(f"{key}={value}\n" for key, value in settings.items())


def java() -> list[str | Path]:
    archive = CLASSES.path
    shared = [f"-XX:SharedArchiveFile={archive}"] if archive.exists() and archive.stat().st_size else []
    return [
        tools.JAVA.find(),
        "-Xmx256m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        f"-Dlog4j2.configurationFile={RECIPE / 'log4j2.properties'}",
        *shared,
        "-cp",
        f"{JARS.path}/*",
    ]


@dataclass(frozen=True, slots=True)
class Jars:
    """Kafka and what it needs, as pom.xml pins it and SHA256SUMS proves it."""

    name: str = "the Kafka jars"
    takes: str = "half a minute"

    @property
    def path(self) -> Path:
        key = build.recipe_hash(RECIPE / "pom.xml", RECIPE / "SHA256SUMS")
        return paths.cache() / f"kafka-{key}" / "jars"

    def build(self, target: Path, progress: Progress) -> None:
        progress.step = "Maven fetches them"
        shutil.copy(RECIPE / "pom.xml", target.parent)
        options = ("--batch-mode", "-DincludeScope=runtime", f"-DoutputDirectory={target}")
        maven = Command(target.parent, tools.MAVEN.environment())
        maven.run([tools.MAVEN.find(), *options, "dependency:copy-dependencies"])
        listed = dict(line.split()[::-1] for line in (RECIPE / "SHA256SUMS").read_text().splitlines())
        found = {}
        for jar in target.iterdir():
            with jar.open("rb") as file:
                found[jar.name] = file_digest(file, "sha256").hexdigest()
        if wrong := sorted(name for name, _ in listed.items() ^ found.items()):
            raise StackError(f"These jars are not the ones in SHA256SUMS: {', '.join(dict.fromkeys(wrong))}.")


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The broker's classes as the JVM holds them in memory: loading them from jars takes seconds."""

    name: str = "Kafka's class archive"
    takes: str = "ten seconds"

    @property
    def path(self) -> Path:
        return JARS.path.with_name(f"classes-{tools.JAVA.version()}.jsa")

    def build(self, target: Path, progress: Progress) -> None:
        progress.step = "a broker starts, to be recorded"
        # Among the stacks and under a fixed name: should we be killed here, the next build finds this broker.
        broker = _Recorded(State(paths.stacks() / "kafka-classes"), target)
        broker.daemon.kill()
        try:
            broker.start()
            broker.daemon.stop(grace_s=60)
        finally:
            broker.daemon.kill()
            shutil.rmtree(broker.state.directory)
        target.touch()  # stays empty where the Java runtime can't make one; java() then does without


class _Recorded(Kafka):
    """A broker that leaves an archive of its classes when it ends."""

    def __init__(self, state: State, archive: Path) -> None:
        super().__init__(state)
        self._archive = archive

    def argv(self) -> Sequence[str | Path]:
        command, *arguments = super().argv()
        return [command, f"-XX:ArchiveClassesAtExit={self._archive}", *arguments]


JARS = Jars()
CLASSES = ClassArchive()


def _lists_itself(port: int, username: str, password: str) -> bool:
    """Log in as any client would and ask who is there: a broker that is still starting names nobody."""
    with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
        connection.settimeout(2)
        sasl_handshake, sasl_authenticate, metadata = 17, 36, 3
        _ask(connection, sasl_handshake, version=1, body=_sized("h", b"PLAIN"))
        login = f"\0{username}\0{password}".encode()
        answer = _ask(connection, sasl_authenticate, version=0, body=_sized("i", login))
        (error,) = struct.unpack_from(">h", answer)
        if error:
            return False
        answer = _ask(connection, metadata, version=1, body=_sized("i", b""))  # of no topic
        (brokers,) = struct.unpack_from(">i", answer)
        return bool(brokers)


def _ask(connection: socket.socket, api: int, *, version: int, body: bytes) -> bytes:
    """One request in Kafka's wire protocol, with no client id. Returns what follows the response's header."""
    header = struct.pack(">hhih", api, version, 0, -1)
    connection.sendall(_sized("i", header + body))
    reader = connection.makefile("rb")
    (size,) = struct.unpack(">i", _exactly(reader, 4))
    return _exactly(reader, size)[4:]


def _sized(size_format: str, content: bytes) -> bytes:
    return struct.pack(f">{size_format}", len(content)) + content


def _exactly(reader: BinaryIO, size: int) -> bytes:
    content = reader.read(size)
    if len(content) < size:
        raise ConnectionError("The broker closed the connection.")
    return content
