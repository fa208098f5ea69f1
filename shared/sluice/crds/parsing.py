"""Reading stored objects: the server's schema may have been another when they were written."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sluice.crds.tenancy import QueueSpec, ResourcePoolSpec
from sluice.crds.workloads import DynamicWorkloadSpec, QueueJobSpec

_Spec = TypeVar("_Spec", bound=BaseModel)


class CrdError(ValueError):
    """An object does not follow its schema; the message names the object, the field and the remedy."""


def parse_queue(obj: Mapping[str, Any]) -> QueueSpec:
    """The spec of a Queue, or a CrdError."""
    spec = _parse("Queue", QueueSpec, obj)
    if spec.parent is not None and spec.parent == _name(obj):
        raise CrdError(
            f"Queue {_name(obj)}: spec.parent: a queue cannot be its own parent: name the queue above"
        )
    return spec


def parse_resource_pool(obj: Mapping[str, Any]) -> ResourcePoolSpec:
    """The spec of a ResourcePool, or a CrdError."""
    return _parse("ResourcePool", ResourcePoolSpec, obj)


def parse_dynamic_workload(obj: Mapping[str, Any]) -> DynamicWorkloadSpec:
    """The spec of a DynamicWorkload, or a CrdError."""
    return _parse("DynamicWorkload", DynamicWorkloadSpec, obj)


def parse_queue_job(obj: Mapping[str, Any]) -> QueueJobSpec:
    """The spec of a QueueJob, or a CrdError."""
    return _parse("QueueJob", QueueJobSpec, obj)


def _parse(kind: str, model: type[_Spec], obj: Mapping[str, Any]) -> _Spec:
    try:
        return model.model_validate(obj.get("spec", {}))
    except ValidationError as error:
        problems = "; ".join(_sentence(problem) for problem in error.errors())
        raise CrdError(f"{kind} {_name(obj)}: {problems}") from error


def _name(obj: Mapping[str, Any]) -> str:
    metadata = obj.get("metadata", {})
    namespace, name = metadata.get("namespace"), metadata.get("name", "(unnamed)")
    return f"{namespace}/{name}" if namespace else str(name)


def _sentence(problem: ErrorDetails) -> str:
    path = "spec" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in problem["loc"])
    if problem["type"] == "value_error":  # one of ours, which says what it found
        return f"{path}: {problem['msg'].removeprefix('Value error, ')}"
    found = problem["input"] if isinstance(problem["input"], str | int | float | None) else "something else"
    return f"{path}: {problem['msg']} (found {found!r})"
