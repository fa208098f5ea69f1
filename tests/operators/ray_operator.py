"""KubeRay and its autoscaler, simulated.

Imitated: a RayCluster's head and workers, which it controls, and their labels; it replaces those that have
ended; suspension deletes them; the autoscaler's container beside the head; a RayJob's RayCluster and, once
its pods run, the Job that submits to it, both controlled by the RayJob; `jobDeploymentStatus`. Not imitated:
services, health checks, retries, and why the autoscaler wants other numbers of workers: a test says how many.
"""

from __future__ import annotations

from copy import deepcopy

from cluster import TERMINAL
from cluster_api import Object, made
from operators.simulated import Operator, controlled_by

_AUTOSCALER = {
    "name": "autoscaler",
    "image": "none",
    "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}},
}


def _template(cpu: str) -> Object:
    requests = {"cpu": cpu, "memory": "1Gi"}
    return {"spec": {"containers": [{"name": "ray", "image": "none", "resources": {"requests": requests}}]}}


def cluster_spec(*groups: tuple[str, int, int, int], scales: bool = False, hosts: int = 1) -> Object:
    """Groups of workers: name, fewest, now and most replicas."""
    return {
        "enableInTreeAutoscaling": scales,
        "headGroupSpec": {"rayStartParams": {}, "template": _template("1")},
        "workerGroupSpecs": [
            {
                "groupName": name,
                "minReplicas": least,
                "replicas": now,
                "maxReplicas": most,
                "numOfHosts": hosts,
                "rayStartParams": {},
                "template": _template("1"),
            }
            for name, least, now, most in groups
        ],
    }


def ray_cluster(name: str, spec: Object) -> Object:
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": name}, "spec": spec}


def ray_job(name: str, spec: Object, **more: object) -> Object:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": name},
        "spec": {
            "entrypoint": "python report.py",
            "shutdownAfterJobFinishes": True,
            "rayClusterSpec": spec,
            **more,
        },
    }


class RayOperator(Operator):
    """`submits_for` is how long a submitter runs, which is how long a RayJob takes."""

    submits_for = "3s"

    def scale(self, cluster: str, **replicas: int) -> None:
        """What the autoscaler writes: all its groups at once."""
        path = self.path("RayCluster", cluster)
        groups = made(self.api.get(path))["spec"]["workerGroupSpecs"]
        names = [group["groupName"] for group in groups]
        operations = [
            {"op": "replace", "path": f"/spec/workerGroupSpecs/{names.index(name)}/replicas", "value": count}
            for name, count in replicas.items()
        ]
        made(self.api.patch(path, *operations))

    def reconcile(self) -> None:
        for job in self.each("RayJob"):
            self._look_after_job(job)
        for cluster in self.each("RayCluster"):
            self._look_after_cluster(cluster)

    def _look_after_cluster(self, cluster: Object) -> None:
        spec, name = cluster["spec"], cluster["metadata"]["name"]
        there = self.pods(cluster)
        if spec.get("suspend"):
            for each in there:
                self.delete_pod(each)
            self.write_status(cluster, {"state": "suspended"})
            return
        wanted = {f"{name}-head": ("head", "headgroup", self._head(spec))}
        for group in spec["workerGroupSpecs"]:
            pods = group["replicas"] * group.get("numOfHosts", 1)
            for number in range(pods):
                of = group["groupName"]
                wanted[f"{name}-{of}-{number}"] = ("worker", of, group["template"]["spec"])
        ended = {name for name, each in there.items() if each["status"]["phase"] in TERMINAL}
        for each in ended | (there.keys() - wanted.keys()):
            self.delete_pod(each)
        for each in wanted.keys() - there.keys():
            kind, of, template = wanted[each]
            labels = {"ray.io/cluster": name, "ray.io/node-type": kind, "ray.io/group": of}
            self.create_pod(cluster, each, template, **labels)
        ready = wanted.keys() <= {n for n, p in there.items() if p["status"]["phase"] == "Running"}
        self.write_status(cluster, {"state": "ready" if ready else ""})

    @staticmethod
    def _head(spec: Object) -> Object:
        template: Object = deepcopy(spec["headGroupSpec"]["template"]["spec"])
        if spec.get("enableInTreeAutoscaling"):
            template["containers"].append(_AUTOSCALER)
        return template

    def _look_after_job(self, job: Object) -> None:
        name = job["metadata"]["name"]
        if (job.get("status") or {}).get("jobDeploymentStatus") == "Complete":
            return
        cluster_path, job_path = self.path("RayCluster", name), self.path("Job", name)
        if job["spec"].get("suspend"):
            self.api.delete(job_path + "?propagationPolicy=Background")
            self.api.delete(cluster_path)
            self.write_status(job, {"jobDeploymentStatus": "Suspended"})
            return
        cluster = self.api.get(cluster_path)
        if not cluster.ok:
            obj = ray_cluster(name, job["spec"]["rayClusterSpec"])
            obj["metadata"]["ownerReferences"] = [controlled_by(job)]
            made(self.api.create(self.path("RayCluster"), obj))
            self.write_status(job, {"jobDeploymentStatus": "Initializing", "rayClusterName": name})
            return
        if (cluster.body.get("status") or {}).get("state") != "ready":
            return
        submitter = self.api.get(job_path)
        if not submitter.ok:
            made(self.api.create(self.path("Job"), self._submitter(job)))
            self.write_status(job, {"jobDeploymentStatus": "Running"})
        elif submitter.body.get("status", {}).get("succeeded"):
            self.write_status(job, {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"})
            made(self.api.delete(cluster_path))

    def _submitter(self, job: Object) -> Object:
        requests = {"cpu": "500m", "memory": "200Mi"}
        container = {"name": "submit", "image": "none", "resources": {"requests": requests}}
        return {
            "metadata": {"name": job["metadata"]["name"], "ownerReferences": [controlled_by(job)]},
            "spec": {
                "backoffLimit": 2,
                "template": {
                    "metadata": {"annotations": {"sluice.dev/run-for": self.submits_for}},
                    "spec": {"restartPolicy": "Never", "containers": [container]},
                },
            },
        }
