"""What every simulated operator is: a loop that looks at everything of its kinds and does what is missing.

They imitate what operators do with objects of the API server, as far as it matters for quota: which pods they
create with which labels and owners, what suspension deletes, which states they write. They create pods, but
nothing runs in these, and they know nothing of Sluice.
"""

from __future__ import annotations

import threading
from http.client import HTTPException
from types import TracebackType
from typing import Any, Self

from cluster_api import Answer, Api, BusyError, Object, made
from sluice.applications import APPLICATION_KINDS
from sluice_local import Endpoints


class Operator:
    """Runs while it is entered."""

    look_every_s = 0.2

    def __init__(self, endpoints: Endpoints, namespace: str) -> None:
        self.api = Api(endpoints)
        self.namespace = namespace
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._error: Exception | None = None

    def reconcile(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join(30)
        if self._error is not None:  # most likely why the test failed, if it did
            raise self._error

    def _run(self) -> None:
        while not self._stop.wait(self.look_every_s):
            try:
                self.reconcile()
            except (OSError, HTTPException, BusyError):
                continue  # the API server is away
            except Exception as error:
                self._error = error
                return

    # ---- the API server

    def path(self, kind: str, name: str = "") -> str:
        return APPLICATION_KINDS[kind].path(self.namespace, name).rstrip("/")

    def each(self, kind: str) -> list[Object]:
        """Those that nobody is deleting; their kind stands in them."""
        items = made(self.api.get(self.path(kind)))["items"]
        return [
            {"apiVersion": APPLICATION_KINDS[kind].api_version, "kind": kind, **item}
            for item in items
            if "deletionTimestamp" not in item["metadata"]
        ]

    def owned(self, path: str, owner: Object) -> dict[str, Object]:
        """What an object controls of those at a path, by name."""
        return {
            each["metadata"]["name"]: each
            for each in made(self.api.get(path))["items"]
            if any(o["uid"] == owner["metadata"]["uid"] for o in each["metadata"].get("ownerReferences", ()))
        }

    def pods(self, owner: Object) -> dict[str, Object]:
        return self.owned(self._pods, owner)

    def create(self, path: str, obj: Object) -> None:
        _unless(self.api.create(path, obj), 409)

    def delete(self, path: str) -> None:
        _unless(self.api.delete(path), 404)

    def create_pod(self, owner: Object, name: str, template: Object, **labels: str) -> None:
        obj = {
            "metadata": {"name": name, "labels": labels, "ownerReferences": [controlled_by(owner)]},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, **template},
        }
        self.create(self._pods, obj)

    def delete_pod(self, name: str) -> None:
        self.delete(f"{self._pods}/{name}")

    def write_status(self, obj: Object, status: Object) -> None:
        """If it says something new."""
        old: dict[str, Any] = obj.get("status") or {}
        if any(old.get(key) != value for key, value in status.items()):
            path = self.path(obj["kind"], obj["metadata"]["name"])
            _unless(self.api.merge(f"{path}/status", {"status": status}), 404)


def controlled_by(owner: Object) -> Object:
    return {
        "apiVersion": owner.get("apiVersion", "v1"),
        "kind": owner.get("kind", "Pod"),
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _unless(answer: Answer, *status: int) -> None:
    """It must have succeeded, unless somebody else was faster."""
    if answer.status not in status:
        made(answer)
