"""What came of it, beside what `make demo` tells: results, and who held how much of what he deserved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from sluice_local.demo import summary
from sluice_local.demo.audit import Account
from sluice_local.demo.observation import Observation
from sluice_local.demo.real.results import Result
from sluice_local.demo.real.scenario import CAST, ML, TASKS
from sluice_local.demo.screen import amount, reported


@dataclass(frozen=True, slots=True)
class Proof:
    """What `sluice audit verify --replay` says."""

    holds: bool
    text: str


def problems(account: Account, results: Mapping[str, Result], proof: Proof) -> Iterator[str]:
    """Beside those of `make demo`; none if everything was as it must be."""
    for name, result in results.items():
        if not result.is_right:
            printed = f"{len(result.parts)} of {TASKS[name].parts} parts, {result.found} in sum"
            yield f"{name}'s result is not right: {printed}; {result.trouble or 'see the logs of its pods'}"
    if ML.name not in account.partial:
        yield "Ray's autoscaler was never granted a part of what it wanted"
    if not proof.holds:
        yield f"the decisions are not proved: {proof.text}"


def show(
    console: Console,
    observation: Observation,
    account: Account,
    results: Mapping[str, Result],
    proof: Proof,
    *,
    took_s: float,
) -> None:
    summary.show(console, observation, account, took_s=took_s)
    console.print()
    console.print(_held(observation, account))
    console.print(
        "Deserved is the least that it was while the tenant wanted more. What nobody else wants may be held beyond "
        "that, until somebody does.\n"
    )
    console.print(_computed(results))
    console.print(f"\n[bold]sluice audit verify --replay[/bold]\n{proof.text}", soft_wrap=True)


def _held(observation: Observation, account: Account) -> Table:
    table = _table("tenant", "pods at most", "cpu at most", "deserved", "taken back")
    for tenant in CAST.tenants:
        sums = observation.tenants[tenant.name]
        deserved = reported(account.deserved.get(tenant.name, {}), "cpu")
        table.add_row(
            tenant.name,
            str(sums.most),
            amount("cpu", sums.most_held.get("cpu", 0)),
            amount("cpu", deserved) if deserved else "-",
            str(account.reclaimed[tenant.name]),
        )
    return table


def _computed(results: Mapping[str, Result]) -> Table:
    table = _table("tenant", "computed", "found", "")
    for name, result in results.items():
        verdict = "[green]right[/green]" if result.is_right else "[bold red]not right[/bold red]"
        table.add_row(name, TASKS[name].what, str(result.found) if result.parts else "-", verdict)
    return table


def _table(*headers: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for header in headers:
        table.add_column(header)
    return table
