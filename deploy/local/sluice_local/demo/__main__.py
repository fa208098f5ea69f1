"""`python -m sluice_local.demo`"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Final

from rich.console import Console
from sluice.programs import ends_quietly

from sluice_local import Stack, StackError
from sluice_local.demo import summary
from sluice_local.demo.api import Api
from sluice_local.demo.running import Demo, exit_code, open_console, say
from sluice_local.demo.scenario import CAST
from sluice_local.demo.scenes import Simulated
from sluice_local.demo.shows import showing
from sluice_local.demo.stage import provide_kinds, set_stage
from sluice_local.stack import STACK_VARIABLE

_LOOK_CLOSER: Final = """
The stack and the services still run. To look closer:

  eval "$(make env)"             point kubectl, sluice and others at them
  sluice queue tree              who holds what
  sluice audit tail -n 30        what was decided, and why
  sluice status                  whether all is well
  kubectl get queues,dynamicworkloads,jobs -A     the same, seen from Kubernetes
  make down                      end everything; the demo's pool and queues are there again after `make up`
  sluice-local down --purge      end everything, and forget them with all else of this stack
"""


@ends_quietly()
def main() -> int:
    options = _options()
    stopped = "Stopped. The stack and the services still run: `make down` ends them."
    return exit_code("demo", lambda: _run(options, open_console()), stopped=stopped)


def _run(options: argparse.Namespace, console: Console) -> int:
    if STACK_VARIABLE not in os.environ and os.environ.pop("KUBECONFIG", ""):
        say("KUBECONFIG is left alone: the demo simulates its nodes, in a control plane of its own")
    stack = Stack(options.name, say=say)
    if both := stack.operators & {"kuberay", "spark-operator"}:
        raise StackError(
            f"The demo plays with stand-ins, and this stack has {', '.join(sorted(both))}: both would do the same "
            "work. Give it a stack of its own: SLUICE_STACK=demo make demo"
        )
    stack.build()
    say(f"starting the stack {stack.name!r} and Sluice's services")
    started = time.monotonic()
    stack.up()
    api = Api(stack.endpoints)
    if provide_kinds(api, say):
        stack.services_down(["watcher"])  # one that runs already would look for new kinds only now and then
    stack.services_up()
    say(f"everything is ready after {time.monotonic() - started:.1f} s")
    demo = Demo(api, {**os.environ, **stack.user_env()}, CAST, Simulated)
    try:
        set_stage(api, say)  # while the audit starts
        demo.prepare()
        with showing(console, demo.observation, demo.account, picture_file=options.picture) as show:
            took_s = demo.run(show)
    finally:
        demo.audit.stop()
    with demo.lock:
        summary.show(console, demo.observation, demo.account, took_s=took_s)
        wrong = list(summary.problems(demo.observation, demo.account, demo.play.unseen))
    is_well = summary.tell_problems(console, wrong)
    print(_LOOK_CLOSER)
    return 0 if is_well else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make demo", description="Three tenants share a simulated cluster.")
    parser.add_argument("--name", default=os.environ.get(STACK_VARIABLE, "default"), help="which stack")
    parser.add_argument("--picture", type=Path, metavar="FILE.svg", help="keep a picture of it")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
