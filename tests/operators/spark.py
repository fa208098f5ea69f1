"""A real Spark driver in client mode, from the `pyspark` distribution: nothing of it is imitated.

Its executors are real pods of the API server, but no kubelet starts them, so they never register with it. A
driver asks for executors as long as tasks wait, and these do for as long as nobody withdraws them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cluster_api import Api, account_token, eventually, made
from sluice_local import Endpoints, build, paths, tools
from sluice_local.build import Command, Progress, Say, recipe_hash

_HERE = Path(__file__).resolve().parent
_LOCK = _HERE / "spark.lock"
_DRIVER = _HERE / "spark_driver.py"


@dataclass(frozen=True, slots=True)
class SparkDistribution:
    """A virtual environment with pyspark, built once into the user's cache."""

    name: str = "pyspark"
    takes: str = "1–2 minutes"

    @property
    def path(self) -> Path:
        return paths.cache() / f"pyspark-{recipe_hash(_LOCK)}"

    @property
    def python(self) -> Path:
        return self.path / "bin" / "python"

    def build(self, target: Path, progress: Progress) -> None:
        uv = Path(sys.executable).with_name("uv")
        command = Command(_HERE, os.environ)
        command.run([uv, "venv", "--quiet", "--python", sys.executable, target])
        progress.step = "fetching 456 MB and unpacking them"
        where: list[str | Path] = ["--python", target / "bin" / "python"]
        # Its only distribution is one of sources: what builds it comes from the same lock.
        command.run(
            [uv, "pip", "sync", "--quiet", *where, "--require-hashes", "--build-constraints", _LOCK, _LOCK]
        )


SPARK = SparkDistribution()


def provide(say: Say) -> None:
    build.ensure([SPARK], say)


class Driver:
    """A running driver, and what its program is told through its standard input."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self.log = log

    def ask_for(self, executors: int) -> None:
        """Leave as many tasks waiting as this many executors could run."""
        self._tell(f"ask {executors}")

    def ask_for_nothing(self) -> None:
        self._tell("ask 0")

    def end(self) -> int:
        """Let it end in order: its exit code."""
        self._tell("end")
        return self._process.wait(60)

    def kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)  # the JVM is a child of Python
        self._process.wait(30)

    def runs(self) -> bool:
        return self._process.poll() is None

    def _tell(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()


def identity(api: Api, namespace: str) -> str:
    """The token of an account that may do in a namespace what people may who work there, and no more."""
    made(api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "spark"}}))
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    subject = {"kind": "ServiceAccount", "name": "spark", "namespace": namespace}
    made(
        api.create(
            f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
            {"metadata": {"name": "spark"}, "roleRef": role, "subjects": [subject]},
        )
    )
    return account_token(api, namespace, "spark")


@contextmanager
def driver(
    endpoints: Endpoints, namespace: str, folder: Path, *, token: str, name: str = "spark", **settings: str
) -> Iterator[Driver]:
    """Start one; whatever the test did with it, nothing of it runs afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    token_file = folder / "token"
    paths.write_private(token_file, token)
    conf = {
        "spark.app.name": name,
        "spark.master": f"k8s://{endpoints.api_server}",
        "spark.kubernetes.namespace": namespace,
        "spark.kubernetes.authenticate.oauthTokenFile": str(token_file),
        "spark.kubernetes.authenticate.caCertFile": str(endpoints.ca_file),
        "spark.kubernetes.container.image": "none",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.executorIdleTimeout": "2s",
        **{key.replace("_", "."): text for key, text in settings.items()},
    }
    log = folder / "driver.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [SPARK.python, _DRIVER, *(f"{key}={text}" for key, text in conf.items())],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(folder),
            text=True,
            start_new_session=True,
        )
    try:
        started = Driver(process, log)
        eventually(lambda: "it listens" in log.read_text() or not started.runs(), seconds=90)
        assert started.runs(), log.read_text()
        yield started
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def _environment(folder: Path) -> Mapping[str, str]:
    return {
        **{key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ},
        "JAVA_HOME": str(tools.JAVA.find().resolve().parent.parent),
        "SPARK_LOCAL_DIRS": str(folder),
        "PYSPARK_PYTHON": str(SPARK.python),
    }
