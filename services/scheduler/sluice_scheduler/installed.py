"""The policies that are installed beside the scheduler, its own among them: plug-ins by entry point."""

from __future__ import annotations

from importlib.metadata import entry_points

from sluice_scheduler.core.fairness.policies import Policy


def installed_policies() -> dict[str, Policy]:
    return {entry.name: entry.load()() for entry in entry_points(group="sluice.policies")}
