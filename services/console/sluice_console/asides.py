"""What the scheduler has set aside because work on it raised an exception: what, since when, why, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from pydantic.alias_generators import to_camel

from sluice_console import wording
from sluice_console.redis_reader import Snapshot

KIND: Final = "aside"
#: So many are told of one by one.
NAMED: Final = 10
_STATUS: Final = "status"
_UPGRADE: Final = "upgrade the scheduler (docs/runbook.md, Set aside)"
_KEEPS: Final = "it keeps what it holds and is admitted nothing"
_OF_ACCOUNTS: Final = f"{_KEEPS}: create it anew in another form, or {_UPGRADE}"
_OF_OTHERS: Final = f"news of it is passed over: {_UPGRADE}"
#: By the first part of a key.
_REMEDIES: Final = {
    _STATUS: f"it shows what it showed before, and everything else goes on: {_UPGRADE}",
    "record": f"it was passed over: restart the watchers, which list everything anew, and {_UPGRADE}",
    "pass": f"it was left out, and the next record's makes up for it: {_UPGRADE}",
    "queue": f"{_KEEPS}: create it anew without what is unusual about it, or {_UPGRADE}",
    **dict.fromkeys(("pod", "workload", "group"), _OF_ACCOUNTS),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    kind: str
    name: str
    reason: str
    since_ms: int
    remedy: str

    def as_json(self) -> dict[str, Any]:
        return {to_camel(name): value for name, value in asdict(self).items()}

    def sentence(self, now_ms: int) -> str:
        since = wording.age(max(0, now_ms - self.since_ms))
        return (
            f"{self.kind} {self.name} was set aside {since} ago, for it raised {self.reason}; {self.remedy}"
        )


def asides_of(snapshot: Snapshot) -> tuple[SetAside, ...]:
    """The oldest first."""
    found = [
        _read(aside["what"], aside["name"], aside["reason"], aside["since_ms"]) for aside in snapshot.of(KIND)
    ]
    return tuple(sorted(found, key=lambda each: (each.since_ms, each.kind, each.name)))


def _read(what: str, name: str, reason: str, since_ms: int) -> SetAside:
    kind, _, rest = what.partition("/")
    remedy = _REMEDIES.get(kind, _OF_OTHERS)
    if kind == _STATUS:
        about = rest.partition("/")[0]
        kind = f"{about} status" if about else "every"
        rest = rest or _STATUS
    return SetAside(kind=kind, name=name or rest, reason=reason, since_ms=since_ms, remedy=remedy)


def complaints(asides: Sequence[SetAside], now_ms: int) -> list[str]:
    """A sentence each; of many the first, and how many more there are."""
    told = [each.sentence(now_ms) for each in asides[:NAMED]]
    more = len(asides) - NAMED
    return [*told, f"{more} more are set aside: `sluice status --json` names all"] if more > 0 else told
