"""What was once written to a log is read for ever, and written the same way today.

`golden/<family>.<type>/v<version>.json` holds a message of each record version. Where a version got a further
field later, a second sample `v<version>.1.json` stands beside the first: both must be read, the newest is how
it is written now.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from samples import EPOCH, GOLDEN, encoded
from sluice.codec import DECISIONS, EVENTS, RECORD_VERSION, Codec, Message, UnreadableRecordError
from sluice.generate.contracts import record_schemas

CODECS: dict[str, Codec[Any]] = {"event": EVENTS, "decision": DECISIONS}
SCHEMAS = record_schemas()
FILES = sorted(GOLDEN.glob("*/v*.json"))


def identify(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def golden_message(path: Path) -> Message:
    """A kept message; bodies are indented for readers of the file, and compact on the bus."""
    golden = json.loads(path.read_text())
    return Message(
        key=golden["key"].encode(),
        value=json.dumps(golden["body"], ensure_ascii=False, separators=(",", ":")).encode(),
        headers=[(name, value.encode()) for name, value in golden["headers"].items()],
    )


def codec_of(path: Path) -> Codec[Any]:
    return CODECS[path.parent.name.partition(".")[0]]


def newest() -> Iterator[Path]:
    for folder in sorted(GOLDEN.iterdir()):
        samples = [*folder.glob(f"v{RECORD_VERSION}.json"), *folder.glob(f"v{RECORD_VERSION}.*.json")]
        yield max(samples, key=lambda path: (len(path.name), path.name))


@pytest.mark.parametrize("path", FILES, ids=identify)
def test_it_is_still_read(path: Path) -> None:
    message = golden_message(path)
    record = codec_of(path).decode(message.headers, message.value)
    assert f"{path.parent.name.partition('.')[0]}.{record.type}" == path.parent.name
    assert record.id == message.header("ce_id")


@pytest.mark.parametrize("path", list(newest()), ids=identify)
def test_it_is_still_written_with_the_same_bytes(path: Path) -> None:
    message, codec = golden_message(path), codec_of(path)
    record = codec.decode(message.headers, message.value)
    source = message.header("ce_source")
    assert source
    assert codec.encode(record, source=source, epoch=EPOCH if codec is DECISIONS else None) == message


@pytest.mark.parametrize("path", list(newest()), ids=identify)
def test_it_follows_the_published_schema(path: Path) -> None:
    body = json.loads(path.read_text())["body"]
    schema = SCHEMAS[f"{path.parent.name}.v{RECORD_VERSION}.schema.json"]
    jsonschema.validate(body, schema, cls=jsonschema.Draft202012Validator)


def test_every_record_type_has_one_of_this_version() -> None:
    wanted = {f"{family}.{kind}" for family, codec in CODECS.items() for kind in codec.record_types}
    assert {path.parent.name for path in newest()} == wanted, (
        "write it with `python tests/contract/samples.py`"
    )
    assert set(encoded()) == wanted


@pytest.mark.parametrize("name", sorted(encoded()))
def test_the_samples_fill_every_field(name: str) -> None:
    """A field left at its default would prove nothing about how it is written."""
    left = list(
        defaults_in(json.loads(encoded()[name].value), SCHEMAS[f"{name}.v{RECORD_VERSION}.schema.json"])
    )
    # A namespace's or node's own record has no namespace.
    assert [field for field in left if field != "namespace"] == []


def defaults_in(body: dict[str, Any], schema: dict[str, Any]) -> Iterator[str]:
    for name, field in schema["properties"].items():
        if "$ref" in field:
            definition = schema["$defs"][field["$ref"].rpartition("/")[2]]
            yield from defaults_in(body[name], {**definition, "$defs": schema["$defs"]})
        elif body[name] == field.get("default") or body[name] in ({}, []):
            yield name


@pytest.mark.parametrize("path", FILES, ids=identify)
def test_a_version_that_is_not_known_is_refused_by_name(path: Path) -> None:
    message = golden_message(path)
    headers = [(name, b"x.v999" if name == "ce_type" else value) for name, value in message.headers]
    with pytest.raises(UnreadableRecordError, match=r"x\.v999"):
        codec_of(path).decode(headers, message.value)
