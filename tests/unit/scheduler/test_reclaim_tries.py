"""Who is tried when a pod ends in a full cluster: not everybody who waits."""

from __future__ import annotations

import random

import pytest
from bench.core import Bench
from sluice.decisions import Evict
from sluice.events import PodEvent, PodFacts
from sluice_scheduler.core import step
from sluice_scheduler.core.passes import reclaim
from sluice_scheduler.core.passes.reclaim import Search


@pytest.mark.parametrize("fan_out", [0, 10])
def test_a_pass_in_a_full_cluster_does_not_try_all_leaves_again(
    fan_out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(100, fan_out=fan_out)
    for event in bench.pods(2_000):
        step(bench.state, event)
    bench.capacity(200_000)
    tried: list[str] = []
    between_queues = Search.between_queues

    def counted(search: Search) -> bool:
        tried.append(search._leaf.name)
        return between_queues(search)

    monkeypatch.setattr(Search, "between_queues", counted)
    ending = [pod for pod in bench.state.pods if pod.holds][:20]
    for pod in ending:
        bench.finish(pod)
    waiting = sum(1 for leaf in bench.state.forest.leaves.values() if len(leaf.line))
    assert waiting == 100
    assert len(tried) < waiting * len(ending) / 2


def test_who_has_less_as_a_branch_is_tried_although_his_siblings_have_nothing() -> None:
    """Above its parent a leaf may gain, though nothing can be taken from its own siblings."""
    bench = Bench(4, fan_out=2)
    bench.capacity(4_000)

    def submit(name: str, queue: str) -> list[object]:
        facts = PodFacts(requests={"cpu": 1_000}, created_ms=1, gated=True)
        return bench.see(PodEvent, name, namespace=queue, pod=facts)

    for number in range(4):
        submit(f"rich-{number}", "q0000")
    decided = submit("poor", "q0002")
    assert [each.queue for each in decided if isinstance(each, Evict)] == ["q0000"]


@pytest.mark.parametrize("seed", range(20))
def test_trying_every_leaf_of_a_tree_decides_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain pods of all sizes in a tree whose branches grow rich one after another."""
    fast = _history(seed)
    monkeypatch.setattr(reclaim, "hopeful", lambda forest: [x for x in forest.leaves.values() if len(x.line)])
    assert _history(seed) == fast
    assert any(isinstance(decision, Evict) for decision in fast)


def _history(seed: int) -> list[object]:
    rng = random.Random(seed)
    bench = Bench(9, fan_out=3)
    decided = bench.capacity(12_000)
    for number in range(60):
        queue = f"q{min(8, number // 10 + rng.randrange(4)):04}"
        requests = {"cpu": rng.randint(1, 3) * 500, "memory": rng.randint(1, 3) * 2**29}
        facts = PodFacts(requests=requests, created_ms=number, gated=True)
        decided += bench.see(PodEvent, f"pod-{number}", namespace=queue, pod=facts)
        holding = [pod for pod in bench.state.pods if pod.holds]
        if number % 3 == 2 and holding:
            decided += bench.finish(rng.choice(holding))
    return decided
