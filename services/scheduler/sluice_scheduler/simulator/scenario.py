"""The format of a scenario file: a contract, whose JSON Schema stands with the others in docs/contracts."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from sluice.crds import AccessList, NamespaceBinding, QueueSpec, Reclaim, Reservation
from sluice.crds.values import Requests

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
Nodes = Annotated[int, Field(ge=0, le=100_000)]
Priority = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]


class Part(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        use_attribute_docstrings=True,
        allow_inf_nan=False,
    )


class Pool(Part):
    name: Name
    nodes: Nodes = 1
    capacity: Amounts = {}
    """What each of its nodes offers."""
    supply: str = ""
    """Pools that name the same supply are one for shares."""


class PoolChange(Part):
    name: Name
    nodes: Nodes | None = None
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
    "reservation": Reservation,
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
    priority: Priority = 0
    pod_sets: Annotated[list[PodSet], Field(min_length=1)]
    runtime: Time | None = None
    """Each pod succeeds this long after its admission."""
    ends_in: Time = 0
    """Each pod says that it ends so long after its start at the latest (activeDeadlineSeconds)."""
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
        if self.set_queue is not None and not isinstance(self.set_queue.get("name"), str):
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
    tenure: Time = Field(default="1h", validate_default=True)
    """So long a unit may stand above what its queue deserves."""
    patience: Time = Field(default="5m", validate_default=True)
    """After so long what becomes free is kept for whose turn it is."""
    reclaim_after: Time = Field(default="0s", validate_default=True)
    """A claim pushes nobody out before it has waited so long."""
    pools: Annotated[list[Pool], Field(min_length=1)]
    queues: Annotated[list[Queue], Field(min_length=1)]
    events: list[Event] = []
    until: Time | None = None
    """When it ends; absent: when nothing happens any more."""
    expect: list[Expectation] = []


def copies(submit: Submit) -> list[str]:
    return [submit.name] if submit.repeat == 1 else [f"{submit.name}-{i}" for i in range(submit.repeat)]
