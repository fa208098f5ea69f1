"""Sluice's services as processes: started in several instances, told apart, ended one by one."""

import json
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from sluice_local import Stack, StackError

SERVICE = f"""#!{sys.executable}
import http.server, json, os

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(dict(os.environ)).encode())

host, port = os.environ["SLUICE_HTTP"].split(":")
http.server.HTTPServer((host, int(port)), Answer).serve_forever()
"""


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    """A stack of services alone, which tell the environment that they found."""
    for service in ("watcher", "scheduler"):
        program = tmp_path / f"sluice-{service}"
        program.write_text(SERVICE)
        program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    stack = Stack("services")
    yield stack
    stack.down(purge=True)


def _environment(address: str) -> dict[str, str]:
    with urllib.request.urlopen(f"http://{address}/", timeout=5) as answer:
        environment: dict[str, str] = json.load(answer)
        return environment


def test_a_service_finds_its_endpoints_and_identity_in_its_environment(stack: Stack) -> None:
    stack.start("watcher")
    (watcher,) = stack.status()

    environment = _environment(watcher.address)
    assert watcher.ready
    assert environment["SLUICE_HTTP"] == watcher.address
    assert environment["KUBECONFIG"] == str(stack.directory / "kubeconfig-watcher")
    assert environment["SLUICE_KAFKA"] == stack.endpoints.kafka
    assert environment["SLUICE_KAFKA_PASSWORD"] == stack.endpoints.kafka_password
    assert environment["SLUICE_REDIS"] == stack.endpoints.redis
    assert environment["SLUICE_CLUSTER"] == "local"


def test_instances_live_and_die_apart(stack: Stack) -> None:
    stack.start("scheduler")
    stack.start("scheduler", instance="scheduler-2")
    first, second = stack.status()
    assert first.address != second.address
    assert _environment(second.address)["KUBECONFIG"] == str(stack.directory / "kubeconfig-scheduler")

    stack.kill("scheduler")
    assert [status.pid for status in stack.status()] == [None, second.pid]

    stack.services_up(["scheduler"])
    assert stack.status()[0].address == first.address
    assert stack.status()[1] == second or stack.status()[1].pid == second.pid


def test_a_service_that_is_not_installed_is_named(stack: Stack) -> None:
    with pytest.raises(StackError, match="sluice-actuator"):
        stack.services_up(["actuator"])
