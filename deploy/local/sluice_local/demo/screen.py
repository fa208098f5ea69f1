"""The live picture: the cluster, each queue's figures as bars, and what has just been decided."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from sluice_local.demo.audit import Account, Line
from sluice_local.demo.observation import Observation
from sluice_local.demo.scenario import CAPACITY, PODS, TENANTS, Tenant

_COLOURS = {"research": "cyan", "ads": "magenta", "batch": "yellow"}
_WIDE_ONLY = ("usage", "demand")
_GI = 2**30


@dataclass(frozen=True, slots=True)
class Size:
    """What fits into a terminal."""

    is_wide: bool
    story: int  # lines

    @classmethod
    def fitting(cls, *, width: int, height: int) -> Size:
        return cls(is_wide=width >= 124, story=min(12, max(4, height - 18)))

    @property
    def bar(self) -> int:
        return 24 if self.is_wide else 12


def picture(
    observation: Observation, account: Account, *, elapsed_s: float, created: int, size: Size
) -> RenderableType:
    return Group(
        Panel(
            Group(
                _headline(observation, account, elapsed_s, created), Text(), _cluster(observation, size.bar)
            ),
            title="Sluice: three tenants, one cluster that is too small for them",
            title_align="left",
            border_style="blue",
        ),
        Panel(_queues(observation, account, size), title="Queues", title_align="left", border_style="blue"),
        Panel(
            Group(*_story(account.latest, size.story)),
            title="Gates opened and accounts closed",
            title_align="left",
            border_style="blue",
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


def _headline(observation: Observation, account: Account, elapsed_s: float, created: int) -> Text:
    return Text.assemble(
        (f"{elapsed_s:4.0f} s   ", "dim"),
        (f"{created}", "bold"),
        f" of {PODS} pods created, ",
        (f"{account.opened}", "bold green"),
        " gates opened, ",
        (f"{observation.finished}", "bold"),
        " finished",
    )


def _cluster(observation: Observation, bar_width: int) -> Table:
    grid = Table.grid(padding=(0, 2))
    for resource in ("cpu", "memory"):
        held, capacity = observation.held(resource), CAPACITY[resource]
        grid.add_row(
            f"cluster {resource}",
            bar(held / capacity, "green", width=2 * bar_width),
            f"{amount(resource, held)} of {amount(resource, capacity)}",
        )
    return grid


def _queues(observation: Observation, account: Account, size: Size) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for tenant in TENANTS:
        figures = _figures(tenant, observation, account.reports.get(tenant.name, {}), size.bar)
        shown = {name: figure for name, figure in figures.items() if size.is_wide or name not in _WIDE_ONLY}
        if not table.columns:
            for name, figure in shown.items():
                table.add_column(name, justify="right" if isinstance(figure, str) else "left", no_wrap=True)
        table.add_row(*shown.values())
    return table


def _figures(
    tenant: Tenant, observation: Observation, report: Line, bar_width: int
) -> dict[str, RenderableType]:
    """Usage, fair share, demand, dominant share: as Sluice reports them. Pods: counted in the cluster."""
    colour, resource = _COLOURS[tenant.name], tenant.dominant
    capacity, sums = CAPACITY[resource], observation.tenants[tenant.name]
    usage, fair, demand = (_reported(report, figure, resource) for figure in ("usage", "fairShare", "demand"))
    share = float(report.get("dominantShare", 0))
    mark = fair / capacity if fair else None
    return {
        "queue": Text(tenant.name, style=f"bold {colour}"),
        "weight": str(tenant.weight),
        "usage ┃ fair": bar(usage / capacity, colour, width=bar_width, mark=mark),
        "usage": amount(resource, usage),
        "demand": amount(resource, demand),
        # Full at a half: weighted, none of the three comes near it.
        "share by weight": bar(share * 2, colour, width=bar_width),
        "share": f"{share:.3f}",
        "wait": str(sums.waiting),
        "run": str(sums.running),
        "done": str(sums.finished),
    }


def _reported(report: Line, figure: str, resource: str) -> int:
    """Amounts are keyed by `pool/resource`; the demo has one pool."""
    return sum(value for key, value in report.get(figure, {}).items() if key.rpartition("/")[2] == resource)


def _story(latest: Iterable[Line], length: int) -> Iterable[Text]:
    shown = list(latest)[-length:]
    for line in shown:
        yield story_line(line)
    for _ in range(length - len(shown)):
        yield Text()


def story_line(line: Line) -> Text:
    time = datetime.fromtimestamp(line["timeMs"] / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    opened = line["type"] == "admit"
    return Text.assemble(
        (f"{time} ", "dim"),
        ("open   ", "green") if opened else ("closed ", "dim"),
        (f"{line['subject'].removeprefix('pod/'):<27} ", "bold" if opened else "dim"),
        ((f"#{line['seq']} " if opened else "") + line["sentence"], "" if opened else "dim"),
        no_wrap=True,
        overflow="ellipsis",
    )
