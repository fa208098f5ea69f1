"""The custom resources of `sluice.dev/v1alpha1`: what people write, what Sluice answers in `status`.

The CRD YAML in `deploy/crds` is generated from these models, so docstrings
are what `kubectl explain` shows, and the CEL rules stand beside the validators in Python that say the same:
the API server refuses a wrong object when it is written, `parse_queue` and its siblings one that was stored
under an older schema. What needs a look at other objects (missing parents, cycles, guarantees that exceed
the parent's) is the scheduler's to judge, and becomes a condition.
"""

from sluice.crds.parsing import (
    CrdError,
    parse_dynamic_workload,
    parse_queue,
    parse_queue_job,
    parse_resource_pool,
)
from sluice.crds.tenancy import (
    AccessList,
    Bounds,
    NamespaceBinding,
    Queue,
    QueueSpec,
    QueueStatus,
    Reclaim,
    Reservation,
    ResourcePool,
    ResourcePoolSpec,
    ResourcePoolStatus,
)
from sluice.crds.values import Condition, LabelRequirement, LabelSelector
from sluice.crds.workloads import (
    ApplicationReference,
    DynamicWorkload,
    DynamicWorkloadSpec,
    DynamicWorkloadStatus,
    Gang,
    PodSet,
    PodSetCount,
    PodSetStatus,
    QueueJob,
    QueueJobSpec,
    QueueJobStatus,
)

__all__ = [
    "AccessList",
    "ApplicationReference",
    "Bounds",
    "Condition",
    "CrdError",
    "DynamicWorkload",
    "DynamicWorkloadSpec",
    "DynamicWorkloadStatus",
    "Gang",
    "LabelRequirement",
    "LabelSelector",
    "NamespaceBinding",
    "PodSet",
    "PodSetCount",
    "PodSetStatus",
    "Queue",
    "QueueJob",
    "QueueJobSpec",
    "QueueJobStatus",
    "QueueSpec",
    "QueueStatus",
    "Reclaim",
    "Reservation",
    "ResourcePool",
    "ResourcePoolSpec",
    "ResourcePoolStatus",
    "parse_dynamic_workload",
    "parse_queue",
    "parse_queue_job",
    "parse_resource_pool",
]
