"""The cell's Lease: each write to it mints an epoch, for the API server orders writes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
from sluice.kube import MERGE_PATCH, Answer, KubeClient, Unreachable
from sluice.vocabulary import SYSTEM_NAMESPACE

from sluice_scheduler.ports import LeaseError

_LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/leases"


class KubernetesLease:
    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def write(self, cell: str, holder: str) -> tuple[str, int]:
        try:
            identity = await self._client.request("GET", "/api/v1/namespaces/kube-system")
            answer = await self._write(f"cell-{cell}", holder)
        except Unreachable as error:
            raise LeaseError(str(error)) from error
        for reply in (identity, answer):
            if not reply.ok:
                raise LeaseError(f"status {reply.status}: {reply.message}")
        return identity.json()["metadata"]["uid"], int(answer.json()["metadata"]["resourceVersion"])

    async def _write(self, name: str, holder: str) -> Answer:
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        spec = {"holderIdentity": holder, "acquireTime": now, "renewTime": now}
        patch = orjson.dumps({"spec": spec})
        answer = await self._client.request(
            "PATCH", f"{_LEASES}/{name}", body=patch, content_type=MERGE_PATCH
        )
        if answer.status != 404:
            return answer
        lease: dict[str, Any] = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name},
            "spec": spec,
        }
        return await self._client.request("POST", _LEASES, body=orjson.dumps(lease))
