"""What the demo makes of Sluice's logs, and says of it at the end."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from sluice_local.demo import summary
from sluice_local.demo.audit import Account, Partial
from sluice_local.demo.observation import Observation
from sluice_local.demo.scenario import BATCH, ETL, JOB_PODS, ML, TENANTS, Tenant
from sluice_local.demo.story import Story


def line(
    type_: str, record: dict[str, Any], *, seq: int = 0, reason: str = "", ms: int = 1000
) -> dict[str, Any]:
    where = {"seq": seq, "timeMs": ms, "subject": "x", "sentence": "because", "reason": reason}
    return {"type": type_, "record": {"timeMs": ms, **record}, **where}


def opened(account: Account, tenant: Tenant, uid: str, *, reason: str = "Fits") -> None:
    account.take(line("admit", {"namespace": tenant.namespace, "uid": uid}, reason=reason))


def pod(account: Account, tenant: Tenant, uid: str, change: str, phase: str) -> None:
    facts = {"namespace": tenant.namespace, "uid": uid, "change": change, "pod": {"phase": phase}}
    account.take(line("pod", facts))


def all_of_it() -> tuple[Observation, Account]:
    """A run in which everything was seen."""
    observation, account = Observation(), Account()
    for tenant in TENANTS:
        account.take(line("admitworkload", {"namespace": tenant.namespace, "reserved": {"a": 1, "b": 2}}))
        account.reports[tenant.name] = {"name": tenant.name, "usage": {}}
        observation.workloads[tenant.name] = {"status": {"phase": "Finished"}}
    for number in range(JOB_PODS):
        opened(account, BATCH, f"b{number}")
        pod(account, BATCH, f"b{number}", "MODIFIED", "Succeeded")
    opened(account, ETL, "taken")
    account.take(line("evict", {"namespace": ETL.namespace, "uid": "taken"}, reason="Reclaimed"))
    pod(account, ETL, "taken", "DELETED", "Running")
    opened(account, ETL, "left")
    pod(account, ETL, "left", "DELETED", "Running")
    opened(account, ML, "grown", reason="Reclaimed")
    granted = [{"name": "executor", "desired": 40, "admitted": 31}]
    report = {"namespace": ETL.namespace, "phase": "Growing", "podSets": granted, "why": "waits for 1 cpu"}
    account.take(line("reportworkload", report))
    return observation, account


def test_what_was_seen_is_counted() -> None:
    observation, account = all_of_it()
    assert account.admitted["etl"] == "1 a, 2 b"
    assert account.partial == {"etl": Partial(31, 40)}
    assert account.reclaimed == {"etl": 1}
    assert account.scaled_down == {"etl": 1}, "what was taken back was not given back"
    assert account.succeeded == {"batch": JOB_PODS}
    assert account.grown == {"etl": 2, "ml": 1, "batch": JOB_PODS}
    assert list(summary.problems(observation, account)) == []


def test_a_pod_that_ends_twice_is_given_back_once() -> None:
    account = Account()
    opened(account, BATCH, "p")
    pod(account, BATCH, "p", "MODIFIED", "Succeeded")
    pod(account, BATCH, "p", "DELETED", "Succeeded")
    pod(account, BATCH, "never opened", "DELETED", "Pending")
    assert (account.succeeded, account.scaled_down) == ({"batch": 1}, {})


def test_what_did_not_happen_is_said() -> None:
    observation, account = all_of_it()
    account.reclaimed.clear()
    del account.admitted["ml"]
    wrong = list(summary.problems(observation, account, ["a scene"]))
    assert [each.partition(":")[0] for each in wrong] == [
        "admitted as a whole",
        "taken back",
        "it took too long until this was through",
    ]


def test_what_is_left_over_is_said() -> None:
    observation, account = all_of_it()
    account.reports["ml"] = {"name": "ml", "usage": {"default/cpu": 1}}
    observation.tenants["etl"].waiting = 1
    observation.workloads["batch"] = {"status": {"phase": "Running"}}
    wrong = "; ".join(summary.problems(observation, account))
    assert "etl still has 0 pods open and 1 behind the gate" in wrong
    assert "the account of queue ml is not empty" in wrong
    assert "the DynamicWorkload of Job/batch says Running" in wrong


def test_a_gates_latency_is_from_the_news_to_the_outcome() -> None:
    account = Account()
    for seq in (7, 8, 10):
        account.take(line("admit", {"namespace": ETL.namespace, "uid": str(seq)}, seq=seq))
    account.take(line("admit", {"namespace": "somebody-elses", "uid": "9"}, seq=9))
    for seq, result in ((7, "Applied"), (8, "Rejected"), (9, "Applied"), (10, "Gone")):
        outcome = {"seq": seq, "result": result, "message": "no"}
        account.take(line("outcome", outcome, seq=seq, ms=1042))
    account.take({"error": "unreadable"})
    assert (account.opened, account.latencies_ms) == (1, [42])
    assert account.refusals == ["decision 8: Rejected no"], "a pod that was deleted meanwhile is no trouble"


def test_what_happens_at_once_is_one_line() -> None:
    story = Story()
    for ms in (0, 100, 200):
        story.count(ms, ETL, "taken back", "of its growth", f"at {ms}")
        story.replace(ms, ML, "granted", str(ms))
    assert [str(entry) for entry in story.latest(9)] == ["3 pods of its growth: at 200", "200"]
    story.count(9_000, ETL, "taken back", "of its growth", "later")
    assert len(story.latest(9)) == 3


def test_a_line_is_told_when_it_is_final_and_once() -> None:
    story = Story()
    story.tell(0, ETL, "admitted", "first")
    story.count(1_000, ETL, "grown", "more", "why")
    assert story.settled(1_000) == []
    assert [str(entry) for entry in story.settled(2_600)] == ["first"]
    assert [str(entry) for entry in story.settled(9_000)] == ["1 pod more: why"]
    assert story.settled(9_000) == []


def growing(account: Account, tenant: Tenant, admitted: int, desired: int, *, ms: int = 1000) -> None:
    sets = [{"name": "executor", "desired": desired, "admitted": admitted}]
    phase = "Growing" if admitted < desired else "Running" if desired else "Finished"
    facts = {"namespace": tenant.namespace, "phase": phase, "podSets": sets, "why": "waits for 1 cpu"}
    account.take(line("reportworkload", facts, ms=ms))


def test_what_an_application_lacked_is_not_the_last_that_is_said_of_it() -> None:
    """Its status lags behind by a tick: what it gave up since comes before the word that settles it."""
    account = Account()
    opened(account, ETL, "e1")
    growing(account, ETL, 24, 32, ms=1_000)
    pod(account, ETL, "e1", "DELETED", "Running")
    assert not account.is_settled
    growing(account, ETL, 3, 3, ms=2_000)
    assert account.is_settled
    assert [str(entry) for entry in account.story.latest(3)] == [
        "24 of 32 executor; waits for 1 cpu",
        "1 pod no longer needed",
        "all 3 pods that it asks for",
    ]


def test_a_lack_ends_with_its_application() -> None:
    account = Account()
    for tenant in (ETL, ML):
        growing(account, tenant, 24, 32)
    growing(account, ETL, 0, 0)
    assert not account.is_settled
    gone = {"namespace": ML.namespace, "name": "ml", "change": "DELETED", "workload": None}
    account.take(line("workload", gone))
    assert account.is_settled
    assert [entry.what for entry in account.story.latest(2)] == ["ended", "ended"]


def test_who_gets_what_is_taken_back_is_said() -> None:
    account = Account()
    evict = line("evict", {"namespace": ETL.namespace, "uid": "p"}, reason="Reclaimed")
    account.take(
        evict | {"sentence": "etl has 42.2% by weight and deserves 33.3%, ml has 28.1% and deserves 33.3%"}
    )
    (entry,) = account.story.latest(1)
    assert str(entry).startswith("1 pod of its growth, for ml: etl has 42.2%")


def test_the_summary_fits_into_a_terminal() -> None:
    observation, account = all_of_it()
    console = Console(width=80)
    with console.capture() as capture:
        summary.show(console, observation, account, took_s=58)
    rows = capture.get().splitlines()
    assert max(map(len, rows)) <= 80
    for tenant in TENANTS:
        assert any(row.split()[:2] == [tenant.name, str(tenant.weight)] for row in rows)
