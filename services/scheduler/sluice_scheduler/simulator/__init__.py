"""The scheduler on simulated time: the real core, the real bytes, no server. docs/simulate.md says how to use it."""
