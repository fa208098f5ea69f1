"""DynamicWorkload and QueueJob: what is admitted as one application."""

# ruff: noqa: RUF012  (pydantic copies mutable defaults)

from typing import Annotated, Any, Final, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from sluice.crds.values import (
    LABEL_VALUE_PATTERN,
    Count,
    Model,
    Name,
    Requests,
    Rule,
    Seconds,
    Status,
    keyed_by,
    rules,
)

POD_SETS_MAX: Final = 64
POD_SET_NAME_LENGTH_MAX: Final = 63
#: Operators count in int32.
POD_COUNT_MAX: Final = 2**31 - 1
PodCount = Annotated[int, Field(ge=0, le=POD_COUNT_MAX)]


class ApplicationReference(Model):
    """The object that a workload stands for, in the workload's namespace."""

    api_version: Name
    """Its group and version, such as batch/v1."""
    kind: Name
    """Its kind, such as Job."""
    name: Name
    """Its name."""
    uid: Name | None = None
    """Its uid, so that a later object of the same name is not mistaken for it."""


class PodSet(Model):
    """Pods of one application that are alike."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                rule="!has(self.minCount) || self.minCount <= self.count",
                message="minCount must not exceed count",
            ),
            Rule(
                rule="!has(self.maxCount) || self.count <= self.maxCount",
                message="count must not exceed maxCount",
            ),
        )
    )

    name: Annotated[str, Field(max_length=POD_SET_NAME_LENGTH_MAX, pattern=LABEL_VALUE_PATTERN)]
    """Its name in the workload, such as driver or executor."""
    count: PodCount
    """How many the application asks for now."""
    min_count: PodCount | None = None
    """How many it needs to make sense, admitted together with the other pod sets' minima; `count` if
    absent."""
    max_count: PodCount | None = None
    """How many it may grow to; absent: no bound of its own."""
    requests: Requests = {}
    """What one pod asks for, overhead included."""

    @model_validator(mode="after")
    def _counts_are_in_order(self) -> Self:
        if self.min_count is not None and self.min_count > self.count:
            raise ValueError("minCount must not exceed count")
        if self.max_count is not None and self.count > self.max_count:
            raise ValueError("count must not exceed maxCount")
        return self


class Gang(Model):
    """What becomes of an application whose minimum was admitted but does not come up."""

    deadline_seconds: Seconds = 0
    """How long after admission every pod of the minimum must run; 0: no deadline."""
    on_deadline: Literal["hard", "soft"] = "hard"
    """hard: it is put back into its queue; soft: it goes on with what runs."""


class DynamicWorkloadSpec(Model):
    """One application and all it may hold."""

    application: ApplicationReference
    """The application object."""
    application_spec: Annotated[
        dict[str, Any], Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})
    ] = {}
    """A copy of those fields of the application's spec that decide how much it asks for, as they were when it
    was first seen; empty where they take more than 4 KiB."""
    pod_sets: Annotated[
        list[PodSet],
        Field(
            max_length=POD_SETS_MAX,
            json_schema_extra=keyed_by("name"),
        ),
    ] = []
    """Its pods, alike ones together."""
    priority_class_name: str | None = None
    """The PriorityClass whose value orders it inside its queue, and breaks ties between queues. Without one
    that exists, it has priority 0."""
    priority: Annotated[int, Field(ge=-(2**31), le=2**31 - 1)] = 0
    """The value of its PriorityClass, as Sluice shows it when it makes this object. A number that is written
    here by hand counts for nothing."""
    gang: Gang = Gang()
    """What happens to a partly started minimum."""


class PodSetStatus(Model):
    """How far one pod set is."""

    name: str
    """The pod set."""
    desired: int = 0
    """Pods that the application asks for."""
    admitted: int = 0
    """Pods that were granted: those whose gate is open and that are not finished, and those that room is kept
    for until they come."""
    running: int = 0
    """Pods that run."""
    reclaimed: int = 0
    """Pods that were taken back."""


class PodSetCount(Model):
    """A number of pods of one pod set."""

    name: str
    """The pod set."""
    count: int
    """How many."""


class DynamicWorkloadStatus(Status):
    """Where the application stands."""

    phase: Literal["Pending", "Running", "Growing", "Reclaiming", "Finished", "Failed"] | None = None
    """Pending: in its queue. Running: all that it asks for was granted. Growing: less was granted than it asks
    for, and the rest waits, or was not created yet. Reclaiming: pods are being taken back. Finished or
    Failed: it holds nothing."""
    pod_sets: Annotated[
        list[PodSetStatus],
        Field(json_schema_extra=keyed_by("name")),
    ] = []
    """What was granted, by pod set."""
    reclaimed_pod_set_pods: Annotated[
        list[PodSetCount],
        Field(json_schema_extra=keyed_by("name")),
    ] = []
    """Pods that have succeeded and will not be replaced, whose share is given back. Never falls while
    admitted."""
    queue_position: int | None = None
    """Where it, or the next of its pods, stood in its queue when this status was written, from 1. Its moving
    up is no reason to write another: `sluice explain` has the current one."""
    eta: Annotated[str | None, Field(json_schema_extra={"format": "date-time"})] = None
    """When it was then expected to be served, by how fast its queue's pods end; absent: nothing to go by."""
    reason: str | None = None
    """Why it waits or was taken back, in a sentence."""


class QueueJobSpec(Model):
    """A batch job whose pods Sluice itself creates."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                rule="!has(self.minAvailable) || self.minAvailable <= self.replicas",
                message="minAvailable must not exceed replicas",
            ),
        )
    )

    template: Annotated[
        dict[str, Any], Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})
    ]
    """The pods: a PodTemplateSpec."""
    replicas: Count = 1
    """How many pods run at a time."""
    min_available: Count | None = None
    """How many must be admitted together for the job to start; `replicas` if absent."""
    completions: Count | None = None
    """How many pods must succeed; `replicas` if absent."""
    restart_limit: Count | None = None
    """How often one pod may be replaced after it failed; absent: as long as backoffLimit allows."""
    backoff_limit: Count = 6
    """How many failures in all fail the job."""
    backoff_seconds: Seconds = 10
    """How long after a failure its pod is replaced; doubles with each failure in a row."""

    @model_validator(mode="after")
    def _minimum_is_within_replicas(self) -> Self:
        if self.min_available is not None and self.min_available > self.replicas:
            raise ValueError("minAvailable must not exceed replicas")
        return self


class QueueJobStatus(Status):
    """How far the job is."""

    phase: Literal["Pending", "Running", "Growing", "Reclaiming", "Finished", "Failed"] | None = None
    """As of its DynamicWorkload."""
    active: int = 0
    """Pods created and not finished."""
    running: int = 0
    """Pods that run."""
    succeeded: int = 0
    """Pods that succeeded."""
    failed: int = 0
    """Pods that failed."""
    start_time: Annotated[str | None, Field(json_schema_extra={"format": "date-time"})] = None
    """When its first pod was admitted."""
    completion_time: Annotated[str | None, Field(json_schema_extra={"format": "date-time"})] = None
    """When it finished."""


class DynamicWorkload(Model):
    """One application and all it may hold: admitted as a whole, growing and shrinking afterwards."""

    spec: DynamicWorkloadSpec
    status: DynamicWorkloadStatus | None = None


class QueueJob(Model):
    """A batch job whose pods Sluice itself creates, as one more client of the same queues."""

    spec: QueueJobSpec
    status: QueueJobStatus | None = None
