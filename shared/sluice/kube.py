"""The Kubernetes API as raw calls.

Typed deserialisation is the Kubernetes client's known bottleneck: answers stay bytes, callers parse what
they need.
"""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import orjson

from sluice.credentials import (
    Credentials,
    PluginUserError,
    is_in_cluster,
    of_kubeconfig,
    of_service_account,
)
from sluice.texts import cut

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
JSON: Final = "application/json"
#: A watched object comes as one line, which may be this long.
STREAM_BUFFER_BYTES: Final = 2**21


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
        """The API server's own words. They may quote an object's fields in full."""
        try:
            return cut(str(self.json().get("message") or ""))
        except (json.JSONDecodeError, AttributeError):
            return cut(self.body.decode(errors="replace"))


class KubeClient:
    """Raw calls to one API server."""

    def __init__(self, credentials: Credentials, *, connections: int) -> None:
        self._credentials = credentials
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=connections, ssl=credentials.tls or False),
            proxy=_environment_proxy(credentials.server),
            read_bufsize=STREAM_BUFFER_BYTES,
        )

    @classmethod
    async def connect(cls, *, connections: int = 32) -> KubeClient:
        """As the pod's service account, or as KUBECONFIG says."""
        if is_in_cluster():
            return cls(of_service_account(), connections=connections)
        path = Path(os.environ.get("KUBECONFIG") or Path.home() / ".kube" / "config")
        try:
            credentials = of_kubeconfig(path)
        except PluginUserError:
            credentials = await _of_plugin_user(path)
        return cls(credentials, connections=connections)

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
        headers = await self._headers()
        headers["Accept"] = accept
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            async with self._http.request(
                method,
                self._credentials.server + path,
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
            self._credentials.server + path,
            params=query,
            headers=await self._headers(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=silence_s),
        ) as response:
            yield response

    async def _headers(self) -> dict[str, str]:
        """Who we are is asked for anew each time: tokens are rotated under us."""
        authorization = await self._credentials.authorization()
        return {"User-Agent": "sluice"} | ({"Authorization": authorization} if authorization else {})

    async def close(self) -> None:
        await self._http.close()


async def _of_plugin_user(path: Path) -> Credentials:
    """Log in as the Kubernetes client does; imported here, for it is large (see `sluice.credentials`)."""
    from kubernetes.aio import client, config  # noqa: PLC0415

    configuration = client.Configuration()
    await config.load_kube_config(config_file=str(path), client_configuration=configuration)
    tls = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        tls.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)

    async def authorization() -> str:
        settings = await configuration.auth_settings()
        return str(settings.get("BearerToken", {}).get("value", ""))

    return Credentials(configuration.host, tls, authorization)


def _environment_proxy(url: str) -> str | None:
    """What HTTPS_PROXY and NO_PROXY say of the API server."""
    server = urlsplit(url)
    if server.hostname is None or proxy_bypass(server.hostname):
        return None
    return getproxies().get(server.scheme)
