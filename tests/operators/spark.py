"""A real Spark driver in client mode, from the `pyspark` distribution: nothing of it is imitated.

Its executors are real pods of the API server, but no kubelet starts them, so they never register with it. A
driver asks for executors as long as tasks wait, and these do for as long as nobody withdraws them.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from cluster_api import Api, account_token, eventually, made
from sluice_local import Endpoints, build, paths, tools
from sluice_local.build import Say
from sluice_local.images.spark import SPARK

_HERE = Path(__file__).resolve().parent
_DRIVER = _HERE / "spark_driver.py"


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


def submit(endpoints: Endpoints, folder: Path, application: str, **settings: str) -> str:
    """Run an application in cluster mode, its driver in a pod too, until it has ended: what is said of it here."""
    token_file = folder / "token"
    paths.write_private(token_file, endpoints.admin_token)
    conf = {
        "spark.kubernetes.authenticate.submission.oauthTokenFile": str(token_file),
        "spark.kubernetes.authenticate.submission.caCertFile": str(endpoints.ca_file),
        "spark.pyspark.python": "python",  # the image's, not the one that is here
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.kubernetes.driver.request.cores": "200m",
        "spark.kubernetes.executor.request.cores": "200m",
        **settings,
    }
    options = [word for key, text in conf.items() for word in ("--conf", f"{key}={text}")]
    where = ["--master", f"k8s://{endpoints.api_server}", "--deploy-mode", "cluster"]
    run = subprocess.run(
        [SPARK.packages / "pyspark" / "bin" / "spark-submit", *where, *options, application],
        env=_environment(folder),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return run.stdout + run.stderr


def _environment(folder: Path) -> Mapping[str, str]:
    return {
        **{key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ},
        "JAVA_HOME": str(tools.JAVA.find().resolve().parent.parent),
        "SPARK_LOCAL_DIRS": str(folder),
        "PYSPARK_PYTHON": str(SPARK.python),
    }
