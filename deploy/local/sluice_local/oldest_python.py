"""Says that Python is too old before an import fails in a way that says less."""

import sys

OLDEST_PYTHON = (3, 11)

if sys.version_info < OLDEST_PYTHON:
    wanted = ".".join(map(str, OLDEST_PYTHON))
    sys.exit(f"Sluice needs Python {wanted} or newer; this is {sys.version.split()[0]}.")
