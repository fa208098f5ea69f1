"""Texts that somebody else has written, at any length: a field of an object, an API server's answer."""

from __future__ import annotations

from typing import Final

#: What quotes them goes into records, statuses and headers. It has to fit, whatever stands in it.
LENGTH_MAX: Final = 1000


def cut(text: str, most: int = LENGTH_MAX) -> str:
    """The text, or as much of it as `most` characters hold."""
    return text if len(text) <= most else text[: most - 3] + "..."
