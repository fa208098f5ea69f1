"""`python -m sluice_local.demo`"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from pathlib import Path
from typing import Final

from rich.console import Console
from sluice.programs import INTERRUPTED, ends_quietly

from sluice_local import Stack, StackError
from sluice_local.demo import summary
from sluice_local.demo.api import Api
from sluice_local.demo.audit import Account, Audit
from sluice_local.demo.observation import Observation, Observer
from sluice_local.demo.play import Play
from sluice_local.demo.shows import Show, showing
from sluice_local.demo.stage import provide_kinds, set_stage
from sluice_local.stack import STACK_VARIABLE

_FRAMES_PER_S: Final = 4
#: On an idle machine it takes about a minute; whatever slows it down, it ends.
_WITHIN_S: Final = 240.0

_FILE_WIDTH: Final = 132

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


class Demo:
    """Everything that is known while it runs. `lock` is held by whoever reads or writes what is below it."""

    def __init__(self, api: Api, environment: dict[str, str]) -> None:
        self.lock = threading.Lock()
        self.observation = Observation()
        self.account = Account()
        self.audit = Audit(environment, self.account, self.lock)
        self.play = Play(api, self.observation, self.account, self.lock)
        self._observers = [Observer(api, self.observation, self.lock, pods=pods) for pods in (True, False)]

        self.audit.start()

    def prepare(self) -> None:
        self.audit.wait_until_reading(30)
        self.audit.heed()

    def run(self, show: Show) -> float:
        """Returns the seconds it took until the play was over, or was given up."""
        for observer in self._observers:
            observer.start()
        self.play.start()
        began = time.monotonic()
        while (elapsed_s := time.monotonic() - began) < _WITHIN_S:
            is_over = self.play.is_over  # asked first: the last picture is drawn after all that happened
            with self.lock:
                show(elapsed_s, self.play.title)
            self._raise_errors()
            if is_over:
                break
            time.sleep(1 / _FRAMES_PER_S)
        return elapsed_s

    def _raise_errors(self) -> None:
        errors = {each.name: each.error for each in self._observers} | {self.play.name: self.play.error}
        for name, error in errors.items():
            if error is not None:
                raise StackError(f"The demo's {name} failed: {error}") from error
        if complaint := self.audit.complaint():
            raise StackError(f"`sluice audit tail` ended: {complaint}")


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Left to `main`: rich would exit with a code of its own."""
        raise BrokenPipeError


@ends_quietly()
def main() -> int:
    options = _options()
    console = _Console(highlight=False)
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    try:
        return _run(options, console)
    except StackError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The stack and the services still run: `make down` ends them.", file=sys.stderr)
        return INTERRUPTED


def _run(options: argparse.Namespace, console: Console) -> int:
    if STACK_VARIABLE not in os.environ and os.environ.pop("KUBECONFIG", ""):
        _say("KUBECONFIG is left alone: the demo simulates its nodes, in a control plane of its own")
    stack = Stack(options.name, say=_say)
    if both := stack.operators & {"kuberay", "spark-operator"}:
        raise StackError(
            f"The demo plays with stand-ins, and this stack has {', '.join(sorted(both))}: both would do the same "
            "work. Give it a stack of its own: SLUICE_STACK=demo make demo"
        )
    stack.build()
    _say(f"starting the stack {stack.name!r} and Sluice's services")
    started = time.monotonic()
    stack.up()
    api = Api(stack.endpoints)
    if provide_kinds(api, _say):
        stack.services_down(["watcher"])  # one that runs already would look for new kinds only now and then
    stack.services_up()
    _say(f"everything is ready after {time.monotonic() - started:.1f} s")
    demo = Demo(api, {**os.environ, **stack.user_env()})
    try:
        set_stage(api, _say)  # while the audit starts
        demo.prepare()
        with showing(console, demo.observation, demo.account, picture_file=options.picture) as show:
            took_s = demo.run(show)
    finally:
        demo.audit.stop()
    with demo.lock:
        summary.show(console, demo.observation, demo.account, took_s=took_s)
        wrong = list(summary.problems(demo.observation, demo.account, demo.play.unseen))
    for problem in wrong:
        console.print(f"[bold red]wrong:[/bold red] {problem}")
    print(_LOOK_CLOSER)
    return 1 if wrong else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make demo", description="Three tenants share a simulated cluster.")
    parser.add_argument("--name", default=os.environ.get(STACK_VARIABLE, "default"), help="which stack")
    parser.add_argument("--picture", type=Path, metavar="FILE.svg", help="keep a picture of it")
    return parser.parse_args()


def _say(text: str) -> None:
    print(f"» {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
