"""Whose pods are charged to whom, and what people are told where something is wrong with that."""

from __future__ import annotations

import pytest
from one_cell import OneCell
from sluice.decisions import Evict, LabelNamespace
from sluice_scheduler.simulator.cell import outcome


@pytest.fixture
def cell() -> OneCell:
    """Queue and namespace `team`, over a pool of 4 cpu."""
    cell = OneCell()
    cell.pool(cpu=4000)
    cell.queue("team")
    cell.namespace("team")
    return cell


def test_a_namespace_without_its_label_is_charged_and_its_pods_count_as_bypassed(cell: OneCell) -> None:
    cell.pod("before", "team")
    cell.namespace("team", managed=False)
    [told] = cell.sentences("ManagedLabelLost")
    assert told.startswith("namespace team has lost its label sluice.dev/managed")
    cell.pod("ungated", "team", gated=False)
    assert len(cell.state.bypassed) == 1
    assert cell.figures("team")["usage"] == {"default/cpu": 2000}
    message = cell.complaints("team")["Bypassed"]
    assert message == f"1 pod runs that Sluice did not admit: team/ungated; {told}"
    cell.namespace("team")
    assert "has lost its label" not in cell.complaints("team")["Bypassed"]
    cell.namespace("team", managed=False)
    assert len(cell.sentences("ManagedLabelLost")) == 2, "told again when it happens again"


@pytest.mark.parametrize("queue", ["", "missing", "other"])
def test_a_namespace_that_is_neither_managed_nor_bound_concerns_nobody(cell: OneCell, queue: str) -> None:
    cell.queue("other")
    cell.namespace("elsewhere", managed=False, queue=queue)
    cell.namespace("team", managed=False, queue=queue)
    assert not cell.sentences("ManagedLabelLost")
    assert not cell.sentences("BindingDoesNotCount")
    assert not cell.sentences("Selected"), "no label is written to a namespace that is not managed"


def test_bypassed_pods_are_named_up_to_three(cell: OneCell) -> None:
    for name in "edcba":
        cell.pod(name, "team", gated=False)
    message = cell.complaints("team")["Bypassed"]
    assert message.startswith(
        "5 pods run that Sluice did not admit: team/a, team/b, team/c and 2 more; see that the admission"
    )


def test_a_decision_that_nobody_made_is_no_admission(cell: OneCell) -> None:
    cell.pod("forged", "team", gated=False, decision="1-1.1")
    assert cell.complaints("team")["Bypassed"].startswith(
        "1 pod runs that Sluice did not admit: team/forged;"
    )
    cell.pod("forged", "team", gated=False, decision="1-1.1", phase="Running")
    assert len(cell.state.bypassed) == 1
    cell.pod("honest", "team")
    cell.pod("honest", "team", gated=False, decision="1-1.9")
    assert len(cell.state.bypassed) == 1


def test_what_runs_is_adopted_with_its_decision_when_the_ledger_begins_anew(cell: OneCell) -> None:
    def listing() -> None:
        cell.pool(cpu=4000)
        cell.queue("team")
        cell.namespace("team")
        cell.pod("admitted", "team", gated=False, decision="1-1.9")
        cell.pod("ungated", "team", gated=False)

    cell.rebuild(listing)
    assert cell.figures("team")["running"] == 2
    assert "did not admit: team/ungated;" in cell.complaints("team")["Bypassed"]


def test_misdirected_pods_are_named_with_what_is_wrong(cell: OneCell) -> None:
    for name in ("p1", "p2", "p3", "p4"):
        cell.pod(name, "team", queue="nowhere")
    cell.pod("p5", "team", queue="elsewhere")
    cell.pod("fine", "team")
    message = cell.complaints("team")["Misdirected"]
    assert message.startswith("team/p1, team/p2, team/p3 and 1 more: the pod names queue nowhere, which")
    assert "; team/p5: the pod names queue elsewhere, which" in message
    assert "fine" not in message
    for number in range(4):
        cell.pod(f"q{number}", "team", queue=f"astray{number}")
    message = cell.complaints("team")["Misdirected"]
    assert message.endswith("; and 3 more"), "no more than three sentences"
    assert message.count(": recreate the pod") == 3


