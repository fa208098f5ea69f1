"""The Kubernetes API as the actuator needs it: five calls, each answered with a status, or not at all."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

import orjson
from sluice.kube import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, Answer, KubeClient, Unreachable
from sluice.vocabulary import API_VERSION

from sluice_actuator import metrics

__all__ = [
    "JSON_PATCH",
    "MERGE_PATCH",
    "STRATEGIC_MERGE_PATCH",
    "Answer",
    "Cluster",
    "Json",
    "KubeCluster",
    "Unreachable",
    "events_path",
    "namespace_path",
    "pod_path",
    "sluice_path",
]

Json: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]

#: Longer than the API server itself takes to give up on a write, so that most time-outs are its 504.
ANSWER_TIMEOUT_S: Final = 40
#: The happy path needs the status alone: metadata is the least that the API server can be asked for.
_METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"


def pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def namespace_path(name: str) -> str:
    return f"/api/v1/namespaces/{name}"


def events_path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/events"


def sluice_path(plural: str, name: str) -> str:
    return f"/apis/{API_VERSION}/{plural}/{name}"


class Cluster(Protocol):
    """One Kubernetes cluster. Whatever gets no answer raises Unreachable: it may have been carried out."""

    async def get(self, path: str) -> Answer:
        """The whole object."""

    async def patch(self, path: str, patch: Json, *, form: str) -> Answer:
        """The answer carries the object's metadata at least. `form` is the patch's media type."""

    async def create(self, path: str, body: Json) -> Answer: ...

    async def evict(self, namespace: str, name: str, *, uid: str, grace_s: int | None = None) -> Answer:
        """Ask for the pod with this uid to go; 429 while a disruption budget holds it. It has so long to end, or as
        long as it says itself. Of one that is being deleted the time gets shorter, and never longer."""

    async def delete(self, path: str, *, uid: str, grace_s: int | None = None) -> Answer:
        """Delete the object with this uid; a pod has as long to end as if it was evicted."""


class KubeCluster:
    """The Cluster that an API server is."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def get(self, path: str) -> Answer:
        return await self._request("GET", path, verb="get")

    async def patch(self, path: str, patch: Json, *, form: str) -> Answer:
        return await self._request("PATCH", path, verb="patch", body=patch, content_type=form)

    async def create(self, path: str, body: Json) -> Answer:
        return await self._request("POST", path, verb="create", body=body)

    async def evict(self, namespace: str, name: str, *, uid: str, grace_s: int | None = None) -> Answer:
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": namespace, "name": name},
            "deleteOptions": _delete_options(uid, grace_s),
        }
        return await self._request(
            "POST", pod_path(namespace, name) + "/eviction", verb="evict", body=eviction
        )

    async def delete(self, path: str, *, uid: str, grace_s: int | None = None) -> Answer:
        return await self._request("DELETE", path, verb="delete", body=_delete_options(uid, grace_s))

    async def _request(
        self,
        method: str,
        path: str,
        *,
        verb: str,
        body: Json | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        begun = time.perf_counter()
        status = 0
        try:
            answer = await self._client.request(
                method,
                path,
                body=None if body is None else orjson.dumps(body),
                content_type=content_type,
                accept="application/json" if method == "GET" else _METADATA_ONLY,
                timeout_s=ANSWER_TIMEOUT_S,
            )
            status = answer.status
            return answer
        finally:
            metrics.API_REQUESTS(verb, status).inc()
            metrics.API_SECONDS(verb).observe(time.perf_counter() - begun)


def _delete_options(uid: str, grace_s: int | None) -> dict[str, Any]:
    options: dict[str, Any] = {"preconditions": {"uid": uid}}
    return options if grace_s is None else {**options, "gracePeriodSeconds": grace_s}
