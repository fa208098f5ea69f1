"""Builds those of the control plane's programs that the cache lacks, and puts all into one folder."""

import shutil
import sys
from pathlib import Path

from sluice_local import build
from sluice_local.kubectl import KUBECTL
from sluice_local.kubernetes import APISERVER, CONTROLLER_MANAGER, ETCD, KWOK, SCHEDULER

PROGRAMS = (ETCD, KWOK, KUBECTL, SCHEDULER, CONTROLLER_MANAGER, APISERVER)

folder = Path(sys.argv[1])
folder.mkdir()
build.ensure(PROGRAMS, print)
for program in PROGRAMS:
    shutil.move(program.path, folder / program.name)
