"""Who is tried when a pod ends in a full cluster: nobody; and with a tick not everybody who waits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bench.core import Bench
from sluice.events import ConfigEvent, PodEvent, PodFacts
from sluice_scheduler.core import step
from sluice_scheduler.core.passes.budget import Budget
from sluice_scheduler.core.passes.move import Move


def count_tries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    tried: list[str] = []
    find = Move.find

    def counted(move: Move) -> bool:
        tried.append(move._leaf.name)
        return find(move)

    monkeypatch.setattr(Move, "find", counted)
    return tried


def reclaim_at_once(bench: Bench) -> None:
    """Its clock stands still."""
    config = replace(bench.state.config, reclaim_after_ms=0)
    step(bench.state, ConfigEvent(time_ms=0, cluster="bench", config=config))


@pytest.mark.parametrize("fan_out", [0, 10])
def test_a_pass_in_a_full_cluster_does_not_try_all_leaves_again(
    fan_out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(100, fan_out=fan_out)
    for event in bench.pods(2_000):
        step(bench.state, event)
    reclaim_at_once(bench)
    bench.capacity(200_000)
    bench.tick()
    bench.tick()
    tried = count_tries(monkeypatch)
    ending = [pod for pod in bench.state.pods if pod.holds][:20]
    for pod in ending:
        bench.finish(pod)
    assert tried == [], "room is taken from others with ticks alone"
    bench.tick()
    waiting = sum(1 for leaf in bench.state.forest.leaves.values() if len(leaf.line))
    assert waiting == 100
    assert len(tried) < waiting / 2


def test_who_has_less_as_a_branch_is_tried_although_his_siblings_have_nothing() -> None:
    """Above its parent a leaf may gain, though nothing can be taken from its own siblings."""
    bench = Bench(4, fan_out=2)
    reclaim_at_once(bench)
    bench.capacity(4_000)

    def submit(name: str, queue: str) -> None:
        facts = PodFacts(requests={"cpu": 1_000}, created_ms=1, gated=True)
        bench.see(PodEvent, name, namespace=queue, pod=facts)

    for number in range(4):
        submit(f"rich-{number}", "q0000")
    submit("poor", "q0002")
    bench.tick()
    assert [pod.queue for pod in bench.state.pods if pod.evicting] == ["q0000"]


def test_everybody_is_tried_though_those_before_use_up_what_a_step_may_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The search goes on behind those that were tried in vain, and ends."""
    monkeypatch.setattr(Budget.__init__, "__defaults__", (20,))
    bench = Bench(31)
    reclaim_at_once(bench)
    victim, *others = bench.queues
    bench.queue(victim, "", minimum_run_ms=3_600_000)
    bench.submit(100, requests=lambda _: {"cpu": 1_000}, queues=[victim])
    bench.capacity(100_000)
    bench.submit(60, requests=lambda _: {"cpu": 1_000}, queues=others, series=1)
    tried = count_tries(monkeypatch)
    bench.tick(1_000)
    for _ in range(60):
        if not bench.state.cell.in_vain:
            break
        assert not bench.state.cell.unfinished, "other records cost nothing"
        bench.tick()
    assert not bench.state.cell.in_vain
    assert sorted(tried) == sorted(others), "each once"
