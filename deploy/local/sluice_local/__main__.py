"""`python -m sluice_local`: the command, also where nothing is installed yet."""

import sys

from sluice_local.cli import main

sys.exit(main())
