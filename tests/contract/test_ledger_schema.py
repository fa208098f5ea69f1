"""Whoever changes what a ledger stores raises its schema's version: an old ledger is not to be misread."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from sluice_scheduler.ledger import SCHEMA
from sluice_scheduler.ledger.entities import shapes

GOLDEN = Path(__file__).parent / "ledger-schema.json"
REMEDY = (
    "What the ledger stores has changed. If a released version wrote the other shape, raise SCHEMA in "
    "sluice_scheduler/ports.py; then write the new shapes down: "
    "SLUICE_WRITE_GOLDEN=1 .venv/bin/pytest tests/contract/test_ledger_schema.py"
)


def test_what_is_stored_has_the_shape_that_its_version_says() -> None:
    found = {
        kind: hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()[:16]
        for kind, shape in shapes()
    }
    now = {"schema": SCHEMA, "shapes": dict(sorted(found.items()))}
    if os.environ.get("SLUICE_WRITE_GOLDEN"):
        GOLDEN.write_text(json.dumps(now, indent=2) + "\n")
    assert json.loads(GOLDEN.read_text()) == now, REMEDY
