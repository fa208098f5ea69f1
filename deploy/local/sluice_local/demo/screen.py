"""The live picture: the cluster, each tenant's application and share, and what has just been decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from sluice_local.demo.audit import Account, Line
from sluice_local.demo.observation import Observation
from sluice_local.demo.scenario import Tenant
from sluice_local.demo.story import Entry

COLOURS: Final = {"etl": "cyan", "ml": "magenta", "batch": "yellow"}
_WHAT: Final = {
    "admitted": "bold green",
    "grown": "green",
    "granted": "yellow",
    "taken back": "red",
    "gives back": "blue",
    "ended": "dim",
}
_PHASES: Final = {"Running": "green", "Growing": "yellow", "Reclaiming": "red", "Finished": "dim"}
#: Phases in which there is nothing granted.
NOTHING_TO_SAY: Final = ("", "gone", "Finished")
_WIDE_ONLY: Final = ("usage", "by weight", "wait", "open", "ended")
_GI = 2**30


@dataclass(frozen=True, slots=True)
class Size:
    """What fits into a terminal."""

    is_wide: bool
    story: int  # lines

    @classmethod
    def fitting(cls, *, width: int, height: int) -> Size:
        return cls(is_wide=width >= 124, story=min(14, max(4, height - 18)))

    @property
    def bar(self) -> int:
        return 20 if self.is_wide else 10


def picture(
    observation: Observation, account: Account, *, elapsed_s: float, title: str, size: Size
) -> RenderableType:
    return Group(
        Panel(
            Group(_headline(observation, account, elapsed_s, title), Text(), _cluster(observation, size.bar)),
            title="Sluice: three applications, one cluster that is too small for them",
            title_align="left",
            border_style="blue",
        ),
        Panel(_tenants(observation, account, size), title="Tenants", title_align="left", border_style="blue"),
        Panel(
            Group(*_story(account, size.story)), title="Decisions", title_align="left", border_style="blue"
        ),
    )


def bar(fraction: float, colour: str, *, width: int, mark: float | None = None) -> Text:
    """A bar, with a mark where a fair share would end."""
    filled = round(min(1.0, max(0.0, fraction)) * width)
    text = Text("█" * filled + "░" * (width - filled), style=colour)
    if mark is not None:
        at = min(width - 1, round(mark * width))
        text = Text.assemble(text[:at], ("┃", "bold white"), text[at + 1 :])
    return text


def amount(resource: str, value: float) -> str:
    if resource == "cpu":
        return f"{value / 1000:.4g} cpu"
    return f"{value / _GI:.4g} Gi"


def _headline(observation: Observation, account: Account, elapsed_s: float, title: str) -> Text:
    return Text.assemble(
        (f"{elapsed_s:4.0f} s   ", "dim"),
        (title, "bold"),
        no_wrap=True,
        overflow="ellipsis",
    )


def _cluster(observation: Observation, bar_width: int) -> Table:
    grid = Table.grid(padding=(0, 2))
    for resource in ("cpu", "memory"):
        held, capacity = observation.held(resource), observation.cast.capacity[resource]
        grid.add_row(
            f"cluster {resource}",
            bar(held / capacity, "green", width=2 * bar_width),
            f"{amount(resource, held)} of {amount(resource, capacity)}",
        )
    return grid


def _tenants(observation: Observation, account: Account, size: Size) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for tenant in observation.cast.tenants:
        figures = _figures(tenant, observation, account.reports.get(tenant.name, {}), size)
        shown = {name: figure for name, figure in figures.items() if size.is_wide or name not in _WIDE_ONLY}
        if not table.columns:
            for name, figure in shown.items():
                table.add_column(name, justify="right" if isinstance(figure, str) else "left", no_wrap=True)
        table.add_row(*shown.values())
    return table


def _figures(tenant: Tenant, observation: Observation, report: Line, size: Size) -> dict[str, RenderableType]:
    """Phase and grants: of its DynamicWorkload. Usage and shares: as Sluice reports them of its queue. Pods
    behind their gates, open and ended: counted in the cluster.
    """
    colour, resource = COLOURS[tenant.name], tenant.dominant
    capacity, sums = observation.cast.capacity[resource], observation.tenants[tenant.name]
    usage, fair = (reported(report.get(figure, {}), resource) for figure in ("usage", "fairShare"))
    share = float(report.get("dominantShare", 0))
    phase = observation.phase(tenant)
    return {
        "tenant": Text(f"{tenant.name} ×{tenant.weight}", style=f"bold {colour}"),
        "application": Text(tenant.kind if size.is_wide else tenant.kind.removesuffix("Application")),
        "phase": Text(phase or "-", style=_PHASES.get(phase, "")),
        "granted": Text(granted(observation.status(tenant)) if phase not in NOTHING_TO_SAY else "-"),
        "usage ┃ fair": bar(usage / capacity, colour, width=size.bar, mark=fair / capacity if fair else None),
        "usage": amount(resource, usage),
        # Full at a half: weighted, only who is alone comes near it.
        "by weight": bar(share * 2, colour, width=size.bar // 2),
        "share": f"{share:.3f}",
        "wait": str(sums.waiting),
        "open": str(sums.running),
        "ended": str(sums.ended),
    }


def granted(status: Mapping[str, Any]) -> str:
    """Of a DynamicWorkload: the pods that hold, of those that it asks for."""
    sets = status.get("podSets", ())
    return f"{sum(each['admitted'] for each in sets)} of {sum(each['desired'] for each in sets)} pods"


def reported(amounts: Line, resource: str) -> int:
    """They are keyed by `pool/resource`; the demo has one pool."""
    return sum(value for key, value in amounts.items() if key.rpartition("/")[2] == resource)


def _story(account: Account, length: int) -> Iterable[Text]:
    shown = account.story.latest(length)
    for entry in shown:
        yield story_line(entry)
    for _ in range(length - len(shown)):
        yield Text()


def story_line(entry: Entry) -> Text:
    time = datetime.fromtimestamp(entry.time_ms / 1000, UTC).strftime("%H:%M:%S")
    return Text.assemble(
        (f"{time} ", "dim"),
        (f"{entry.tenant.name:<6}", COLOURS[entry.tenant.name]),
        (f"{entry.what:<11}", _WHAT[entry.what]),
        str(entry),
        no_wrap=True,
        overflow="ellipsis",
    )
