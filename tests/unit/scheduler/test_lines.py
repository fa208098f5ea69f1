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
    assert list(line.hopeful(lambda _: True, lambda _: None)) == [second]


def test_a_strict_line_is_gone_through_by_place_across_its_shapes() -> None:
    """And stands as before when somebody stops on the way."""
    line, shapes = Line(strict=True), [Shape((), number) for number in range(3)]
    claims = [claim(f"{at}", shapes[at * 7 % 3], at) for at in range(12)]
    for each in claims[::2] + claims[1::2]:
        line.join(each)
    for gone in (claims.pop(0), claims.pop(4)):
        line.leave(gone)
    for _ in range(2):
        assert [next(each) for each in [line.in_order(())] * 5] == claims[:5]
        assert list(line.in_order(())) == claims
