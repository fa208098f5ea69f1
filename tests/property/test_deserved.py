"""What branches deserve is what small steps come to, whatever the tree, and it is divided without loss."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference.deserved import Tenant, Want, deserved
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.deserved import Deserving
from sluice_scheduler.core.fairness.policies.drf import Drf
from sluice_scheduler.core.fairness.shares import FRACTION_BITS

SUPPLIES = ("east", "west")
RESOURCES = ("cpu", "gpu")
STEPS = 200
CALM = settings(suppress_health_check=[HealthCheck.too_slow])


@st.composite
def wants(draw: Any, choosy: bool) -> Want:
    supplies = draw(
        st.sampled_from([("east",), ("west",)] if choosy else [("east",), ("west",), ("east", "west")])
    )
    resources = draw(st.sampled_from([("cpu",), ("gpu",), ("cpu", "gpu")]))
    return Want(supplies, {resource: draw(st.integers(1, 40)) for resource in resources})


@st.composite
def tenants(draw: Any, name: str = "q", depth: int = 0, choosy: bool = False) -> Tenant:
    """`choosy`: everything that they want may stand in one supply only."""
    tenant = Tenant(name, weight=draw(st.sampled_from([1, 1, 2, 3])))
    below = draw(st.integers(1, 4)) if depth == 0 else draw(st.sampled_from([0, 0, 1, 2, 3]))
    if depth < 2 and below:
        tenant.children = [draw(tenants(f"{name}.{n}", depth + 1, choosy)) for n in range(below)]
    else:
        tenant.wants = draw(st.lists(wants(choosy), max_size=3, unique_by=lambda want: want.like))
    if depth and draw(st.integers(0, 3)) == 0:
        tenant.floor = {("east", draw(st.sampled_from(RESOURCES))): draw(st.integers(1, 12))}
    if depth and draw(st.integers(0, 3)) == 0:
        tenant.limit = {("east", draw(st.sampled_from(RESOURCES))): draw(st.integers(1, 12))}
    return tenant


capacities = st.fixed_dictionaries(
    {(supply, resource): st.integers(0, 30) for supply in SUPPLIES for resource in RESOURCES}
)


def branches(tenant: Tenant, parent: Branch | None, found: dict[str, Branch]) -> Branch:
    branch = Branch(None, parent, is_leaf=not tenant.children, policy=Drf())
    branch.weight, branch.floor, branch.limit = tenant.weight, dict(tenant.floor), dict(tenant.limit)
    for want in tenant.wants:
        group = (want.supplies, tuple(sorted(want.amounts)))
        branch.wants[group] = [want.amounts[resource] for resource in group[1]]
    branch.children = [branches(child, branch, found) for child in tenant.children]
    found[tenant.name] = branch
    return branch


def worked_out(tenant: Tenant, capacity: dict[Any, int]) -> dict[str, dict[Any, float]]:
    found: dict[str, Branch] = {}
    root = branches(tenant, None, found)
    names = {branch: name for name, branch in found.items()}
    changed = Deserving(root, capacity).update({})
    return {
        names[branch]: {kind: parts / (1 << FRACTION_BITS) for kind, parts in amounts.items()}
        for branch, amounts in changed.items()
    }


@CALM
@given(tenants(choosy=True), capacities)
def test_it_is_what_small_steps_come_to(tenant: Tenant, capacity: dict[Any, int]) -> None:
    fast = worked_out(tenant, capacity)
    slow = [deserved(tenant, capacity, steps=STEPS)]
    if not is_near(fast, slow[0], capacity):
        # Two that come to the end of something at once: whoever is a small step behind waits for long, or does not.
        slow += [deserved(tenant, capacity, steps=steps) for steps in (STEPS - 1, STEPS + 10, STEPS + 56)]
        assert any(is_near(fast, each, capacity) for each in slow), (fast, slow)


def is_near(
    fast: dict[str, dict[Any, float]], slow: dict[str, dict[Any, float]], capacity: dict[Any, int]
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
    wants_of_three = [{"cpu": 1}, {"gpu": 14}, {"cpu": 1, "gpu": 1}]
    three_kinds = Tenant("b", wants=[Want(("east",), amounts) for amounts in wants_of_three])
    capacity = {("east", "cpu"): 1, ("east", "gpu"): 20, ("west", "cpu"): 0, ("west", "gpu"): 3}
    found = worked_out(Tenant("", children=[two_supplies, three_kinds]), capacity)
    assert found["a"][("east", "gpu")] == pytest.approx(found["b"][("east", "gpu")]) == pytest.approx(10)


@CALM
@given(tenants(), capacities)
def test_children_get_no_more_than_was_given(tenant: Tenant, capacity: dict[Any, int]) -> None:
    found = worked_out(tenant, capacity)

    def check(each: Tenant, given_: dict[Any, float]) -> None:
        for kind, amount in given_.items():
            total = sum(found.get(child.name, {}).get(kind, 0.0) for child in each.children)
            if each.children:
                assert total <= amount * (1 + 1e-6) + 1e-3
        for child in each.children:
            check(child, found.get(child.name, {}))

    check(tenant, {kind: float(amount) for kind, amount in capacity.items()})


def test_what_a_guarantee_brings_along_is_nobody_elses_guarantee() -> None:
    """A guarantee of GPUs alone, of who asks for CPUs beside them, leaves those that another's names."""
    cpu, gpu = ("east", "cpu"), ("east", "gpu")
    batch = Tenant("batch", floor={cpu: 60}, wants=[Want(("east",), {"cpu": 100})])
    training = Tenant("training", floor={gpu: 1}, wants=[Want(("east",), {"cpu": 125, "gpu": 2})])
    root, capacity = Tenant("", children=[batch, training]), {cpu: 100, gpu: 2}
    for found in (worked_out(root, capacity), deserved(root, capacity, steps=STEPS)):
        assert found["batch"][cpu] == pytest.approx(60)
        assert found["training"][cpu] == pytest.approx(40)
