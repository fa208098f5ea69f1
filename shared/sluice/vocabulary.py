"""The names that Sluice writes on other people's objects."""

from typing import Final

GROUP: Final = "sluice.dev"
#: The API server labels every namespace with its name.
NAME_LABEL: Final = "kubernetes.io/metadata.name"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

#: The scheduling gate that every pod in a bound namespace is created with.
GATE: Final = "sluice.dev/admission"
#: Namespaces with this label (value "true") are managed.
MANAGED_LABEL: Final = "sluice.dev/managed"
#: On a namespace: its binding. On a pod or application: a queue below its namespace's.
QUEUE_LABEL: Final = "sluice.dev/queue"
#: `<epoch>.<seq>` of the decision that an object carries; only the actuator may write it.
DECISION_ANNOTATION: Final = "sluice.dev/decision"
#: On an application that has no field to suspend it: whether it was released ("true").
RELEASED_ANNOTATION: Final = "sluice.dev/released"
#: On an application whose operator knows its size as one number: with how many pods it may start; the rest is
#: growth, granted pod by pod.
MIN_COUNT_ANNOTATION: Final = "sluice.dev/min-count"

#: On a pod: the DynamicWorkload in its namespace that it belongs to, and which of its pod sets.
WORKLOAD_LABEL: Final = "sluice.dev/workload"
POD_SET_LABEL: Final = "sluice.dev/pod-set"
#: On a pod that a QueueJob has: the job's name, and which of its completions the pod is for.
JOB_LABEL: Final = "sluice.dev/job"
INDEX_LABEL: Final = "sluice.dev/index"
#: On pods that are admitted together or not at all, and how many they are.
POD_GROUP_LABEL: Final = "sluice.dev/pod-group"
POD_GROUP_SIZE_ANNOTATION: Final = "sluice.dev/pod-group-size"

#: On an application, or the pods of a group: by when its minimum must run once it was admitted, and what
#: becomes of it otherwise ("hard": it is put back; "soft": it goes on with what runs).
GANG_DEADLINE_ANNOTATION: Final = "sluice.dev/gang-deadline-seconds"
GANG_ON_DEADLINE_ANNOTATION: Final = "sluice.dev/gang-on-deadline"

#: On a pod: when it last saved its work, as an RFC 3339 time. What it did since then is lost if it is taken back.
SAVED_AT_ANNOTATION: Final = "sluice.dev/saved-at"

DEFAULT_CELL: Final = "default"
#: Where Sluice's own services, service accounts and Leases live.
SYSTEM_NAMESPACE: Final = "sluice-system"
#: Who may open gates and label namespaces.
ACTUATOR_USER: Final = f"system:serviceaccount:{SYSTEM_NAMESPACE}:sluice-actuator"
