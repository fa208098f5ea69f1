"""Applications with operators on the whole product: the real kinds where their schemas are at hand, and small
simulated operators (`tests/operators` says what each imitates).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from applications import FIRST_SEEN_S, Applications, one_queue
from cluster import Tenants, is_gated, node, observed
from cluster_api import Object, eventually, made
from operators import crds
from operators.dask_operator import DaskOperator, dask_cluster, dask_job
from operators.ray_operator import RayOperator, cluster_spec, ray_cluster, ray_job
from operators.simulated import controlled_by
from operators.spark_operator import SparkOperator, spark_application
from sluice_local import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(autouse=True)
def kinds(running: Stack) -> None:
    crds.install(running.endpoints)


@pytest.fixture
def cluster(tenants: Tenants) -> Iterator[Tenants]:
    """Whether the quota held is for each test to look at."""
    kinds = ("SparkApplication", "RayJob", "RayCluster", "DaskJob", "DaskCluster")
    with one_queue(tenants, *kinds) as cluster:
        yield cluster


def nothing_is_held(tenants: Tenants) -> bool:
    status = tenants.queue_status("a")
    return not status.get("usage") and not status.get("pending")


def gives_all_back(tenants: Tenants, apps: Applications, name: str) -> None:
    """By being deleted. The garbage collector takes its pods."""
    apps.delete(name)
    eventually(lambda: tenants.pods("a") == [], seconds=90)
    eventually(lambda: apps.all_shown() == [], seconds=60)
    eventually(lambda: nothing_is_held(tenants), seconds=30)


def cpu_used(tenants: Tenants) -> str:
    return str(tenants.queue_status("a").get("usage", {}).get("default/cpu", "0"))


class TestSpark:
    def test_an_application_is_admitted_whole_grows_in_part_and_shrinks(
        self, running: Stack, cluster: Tenants
    ) -> None:
        cluster.provide(node("n", cpu="4"))
        apps = Applications(cluster, "a", "SparkApplication")
        with (
            observed(running.endpoints, "a") as observer,
            SparkOperator(running.endpoints, "a") as operator,
        ):
            created = apps.create(spark_application("etl", minExecutors=2, maxExecutors=8))
            assert created["spec"]["suspend"]
            eventually(
                lambda: apps.granted("etl") == {"driver": (1, 1), "executor": (2, 2)}, seconds=FIRST_SEEN_S
            )
            assert apps.phase("etl") == "Running"
            operator.want("etl", 6)
            eventually(lambda: apps.granted("etl") == {"driver": (1, 1), "executor": (3, 6)}, seconds=30)
            assert apps.phase("etl") == "Growing"
            assert apps.condition("etl", "Granted")["message"].startswith(
                "granted 1 of 1 driver, 3 of 6 executor; waits for 1 cpu"
            )
            operator.want("etl", 2)
            eventually(lambda: apps.granted("etl") == {"driver": (1, 1), "executor": (2, 2)}, seconds=30)
            eventually(lambda: cpu_used(cluster) == "3", seconds=30)
            gives_all_back(cluster, apps, "etl")
            assert observer.peak["cpu"] == 4000
            assert observer.born_open == set()

    def test_one_that_does_not_fit_whole_has_no_pods_until_it_does(
        self, running: Stack, cluster: Tenants
    ) -> None:
        cluster.provide(node("n", cpu="5"))
        apps = Applications(cluster, "a", "SparkApplication")
        with observed(running.endpoints, "a") as observer, SparkOperator(running.endpoints, "a"):
            apps.create(spark_application("first", instances=2))
            eventually(
                lambda: apps.granted("first") == {"driver": (1, 1), "executor": (2, 2)}, seconds=FIRST_SEEN_S
            )
            apps.create(spark_application("second", instances=2))
            eventually(lambda: apps.phase("second") == "Pending", seconds=30)
            assert "waits for 3 cpu" in apps.status("second")["reason"]
            assert apps.get("second")["spec"]["suspend"]
            assert {p["metadata"]["name"].partition("-")[0] for p in cluster.pods("a")} == {"first"}
            apps.delete("first")
            eventually(lambda: apps.granted("second") == {"driver": (1, 1), "executor": (2, 2)}, seconds=90)
            assert not apps.get("second")["spec"]["suspend"]
            gives_all_back(cluster, apps, "second")
            assert observer.peak["cpu"] <= 5000

    def test_a_schedule_is_left_alone_and_its_runs_are_admitted_on_their_own(
        self, running: Stack, cluster: Tenants
    ) -> None:
        cluster.provide(node("n", cpu="4"))
        apps = Applications(cluster, "a", "SparkApplication")
        template = spark_application("x", instances=1)["spec"]
        path = "/apis/sparkoperator.k8s.io/v1beta2/namespaces/a/scheduledsparkapplications"
        schedule = {
            "apiVersion": "sparkoperator.k8s.io/v1beta2",
            "kind": "ScheduledSparkApplication",
            "metadata": {"name": "nightly"},
            "spec": {"schedule": "0 3 * * *", "template": template},
        }
        created = made(crds.create(cluster.api, path, schedule))
        with SparkOperator(running.endpoints, "a"):
            for number in (1, 2):  # as the operator starts them
                run = spark_application(f"nightly-{number}", instances=1)
                run["metadata"]["ownerReferences"] = [controlled_by({**schedule, **created})]
                assert apps.create(run)["spec"]["suspend"]
            for number in (1, 2):
                eventually(lambda n=number: apps.phase(f"nightly-{n}") == "Running", seconds=FIRST_SEEN_S)
            found = made(cluster.api.get(f"{path}/nightly"))
            assert found["spec"] == created["spec"]
            assert found["metadata"].get("annotations", {}) == {}
            assert "suspend" not in found["spec"]["template"]
            kinds = {each["spec"]["application"]["kind"] for each in shown(cluster)}
            assert kinds == {"SparkApplication"}
            apps.delete("nightly-1")
            gives_all_back(cluster, apps, "nightly-2")


def shown(tenants: Tenants) -> list[Object]:
    path = "/apis/sluice.dev/v1alpha1/namespaces/a/dynamicworkloads"
    return list(made(tenants.api.get(path))["items"])


class TestRay:
    def test_one_group_grows_while_another_shrinks(self, running: Stack, cluster: Tenants) -> None:
        """The autoscaler changes both at once. Elsewhere that was accounted wrongly (kueue#9329)."""
        cluster.provide(node("n", cpu="6500m"))  # the head asks for 1500m, with the autoscaler beside it
        apps = Applications(cluster, "a", "RayCluster")
        with (
            observed(running.endpoints, "a") as observer,
            RayOperator(running.endpoints, "a") as operator,
        ):
            spec = cluster_spec(("small", 1, 1, 9), ("big", 0, 3, 9), scales=True)
            assert apps.create(ray_cluster("ray", spec))["spec"]["suspend"]
            eventually(
                lambda: apps.granted("ray") == {"head": (1, 1), "small": (1, 1), "big": (3, 3)},
                seconds=FIRST_SEEN_S,
            )
            eventually(lambda: cpu_used(cluster) == "5.5", seconds=30)
            operator.scale("ray", small=6, big=0)
            eventually(
                lambda: apps.granted("ray") == {"head": (1, 1), "small": (5, 6), "big": (0, 0)}, seconds=60
            )
            assert apps.phase("ray") == "Growing"
            assert "small" in apps.condition("ray", "Granted")["message"]
            eventually(lambda: cpu_used(cluster) == "6.5", seconds=30)
            operator.scale("ray", small=2, big=2)
            eventually(
                lambda: apps.granted("ray") == {"head": (1, 1), "small": (2, 2), "big": (2, 2)}, seconds=60
            )
            eventually(lambda: cpu_used(cluster) == "5.5", seconds=30)
            assert apps.phase("ray") == "Running"
            gives_all_back(cluster, apps, "ray")
            assert observer.peak["cpu"] == 6500
            assert observer.born_open == set()

    def test_replicas_of_two_hosts_grow_whole_and_it_is_shown_where_they_wait(
        self, running: Stack, cluster: Tenants
    ) -> None:
        """There is room for one more pod, and none for one more replica."""
        cluster.provide(node("n", cpu="6500m"))
        apps = Applications(cluster, "a", "RayCluster")
        with (
            observed(running.endpoints, "a") as observer,
            RayOperator(running.endpoints, "a") as operator,
        ):
            apps.create(ray_cluster("ray", cluster_spec(("big", 1, 1, 9), scales=True, hosts=2)))
            eventually(lambda: apps.granted("ray") == {"head": (1, 1), "big": (2, 2)}, seconds=FIRST_SEEN_S)
            assert apps.shown("ray")["spec"]["applicationSpec"]["workerGroupSpecs"][0]["numOfHosts"] == 2
            assert "queuePosition" not in apps.status("ray")
            operator.scale("ray", big=4)
            eventually(lambda: apps.granted("ray") == {"head": (1, 1), "big": (4, 8)}, seconds=60)
            assert "waits for 2 cpu" in apps.status("ray")["reason"]
            assert apps.status("ray")["queuePosition"] == 1
            eventually(lambda: cpu_used(cluster) == "5.5", seconds=30)
            gives_all_back(cluster, apps, "ray")
            assert observer.peak["cpu"] == 5500

    def test_what_a_job_controls_is_charged_to_the_job(self, running: Stack, cluster: Tenants) -> None:
        cluster.provide(node("n", cpu="4"))
        jobs = Applications(cluster, "a", "RayJob")
        clusters = Applications(cluster, "a", "RayCluster")
        with (
            observed(running.endpoints, "a") as observer,
            RayOperator(running.endpoints, "a") as operator,
        ):
            operator.submits_for = "8s"
            assert jobs.create(ray_job("report", cluster_spec(("small", 2, 2, 2))))["spec"]["suspend"]
            eventually(
                lambda: jobs.granted("report") == {"head": (1, 1), "small": (2, 2), "submitter": (1, 1)},
                seconds=FIRST_SEEN_S,
            )
            eventually(lambda: clusters.runs("report"), seconds=30)
            submitters = Applications(cluster, "a", "Job")
            eventually(lambda: submitters.runs("report"), seconds=30)
            assert [each["spec"]["application"]["kind"] for each in shown(cluster)] == ["RayJob"]
            assert cpu_used(cluster) == "3.5"
            eventually(lambda: jobs.phase("report") == "Finished", seconds=60)
            eventually(lambda: nothing_is_held(cluster), seconds=60)
            gives_all_back(cluster, jobs, "report")
            assert observer.peak["cpu"] == 3500
            assert observer.born_open == set()


class TestDask:
    def test_a_cluster_without_a_field_to_suspend_it_waits_at_its_gates(
        self, running: Stack, cluster: Tenants
    ) -> None:
        cluster.provide(node("n", cpu="3"))
        apps = Applications(cluster, "a", "DaskCluster")
        with observed(running.endpoints, "a") as observer, DaskOperator(running.endpoints, "a"):
            created = apps.create(dask_cluster("first", workers=2))
            assert "suspend" not in created["spec"]
            eventually(
                lambda: apps.granted("first") == {"scheduler": (1, 1), "worker": (2, 2)}, seconds=FIRST_SEEN_S
            )
            assert apps.get("first")["metadata"]["annotations"]["sluice.dev/released"] == "true"
            apps.create(dask_cluster("second", workers=1))
            eventually(lambda: apps.phase("second") == "Pending", seconds=30)
            eventually(lambda: len(cluster.pods("a")) == 5, seconds=30)
            assert all(is_gated(p) for p in cluster.pods("a") if p["metadata"]["name"].startswith("second"))
            apps.delete("first")
            eventually(lambda: apps.granted("second") == {"scheduler": (1, 1), "worker": (1, 1)}, seconds=90)
            gives_all_back(cluster, apps, "second")
            assert observer.peak["cpu"] == 3000
            assert observer.born_open == set()

    def test_a_cluster_grows_in_part_and_shrinks(self, running: Stack, cluster: Tenants) -> None:
        """Each worker has a Deployment of its own, so growth is more Deployments."""
        cluster.provide(node("n", cpu="4"))
        apps = Applications(cluster, "a", "DaskCluster")
        with (
            observed(running.endpoints, "a") as observer,
            DaskOperator(running.endpoints, "a") as operator,
        ):
            apps.create(dask_cluster("notebook", workers=1))
            eventually(
                lambda: apps.granted("notebook") == {"scheduler": (1, 1), "worker": (1, 1)},
                seconds=FIRST_SEEN_S,
            )
            operator.scale("notebook", workers=5)
            eventually(
                lambda: apps.granted("notebook") == {"scheduler": (1, 1), "worker": (3, 5)}, seconds=30
            )
            assert apps.phase("notebook") == "Growing"
            operator.scale("notebook", workers=1)
            eventually(
                lambda: apps.granted("notebook") == {"scheduler": (1, 1), "worker": (1, 1)}, seconds=60
            )
            eventually(lambda: cpu_used(cluster) == "2", seconds=30)
            gives_all_back(cluster, apps, "notebook")
            assert observer.peak["cpu"] == 4000

    def test_a_job_waits_whole_with_its_cluster_and_ends_with_it(
        self, running: Stack, cluster: Tenants
    ) -> None:
        """Of three pods at least: its runner, its cluster's scheduler and a worker."""
        cluster.provide(node("n", cpu="4"))
        jobs = Applications(cluster, "a", "DaskJob")
        blocker = Applications(cluster, "a", "DaskCluster")
        whole = {"runner": (1, 1), "scheduler": (1, 1), "worker": (2, 2)}
        with observed(running.endpoints, "a") as observer, DaskOperator(running.endpoints, "a"):
            blocker.create(dask_cluster("other", workers=1))
            eventually(lambda: blocker.phase("other") == "Running", seconds=FIRST_SEEN_S)
            jobs.create(dask_job("report", workers=2))
            eventually(lambda: jobs.phase("report") == "Pending", seconds=FIRST_SEEN_S)
            eventually(lambda: len(cluster.pods("a")) == 6, seconds=30)
            assert "waits for 3 cpu" in jobs.status("report")["reason"]
            assert all(is_gated(p) for p in cluster.pods("a") if p["metadata"]["name"].startswith("report"))
            blocker.delete("other")
            eventually(lambda: jobs.granted("report") == whole, seconds=90)
            assert cpu_used(cluster) == "4"
            assert [each["spec"]["application"]["kind"] for each in shown(cluster)] == ["DaskJob"]
            path = "/api/v1/namespaces/a/pods/report-runner/status"
            eventually(lambda: jobs.get("report")["status"]["jobStatus"] == "Running", seconds=30)
            made(cluster.api.merge(path, {"status": {"phase": "Succeeded"}}))
            eventually(lambda: jobs.phase("report") == "Finished", seconds=60)
            eventually(lambda: nothing_is_held(cluster), seconds=60)
            gives_all_back(cluster, jobs, "report")
            assert observer.peak["cpu"] == 4000
            assert observer.born_open == set()
