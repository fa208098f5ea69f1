"""What is watched: a line a kind. Another kind needs its event, its normaliser and a line here; another kind
of application only what `applications/kinds.py` says.

The order is that in which they are listed at the start: what routes depend on first, then what is routed, and
applications before their pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from sluice.applications import APPLICATION_KINDS, listed_as
from sluice.events import ObjectEvent
from sluice.vocabulary import API_VERSION

from sluice_watcher import normalise
from sluice_watcher.applications.templates import Overheads
from sluice_watcher.normalise import Sighting
from sluice_watcher.requests import Object
from sluice_watcher.routing import Router


@dataclass(frozen=True, slots=True)
class Kind:
    type: str  # what its events are listed as
    path: str
    normalise: Callable[[Sighting], ObjectEvent]
    cells: Callable[[Router, Any, Sighting], tuple[str, ...]]  # which cells such an event goes to
    #: What is passed over of an object that can be read.
    unread: Callable[[Object], Exception | None] = lambda _: None
    optional: bool = False  # where nobody has installed it, there is nothing of it


def watched_kinds(
    managed_selector: Mapping[str, str],
    applications: Iterable[str] = (),
    application_selector: Mapping[str, str] | None = None,
    overheads: Overheads | None = None,
) -> tuple[Kind, ...]:
    sluice = f"/apis/{API_VERSION}"
    nodes = "/apis/node.k8s.io/v1"
    scheduling = "/apis/scheduling.k8s.io/v1"
    namespace = partial(normalise.namespace, managed_selector=managed_selector)
    workloads = [
        Kind(
            listed_as(kind),
            APPLICATION_KINDS[kind].collection,
            partial(
                normalise.application,
                kind=APPLICATION_KINDS[kind],
                selector=application_selector or {},
                overheads=overheads if overheads is not None else {},
            ),
            Router.workload,
            optional=True,
        )
        for kind in applications
    ]
    return (
        Kind("namespace", "/api/v1/namespaces", namespace, Router.namespace),
        Kind("queue", f"{sluice}/queues", normalise.queue, Router.queue),
        Kind("resourcepool", f"{sluice}/resourcepools", normalise.pool, Router.pool),
        Kind("priorityclass", f"{scheduling}/priorityclasses", normalise.priority_class, Router.everywhere),
        Kind("runtimeclass", f"{nodes}/runtimeclasses", normalise.runtime_class, Router.runtime_class),
        Kind("node", "/api/v1/nodes", normalise.node, Router.node),
        *workloads,
        Kind("pod", "/api/v1/pods", normalise.pod, Router.pod, normalise.unread_of_pod),
    )
