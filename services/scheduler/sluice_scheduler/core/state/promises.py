"""Promises: the reservations of claims whose victims are still leaving."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_scheduler.core.fairness.claims import Cost, Part, part_of
from sluice_scheduler.core.state.members import application_by_claim, stands_in_no_line
from sluice_scheduler.core.state.offers import offer
from sluice_scheduler.core.stored.entities import Promise

if TYPE_CHECKING:
    from sluice_scheduler.core.state.state import State


def make_promise(state: State, promise: Promise) -> None:
    state.promises.put(promise)
    enter_promise(state, promise)
    state.pass_due = True


def break_promise(state: State, claim: str) -> Promise | None:
    """Give up what is held for a claim; its owner puts it back in line, or admits it."""
    promise = state.promise_for(claim)
    if promise is not None:
        charge_promise(state, promise, -1)
        alike = state.promised[_like(promise)]
        del alike[promise.key]
        if not alike:
            del state.promised[_like(promise)]
        state.promises.drop(promise.key)
        state.pass_due = True
    return promise


def give_up(state: State, promise: Promise) -> None:
    """Victims did not leave in time, or somebody goes before: the claim stands in line again."""
    break_promise(state, promise.claim)
    pod = state.pods.get(promise.claim)
    app = application_by_claim(state, promise.claim)
    if pod is not None and not stands_in_no_line(state, pod):
        offer(state, pod)
    elif app is not None:
        app.settle(state)


def give_up_claim(state: State, claim: str) -> None:
    promise = state.promise_for(claim)
    if promise is not None:
        give_up(state, promise)


def enter_promise(state: State, promise: Promise) -> None:
    """Let it be found with those that wait for the same, in their order."""
    state.promised.setdefault(_like(promise), {})[promise.key] = promise
    charge_promise(state, promise, 1)


def _like(promise: Promise) -> tuple[object, ...]:
    return (promise.queue, promise.pools, promise.cost)


def charge_promise(state: State, promise: Promise, sign: int) -> None:
    cost = promised_cost(promise)
    state.forest.charge(promise.queue, cost, sign, part=promised_part(state, promise))
    state.forest.charge(promise.queue, cost, -sign, leaving=True)


def promised_part(state: State, promise: Promise) -> Part | None:
    """What the pod asks for that a promise is for; what a gang is promised counts as bound to where that is."""
    pod = state.pods.get(promise.claim)
    return part_of(pod) if pod is not None else None


def promised_cost(promise: Promise) -> Cost:
    return tuple(((cluster, pool, resource), amount) for cluster, pool, resource, amount in promise.cost)
