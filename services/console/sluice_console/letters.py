"""Dead letters: what could not be read, by whom and why. Pure: records in, words out."""

from __future__ import annotations

from typing import Any, Final

from rich.text import Text
from sluice.codec import find_header
from sluice.kafka import Received

#: The headers that services add, without what they begin with; the others are the record's own.
_ABOUT: Final = ("error", "topic", "partition", "offset", "cluster", "kind")
_SHOWN: Final = 160


def as_json(letter: Received) -> dict[str, Any]:
    """The original bytes as text, and whence they come."""
    about = {name: text for name in _ABOUT if (text := find_header(letter.headers, f"sluice_{name}"))}
    headers = {name: value.decode(errors="replace") for name, value in letter.headers}
    own = {name: value for name, value in headers.items() if name.removeprefix("sluice_") not in about}
    return {
        "letter": letter.offset,
        **about,
        "key": (letter.key or b"").decode(errors="replace"),
        "headers": own,
        "value": (letter.value or b"").decode(errors="replace"),
    }


def as_text(letter: Received) -> Text:
    """`sluice.events.v1@17: …`; for an object that a watcher could not read `pod/ns/p in cluster c: …`."""
    about = as_json(letter)
    if "offset" in about:
        whence = f"{about.get('topic', '')}@{about['offset']}"
    else:
        whence = f"{about['key']} in cluster {about.get('cluster', '')}"
    value = " ".join(about["value"].split())
    return Text.assemble(
        (f"{whence}: ", "bold"),
        (about.get("error", "no reason is given"), "red"),
        (f"\n    {value[:_SHOWN]}{'…' if len(value) > _SHOWN else ''}", "dim"),
    )
