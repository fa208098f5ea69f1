"""What docs/defects.md says is shown by a patch is."""

from __future__ import annotations

import random

import pytest
from defects.__main__ import known, show


@pytest.mark.slow
def test_some_of_them_are_caught(rng: random.Random) -> None:
    """`make defect NAME=all` plays all."""
    assert show(rng.sample([defect for defect in known() if defect.has_patch], 2)) == []
