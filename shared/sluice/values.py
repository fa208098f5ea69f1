"""Value types that records, state and policies are made of. Standard library only: the core imports them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from sluice.vocabulary import DEFAULT_CELL

#: Amounts by resource, in base units: milli-cores for cpu, whole units (bytes, devices) for the rest.
Resources: TypeAlias = dict[str, int]
#: Each pod asks for one of these, beside what its containers ask for: nodes offer a limited number.
POD_SLOTS: Final = "pods"


def answering_cell(name: str, cells: Sequence[str]) -> str:
    """The cell that looks after what names this one: where there is none of that name, the first says so."""
    name = name or DEFAULT_CELL
    return name if name in cells else cells[0]


def split_kind(key: str) -> tuple[str, str]:
    """`resource` or `supply/resource`; a resource may have a slash of its own, but the domain before it has a
    dot, and a supply's name has none."""
    supply, slash, resource = key.partition("/")
    if not slash or ("." in supply and "/" not in resource):
        return "", key
    return supply, resource


@dataclass(frozen=True, slots=True, order=True)
class Epoch:
    """Who may write a cell's ledger: later epochs fence earlier ones.

    `generation` rises when the cell is rebuilt in another cluster identity or from a lower resourceVersion;
    `resource_version` is that of the write to the cell's Lease that minted the epoch.
    """

    generation: int
    resource_version: int

    def __str__(self) -> str:
        return f"{self.generation}-{self.resource_version}"

    @classmethod
    def parse(cls, text: str) -> Epoch:
        generation, _, resource_version = text.partition("-")
        return cls(int(generation), int(resource_version))


_DECISION_ID: Final = re.compile(r"([0-9]{1,19})-([0-9]{1,19})\.([0-9]{1,19})")


@dataclass(frozen=True, slots=True, order=True)
class DecisionId:
    """`<epoch>.<seq>`: what an object carries to say which decision it has seen. A status has no seq; what it
    carries instead is the offset at which it stands among the decisions."""

    epoch: Epoch
    seq: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.seq}"

    @classmethod
    def parse(cls, text: str) -> DecisionId | None:
        """None for text that no actuator wrote."""
        match = _DECISION_ID.fullmatch(text)
        if match is None:
            return None
        generation, resource_version, seq = map(int, match.groups())
        return cls(Epoch(generation, resource_version), seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRequirement:
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceSelector:
    """Which namespaces a Queue takes: those named, and those whose labels meet every requirement."""

    names: tuple[str, ...] = ()
    requirements: tuple[LabelRequirement, ...] = ()

    def selects(self, name: str, labels: Mapping[str, str]) -> bool:
        if name in self.names:
            return True
        return bool(self.requirements) and all(r.matches(labels) for r in self.requirements)
