"""Whose a pod is, as far as it can say so itself.

Its controller leads to its application, or its controller's controller does: the core follows them by uid, so
nothing has to be seen in any order. Where none leads there, labels name an application. Anybody
who creates pods can write them, but they only ever charge another application of the same namespace.
"""

from __future__ import annotations

from dataclasses import dataclass

from sluice_watcher.requests import Object


@dataclass(frozen=True, slots=True)
class Owner:
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """As what a pod belongs to its application."""

    pod_set: str
    named: str = ""  # the application by its labels, as kind/name; empty: only controllers know


def controller(owned: Object) -> Owner | None:
    for reference in owned["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return Owner(reference["kind"], reference["name"], reference["uid"])
    return None
