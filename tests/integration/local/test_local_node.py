"""A real node beside simulated ones: pods really run on it, it survives its parts, and leaves nothing behind."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import real_node
from local_clients import kubectl
from sluice_local import Stack, StackError
from sluice_local.images import docker
from sluice_local.kubectl import KUBECTL
from sluice_local.node.kubelet import Kubelet

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

ASKS_THE_API_SERVER = """
import os, ssl, urllib.request
account = "/var/run/secrets/kubernetes.io/serviceaccount/"
trusted = ssl.create_default_context(cafile=account + "ca.crt")
host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
headers = {"Authorization": "Bearer " + open(account + "token").read()}
request = urllib.request.Request(f"https://{host}:{port}/version", headers=headers)
print(os.getuid(), urllib.request.urlopen(request, context=trusted).status)
"""
# It is not there at once, and what is not there is looked up anew after some seconds.
ASKS_BY_NAME = """
import socket, time, urllib.request
try:
    socket.gethostbyname("nowhere.example")
except socket.gaierror as error:
    print(error.errno == socket.EAI_NONAME)
while True:
    try:
        print(urllib.request.urlopen("http://serves.default.svc.cluster.local:8000", timeout=2).status)
        break
    except OSError:
        time.sleep(0.2)
"""
RUNS_ON = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)"


@pytest.fixture
def node(machine: None, stack: Stack) -> Iterator[Stack]:
    """The stack with a real node that has Python; afterwards without one."""
    stack.image("python")
    stack.node_up()
    yield stack
    stack.node_down()


def create(stack: Stack, pod: dict[str, object]) -> None:
    kubectl(stack, "create", "--namespace=default", "-f-", stdin=json.dumps(pod))


def wait(stack: Stack, pod: str, phase: str) -> None:
    reached = f"--for=jsonpath={{.status.phase}}={phase}"
    kubectl(stack, "wait", f"pod/{pod}", "--namespace=default", reached, "--timeout=60s")


def runs_pods(stack: Stack, name: str) -> None:
    create(stack, real_node.python_pod(name, "print('it runs')"))
    wait(stack, name, "Succeeded")
    assert kubectl(stack, "logs", name, "--namespace=default") == "it runs\n"


def test_a_pod_without_rights_finds_the_api_server(node: Stack) -> None:
    create(node, real_node.python_pod("asks", ASKS_THE_API_SERVER))
    wait(node, "asks", "Succeeded")
    assert kubectl(node, "logs", "asks", "--namespace=default") == "1000 200\n"


def test_pods_find_each_other_by_the_name_of_a_headless_service(node: Stack) -> None:
    service = {"clusterIP": "None", "selector": {"app": "serves"}}
    create(node, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "serves"}, "spec": service})
    server = real_node.python_pod(
        "serves", "import runpy; runpy.run_module('http.server', run_name='__main__')"
    )
    server["metadata"]["labels"] = {"app": "serves"}
    create(node, server)
    create(node, real_node.python_pod("asks-by-name", ASKS_BY_NAME))
    wait(node, "asks-by-name", "Succeeded")
    assert kubectl(node, "logs", "asks-by-name", "--namespace=default") == "True\n200\n"
    kubectl(node, "delete", "service/serves", "pod/serves", "--namespace=default", "--grace-period=1")


def test_nothing_of_it_is_left_behind_not_even_of_pods_that_would_not_end(
    machine: None, stack: Stack
) -> None:
    before = real_node.traces()
    stack.image("python")
    stack.node_up()
    assert real_node.own_traces(stack)
    create(stack, real_node.python_pod("runs-on", RUNS_ON))
    wait(stack, "runs-on", "Running")

    stack.node_down()

    assert real_node.own_traces(stack) == []
    assert real_node.traces() - before == set()
    assert before - real_node.traces() == set()
    assert not {"node", "coredns", "containerd", "kubelet"} & {status.name for status in stack.status()}
    assert kubectl(stack, "get", "nodes,resourcepools,pods", "--all-namespaces", "--output=name") == ""
    stack.node_down()  # once more is no error


def test_nothing_is_left_of_half_a_node(machine: None, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    before = real_node.traces()
    with monkeypatch.context() as patch:
        patch.setattr(Kubelet, "argv", lambda _: ["false"])
        with pytest.raises(StackError, match="kubelet ended while it started"):
            stack.node_up()
    assert real_node.own_traces(stack)

    stack.node_down()

    assert real_node.own_traces(stack) == []
    assert real_node.traces() == before


def test_up_again_changes_nothing(node: Stack) -> None:
    before = node.node_status()
    node.node_up()
    assert [status.pid for status in node.node_status()] == [status.pid for status in before]


@pytest.mark.parametrize(
    "killed", [["kubelet"], ["containerd"], ["kubelet", "containerd"], ["coredns"], ["node"]], ids="+".join
)
def test_up_brings_back_what_was_killed(node: Stack, killed: list[str]) -> None:
    for name in killed:
        node.kill(name)
    node.node_up()
    assert all(status.ready for status in node.node_status())
    runs_pods(node, f"after-{'-and-'.join(killed)}")


def test_a_stack_beside_has_a_node_of_its_own(node: Stack) -> None:
    beside = Stack("beside", say=print)
    beside.up(["kubernetes"])
    try:
        beside.image("python")
        beside.node_up()
        kubectl(
            beside, "wait", "serviceaccount/default", "--namespace=default", "--for=create", "--timeout=30s"
        )
        runs_pods(beside, "beside")
        runs_pods(node, "at-home")
    finally:
        beside.down(purge=True)
    assert real_node.own_traces(beside) == []
    runs_pods(node, "still-at-home")


def test_an_image_that_nobody_knows_is_an_error(stack: Stack) -> None:
    with pytest.raises(StackError, match="pyhton is neither pause, python, spark, ray nor a folder"):
        stack.image("pyhton")


def test_there_is_no_node_without_a_stack() -> None:
    with pytest.raises(StackError, match="sluice-local up --name never-up"):
        Stack("never-up").node_up()


def test_a_folder_with_a_dockerfile_is_an_image(node: Stack, tmp_path: Path) -> None:
    if not docker.engine_answers():
        pytest.skip("no Docker engine answers")
    folder = tmp_path / "Of-The-Folder"
    folder.mkdir()
    shutil.copy(KUBECTL.path, folder / "kubectl")
    (folder / "Dockerfile").write_text(
        'FROM scratch\nCOPY kubectl /\nCMD ["/kubectl", "version", "--client"]\n'
    )

    image = node.image(str(folder))

    pod = real_node.python_pod("of-the-folder", "")
    pod["spec"]["containers"] = [{"name": "main", "image": image}]
    create(node, pod)
    wait(node, "of-the-folder", "Succeeded")
    assert "Client Version" in kubectl(node, "logs", "of-the-folder", "--namespace=default")


def test_a_folder_is_told_that_no_docker_engine_answers(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    monkeypatch.setattr(docker, "engine_answers", lambda: False)
    with pytest.raises(StackError, match="no Docker engine answers"):
        stack.image(str(tmp_path))
