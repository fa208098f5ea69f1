"""JSON Schemas of the records on the bus, and the AsyncAPI page that says where they pass."""

from typing import Any

from sluice.chain import PREVIOUS_HEADER
from sluice.codec import DECISIONS, EPOCH_HEADER, EVENTS, RECORD_VERSION, Codec
from sluice.decisions import DECISION_TYPES, Decision
from sluice.events import EVENT_TYPES, Event

_JSON_SCHEMA = "https://json-schema.org/draft/2020-12/schema"
_FAMILIES: tuple[tuple[str, Codec[Any]], ...] = (("event", EVENTS), ("decision", DECISIONS))


def record_schemas() -> dict[str, dict[str, Any]]:
    """File name to JSON Schema, one per record type."""
    return {
        _schema_file(family, record_type): {
            "$schema": _JSON_SCHEMA,
            "$id": codec.ce_type(record_type),
            **codec.schema(record_type),
        }
        for family, codec in _FAMILIES
        for record_type in codec.record_types
    }


def asyncapi() -> dict[str, Any]:
    """The AsyncAPI 3.0 document of both logs."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Sluice's logs",
            "version": f"{RECORD_VERSION}.0.0",
            "description": "Everything that the scheduler may react to is a record in the events, everything "
            "it decides a record in the decisions; each cell has a partition of its own in both. Records are "
            "CloudEvents 1.0 in Kafka's binary mode with JSON values. A log can be replayed: the same events "
            "give the same decisions, byte for byte; statuses are no part of that.",
        },
        "defaultContentType": "application/json",
        "channels": _channels(),
        "operations": _operations(),
        "components": {
            "messages": {
                **_messages("event", EVENTS, EVENT_TYPES),
                **_messages("decision", DECISIONS, DECISION_TYPES),
            },
            "messageTraits": {"event": _trait(), "decision": _trait(epoch=True)},
        },
    }


def _channels() -> dict[str, Any]:
    return {
        "events": _channel(
            "sluice.events.v1",
            "Object changes, ticks and outcomes, in the order in which they count.",
            _references("event", EVENTS),
        ),
        "decisions": _channel(
            "sluice.decisions.v1",
            "Decisions in order of seq, which has no holes within a cell. A seq may come twice, with the "
            "same bytes. Statuses stand between them and have seq 0: of one object's the last one under "
            "the latest epoch counts, and one may be told again in other words.",
            _references("decision", DECISIONS),
        ),
        "unreadableEvents": _channel(
            "dlq.sluice.events.v1",
            "Records that could not be read: the original bytes and headers, and headers that say what "
            "is wrong.",
            {"unreadable": {"summary": "Any bytes."}},
        ),
        "snapshots": _channel(
            "sluice.snapshots.v1",
            "Parts of what the ledger held now and then, for replays to begin with. Only the version of the "
            "scheduler that wrote one reads it.",
            {"part": {"summary": "Any bytes."}},
        ),
    }


def _operations() -> dict[str, Any]:
    return {
        "takeEvents": _operation("receive", "events", "The scheduler and every auditor read the events."),
        "publishDecisions": _operation(
            "send", "decisions", "The scheduler publishes what it decided, once it is committed."
        ),
        "keepSnapshots": _operation(
            "send", "snapshots", "The scheduler writes down what its ledger holds, in parts."
        ),
        "setAside": _operation(
            "send", "unreadableEvents", "The scheduler sets aside what it cannot read, and goes on."
        ),
    }


def _channel(topic: str, description: str, messages: dict[str, Any]) -> dict[str, Any]:
    return {
        "address": topic,
        "description": description,
        "messages": messages,
        "bindings": {"kafka": {"bindingVersion": "0.5.0", "topic": topic}},
    }


def _operation(action: str, channel: str, summary: str) -> dict[str, Any]:
    return {"action": action, "channel": {"$ref": f"#/channels/{channel}"}, "summary": summary}


def _schema_file(family: str, record_type: str) -> str:
    return f"{family}.{record_type}.v{RECORD_VERSION}.schema.json"


def _references(family: str, codec: Codec[Any]) -> dict[str, Any]:
    return {
        record_type: {"$ref": f"#/components/messages/{family}.{record_type}"}
        for record_type in codec.record_types
    }


def _messages(
    family: str, codec: Codec[Any], types: tuple[type[Event], ...] | tuple[type[Decision], ...]
) -> dict[str, Any]:
    return {
        f"{family}.{record.type}": {
            "name": codec.ce_type(record.type),
            **_summary(codec.schema(record.type)),
            "traits": [{"$ref": f"#/components/messageTraits/{family}"}],
            "payload": {
                "schemaFormat": "application/schema+json;version=draft-2020-12",
                "schema": {"$ref": f"./{_schema_file(family, record.type)}"},
            },
        }
        for record in types
    }


def _trait(*, epoch: bool = False) -> dict[str, Any]:
    headers = {
        "ce_specversion": {"type": "string", "const": "1.0"},
        "ce_id": {
            "type": "string",
            "description": "The same for the same event or decision, however often it comes. Of a status: what "
            "it is about, when it was told and why.",
        },
        "ce_type": {"type": "string", "description": "The name of the message, its version included."},
        "ce_source": {"type": "string", "description": "The service that wrote the record."},
        "ce_subject": {"type": "string", "description": "The object that the record is about; also the key."},
        "ce_time": {"type": "string", "format": "date-time"},
        "content-type": {"type": "string", "const": "application/json"},
    }
    required = list(headers)
    if epoch:
        headers[EPOCH_HEADER] = {
            "type": "string",
            "description": "The writer's epoch, no part of the hashed bytes.",
        }
        required.append(EPOCH_HEADER)
        headers[PREVIOUS_HEADER] = {
            "type": "string",
            "description": "The hash of the decision before it in its cell: SHA-256 of that one's own "
            "sluice_previous, a space, its ce_type, a line feed and its value. 64 zeros at the beginning. No "
            "status has one.",
        }
    return {
        "contentType": "application/json",
        "headers": {"type": "object", "required": required, "properties": headers},
        "bindings": {"kafka": {"bindingVersion": "0.5.0", "key": {"type": "string"}}},
    }


def _summary(schema: dict[str, Any]) -> dict[str, str]:
    """The first sentence of the record's docstring, if it has one."""
    description = " ".join(schema.get("description", "").split())
    return {"summary": description.split(". ")[0].rstrip(".") + "."} if description else {}
