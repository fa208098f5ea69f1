"""What is generated from the contracts is committed as it would be generated now."""

from pathlib import Path

import pytest
from sluice.generate.__main__ import REPOSITORY
from sluice.generate.files import generated_files
from sluice_scheduler.simulator import schema as scenarios

#: The shared generator knows no service, so the scenarios' schema comes from the simulator.
FILES = {**generated_files(), str(scenarios.FILE): scenarios.schema()}


@pytest.mark.parametrize("path", sorted(FILES))
def test_it_is_fresh(path: str) -> None:
    committed = REPOSITORY / path
    current = committed.read_text() if committed.exists() else None
    assert current == FILES[path], "run `make generate`"


def test_nothing_is_left_of_what_is_no_longer_generated() -> None:
    kept = {
        *Path(REPOSITORY, "docs/contracts").glob("*.schema.json"),
        *Path(REPOSITORY, "deploy/crds").glob("sluice.dev_*.yaml"),
    }
    assert {str(path.relative_to(REPOSITORY)) for path in kept} <= FILES.keys()
