"""`python -m sluice_scheduler.simulator.schema`: write the JSON Schema of scenarios; `--check`: only compare.

The shared generator can't, because what is shared knows no service.
"""

from __future__ import annotations

import argparse
import json
import sys
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


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m sluice_scheduler.simulator.schema", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the file is stale")
    if not parser.parse_args().check:
        FILE.write_text(schema())
    elif not FILE.exists() or FILE.read_text() != schema():
        print(f"stale: {FILE}: run `make generate` and commit the result", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
