"""What applications ask for, by the rules of their operators."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples_of_applications import (
    GI,
    MI,
    Json,
    annotated,
    condition,
    counts,
    dask,
    dask_job,
    job,
    pytorch,
    ray_cluster,
    ray_job,
    read,
    requests,
    spark,
    status,
    template,
    tf,
    workers,
)
from sluice_watcher.applications.fields import ApplicationError

MAX = 2**31 - 1
DYNAMIC = {"enabled": True}
DYNAMIC_CONF = {"spark.dynamicAllocation.enabled": "true"}

COUNTS: dict[str, tuple[Json, dict[str, tuple[int, int, int | None]]]] = {
    "a Job of one pod": (job(), {"main": (1, 1, 1)}),
    "a Job's pods are growth but one": (job(parallelism=5), {"main": (1, 5, 5)}),
    "no more pods than have to succeed": (job(parallelism=5, completions=3), {"main": (1, 3, 3)}),
    "a Job that wants more at once": (annotated(job(parallelism=5), min_count="4"), {"main": (4, 5, 5)}),
    "nor more than there are": (annotated(job(parallelism=5), min_count="9"), {"main": (5, 5, 5)}),
    "a Job set to nothing": (job(parallelism=0), {"main": (0, 0, 0)}),
    "Spark's operator starts one executor": (spark(), {"driver": (1, 1, 1), "executor": (1, 1, 1)}),
    "a fixed number of executors starts as one": (
        spark(executor={"instances": 4}),
        {"driver": (1, 1, 1), "executor": (4, 4, 4)},
    ),
    "unless its author says fewer will do": (
        annotated(spark(conf={"spark.executor.instances": "4"}), min_count="0"),
        {"driver": (1, 1, 1), "executor": (1, 4, 4)},
    ),
    "an executor is reserved though none is asked for": (
        spark(dynamicAllocation=DYNAMIC),
        {"driver": (1, 1, 1), "executor": (1, 1, None)},
    ),
    "dynamic allocation": (
        spark(dynamicAllocation={**DYNAMIC, "minExecutors": 2, "initialExecutors": 5, "maxExecutors": 20}),
        {"driver": (1, 1, 1), "executor": (2, 5, 20)},
    ),
    "the largest of minimum, initial and instances": (
        spark(
            executor={"instances": 7}, dynamicAllocation={**DYNAMIC, "minExecutors": 2, "initialExecutors": 5}
        ),
        {"driver": (1, 1, 1), "executor": (2, 7, None)},
    ),
    "initial executors stay below the maximum": (
        spark(dynamicAllocation={**DYNAMIC, "initialExecutors": 9, "maxExecutors": 3}),
        {"driver": (1, 1, 1), "executor": (1, 3, 3)},
    ),
    "dynamic allocation as a setting": (
        spark(conf={**DYNAMIC_CONF, "spark.dynamicAllocation.minExecutors": "3"}),
        {"driver": (1, 1, 1), "executor": (3, 3, None)},
    ),
    "dynamic allocation that is off does not count": (
        spark(
            dynamicAllocation={"enabled": False, "minExecutors": 8},
            conf={**DYNAMIC_CONF, "spark.dynamicAllocation.minExecutors": "3"},
        ),
        {"driver": (1, 1, 1), "executor": (3, 3, None)},
    ),
    "in client mode the driver is no pod": (spark(mode="client"), {"executor": (1, 1, 1)}),
    "a Ray cluster of fixed size": (
        ray_cluster(workers(replicas=3, minReplicas=1)),
        {"head": (1, 1, 1), "small": (3, 3, 3)},
    ),
    "a Ray cluster that scales": (
        ray_cluster(workers(replicas=3, minReplicas=1, maxReplicas=9), enableInTreeAutoscaling=True),
        {"head": (1, 1, 1), "small": (1, 3, 9)},
    ),
    "and has no bound": (
        ray_cluster(workers(replicas=3), enableInTreeAutoscaling=True),
        {"head": (1, 1, 1), "small": (0, 3, None)},
    ),
    "a replica is as many pods as hosts": (
        ray_cluster(
            workers(replicas=3, minReplicas=1, maxReplicas=5, numOfHosts=4), enableInTreeAutoscaling=True
        ),
        {"head": (1, 1, 1), "small": (4, 12, 20)},
    ),
    "replicas stay within their bounds": (
        ray_cluster(
            workers("low", replicas=1, minReplicas=2),
            workers("high", replicas=9, maxReplicas=5),
            workers("odd", replicas=3, minReplicas=7, maxReplicas=2),
            enableInTreeAutoscaling=True,
        ),
        {"head": (1, 1, 1), "low": (2, 2, None), "high": (0, 5, 5), "odd": (2, 2, 2)},
    ),
    "a group that is suspended by itself": (
        ray_cluster(workers(replicas=3, minReplicas=1, suspend=True)),
        {"head": (1, 1, 1), "small": (0, 0, 0)},
    ),
    "a RayJob has a submitter": (
        ray_job(workers(replicas=2)),
        {"head": (1, 1, 1), "small": (2, 2, 2), "submitter": (1, 1, 1)},
    ),
    "except where somebody else submits": (ray_job(submissionMode="HTTPMode"), {"head": (1, 1, 1)}),
    "in another's cluster a RayJob is its submitter": (
        ray_job(clusterSelector={"ray.io/cluster": "shared"}),
        {"submitter": (1, 1, 1)},
    ),
    "replicas train together": (pytorch(), {"master": (1, 1, 1), "worker": (3, 3, 3)}),
    "one is what nobody wrote": (pytorch(None, None), {"master": (1, 1, 1), "worker": (1, 1, 1)}),
    "elastic training": (
        pytorch(elasticPolicy={"minReplicas": 2, "maxReplicas": 6}),
        {"master": (1, 1, 1), "worker": (2, 3, 6)},
    ),
    "parameter servers": (
        tf(PS=2, Chief=1, Worker=4),
        {"ps": (2, 2, 2), "chief": (1, 1, 1), "worker": (4, 4, 4)},
    ),
    "a Dask cluster starts with one worker": (dask(3), {"scheduler": (1, 1, 1), "worker": (1, 3, None)}),
    "also where its autoscaler begins with none": (dask(0), {"scheduler": (1, 1, 1), "worker": (1, 1, None)}),
    "a DaskJob has a runner": (
        dask_job(2),
        {"runner": (1, 1, 1), "scheduler": (1, 1, 1), "worker": (1, 2, None)},
    ),
}


@pytest.mark.parametrize("case", COUNTS)
def test_counts(case: str) -> None:
    application, expected = COUNTS[case]
    assert counts(application) == expected


def cores_and_memory(application: Json, pod_set: str) -> tuple[int, int]:
    asked = requests(application, pod_set)
    return asked["cpu"], asked["memory"] // MI


#: conf and fields → MiB of driver and executor.
SPARK_MEMORY: dict[str, tuple[Json, int, int]] = {
    "a gigabyte and the least beside it": (spark(), 1408, 1408),
    "as observed of a real driver": (spark(conf={"spark.executor.memory": "512m"}), 1408, 896),
    "a tenth, cut off": (
        spark(driver={"memory": "8g"}, executor={"memory": "4001m"}),
        8192 + 819,
        4001 + 400,
    ),
    "two fifths beside Python": (
        spark(type="Python", mainApplicationFile="s3a://jobs/etl.py", executor={"memory": "4g"}),
        1024 + 409,
        4096 + 1638,
    ),
    "the file says what it is": (
        spark(type="Scala", mainApplicationFile="local:///app/model.R", executor={"memory": "4g"}),
        1024 + 409,
        4096 + 1638,
    ),
    "a factor of its own": (spark(memoryOverheadFactor="0.5", executor={"memory": "2g"}), 1536, 3072),
    "settings win over that field": (
        spark(memoryOverheadFactor="0.5", conf={"spark.kubernetes.memoryOverheadFactor": "1"}),
        2048,
        2048,
    ),
    "a role's factor wins over both": (
        spark(
            conf={"spark.executor.memoryOverheadFactor": "1", "spark.kubernetes.memoryOverheadFactor": "0.5"}
        ),
        1536,
        2048,
    ),
    "overhead as an amount": (
        spark(driver={"memoryOverhead": "100m"}, executor={"memoryOverhead": "1"}),
        1124,
        1025,
    ),
    "fields win over settings": (
        spark(executor={"memory": "2g"}, conf={"spark.executor.memory": "9g"}),
        1408,
        2048 + 384,
    ),
    "a lower least": (spark(conf={"spark.executor.minMemoryOverhead": "64m"}), 1408, 1024 + 102),
    "off the heap": (
        spark(conf={"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": str(GI)}),
        1408,
        2432,
    ),
    "off the heap, but not enabled": (spark(conf={"spark.memory.offHeap.size": "1g"}), 1408, 1408),
    "Python's own": (
        spark(mainApplicationFile="a.py", conf={"spark.executor.pyspark.memory": "512m"}),
        1024 + 409,
        1024 + 409 + 512,
    ),
    "which the JVM has none of": (spark(conf={"spark.executor.pyspark.memory": "512m"}), 1408, 1408),
}


@pytest.mark.parametrize("case", SPARK_MEMORY)
def test_spark_memory(case: str) -> None:
    application, driver, executor = SPARK_MEMORY[case]
    assert cores_and_memory(application, "driver")[1] == driver
    assert cores_and_memory(application, "executor")[1] == executor


SPARK_CORES: dict[str, tuple[Json, int]] = {
    "one": (spark(), 1000),
    "cores": (spark(executor={"cores": 3}), 3000),
    "a request of its own": (spark(executor={"cores": 3, "coreRequest": "1500m"}), 1500),
    "as settings": (
        spark(conf={"spark.executor.cores": "3", "spark.kubernetes.executor.request.cores": "0.5"}),
        500,
    ),
    "Spark takes the request, whoever wrote it": (
        spark(executor={"cores": 3}, conf={"spark.kubernetes.executor.request.cores": "2"}),
        2000,
    ),
}


@pytest.mark.parametrize("case", SPARK_CORES)
def test_spark_cores(case: str) -> None:
    application, executor = SPARK_CORES[case]
    assert cores_and_memory(application, "executor")[0] == executor


def test_spark_pods_have_devices_sidecars_and_templates() -> None:
    side = {"name": "log", "resources": {"limits": {"cpu": "100m"}}}
    first = {"name": "fetch", "resources": {"requests": {"memory": "9Gi"}}}
    application = spark(
        nodeSelector={"disk": "fast"},
        conf={"spark.executor.resource.gpu.amount": "2", "spark.executor.resource.gpu.vendor": "nvidia.com"},
        driver={"gpu": {"name": "amd.com/gpu", "quantity": 1}, "sidecars": [side]},
        executor={"initContainers": [first], "template": template("7", "70Gi", nodeSelector={"zone": "a"})},
    )
    assert requests(application, "driver") == {"cpu": 1100, "memory": 1408 * MI, "amd.com/gpu": 1, "pods": 1}
    assert requests(application, "executor") == {
        "cpu": 1000,
        "memory": 9 * GI,
        "nvidia.com/gpu": 2,
        "pods": 1,
    }
    assert read(application).pod_sets[1].node_selector == {"zone": "a", "disk": "fast"}


def test_spark_fills_in_its_own_container_of_a_template() -> None:
    proxy = {"name": "proxy", "resources": {"requests": {"cpu": "250m"}}}
    main = {"name": "spark-kubernetes-executor", "resources": {"requests": {"cpu": "9"}}}
    for containers in ([proxy, main], [main, proxy]):
        application = spark(executor={"cores": 2, "template": {"spec": {"containers": containers}}})
        assert cores_and_memory(application, "executor") == (2250, 1408)


def test_rays_autoscaler_runs_beside_the_head() -> None:
    assert cores_and_memory(ray_cluster(), "head") == (1000, 1024)
    assert cores_and_memory(ray_cluster(enableInTreeAutoscaling=True), "head") == (1500, 1536)
    options = {"resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}
    scaled = ray_cluster(enableInTreeAutoscaling=True, autoscalerOptions=options)
    assert cores_and_memory(scaled, "head") == (3000, 2048)
    asks_for_nothing = ray_cluster(enableInTreeAutoscaling=True, autoscalerOptions={"resources": {}})
    assert cores_and_memory(asks_for_nothing, "head") == (1000, 1024)


def test_a_small_ray_worker_is_as_large_as_what_waits_in_it_for_the_head() -> None:
    tiny = template("100m", "128Mi")
    assert cores_and_memory(ray_cluster(workers(template=tiny)), "small") == (200, 256)
    fetches = template("100m", "128Mi", initContainers=template("150m", "9Gi")["spec"]["containers"])
    assert cores_and_memory(ray_cluster(workers(template=fetches)), "small") == (200, 9 * 1024)
    assert cores_and_memory(ray_cluster(workers()), "small") == (2000, 4096)


def test_a_ray_jobs_submitter() -> None:
    assert cores_and_memory(ray_job(), "submitter") == (500, 200)
    assert cores_and_memory(ray_job(submitterPodTemplate=template("3")), "submitter") == (3000, 1024)
    assert cores_and_memory(ray_job(submissionMode="SidecarMode"), "head") == (1500, 1224)


def test_what_the_api_server_adds_to_a_pod_is_added_to_its_template() -> None:
    limits = {"containers": [{"name": "a", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}]}
    assert requests(job(template={"spec": limits}), "main") == {"cpu": 2000, "memory": GI, "pods": 1}
    sandboxed = job(template=template(runtimeClassName="sandbox"))
    assert requests(sandboxed, "main", sandbox={"cpu": 250})["cpu"] == 1250
    assert requests(job(template=template(overhead={"cpu": "1"})), "main")["cpu"] == 2000
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
    assert requests(job(template=template(initContainers=[sidecar])), "main")["cpu"] == 2000


STATES: dict[str, tuple[Json, bool, bool]] = {
    "a Job": (job(), False, False),
    "a suspended Job": (job(suspend=True), True, False),
    "a complete Job": (status(job(), **condition("Complete")), False, True),
    "a failed Job": (status(job(), **condition("Failed")), False, True),
    "a Job that is about to fail": (status(job(), **condition("FailureTarget")), False, False),
    "a Job that was once suspended": (status(job(), **condition("Suspended", "False")), False, False),
    "Spark, suspended": (spark(suspend=True), True, False),
    "Spark, completed": (status(spark(), applicationState={"state": "COMPLETED"}), False, True),
    "Spark, to be started again": (status(spark(), applicationState={"state": "FAILING"}), False, False),
    "Ray, suspended": (ray_cluster(suspend=True), True, False),
    "a RayJob that is through": (status(ray_job(), jobDeploymentStatus="Complete"), False, True),
    "whose cluster stays": (
        status(ray_job(shutdownAfterJobFinishes=False), jobDeploymentStatus="Complete"),
        False,
        False,
    ),
    "training, suspended": (pytorch(runPolicy={"suspend": True}), True, False),
    "training, through": (status(pytorch(), **condition("Succeeded")), False, True),
    "Dask": (dask(), False, False),
    "a DaskJob that failed": (status(dask_job(), jobStatus="Failed"), False, True),
}


@pytest.mark.parametrize("case", STATES)
def test_suspended_and_finished(case: str) -> None:
    application, suspended, finished = STATES[case]
    asked = read(application)
    assert (asked.suspendable and not asked.released, asked.finished) == (suspended, finished)


def test_what_its_operator_cannot_suspend_waits_at_its_pods_gates() -> None:
    assert all(
        read(each).suspendable for each in (job(), spark(), ray_cluster(), ray_job(), pytorch(), tf(PS=1))
    )
    no_shutdown = ray_job(shutdownAfterJobFinishes=False)
    borrowed = ray_job(clusterSelector={"ray.io/cluster": "shared"})
    assert not any(read(each).suspendable for each in (dask(), dask_job(), no_shutdown, borrowed))


def test_queue_and_priority() -> None:
    labelled = job(template=template(priorityClassName="batch"))
    labelled["metadata"]["labels"] = {"sluice.dev/queue": "night"}
    assert (read(labelled).queue, read(labelled).priority_class) == ("night", "batch")
    assert read(spark(driver={"priorityClassName": "high"})).priority_class == "high"
    assert (
        read(pytorch(runPolicy={"schedulingPolicy": {"priorityClass": "urgent"}})).priority_class == "urgent"
    )
    assert read(job(completions=7)).pod_sets[0].completions == 7


def test_an_index_that_has_failed_for_good_need_not_succeed_any_more() -> None:
    """`backoffLimitPerIndex`: the others go on, and nobody waits for its replacement."""
    failed = status(job(parallelism=5, completions=8), failedIndexes="0,2-3", succeeded=4)
    [main] = read(failed).pod_sets
    assert (main.count, main.completions, main.succeeded) == (5, 5, 4)
    assert read(status(job(completions=2), failedIndexes="0-1")).pod_sets[0].completions == 0


WRONG: dict[str, tuple[Json, str]] = {
    "spec.parallelism": (job(parallelism=-1), "whole number"),
    "spec.suspend": (job(suspend="yes"), "true or false"),
    "spec.template.spec.containers": (job(template={"spec": {}}), "at least one"),
    "spec.template.spec.containers[0].resources.requests.cpu": (job(template=template("much")), "500m"),
    "spec.template.spec.containers[0].resources.requests.memory": (
        job(template=template("1", "-1")),
        "0 or more",
    ),
    "metadata.annotations.sluice.dev/min-count": (annotated(job(), min_count="all"), "whole number"),
    "spec.executor.memory": (spark(executor={"memory": "1.5g"}), "1536m"),
    "spec.driver.memoryOverhead": (spark(driver={"memoryOverhead": "1Gi"}), "1536m"),
    "spec.executor.coreRequest": (spark(executor={"coreRequest": "two"}), "500m"),
    "spec.executor.instances": (spark(executor={"instances": 0}), "1 or more"),
    "spec.memoryOverheadFactor": (spark(memoryOverheadFactor="10%"), "0.1"),
    "spec.sparkConf.spark.executor.instances": (
        spark(conf={"spark.executor.instances": "few"}),
        "whole number",
    ),
    "spec.sparkConf.spark.executor.resource.gpu.amount": (
        spark(conf={"spark.executor.resource.gpu.amount": "1"}),
        "spark.executor.resource.gpu.vendor",
    ),
    "spec.dynamicAllocation.maxExecutors": (
        spark(dynamicAllocation={**DYNAMIC, "minExecutors": 5, "maxExecutors": 2}),
        "minExecutors (5)",
    ),
    "spec.workerGroupSpecs[1].groupName": (ray_cluster(workers(), workers("head")), "another name"),
    "spec.workerGroupSpecs[0].numOfHosts": (ray_cluster(workers(numOfHosts=0)), "1 or more"),
    "spec": (ray_cluster(workers(), workers()), "'small'"),
    "spec.tfReplicaSpecs": (tf(), "Worker"),
    "spec.elasticPolicy.minReplicas": (
        pytorch(elasticPolicy={"minReplicas": 4, "maxReplicas": 2}),
        "lower it",
    ),
    "spec.scheduler.spec.containers": (dask() | {"spec": {"worker": template()}}, "at least one"),
}


@pytest.mark.parametrize("path", WRONG)
def test_what_makes_no_sense_is_named_with_its_remedy(path: str) -> None:
    application, remedy = WRONG[path]
    with pytest.raises(ApplicationError) as raised:
        read(application)
    message = str(raised.value)
    assert message.startswith(f"{path}: ")
    assert remedy in message


@pytest.mark.parametrize("name", ["a b", "-a", "a\n", "a" * 64])
def test_a_group_of_pods_is_called_what_can_stand_in_a_label(name: str) -> None:
    assert read(ray_cluster(workers("Big_Group.1"))).pod_sets[-1].name == "Big_Group.1"
    with pytest.raises(ApplicationError, match="which is no value of a label"):
        read(ray_cluster(workers(name)))


MANY = {f"example.com/{number}": "1" for number in range(33)}


@pytest.mark.parametrize(
    ("group", "words"),
    [
        (workers(replicas=2**31 - 1, numOfHosts=2), "more pods than 2147483647"),
        (workers(maxReplicas=2**30, numOfHosts=4), "more pods than 2147483647"),
        (
            workers(template=template(containers=[{"resources": {"requests": MANY}}])),
            "more than 32 resources",
        ),
    ],
)
def test_a_group_asks_for_no_more_than_can_be_shown(group: Json, words: str) -> None:
    with pytest.raises(ApplicationError, match=words):
        read(ray_cluster(group, enableInTreeAutoscaling=True))


def test_an_application_has_no_more_groups_than_can_be_shown() -> None:
    def groups(count: int) -> Json:
        return ray_cluster(*(workers(f"group-{number}") for number in range(count)))

    assert len(read(groups(63)).pod_sets) == 64, "and the head"
    with pytest.raises(ApplicationError, match="65 groups of pods are more than the 64"):
        read(groups(64))


small = st.integers(0, 50)
maybe = st.none() | small


def given_only(**fields: Any) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


@st.composite
def applications(draw: st.DrawFn) -> Json:
    kind = draw(st.sampled_from(["job", "spark", "ray", "elastic", "dask"]))
    if kind == "job":
        return job(**given_only(parallelism=draw(maybe), completions=draw(maybe)))
    if kind == "spark":
        least = draw(small)
        allocation = given_only(
            minExecutors=least,
            initialExecutors=draw(maybe),
            maxExecutors=draw(st.integers(max(1, least), 60)),
        )
        return spark(
            executor=given_only(instances=draw(maybe), memory=f"{draw(st.integers(1, 10**6))}m"),
            dynamicAllocation={**DYNAMIC, **allocation},
        )
    if kind == "ray":
        group = workers(
            replicas=draw(small),
            minReplicas=draw(small),
            maxReplicas=draw(small | st.just(MAX)),
            numOfHosts=draw(st.integers(1, 8)),
        )
        return ray_cluster(group, enableInTreeAutoscaling=draw(st.booleans()))
    if kind == "elastic":
        least = draw(small)
        bounds = {"minReplicas": least, "maxReplicas": least + draw(small)}
        return pytorch(draw(maybe), draw(maybe), elasticPolicy=bounds)
    return dask(draw(small))


@given(applications())
def test_counts_are_in_order_and_nothing_is_negative(application: Json) -> None:
    for pod_set in read(application).pod_sets:
        assert 0 <= pod_set.min_count <= pod_set.count
        assert pod_set.max_count is None or pod_set.count <= pod_set.max_count
        assert pod_set.requests["pods"] == 1
        assert all(amount >= 0 for amount in pod_set.requests.values())


def test_how_many_pods_are_of_no_use_without_each_other() -> None:
    sizes = {each.name: each.replica_size for each in read(ray_cluster(workers(numOfHosts=4))).pod_sets}
    assert sizes == {"head": 1, "small": 4}


@given(applications())
def test_what_is_kept_of_its_spec_asks_for_the_same(application: Json) -> None:
    facts = read(application)
    again = read({**application, "spec": facts.application_spec})
    assert (again.pod_sets, again.application_spec) == (facts.pod_sets, facts.application_spec)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=8), inner, max_size=2),
    max_leaves=4,
)


@given(st.sampled_from([job, spark, ray_cluster, ray_job, pytorch, dask, dask_job]), st.data())
def test_nothing_but_an_application_error_is_raised_on_nonsense(make: Any, data: st.DataObject) -> None:
    application = make()
    field = data.draw(st.sampled_from(sorted(application["spec"])))
    broken = application | {"spec": application["spec"] | {field: data.draw(anything)}}
    with suppress(ApplicationError):
        read(broken)
