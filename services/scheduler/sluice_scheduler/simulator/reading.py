"""Files → scenarios. An error names the line and the field of what is wrong."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from sluice.vocabulary import DEFAULT_CELL

from sluice_scheduler.installed import installed_policies
from sluice_scheduler.simulator.scenario import Event, Expectation, Queue, Scenario, ScenarioError, copies
from sluice_scheduler.simulator.wanted import in_words

#: The way to a part of the file: keys, and numbers in lists.
Place: TypeAlias = tuple[Any, ...]
#: So many of the names that there are, a message tells.
NAMED: Final = 10


def load(path: Path) -> Scenario:
    return parse(text_of(path), name=str(path))


def text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = 1 + error.object.count(b"\n", 0, error.start)
        raise ScenarioError(f"{path}:{line}: no UTF-8: {error.reason}") from error


def parse(text: str, *, name: str = "scenario") -> Scenario:
    root, content = read_yaml(text, name)
    if not isinstance(content, dict):
        raise ScenarioError(
            f"{name}:1: the file must be a mapping with apiVersion, kind, pools, queues, events"
        )
    return validated(content, root, name)


def read_yaml(text: str, name: str) -> tuple[yaml.Node | None, Any]:
    """What stands in a file, and where."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        content = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{mark.line + 1}:{mark.column + 1}" if mark else "1"
        raise ScenarioError(f"{name}:{where}: not valid YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ScenarioError(f"{name}:1: not valid YAML: {error}") from error
    except RecursionError as error:
        raise ScenarioError(f"{name}:1: not valid YAML: its parts stand in each other too deeply") from error
    _refuse_repeated_keys(name, root, (), set())
    return root, content


def validated(content: dict[str, Any], root: yaml.Node | None, name: str) -> Scenario:
    """`content` as a scenario; what is wrong with it is told with its line, for which `root` is asked."""
    try:
        scenario = Scenario.model_validate(content)
    except ValidationError as error:
        found = error.errors(include_url=False)
        raise ScenarioError("\n".join(_told(name, root, problem) for problem in found)) from error
    _Names(scenario, root, name)
    return scenario


def line_of(text: str, place: Place) -> int:
    """The line of the file in which something stands."""
    return _line(yaml.compose(text, Loader=yaml.SafeLoader), place)


def _refuse_repeated_keys(name: str, node: yaml.Node | None, place: Place, seen: set[int]) -> None:
    """YAML's readers take the last of two and say nothing."""
    if id(node) in seen:
        return  # an alias
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _refuse_repeated_keys(name, item, (*place, index), seen)
    elif isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            here, line = (*place, key.value), key.start_mark.line + 1
            if key.value in lines:
                message = f"stands in line {lines[key.value]} already: take one of them out"
                raise ScenarioError(f"{name}:{line}: {_field(here)}: {message}")
            lines[key.value] = line
            _refuse_repeated_keys(name, value, here, seen)


def _told(name: str, root: yaml.Node | None, problem: ErrorDetails) -> str:
    place = problem["loc"]
    return f"{name}:{_line(root, place)}: {_field(place) or 'the file'}: {in_words(problem)}"


def _field(place: Place) -> str:
    return ".".join(str(step) for step in place)


def _line(node: yaml.Node | None, place: Place) -> int:
    """The line of the deepest part of `place` that is there."""
    line = node.start_mark.line + 1 if node else 1
    for step in place:
        if isinstance(node, yaml.MappingNode):
            entry = next(((k, v) for k, v in node.value if k.value == str(step)), None)
            if entry is None:
                return line
            line, node = entry[0].start_mark.line + 1, entry[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line + 1
        else:
            return line
    return line


class _Names:
    """What is named must be there, and times must not run backwards."""

    def __init__(self, scenario: Scenario, root: yaml.Node | None, name: str) -> None:
        self._root = root
        self._name = name
        self._queues = self._unique("queues", [queue.name for queue in scenario.queues])
        self._pools = self._unique("pools", [pool.name for pool in scenario.pools])
        self._pod_sets: dict[str, set[str]] = {}  # by workload
        self._specs = {queue.name: queue for queue in scenario.queues}
        self._policies = installed_policies()
        self._must_be("policy", scenario.policy, self._policies, ("policy",))
        for index, queue in enumerate(scenario.queues):
            self._check_names_in(queue, ("queues", index))
        before = 0
        for index, event in enumerate(scenario.events):
            if event.at < before:
                self._fail(("events", index, "at"), "events stand in order of time")
            before = event.at
            self._check(event, ("events", index))
        for index, expectation in enumerate(scenario.expect):
            self._check_expectation(expectation, ("expect", index))

    def _check(self, event: Event, place: Place) -> None:
        if event.submit:
            self._must_be("queue", event.submit.queue, self._queues, (*place, "submit", "queue"))
            for name in copies(event.submit):
                if name in self._pod_sets:
                    self._fail((*place, "submit", "name"), f"there is a workload {name} already")
                self._pod_sets[name] = {each.name for each in event.submit.pod_sets}
        for kind in ("grow", "shrink", "succeed", "fail", "cancel"):
            action = getattr(event, kind)
            if action is not None:
                self._must_be("workload", action.workload, self._pod_sets, (*place, kind, "workload"))
                pod_sets = self._pod_sets[action.workload]
                self._must_be("pod set", getattr(action, "pod_set", None), pod_sets, (*place, kind, "podSet"))
        if event.set_queue is not None:
            self._check_queue_change(event.set_queue, (*place, "setQueue"))
        if event.set_pool is not None:
            self._must_be("pool", event.set_pool.name, self._pools, (*place, "setPool", "name"))

    def _check_queue_change(self, change: dict[str, Any], place: Place) -> None:
        self._must_be("queue", change["name"], self._queues, (*place, "name"))
        before = self._specs[change["name"]].model_dump(by_alias=True)
        try:
            after = Queue.model_validate({**before, **change})
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            self._fail((*place, *problem["loc"]), in_words(problem))
        self._specs[after.name] = after
        self._check_names_in(after, place)

    def _check_names_in(self, queue: Queue, place: Place) -> None:
        self._must_be("policy", queue.policy, self._policies, (*place, "policy"))
        self._must_be("cell", queue.cell, [DEFAULT_CELL], (*place, "cell"))
        self._must_be("queue", queue.parent, self._queues, (*place, "parent"))
        passed, above = {queue.name}, queue.parent
        while above is not None:
            if above in passed:
                self._fail(
                    (*place, "parent"), f"{queue.name} stands below itself: name a parent that does not"
                )
            passed.add(above)
            above = self._specs[above].parent if above in self._specs else None

    def _check_expectation(self, expectation: Expectation, place: Place) -> None:
        for field in ("admitted", "pending"):
            for workload, counts in getattr(expectation, field).items():
                self._must_be("workload", workload, self._pod_sets, (*place, field, workload))
                for pod_set in counts:
                    where = (*place, field, workload, pod_set)
                    self._must_be("pod set", pod_set, self._pod_sets[workload], where)
        for field in ("shares", "usage"):
            for queue in getattr(expectation, field):
                self._must_be("queue", queue, self._queues, (*place, field, queue))

    def _unique(self, what: str, names: list[str]) -> set[str]:
        for index, name in enumerate(names):
            if name in names[:index]:
                self._fail((what, index, "name"), f"{name} is named twice")
        return set(names)

    def _must_be(self, what: str, name: str | None, known: Collection[str], place: Place) -> None:
        if name is not None and name not in known:
            there = sorted(known)
            some = ", ".join(there[:NAMED]) + (", …" if len(there) > NAMED else "")
            self._fail(place, f"there is no {what} {name} at this point: there are {some or 'none'}")

    def _fail(self, place: Place, message: str) -> NoReturn:
        raise ScenarioError(f"{self._name}:{_line(self._root, place)}: {_field(place)}: {message}")
