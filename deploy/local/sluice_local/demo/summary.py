"""What came of it: what was seen of each thing that it is to show, and whether anything went wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sluice_local.demo.audit import Account
from sluice_local.demo.observation import Observation, percentile
from sluice_local.demo.scenario import BATCH, ETL
from sluice_local.demo.screen import amount


@dataclass(frozen=True, slots=True)
class Sight:
    """Something that the demo is to show."""

    what: str
    seen: bool
    how: str


def sights(account: Account) -> Iterable[Sight]:
    admitted = "; ".join(f"{name} with {pods}" for name, pods in account.admitted.items())
    tenants = account.cast.tenants
    yield Sight("admitted as a whole", len(account.admitted) == len(tenants), admitted or "none")
    grown = account.grown
    yield Sight("growth", all(grown[tenant.name] for tenant in tenants), _by_tenant(grown, "pods"))
    partial = {name: f"{each.granted} of {each.wanted}" for name, each in account.partial.items()}
    yield Sight("granted in part", ETL.name in partial, _by_tenant(partial, "pods, when it lacked most"))
    reclaimed = account.reclaimed
    yield Sight("taken back", bool(reclaimed[ETL.name]), _by_tenant(reclaimed, "growth pods"))
    given = {**account.succeeded, **account.scaled_down}
    sums = {name: account.succeeded[name] + account.scaled_down[name] for name in given}
    enough = account.succeeded[BATCH.name] >= account.cast.job_pods and sums.get(ETL.name, 0) > 0
    passed_on = f"; {account.passed_on} pods of others opened afterwards"
    yield Sight("given back", enough and bool(account.passed_on), _by_tenant(sums, "pods") + passed_on)


def problems(observation: Observation, account: Account, unseen: Iterable[str] = ()) -> Iterator[str]:
    """None if everything was as it must be."""
    for sight in sights(account):
        if not sight.seen:
            yield f"{sight.what}: not seen of all that should show it ({sight.how})"
    for title in unseen:
        yield f"it took too long until this was through: {title}"
    if observation.excesses:
        yield f"{len(observation.excesses)} times more was open than there is: {observation.excesses[0]}"
    if observation.ungated:
        yield f"{len(observation.ungated)} pods appeared without a gate, such as {observation.ungated[0]}"
    if account.refusals:
        yield f"{len(account.refusals)} admissions could not be carried out, such as {account.refusals[0]}"
    yield from _left_over(observation, account)


def _left_over(observation: Observation, account: Account) -> Iterator[str]:
    """What should have ended, in the cluster and in Sluice's accounts."""
    for tenant in observation.cast.tenants:
        sums = observation.tenants[tenant.name]
        if sums.waiting or sums.running:
            yield f"{tenant.name} still has {sums.running} pods open and {sums.waiting} behind the gate"
        if account.suspended[tenant.name]:
            yield f"{tenant.application} was taken back as a whole, where growth would have done"
        if (phase := observation.phase(tenant)) not in ("Finished", "gone"):
            yield f"the DynamicWorkload of {tenant.application} says {phase or 'nothing'} at the end"
        if tenant.name not in account.reports:
            yield f"Sluice has reported nothing of queue {tenant.name}"
    for name in account.holding:
        yield f"the account of queue {name} is not empty at the end: {account.reports[name]['usage']}"


def show(console: Console, observation: Observation, account: Account, *, took_s: float) -> None:
    console.print(f"\n[bold]Over after {took_s:.0f} s; {observation.created} pods were created[/bold]\n")
    seen = Table.grid(padding=(0, 2))
    for sight in sights(account):
        mark = "[green]seen[/green]" if sight.seen else "[bold red]not seen[/bold red]"
        seen.add_row(mark, f"[bold]{sight.what}[/bold]", sight.how)
    console.print(seen)
    console.print()
    console.print(_table(observation))
    latencies = account.latencies_ms
    console.print(
        f"\nFrom the news that there is room to the open gate: p50 {percentile(latencies, 0.5):.0f} ms, "
        f"p99 {percentile(latencies, 0.99):.0f} ms, over {len(latencies)} gates."
    )
    capacity = observation.cast.capacity
    peaks = ", ".join(
        f"{amount(resource, observation.peak[resource])} of {amount(resource, capacity[resource])}"
        for resource in ("cpu", "memory")
    )
    if not observation.excesses:
        console.print(
            f"Capacity was never exceeded, as seen from the cluster at every change: at most {peaks}."
        )
    if observation.is_quiet and not account.holding:
        console.print("Nothing is left in the cluster, and the accounts of all three queues are zero.")


def tell_problems(console: Console, found: Iterable[str]) -> bool:
    """Whether there is none."""
    found = list(found)
    for problem in found:
        console.print(f"[bold red]wrong:[/bold red] {escape(problem)}")
    return not found


def _by_tenant(figures: dict[str, int] | dict[str, str], what: str) -> str:
    told = [f"{name} {figure}" for name, figure in figures.items() if figure]
    return f"{', '.join(told)} {what}" if told else "none"


def _table(observation: Observation) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("tenant", no_wrap=True)
    for header in (
        "weight",
        "most pods at a time",
        "mean dominant share",
        "by weight",
        "behind the gate p50",
    ):
        table.add_column(header, justify="right")
    for tenant in observation.cast.tenants:
        share = observation.mean_share(tenant)
        table.add_row(
            tenant.name,
            str(tenant.weight),
            str(observation.tenants[tenant.name].most),
            "-" if share is None else f"{share:.1%} of {tenant.dominant}",
            "-" if share is None else f"{share / tenant.weight:.1%}",
            f"{percentile(observation.waits_s[tenant.name], 0.5):.1f} s",
        )
    table.caption = (
        f"Shares are means over the {observation.contended_s:.0f} s in which all three waited for more; "
        "fair is when they are equal by weight, as far as whole pods can be."
    )
    table.caption_justify = "left"
    return table
