"""What ADR 11 promises, on histories of its own: against all moves there are, cuts into pools, and the clock.

Hypothesis prints the falsifying example and its seed (`@reproduce_failure`).
"""

from __future__ import annotations

import pytest
from histories import SETTINGS
from hypothesis import given
from properties import PROPERTIES, Content
from registry import HISTORIES, Check


@pytest.mark.parametrize(
    "check", [check for check in HISTORIES if check not in PROPERTIES], ids=lambda check: check.__name__
)
def test_on_histories_of_its_own(check: Check) -> None:
    @SETTINGS
    @given(HISTORIES[check]())
    def play(content: Content) -> None:
        check(content)

    play()
