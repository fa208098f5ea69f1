"""Effective requests, by the rules of Kubernetes' own PodRequests."""

from __future__ import annotations

from typing import Any

import pytest
from samples_of_objects import container, pod
from sluice_watcher.requests import effective_requests

MI = 2**20
TWO_GPUS: dict[str, Any] = {"nvidia.com/gpu": "2"}


def resized(name: str = "main", *, allocated: str, actual: str) -> dict[str, Any]:
    """A container's status during an in-place resize."""
    return {
        "name": name,
        "allocatedResources": {"cpu": allocated},
        "resources": {"requests": {"cpu": actual}},
    }


SPECS: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "nothing requested": ({"containers": [{"name": "main"}]}, {}),
    "containers run together": (
        {"containers": [container("a", cpu="500m", memory="64Mi"), container("b", cpu="1.5")]},
        {"cpu": 2000, "memory": 64 * MI},
    ),
    "devices count in whole units": (
        {"containers": [container(**TWO_GPUS)]},
        {"nvidia.com/gpu": 2},
    ),
    "init containers run one after another": (
        {
            "containers": [container(cpu="1", memory="64Mi")],
            "initContainers": [container("i", cpu="3"), container("j", cpu="2", memory="32Mi")],
        },
        {"cpu": 3000, "memory": 64 * MI},
    ),
    "a sidecar stays beside the containers": (
        {
            "containers": [container(cpu="1")],
            "initContainers": [container("s", cpu="500m", stays=True)],
        },
        {"cpu": 1500},
    ),
    "an init container runs beside the sidecars before it": (
        {
            "containers": [container(cpu="1")],
            "initContainers": [
                container("s", cpu="1", stays=True),
                container("i", cpu="2"),
                container("t", cpu="500m", stays=True),
            ],
        },
        {"cpu": 3000},
    ),
    "and not beside those after it": (
        {
            "containers": [container(cpu="1")],
            "initContainers": [container("i", cpu="2"), container("s", cpu="2", stays=True)],
        },
        {"cpu": 3000},
    ),
    "overhead comes on top": (
        {
            "containers": [container(cpu="1")],
            "initContainers": [container("i", cpu="2")],
            "overhead": {"cpu": "250m", "memory": "10Mi"},
        },
        {"cpu": 2250, "memory": 10 * MI},
    ),
    "what the pod asks for as a whole replaces its containers'": (
        {
            "containers": [container(cpu="1", memory="64Mi", **TWO_GPUS)],
            "resources": {"requests": {"cpu": "3"}},
            "overhead": {"cpu": "250m"},
        },
        {"cpu": 3250, "memory": 64 * MI, "nvidia.com/gpu": 2},
    ),
}


@pytest.mark.parametrize("case", SPECS)
def test_effective_requests(case: str) -> None:
    spec, expected = SPECS[case]
    assert effective_requests({"spec": spec, "status": {}}) == {**expected, "pods": 1}


INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
DEFERRED = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]
RESIZES: dict[str, tuple[dict[str, Any], int]] = {
    "asked for more, not granted yet": ({"containerStatuses": [resized(allocated="1", actual="1")]}, 2000),
    "deferred": ({"containerStatuses": [resized(allocated="1", actual="1")], "conditions": DEFERRED}, 2000),
    "set aside, not in use yet": ({"containerStatuses": [resized(allocated="4", actual="1")]}, 4000),
    "still runs with more": ({"containerStatuses": [resized(allocated="2", actual="3")]}, 3000),
    "impossible": (
        {"containerStatuses": [resized(allocated="1", actual="1")], "conditions": INFEASIBLE},
        1000,
    ),
    "nothing reported": ({"containerStatuses": [{"name": "main"}]}, 2000),
}


@pytest.mark.parametrize("case", RESIZES)
def test_the_most_counts_while_a_container_is_resized(case: str) -> None:
    status, expected = RESIZES[case]
    resizing = pod(spec={"containers": [container(cpu="2")]}, status=status)
    assert effective_requests(resizing)["cpu"] == expected


def test_sidecars_are_resized_too_but_init_containers_are_not() -> None:
    spec = {
        "containers": [container(cpu="1")],
        "initContainers": [container("s", cpu="1", stays=True), container("i", cpu="1")],
    }
    status = {
        "initContainerStatuses": [
            resized("s", allocated="5", actual="1"),
            resized("i", allocated="50", actual="50"),
        ]
    }
    assert effective_requests({"spec": spec, "status": status})["cpu"] == 6000


def test_a_pod_that_asks_as_a_whole_is_resized_as_a_whole() -> None:
    spec = {"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "2"}}}
    status = {"resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2"}}
    assert effective_requests({"spec": spec, "status": status})["cpu"] == 3000
