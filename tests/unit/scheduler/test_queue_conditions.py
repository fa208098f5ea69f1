"""What a Queue's conditions say of a spec that makes no sense where it stands."""

from __future__ import annotations

from typing import Any

import pytest
from one_cell import OneCell
from sluice.events import NodeEvent, NodeFacts, PoolEvent, PoolFacts
from sluice.texts import LENGTH_MAX


@pytest.fixture
def cell() -> OneCell:
    cell = OneCell()
    cell.pool(cpu=8000)
    return cell


def test_children_are_guaranteed_what_their_parent_does_not_name(cell: OneCell) -> None:
    for name in ("parent", "child", "below"):
        cell.namespace(name)
    cell.queue("parent", guaranteed={"gpu": "1"})
    cell.queue("child", parent="parent", guaranteed={"cpu": "5"})
    cell.queue("below", parent="child")
    for name in ("parent", "child", "below"):
        assert "Ready" not in cell.complaints(name)
    cell.queue("parent", guaranteed={"cpu": "4"})
    assert "more than its own 4" in cell.complaints("child")["Ready"]
    assert cell.complaints("below")["Ready"].startswith("queue child, above it, can't be used: spec.guar")


def test_root_queues_that_are_guaranteed_more_than_there_is_say_so(cell: OneCell) -> None:
    cell.queue("a", guaranteed={"cpu": "5"})
    cell.queue("b")
    cell.queue("below", parent="b", guaranteed={"cpu": "50%"})
    cell.queue("idle")
    told = (
        "root queues are guaranteed 9 cpu in all (a 5, b 4), and there is 8: not all of them can have it at once; "
        "lower these guarantees, or add nodes"
    )
    names = ("a", "b", "below", "idle")
    assert [cell.complaints(name).get("GuaranteesFit", "") for name in names] == [told, told, "", ""]
    cell.queue("a", guaranteed={"cpu": "4"})
    assert [cell.complaints(name).get("GuaranteesFit", "") for name in names] == [""] * 4
    cell.pool(cpu=7000)
    assert "and there is 7" in cell.complaints("a")["GuaranteesFit"], "4 and half of 7"
    cell.pool("more", cpu=9000)
    assert [cell.complaints(name).get("GuaranteesFit", "") for name in names] == [""] * 4


def test_guarantees_in_one_pool_are_compared_with_what_that_has(cell: OneCell) -> None:
    cell.pool("other", cpu=8000)
    for name in ("a", "b"):
        cell.queue(name, pools={"other": {"guaranteed": {"cpu": "60%"}}})
    told = "root queues are guaranteed 9.6 cpu in pool other in all (a 4.8, b 4.8), and there is 8"
    assert cell.complaints("a")["GuaranteesFit"].startswith(told)
    cell.queue("b", guaranteed={"cpu": "12"})
    told = "root queues are guaranteed 16.8 cpu in all (a 4.8, b 12), and there is 16"
    assert cell.complaints("b")["GuaranteesFit"].startswith(told)


def test_children_that_are_guaranteed_more_than_the_limit_above_lets_them_hold_say_so(cell: OneCell) -> None:
    cell.queue("org", limit={"cpu": "4"})
    cell.queue("a", parent="org", guaranteed={"cpu": "3"})
    cell.queue("b", parent="org", guaranteed={"cpu": "25%"})
    cell.queue("idle", parent="org")
    names = ("org", "a", "b", "idle")
    told = (
        "guaranteed.cpu: the queues below org are guaranteed 5 cpu in all (a 3, b 2), and limit.cpu of org lets them "
        "hold 4: lower guaranteed.cpu of these, or raise limit.cpu of org"
    )
    assert [cell.complaints(name).get("GuaranteesFit", "") for name in names] == ["", told, told, ""]
    cell.queue("org", limit={"cpu": "5"})
    assert [cell.complaints(name).get("GuaranteesFit", "") for name in names] == [""] * 4


def test_a_limit_above_in_one_pool_is_compared_with_guarantees_there(cell: OneCell) -> None:
    cell.pool("other", cpu=8000)
    cell.queue("org", pools={"other": {"limit": {"cpu": "1"}}})
    cell.queue("a", parent="org", guaranteed={"cpu": "3"})
    cell.queue("b", parent="org", pools={"other": {"guaranteed": {"cpu": "2"}}})
    assert "GuaranteesFit" not in cell.complaints("a")
    told = "are guaranteed 2 cpu in pool other in all (b 2), and limit.cpu of org lets them hold 1"
    assert told in cell.complaints("b")["GuaranteesFit"]
    cell.queue("org", limit={"cpu": "25%"})
    told = "are guaranteed 5 cpu in all (a 3, b 2), and limit.cpu of org lets them hold 4"
    assert told in cell.complaints("a")["GuaranteesFit"], "2 in each pool"


