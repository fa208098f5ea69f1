"""What Sluice needs inside a cluster, ours or a given one: CRDs, policies, and an account per service."""

import json
import time
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluice_local import paths
from sluice_local.kubectl import apply, kubeconfig, kubectl

NAMESPACE = "sluice-system"
_CRDS = paths.DEPLOY / "crds"
_OTHERS = (
    paths.DEPLOY / "base" / "namespace.yaml",
    paths.DEPLOY / "base" / "rbac.yaml",
    paths.DEPLOY / "policies",
)
ACCOUNTS = ("watcher", "scheduler", "actuator", "console")
_TOKENS_LAST = "720h"
# The API server looks for new policies once a second.
_POLICIES_TAKE_EFFECT_S = 1.5


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster, through a folder that holds an administrator's kubeconfig and gets the services'."""

    folder: Path
    proxy: int = 0  # the port through which services come

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    def kubeconfig_of(self, service: str) -> Path:
        return self.folder / f"kubeconfig-{service}"

    @property
    def ca_file(self) -> Path:
        """The kubeconfig carries it inline; some clients want a file."""
        return self.folder / "ca.crt"

    def server(self) -> str:
        return str(self._entry("cluster")["server"])

    def token(self) -> str:
        """The administrator's token; empty where one logs in by other means."""
        return str(self._entry("user").get("token", ""))

    def adopt(self) -> None:
        """Take the cluster that the environment's KUBECONFIG names, and only its current context."""
        view = ("config", "view", "--minify", "--flatten", "--raw", "--output=json")
        self.open_with(kubectl(*view))

    def open_with(self, kubeconfig: str) -> None:
        """Take the cluster of a kubeconfig, given as text."""
        paths.write_private(self.kubeconfig, kubeconfig)
        authority = self._entry("cluster").get("certificate-authority-data", "")
        paths.write_private(self.ca_file, b64decode(authority).decode())

    def set_up(self) -> None:
        """Apply manifests, wait until they count, and write the services' kubeconfigs."""
        kinds = self._text(_CRDS)
        text = "\n---\n".join([kinds, *map(self._text, _OTHERS)])
        applied = self.folder / "applied.yaml"
        is_new = not applied.exists() or applied.read_text() != text
        apply(self.kubeconfig, text)
        paths.write_private(applied, text)
        effective = time.monotonic() + (_POLICIES_TAKE_EFFECT_S if is_new else 0)
        with ThreadPoolExecutor(len(ACCOUNTS)) as pool:
            list(pool.map(self._write_kubeconfig, ACCOUNTS))
        self._kubectl("wait", "--for=condition=Established", "--timeout=30s", "--filename=-", stdin=kinds)
        time.sleep(max(0, effective - time.monotonic()))

    def renew_accounts(self) -> None:
        """Give each service a new account with a new token. Tokens of before end at once."""
        names = [f"sluice-{service}" for service in ACCOUNTS]
        self._kubectl("delete", "serviceaccounts", f"--namespace={NAMESPACE}", *names)
        apply(self.kubeconfig, self._text(paths.DEPLOY / "base" / "rbac.yaml"))
        for service in ACCOUNTS:
            self._write_token(service)

    def _write_kubeconfig(self, service: str) -> None:
        self._write_token(service)
        cluster = self._entry("cluster")
        if self.proxy:
            cluster["server"] = f"https://127.0.0.1:{self.proxy}"
        text = kubeconfig(cluster, {"tokenFile": self._token_of(service).name})
        paths.write_private(self.kubeconfig_of(service), text)

    def _write_token(self, service: str) -> None:
        account = f"sluice-{service}"
        token = self._kubectl(
            "create", "token", account, f"--namespace={NAMESPACE}", f"--duration={_TOKENS_LAST}"
        )
        paths.write_private(self._token_of(service), token)

    def _token_of(self, service: str) -> Path:
        return self.folder / f"token-{service}"

    def _text(self, manifests: Path) -> str:
        return self._kubectl("kustomize", str(manifests)) if manifests.is_dir() else manifests.read_text()

    def _entry(self, kind: str) -> dict[str, Any]:
        (entry,) = json.loads(self.kubeconfig.read_text())[f"{kind}s"]
        content: dict[str, Any] = entry[kind]
        return content

    def _kubectl(self, *arguments: str, stdin: str = "") -> str:
        return kubectl(f"--kubeconfig={self.kubeconfig}", *arguments, stdin=stdin)
