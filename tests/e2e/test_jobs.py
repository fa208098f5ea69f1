"""Jobs on the whole product: suspended when they are made, admitted as a whole, growing, giving back."""

from __future__ import annotations

from typing import Any

import pytest
from cluster import Tenants, is_gated, node, observed, pod, pool, queue
from cluster_api import Object, eventually, made
from sluice_local import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def job(name: str, *, parallelism: int, completions: int | None, run_for: str, **annotations: str) -> Object:
    template = pod("x", run_for=run_for)
    metadata = {"annotations": template["metadata"]["annotations"]}
    spec: dict[str, Any] = {
        "parallelism": parallelism,
        "template": {"metadata": metadata, "spec": template["spec"]},
    }
    if completions is not None:
        spec["completions"] = completions
    named = {f"sluice.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    return {"metadata": {"name": name, "annotations": named}, "spec": spec}


class Applications:
    """Objects of one kind in one tenant's namespace."""

    def __init__(self, tenants: Tenants, namespace: str, path: str, kind: str) -> None:
        self.tenants = tenants
        self.api = tenants.api
        self.namespace = namespace
        group, _, plural = path.rpartition("/")
        self.path = f"/apis/{group}/namespaces/{namespace}/{plural}"
        self.kind = kind

    def create(self, obj: Object) -> Object:
        return made(self.api.create(self.path, obj))

    def get(self, name: str) -> Object:
        return made(self.api.get(f"{self.path}/{name}"))

    def shown(self, name: str) -> Object:
        """The DynamicWorkload of an application; empty while there is none."""
        path = f"/apis/sluice.dev/v1alpha1/namespaces/{self.namespace}/dynamicworkloads"
        return next(
            (
                each
                for each in made(self.api.get(path))["items"]
                if each["spec"]["application"]["name"] == name
                and each["spec"]["application"]["kind"] == self.kind
            ),
            {},
        )

    def status(self, name: str) -> Object:
        return dict(self.shown(name).get("status", {}))

    def phase(self, name: str) -> str:
        return str(self.status(name).get("phase", ""))

    def open_pods(self) -> list[str]:
        pods = self.tenants.pods(self.namespace)
        return [
            p["metadata"]["name"]
            for p in pods
            if not is_gated(p) and p["status"]["phase"] not in ("Succeeded", "Failed")
        ]


def jobs_of(tenants: Tenants, namespace: str) -> Applications:
    return Applications(tenants, namespace, "batch/v1/jobs", "Job")


def ended(obj: Object) -> bool:
    return any(
        each["type"] in ("Complete", "Failed") and each["status"] == "True"
        for each in obj.get("status", {}).get("conditions", [])
    )


def test_a_job_is_suspended_admitted_and_shown(tenants: Tenants) -> None:
    tenants.provide(pool(), node("n", cpu="4"), queue("a"))
    tenants.settle("a")
    jobs = jobs_of(tenants, "a")
    created = jobs.create(job("j", parallelism=3, completions=3, run_for="2s"))
    assert created["spec"]["suspend"]
    eventually(lambda: jobs.phase("j") == "Running", seconds=30)
    shown = jobs.shown("j")
    assert shown["metadata"]["ownerReferences"][0]["uid"] == created["metadata"]["uid"]
    assert shown["spec"]["podSets"][0]["requests"] == {"cpu": "1", "memory": "1Gi"}
    eventually(lambda: ended(jobs.get("j")), seconds=60)
    eventually(lambda: jobs.phase("j") == "Finished", seconds=30)
    eventually(lambda: tenants.queue_status("a").get("usage") == {}, seconds=30)


def test_what_somebody_else_releases_is_set_back(tenants: Tenants) -> None:
    tenants.provide(pool(), node("n", cpu="4"), queue("a"))
    tenants.settle("a")
    jobs = jobs_of(tenants, "a")
    jobs.create(job("big", parallelism=8, completions=8, run_for="2s", min_count="8"))
    answer = made(jobs.api.merge(f"{jobs.path}/big", {"spec": {"suspend": False}}))
    assert answer["spec"]["suspend"]
    eventually(lambda: jobs.phase("big") == "Pending", seconds=30)
    assert "waits for 8 cpu" in jobs.status("big")["reason"]
    assert tenants.pods("a") == []


def test_a_job_grows_and_gives_back_and_a_waiting_one_starts_by_that(
    running: Stack, tenants: Tenants
) -> None:
    tenants.provide(pool(), node("n", cpu="4"), queue("a"))
    tenants.settle("a")
    jobs = jobs_of(tenants, "a")
    with observed(running.endpoints, "a") as observer:
        jobs.create(job("wide", parallelism=6, completions=6, run_for="4s"))
        eventually(lambda: jobs.phase("wide") == "Growing", seconds=30)
        status = jobs.status("wide")
        assert (
            status["podSets"] == [{"name": "main", "desired": 6, "admitted": 4, "running": 4, "reclaimed": 0}]
            or status["podSets"][0]["admitted"] == 4
        )
        granted = next(each for each in status["conditions"] if each["type"] == "Granted")
        assert granted["status"] == "False"
        assert granted["message"].startswith("granted 4 of 6 main; waits for 1 cpu")
        jobs.create(job("next", parallelism=1, completions=1, run_for="1s"))
        eventually(lambda: ended(jobs.get("wide")) and ended(jobs.get("next")), seconds=90)
        assert observer.peak["cpu"] <= 4000
    eventually(lambda: tenants.queue_status("a").get("usage") == {}, seconds=30)
