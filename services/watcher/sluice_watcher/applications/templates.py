"""Pod templates: what a pod made of one will ask for, before any exists.

The API server fills in a pod's requests from its limits when it creates it, and a RuntimeClass's overhead; in
a template both are still missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sluice.values import Resources

from sluice_watcher.applications.fields import ApplicationError, Fields
from sluice_watcher.requests import effective_requests

#: RuntimeClass → what a pod of it takes on top.
Overheads: TypeAlias = Mapping[str, Resources]


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """What counts of a pod template. Operators put containers of their own beside the author's."""

    containers: tuple[Fields, ...]
    init_containers: tuple[Fields, ...] = ()
    resources: Fields = field(default_factory=lambda: Fields({}))  # of the pod as a whole
    overhead: Fields = field(default_factory=lambda: Fields({}))
    runtime_class: str = ""
    node_selector: dict[str, str] = field(default_factory=dict)
    priority_class: str = ""

    def requests(self, overheads: Overheads) -> Resources:
        spec: dict[str, Any] = {"containers": [_container(each) for each in self.containers]}
        if self.init_containers:
            spec["initContainers"] = [_container(each) for each in self.init_containers]
        if whole := _asked(self.resources):
            spec["resources"] = {"requests": whole}
        overhead = self.overhead.amounts() or overheads.get(self.runtime_class, {})
        if overhead:
            spec["overhead"] = _quantities(overhead)
        return effective_requests({"spec": spec, "status": {}})


def read_template(template: Fields) -> Template:
    """A PodTemplateSpec."""
    return read_pod_spec(template.at("spec"))


def read_pod_spec(spec: Fields) -> Template:
    template = read_partial(spec)
    if not template.containers:
        raise ApplicationError(spec.path_of("containers"), "a pod needs one: write at least one")
    return template


def read_partial(spec: Fields) -> Template:
    """A PodSpec to which somebody else adds the containers."""
    return Template(
        containers=tuple(spec.each("containers")),
        init_containers=tuple(spec.each("initContainers")),
        resources=spec.at("resources"),
        overhead=spec.at("overhead"),
        runtime_class=spec.text("runtimeClassName"),
        node_selector=spec.at("nodeSelector").texts(),
        priority_class=spec.text("priorityClassName"),
    )


def _container(container: Fields) -> dict[str, Any]:
    return {
        "name": container.text("name"),
        "restartPolicy": container.text("restartPolicy"),
        "resources": {"requests": _asked(container.at("resources"))},
    }


def _asked(resources: Fields) -> dict[str, str]:
    return _quantities(resources.at("limits").amounts() | resources.at("requests").amounts())


def _quantities(amounts: Resources) -> dict[str, str]:
    """Base units as quantities that mean the same."""
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in amounts.items()}
