"""The scheduler's core: a pure state machine, `step(state, event) -> decisions`. Read README.md first."""

from sluice_scheduler.core.state.repeated import repeat_statuses_since
from sluice_scheduler.core.state.state import CORE_VERSION, State
from sluice_scheduler.core.step import step

__all__ = ["CORE_VERSION", "State", "repeat_statuses_since", "step"]
