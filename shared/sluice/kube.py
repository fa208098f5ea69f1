"""The Kubernetes API over its asynchronous client's connections, without its models.

Typed deserialisation is the client's known bottleneck: answers stay bytes, callers parse what they need.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import orjson
from kubernetes.aio import client, config

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
JSON: Final = "application/json"


class Unreachable(Exception):  # noqa: N818 - reads as what it says
    """No answer: the call may or may not have been carried out."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    retry_after_s: float | None = None

    @property
    def ok(self) -> bool:
        return self.status < 300

    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def message(self) -> str:
        """The API server's own words."""
        try:
            return str(self.json().get("message") or "")
        except (json.JSONDecodeError, AttributeError):
            return self.body[:300].decode(errors="replace")


class KubeClient:
    """Raw calls to one API server, authenticated as KUBECONFIG or the pod's service account says."""

    def __init__(self, configuration: client.Configuration) -> None:
        self._configuration = configuration
        self._api = client.ApiClient(configuration)
        self._http: aiohttp.ClientSession = self._api.rest_client.pool_manager

    @classmethod
    async def connect(cls, *, connections: int = 32) -> KubeClient:
        configuration = client.Configuration()
        if "KUBERNETES_SERVICE_HOST" in os.environ and "KUBECONFIG" not in os.environ:
            config.load_incluster_config(configuration)
        else:
            await config.load_kube_config(client_configuration=configuration)
        configuration.connection_pool_maxsize = connections
        return cls(configuration)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        timeout_s: float = 30,
    ) -> Answer:
        headers = await self._authorization()
        headers["Accept"] = accept
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            async with self._http.request(
                method,
                self._configuration.host + path,
                params=query,
                data=body,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=timeout_s),
            ) as response:
                content = await response.read()
                retry_after = response.headers.get("Retry-After", "")
                return Answer(
                    response.status, content, float(retry_after) if retry_after.isdecimal() else None
                )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(f"{method} {path}: {error or type(error).__name__}") from error

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str], silence_s: float
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer that goes on; reading raises TimeoutError after `silence_s` without a byte."""
        async with self._http.get(
            self._configuration.host + path,
            params=query,
            headers=await self._authorization(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=silence_s),
        ) as response:
            yield response

    async def _authorization(self) -> dict[str, str]:
        """Asked for anew each time: service account tokens are rotated under us."""
        headers: dict[str, str] = {"User-Agent": "sluice"}
        await self._api.update_params_for_auth(headers, [], ["BearerToken"])
        return headers

    async def close(self) -> None:
        await self._api.close()