def test_pods_that_wait_under_a_binding_that_leads_nowhere_are_counted(cell: OneCell) -> None:
    cell.namespace("lost", queue="ghost")
    cell.pod("waits", "lost")
    cell.pod("astray", "team", queue="nowhere")
    assert cell.metric("sluice_misdirected_pods") == 2
    [told] = cell.sentences("BindingDoesNotCount")
    assert [n.noticed for n in cell.state.namespaces if n.name == "lost"] == [told], "for as long as it lasts"
    cell.queue("ghost", namespaces={"names": ["lost"]})
    assert cell.metric("sluice_misdirected_pods") == 1
    assert not any(n.noticed for n in cell.state.namespaces)
    cell.pod("astray", "team", change="DELETED")
    assert cell.metric("sluice_misdirected_pods") == 0


def test_another_cells_binding_is_not_ours_to_judge(cell: OneCell) -> None:
    cell.configure(cells=("default", "east"))
    cell.queue("theirs", cell="east")
    cell.namespace("far", queue="theirs")
    cell.queue("ours", namespaces={"names": ["far"]})
    assert not cell.sentences("BindingDoesNotCount")
    assert not any("namespace far" in sentence for sentence in cell.sentences("Selected"))


def test_a_namespace_that_is_named_in_vain_is_told_to_who_names_it(cell: OneCell) -> None:
    cell.queue("rival", namespaces={"names": ["team", "nowhere", "plain"]})
    cell.namespace("plain", queue="", managed=False)
    assert cell.complaints("rival")["ResolvedRefs"].split("; ") == [
        "spec.namespaces: there is no namespace nowhere: create it, or take it out",
        "spec.namespaces: namespace plain is not managed, so its pods pass by the queue: label it "
        "sluice.dev/managed=true, or take it out",
        "spec.namespaces: namespace team is bound to queue team: take it out of one of the two Queues",
    ]
    assert not cell.complaints("team")
    cell.namespace("nowhere", queue="rival")
    cell.namespace("plain", queue="rival")
    cell.queue("team", namespaces={})
    cell.namespace("team", queue="rival")
    assert not cell.complaints("rival")


def test_a_namespace_that_is_bound_below_who_names_it_is_well_bound(cell: OneCell) -> None:
    cell.queue("above", namespaces={"names": ["team"]})
    cell.queue("team", parent="above")
    assert not cell.complaints("above")


def test_a_namespace_that_several_queues_select_is_told_that_it_is_bound_to_none(cell: OneCell) -> None:
    cell.queue("one", namespaces={"names": ["new"]})
    cell.queue("two", namespaces={"names": ["new"]})
    cell.namespace("new", queue="")
    assert cell.sentences("BindingDoesNotCount") == [
        "queues one, two all select namespace new, so it is bound to none of them: take it out of all but "
        "one, or label it sluice.dev/queue=NAME"
    ]
    cell.queue("two", namespaces={})
    assert cell.sentences("Selected") == ["queue one selects namespace new"]


def test_of_many_queues_that_select_a_namespace_a_few_are_named(cell: OneCell) -> None:
    for number in range(10, 30):
        cell.queue(f"q{number}", namespaces={"names": ["new"]})
    cell.namespace("new", queue="")
    [told] = cell.sentences("BindingDoesNotCount")
    assert told.startswith(
        "queues q10, q11, q12 and 17 more all select namespace new, so it is bound to none"
    )


def test_a_queue_that_does_not_select_a_namespace_is_not_charged_for_it(cell: OneCell) -> None:
    cell.queue("other", limit={"cpu": "1"})
    cell.namespace("other")
    for name in ("r1", "r2"):
        cell.pod(name, "team", gated=False, decision="1-1.1", phase="Running")
    cell.pod("theirs", "other", gated=False, decision="1-1.2", phase="Running")
    cell.namespace("team", queue="other")
    assert cell.figures("other")["usage"] == {"default/cpu": 1000}
    assert not any(isinstance(each, Evict) for each in cell.decisions), "a wrong label ends nobody's pods"
    assert cell.figures("default", "resourcepool")["reserved"] == {"cpu": 3000}, "what runs is counted"
    cell.namespace("team")
    assert cell.figures("team")["usage"] == {"default/cpu": 2000}


def test_a_label_that_was_taken_off_again_before_it_was_seen_is_written_once_more(cell: OneCell) -> None:
    def labels() -> list[LabelNamespace]:
        return [each for each in cell.decisions if isinstance(each, LabelNamespace)]

    cell.namespace("team", queue="")
    cell.namespace("team", queue="")
    [label] = labels()  # it is under way
    cell.cell.feed([outcome(label, 0)])
    cell.queue("team", weight=2)
    assert labels() == [label]
    cell.namespace("team", queue="")
    assert [each.queue for each in labels()] == ["team", "team"]
    cell.namespace("team")
    assert len(labels()) == 2
