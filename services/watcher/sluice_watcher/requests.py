"""What a pod takes of a node, as the Kubernetes scheduler counts it (`PodRequests` of component-helpers)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from sluice.quantities import to_base_units
from sluice.values import Resources

#: An object, or a part of one, as its JSON describes it.
Object: TypeAlias = Mapping[str, Any]

#: Each pod takes one of what a node's allocatable calls by this name.
PODS: Final = "pods"


def effective_requests(pod: Object) -> Resources:
    """Containers and sidecars (init containers that restart always) run together; the other init containers
    run one after another, each beside the sidecars that precede it. The pod takes the larger of both, or
    what it asks for as a whole, and its overhead.
    """
    spec, status = pod["spec"], pod["status"]
    granted = _Granted(status)
    total: Resources = {}
    for container in spec["containers"]:
        _add(total, granted.or_asked(container))
    if "initContainers" in spec:
        _raise_to(total, _while_starting(spec["initContainers"], granted, total))
    if "resources" in spec:
        total |= granted.most(_asked(spec), status)
    if "overhead" in spec:
        _add(total, amounts(spec["overhead"]))
    total[PODS] = 1
    return total


def _while_starting(containers: list[Object], granted: _Granted, total: Resources) -> Resources:
    """The most that init containers take at a time. The sidecars among them stay: `total` has them too."""
    sidecars: Resources = {}
    most: Resources = {}
    for container in containers:
        if container.get("restartPolicy") == "Always":
            requests = granted.or_asked(container)
            _add(total, requests)
            _add(sidecars, requests)
            _raise_to(most, sidecars)
        else:
            requests = _asked(container)
            _add(requests, sidecars)
            _raise_to(most, requests)
    return most


class _Granted:
    """What a node has set aside for a pod and still runs it with; both differ while it is resized in place.

    Until a resize is through, the most of either and of what is asked for counts; if the node can never
    carry it out, what is asked for does not.
    """

    def __init__(self, status: Object) -> None:
        self._containers: dict[str, Object] = {
            container["name"]: container
            for group in ("containerStatuses", "initContainerStatuses")
            for container in status.get(group) or ()
        }
        self._infeasible = any(
            condition["type"] == "PodResizePending" and condition.get("reason") == "Infeasible"
            for condition in status.get("conditions") or ()
        )

    def or_asked(self, container: Object) -> Resources:
        return self.most(_asked(container), self._containers.get(container["name"], {}))

    def most(self, asked: Resources, status: Object) -> Resources:
        if "resources" not in status:
            return asked
        most = {} if self._infeasible else asked
        _raise_to(most, _asked(status))
        _raise_to(most, amounts(status.get("allocatedResources")))
        return most


def _asked(owner: Object) -> Resources:
    return amounts((owner.get("resources") or {}).get("requests"))


def amounts(quantities: Mapping[str, str] | None) -> Resources:
    """Quantities in base units."""
    return {resource: to_base_units(resource, text) for resource, text in (quantities or {}).items()}


def _add(total: Resources, more: Resources) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, 0) + amount


def _raise_to(total: Resources, least: Resources) -> None:
    for resource, amount in least.items():
        if amount > total.get(resource, 0):
            total[resource] = amount
