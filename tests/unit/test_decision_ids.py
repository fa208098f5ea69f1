"""What an object carries of a decision may have been written by anybody."""

import pytest
from sluice.values import DecisionId, Epoch


def test_what_was_written_is_read_back() -> None:
    decision = DecisionId(Epoch(2, 2**63), 7)
    assert DecisionId.parse(str(decision)) == decision


@pytest.mark.parametrize("text", ["", "soon", "1-2", "1-2.3.4", "1-2.-3", "1-2.٣", f"1-2.{'9' * 5_000}"])
def test_anything_else_is_no_decision(text: str) -> None:
    assert DecisionId.parse(text) is None
