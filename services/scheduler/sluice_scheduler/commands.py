"""What `sluice --help` says of the commands that come with this package (entry points `sluice.commands`).

Only these words: whoever lists commands need not load the scheduler.
"""

from __future__ import annotations

from typing import Final

EXPLAIN: Final = "why something waits, where it stands, and when it may be served"
REPLAY: Final = "play a cell's log again on the real core, and compare every decision"
SIMULATE: Final = "play a scenario or a cluster's trace on the real scheduler core, in simulated time"
