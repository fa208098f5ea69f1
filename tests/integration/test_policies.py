"""deploy/policies on a real API server: each rule lets through what it should and refuses the rest."""

import threading
import time
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any

import pytest
from cluster_api import Answer, Api, Object, User, eventually, made, namespace, refused
from operators import crds
from operators.dask_operator import dask_cluster
from operators.ray_operator import cluster_spec, ray_cluster, ray_job
from operators.spark_operator import spark_application
from sluice.applications import APPLICATION_KINDS
from sluice.vocabulary import (
    ACTUATOR_USER,
    DECISION_ANNOTATION,
    GATE,
    MANAGED_LABEL,
    QUEUE_LABEL,
    RELEASED_ANNOTATION,
)
from sluice_local import Stack

pytestmark = pytest.mark.integration

MANAGED = {MANAGED_LABEL: "true"}
BOUND = {**MANAGED, QUEUE_LABEL: "team-a"}
ACTUATOR = User(ACTUATOR_USER)
DAEMONSETS = User("system:serviceaccount:kube-system:daemon-set-controller")
NODE = User("system:node:node-1", ("system:nodes", "system:authenticated"))
# Queues are this one's to administer, namespaces too; the tenant has the latter only.
ADMINISTRATOR = User("test:queue-administrator")
TENANT = User("test:tenant")
ROLES = {
    "test-namespace-editor": ["namespaces", "namespaces/status", "namespaces/finalize"],
    "test-pod-resizer": ["pods/resize"],
}
#: More than these have by themselves, so that it is the policies that refuse.
LEAVE = (
    (TENANT, "edit"),
    (TENANT, "test-namespace-editor"),
    (ADMINISTRATOR, "test-namespace-editor"),
    (ADMINISTRATOR, "sluice-queue-administrator"),
    (DAEMONSETS, "edit"),
    (NODE, "edit"),
    (ACTUATOR, "test-pod-resizer"),
)


@pytest.fixture(scope="module")
def api(own_stack: Stack) -> Iterator[Api]:
    api = Api(own_stack.endpoints)
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    for name, resources in ROLES.items():
        rule = {"apiGroups": [""], "resources": resources, "verbs": ["*"]}
        api.create(f"{rbac}/clusterroles", {"metadata": {"name": name}, "rules": [rule]})
    for user, role in LEAVE:
        binding = {
            "metadata": {"generateName": "test-policies-", "labels": {"test": "policies"}},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "User", "name": user.name, "apiGroup": "rbac.authorization.k8s.io"}],
        }
        made(api.create(f"{rbac}/clusterrolebindings", binding))
    eventually(lambda: api.acting_as(ADMINISTRATOR).get("/apis/sluice.dev/v1alpha1/queues").ok)
    eventually(lambda: api.acting_as(TENANT).get("/api/v1/namespaces/default").ok)
    yield api
    api.delete(f"{rbac}/clusterrolebindings?labelSelector=test=policies")
    for name in ROLES:
        api.delete(f"{rbac}/clusterroles/{name}")


@pytest.fixture(scope="module")
def bound(api: Api) -> Iterator[str]:
    with namespace(api, BOUND) as name:
        yield name


@pytest.fixture(scope="module")
def unbound(api: Api) -> Iterator[str]:
    with namespace(api, MANAGED) as name:
        yield name


@pytest.fixture(scope="module")
def unmanaged(api: Api) -> Iterator[str]:
    with namespace(api, {}) as name:
        yield name


def pod(**spec: Any) -> Object:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    return {
        "metadata": {"generateName": "pod-", "labels": {}, "annotations": {}},
        "spec": {"containers": [container], **spec},
    }


def create(api: Api, where: str, obj: Object) -> Answer:
    return api.create(f"/api/v1/namespaces/{where}/pods", obj)


def path_of(obj: Object) -> str:
    return f"/api/v1/namespaces/{obj['metadata']['namespace']}/pods/{obj['metadata']['name']}"


def gates(obj: Object) -> list[str]:
    return [gate["name"] for gate in obj["spec"].get("schedulingGates", [])]


