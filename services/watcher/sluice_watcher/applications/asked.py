"""What an application asks for, whatever its family."""

from __future__ import annotations

from dataclasses import dataclass

from sluice.crds.workloads import POD_COUNT_MAX
from sluice.events import Gang, JobFacts
from sluice.vocabulary import (
    GANG_DEADLINE_ANNOTATION,
    GANG_ON_DEADLINE_ANNOTATION,
    MIN_COUNT_ANNOTATION,
)

from sluice_watcher.applications.fields import ApplicationError, Fields, count_of
from sluice_watcher.applications.templates import Template


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Pods of one application that are alike."""

    name: str
    template: Template
    count: int
    min_count: int
    max_count: int | None = None  # None: no bound of its own
    completions: int | None = None
    succeeded: int = 0
    replica_size: int = 1  # pods


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    parts: tuple[Part, ...]
    suspended: bool
    finished: bool
    failed: bool = False
    priority: int = 0
    priority_class: str = ""  # empty: that of the first part whose template names one
    suspendable: bool = True  # else its pods' gates hold it back
    released: bool | None = None  # where neither a field nor an annotation says so
    decision: str = ""  # the same
    gang: Gang | None = None  # where it is no annotation
    job: JobFacts | None = None
    replaces_failed: bool = False  # a pod that fails is replaced in its place


def one(name: str, template: Template) -> Part:
    """A pod without which the others are of no use: a driver, a head."""
    return Part(name=name, template=template, count=1, min_count=1, max_count=1)


def bounded(count: int) -> int | None:
    """Operators write the largest int32 where they mean none."""
    return None if count == POD_COUNT_MAX else count


def min_count(application: Fields, *, count: int, default: int) -> int:
    """How many must start together, where the application's author has said so."""
    annotations = application.at("metadata", "annotations")
    text = annotations.text(MIN_COUNT_ANNOTATION)
    if not text:
        return min(default, count)
    return min(count_of(text, annotations.path_of(MIN_COUNT_ANNOTATION)), count)


def gang(annotations: Fields) -> Gang | None:
    """By when a minimum that was admitted must run, where its author has said so."""
    text = annotations.text(GANG_DEADLINE_ANNOTATION)
    if not text:
        return None
    seconds = count_of(text, annotations.path_of(GANG_DEADLINE_ANNOTATION))
    otherwise = annotations.text(GANG_ON_DEADLINE_ANNOTATION) or "hard"
    if otherwise not in ("hard", "soft"):
        raise ApplicationError(
            annotations.path_of(GANG_ON_DEADLINE_ANNOTATION), f"{otherwise!r} is neither: write hard or soft"
        )
    return Gang(deadline_ms=seconds * 1000, hard=otherwise == "hard")


def has_condition(application: Fields, *types: str) -> bool:
    """Whether one of these conditions is true."""
    return any(
        condition.text("type") in types and condition.text("status") == "True"
        for condition in application.at("status").each("conditions")
    )
