"""The lines that claims wait in."""

from __future__ import annotations

from sluice_scheduler.core.fairness.claims import Claim, Shape
from sluice_scheduler.core.fairness.lines import Line


def claim(key: str, shape: Shape, created_ms: int) -> Claim:
    return Claim(
        key=key,
        line="q",
        priority=0,
        created_ms=created_ms,
        line_ms=created_ms,
        names=("ns", key),
        shape=shape,
        gang=False,
    )


def test_a_claim_that_comes_back_stands_where_it_stood() -> None:
    """Its old entry is still in the row, behind the first: in that place it is met again."""
    line, shape = Line(strict=False), Shape((), 0)
    first, second = claim("first", shape, 1), claim("second", shape, 2)
    line.join(first)
    line.join(second)
    for _ in range(3):
        line.leave(second)
        second = claim("second", shape, 2)
        line.join(second)
    assert len(line) == 2
    assert list(line.in_order([shape])) == [first, second]
    line.leave(first)
    assert line.firsts(9) == [second]
