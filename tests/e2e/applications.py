"""Applications of one kind in one tenant's namespace, and what their DynamicWorkloads show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cluster import TERMINAL, Tenants, is_gated, pool, queue
from cluster_api import Object, made
from operators import crds
from sluice.applications import APPLICATION_KINDS, BY_HAND

#: A kind that was not installed is looked for every 30 s.
FIRST_SEEN_S = 90


@contextmanager
def one_queue(tenants: Tenants, *kinds: str) -> Iterator[Tenants]:
    """`a`, over a pool to which a test adds nodes; applications of these kinds are deleted in the end."""
    tenants.provide(pool(), queue("a"))
    tenants.settle("a")
    yield tenants
    for kind in kinds:
        tenants.api.delete(Applications(tenants, "a", kind).path)


class Applications:
    """Applications of one kind in one tenant's namespace."""

    def __init__(self, tenants: Tenants, namespace: str, kind: str, *, stored_as: str = "") -> None:
        self.tenants = tenants
        self.api = tenants.api
        self.namespace = namespace
        self.kind = kind
        # None of Spark without its operator: there are only pods of it.
        known = APPLICATION_KINDS.get(stored_as or kind)
        self.path = known.path(namespace, "").rstrip("/") if known else ""

    def create(self, obj: Object) -> Object:
        return made(crds.create(self.api, self.path, obj))

    def get(self, name: str) -> Object:
        return made(self.api.get(f"{self.path}/{name}"))

    def delete(self, name: str) -> Object:
        return made(self.api.delete(f"{self.path}/{name}"))

    def all_shown(self) -> list[Object]:
        """The DynamicWorkloads of applications of this kind."""
        path = APPLICATION_KINDS[BY_HAND].path(self.namespace, "").rstrip("/")
        items = made(self.api.get(path))["items"]
        return [each for each in items if each["spec"]["application"]["kind"] == self.kind]

    def shown(self, name: str) -> Object:
        """The DynamicWorkload of one; empty while there is none."""
        return next((e for e in self.all_shown() if e["spec"]["application"]["name"] == name), {})

    def status(self, name: str) -> Object:
        return dict(self.shown(name).get("status", {}))

    def phase(self, name: str) -> str:
        return str(self.status(name).get("phase", ""))

    def runs(self, name: str) -> bool:
        """Whether it is there, and may make its pods."""
        answer = self.api.get(f"{self.path}/{name}")
        return answer.ok and not answer.body["spec"].get("suspend", False)

    def granted(self, name: str) -> dict[str, tuple[int, int]]:
        """Of each pod set how many are admitted, and how many it wants."""
        sets = self.status(name).get("podSets", ())
        return {each["name"]: (each.get("admitted", 0), each.get("desired", 0)) for each in sets}

    def condition(self, name: str, kind: str) -> Object:
        return next(
            (dict(each) for each in self.status(name).get("conditions", ()) if each["type"] == kind), {}
        )

    def open_pods(self) -> list[str]:
        return [
            p["metadata"]["name"]
            for p in self.tenants.pods(self.namespace)
            if not is_gated(p) and p["status"]["phase"] not in TERMINAL
        ]
