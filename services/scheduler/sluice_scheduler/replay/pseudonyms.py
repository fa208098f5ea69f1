"""A bug report without its tenants' names, which tells the same story (docs/adr/0013).

A pseudonym has a code of one length for each run of letters, in the order of these runs; whatever sorts below letters
stays. So names compare as before, alone or joined, and a name that the core makes of another is made of its pseudonym.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from string import ascii_lowercase
from typing import Any, Final, TypeVar

from sluice.applications import APPLICATION_KINDS, WITHOUT_OPERATOR
from sluice.decisions import Decision, Delete
from sluice.events import Event

from sluice_scheduler.core.applications.workloads import DRIVER, EXECUTOR
from sluice_scheduler.core.stored.entities import STATUS, Entity

#: All that sorts above digits and punctuation.
_LETTERS: Final = re.compile("[^\x00-\x40]+")
_WORD: Final = re.compile(r"[A-Za-z0-9_.-]+")
_SHOWN: Final = re.compile(r"([a-z]+-)(.*)(-[0-9a-f]{5})")
_CODE_MIN: Final = 3
LEFT_OUT: Final = "left out"
_KINDS: Final = frozenset((*APPLICATION_KINDS, WITHOUT_OPERATOR, "PodGroup"))
T = TypeVar("T", bound=Event | Decision | Entity)


class Names:
    """Replaces names in records and entities. What it was shown with `learn` it can replace."""

    def __init__(self) -> None:
        self._codes: dict[str, str] = {}
        self._known: set[str] = set()  # whole names
        self._told: set[str] = set()  # what watchers had to say of objects
        self._learning = True

    def learn(self, record: Event | Entity) -> None:
        self._renamed(record)

    def settle(self) -> None:
        """All is learned."""
        self._learning = False
        width = _CODE_MIN
        while len(ascii_lowercase) ** width < len(self._codes):
            width += 1
        self._codes = {run: _code(number, width) for number, run in enumerate(sorted(self._codes))}

    def replaced(self, record: T) -> T:
        renamed: T = self._renamed(record)
        return renamed

    # ---- kinds of texts

    def _name(self, text: str) -> str:
        if self._learning:
            self._codes |= dict.fromkeys(_LETTERS.findall(text), "")
            self._known.add(text)
            return text
        return _LETTERS.sub(lambda run: self._codes[run[0]], text)

    def _title(self, text: str) -> str:
        kind, slash, name = text.partition("/")
        return f"{kind}/{self._name(name)}" if slash and kind in _KINDS else self._name(text)

    def _pod_set(self, text: str) -> str:
        """The core knows two by their names."""
        return text if text in (DRIVER, EXECUTOR) else self._name(text)

    def _uid(self, text: str) -> str:
        """Random, but for applications that have no object."""
        kind, _, name = text.partition("-")
        return f"{kind}-{self._name(name)}" if kind == WITHOUT_OPERATOR else text

    def _shown(self, text: str) -> str:
        """What the core calls a DynamicWorkload that stands for another application."""
        match = _SHOWN.fullmatch(text)
        return match[1] + self._name(match[2]) + match[3] if match else self._name(text)

    def _key(self, text: str) -> str:
        """Of whatever stands in the ledger, in a line or aside."""
        kind, _, rest = text.partition("/")
        if kind == STATUS.rstrip("/"):
            return STATUS + self._key(rest)
        if kind == "replica":
            pod_set, _, place = rest.partition("/")
            return f"{kind}/{self._pod_set(pod_set)}/{self._place(place)}"
        if kind == "group":
            return f"{kind}/{self._place(rest)}"
        cluster, _, uid = rest.partition("/")
        return f"{kind}/{cluster}/{self._uid(uid)}" if uid else text

    def _place(self, text: str) -> str:
        cluster, namespace, title = text.split("/", 2)
        return f"{cluster}/{self._name(namespace)}/{self._title(title)}"

    def _told_of(self, text: str) -> str:
        """What others have written, which may name anything."""
        self._told.add(text)
        return text and LEFT_OUT

    def _said(self, text: str) -> str:
        """What the core has written, which names what it knows."""
        if text in self._told:
            return self._told_of(text)
        return _WORD.sub(lambda word: self._name(word[0]) if word[0] in self._known else word[0], text)

    # ---- what consists of them

    def _renamed(self, record: Any) -> Any:
        changes = {}
        for field in fields(record):
            value = getattr(record, field.name)
            rule = RULES.get((type(record).__name__, field.name)) or RULES.get(field.name)
            if field.name == "name" and isinstance(record, Delete) and record.about == "dynamicworkload":
                rule = Names._shown
            if (changed := self._changed(rule, value)) is not value:
                changes[field.name] = changed
        return replace(record, **changes) if changes else record

    def _changed(self, rule: Callable[..., Any] | None, value: Any) -> Any:
        if is_dataclass(value):
            return self._renamed(value)
        if isinstance(value, tuple):
            return tuple(self._changed(rule, each) for each in value)
        return value if rule is None or value is None else rule(self, value)


def _code(number: int, width: int) -> str:
    letters = ""
    for _ in range(width):
        number, letter = divmod(number, len(ascii_lowercase))
        letters = ascii_lowercase[letter] + letters
    return letters


def _values(names: Names, found: Mapping[str, str]) -> dict[str, str]:
    return {key: names._name(value) for key, value in found.items()}


def _by_name(names: Names, found: Mapping[str, Any]) -> dict[str, Any]:
    return {names._name(key): value for key, value in found.items()}


def _by_pod_set(names: Names, found: Mapping[str, Any]) -> dict[str, Any]:
    return {names._pod_set(key): value for key, value in found.items()}


def _kept(names: Names, found: T) -> T:
    return found


def _nothing(names: Names, found: Mapping[str, Any]) -> dict[str, Any]:
    return {}


#: By a field's name, or by its class and its name. What is not here stays as it is.
RULES: Final[Mapping[str | tuple[str, str], Callable[..., Any]]] = {
    **dict.fromkeys(
        ("name", "names", "namespace", "queue", "node", "parent", "priority_class", "labelling", "values", "job"),
        Names._name,
    ),
    **dict.fromkeys((("PoolEvent", "name"), ("Pool", "name"), ("Cluster", "name")), _kept),
    **dict.fromkeys((("PodSetFacts", "name"), "pod_set", "as_pod_set"), Names._pod_set),
    **dict.fromkeys(("workload", ("Pod", "application")), Names._title),
    **dict.fromkeys(("uid", "owner", "controller"), Names._uid),
    **dict.fromkeys(("claim", "what"), Names._key),
    "shown": Names._shown,
    **dict.fromkeys(("labels", "node_selector", "waited_by"), _values),
    **dict.fromkeys(("asked_for", ("Deserved", "amounts")), _by_name),
    **dict.fromkeys(
        ("granted", "sizes", "succeeded", "kept", "minima", "reclaimed", "taken", "reserved"), _by_pod_set
    ),
    **dict.fromkeys((("Workload", "pools"), ("AdmitWorkload", "pools")), _by_pod_set),
    ("PodSetFacts", "succeeded"): _kept,  # a number
    "application_spec": _nothing,
    **dict.fromkeys(
        (
            ("WorkloadFacts", "problem"), ("QueueFacts", "problem"), ("PoolFacts", "problem"), "message",
            ("SetAsideEvent", "reason"), ("Aside", "reason"),
        ),
        Names._told_of,
    ),
    **dict.fromkeys(("problem", "noticed", "refusal", "no_show", "why"), Names._said),
}  # fmt: skip
