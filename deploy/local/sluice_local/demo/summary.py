"""What came of it: in numbers, and whether anything went wrong."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from sluice_local.demo.audit import Account
from sluice_local.demo.observation import Observation, percentile
from sluice_local.demo.scenario import CAPACITY, PODS, TENANTS
from sluice_local.demo.screen import amount


def problems(observation: Observation, account: Account) -> Iterator[str]:
    """None if everything was as it must be."""
    if observation.finished < PODS:
        yield f"{PODS - observation.finished} of {PODS} pods have not finished"
    if observation.excesses:
        yield f"{len(observation.excesses)} times more was open than there is: {observation.excesses[0]}"
    if observation.ungated:
        yield f"{len(observation.ungated)} pods appeared without a gate, such as {observation.ungated[0]}"
    if observation.lost:
        yield f"{len(observation.lost)} pods went without having finished, such as {observation.lost[0]}"
    if account.refusals:
        yield f"{len(account.refusals)} admissions could not be carried out, such as {account.refusals[0]}"


def show(console: Console, observation: Observation, account: Account, *, took_s: float) -> None:
    console.print(
        f"\n[bold]{observation.finished} of {PODS} pods have finished after {took_s:.0f} s[/bold]\n"
    )
    console.print(_by_tenant(observation))
    latencies = account.latencies_ms
    console.print(
        f"\nFrom the news that there is room to the open gate: p50 {percentile(latencies, 0.5):.0f} ms, "
        f"p99 {percentile(latencies, 0.99):.0f} ms, over {len(latencies)} gates."
    )
    peaks = ", ".join(
        f"{amount(resource, observation.peak[resource])} of {amount(resource, CAPACITY[resource])}"
        for resource in ("cpu", "memory")
    )
    if not observation.excesses:
        console.print(
            f"Capacity was never exceeded, as seen from the cluster at every change: at most {peaks}."
        )


def _by_tenant(observation: Observation) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("tenant")
    headers = ("weight", "finished", "mean dominant share", "by weight", "in the queue p50", "p99")
    for header in headers:
        table.add_column(header, justify="right", no_wrap=True)
    for tenant in TENANTS:
        share = observation.mean_share(tenant)
        waits = observation.waits_s[tenant.name]
        table.add_row(
            tenant.name,
            str(tenant.weight),
            f"{observation.tenants[tenant.name].finished} of {tenant.pods}",
            "-" if share is None else f"{share:.1%} of {tenant.dominant}",
            "-" if share is None else f"{share / tenant.weight:.1%}",
            f"{percentile(waits, 0.5):.1f} s",
            f"{percentile(waits, 0.99):.1f} s",
        )
    table.caption = (
        f"Shares are means over the {observation.contended_s:.0f} s in which all three waited; "
        "fair is when they are equal by weight."
    )
    table.caption_justify = "left"
    return table
