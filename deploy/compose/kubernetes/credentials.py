"""Mints what the containers know each other by, once: later runs change nothing.

Writes into /credentials: `env` (settings of Kafka, Redis and Sluice's services), `tokens.csv` (whom the API
server knows) and a kubeconfig for each user in it.
"""

import secrets
from pathlib import Path

from sluice_local.kubectl import kubeconfig
from sluice_local.paths import write_private

CREDENTIALS = Path("/credentials")
#: The API server makes its certificate itself, at its first start.
CLUSTER = {"server": "https://kubernetes:6443", "certificate-authority": "/control-plane/apiserver.crt"}
USERS = {
    "admin": ("admin", "system:masters"),
    "kube-controller-manager": ("system:kube-controller-manager", ""),
    "kube-scheduler": ("system:kube-scheduler", ""),
    "kwok": ("kwok", ""),
}


def main() -> None:
    tokens = CREDENTIALS / "tokens.csv"
    if tokens.exists():
        return
    kafka, redis = secrets.token_hex(24), secrets.token_hex(24)
    settings = {
        "SLUICE_KAFKA_USERNAME": "sluice",
        "SLUICE_KAFKA_PASSWORD": kafka,
        "SLUICE_REDIS_PASSWORD": redis,
        "SLUICE_REDIS": f"redis://:{redis}@redis:6379/0",
    }
    write_private(CREDENTIALS / "env", "".join(f"{name}={value}\n" for name, value in settings.items()))
    lines = []
    for name, (user, group) in USERS.items():
        token = secrets.token_hex(24)
        lines.append(f'{token},{user},{user},"{group}"\n')
        write_private(CREDENTIALS / name, kubeconfig(CLUSTER, token))
    write_private(tokens, "".join(lines))  # last: it says that all is there


main()
