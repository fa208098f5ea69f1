"""What branches deserve is what small steps come to, whatever the tree, and it is divided without loss."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference.deserved import Tenant, Want, deserved
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Group, Kind, KindOf
from sluice_scheduler.core.fairness.deserved import Deserving
from sluice_scheduler.core.fairness.policies.drf import Drf
from sluice_scheduler.core.fairness.shares import FRACTION_BITS

SUPPLIES = ("east", "west")
RESOURCES = ("cpu", "gpu")
POOLS = ("a", "b")
CLUSTER = "c"
STEPS = 200
CALM = settings(suppress_health_check=[HealthCheck.too_slow])


@st.composite
def wants(draw: Any, choosy: bool) -> Want:
    supplies = draw(
        st.sampled_from([("east",), ("west",)] if choosy else [("east",), ("west",), ("east", "west")])
    )
    resources = draw(st.sampled_from([("cpu",), ("gpu",), ("cpu", "gpu")]))
    pools = draw(st.sampled_from([(), ("a",), ("b",)])) if len(supplies) == 1 else ()
    return Want(supplies, {resource: draw(st.integers(1, 40)) for resource in resources}, pools)


def demands(choosy: bool) -> st.SearchStrategy[list[Want]]:
    return st.lists(wants(choosy), max_size=3, unique_by=lambda want: (want.like, want.pools))


@st.composite
def tenants(draw: Any, name: str = "q", depth: int = 0, choosy: bool = False) -> Tenant:
    """`choosy`: everything that they want may stand in one supply only."""
    tenant = Tenant(name, weight=draw(st.sampled_from([1, 1, 2, 3])))
    below = draw(st.integers(1, 4)) if depth == 0 else draw(st.sampled_from([0, 0, 1, 2, 3]))
    if depth < 2 and below:
        tenant.children = [draw(tenants(f"{name}.{n}", depth + 1, choosy)) for n in range(below)]
    else:
        tenant.wants = draw(demands(choosy))
    if depth and draw(st.integers(0, 3)) == 0:
        tenant.floor = {("east", draw(st.sampled_from(RESOURCES))): draw(st.integers(1, 12))}
    if depth and draw(st.integers(0, 3)) == 0:
        tenant.limit = {("east", draw(st.sampled_from(RESOURCES))): draw(st.integers(1, 12))}
    return tenant


#: By supply, pool and resource.
capacities = st.fixed_dictionaries(
    {
        (supply, pool, resource): st.integers(0, 15)
        for supply in SUPPLIES
        for pool in POOLS
        for resource in RESOURCES
    }
)
Capacity: TypeAlias = dict[tuple[str, str, str], int]


def whole(capacity: Capacity) -> dict[Kind, float]:
    sums: dict[Kind, float] = {}
    for (supply, _, resource), amount in capacity.items():
        sums[(supply, resource)] = sums.get((supply, resource), 0) + amount
    return sums


def by_pool(capacity: Capacity) -> dict[tuple[str, str], dict[str, float]]:
    found: dict[tuple[str, str], dict[str, float]] = {}
    for (supply, pool, resource), amount in capacity.items():
        found.setdefault((supply, pool), {})[resource] = amount
    return found


def branches(tenant: Tenant, parent: Branch | None, found: dict[str, Branch]) -> Branch:
    branch = Branch(None, parent, is_leaf=not tenant.children, policy=Drf())
    branch.weight = tenant.weight
    branch.floor = {kind: int(amount) for kind, amount in tenant.floor.items()}
    branch.limit = {kind: int(amount) for kind, amount in tenant.limit.items()}
    branch.wants.update(map(demand, tenant.wants))
    branch.children = [branches(child, branch, found) for child in tenant.children]
    found[tenant.name] = branch
    return branch


def demand(want: Want) -> tuple[Group, list[int]]:
    ways = tuple((s, tuple((CLUSTER, f"{s}-{pool}") for pool in want.pools or POOLS)) for s in want.supplies)
    resources = tuple(sorted(want.amounts))
    return (ways, resources), [int(want.amounts[resource]) for resource in resources]


def deserving(root: Branch, capacity: Capacity) -> Deserving:
    kind_of = KindOf()
    kind_of.set_supplies({f"{supply}-{pool}": supply for supply, pool, _ in capacity})
    dims = {(CLUSTER, f"{supply}-{pool}", r): amount for (supply, pool, r), amount in capacity.items()}
    return Deserving(root, dims, kind_of)


def worked_out(tenant: Tenant, capacity: Capacity) -> dict[str, dict[Kind, float]]:
    found: dict[str, Branch] = {}
    changed = deserving(branches(tenant, None, found), capacity).update({})
    names = {branch: name for name, branch in found.items()}
    return {
        names[branch]: {kind: parts / (1 << FRACTION_BITS) for kind, parts in amounts.items()}
        for branch, amounts in changed.items()
    }


@CALM
@given(tenants(choosy=True), capacities)
def test_it_is_what_small_steps_come_to(tenant: Tenant, capacity: Capacity) -> None:
    fast = worked_out(tenant, capacity)
    slow = [in_steps(tenant, capacity)]
    if not is_near(fast, slow[0], whole(capacity)):
        # Two that come to the end of something at once: whoever is a small step behind waits for long, or does not.
        slow += [in_steps(tenant, capacity, steps) for steps in (STEPS - 1, STEPS + 10, STEPS + 56)]
        assert any(is_near(fast, each, whole(capacity)) for each in slow), (fast, slow)


@CALM
@given(tenants(), capacities, st.data())
def test_one_change_after_another_comes_to_what_working_all_out_does(
    tenant: Tenant, capacity: Capacity, data: st.DataObject
) -> None:
    """Bit by bit: pools become crowded and are so no longer."""
    found: dict[str, Branch] = {}
    kept = deserving(branches(tenant, None, found), capacity)
    by_name = {each.name: each for each in leaves(tenant)}
    for _ in range(data.draw(st.integers(2, 6))):
        for branch, amounts in kept.update({}).items():
            branch.deserved = amounts
        anew: dict[str, Branch] = {}
        for branch, amounts in deserving(branches(tenant, None, anew), capacity).update({}).items():
            branch.deserved = amounts
        assert {n: b.deserved for n, b in found.items()} == {n: b.deserved for n, b in anew.items()}
        changes = by_name[data.draw(st.sampled_from(sorted(by_name)))]
        changes.wants = data.draw(demands(choosy=False))
        leaf = found[changes.name]
        leaf.wants = dict(map(demand, changes.wants))
        kept.asks_anew(leaf)


def leaves(tenant: Tenant) -> list[Tenant]:
    below = [leaf for child in tenant.children for leaf in leaves(child)]
    return below if tenant.children else [tenant]


def in_steps(tenant: Tenant, capacity: Capacity, steps: int = STEPS) -> dict[str, dict[Kind, float]]:
    return deserved(deepcopy(tenant), whole(capacity), steps=steps, pools=by_pool(capacity))


def is_near(
    fast: dict[str, dict[Kind, float]], slow: dict[str, dict[Kind, float]], capacity: dict[Kind, float]
) -> bool:
    """Where wants may move on to another supply, a small step more decides who of equals is there first."""
    return all(
        abs(fast.get(name, {}).get(kind, 0.0) - amounts.get(kind, 0.0)) <= 0.2 * max(1, capacity[kind])
        for name, amounts in slow.items()
        for kind in {*amounts, *fast.get(name, {})}
    )


def test_one_who_is_a_small_step_behind_in_the_slow_one_alone() -> None:
    """What is used up is used up for both at once, which steps of two hundredths come to for one of them only."""
    two_supplies = Tenant("a", wants=[Want(("east",), {"gpu": 10}), Want(("west",), {"gpu": 5})])
    wants_of_three: list[dict[str, float]] = [{"cpu": 1}, {"gpu": 14}, {"cpu": 1, "gpu": 1}]
    three_kinds = Tenant("b", wants=[Want(("east",), amounts) for amounts in wants_of_three])
    capacity = {
        ("east", "a", "cpu"): 1,
        ("east", "a", "gpu"): 20,
        ("west", "a", "cpu"): 0,
        ("west", "a", "gpu"): 3,
    }
    found = worked_out(Tenant("", children=[two_supplies, three_kinds]), capacity)
    assert found["a"][("east", "gpu")] == pytest.approx(found["b"][("east", "gpu")]) == pytest.approx(10)


@CALM
@given(tenants(), capacities)
def test_children_get_no_more_than_was_given(tenant: Tenant, capacity: Capacity) -> None:
    found = worked_out(tenant, capacity)

    def check(each: Tenant, given_: dict[Any, float]) -> None:
        for kind, amount in given_.items():
            total = sum(found.get(child.name, {}).get(kind, 0.0) for child in each.children)
            if each.children:
                assert total <= amount * (1 + 1e-6) + 1e-3
        for child in each.children:
            check(child, found.get(child.name, {}))

    check(tenant, whole(capacity))


def test_what_a_guarantee_brings_along_is_nobody_elses_guarantee() -> None:
    """A guarantee of GPUs alone, of who asks for CPUs beside them, leaves those that another's names."""
    cpu, gpu = ("east", "cpu"), ("east", "gpu")
    batch = Tenant("batch", floor={cpu: 60}, wants=[Want(("east",), {"cpu": 100})])
    training = Tenant("training", floor={gpu: 1}, wants=[Want(("east",), {"cpu": 125, "gpu": 2})])
    root, capacity = (
        Tenant("", children=[batch, training]),
        {("east", "a", "cpu"): 100, ("east", "a", "gpu"): 2},
    )
    for found in (worked_out(root, capacity), in_steps(root, capacity)):
        assert found["batch"][cpu] == pytest.approx(60)
        assert found["training"][cpu] == pytest.approx(40)


