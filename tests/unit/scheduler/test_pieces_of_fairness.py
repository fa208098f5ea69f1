"""What is worked out of demand, nodes and shapes, counted in looks and sums: in proportion to what changes."""

from __future__ import annotations

from typing import Any

import pytest
from sluice_scheduler.core.fairness import filling
from sluice_scheduler.core.fairness.filling import Flow, Sibling, fill
from test_pieces_of_work import counted


def test_many_groups_of_demand_are_filled_at_a_cost_in_proportion_to_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each stops at a level of its own."""
    cpu, totals = ("", "cpu"), []
    module: Any = filling
    for count in (100, 200):
        flows = [Flow([{cpu: 1.0 + number}], 1.0 / (1 + number), 0.0) for number in range(count)]
        with monkeypatch.context() as inside:
            sums = counted(inside, module, "add_times")
            sibling = Sibling(1, flows)
            fill([sibling], {cpu: 1e9}, {cpu: 10**9})
        assert sibling.use[cpu] == pytest.approx(sum(1.0 + number for number in range(count)))
        totals.append(len(sums))
    assert totals[1] <= 2.1 * totals[0]
