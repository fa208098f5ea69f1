"""What befalls services, servers, and the network between them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from fakes.actuated_cluster import _ANSWERS, Fault
from simulation.system.actions import trouble
from simulation.system.network import Trouble
from simulation.system.processes import Supervisor
from simulation.system.run import SERVICES, System
from sluice.codec import Message
from sluice_scheduler.ports import SCHEMA

Draw = Callable[[Random], dict[str, Any]]
CELL: Final = "default"
#: Up to so many callbacks later a service is hit: any await may be the last.
STEPS_MAX: Final = 200


def _hit(**more: Callable[[Random], Any]) -> Draw:
    def draw(rng: Random) -> dict[str, Any]:
        told = {"service": rng.choice(list(SERVICES)), "steps": rng.randrange(STEPS_MAX)}
        return told | {name: each(rng) for name, each in more.items()}

    return draw


def _drawn(**more: Callable[[Random], Any]) -> Draw:
    return lambda rng: {name: each(rng) for name, each in more.items()}


def _seconds(least: float, most: float) -> Callable[[Random], float]:
    return lambda rng: round(rng.uniform(least, most), 2)


def _one(*values: Any) -> Callable[[Random], Any]:
    return lambda rng: rng.choice(values)


# ---- services


@trouble(6, _hit(down_s=_seconds(0.1, 12)))
def kill(system: System, service: str, steps: int, down_s: float) -> None:
    _soon(system, service, steps, lambda it: it.kill(down_s))


@trouble(4, _hit())
def cancel(system: System, service: str, steps: int) -> None:
    _soon(system, service, steps, Supervisor.cancel)


@trouble(5, _hit(for_s=_one(0.2, 2.0, 5.0, 9.0, 25.0)))
def stop(system: System, service: str, steps: int, for_s: float) -> None:
    """It comes back, later than others may have waited for it."""
    _soon(system, service, steps, lambda it: it.stop(for_s))


@trouble(2, _hit(by_ms=_one(-3_600_000, -2_000, 1_500, 30_000, 600_000)))
def set_clock(system: System, service: str, steps: int, by_ms: int) -> None:
    _soon(system, service, steps, lambda it: setattr(it.clock, "ahead_ms", by_ms))


@trouble(3, _drawn(service=_one(*SERVICES), for_s=_seconds(0.5, 30)))
def begin_another(system: System, service: str, for_s: float) -> None:
    """Another one of a service is begun while the first still runs, as where that cannot be reached."""
    rng = Random(f"{system.loop.time()}/{service}")
    another = Supervisor(system.servers, f"another {service}", SERVICES[service], rng)
    another.start()
    system.loop.call_later(for_s, another.end)


def _soon(system: System, service: str, steps: int, befall: Callable[[Supervisor], None]) -> None:
    found = system.services[service]
    if found.process is not None and found.process.alive:
        found.process.after_steps(steps, lambda: befall(found))


# ---- the network


@trouble(
    5,
    _drawn(
        server=_one("kafka", "redis", "api"),
        loses_requests=_one(0.0, 0.1, 0.5, 1.0),
        loses_answers=_one(0.0, 0.1, 0.5),
        slows=_one(0.0, 0.2, 1.0),
        for_s=_seconds(0.5, 20),
    ),
)
def disturb(
    system: System, *, server: str, loses_requests: float, loses_answers: float, slows: float, for_s: float
) -> None:
    until_s = system.loop.time() + for_s
    system.servers.network.trouble(server, Trouble(until_s, loses_requests, loses_answers, slows))


# ---- the API server


@trouble(
    5, _drawn(kind=_one(*(each.name for each in _ANSWERS)), rate=_one(0.1, 0.5, 1.0), for_s=_seconds(0.5, 20))
)
def fault(system: System, kind: str, rate: float, for_s: float) -> None:
    """429, 409, 500, and 504 though it was applied."""
    system.servers.faults.begin((Fault[kind],), rate=rate, until_s=system.loop.time() + for_s)


@trouble(3, _drawn(for_s=_seconds(0.5, 15)))
def stale(system: System, for_s: float) -> None:
    """Watches say nothing for a while, and then everything."""
    system.servers.faults.stale_until_s = system.loop.time() + for_s


@trouble(3, _drawn(how=_one("forget", "break off", "error", "half-open")))
def unwatch(system: System, how: str) -> None:
    """Watches end: with a 410 or another error, or so that nobody notices."""
    watched = system.api.watched
    if how in ("forget", "error"):
        watched.forget()
    for path in system.api.collections:
        if how == "error":
            watched.say_error(path, 410)
        elif how == "half-open":
            watched.cut(path)
        else:
            watched.break_off(path)


# ---- Redis


@trouble(3, _drawn(writes=_one(1, 2, 5, 20)))
def fail_over(system: System, writes: int) -> None:
    """A replica is promoted without the last writes."""
    system.servers.redis.lose(writes)


@trouble(2, _drawn())
def empty_redis(system: System) -> None:
    system.servers.redis.empty()


@trouble(2, _drawn(by=_one(-1, 1), for_s=_seconds(1, 15)))
def other_version(system: System, by: int, for_s: float) -> None:
    """The ledger is another version's; a newer one goes away again."""
    system.servers.redis.say_schema(CELL, SCHEMA + by)
    if by > 0:
        system.loop.call_later(for_s, system.servers.redis.say_schema, CELL, SCHEMA)


# ---- Kafka


@trouble(3, _drawn(group=_one("scheduler", "actuator-local")))
def rebalance(system: System, group: str) -> None:
    name = f"{system.settings.topics}-{group}"
    if name in system.broker.groups:
        system.broker.rebalance(name)


@trouble(2, _drawn(topic=_one("events", "decisions"), keeps=_one(0, 1, 5, 50)))
def truncate(system: System, topic: str, keeps: int) -> None:
    """Retention is short; but decisions are kept until they are carried out."""
    name = f"{system.settings.topics}.{topic}.v1"
    first = system.broker.at(name, 0).end - keeps
    if topic == "decisions":
        group = system.broker.groups.get(f"{system.settings.topics}-actuator-{system.settings.cluster}")
        passed = group.positions.get(0) if group else None
        first = min(first, passed.offset if passed else 0)
    system.broker.truncate(name, 0, first)


@trouble(
    2,
    _drawn(
        topics=_one(("events", "snapshots"), ("decisions", "snapshots"), ("events", "decisions", "snapshots"))
    ),
)
def make_anew(system: System, topics: list[str]) -> None:
    for topic in topics:
        system.broker.make_anew(f"{system.settings.topics}.{topic}.v1")


@trouble(2, _drawn(topic=_one("events", "decisions"), value=_one("", "{}", "\x00", '{"type": "pod"}')))
def junk(system: System, topic: str, value: str) -> None:
    """Somebody has written what nobody can read."""
    message = Message(key=b"", value=value.encode(), headers=[("ce_type", b"dev.sluice.event.pod.v1")])
    system.broker.append(f"{system.settings.topics}.{topic}.v1", 0, [message])


@trouble(1, _drawn(value=_one("", "{}")))
def junk_first(system: System, value: str) -> None:
    """What nobody can read is the first record of the next owner."""
    for service in system.services.values():
        if service.name.startswith("scheduler"):
            service.kill()
    junk(system, "events", value)