def test_a_pool_is_shared_by_those_who_are_bound_to_it() -> None:
    """By weight, though together they deserve less than the supply has; who is not bound to it has the rest."""
    capacity = {("east", "a", "cpu"): 30, ("east", "b", "cpu"): 70}
    two = Tenant("two", weight=2, wants=[Want(("east",), {"cpu": 40}, ("a",))])
    one = Tenant("one", wants=[Want(("east",), {"cpu": 40}, ("a",))])
    free = Tenant("free", wants=[Want(("east",), {"cpu": 200})])
    root = Tenant("", children=[two, one, free])
    for found in (worked_out(root, capacity), in_steps(root, capacity)):
        shares = [found[name][("east", "cpu")] for name in ("two", "one", "free")]
        assert shares == pytest.approx([20, 10, 70], abs=1)


#: What two ask for of cpus: the pools that each part is bound to, and how much; and what both deserve.
ROBBED: list[tuple[list[tuple[tuple[str, ...], int]], float, float]] = [
    ([((), 66)], 6, 6),
    ([((), 6), (("b",), 60)], 6, 6),
    ([((), 2), (("b",), 60)], 4, 4),
    ([(("a",), 66), (("b",), 60)], 6, 6),
    ([(("a",), 6), (("b",), 6)], 6, 6),
]


