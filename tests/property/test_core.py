"""What must hold of the core on random histories: trees, pools, gangs, growth, reclaim, node loss, edits.

Hypothesis prints the falsifying example and its seed (`@reproduce_failure`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from guarded import GUARDED
from histories import SETTINGS, Simulation, comebacks, contents, faults, gangs_apart, scenarios
from hypothesis import given, settings
from hypothesis import strategies as st
from object_histories import object_histories
from properties import (
    PROPERTIES,
    Content,
    batches_leave_no_trace,
    choices_are_the_references,
    takeover_decides_the_same,
    who_lost_pods_pushes_nobody,
)
from sluice_scheduler.core.state.members import workload_of
from sluice_scheduler.simulator.scenario import Scenario
from taken_over import whoever_takes_over_decides_the_same

POLICIES: Final = ("drf", "drf", "usage-drf", "fifo", "priority")


@pytest.mark.parametrize("check", PROPERTIES, ids=lambda check: check.__name__)
def test_on_random_histories(check: Callable[[Content], None]) -> None:
    @SETTINGS
    @given(contents(policies=POLICIES, busy=True), st.booleans())
    def play(content: Content, flaky: bool) -> None:
        check({**content, "flaky": flaky})

    play()


@pytest.mark.parametrize("check", GUARDED, ids=lambda check: check.__name__)
def test_whatever_raises(check: Callable[[Content], None]) -> None:
    @settings(SETTINGS, max_examples=settings.default.max_examples // 2)
    @given(contents(policies=POLICIES, busy=True), st.booleans(), faults())
    def play(content: Content, flaky: bool, fault: dict[str, int]) -> None:
        check({**content, "flaky": flaky, "fault": fault})

    play()


@SETTINGS
@given(comebacks())
def test_who_lost_pods_while_others_ended(content: Content) -> None:
    who_lost_pods_pushes_nobody(content)
    batches_leave_no_trace(content)


@SETTINGS
@given(gangs_apart())
def test_gangs_whose_parts_go_apart(content: Content) -> None:
    """Whatever keeps one out, it is found as soon as it fits."""
    choices_are_the_references(content)
    takeover_decides_the_same(content)


@SETTINGS
@given(object_histories())
def test_whatever_happens_to_objects(content: Content) -> None:
    whoever_takes_over_decides_the_same(content)


def test_the_order_of_hashes_leaves_no_trace() -> None:
    """Histories of chance, decided by processes that hash strings in different ways."""
    histories: list[dict[str, Any]] = []

    @settings(SETTINGS, max_examples=settings.default.max_examples // 3, database=None)
    @given(contents(policies=POLICIES, busy=True))
    def collect(content: dict[str, Any]) -> None:
        histories.append(content)

    collect()
    play = (
        f"import json, sys; sys.path[:0] = {[str(Path(__file__).parent)]!r}; "
        "from histories import Simulation; "
        "from sluice_scheduler.simulator.scenario import Scenario; "
        "simulations = [Simulation(Scenario.model_validate(each)) for each in json.load(sys.stdin)]; "
        "[(each.run(), print(each.decided)) for each in simulations]"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", play],
            input=json.dumps(histories).encode(),
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "31337")
    ]
    assert told[0].count(b"Admit(") > len(histories)
    assert told[0] == told[1] == told[2]


@SETTINGS
@given(scenarios(deep=False, edits=False, groups=False))
def test_without_gangs_nobody_envies_by_more_than_his_largest_task(scenario: Scenario) -> None:
    """Flat, equal weights, no limits or guarantees, every pod a growth claim of one resource: at the end
    nobody who waits for it could take a pod from a queue that would still have as much as he has."""
    plain = scenario.model_copy(deep=True)
    for queue in plain.queues:
        object.__setattr__(queue, "weight", 1)
        for name in ("limit", "guaranteed"):
            object.__setattr__(queue, name, {})
        object.__setattr__(queue, "ordering", "bestEffortFifo")
        object.__setattr__(queue, "reclaim", type(queue.reclaim)())
    for event in plain.events:
        if event.submit:
            for pod_set in event.submit.pod_sets:
                pod_set.min_count = 0
                pod_set.requests = {"cpu": "1"}
            event.submit.priority = 0
    simulation = Simulation(plain)
    simulation.run()
    forest = simulation.cell.state.forest
    total = sum(amount for dim, amount in forest.capacity.items() if dim[2] == "cpu")
    if total and len(plain.pools) == 1:
        task = 1000 / total
        shares = {
            name: leaf.usage.get(("sim", "p", "cpu"), 0) / total for name, leaf in forest.leaves.items()
        }
        unbarred = [
            name
            for name, leaf in forest.leaves.items()
            if any(not (w := workload_of(simulation.cell.state, c.key)) or w.barred < 0 for c in leaf.line)
        ]
        for name in unbarred:
            assert max(shares.values()) - shares[name] <= task + 1e-9
