"""The command `sluice-local`."""

import argparse
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from sluice.programs import become, ends_quietly

from sluice_local import doctor
from sluice_local.errors import StackError
from sluice_local.images import IMAGES
from sluice_local.kubernetes import NODE_NAME
from sluice_local.operators import OPERATORS
from sluice_local.services import SERVICES
from sluice_local.stack import OPTIONAL, PARTS, STACK_VARIABLE, Stack, Status

_Command = Callable[[Stack, argparse.Namespace], int | None]
_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


@ends_quietly()
def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    command: _Command = options.command
    try:
        stack = Stack(options.name, without=getattr(options, "without", ()), say=_say)
        return command(stack, options) or 0
    except StackError as error:
        print(f"sluice-local: {error}", file=sys.stderr)
        return 1


def _say(text: str) -> None:
    """Progress goes beside the output, so that the output can be used by other commands."""
    print(text, file=sys.stderr, flush=True)


def _build(stack: Stack, options: argparse.Namespace) -> None:
    stack.build(options.operators)


def _up(stack: Stack, options: argparse.Namespace) -> None:
    started = time.monotonic()
    stack.up(options.only, services=options.services, operators=options.operators)
    _say(f"stack {stack.name!r} is up after {time.monotonic() - started:.1f} s")


def _services_up(stack: Stack, options: argparse.Namespace) -> None:
    stack.services_up(options.service or SERVICES)


def _services_down(stack: Stack, options: argparse.Namespace) -> None:
    stack.services_down(options.service or SERVICES)


def _services_restart(stack: Stack, options: argparse.Namespace) -> None:
    _services_down(stack, options)
    _services_up(stack, options)


def _down(stack: Stack, options: argparse.Namespace) -> None:
    stack.down(purge=options.purge)


def _status(stack: Stack, _: argparse.Namespace) -> None:
    _print(stack.status())


def _print(components: Iterable[Status]) -> None:
    print(f"{'COMPONENT':<25}{'PID':>8}  {'ADDRESS':<18}{'READY':<7}{'MEMORY':>8}")
    for status in components:
        ready = "yes" if status.ready else "no" if status.pid else "ended"
        memory = f"{status.memory_bytes / 2**20:.0f} MiB" if status.pid else "-"
        print(f"{status.name:<25}{status.pid or '-':>8}  {status.address:<18}{ready:<7}{memory:>8}")


def _logs(stack: Stack, options: argparse.Namespace) -> None:
    files = stack.logs(options.component)
    if not files:
        raise StackError(f"Stack {stack.name} has no logs: it was never up.")
    follow = ["--follow=name"] if options.follow else []
    become("tail", ["--lines=100", *follow, *map(str, files)])


def _env(stack: Stack, _: argparse.Namespace) -> None:
    for name, value in stack.user_env().items():
        print(f"export {name}={shlex.quote(value)}")


def _node_up(stack: Stack, options: argparse.Namespace) -> None:
    started = time.monotonic()
    stack.node_up(agreed=options.yes)
    _say(f"node {NODE_NAME!r} and its ResourcePool are up after {time.monotonic() - started:.1f} s")


def _node_down(stack: Stack, _: argparse.Namespace) -> None:
    stack.node_down()


def _node_status(stack: Stack, _: argparse.Namespace) -> None:
    _print(stack.node_status())


def _image(stack: Stack, options: argparse.Namespace) -> None:
    for wanted in options.image:
        _say(f"{wanted} is {stack.image(wanted)}")


def _doctor(_: Stack, __: argparse.Namespace) -> int:
    checks = doctor.examine()
    for check in checks:
        print(f"{'ok' if check.is_fine else 'MISSING':<9}{check.name:<14}{check.finding}")
    return 0 if all(check.is_fine for check in checks) else 1


def _parser() -> argparse.ArgumentParser:
    stack = argparse.ArgumentParser(add_help=False)
    default_name = os.environ.get(STACK_VARIABLE, "default")
    stack.add_argument("--name", default=default_name, help="which stack (default: %(default)s)")

    parser = argparse.ArgumentParser(
        prog="sluice-local",
        description="A real Kafka, Redis and Kubernetes control plane on this machine, without containers.",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, command: _Command, summary: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=summary, description=summary, parents=[stack])
        added.set_defaults(command=command)
        return added

    build = add("build", _build, "build what is missing: minutes the first time, nothing later")
    up = add("up", _up, "start what does not run yet, and wait until it is ready")
    up.add_argument("--only", type=_names, default=PARTS, metavar="PARTS", help=",".join(PARTS))
    up.add_argument("--without", type=_names, default=(), metavar="NAMES", help=",".join(OPTIONAL))
    up.add_argument("--services", action="store_true", help="start Sluice's services too")
    known = ",".join(OPERATORS)
    for each, what in ((build, "build these too"), (up, "operators that belong to the stack from then on")):
        each.add_argument(
            "--with", dest="operators", type=_names, default=(), metavar="NAMES", help=f"{what}: {known}"
        )
    down = add("down", _down, "end everything that runs; data, ports and credentials stay")
    down.add_argument("--purge", action="store_true", help="forget data, ports and credentials too")
    add("status", _status, "what runs where, and whether it is ready")
    logs = add("logs", _logs, "the ends of the logs")
    logs.add_argument("component", nargs="?")
    logs.add_argument("-f", "--follow", action="store_true")
    add("env", _env, 'shell exports that make clients talk to the stack: eval "$(sluice-local env)"')
    add("doctor", _doctor, "what this machine lacks, and how to get it")
    image = add("image", _image, "make images for the real node")
    image.add_argument("image", nargs="+", help=f"{', '.join(IMAGES)}, or a folder with a Dockerfile")
    _add_node(commands, stack)
    _add_services(commands, stack)
    return parser


def _add_node(commands: _Commands, stack: argparse.ArgumentParser) -> None:
    node = commands.add_parser("node", help="a real node beside the simulated ones: Linux and root")
    actions = node.add_subparsers(metavar="ACTION", required=True)
    for name, command, summary in (
        ("up", _node_up, "install what it needs, start it, and wait until it takes pods"),
        ("down", _node_down, "end it with its pods, and leave nothing of it on the machine"),
        ("status", _node_status, "what of it runs"),
    ):
        action = actions.add_parser(name, help=summary, description=summary, parents=[stack])
        action.set_defaults(command=command)
        if name == "up":
            action.add_argument("--yes", action="store_true", help="install packages without asking")


def _add_services(commands: _Commands, stack: argparse.ArgumentParser) -> None:
    services = commands.add_parser("services", help="start and end Sluice's own services")
    actions = services.add_subparsers(metavar="ACTION", required=True)
    for name, command in (("up", _services_up), ("down", _services_down), ("restart", _services_restart)):
        action = actions.add_parser(name, parents=[stack])
        action.add_argument("service", nargs="*", metavar="SERVICE", help=", ".join(SERVICES))
        action.set_defaults(command=command)


def _names(text: str) -> list[str]:
    return text.split(",")
