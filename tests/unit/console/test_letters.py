"""Dead letters say why, whence and what."""

from __future__ import annotations

from sluice.kafka import Received, dead_letter
from sluice_console import letters


def test_a_record_that_could_not_be_read() -> None:
    broken = Received(partition=2, offset=17, key=b"k", value=b"\xff{", headers=[("ce_id", b"x")])
    message = dead_letter(broken, topic="sluice.events.v1", error="unknown type")
    letter = Received(partition=2, offset=0, key=message.key, value=message.value, headers=message.headers)
    assert letters.as_text(letter).plain.splitlines() == ["sluice.events.v1@17: unknown type", "    \ufffd{"]
    assert letters.as_json(letter) == {
        "letter": 0,
        "error": "unknown type",
        "topic": "sluice.events.v1",
        "partition": "2",
        "offset": "17",
        "key": "k",
        "headers": {"ce_id": "x"},
        "value": "\ufffd{",
    }


def test_an_object_that_a_watcher_could_not_read() -> None:
    headers = [("sluice_error", b"KeyError: 'spec'"), ("sluice_cluster", b"earth"), ("sluice_kind", b"pod")]
    letter = Received(
        partition=0, offset=3, key=b"pod/ns/p", value=b'{"a":\n 1}' + b"x" * 300, headers=headers
    )
    first, second = letters.as_text(letter).plain.splitlines()
    assert first == "pod/ns/p in cluster earth: KeyError: 'spec'"
    assert second.startswith('    {"a": 1}xxx')
    assert second.endswith("…")
