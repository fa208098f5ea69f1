"""Which cells a record goes to, and what must be listed again when that changes."""

from __future__ import annotations

from typing import Any

import pytest
from samples_of_objects import Json, custom, metadata, namespace, node, owned_by_daemonset, pod, seen
from sluice_watcher.kinds import watched_kinds
from sluice_watcher.routing import Cells, Router

KINDS = {kind.type: kind for kind in watched_kinds({"sluice.dev/managed": "true"})}


@pytest.fixture
def router() -> Router:
    return Router(("one", "two"))


def show(router: Router, kind: str, body: Json, change: str = "MODIFIED", *, listed: bool = False) -> Cells:
    sighting = seen(body, change, listed=listed)
    return KINDS[kind].cells(router, KINDS[kind].normalise(sighting), sighting)


@pytest.fixture
def bound(router: Router) -> Router:
    """Namespace `team` is bound to queue `leaf` in cell two."""
    show(router, "queue", custom("root", cell="two"))
    show(router, "queue", custom("leaf", parent="root"))
    show(router, "namespace", namespace("team", "leaf"))
    return router


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("namespace", namespace("team", "leaf")),
        ("queue", custom("q", cell="two")),
        ("resourcepool", custom("p", cell="two")),
        ("priorityclass", {"metadata": metadata("high"), "value": 1}),
    ],
)
def test_what_every_cell_needs_to_know_goes_everywhere(router: Router, kind: str, body: Json) -> None:
    assert show(router, kind, body) == ("one", "two")
    assert show(router, kind, body, "DELETED") == ("one", "two")


# ---- pods


def test_a_pod_goes_to_the_cell_of_its_namespaces_binding(bound: Router) -> None:
    assert show(bound, "pod", pod()) == ("two",)


def test_a_pods_own_queue_label_routes_nothing(bound: Router) -> None:
    show(bound, "queue", custom("elsewhere", cell="one"))
    labelled = pod(metadata={"labels": {"sluice.dev/queue": "elsewhere"}})
    assert show(bound, "pod", labelled) == ("two",)


@pytest.mark.parametrize("queue", ["missing", "orphan", "lost", "loop-a"])
def test_bindings_that_lead_nowhere_lead_to_the_first_cell(router: Router, queue: str) -> None:
    show(router, "queue", custom("orphan", parent="missing"))
    show(router, "queue", custom("lost", cell="nowhere"))
    show(router, "queue", custom("loop-a", parent="loop-b"))
    show(router, "queue", custom("loop-b", parent="loop-a"))
    show(router, "namespace", namespace("team", queue))
    assert show(router, "pod", pod()) == ("one",)


@pytest.mark.parametrize(
    "body", [namespace("team"), namespace("team", "missing", managed=False), namespace("other", "leaf")]
)
def test_pods_outside_bound_namespaces_go_nowhere(router: Router, body: Json) -> None:
    show(router, "namespace", body)
    assert show(router, "pod", pod()) == ()


@pytest.mark.parametrize("selecting", ["leaf", "root"])
def test_a_namespace_that_loses_the_managed_label_stays_bound_while_its_binding_counts(
    bound: Router, selecting: str
) -> None:
    specs: dict[str, Json] = {"root": {"cell": "two"}, "leaf": {"parent": "root"}}
    selects = {"namespaces": {"names": ["team"]}}
    show(bound, "queue", custom(selecting, **specs[selecting], **selects))
    show(bound, "pod", pod())
    show(bound, "namespace", namespace("team", "leaf", managed=False))
    assert bound.take_stale() == set()
    assert show(bound, "pod", pod()) == ("two",)
    show(bound, "queue", custom(selecting, **specs[selecting]))
    assert bound.take_stale() == {"pod"}
    assert show(bound, "pod", pod()) == ()
    show(bound, "queue", custom(selecting, **specs[selecting], **selects))
    assert bound.take_stale() == {"pod"}
    show(bound, "namespace", namespace("team", managed=False))
    assert show(bound, "pod", pod()) == (), "bindings end with the queue's label"


def test_pods_that_are_unmanaged_by_nature_go_nowhere(bound: Router) -> None:
    assert show(bound, "pod", pod(metadata=owned_by_daemonset())) == ()


# ---- when a pod's route changes


def rebind(router: Router) -> None:
    show(router, "namespace", namespace("team", "elsewhere"))


