"""kubectl, built like the control plane, and the files that tell it where to go."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from sluice_local.build import GoBinary
from sluice_local.errors import StackError

KUBECTL = GoBinary("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl", takes="1–2 minutes")


def kubectl(*arguments: str | Path, stdin: str = "") -> str:
    """Its output; its complaint as an error."""
    run = subprocess.run([KUBECTL.path, *arguments], input=stdin, capture_output=True, text=True, check=False)
    if run.returncode:
        words = " ".join(word for word in map(str, arguments) if not word.startswith("-"))
        raise StackError(f"kubectl {words} failed:\n{run.stderr.strip()}")
    return run.stdout


def apply(kubeconfig: Path, manifests: str) -> None:
    """Make objects be as the manifests say, whoever has changed them since: on the server, for large CRDs."""
    options = ("--server-side", "--force-conflicts", "--field-manager=sluice-local", "--filename=-")
    kubectl(f"--kubeconfig={kubeconfig}", "apply", *options, stdin=manifests)


def kubeconfig(cluster: Mapping[str, str], user: Mapping[str, str]) -> str:
    """A kubeconfig of one cluster and one user. JSON is YAML."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "local", "cluster": dict(cluster)}],
            "users": [{"name": "local", "user": dict(user)}],
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local"}}],
            "current-context": "local",
        },
        indent=2,
    )
