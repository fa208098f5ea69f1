"""A cell's log is played again by the real core, and what it decides is compared with what was published."""