@pytest.mark.parametrize(("asked", "robs", "keeps"), ROBBED)
def test_who_binds_demand_to_a_neighbours_pool_has_no_more_of_it(
    asked: list[tuple[tuple[str, ...], int]], robs: float, keeps: float
) -> None:
    """As long as it can have its share elsewhere, in whichever way it asks for that."""
    capacity = {("east", "a", "cpu"): 6, ("east", "b", "cpu"): 6}
    rob = Tenant("rob", wants=[Want(("east",), {"cpu": amount}, pools) for pools, amount in asked])
    victim = Tenant("victim", wants=[Want(("east",), {"cpu": 60}, ("b",))])
    for found in (
        worked_out(Tenant("", children=[rob, victim]), capacity),
        in_steps(Tenant("", children=[rob, victim]), capacity),
    ):
        shares = [found[name][("east", "cpu")] for name in ("rob", "victim")]
        assert shares == pytest.approx([robs, keeps], abs=0.1)


def test_a_crowd_that_asks_for_little_makes_no_pool_a_worse_one_to_be_in() -> None:
    """Who is bound to both pools has its share where ten others ask for a little each, not where one asks for all."""
    capacity = {("east", "a", "cpu"): 70, ("east", "b", "cpu"): 60}
    rob = Tenant("rob", wants=[Want(("east",), {"cpu": 600}, (pool,)) for pool in ("a", "b")])
    victim = Tenant("victim", wants=[Want(("east",), {"cpu": 600}, ("b",))])
    crowd = [Tenant(f"c{number}", wants=[Want(("east",), {"cpu": 1}, ("a",))]) for number in range(10)]
    root = Tenant("", children=[rob, victim, *crowd])
    for found in (worked_out(root, capacity), in_steps(root, capacity)):
        shares = [found[name][("east", "cpu")] for name in ("rob", "victim")]
        assert shares == pytest.approx([60, 60], abs=1)


