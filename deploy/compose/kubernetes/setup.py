"""Makes the cluster ready: CRDs, accounts, policies, and a kubeconfig for each of Sluice's services."""

import json
import os
from base64 import b64encode
from pathlib import Path

CREDENTIALS = Path("/credentials")
# Where sluice_local looks for the programs that it has built itself.
os.environ["XDG_CACHE_HOME"] = "/tmp"

from sluice_local import paths  # noqa: E402
from sluice_local.cluster import Cluster  # noqa: E402
from sluice_local.kubectl import KUBECTL, apply  # noqa: E402
from sluice_local.stack import MANIFESTS  # noqa: E402


def main() -> None:
    KUBECTL.path.parent.mkdir(parents=True, exist_ok=True)
    KUBECTL.path.unlink(missing_ok=True)
    KUBECTL.path.symlink_to("/usr/local/bin/kubectl")
    cluster = Cluster(CREDENTIALS)
    admin = json.loads((CREDENTIALS / "admin").read_text())
    (entry,) = admin["clusters"]
    authority = Path(entry["cluster"].pop("certificate-authority")).read_bytes()
    entry["cluster"]["certificate-authority-data"] = b64encode(authority).decode()
    cluster.open_with(json.dumps(admin))
    cluster.set_up(*MANIFESTS)
    apply(cluster.kubeconfig, (paths.RECIPES / "kwok" / "rbac.yaml").read_text())
    print("the cluster has CRDs, accounts and policies")


main()