class TestCreation:
    def test_a_pod_of_a_bound_namespace_is_gated(self, api: Api, bound: str) -> None:
        assert gates(made(create(api, bound, pod()))) == [GATE]

    @pytest.mark.parametrize("own", [[GATE], ["other.example/gate"], [GATE, "other.example/gate"]])
    def test_the_gate_stands_once_beside_others(self, api: Api, bound: str, own: list[str]) -> None:
        created = made(create(api, bound, pod(schedulingGates=[{"name": name} for name in own])))
        assert sorted(gates(created)) == sorted({GATE, *own})

    def test_it_is_gated_whoever_creates_it(self, api: Api, bound: str) -> None:
        template = {"metadata": {"labels": {"app": "web"}}, "spec": pod()["spec"]}
        deployment = {
            "metadata": {"generateName": "web-"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template},
        }
        made(api.create(f"/apis/apps/v1/namespaces/{bound}/deployments", deployment))
        query = f"/api/v1/namespaces/{bound}/pods?labelSelector=app=web"
        eventually(lambda: len(api.get(query).body["items"]) == 2)
        assert [gates(item) for item in api.get(query).body["items"]] == [[GATE], [GATE]]

    def test_it_may_name_a_queue(self, api: Api, bound: str) -> None:
        wanted = pod()
        wanted["metadata"]["labels"][QUEUE_LABEL] = "team-a-batch"
        assert gates(made(create(api, bound, wanted))) == [GATE]

    def test_in_a_managed_namespace_without_a_binding_it_is_refused_with_the_remedy(
        self, api: Api, unbound: str
    ) -> None:
        refused(create(api, unbound, pod()), unbound, "add it to spec.namespaces of a Queue")

    def test_elsewhere_nothing_changes(self, api: Api, unmanaged: str) -> None:
        assert gates(made(create(api, unmanaged, pod()))) == []
        assert gates(made(create(api, unmanaged, pod(nodeName="node-1")))) == []

    def test_it_may_not_name_its_node(self, api: Api, bound: str) -> None:
        refused(create(api, bound, pod(nodeName="node-1")), "spec.nodeName", "spec.nodeSelector")
        refused(create(api.acting_as(TENANT), bound, pod(nodeName="node-1")), "spec.nodeName")

    def test_it_may_not_claim_a_decision(self, api: Api, bound: str) -> None:
        forged = pod()
        forged["metadata"]["annotations"][DECISION_ANNOTATION] = "0-1.1"
        refused(create(api, bound, forged), DECISION_ANNOTATION)
        refused(
            create(api.acting_as(ACTUATOR), bound, forged), DECISION_ANNOTATION
        )  # it makes them of templates


class TestPodsOfNodes:
    @pytest.fixture(params=["bound", "unbound"])
    def managed(self, request: pytest.FixtureRequest) -> str:
        return str(request.getfixturevalue(request.param))

    def test_a_mirror_pod_passes(self, api: Api, managed: str) -> None:
        node = made(api.create("/api/v1/nodes", {"metadata": {"generateName": "mirror-"}}))["metadata"]
        mirror = self.mirror(node)
        assert gates(made(create(api.acting_as(NODE), managed, mirror))) == []
        api.delete(f"/api/v1/nodes/{node['name']}")

    def test_a_mirror_pod_of_somebody_else_does_not(self, api: Api, managed: str) -> None:
        refused(create(api, managed, self.mirror({"name": "node-1", "uid": "1"})))

    def test_a_daemonset_s_pod_passes(self, api: Api, managed: str) -> None:
        template = {"metadata": {"labels": {"app": "agent"}}, "spec": pod()["spec"]}
        daemonset = {
            "metadata": {"generateName": "agent-"},
            "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template},
        }
        node = made(api.create("/api/v1/nodes", {"metadata": {"generateName": "daemon-"}}))["metadata"][
            "name"
        ]
        made(api.create(f"/apis/apps/v1/namespaces/{managed}/daemonsets", daemonset))
        query = f"/api/v1/namespaces/{managed}/pods?labelSelector=app=agent"
        found = eventually(lambda: api.get(query).body["items"])
        assert [gates(item) for item in found] == [[]] * len(found)
        api.delete(f"/api/v1/nodes/{node}")

    def test_only_its_controller_can_create_one(self, api: Api, bound: str, unbound: str) -> None:
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "a", "uid": "1", "controller": True}
        forged = pod()
        forged["metadata"]["ownerReferences"] = [owner]
        assert gates(made(create(api, bound, forged))) == [GATE]
        refused(create(api, unbound, forged), "bound to no queue")

    @staticmethod
    def mirror(node: Object) -> Object:
        mirror = pod(nodeName=node["name"])
        mirror["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "hash"
        mirror["metadata"]["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Node", "name": node["name"], "uid": node["uid"], "controller": True}
        ]
        return mirror


