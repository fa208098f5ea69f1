"""`python -m sluice_scheduler.simulator.schema`: write the JSON Schema of scenarios.

The shared generator can't, because what is shared knows no service.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from sluice_scheduler.simulator.scenario import Scenario

FILE: Final = Path("docs/contracts/scenario.v1alpha1.schema.json")


def schema() -> str:
    content = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "sluice.dev/v1alpha1/Scenario",
        **Scenario.model_json_schema(by_alias=True),
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(schema())
