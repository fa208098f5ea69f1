"""Sets the stage: nodes, pool, queues and namespaces as the scenario says, and no pods of an earlier run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from sluice_local.build import Say
from sluice_local.demo import scenario
from sluice_local.demo.api import Api
from sluice_local.demo.scenario import LABEL, TENANTS
from sluice_local.errors import StackError

_WITHIN_S: Final = 60.0
_SLUICE: Final = "/apis/sluice.dev/v1alpha1"
_POOL: Final = f"{_SLUICE}/resourcepools/{scenario.POOL}"


def set_stage(api: Api, say: Say) -> None:
    objects = _objects()
    for path in objects:
        _refuse_what_is_not_ours(api, path)
    pods = _pods_left(api)
    if pods:
        say(f"taking away {pods} pods of the last run")
        for tenant in TENANTS:
            api.delete_all(tenant.pods_path)
        _wait("the last run's pods to go", lambda: not _pods_left(api))
    say(
        f"{scenario.NODES} simulated nodes, ResourcePool {scenario.POOL}, a Queue and a namespace each for "
        f"{', '.join(tenant.name for tenant in TENANTS)}"
    )
    for path, manifest in objects.items():
        api.apply(path, manifest)
    _wait("Sluice to bind the namespaces to their queues", lambda: all(_is_bound(api, t) for t in TENANTS))
    _wait("the pool to count its nodes", lambda: _nodes_counted(api) == scenario.NODES)


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


def _pods_left(api: Api) -> int:
    found = api.get(f"/api/v1/pods?labelSelector={LABEL}&limit=500")
    return len(found["items"]) if found else 0


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