@pytest.mark.parametrize(
    ("parent", "children", "words"),
    [
        ({"guaranteed": {"cpu": "5"}}, [{"guaranteed": {"cpu": "3"}}] * 2, "are guaranteed 3 + 3, more than"),
        ({"guaranteed": {"cpu": "50%"}}, [{"guaranteed": {"cpu": "30%"}}] * 2, "guaranteed 30% + 30%, more"),
        ({"guaranteed": {"cpu": "6"}}, [{"guaranteed": {"cpu": "3"}}] * 2, ""),
        ({"guaranteed": {"cpu": "50%"}}, [{"guaranteed": {"cpu": "3"}}], ""),  # comparable by capacity only
        ({"guaranteed": {"gpu": "1"}}, [{"guaranteed": {"cpu": "3"}}], ""),
        ({}, [{"pools": {"default": {"guaranteed": {"cpu": "3"}}}}], ""),
        (
            {"pools": {"default": {"guaranteed": {"cpu": "2"}}}},
            [{"pools": {"default": {"guaranteed": {"cpu": "3"}}}}],
            "guaranteed 3, more than its own 2",
        ),
        (
            {"guaranteed": {"cpu": "40%"}},
            [{"guaranteed": {"cpu": "20%"}}, {"pools": {"default": {"guaranteed": {"cpu": "30%"}}}}],
            "guaranteed 20% + 30%, more than its own 40%",
        ),
    ],
)
def test_childrens_guarantees_may_not_exceed_their_parents(
    cell: OneCell, parent: dict[str, Any], children: list[dict[str, Any]], words: str
) -> None:
    cell.queue("parent", **parent)
    for number, spec in enumerate(children):
        cell.queue(f"child{number}", parent="parent", **spec)
    for number in range(len(children)):
        message = cell.complaints(f"child{number}").get("Ready", "")
        assert words in message if words else not message
    assert "Ready" not in cell.complaints("parent")


@pytest.mark.parametrize(
    ("own", "of_each", "words"),
    [
        (
            "1",
            "1234m",
            "are guaranteed 1234m + 1234m + 1234m and 97 more (123.4 in all), more than its own 1: ",
        ),
        (
            "50%",
            "1.5%",
            "are guaranteed 1.5% + 1.5% + 1.5% and 97 more (150% in all), more than its own 50%: ",
        ),
    ],
)
def test_of_many_that_are_guaranteed_too_much_a_few_are_named_and_what_they_come_to(
    cell: OneCell, own: str, of_each: str, words: str
) -> None:
    """Each of them says so, and each pod that waits there."""
    cell.queue("parent", guaranteed={"cpu": own})
    for number in range(100):
        cell.queue(f"child{number}", parent="parent", guaranteed={"cpu": of_each})
    message = cell.complaints("child0")["Ready"]
    assert words in message
    assert len(message) < 300


def test_what_is_wrong_with_a_queue_is_cut_if_it_is_long(cell: OneCell) -> None:
    """An amount may be written with any number of zeros before it."""
    cell.queue("parent", guaranteed={"cpu": f"{1:0250}"})
    for number in range(3):
        cell.queue(f"child{number}", parent="parent", guaranteed={"cpu": f"{9:0250}"})
    assert {len(node.problem) for node in cell.state.tree.values()} == {0, LENGTH_MAX}


def test_a_name_that_leads_nowhere_gives_a_condition_and_the_queue_goes_on(cell: OneCell) -> None:
    cell.queue("team", policy="shortest-first", pools={"moon": {"limit": {"cpu": "1"}}})
    cell.namespace("team")
    cell.pod("p", "team")
    message = cell.complaints("team")["ResolvedRefs"]
    assert "spec.policy: there is no policy shortest-first" in message
    assert "or name one of drf, fifo, priority, usage-drf" in message
    assert "spec.pools.moon: there is no ResourcePool moon" in message
    assert cell.figures("team")["running"] == 1
    cell.pool("moon", cpu=1000)
    cell.queue("team", policy="fifo", pools={"moon": {"limit": {"cpu": "1"}}})
    assert not cell.complaints("team")


def test_a_report_says_what_has_changed(cell: OneCell) -> None:
    cell.queue("team")
    cell.namespace("team")
    cell.pod("p", "team")
    cell.tick()
    assert cell.sentences("Changed") == [
        "queue team has 1 running and 0 pending",
        "pool default has 1 node",
    ]
    cell.pod("open", "team", gated=False)
    cell.tick()
    assert "queue team has 2 running and 0 pending; Bypassed is True now" in cell.sentences("Changed")


def test_a_cell_that_nobody_has_set_up_is_told_by_the_first(cell: OneCell) -> None:
    cell.queue("lost", cell="research")
    cell.queue("below", parent="lost")
    cell.pool("far", cpu=1000, cell="research")
    assert cell.complaints("lost")["Ready"].startswith("spec.cell: there is no cell research: make")
    assert cell.complaints("below")["Ready"].startswith("queue lost, above it, can't be used: spec.cell")
    assert cell.complaints("far", "resourcepool")["Ready"].startswith("spec.cell: there is no cell research")
    assert cell.state.places.node_count == {"default": 1}, "nothing is admitted into it"


def test_what_is_another_cells_is_told_by_that_one(cell: OneCell) -> None:
    cell.configure(cells=("default", "research"))
    cell.queue("theirs", cell="research")
    cell.pool("far", cpu=1000, cell="research")
    cell.tick()
    assert {report.about for report in cell.state.reports} == {"resourcepool/default"}


def test_pools_that_overlap_are_told_which_nodes_another_has(cell: OneCell) -> None:
    cell.tell(PoolEvent, "every", pool=PoolFacts())
    assert cell.complaints("every", "resourcepool")["Overlapping"].startswith(
        "node node-default also belongs to pool default, first by name, which has it"
    )
    assert not cell.complaints("default", "resourcepool")
    cell.tell(NodeEvent, "node-default", node=NodeFacts(allocatable={"cpu": 8000}))
    assert not cell.complaints("every", "resourcepool")
    assert cell.figures("every", "resourcepool")["nodes"] == 1


def test_a_bound_on_what_no_pool_has_is_told(cell: OneCell) -> None:
    cell.namespace("team")
    cell.queue("team", limit={"gpu": "2", "cpu": "4"})
    assert cell.complaints("team")["ResolvedRefs"] == (
        "a bound is set on gpu, which no pool has: write one of cpu, or add nodes with it"
    )
    cell.queue("team", limit={"cpu": "4"})
    assert not cell.complaints("team")
