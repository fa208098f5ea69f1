"""Samples of what the last release leaves behind, as files: its records as a bug report, and its ledger beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from redis import Redis
from releases import LAST

FOLDER: Final = Path(__file__).parent
RECORDS: Final = FOLDER / f"{LAST}.sluice"
LEDGER: Final = FOLDER / f"{LAST}-ledger.json"


def keep_ledger(redis: Redis) -> None:
    """All that stands there, as text; whatever is no hash would be something new."""
    keys = sorted(map(str, redis.keys("sluice:*")))
    held = {key: redis.hgetall(key) for key in keys}
    LEDGER.write_text(json.dumps(held, indent=1, sort_keys=True) + "\n")


def put_ledger(redis: Redis) -> dict[str, str]:
    """The ledger, as it stood; what it says of itself."""
    held: dict[str, dict[Any, Any]] = json.loads(LEDGER.read_text())
    for key, fields in held.items():
        redis.hset(key, mapping=fields)
    return next(fields for key, fields in held.items() if key.endswith(":meta"))
