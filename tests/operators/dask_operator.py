"""The Dask operator, simulated.

Imitated: the Deployments of a DaskCluster, one for its scheduler and one a worker, and the labels of their
pods, by which alone a pod can be told to be the cluster's; a DaskJob's DaskCluster and runner, both made at
once and controlled by the job; `jobStatus`, and the end of the cluster with that of the job. It knows no
suspension. Not imitated: services, DaskWorkerGroups between a cluster and its Deployments, and autoscalers: a
test says how many workers there should be. Deployments have their real controller.
"""

from __future__ import annotations

from cluster_api import Object, made
from operators.simulated import Operator, controlled_by


def _template() -> Object:
    requests = {"cpu": "1", "memory": "1Gi"}
    return {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "dask", "image": "none", "resources": {"requests": requests}}],
    }


def _cluster_spec(workers: int) -> Object:
    return {"scheduler": {"spec": _template()}, "worker": {"replicas": workers, "spec": _template()}}


def dask_cluster(name: str, *, workers: int) -> Object:
    return {
        "apiVersion": "kubernetes.dask.org/v1",
        "kind": "DaskCluster",
        "metadata": {"name": name},
        "spec": _cluster_spec(workers),
    }


def dask_job(name: str, *, workers: int) -> Object:
    runner = {"spec": {**_template(), "restartPolicy": "Never"}}
    return {
        "apiVersion": "kubernetes.dask.org/v1",
        "kind": "DaskJob",
        "metadata": {"name": name},
        "spec": {"job": runner, "cluster": {"spec": _cluster_spec(workers)}},
    }


class DaskOperator(Operator):
    def scale(self, cluster: str, workers: int) -> None:
        made(self.api.merge(self.path("DaskCluster", cluster), {"spec": {"worker": {"replicas": workers}}}))

    def reconcile(self) -> None:
        for job in self.each("DaskJob"):
            self._look_after_job(job)
        for cluster in self.each("DaskCluster"):
            self._look_after_cluster(cluster)

    def _look_after_job(self, job: Object) -> None:
        name = job["metadata"]["name"]
        state = (job.get("status") or {}).get("jobStatus", "")
        if state in ("Successful", "Failed"):
            return
        runner = self.pods(job).get(f"{name}-runner")
        if runner is None:
            cluster = {**dask_cluster(name, workers=0), "spec": job["spec"]["cluster"]["spec"]}
            cluster["metadata"]["ownerReferences"] = [controlled_by(job)]
            self.create(self.path("DaskCluster"), cluster)
            self.create_pod(job, f"{name}-runner", job["spec"]["job"]["spec"], **_labels(name, "job-runner"))
            state = "ClusterCreated"
        else:
            phase = runner["status"]["phase"]
            state = {"Running": "Running", "Succeeded": "Successful", "Failed": "Failed"}.get(phase, state)
        if state in ("Successful", "Failed"):
            self.delete(self.path("DaskCluster", name))
        self.write_status(job, {"jobStatus": state})

    def _look_after_cluster(self, cluster: Object) -> None:
        spec, name = cluster["spec"], cluster["metadata"]["name"]
        path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments"
        there = self.owned(path, cluster).keys()
        wanted = {f"{name}-scheduler": ("scheduler", spec["scheduler"]["spec"])}
        for number in range(spec["worker"]["replicas"]):
            wanted[f"{name}-default-worker-{number}"] = ("worker", spec["worker"]["spec"])
        for each in there - wanted.keys():
            self.delete(f"{path}/{each}?propagationPolicy=Background")
        for each in wanted.keys() - there:
            component, template = wanted[each]
            labels = {**_labels(name, component), "deployment": each}
            self.create(
                path,
                {
                    "metadata": {"name": each, "ownerReferences": [controlled_by(cluster)]},
                    "spec": {
                        "replicas": 1,
                        "selector": {"matchLabels": labels},
                        "template": {"metadata": {"labels": labels}, "spec": template},
                    },
                },
            )


def _labels(cluster: str, component: str) -> dict[str, str]:
    return {"dask.org/cluster-name": cluster, "dask.org/component": component}
