"""`python -m sluice_local.demo.real`"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console
from sluice.programs import ends_quietly

from sluice_local import Stack
from sluice_local.demo import summary as simulated
from sluice_local.demo.api import Api
from sluice_local.demo.real import scenario, summary
from sluice_local.demo.real.play import RealPlay
from sluice_local.demo.real.results import RayProgram, results
from sluice_local.demo.real.summary import Proof
from sluice_local.demo.running import Demo, exit_code, open_console, say
from sluice_local.demo.shows import showing
from sluice_local.demo.stage import place
from sluice_local.node import conditions

#: A stack of its own, which begins empty and is gone in the end.
_STACK: Final = "demo-real"
_OPERATORS: Final = ("kuberay", "spark-operator")


@ends_quietly()
def main() -> int:
    # Asked to end in either way, it takes its node along.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return exit_code("demo-real", lambda: _run(open_console()), stopped="Stopped.")


def _run(console: Console) -> int:
    conditions.ensure(say, agreed=False)
    stack = Stack(_STACK, given={}, say=say)
    if stack.directory.exists():
        say("taking away what the last run has left")
        stack.down(purge=True)
    stack.build(_OPERATORS)
    is_well = False
    try:
        is_well = _play(stack, console)
    finally:
        say(f"ending the node and the stack {_STACK!r}")
        stack.down(purge=is_well)
        if not is_well:
            say(f"its logs stay until the next run, in {stack.directory}")
    return 0 if is_well else 1


def _play(stack: Stack, console: Console) -> bool:
    """Whether all was as told."""
    images = _start(stack)
    endpoints = stack.endpoints
    api, environment = Api(endpoints), {**os.environ, **stack.user_env()}
    ray = RayProgram(endpoints.kubeconfig)
    plays = partial(RealPlay, ray=ray, images=images)
    demo = Demo(api, environment, scenario.CAST, plays)
    try:
        place(api, scenario.objects())
        demo.prepare()
        with showing(console, demo.observation, demo.account, picture_file=None) as show:
            took_s = demo.run(show)
    finally:
        demo.audit.stop()
    found, proof = results(endpoints.kubeconfig, ray), _proof(environment)
    with demo.lock:
        summary.show(console, demo.observation, demo.account, found, proof, took_s=took_s)
        wrong = list(simulated.problems(demo.observation, demo.account, demo.play.unseen))
        wrong += summary.problems(demo.account, found, proof)
    return simulated.tell_problems(console, wrong)


def _start(stack: Stack) -> Mapping[str, str]:
    """What pods call each tenant's image."""
    say(f"starting the stack {_STACK!r}, the operators, Sluice's services and a real node")
    started = time.monotonic()
    stack.up(services=True, operators=_OPERATORS)
    images = {tenant: stack.image(image) for tenant, image in scenario.IMAGES.items()}
    say("the node takes in the images")
    stack.node_up()
    say(f"everything is ready after {time.monotonic() - started:.1f} s")
    return images


def _proof(environment: Mapping[str, str]) -> Proof:
    sluice = Path(sys.executable).with_name("sluice")
    verified = subprocess.run(
        [sluice, "audit", "verify", "--replay"], env=environment, capture_output=True, text=True, check=False
    )
    return Proof(verified.returncode == 0, (verified.stdout + verified.stderr).strip())


if __name__ == "__main__":
    sys.exit(main())
