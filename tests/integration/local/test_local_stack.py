"""A stack answers, keeps what it was given through crashes, and shares nothing with the stack beside it."""

import http.client
import json
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis.exceptions
from local_clients import kubectl, publish, published, redis_client
from sluice_local import Stack, StackError

pytestmark = pytest.mark.integration


def test_everything_runs_after_up_and_up_again_changes_nothing(stack: Stack) -> None:
    before = stack.status()
    stack.up()
    after = stack.status()

    assert [status.name for status in after if status.ready] == [
        "kafka", "redis", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok",
    ]  # fmt: skip
    assert [status.pid for status in after] == [status.pid for status in before]


def test_ordinary_clients_log_in_with_what_env_says(stack: Stack) -> None:
    assert kubectl(stack, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}") == "admin"
    publish(stack, "greetings", b"hello")
    assert published(stack, "greetings") == [b"hello"]
    assert redis_client(stack).ping()


@pytest.mark.parametrize("service", ["watcher", "scheduler", "actuator", "console"])
def test_each_service_is_itself_in_the_cluster(stack: Stack, service: str) -> None:
    kubeconfig = stack.directory / f"kubeconfig-{service}"
    assert f"sluice-{service}" in kubectl(stack, f"--kubeconfig={kubeconfig}", "auth", "whoami")


def test_nobody_gets_in_without_credentials(stack: Stack) -> None:
    host, _, port = stack.endpoints.api_server.removeprefix("https://").partition(":")
    trusted = ssl.create_default_context(cafile=stack.endpoints.ca_file)
    connection = http.client.HTTPSConnection(host, int(port), timeout=5, context=trusted)
    connection.request("GET", "/api/v1/namespaces")
    assert connection.getresponse().status == http.client.UNAUTHORIZED

    with pytest.raises(redis.exceptions.AuthenticationError):
        redis.Redis.from_url(f"redis://{stack.endpoints.redis.rpartition('@')[2]}").ping()

    host, _, port = stack.endpoints.kafka.partition(":")
    with socket.create_connection((host, int(port)), timeout=5) as broker:
        metadata_of_no_topic = bytes.fromhex("0000000e 0003 0001 00000000 ffff 00000000")
        broker.sendall(metadata_of_no_topic)
        assert broker.recv(4) == b"", "the broker hangs up on those who ask before they have logged in"


@pytest.fixture
def simulated_node(stack: Stack) -> Iterator[None]:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "simulated", "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    }
    kubectl(stack, "apply", "-f-", stdin=json.dumps(node))
    yield
    kubectl(stack, "delete", "pods", "--all", "--namespace=default", "--timeout=20s")
    kubectl(stack, "delete", "node/simulated", "--timeout=20s")


def create_pod(stack: Stack, name: str, **annotations: str) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    }
    kubectl(stack, "apply", "-f-", stdin=json.dumps(pod))


def wait_for_phase(stack: Stack, pod: str, phase: str, *, within_s: int = 20) -> None:
    reached = f"--for=jsonpath={{.status.phase}}={phase}"
    kubectl(stack, "wait", f"pod/{pod}", "--namespace=default", reached, f"--timeout={within_s}s")


@pytest.mark.usefixtures("simulated_node")
def test_a_simulated_pod_runs_for_as_long_as_it_says(stack: Stack) -> None:
    create_pod(stack, "short", **{"sluice.dev/run-for": "1s500ms"})
    create_pod(stack, "endless")

    wait_for_phase(stack, "short", "Running")
    wait_for_phase(stack, "short", "Succeeded")
    wait_for_phase(stack, "endless", "Running")


@pytest.mark.usefixtures("simulated_node")
@pytest.mark.parametrize("end", [Stack.stop, Stack.kill], ids=["stopped", "killed"])
def test_pods_run_at_once_under_a_new_kwok(stack: Stack, end: Callable[[Stack, str], None]) -> None:
    """The last one's leases on its nodes must not hold the new one up: they last 40 s."""
    create_pod(stack, "before")
    wait_for_phase(stack, "before", "Running")

    end(stack, "kwok")
    stack.start("kwok")

    create_pod(stack, "after")
    wait_for_phase(stack, "after", "Running", within_s=10)


def test_what_is_killed_comes_back_where_it_was_with_what_it_had(stack: Stack) -> None:
    before = stack.endpoints
    kubectl(stack, "create", "configmap", "kept", "-n", "default")
    publish(stack, "kept", b"still here")
    redis_client(stack).set("kept", "still here")

    for name in ("etcd", "kube-apiserver", "kafka", "redis"):
        stack.kill(name)
    assert [status.name for status in stack.status() if status.pid is None] == [
        "kafka", "redis", "etcd", "kube-apiserver",
    ]  # fmt: skip
    for name in ("kafka", "redis", "etcd", "kube-apiserver"):
        stack.start(name)

    assert stack.endpoints == before
    kubectl(stack, "get", "configmap", "kept", "-n", "default")
    assert published(stack, "kept") == [b"still here"]
    assert redis_client(stack).get("kept") == "still here"


def test_a_second_stack_shares_nothing_with_the_first(stack: Stack) -> None:
    second = Stack("two", without=["kube-controller-manager", "kube-scheduler", "kwok"])
    second.up()
    try:
        kubectl(second, "create", "namespace", "of-the-second")
        redis_client(second).set("of", "the second")

        assert "of-the-second" not in kubectl(stack, "get", "namespaces")
        assert redis_client(stack).get("of") is None
        credentials, _, _ = stack.endpoints.redis.rpartition("@")
        _, _, address = second.endpoints.redis.rpartition("@")
        with_the_firsts_password = redis.Redis.from_url(f"{credentials}@{address}")
        with pytest.raises(redis.exceptions.AuthenticationError):
            with_the_firsts_password.ping()
    finally:
        second.down(purge=True)
    assert all(status.ready for status in stack.status())


def test_given_endpoints_are_used_and_nothing_is_started(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = stack.user_env()
    for name in (
        "KUBECONFIG",
        "SLUICE_KAFKA",
        "SLUICE_KAFKA_USERNAME",
        "SLUICE_KAFKA_PASSWORD",
        "SLUICE_REDIS",
    ):
        monkeypatch.setenv(name, given[name])
    guest = Stack("guest")
    guest.up()

    assert guest.status() == []
    assert guest.endpoints.api_server == stack.endpoints.api_server
    assert guest.endpoints.redis == stack.endpoints.redis
    publish(guest, "from-a-guest", b"hello")
    assert published(stack, "from-a-guest") == [b"hello"]
    watcher = Path(guest.service_env("watcher")["KUBECONFIG"])
    assert watcher.parent == guest.directory
    assert "sluice-watcher" in kubectl(guest, f"--kubeconfig={watcher}", "auth", "whoami")
    guest.down(purge=True)


def test_a_misspelt_name_is_an_error_and_not_a_test_that_proves_nothing(stack: Stack) -> None:
    with pytest.raises(StackError, match="kafak"):
        stack.kill("kafak")
