"""Commands run with a standard output that nobody reads, as behind `| head` when head has ended."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def unread(
    command: Sequence[str | Path], environment: Mapping[str, str] = os.environ
) -> subprocess.CompletedProcess[str]:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as output:
        return subprocess.run(
            command,
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            # As users have it: without a buffer, argparse hides that its help was not read.
            env={**environment, "PYTHONUNBUFFERED": ""},
            timeout=60,
            check=False,
        )
