"""The work of one step is bounded: what it leaves to be done is done with the next records of the log."""

from __future__ import annotations

from typing import Final

#: So much work one step may do. An admission is one piece of it; a search counts what it looks at.
PIECES: Final = 1_500
OVERDRAFT: Final = 20_000


class Budget:
    __slots__ = ("leaves_out", "left")

    def __init__(self, pieces: int = PIECES) -> None:
        self.left = pieces
        #: Whether something was passed over that is looked at in other rounds only.
        self.leaves_out = False

    def spend(self, pieces: int = 1) -> None:
        self.left -= pieces

    @property
    def is_overdrawn(self) -> bool:
        """A search that has begun may go on for so long: what is looked for in vain is looked for anew."""
        return self.left <= -OVERDRAFT

    @property
    def is_spent(self) -> bool:
        return self.left <= 0
