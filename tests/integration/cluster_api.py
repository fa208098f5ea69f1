"""A client of the API server for tests: synchronous, raw JSON, acting as whomever a test needs."""

import json
import ssl
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from sluice_local import Endpoints

JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
Object = dict[str, Any]


@dataclass(frozen=True)
class User:
    """Somebody to act as."""

    name: str
    groups: tuple[str, ...] = ("system:authenticated",)


@dataclass(frozen=True)
class Answer:
    status: int
    body: Object

    @property
    def ok(self) -> bool:
        return self.status < 300

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


class Api:
    """Calls to one API server, each on a connection of its own, so that nothing outlives a restart."""

    def __init__(self, endpoints: Endpoints, *, user: User | None = None) -> None:
        self._endpoints = endpoints
        self._user = user
        self._server = urlsplit(endpoints.api_server)
        self._context = ssl.create_default_context(cafile=endpoints.ca_file)

    def acting_as(self, user: User | None) -> "Api":
        return Api(self._endpoints, user=user)

    def call(
        self, method: str, path: str, body: object = None, *, content_type: str = JSON, accept: str = JSON
    ) -> Answer:
        """The server's answer; without one, OSError or HTTPException."""
        payload = b"" if body is None else json.dumps(body).encode()
        assert self._server.hostname
        with closing(
            HTTPSConnection(self._server.hostname, self._server.port, timeout=30, context=self._context)
        ) as connection:
            connection.putrequest(method, path)
            connection.putheader("Authorization", f"Bearer {self._endpoints.admin_token}")
            connection.putheader("Content-Type", content_type)
            connection.putheader("Accept", accept)
            connection.putheader("Content-Length", str(len(payload)))
            if self._user:
                connection.putheader("Impersonate-User", self._user.name)
                for group in self._user.groups:
                    connection.putheader("Impersonate-Group", group)
            connection.endheaders(payload)
            response = connection.getresponse()
            text = response.read()
        return Answer(
            response.status, json.loads(text) if text.startswith(b"{") else {"message": text.decode()}
        )

    def get(self, path: str, *, accept: str = JSON) -> Answer:
        return self.call("GET", path, accept=accept)

    def create(self, path: str, obj: Object) -> Answer:
        return self.call("POST", path, obj)

    def merge(self, path: str, patch: Object) -> Answer:
        return self.call("PATCH", path, patch, content_type=MERGE)

    def patch(self, path: str, *operations: Object) -> Answer:
        return self.call("PATCH", path, list(operations), content_type=JSON_PATCH)

    def delete(self, path: str) -> Answer:
        return self.call("DELETE", path)


class BusyError(AssertionError):
    """The server says that it can't answer now."""


def made(answer: Answer) -> Object:
    """The object of an answer that must have succeeded."""
    if answer.status == 429 or answer.status >= 500:
        raise BusyError(f"{answer.status}: {answer.message}")
    assert answer.ok, f"{answer.status}: {answer.message}"
    return answer.body


def refused(answer: Answer, *words: str) -> None:
    """An answer that must be a refusal whose message has these words."""
    assert answer.status in (400, 403, 422), f"expected a refusal, got {answer.status}: {answer.body}"
    for word in words:
        assert word in answer.message


def eventually(condition: Callable[[], Any], *, seconds: float = 15) -> Any:
    """The condition's value as soon as it is true."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "it did not become true in time"
        time.sleep(0.05)
    return value


def account_token(api: Api, namespace: str, account: str) -> str:
    """With which somebody is a service account for an hour."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    return str(made(api.create(path, {"spec": {"expirationSeconds": 3600}}))["status"]["token"])


@contextmanager
def namespace(api: Api, labels: Mapping[str, str]) -> Iterator[str]:
    """A namespace of its own, ready for pods."""
    name = f"t-{uuid.uuid4().hex[:10]}"
    made(api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": dict(labels)}}))
    eventually(lambda: api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default").ok)
    try:
        yield name
    finally:
        api.delete(f"/api/v1/namespaces/{name}")
