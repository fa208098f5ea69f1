"""Builds and runs docker-compose.yml and sends gated pods through it: `make compose-test`.

Uses a project, volumes and ports of its own, beside a stack that `make compose-up` has started, and leaves
nothing but images. The arguments are the compose command, v1 or v2.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from sluice.vocabulary import API_VERSION, DECISION_ANNOTATION, GATE, MANAGED_LABEL, QUEUE_LABEL

NAME = "compose-test"
PODS = 12
ROOM = 4
T = TypeVar("T")


class Compose:
    def __init__(self, command: list[str]) -> None:
        self._command = [*command, "--project-name", f"sluice-{NAME}"]
        ports = {f"SLUICE_{server}_PORT": str(_free_port()) for server in ("KAFKA", "REDIS", "KUBERNETES")}
        self._environment = {**os.environ, **ports}

    def __call__(self, *arguments: str) -> None:
        subprocess.run([*self._command, *arguments], env=self._environment, check=True)

    def output(self, *arguments: str, stdin: str = "") -> str:
        return subprocess.run(
            [*self._command, *arguments],
            env=self._environment,
            input=stdin,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        return self.output("exec", "-T", "kubernetes", "kubectl", *arguments, stdin=stdin)

    @contextmanager
    def following(self, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
        command = [*self._command, "exec", "-T", "kubernetes", "kubectl", *arguments]
        with subprocess.Popen(command, env=self._environment, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def get(self, *arguments: str) -> Any:
        return json.loads(self.kubectl("get", *arguments, "--output=json"))

    def create(self, *objects: dict[str, Any]) -> None:
        self.kubectl("create", "--filename=-", stdin="\n---\n".join(map(json.dumps, objects)))


def main(command: list[str]) -> None:
    compose = Compose(command)
    started = time.monotonic()
    with running(compose):
        say(started, "everything is healthy")
        compose.create(pool(), queue(), namespace())
        until("the namespace is bound to the queue", lambda: bound(compose))
        say(started, f"namespace {NAME} is bound; creating {PODS} pods, and then a node for {ROOM}")
        compose.create(*map(pod, range(PODS)))
        most = watch_until_done(compose, started)
        assert 0 < most <= ROOM, f"{most} pods were open at once, {ROOM} fit"
        pods = compose.get("pods", "--namespace", NAME)["items"]
        assert all(map(decided, pods)), "a pod ran without a decision"
        say(started, f"all {PODS} pods succeeded, each by a decision; never more than {ROOM} at a time")
        print(compose.kubectl("get", "queues.sluice.dev"), end="")


@contextmanager
def running(compose: Compose) -> Iterator[None]:
    compose("down", "--volumes")
    try:
        compose("up", "--detach")
        for service in ("watcher", "scheduler", "actuator"):
            until(f"{service} is healthy", partial(is_healthy, compose, service), seconds=300)
        yield
    except BaseException:
        compose("ps")
        compose("logs", "--tail=25")
        raise
    finally:
        compose("down", "--volumes")


def is_healthy(compose: Compose, service: str) -> bool:
    container = compose.output("ps", "--quiet", service).strip()
    inspect = ["docker", "inspect", "--format", "{{.State.Health.Status}}", container]
    return subprocess.run(inspect, capture_output=True, text=True, check=True).stdout.strip() == "healthy"


def watch_until_done(compose: Compose, started: float) -> int:
    """The most pods that were open at once. A watch shows every change in order, and misses none: it is
    there before the node is, without which no gate opens."""
    states: dict[str, str] = {}
    most, said, has_node = 0, "", False
    for name, state in changes(compose):
        states[name] = state
        count = Counter(states.values())
        most = max(most, count["open"])
        if said != (line := ", ".join(f"{count[each]:2} {each}" for each in ("gated", "open", "finished"))):
            say(started, said := line)
        if count["gated"] == PODS and not has_node:
            has_node = True
            compose.create(node())
        if count["finished"] == PODS:
            return most
    raise AssertionError(f"not all pods finished: {states}")


def changes(compose: Compose, *, seconds: float = 180) -> Iterator[tuple[str, str]]:
    """Each pod's name and state, whenever something of it has changed."""
    shown = '{.metadata.name} {.status.phase} {.spec.schedulingGates[*].name}{"\\n"}'
    with compose.following(
        "get", "pods", "--namespace", NAME, "--watch", f"--output=jsonpath={shown}"
    ) as watch:
        assert watch.stdout
        deadline = threading.Timer(seconds, watch.kill)
        deadline.start()
        try:
            for line in watch.stdout:
                name, phase, *gates = line.split()
                yield name, "finished" if phase == "Succeeded" else "gated" if GATE in gates else "open"
        finally:
            deadline.cancel()


def bound(compose: Compose) -> bool:
    return compose.get("namespace", NAME)["metadata"]["labels"].get(QUEUE_LABEL) == NAME


def decided(pod: dict[str, Any]) -> bool:
    return DECISION_ANNOTATION in pod["metadata"].get("annotations", {})


def node() -> dict[str, Any]:
    amounts = {"cpu": str(ROOM), "memory": "64Gi", "pods": "1000"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NAME, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def pool() -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "ResourcePool", "metadata": {"name": NAME}, "spec": {}}


def queue() -> dict[str, Any]:
    spec = {"namespaces": {"names": [NAME]}}
    return {"apiVersion": API_VERSION, "kind": "Queue", "metadata": {"name": NAME}, "spec": spec}


def namespace() -> dict[str, Any]:
    metadata = {"name": NAME, "labels": {MANAGED_LABEL: "true"}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def pod(number: int) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    metadata = {"name": f"pod-{number}", "namespace": NAME, "annotations": {"sluice.dev/run-for": "3s"}}
    spec = {"containers": [container], "restartPolicy": "Never"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def until(what: str, condition: Callable[[], T], *, seconds: float = 60) -> T:
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"after {seconds:.0f} s still not so: {what}"
        time.sleep(0.2)
    return value


def say(started: float, text: str) -> None:
    print(f"{time.monotonic() - started:5.0f} s  {text}", flush=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main(sys.argv[1:])
