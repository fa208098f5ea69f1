"""Who is to blame for an exception: what the functions that it passed through were called with.

An exception carries the frames that were at work. From the innermost on, each is asked for its parameters: a pod,
an application, a claim or a unit is what was worked on. So nothing has to be noted while all goes well, and
nobody is blamed for what was worked on before. Where no frame knows an account, it is a queue, a pool, a node
or a namespace; and where none knows that either, the record or the pass behind it.

What raises while it is told of is blamed for its status alone: that is no reason to stop it.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import CO_VARARGS
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final, NamedTuple

from sluice.events import ObjectEvent

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim
from sluice_scheduler.core.fairness.tree import QueueNode
from sluice_scheduler.core.state.application import Application
from sluice_scheduler.core.state.members import application_key, part_of_application
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.state.units import Unit
from sluice_scheduler.core.stored.accounts import Pod, Workload
from sluice_scheduler.core.stored.entities import (
    STATUS,
    Namespace,
    Node,
    Pool,
    PriorityClass,
    Promise,
    Queue,
    TrackedObject,
    Turn,
)

_CORE: Final = Path(__file__).parent / "core"
_STEP: Final = str(_CORE / "step.py")
_REPORTS: Final = str(_CORE / "reports")
_SCHEDULE: Final = str(_CORE / "passes" / "schedule.py")
#: Keys of accounts and claims begin with these.
_KEYS: Final = (f"{Pod.kind}/", f"{Workload.kind}/", "group/", "replica/")
_RULES: Final = (Queue, Pool, Node, Namespace, PriorityClass)


class Blame(NamedTuple):
    """Who is suspected, first of all the first; and whether it was in the pass behind the record."""

    suspects: tuple[str, ...]
    in_pass: bool


def blame(state: State, error: BaseException) -> Blame:
    frames = list(_frames(error.__traceback__))
    files = {frame.f_code.co_filename for frame in frames}
    in_pass = any(frame.f_code.co_filename == _SCHEDULE and _name(frame) == "schedule" for frame in frames)
    frames.reverse()
    if any(file.startswith(_REPORTS) for file in files):
        told = [key for frame in frames for key in _told_of(state, frame)]
        return Blame((*(STATUS + key for key in dict.fromkeys(told)), STATUS), in_pass)
    accounts = [key for frame in frames for key in accounts_in(state, frame)]
    whole = [app for key in accounts if (app := part_of_application(state, key))]
    rules = [key for frame in frames for key in _rules_in(state, frame)]
    return Blame(tuple(dict.fromkeys([*accounts, *whole, *rules])), in_pass)


def _frames(traceback: TracebackType | None) -> Iterator[FrameType]:
    """Policies' are among them, and the step itself is not: a pass is not about the record that it follows."""
    if traceback is not None:
        traceback = traceback.tb_next  # the first frame is the one that caught the exception
    while traceback is not None:
        frame, traceback = traceback.tb_frame, traceback.tb_next
        if not (frame.f_code.co_filename == _STEP and _name(frame) == "step"):
            yield frame


def _name(frame: FrameType) -> str:
    return frame.f_code.co_name


def _parameters(frame: FrameType) -> Iterator[object]:
    code, values = frame.f_code, frame.f_locals
    named = code.co_argcount + code.co_kwonlyargcount
    for name in code.co_varnames[:named]:
        if name in values:
            yield values[name]
    if code.co_flags & CO_VARARGS:
        yield from values.get(code.co_varnames[named], ())


def accounts_in(state: State, frame: FrameType) -> list[str]:
    """The accounts that a function was called with, a part before its whole."""
    found = [each for value in _parameters(frame) if (each := _account(state, value)) is not None]
    return [key for _, key in sorted(found, key=lambda each: each[0])]


def _account(state: State, value: object) -> tuple[int, str] | None:
    """How large it is, and its key; None for what is neither an account nor a claim of one, or half made."""
    try:
        return _size_and_key(state, value)
    except AttributeError:
        return None


def _size_and_key(state: State, value: object) -> tuple[int, str] | None:
    if isinstance(value, Pod):
        return 0, value.key
    if isinstance(value, Workload | Application):
        return 2, value.key if isinstance(value, Workload) else value.claim_key
    if isinstance(value, ObjectEvent) and value.type in (Pod.kind, Workload.kind):
        return 3, f"{value.type}/{value.cluster}/{value.uid}"
    claim = _claim(value)
    return (1, application_key(state, claim)) if claim.startswith(_KEYS) else None


def _claim(value: object) -> str:
    """The key of a claim, or of what can be taken back; empty if it is neither."""
    if isinstance(value, Claim):
        return value.key
    if isinstance(value, Promise | Turn):
        return value.claim
    if isinstance(value, Unit):
        single = value.growth and len(value.pods) == 1
        return value.pods[0].key if single or value.application is None else value.application.claim_key
    return value if isinstance(value, str) else ""


def _rules_in(state: State, frame: FrameType) -> Iterator[str]:
    for value in _parameters(frame):
        try:
            yield from _rule(state, value)
        except AttributeError:
            continue  # half made


def _rule(state: State, value: object) -> list[str]:
    if isinstance(value, _RULES) and isinstance(value, TrackedObject):
        return [value.key]
    if isinstance(value, QueueNode | Branch) and value.name:
        return [q.key for q in state.queues if (q.name, q.cluster) == (value.name, state.home)]
    if isinstance(value, ObjectEvent) and value.type not in (Pod.kind, Workload.kind):
        return [f"{value.type}/{value.cluster}/{value.uid}"]
    return []


def _told_of(state: State, frame: FrameType) -> Iterator[str]:
    """Whose status it was."""
    for value in _parameters(frame):
        if isinstance(value, Workload):
            yield value.key
        elif isinstance(value, Application) and value.workload is not None:
            yield value.workload.key
    yield from _rules_in(state, frame)
