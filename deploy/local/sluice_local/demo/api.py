"""The Kubernetes API with the standard library: a few calls, and watches that begin again when they end."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from sluice_local.errors import StackError
from sluice_local.stack import Endpoints

Object: TypeAlias = dict[str, Any]

_APPLY: Final = "application/apply-patch+yaml"
_MERGE: Final = "application/merge-patch+json"
_CHANGE: Final = "application/json-patch+json"
_ATTEMPTS: Final = 5


class ApiError(StackError):
    """The API server said no."""

    def __init__(self, method: str, path: str, status: int, message: str) -> None:
        super().__init__(f"{method} {path}: {status} {message}")
        self.status = status


class Api:
    """Safe to use from several threads: each has its own connection."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._address = urlsplit(endpoints.api_server).netloc
        self._tls = ssl.create_default_context(cafile=str(endpoints.ca_file))
        self._headers = {"Authorization": f"Bearer {endpoints.admin_token}", "Accept": "application/json"}
        self._threads = threading.local()

    def get(self, path: str) -> Object | None:
        """None when there is no such object."""
        try:
            return self._call("GET", path)
        except ApiError as error:
            if error.status == http.client.NOT_FOUND:
                return None
            raise

    def apply(self, path: str, manifest: Object) -> Object:
        """Make an object be as its manifest says."""
        return self._call("PATCH", f"{path}?fieldManager=sluice-demo&force=true", manifest, _APPLY)

    def create(self, path: str, manifest: Object) -> None:
        """Create an object, unless an attempt whose answer was lost has created it already."""
        try:
            self._call("POST", path, manifest)
        except ApiError as error:
            if error.status != http.client.CONFLICT:
                raise

    def merge(self, path: str, part: Object) -> None:
        """Make a part of an object be so."""
        self._call("PATCH", path, part, _MERGE)

    def change(self, path: str, operation: Object) -> None:
        """One operation of a JSON patch, which reaches into lists too."""
        self._call("PATCH", path, [operation], _CHANGE)

    def delete(self, path: str) -> None:
        """One object or a whole collection, and what they control: at once, for these are simulated. What is
        not there is as it should be."""
        options = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
        try:
            self._call("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", **options})
        except ApiError as error:
            if error.status != http.client.NOT_FOUND:
                raise

    def watch(self, path: str, selector: str = "") -> Iterator[tuple[str, Object]]:
        """What is there, and then every change, for ever: ("ADDED" | "MODIFIED" | "DELETED", object).

        A watch that breaks goes on from the last version seen; one that has lost its place raises ApiError.
        """
        query = f"labelSelector={selector}"
        listed = self._call("GET", f"{path}?{query}")
        for item in listed["items"]:
            yield "ADDED", item
        version = listed["metadata"]["resourceVersion"]
        while True:
            try:
                for change, seen in self._stream(f"{path}?watch=1&{query}&resourceVersion={version}"):
                    version = seen["metadata"]["resourceVersion"]
                    yield change, seen
            except (OSError, http.client.HTTPException):
                time.sleep(0.2)

    def _stream(self, path: str) -> Iterator[tuple[str, Object]]:
        connection = self._connect(timeout_s=60)
        try:
            connection.request("GET", path, headers=self._headers)
            answer = connection.getresponse()
            for line in answer:
                news = json.loads(line)
                if news["type"] == "ERROR":
                    raise ApiError("GET", path, news["object"]["code"], news["object"]["message"])
                yield news["type"], news["object"]
        finally:
            connection.close()

    def _call(
        self,
        method: str,
        path: str,
        body: Object | list[Object] | None = None,
        form: str = "application/json",
    ) -> Object:
        """Everything here may be done twice, so what got no answer, or one for later, is tried again."""
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(0.2 * 2**attempt)
            try:
                status, text = self._exchange(method, path, body, form)
            except (OSError, http.client.HTTPException) as error:
                self._threads.connection = None
                trouble = ApiError(method, path, 0, str(error) or type(error).__name__)
                continue
            if status < 300:
                found: Object = json.loads(text)
                return found
            trouble = ApiError(method, path, status, _message(text))
            if status != http.client.TOO_MANY_REQUESTS and status < 500:
                break
        raise trouble

    def _exchange(
        self, method: str, path: str, body: Object | list[Object] | None, form: str
    ) -> tuple[int, bytes]:
        connection: http.client.HTTPSConnection | None = getattr(self._threads, "connection", None)
        if connection is None:
            connection = self._threads.connection = self._connect(timeout_s=30)
        text = json.dumps(body) if body is not None else None
        connection.request(method, path, text, {**self._headers, "Content-Type": form})
        answer = connection.getresponse()
        return answer.status, answer.read()

    def _connect(self, *, timeout_s: float) -> http.client.HTTPSConnection:
        connection = http.client.HTTPSConnection(self._address, timeout=timeout_s, context=self._tls)
        connection.connect()
        # Small requests must not wait for the acknowledgement of earlier ones.
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


def _message(text: bytes) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text[:300].decode(errors="replace")
