"""What a run has gone through, and how long each recovery took."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median


@dataclass
class Report:
    recoveries_s: dict[str, list[float]] = field(default_factory=dict)
    admitted: dict[str, int] = field(default_factory=dict)

    def note(self, fault: str, recovery_s: float, admitted: int, *, at_s: float, told: str | None) -> str:
        """A line of the run's history."""
        self.recoveries_s.setdefault(fault, []).append(recovery_s)
        self.admitted[fault] = self.admitted.get(fault, 0) + admitted
        came = f"{fault}: {told}" if told else fault
        return (
            f"{at_s:7.1f} s  {came}; recovered in {recovery_s:.1f} s, {admitted} gates were opened meanwhile"
        )

    def table(self) -> str:
        """In the form that docs/reliability.md shows."""
        lines = [
            "| fault | times | gates opened meanwhile | recovery p50 | max |",
            "|---|---|---|---|---|",
        ]
        for fault, took in sorted(self.recoveries_s.items()):
            spans = f"{median(took):.1f} s | {max(took):.1f} s"
            lines.append(f"| {fault} | {len(took)} | {self.admitted[fault]} | {spans} |")
        every = [each for took in self.recoveries_s.values() for each in took]
        if every:
            spans = f"{median(every):.1f} s | {max(every):.1f} s"
            lines.append(f"| all | {len(every)} | {sum(self.admitted.values())} | {spans} |")
        return "\n".join(lines)
