"""Sluice's own services as processes of the stack, each with its own identity in the cluster."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from sluice_local.component import Component
from sluice_local.probes import http_ok
from sluice_local.state import State

SERVICES = ("watcher", "scheduler", "actuator")


class Service(Component):
    """One process of a service. Several instances of one service differ in name, port and log."""

    def __init__(
        self,
        service: str,
        state: State,
        settings: Mapping[str, str],
        *,
        instance: str,
        programs: Path,
    ) -> None:
        """`programs`: where those of its version are installed."""
        super().__init__(instance, state)
        self._programs = programs
        self._service = service
        self._settings = settings

    def argv(self) -> Sequence[str | Path]:
        return [self._programs / f"sluice-{self._service}"]

    def environment(self) -> Mapping[str, str]:
        return {**self._settings, "SLUICE_HTTP": self.address}

    def ready(self) -> bool:
        return http_ok(self.port, "/readyz")
