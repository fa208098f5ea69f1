"""The CustomResourceDefinitions, from the models in `sluice.crds`.

The API server takes a structural schema, a dialect that pydantic does not speak: no $ref, no null, nothing in
anyOf that says more than a value's bounds. `structural` translates.
"""

from dataclasses import dataclass
from typing import Any, Literal

from sluice.crds import DynamicWorkload, Queue, QueueJob, ResourcePool
from sluice.crds.values import Model
from sluice.vocabulary import GROUP, QUEUE_LABEL, VERSION

_READY = '.status.conditions[?(@.type=="Ready")].status'
_QUEUE_OF = ".metadata.labels." + QUEUE_LABEL.replace(".", r"\.")


@dataclass(frozen=True, kw_only=True)
class Column:
    """What `kubectl get` shows; those that are not `always` only with -o wide."""

    name: str
    path: str
    type: Literal["string", "integer", "date"] = "string"
    always: bool = True


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A model and how it is addressed."""

    model: type[Model]
    plural: str
    short_name: str
    namespaced: bool
    columns: tuple[Column, ...]

    @property
    def name(self) -> str:
        return self.model.__name__

    @property
    def file_name(self) -> str:
        return f"{GROUP}_{self.plural}.yaml"


#: What people look for first in a schema stands first.
_LEADING = {"description": 0, "type": 1, "default": 2, "enum": 3, "required": 4}

_AGE = Column(name="Age", path=".metadata.creationTimestamp", type="date")

KINDS = (
    Kind(
        model=Queue,
        plural="queues",
        short_name="sq",
        namespaced=False,
        columns=(
            Column(name="Parent", path=".spec.parent"),
            Column(name="Weight", path=".spec.weight", type="integer"),
            Column(name="Share", path=".status.dominantShare"),
            Column(name="Of", path=".status.dominantResource", always=False),
            Column(name="Running", path=".status.running", type="integer"),
            Column(name="Pending", path=".status.pending", type="integer"),
            Column(name="Apps", path=".status.admittedWorkloads", type="integer"),
            Column(name="Apps Pending", path=".status.pendingWorkloads", type="integer"),
            Column(name="Ready", path=_READY),
            Column(name="Resolved", path='.status.conditions[?(@.type=="ResolvedRefs")].status'),
            Column(name="Guarantees Fit", path='.status.conditions[?(@.type=="GuaranteesFit")].status'),
            Column(name="Cell", path=".spec.cell", always=False),
            Column(name="Lost Work", path=".status.lostWorkSeconds", type="integer", always=False),
            Column(name="Decision", path=".status.decision", always=False),
            _AGE,
        ),
    ),
    Kind(
        model=ResourcePool,
        plural="resourcepools",
        short_name="rpool",
        namespaced=False,
        columns=(
            Column(name="Nodes", path=".status.nodes", type="integer"),
            Column(name="CPU", path=".status.capacity.cpu"),
            Column(name="Memory", path=".status.capacity.memory"),
            Column(name="Ready", path=_READY),
            Column(name="Cell", path=".spec.cell", always=False),
            Column(name="Decision", path=".status.decision", always=False),
            _AGE,
        ),
    ),
    Kind(
        model=DynamicWorkload,
        plural="dynamicworkloads",
        short_name="dw",
        namespaced=True,
        columns=(
            Column(name="Kind", path=".spec.application.kind"),
            Column(name="Application", path=".spec.application.name"),
            Column(name="Queue", path=_QUEUE_OF, always=False),
            Column(name="Phase", path=".status.phase"),
            Column(name="Position", path=".status.queuePosition", type="integer"),
            Column(name="Reason", path=".status.reason", always=False),
            _AGE,
        ),
    ),
    Kind(
        model=QueueJob,
        plural="queuejobs",
        short_name="qj",
        namespaced=True,
        columns=(
            Column(name="Phase", path=".status.phase"),
            Column(name="Replicas", path=".spec.replicas", type="integer"),
            Column(name="Running", path=".status.running", type="integer"),
            Column(name="Succeeded", path=".status.succeeded", type="integer"),
            Column(name="Failed", path=".status.failed", type="integer"),
            Column(name="Queue", path=_QUEUE_OF, always=False),
            _AGE,
        ),
    ),
)


def definition(kind: Kind) -> dict[str, Any]:
    """The CustomResourceDefinition of one kind."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}", "labels": {"app.kubernetes.io/part-of": "sluice"}},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": [kind.short_name],
                "categories": ["sluice"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [_printer_column(column) for column in kind.columns],
                    "schema": {"openAPIV3Schema": _root_schema(kind.model)},
                }
            ],
        },
    }


def structural(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """A pydantic JSON schema as a structural schema."""
    resolved = _resolved(schema, definitions)
    translated = {
        key: _translated(key, value, definitions)
        for key, value in resolved.items()
        if not _is_left_out(key, value)
    }
    return dict(sorted(translated.items(), key=lambda item: _LEADING.get(item[0], len(_LEADING))))


def _resolved(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """References in place, and optional fields as what they are when present."""
    if "$ref" in schema:
        target = definitions[schema["$ref"].removeprefix("#/$defs/")]
        return _resolved({**target, **_without(schema, "$ref")}, definitions)
    if "anyOf" in schema:
        (target,) = (option for option in schema["anyOf"] if option != {"type": "null"})
        return _resolved({**target, **_without(schema, "anyOf")}, definitions)
    return schema


def _is_left_out(key: str, value: Any) -> bool:
    if key == "default":  # an object's defaults stand on its fields, and show once the object is given
        return not isinstance(value, str | int)
    return key in ("title", "$defs") or (key == "additionalProperties" and not isinstance(value, dict))


def _translated(key: str, value: Any, definitions: dict[str, Any]) -> Any:
    match key:
        case "description":
            return " ".join(value.split())
        case "properties":
            return {name: structural(field, definitions) for name, field in value.items()}
        case "items" | "additionalProperties":
            return structural(value, definitions)
        case _:
            return value


def _root_schema(model: type[Model]) -> dict[str, Any]:
    schema = model.model_json_schema(by_alias=True)
    root = structural(schema, schema["$defs"])
    root["properties"] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        **root["properties"],
    }
    return root


def _printer_column(column: Column) -> dict[str, Any]:
    shown = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return shown if column.always else {**shown, "priority": 1}


def _without(schema: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != key}
