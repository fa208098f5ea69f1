"""Sets the stage: kinds, nodes, pool, queues, namespaces as the scenario says, nothing of the last run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from sluice_local.build import Say
from sluice_local.demo import scenario
from sluice_local.demo.api import Api, Object
from sluice_local.demo.scenario import ETL, LABEL, ML, TENANTS
from sluice_local.errors import StackError

_WITHIN_S: Final = 60.0
#: So many of what is not the demo's a message names.
_NAMED: Final = 3
_SLUICE: Final = "/apis/sluice.dev/v1alpha1"
_CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_POOL: Final = f"{_SLUICE}/resourcepools/{scenario.POOL}"


def provide_kinds(api: Api, say: Say) -> bool:
    """The kinds of the applications, before Sluice's services look for them; whether any was missing. Real
    CRDs that are there are taken as they are.
    """
    missing = False
    for tenant in (ETL, ML):
        manifest = scenario.crd(tenant)
        path = f"{_CRDS}/{manifest['metadata']['name']}"
        if api.get(path) is None:
            say(f"a small CRD in place of the real {tenant.kind}'s")
            api.apply(path, manifest)
            missing = True
        _wait(f"the API server to serve {tenant.kind}", partial(_is_served, api, path))
    return missing


def set_stage(api: Api, say: Say) -> None:
    objects = _objects()
    for path in objects:
        _refuse_what_is_not_ours(api, path)
    if others := _others(api):
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        say(
            f"beside {', '.join(others[:_NAMED])}{more}, which stay as they are: pods of theirs may use the demo's "
            "nodes, so it may look otherwise. To have it alone: SLUICE_STACK=demo make demo"
        )
    if _left(api):
        say("taking away the last run's applications")
        for tenant in TENANTS:
            api.delete(tenant.applications_path)
            api.delete(tenant.pods_path)
        _wait("the last run's applications to go", lambda: not _left(api))
    say(
        f"{scenario.NODES} simulated nodes, ResourcePool {scenario.POOL}, a Queue and a namespace each for "
        f"{', '.join(tenant.name for tenant in TENANTS)}"
    )
    place(api, objects)
    _wait("the pool to count its nodes", lambda: _nodes_counted(api) == scenario.NODES)


def place(api: Api, objects: Mapping[str, Object]) -> None:
    """Objects by path, among them each tenant's queue and namespace."""
    for path, manifest in objects.items():
        api.apply(path, manifest)
    _wait("Sluice to bind the namespaces to their queues", lambda: all(_is_bound(api, t) for t in TENANTS))


def _objects() -> dict[str, dict[str, Any]]:
    """Manifests by path. Queues before namespaces, so that a namespace is bound as soon as it is there."""
    nodes = (scenario.node(number) for number in range(scenario.NODES))
    return {
        **{f"/api/v1/nodes/{node['metadata']['name']}": node for node in nodes},
        _POOL: scenario.pool(),
        **{f"{_SLUICE}/queues/{tenant.name}": scenario.queue(tenant) for tenant in TENANTS},
        **{f"/api/v1/namespaces/{tenant.namespace}": scenario.namespace(tenant) for tenant in TENANTS},
    }


def _refuse_what_is_not_ours(api: Api, path: str) -> None:
    found = api.get(path)
    if found and LABEL not in found["metadata"].get("labels", {}):
        raise StackError(
            f"The demo needs the name {path.rpartition('/')[2]} ({path}), which something of yours bears in "
            "this stack. Run it in a stack of its own: SLUICE_STACK=demo make demo"
        )


def _others(api: Api) -> list[str]:
    """Queues and pools of the cell that are not the demo's."""
    found = []
    for kind, plural in (("Queue", "queues"), ("ResourcePool", "resourcepools")):
        listed = (api.get(f"{_SLUICE}/{plural}") or {}).get("items", ())
        metadata = [each["metadata"] for each in listed]
        found += [f"{kind} {each['name']}" for each in metadata if LABEL not in each.get("labels", {})]
    return found


def _is_served(api: Api, path: str) -> bool:
    conditions = (api.get(path) or {}).get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _left(api: Api) -> bool:
    """Whether anything of an earlier run is there. What shows its applications goes a little after them."""
    paths: list[str] = []
    for tenant in TENANTS:
        paths += [
            tenant.pods_path,
            tenant.applications_path,
            f"{_SLUICE}/namespaces/{tenant.namespace}/dynamicworkloads",
        ]
    return any((api.get(path) or {}).get("items") for path in paths)


def _is_bound(api: Api, tenant: scenario.Tenant) -> bool:
    found = api.get(f"/api/v1/namespaces/{tenant.namespace}")
    return found is not None and found["metadata"]["labels"].get("sluice.dev/queue") == tenant.name


def _nodes_counted(api: Api) -> int:
    found = api.get(_POOL)
    return int(found.get("status", {}).get("nodes", 0)) if found else 0


def _wait(for_what: str, done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WITHIN_S
    while not done():
        if time.monotonic() > deadline:
            raise StackError(
                f"Waited {_WITHIN_S:.0f} s in vain for {for_what}. See `sluice status`, `make logs`."
            )
        time.sleep(0.2)
