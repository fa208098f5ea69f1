"""An API server's answers → what the reflector is told; `tests/contract` has what a real one answers."""

from __future__ import annotations

from typing import Any, cast

import pytest
from sluice.kube import Answer, KubeClient
from sluice_watcher.kube import Gone, KubeCluster, NotServed, Refused


class Client:
    """Answers everything alike."""

    def __init__(self, status: int, body: bytes) -> None:
        self._answer = Answer(status, body)

    async def request(self, method: str, path: str, **_: Any) -> Answer:
        return self._answer


@pytest.mark.parametrize(
    ("status", "body", "refusal"),
    [
        (200, b"<html>log in first</html>", Refused),
        (200, b"[]", Refused),
        (200, b'{"kind": "Status"}', Refused),
        (403, b'{"message": "no"}', Refused),
        (404, b"", NotServed),
        (410, b"{}", Gone),
    ],
)
async def test_whatever_is_no_list_is_a_refusal(status: int, body: bytes, refusal: type[Refused]) -> None:
    cluster = KubeCluster(cast(KubeClient, Client(status, body)))
    with pytest.raises(Refused) as raised:
        await cluster.page("/api/v1/pods", limit=1, token="")
    assert (type(raised.value), raised.value.status) == (refusal, status)
