"""Certificates by which the API server knows a kubelet, or an operator's webhooks, and a kubelet knows it. They are
made when there is first a need of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sluice_local import paths, tools
from sluice_local.programs import run

_LAST_DAYS = "3650"
# In place of the machine's, which may add extensions of their own.
_SETTINGS = paths.RECIPES / "node" / "openssl.cnf"


@dataclass(frozen=True, slots=True)
class Keys:
    """An authority, and what it has signed, in a folder that only its owner may enter."""

    folder: Path

    @property
    def authority(self) -> Path:
        return self.folder / "nodes.crt"

    @property
    def client(self) -> Path:
        """The API server's, as a kubelet's client."""
        return self.folder / "kubelet-client.crt"

    def exist(self) -> bool:
        return self.client.exists()

    def make(self) -> None:
        if not self.exist():
            _certificate(self.authority, "nodes", "basicConstraints=critical,CA:TRUE", "keyUsage=keyCertSign")
            self._sign(self.client, "kube-apiserver", "extendedKeyUsage=clientAuth")

    def serving(self, certificate: Path, *, address: str) -> None:
        """One for a server at that address."""
        self._sign(certificate, "kubelet", "extendedKeyUsage=serverAuth", f"subjectAltName=IP:{address}")

    def _sign(self, certificate: Path, subject: str, *extensions: str) -> None:
        signer = ["-CA", str(self.authority), "-CAkey", str(self.authority.with_suffix(".key"))]
        _certificate(certificate, subject, "basicConstraints=CA:FALSE", *extensions, signer=signer)


def self_signed(certificate: Path, *, address: str) -> None:
    """One for a server at that address whose clients know no authority. Its key is of the kind that operators read."""
    if not certificate.exists():
        key = certificate.with_suffix(".key")
        run(tools.OPENSSL.find(), "genrsa", "-traditional", "-out", key, "2048")
        _request(certificate, address, f"subjectAltName=IP:{address}", options=["-key", key])


def _certificate(path: Path, subject: str, *extensions: str, signer: Sequence[str] = ()) -> None:
    key = path.with_suffix(".key")
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-keyout", str(key)]
    _request(path, subject, *extensions, options=[*new_key, *signer])


def _request(path: Path, subject: str, *extensions: str, options: Sequence[str | Path]) -> None:
    draft = path.with_suffix(".draft")
    content = ["-subj", f"/CN={subject}", "-days", _LAST_DAYS, "-out", str(draft)]
    added = [word for extension in extensions for word in ("-addext", extension)]
    run(tools.OPENSSL.find(), "req", "-x509", "-config", _SETTINGS, *content, *added, *options)
    draft.rename(path)