def test_who_is_bound_to_no_pool_alone_shares_all_of_them() -> None:
    """What cannot be told from where it stands changes nothing: as many pools, the same shares."""
    capacity = {("east", "a", "cpu"): 40, ("east", "b", "cpu"): 60}
    wants = [
        Want(("east",), {"cpu": 30}, ("a",)),
        Want(("east",), {"cpu": 50}, ("b",)),
    ]  # as pods that run there
    holds, waits = Tenant("holds", wants=wants), Tenant("waits", wants=[Want(("east",), {"cpu": 80})])
    for found in (
        worked_out(Tenant("", children=[holds, waits]), capacity),
        in_steps(Tenant("", children=[holds, waits]), capacity),
    ):
        assert [found[name][("east", "cpu")] for name in ("holds", "waits")] == pytest.approx([50, 50], abs=1)


def test_who_asks_for_a_little_in_many_pools_hides_none_that_is_crowded() -> None:
    """Tenants say to which pools they are bound; only so many sets of pools are told apart."""
    many = [f"{number:02}" for number in range(70)]
    capacity = {("east", pool, "cpu"): 10 for pool in many} | {("east", "small", "cpu"): 30}
    junk = Tenant("junk", wants=[Want(("east",), {"cpu": 1}, (pool,)) for pool in many])
    bound = [Tenant(name, wants=[Want(("east",), {"cpu": 30}, ("small",))]) for name in ("one", "other")]
    found = worked_out(Tenant("", children=[junk, *bound]), capacity)
    assert [found[each.name][("east", "cpu")] for each in bound] == pytest.approx([15, 15])


def test_who_is_bound_to_what_there_is_nothing_of_takes_nothing_from_others() -> None:
    """As where all nodes of a pool are cordoned: what nobody can have is divided among nobody."""
    capacity = {("east", "a", "cpu"): 30, ("east", "b", "cpu"): 0}
    bound = Tenant("bound", wants=[Want(("east",), {"cpu": 60}, ("b",))])
    free = [Tenant(name, wants=[Want(("east",), {"cpu": 40})]) for name in ("one", "other")]
    root = Tenant("", children=[bound, *free])
    for found in (worked_out(root, capacity), in_steps(root, capacity)):
        shares = [found.get(name, {}).get(("east", "cpu"), 0.0) for name in ("bound", "one", "other")]
        assert shares == pytest.approx([0, 15, 15], abs=1)
