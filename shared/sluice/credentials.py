"""How to reach an API server and who we are there: the pod's service account, or a kubeconfig.

The Kubernetes client's package reads these too, but importing it loads every model of every API: 3 s of CPU
and 80 MB for each service. So it is asked only for what is its own: users of a kubeconfig that log in by a
plug-in (`exec`, `auth-provider`); see `sluice.kube`.
"""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

#: The value of the Authorization header, asked for before each request.
Authorization: TypeAlias = Callable[[], Awaitable[str]]

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
#: The kubelet rotates a token long before it ends.
TOKEN_AGE_MAX_S: Final = 60


class CredentialsError(Exception):
    """Says which file is wrong, and what of it."""


class PluginUserError(CredentialsError):
    """The kubeconfig's user logs in by a plug-in."""


@dataclass(frozen=True, slots=True)
class Credentials:
    server: str
    tls: ssl.SSLContext | None
    authorization: Authorization


def is_in_cluster() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ and "KUBECONFIG" not in os.environ


def of_service_account() -> Credentials:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    if ":" in host:
        host = f"[{host}]"
    tls = ssl.create_default_context(cafile=SERVICE_ACCOUNT / "ca.crt")
    return Credentials(f"https://{host}:{port}", tls, _token_in(SERVICE_ACCOUNT / "token"))


def of_kubeconfig(path: Path) -> Credentials:
    """The current context of a kubeconfig."""
    try:
        config = yaml.safe_load(path.read_text())
        context = _named(config["contexts"], config["current-context"])["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config["users"], context["user"])["user"]
        server = cluster["server"]
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise CredentialsError(f"{path} can't be used as a kubeconfig: {error!r}") from error
    if "exec" in user or "auth-provider" in user:
        raise PluginUserError(f"{path}: user {context['user']} logs in by a plug-in")
    tls = _tls(cluster, user, path.parent) if server.startswith("https:") else None
    return Credentials(server, tls, _authorization(user, path.parent))


def _named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    found = next((item for item in items if item["name"] == name), None)
    if found is None:
        raise KeyError(name)
    return found


def _tls(cluster: Mapping[str, Any], user: Mapping[str, Any], folder: Path) -> ssl.SSLContext:
    authority = cluster.get("certificate-authority-data")
    context = ssl.create_default_context(
        cafile=folder / cluster["certificate-authority"] if "certificate-authority" in cluster else None,
        cadata=base64.b64decode(authority).decode() if authority else None,
    )
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if "client-certificate-data" in user:
        # OpenSSL reads a client's certificate from files only.
        with tempfile.NamedTemporaryFile() as file:
            for part in ("client-certificate-data", "client-key-data"):
                file.write(base64.b64decode(user[part]) + b"\n")
            file.flush()
            context.load_cert_chain(file.name)
    elif "client-certificate" in user:
        context.load_cert_chain(folder / user["client-certificate"], folder / user["client-key"])
    return context


def _authorization(user: Mapping[str, Any], folder: Path) -> Authorization:
    if "tokenFile" in user:
        return _token_in(folder / user["tokenFile"])
    header = f"Bearer {user['token']}" if "token" in user else ""

    async def same() -> str:
        return header

    return same


def _token_in(path: Path) -> Authorization:
    header, read_at = "", 0.0

    async def current() -> str:
        nonlocal header, read_at
        if not header or time.monotonic() - read_at > TOKEN_AGE_MAX_S:
            token = path.read_text().strip()  # noqa: ASYNC240 - a small file in memory
            header, read_at = f"Bearer {token}", time.monotonic()
        return header

    return current
