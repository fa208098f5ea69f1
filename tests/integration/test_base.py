"""deploy/base on a real API server: it applies, its pods are as restricted as can be, RBAC gives no more."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster_api import Api, Object, made
from sluice.applications import APPLICATION_KINDS, BY_HAND
from sluice_local import Stack
from sluice_local.kubectl import kubectl

pytestmark = pytest.mark.integration

DEPLOY = Path(__file__).parents[2] / "deploy"
SYSTEM = "sluice-system"


@pytest.fixture(scope="module")
def api(stack: Stack) -> Api:
    return Api(stack.endpoints)


@pytest.fixture(scope="module")
def rendered() -> str:
    return kubectl("kustomize", str(DEPLOY / "base"))


@pytest.fixture(scope="module")
def deployments(rendered: str) -> list[Object]:
    return [obj for obj in yaml.safe_load_all(rendered) if obj["kind"] == "Deployment"]


def test_it_is_whole_and_the_server_takes_it(stack: Stack, rendered: str) -> None:
    options = ("--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "--filename=-")
    applied = kubectl(f"--kubeconfig={stack.endpoints.kubeconfig}", "apply", *options, stdin=rendered)
    assert len(applied.splitlines()) == len(list(yaml.safe_load_all(rendered)))


def test_an_overlay_chooses_which_pods_go_through(tmp_path: Path) -> None:
    """The example of deploy/policies/README.md."""
    text = (DEPLOY / "policies" / "README.md").read_text()
    example = text.split("```yaml\n")[1].split("```")[0]
    policies = os.path.relpath(DEPLOY / "policies", tmp_path)
    (tmp_path / "kustomization.yaml").write_text(example.replace("../../policies", policies))
    documents = yaml.safe_load_all(kubectl("kustomize", str(tmp_path)))
    bindings = [obj for obj in documents if obj["kind"].endswith("PolicyBinding")]
    chosen = {obj["metadata"]["name"] for obj in bindings if "matchExpressions" in str(obj_selector(obj))}
    assert chosen == {"sluice-gate", "sluice-pod-binding", "sluice-pod-creation", "sluice-pod-resize"}
    setting = text.split("SLUICE_POD_SELECTOR='")[1].split("'")[0]
    assert all(
        obj_selector(obj) == json.loads(setting) for obj in bindings if obj["metadata"]["name"] in chosen
    )


def obj_selector(binding: Object) -> Any:
    return binding["spec"].get("matchResources", {}).get("objectSelector")


def test_its_pods_pass_the_restricted_standard(api: Api, deployments: list[Object]) -> None:
    assert (
        made(api.get(f"/api/v1/namespaces/{SYSTEM}"))["metadata"]["labels"][
            "pod-security.kubernetes.io/enforce"
        ]
        == "restricted"
    )
    for deployment in deployments:
        template = deployment["spec"]["template"]
        pod = {"metadata": {"generateName": "test-", **template["metadata"]}, "spec": template["spec"]}
        made(api.create(f"/api/v1/namespaces/{SYSTEM}/pods?dryRun=All", pod))


def test_every_service_is_probed_bounded_and_can_be_drained(rendered: str, deployments: list[Object]) -> None:
    budgets = [obj for obj in yaml.safe_load_all(rendered) if obj["kind"] == "PodDisruptionBudget"]
    assert [obj["metadata"]["name"] for obj in budgets] == [obj["metadata"]["name"] for obj in deployments]
    for deployment in deployments:
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
        assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert container["resources"]["limits"].keys() == {"memory"}
        assert container["securityContext"]["readOnlyRootFilesystem"]
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()


READ = ("get", "list", "watch")
TENANCY = ("queues.sluice.dev", "resourcepools.sluice.dev")
SLUICE = (*TENANCY, "dynamicworkloads.sluice.dev", "queuejobs.sluice.dev")
WORKLOADS = "dynamicworkloads.sluice.dev"
#: Of other people, and as what the API server knows them.
APPLICATIONS = tuple(
    f"{each.plural}.{each.api_version.partition('/')[0]}"
    for each in APPLICATION_KINDS.values()
    if each.kind != BY_HAND
)
WATCHED = (
    *("pods", "nodes", "namespaces", "priorityclasses.scheduling.k8s.io"),
    "runtimeclasses.node.k8s.io",
    *TENANCY,
    WORKLOADS,
    *APPLICATIONS,
)
#: Service: (verbs, resources, namespace or everywhere) that it needs. Everything else is refused.
NEEDS: dict[str, list[tuple[tuple[str, ...], tuple[str, ...], str]]] = {
    "watcher": [(("list", "watch"), WATCHED, "")],
    "scheduler": [(("get", "create", "update", "patch"), ("leases.coordination.k8s.io",), SYSTEM)],
    "actuator": [
        (("get", "create", "patch", "delete"), ("pods",), ""),
        (("create",), ("pods/eviction",), ""),
        (("get", "patch"), ("namespaces",), ""),
        (("get",), TENANCY, ""),
        (("patch",), tuple(f"{kind}/status" for kind in (*TENANCY, WORKLOADS, "queuejobs.sluice.dev")), ""),
        (("get", "create", "patch", "delete"), (WORKLOADS,), ""),
        (("get", "patch"), APPLICATIONS, ""),
        (("create",), ("events",), ""),
    ],
    "console": [(READ, SLUICE, "")],
}
VERBS = (*READ, "create", "update", "patch", "delete")
RESOURCES = (
    *(
        "pods",
        "pods/eviction",
        "pods/resize",
        "pods/binding",
        "pods/status",
        "pods/exec",
        "nodes",
        "namespaces",
    ),
    *("secrets", "configmaps", "serviceaccounts/token", "events", "events.events.k8s.io"),
    *("leases.coordination.k8s.io", "priorityclasses.scheduling.k8s.io", "runtimeclasses.node.k8s.io"),
    *("clusterroles.rbac.authorization.k8s.io", "mutatingadmissionpolicies.admissionregistration.k8s.io"),
    *SLUICE,
    *APPLICATIONS,
    *(f"{kind}/status" for kind in (*SLUICE, *APPLICATIONS)),
)


@pytest.mark.parametrize("service", NEEDS)
def test_each_service_may_do_what_it_needs_and_no_more(api: Api, service: str) -> None:
    def allowed(namespace: str) -> set[tuple[str, str]]:
        return {
            (verb, resource)
            for verb in VERBS
            for resource in RESOURCES
            if may(api, service, verb, resource, namespace)
        }

    def needed(namespace: str) -> set[tuple[str, str]]:
        return {
            (verb, resource)
            for verbs, resources, where in NEEDS[service]
            if where in ("", namespace)
            for verb in verbs
            for resource in resources
        }

    assert allowed("default") == needed("default")
    assert allowed(SYSTEM) == needed(SYSTEM)


def test_the_scheduler_reads_the_cluster_s_identity_and_no_other_namespace(api: Api) -> None:
    assert may(api, "scheduler", "get", "namespaces", "kube-system", name="kube-system")
    assert not may(api, "scheduler", "get", "namespaces", "default", name="default")


def may(api: Api, service: str, verb: str, resource: str, namespace: str, *, name: str = "") -> bool:
    """Whether the service's account may; resources are written `plural.group/subresource`."""
    where, _, subresource = resource.partition("/")
    plural, _, group = where.partition(".")
    attributes = {
        "verb": verb,
        "resource": plural,
        "subresource": subresource,
        "group": group,
        "namespace": namespace,
        "name": name,
    }
    user = f"system:serviceaccount:{SYSTEM}:sluice-{service}"
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{SYSTEM}", "system:authenticated"]
    review = {"spec": {"resourceAttributes": attributes, "user": user, "groups": groups}}
    answer = made(api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review))
    return bool(answer["status"]["allowed"])