def unbind(router: Router) -> None:
    show(router, "namespace", namespace("team"))


def move_queue(router: Router) -> None:
    show(router, "queue", custom("elsewhere", cell="one"))
    show(router, "queue", custom("leaf", parent="elsewhere"))


def delete_queue(router: Router) -> None:
    show(router, "queue", custom("leaf", parent="root"), "DELETED")


def move_root_in_a_relist(router: Router) -> None:
    router.begin("queue")
    show(router, "queue", custom("leaf", parent="root"), "ADDED", listed=True)
    router.end("queue")


def miss_namespace_in_a_relist(router: Router) -> None:
    router.begin("namespace")
    router.end("namespace")


CHANGES = (rebind, unbind, move_queue, delete_queue)


@pytest.mark.parametrize("change", [*CHANGES, move_root_in_a_relist, miss_namespace_in_a_relist])
def test_pods_are_listed_again_when_their_cell_changes(bound: Router, change: Any) -> None:
    show(bound, "pod", pod())
    change(bound)
    assert bound.take_stale() == {"pod"}
    assert show(bound, "pod", pod()) != ("two",)
    assert bound.take_stale() == set()


@pytest.mark.parametrize("change", CHANGES)
def test_without_pods_there_is_nothing_to_list_again(bound: Router, change: Any) -> None:
    change(bound)
    assert bound.take_stale() == set()


def test_changes_that_move_no_pod_list_nothing_again(bound: Router) -> None:
    show(bound, "pod", pod())
    show(bound, "queue", custom("leaf", parent="root", weight=7))
    show(bound, "queue", custom("sibling", parent="root"))
    show(bound, "namespace", namespace("team", "sibling"))
    bound.begin("namespace")
    show(bound, "namespace", namespace("team", "leaf"), "ADDED", listed=True)
    bound.end("namespace")
    assert bound.take_stale() == set()


def test_pods_that_came_before_their_binding_are_listed_again(router: Router) -> None:
    assert show(router, "pod", pod()) == ()
    show(router, "namespace", namespace("team", "missing"))
    assert router.take_stale() == {"pod"}
    assert show(router, "pod", pod()) == ("one",)


def test_the_last_pods_of_a_deleted_namespace_still_find_their_way(bound: Router) -> None:
    show(bound, "pod", pod())
    show(bound, "namespace", namespace("team", "leaf"), "DELETED")
    assert bound.take_stale() == set()
    assert show(bound, "pod", pod(), "DELETED") == ("two",)


# ---- nodes


@pytest.fixture
def pools(router: Router) -> Router:
    show(router, "resourcepool", custom("gpu", cell="two", nodeSelector={"gpu": "yes"}))
    show(router, "resourcepool", custom("rest", cell="one", nodeSelector={"gpu": "no"}))
    return router


def test_a_node_goes_to_the_cell_of_its_pool(pools: Router) -> None:
    assert show(pools, "node", node("a", {"gpu": "yes", "zone": "x"})) == ("two",)
    assert show(pools, "node", node("b", {"gpu": "no"})) == ("one",)
    assert show(pools, "node", node("c", {"gpu": "maybe"})) == ()


def test_an_empty_selector_takes_every_node(router: Router) -> None:
    show(router, "resourcepool", custom("all"))
    assert show(router, "node", node()) == ("one",)


def test_overlapping_pools_are_taken_by_name_and_unreadable_ones_take_nothing(pools: Router) -> None:
    show(pools, "resourcepool", custom("all", nodeSelector={}, cell="one"))
    show(pools, "resourcepool", custom("a-wrong-one", nodeSelector="everything", cell="two"))
    assert show(pools, "node", node("a", {"gpu": "yes"})) == ("one",)


def test_a_deleted_nodes_end_goes_where_it_was(pools: Router) -> None:
    show(pools, "node", node("a", {"gpu": "yes"}))
    assert show(pools, "node", node("a", {"gpu": "no"}), "DELETED") == ("two",)
    assert show(pools, "node", node("never-seen"), "DELETED") == ()


def test_nodes_are_listed_again_when_one_leaves_its_cell(pools: Router) -> None:
    show(pools, "node", node("a", {"gpu": "yes"}))
    show(pools, "node", node("a", {"gpu": "yes", "zone": "x"}))
    assert pools.take_stale() == set()
    assert show(pools, "node", node("a", {"gpu": "no"})) == ("one",)
    assert pools.take_stale() == {"node"}
    show(pools, "node", node("a", {"gpu": "maybe"}))
    assert pools.take_stale() == {"node"}
    show(pools, "node", node("a", {"gpu": "yes"}))  # from nowhere: there is no former cell
    assert pools.take_stale() == set()