OPEN: Object = {"op": "remove", "path": "/spec/schedulingGates"}


class TestUpdate:
    @pytest.fixture
    def gated(self, api: Api, bound: str) -> Object:
        return made(create(api, bound, pod()))

    @pytest.mark.parametrize("user", [None, TENANT], ids=["cluster administrator", "tenant"])
    def test_nobody_opens_the_gate(self, api: Api, gated: Object, user: User | None) -> None:
        answer = api.acting_as(user).patch(path_of(gated), OPEN)
        refused(answer, "sluice explain")

    def test_the_actuator_opens_it_and_narrows_the_pod_in_one_write(self, api: Api, gated: Object) -> None:
        annotation = f"/metadata/annotations/{DECISION_ANNOTATION.replace('/', '~1')}"
        opened = made(
            api.acting_as(ACTUATOR).patch(
                path_of(gated),
                {"op": "test", "path": "/metadata/uid", "value": gated["metadata"]["uid"]},
                {"op": "test", "path": "/spec/schedulingGates/0/name", "value": GATE},
                OPEN,
                {"op": "add", "path": "/metadata/annotations", "value": {}},
                {"op": "add", "path": annotation, "value": "0-7.1"},
                {"op": "add", "path": "/spec/nodeSelector", "value": {"pool": "a"}},
            )
        )
        assert gates(opened) == []
        assert opened["metadata"]["annotations"] == {DECISION_ANNOTATION: "0-7.1"}

    def test_other_gates_are_not_ours_to_keep(self, api: Api, bound: str) -> None:
        created = made(create(api, bound, pod(schedulingGates=[{"name": "other.example/gate"}])))
        others = [index for index, name in enumerate(gates(created)) if name != GATE]
        path = f"/spec/schedulingGates/{others[0]}"
        assert gates(made(api.patch(path_of(created), {"op": "remove", "path": path}))) == [GATE]

    @pytest.mark.parametrize("subresource", ["", "/status"])
    @pytest.mark.parametrize("value", ["team-b", None], ids=["changed", "removed"])
    def test_nobody_moves_a_pod_to_another_queue(
        self, api: Api, bound: str, value: str | None, subresource: str
    ) -> None:
        labelled = pod()
        labelled["metadata"]["labels"][QUEUE_LABEL] = "team-a-batch"
        created = made(create(api, bound, labelled))
        change = {"metadata": {"labels": {QUEUE_LABEL: value}}}
        refused(api.merge(path_of(created) + subresource, change), QUEUE_LABEL, "delete the pod")
        made(api.acting_as(ACTUATOR).merge(path_of(created), change))

    @pytest.mark.parametrize("subresource", ["", "/status"])
    def test_nobody_adds_what_only_sluice_writes(self, api: Api, gated: Object, subresource: str) -> None:
        path = path_of(gated) + subresource
        refused(api.merge(path, {"metadata": {"labels": {QUEUE_LABEL: "team-b"}}}), QUEUE_LABEL)
        refused(
            api.merge(path, {"metadata": {"annotations": {DECISION_ANNOTATION: "0-1.1"}}}),
            DECISION_ANNOTATION,
        )

    def test_anything_else_may_change(self, api: Api, gated: Object) -> None:
        change = {"metadata": {"labels": {"app": "x"}, "annotations": {"note": "y"}}}
        made(api.merge(path_of(gated), change))
        made(api.merge(path_of(gated) + "/status", {"status": {"message": "waiting"}}))

    def test_nobody_binds_a_gated_pod_to_a_node(self, api: Api, gated: Object) -> None:
        binding = {
            "metadata": {"name": gated["metadata"]["name"]},
            "target": {"kind": "Node", "name": "node-1"},
        }
        answer = api.create(path_of(gated) + "/binding", binding)
        assert not answer.ok, "the API server itself refuses this"
        assert "schedulingGates" in answer.message


