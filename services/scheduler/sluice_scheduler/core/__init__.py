"""The scheduler's core: a pure state machine, `step(state, event) -> decisions`. Read README.md first."""

from sluice_scheduler.core.state.state import CORE_VERSION, State
from sluice_scheduler.core.state.told import tell_again_since
from sluice_scheduler.core.step import step

__all__ = ["CORE_VERSION", "State", "step", "tell_again_since"]
