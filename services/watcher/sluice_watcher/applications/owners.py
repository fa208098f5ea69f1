"""Whose a pod is: what controls it, what controls that, and so on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from sluice_watcher.requests import Object

#: Deployment → ReplicaSet → pod is the longest way to an application; a longer one is a circle.
CHAIN_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class Owner:
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Which application a pod belongs to, and as what."""

    kind: str
    name: str
    pod_set: str  # empty: in none of them, such as a cleaner that comes when all others are gone
    uid: str = ""  # of the application; empty where only labels say so


#: From what controls a pod upwards.
Chain: TypeAlias = tuple[Owner, ...]
#: uid → what controls the object of that uid. An object that is not in it is not known to exist.
Controllers: TypeAlias = Mapping[str, Owner | None]


def controller(owned: Object) -> Owner | None:
    for reference in owned["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return Owner(reference["kind"], reference["name"], reference["uid"])
    return None


def chain_of(pod: Object, controllers: Controllers) -> Chain:
    """Each is verified by its uid, but the last: what controls an object nobody has seen is not known."""
    chain: list[Owner] = []
    above = controller(pod)
    while above is not None and len(chain) < CHAIN_MAX:
        chain.append(above)
        above = controllers.get(above.uid)
    return tuple(chain)


def named(chain: Chain, kind: str) -> Owner | None:
    return next((owner for owner in chain if owner.kind == kind), None)