@pytest.mark.parametrize(
    ("body", "change"),
    [
        (custom("gpu", cell="two", nodeSelector={"gpu": "maybe"}), "MODIFIED"),
        (custom("gpu", cell="two", nodeSelector={"gpu": "yes"}), "DELETED"),
        (custom("new", cell="two"), "ADDED"),
    ],
)
def test_nodes_are_listed_again_when_pools_change(pools: Router, body: Json, change: str) -> None:
    show(pools, "node", node("a", {"gpu": "yes"}))
    show(pools, "resourcepool", body, change)
    assert pools.take_stale() == {"node"}


def test_pools_of_no_nodes_list_nothing_again(pools: Router) -> None:
    assert pools.take_stale() == set()
    show(pools, "node", node("a", {"gpu": "yes"}))
    show(pools, "resourcepool", custom("gpu", cell="two", nodeSelector={"gpu": "yes"}))  # as it was
    assert pools.take_stale() == set()


# ---- unmanaged pods


def running(name: str, **parts: Any) -> Json:
    return pod(name, "kube-system", spec={"nodeName": "a"}, status={"phase": "Running"}, **parts)


def held(router: Router) -> dict[tuple[str, str], tuple[int, int]]:
    """Pods and milli-cores by cell and pool."""
    return {key: (sum.pods, sum.requests.get("cpu", 0)) for key, sum in router.unmanaged_by_pool().items()}


def test_unmanaged_pods_are_summed_by_pool(pools: Router) -> None:
    show(pools, "node", node("a", {"gpu": "yes"}))
    show(pools, "pod", running("x"))
    show(pools, "pod", running("y", metadata=owned_by_daemonset()))
    show(pools, "pod", pod("not-placed", "kube-system"))
    show(pools, "pod", pod("placed-elsewhere", "kube-system", spec={"nodeName": "nowhere"}))
    assert held(pools) == {("two", "gpu"): (2, 2000), ("one", "rest"): (0, 0)}


@pytest.mark.parametrize(
    ("body", "change"),
    [
        (running("x"), "DELETED"),
        (pod("x", "kube-system", spec={"nodeName": "a"}, status={"phase": "Succeeded"}), "MODIFIED"),
    ],
)
def test_what_is_over_is_no_longer_held(pools: Router, body: Json, change: str) -> None:
    show(pools, "node", node("a", {"gpu": "yes"}))
    show(pools, "pod", running("x"))
    show(pools, "pod", body, change)
    show(pools, "pod", body, change)
    assert held(pools) == {("two", "gpu"): (0, 0), ("one", "rest"): (0, 0)}


def test_a_relist_forgets_what_it_does_not_show(pools: Router) -> None:
    show(pools, "node", node("a", {"gpu": "yes"}))
    for name in "xyz":
        show(pools, "pod", running(name))
    pools.begin("pod")
    show(pools, "pod", running("y"), "ADDED", listed=True)
    pools.begin("pod")  # the first list broke off
    show(pools, "pod", running("z"), "ADDED", listed=True)
    pools.end("pod")
    assert held(pools)["two", "gpu"] == (1, 1000)


def test_sums_follow_nodes_and_pools(pools: Router) -> None:
    show(pools, "pod", running("x"))
    assert held(pools) == {("two", "gpu"): (0, 0), ("one", "rest"): (0, 0)}
    show(pools, "node", node("a", {"gpu": "no"}))
    assert held(pools)["one", "rest"] == (1, 1000)
    show(pools, "resourcepool", custom("rest"), "DELETED")
    assert held(pools) == {("two", "gpu"): (0, 0)}


def test_a_namespace_that_is_bound_takes_its_pods_out_of_the_sums(pools: Router) -> None:
    show(pools, "node", node("a", {"gpu": "yes"}))
    body = pod(spec={"nodeName": "a"})
    show(pools, "pod", body)
    assert held(pools)["two", "gpu"] == (1, 1000)
    show(pools, "namespace", namespace("team", "missing"))
    assert show(pools, "pod", body) == ("one",)
    assert held(pools)["two", "gpu"] == (0, 0)
