"""What happens, scene by scene. Each goes on until what it is to show was seen, or that has taken too long: a
slow machine makes it longer, and what did not happen is said at the end.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from sluice_local.demo.api import Api, Object
from sluice_local.demo.audit import Account
from sluice_local.demo.observation import Observation
from sluice_local.demo.scenario import Tenant

_EVERY_S: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    title: str
    begin: Callable[[], None]
    is_seen: Callable[[], bool]
    stays_s: float  # once it is seen, for people to see it too


class Play(threading.Thread, ABC):
    """`title` says what goes on; `is_over` when there is nothing more to come."""

    #: A scene takes no longer.
    within_s = 30.0

    def __init__(self, api: Api, observation: Observation, account: Account, lock: threading.Lock) -> None:
        super().__init__(name="play", daemon=True)
        self.api = api
        self.observation = observation
        self.account = account
        self._lock = lock
        self._error: Exception | None = None
        self.title = ""
        self.is_over = False
        self.unseen: list[str] = []  # scenes that took too long

    @abstractmethod
    def scenes(self) -> Iterator[Scene]: ...

    @property
    def error(self) -> Exception | None:
        return self._error

    def run(self) -> None:
        try:
            for scene in self.scenes():
                self.title = scene.title
                scene.begin()
                if self._wait(scene.is_seen):
                    time.sleep(scene.stays_s)
                else:
                    self.unseen.append(scene.title)
        except Exception as error:
            self._error = error
        finally:
            self.is_over = True

    def create(self, tenant: Tenant, application: Object) -> None:
        self.api.create(tenant.applications_path, application)

    def runs(self, tenant: Tenant) -> int:
        return self.observation.tenants[tenant.name].running

    def is_settled(self) -> bool:
        """Nothing is left in the cluster, and Sluice has said so."""
        tenants = self.observation.cast.tenants
        told = all(tenant.name in self.account.reports for tenant in tenants)
        phases = [self.observation.phase(tenant) for tenant in tenants]
        ended = all(phase in ("Finished", "gone") for phase in phases)
        return self.observation.is_quiet and told and self.account.is_settled and ended

    def _wait(self, is_seen: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + self.within_s
        while time.monotonic() < deadline:
            with self._lock:
                if is_seen():
                    return True
            time.sleep(_EVERY_S)
        return False