class TestResize:
    @staticmethod
    def resize(api: Api, obj: Object, **requests: str) -> Answer:
        containers = [{"name": "main", "resources": {"requests": requests}}]
        strategic = "application/strategic-merge-patch+json"
        return api.call(
            "PATCH", path_of(obj) + "/resize", {"spec": {"containers": containers}}, content_type=strategic
        )

    @pytest.mark.parametrize(
        "requests", [{"cpu": "1001m"}, {"memory": "1025Mi"}, {"cpu": "500m", "memory": "2Gi"}]
    )
    def test_nobody_makes_a_pod_larger(self, api: Api, bound: str, requests: dict[str, str]) -> None:
        created = made(create(api, bound, pod()))
        refused(self.resize(api, created, **requests), "may not be resized")
        made(self.resize(api.acting_as(ACTUATOR), created, **requests))

    @pytest.mark.parametrize(
        "requests", [{"cpu": "500m"}, {"memory": "1024Mi"}, {"cpu": "1.0", "memory": "1Mi"}]
    )
    def test_smaller_it_may_be_made(self, api: Api, bound: str, requests: dict[str, str]) -> None:
        made(self.resize(api, made(create(api, bound, pod())), **requests))

    def test_a_sidecar_counts(self, api: Api, bound: str) -> None:
        sidecar = {
            "name": "log",
            "image": "none",
            "restartPolicy": "Always",
            "resources": {"requests": {"cpu": "1"}},
        }
        created = made(create(api, bound, pod(initContainers=[sidecar])))
        larger = {"op": "replace", "path": "/spec/initContainers/0/resources/requests/cpu", "value": "2"}
        refused(api.patch(path_of(created) + "/resize", larger), "may not be resized")

    def test_elsewhere_it_is_free(self, api: Api, unmanaged: str) -> None:
        made(self.resize(api, made(create(api, unmanaged, pod())), cpu="2"))


class TestNamespaces:
    @pytest.mark.parametrize("change", [{QUEUE_LABEL: "b"}, {QUEUE_LABEL: None}, {MANAGED_LABEL: None}])
    @pytest.mark.parametrize("subresource", ["", "/status"])
    def test_a_tenant_may_not_rebind_its_namespace(
        self, api: Api, bound: str, change: dict[str, str | None], subresource: str
    ) -> None:
        path = f"/api/v1/namespaces/{bound}{subresource}"
        answer = api.acting_as(TENANT).merge(path, {"metadata": {"labels": change}})
        refused(answer, "administrator of queues")

    @pytest.mark.parametrize("subresource", ["", "/status"])
    def test_nor_claim_that_it_was_decided(self, api: Api, bound: str, subresource: str) -> None:
        """The actuator would take its own decision for an older one."""
        claim = {"metadata": {"annotations": {DECISION_ANNOTATION: "9-9.9"}}}
        tenant = api.acting_as(TENANT)
        refused(tenant.merge(f"/api/v1/namespaces/{bound}{subresource}", claim), "administrator of queues")
        claimed_from_birth = {"metadata": {"generateName": "t-", **claim["metadata"]}}
        refused(tenant.create("/api/v1/namespaces", claimed_from_birth), "administrator of queues")

    def test_nor_bind_one(self, api: Api, unbound: str) -> None:
        tenant = api.acting_as(TENANT)
        change = {"metadata": {"labels": {QUEUE_LABEL: "team-a"}}}
        refused(tenant.merge(f"/api/v1/namespaces/{unbound}", change), "administrator of queues")
        bound_from_birth = {"metadata": {"generateName": "t-", "labels": BOUND}}
        refused(tenant.create("/api/v1/namespaces", bound_from_birth), "administrator of queues")

    def test_what_is_not_the_binding_is_the_tenant_s(self, api: Api, bound: str) -> None:
        tenant = api.acting_as(TENANT)
        made(tenant.merge(f"/api/v1/namespaces/{bound}", {"metadata": {"labels": {"stage": "test"}}}))
        created = made(
            tenant.create("/api/v1/namespaces", {"metadata": {"generateName": "t-", "labels": MANAGED}})
        )
        made(tenant.delete(f"/api/v1/namespaces/{created['metadata']['name']}"))

    @pytest.mark.parametrize(
        "user",
        [None, ADMINISTRATOR, ACTUATOR],
        ids=["cluster administrator", "queue administrator", "actuator"],
    )
    def test_those_who_administer_queues_and_the_actuator_bind(self, api: Api, user: User | None) -> None:
        with namespace(api, MANAGED) as name:
            for queue in ("team-a", "team-b", None):
                change = {"metadata": {"labels": {QUEUE_LABEL: queue}}}
                made(api.acting_as(user).merge(f"/api/v1/namespaces/{name}", change))


