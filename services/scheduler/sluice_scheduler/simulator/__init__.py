"""The scheduler on simulated time: the real core, the real bytes, no server. See docs/simulate.md."""
