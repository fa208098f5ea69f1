"""The format of a scenario file: a contract, whose JSON Schema stands with the others in docs/contracts."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NoReturn, Self, TypeAlias

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from sluice.crds import AccessList, NamespaceBinding, QueueSpec, Reclaim
from sluice.crds.values import Requests

from sluice_scheduler.installed import installed_policies

#: The way to a part of the file: keys, and numbers in lists.
Place: TypeAlias = tuple[Any, ...]
#: So many of the names that there are, a message tells.
NAMED: Final = 10
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class ScenarioError(ValueError):
    """Says in which line and field a file is wrong."""


def duration_ms(text: object) -> int:
    """`1.5s`, `100ms`, `1h30m`; a bare number is seconds."""
    if isinstance(text, int | float) and not isinstance(text, bool) and math.isfinite(text) and text >= 0:
        return round(text * 1000)
    if isinstance(text, str):
        parts = _DURATION.findall(text)
        if parts and "".join(number + unit for number, unit in parts) == text:
            return round(sum(float(number) * _UNITS_MS[unit] for number, unit in parts))
    raise ValueError(f"{text!r} is not a time: write for example 10s, 1.5s, 100ms, 5m or 1h30m")


def _amounts_as_text(value: object) -> object:
    """YAML reads `cpu: 0.5` as a number, which means what "0.5" means."""
    if isinstance(value, dict):
        return {key: repr(v) if isinstance(v, float) else v for key, v in value.items()}
    return value


Time = Annotated[int, BeforeValidator(duration_ms, json_schema_input_type=str | float)]
Amounts = Annotated[Requests, BeforeValidator(_amounts_as_text)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Positive = Annotated[int, Field(ge=1, le=1_000_000)]


class Part(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", use_attribute_docstrings=True
    )


class Pool(Part):
    name: Name
    nodes: Annotated[int, Field(ge=0)] = 1
    capacity: Amounts = {}
    """What each of its nodes offers."""


class PoolChange(Part):
    name: Name
    nodes: Annotated[int, Field(ge=0)] | None = None
    capacity: Amounts | None = None


class Queue(QueueSpec):
    """A Queue's spec, with its name."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", json_schema_extra=None
    )

    name: Name

    @model_validator(mode="before")
    @classmethod
    def _knows_every_field(cls, content: object) -> object:
        """The API server drops what a CRD doesn't know; whoever writes a scenario wants to be told."""
        for name, part in _QUEUE_PARTS.items():
            written = content.get(name) if isinstance(content, dict) else None
            known = {to_camel(field) for field in part.model_fields} | set(part.model_fields)
            unknown = sorted(set(written) - known) if isinstance(written, dict) else []
            if unknown:
                fields = ", ".join(to_camel(field) for field in part.model_fields)
                raise ValueError(f"{name} has no field {unknown[0]!r}: there are {fields}")
        return content


_QUEUE_PARTS: Final[dict[str, type[BaseModel]]] = {
    "reclaim": Reclaim,
    "namespaces": NamespaceBinding,
    "acl": AccessList,
}


class PodSet(Part):
    name: Name
    count: Annotated[int, Field(ge=0, le=1_000_000)]
    min_count: Annotated[int, Field(ge=0)] | None = None
    """So many are admitted together or not at all; `count` if absent."""
    requests: Amounts = {}
    node_selector: dict[str, str] = {}
    """`pool: NAME` keeps it to one pool."""

    @model_validator(mode="after")
    def _minimum_is_within_count(self) -> Self:
        if self.min_count is not None and self.min_count > self.count:
            raise ValueError("minCount must not exceed count")
        return self


class Submit(Part):
    name: Name
    queue: Name
    priority: int = 0
    pod_sets: Annotated[list[PodSet], Field(min_length=1)]
    runtime: Time | None = None
    """Each pod succeeds this long after its admission."""
    repeat: Positive = 1
    """So many copies, named NAME-0, NAME-1, …, spaced by `every`."""
    every: Time = 0

    @model_validator(mode="after")
    def _pod_sets_have_names_of_their_own(self) -> Self:
        names = [each.name for each in self.pod_sets]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two pod sets are called {twice}: rename one")
        return self


class Resize(Part):
    workload: Name
    pod_set: Name
    by: Positive = 1


class Ending(Part):
    workload: Name
    pod_set: Name
    count: Positive = 1


class Cancel(Part):
    workload: Name


class Event(Part):
    """Something that happens; exactly one of the fields beside `at`."""

    at: Time
    submit: Submit | None = None
    grow: Resize | None = None
    shrink: Resize | None = None
    succeed: Ending | None = None
    fail: Ending | None = None
    cancel: Cancel | None = None
    set_queue: Annotated[dict[str, Any], Field(description="name, and any field of a Queue")] | None = None
    set_pool: PoolChange | None = None

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        given = [name for name in type(self).model_fields if name != "at" and getattr(self, name) is not None]
        if len(given) != 1:
            known = ", ".join(to_camel(name) for name in type(self).model_fields if name != "at")
            raise ValueError(f"an event is exactly one of {known}")
        if self.set_queue is not None and "name" not in self.set_queue:
            raise ValueError("setQueue needs the name of a queue")
        return self


class Expectation(Part):
    """What must hold at a time, once its pass is over. What is not named is not compared."""

    at: Time
    admitted: dict[str, dict[str, int]] = {}
    pending: dict[str, dict[str, int]] = {}
    shares: dict[str, float] = {}
    usage: dict[str, dict[str, float]] = {}
    reclaims: int | None = None


class Scenario(Part):
    """A course of events for the scheduler, and what must come of it."""

    api_version: Literal["sluice.dev/v1alpha1"]
    kind: Literal["Scenario"]
    policy: str = "drf"
    half_life: Time = Field(default="1h", gt=0, validate_default=True)
    """Under policies that look back, after so long a use counts half."""
    pools: Annotated[list[Pool], Field(min_length=1)]
    queues: Annotated[list[Queue], Field(min_length=1)]
    events: list[Event] = []
    until: Time | None = None
    """When it ends; absent: when nothing happens any more."""
    expect: list[Expectation] = []


def load(path: Path) -> Scenario:
    try:
        return parse(path.read_text(), name=str(path))
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from error


def parse(text: str, *, name: str = "scenario") -> Scenario:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        content = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ScenarioError(f"{name}:{line}: no YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ScenarioError(f"{name}:1: no YAML: {error}") from error
    _refuse_repeated_keys(name, root, (), set())
    if root is None or not isinstance(content, dict):
        raise ScenarioError(
            f"{name}:1: the file must be a mapping with apiVersion, kind, pools, queues, events"
        )
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


def _told(name: str, root: yaml.Node, problem: Any) -> str:
    place = tuple(problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    return f"{name}:{_line(root, place)}: {_field(place) or 'the file'}: {message}"


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

    def __init__(self, scenario: Scenario, root: yaml.Node, name: str) -> None:
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
            self._fail((*place, *problem["loc"]), problem["msg"].removeprefix("Value error, "))
        self._specs[after.name] = after
        self._check_names_in(after, place)

    def _check_names_in(self, queue: Queue, place: Place) -> None:
        self._must_be("policy", queue.policy, self._policies, (*place, "policy"))
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


def copies(submit: Submit) -> list[str]:
    return [submit.name] if submit.repeat == 1 else [f"{submit.name}-{i}" for i in range(submit.repeat)]
