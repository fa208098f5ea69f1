"""Tamper evidence: each decision carries the hash of the one before it in its cell (docs/adr/0013).

Statuses have no place in the sequence, and none in the chain. The epoch is not hashed: what is decided again under
another one is the same decision.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

PREVIOUS_HEADER: Final = "sluice_previous"
#: What the first decision carries.
BEGINNING: Final = "0" * 64


def link(previous: str, ce_type: str, value: bytes) -> str:
    """The hash of a decision that carries this one of its predecessor: the next one carries it."""
    return sha256(f"{previous} {ce_type}\n".encode() + value).hexdigest()


def numbers_are(first: int, last: int) -> str:
    """Decisions, as sentences begin with them."""
    return f"#{first} is" if first == last else f"#{first} to #{last} are"