def job(**metadata: Any) -> Object:
    template = {"spec": {**pod()["spec"], "restartPolicy": "Never"}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


def training_job(kind: str, **spec: Any) -> Object:
    replicas = {"Worker": {"replicas": 1, "template": {"spec": pod()["spec"]}}}
    of = "pytorchReplicaSpecs" if kind == "PyTorchJob" else "tfReplicaSpecs"
    return {"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {}, "spec": {of: replicas, **spec}}


def dask_job() -> Object:
    return {"apiVersion": "kubernetes.dask.org/v1", "kind": "DaskJob", "metadata": {}, "spec": {"job": {}}}


RAY: Object = cluster_spec(("small", 1, 1, 2))
#: Each kind that has a field to suspend it.
SUSPENDABLE = {
    "Job": job(),
    "SparkApplication": spark_application("", instances=1),
    "RayCluster": ray_cluster("", RAY),
    "RayJob": ray_job("", RAY),
    "PyTorchJob": training_job("PyTorchJob"),
    "TFJob": training_job("TFJob", runPolicy={"backoffLimit": 3}),
}
OTHERS = {"DaskCluster": dask_cluster("", workers=1), "DaskJob": dask_job()}
WRITTEN = {DECISION_ANNOTATION: "1-1.1", RELEASED_ANNOTATION: "true", "note": "kept"}


@pytest.fixture(scope="class")
def kinds(own_stack: Stack) -> None:
    crds.install(own_stack.endpoints)


@pytest.mark.usefixtures("kinds")
class TestApplications:
    """Suspended at birth, and what the actuator alone may write is set back for everybody else."""

    @staticmethod
    def create(api: Api, where: str, obj: Object, **metadata: Any) -> Object:
        metadata = {"generateName": "app-", **{k: v for k, v in obj["metadata"].items() if v}, **metadata}
        path = APPLICATION_KINDS[obj["kind"]].path(where, "").rstrip("/")
        return {"kind": obj["kind"], **made(crds.create(api, path, {**obj, "metadata": metadata}))}

    @staticmethod
    def change(api: Api, obj: Object, patch: Object) -> Object:
        metadata = obj["metadata"]
        path = APPLICATION_KINDS[obj["kind"]].path(metadata["namespace"], metadata["name"])
        return {"kind": obj["kind"], **made(api.merge(path, patch))}

    @staticmethod
    def suspending(kind: str, value: bool) -> Object:
        """What somebody writes to suspend or release one."""
        *above, name = APPLICATION_KINDS[kind].suspend
        patch: Object = {name: value}
        for each in reversed(above):
            patch = {each: patch}
        return patch

    @staticmethod
    def is_suspended(obj: Object) -> bool:
        found: Any = obj
        for name in APPLICATION_KINDS[obj["kind"]].suspend:
            found = found.get(name, {})
        return found is True

    @pytest.mark.parametrize("kind", SUSPENDABLE)
    def test_it_is_born_suspended(self, api: Api, bound: str, kind: str) -> None:
        assert self.is_suspended(self.create(api, bound, SUSPENDABLE[kind]))

    @pytest.mark.parametrize("kind", SUSPENDABLE)
    def test_whatever_its_author_has_written(self, api: Api, bound: str, kind: str) -> None:
        spec = {**SUSPENDABLE[kind]["spec"], **self.suspending(kind, False)["spec"]}
        assert self.is_suspended(self.create(api, bound, {**SUSPENDABLE[kind], "spec": spec}))

    @pytest.mark.parametrize("kind", [*SUSPENDABLE, *OTHERS])
    def test_nobody_is_born_admitted(self, api: Api, bound: str, kind: str) -> None:
        created = self.create(api, bound, {**SUSPENDABLE, **OTHERS}[kind], annotations=WRITTEN)
        assert created["metadata"]["annotations"] == {"note": "kept"}

    @pytest.mark.parametrize("kind", SUSPENDABLE)
    def test_the_actuator_alone_releases_and_suspends(self, api: Api, bound: str, kind: str) -> None:
        created = self.create(api, bound, SUSPENDABLE[kind])
        label = {"metadata": {"labels": {"stage": "test"}}}
        for value in (False, True):
            other = self.change(api, created, {**label, **self.suspending(kind, value)})
            assert self.is_suspended(other)
            assert other["metadata"]["labels"]["stage"] == "test", "set back, not refused"
        actuator = api.acting_as(ACTUATOR)
        assert not self.is_suspended(self.change(actuator, created, self.suspending(kind, False)))
        assert not self.is_suspended(self.change(api, created, self.suspending(kind, True)))
        assert not self.is_suspended(self.change(api, created, label))
        assert self.is_suspended(self.change(actuator, created, self.suspending(kind, True)))

    @pytest.mark.parametrize("kind", [*SUSPENDABLE, *OTHERS])
    def test_nobody_else_writes_that_it_was_decided(self, api: Api, bound: str, kind: str) -> None:
        created = self.create(api, bound, {**SUSPENDABLE, **OTHERS}[kind])
        claimed = self.change(api, created, {"metadata": {"annotations": WRITTEN}})
        assert claimed["metadata"]["annotations"] == {"note": "kept"}
        decided = {DECISION_ANNOTATION: "2-2.2", RELEASED_ANNOTATION: "false"}
        self.change(api.acting_as(ACTUATOR), created, {"metadata": {"annotations": decided}})
        for annotations in (WRITTEN, {DECISION_ANNOTATION: None, RELEASED_ANNOTATION: None}, None):
            after = self.change(api, created, {"metadata": {"annotations": annotations}})
            assert decided.items() <= after["metadata"]["annotations"].items()

    @pytest.mark.parametrize("kind", ["RayCluster", "Job"])
    def test_what_a_ray_job_controls_is_not_suspended(self, api: Api, bound: str, kind: str) -> None:
        owner = {"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "a", "uid": "1", "controller": True}
        for lie, suspended in (
            ({}, False),
            ({"controller": False}, True),
            ({"apiVersion": "example.com/v1"}, True),
            ({"kind": "Other"}, True),
        ):
            created = self.create(api, bound, SUSPENDABLE[kind], ownerReferences=[{**owner, **lie}])
            assert self.is_suspended(created) == suspended

    def test_a_cron_job_s_jobs_are(self, api: Api, bound: str) -> None:
        owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "a", "uid": "1", "controller": True}
        assert self.is_suspended(self.create(api, bound, job(), ownerReferences=[owner]))

    @pytest.mark.parametrize(
        "spec", [{"shutdownAfterJobFinishes": False}, {"clusterSelector": {"ray.io/cluster": "shared"}}]
    )
    def test_a_ray_job_that_its_operator_would_refuse_is_not(
        self, api: Api, bound: str, spec: Object
    ) -> None:
        created = self.create(api, bound, ray_job("", RAY, **spec))
        assert not self.is_suspended(created)
        assert "suspend" not in self.change(api, created, {"metadata": {"labels": {"a": "b"}}})["spec"]

    @pytest.mark.parametrize("kind", [*SUSPENDABLE, *OTHERS])
    def test_elsewhere_nothing_is_touched(self, api: Api, unmanaged: str, kind: str) -> None:
        created = self.create(api, unmanaged, {**SUSPENDABLE, **OTHERS}[kind], annotations=WRITTEN)
        assert not self.is_suspended(created)
        assert WRITTEN.items() <= created["metadata"]["annotations"].items()
        if kind in SUSPENDABLE:
            assert self.is_suspended(self.change(api, created, self.suspending(kind, True)))


def test_an_api_server_that_restarts_rejects_no_pod_and_gates_every_one(
    own_stack: Stack, api: Api, bound: str
) -> None:
    """Pods are created without pause while the API server crashes, and while it is restarted in order.

    By an administrator: whoever needs RBAC is refused by the API server itself until it has read the roles.
    """
    created: list[Object] = []
    rejections: list[Answer] = []
    stop = threading.Event()

    def create_without_pause() -> None:
        while not stop.is_set():
            try:
                answer = create(api, bound, pod())
            except (OSError, HTTPException):
                time.sleep(0.005)  # nobody answers: as a controller would, try again
                continue
            if answer.ok:
                created.append(answer.body)
            elif answer.status != 503:  # which is: I am shutting down, try again
                rejections.append(answer)

    def fifty_more() -> None:
        goal = len(created) + 50
        eventually(lambda: len(created) >= goal, seconds=60)

    threads = [threading.Thread(target=create_without_pause) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for end in (own_stack.kill, own_stack.stop):
            fifty_more()
            end("kube-apiserver")
            own_stack.start("kube-apiserver")
        fifty_more()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert {(answer.status, answer.message) for answer in rejections} == set()
    assert {tuple(gates(obj)) for obj in created} == {(GATE,)}
