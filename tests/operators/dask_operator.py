"""The Dask operator, simulated.

Imitated: a DaskCluster's scheduler and workers, and their labels, by which alone a pod can be told to be
the cluster's: the operator knows no suspension and creates its pods at once. Not imitated: the Deployments
between the cluster and its pods, services, and worker groups other than the default one.
"""

from __future__ import annotations

from cluster_api import Object
from operators.simulated import Operator


def dask_cluster(name: str, *, workers: int) -> Object:
    requests = {"cpu": "1", "memory": "1Gi"}
    template = {"containers": [{"name": "dask", "image": "none", "resources": {"requests": requests}}]}
    return {
        "apiVersion": "kubernetes.dask.org/v1",
        "kind": "DaskCluster",
        "metadata": {"name": name},
        "spec": {"scheduler": {"spec": template}, "worker": {"replicas": workers, "spec": template}},
    }


class DaskOperator(Operator):
    controls = False  # each pod's controller is a ReplicaSet

    def reconcile(self) -> None:
        for cluster in self.each("DaskCluster"):
            spec, name = cluster["spec"], cluster["metadata"]["name"]
            there = self.pods(cluster)
            wanted = {f"{name}-scheduler": ("scheduler", spec["scheduler"]["spec"])}
            for number in range(spec["worker"]["replicas"]):
                wanted[f"{name}-worker-{number}"] = ("worker", spec["worker"]["spec"])
            for each in there.keys() - wanted.keys():
                self.delete_pod(each)
            for each in wanted.keys() - there.keys():
                component, template = wanted[each]
                labels = {"dask.org/cluster-name": name, "dask.org/component": component}
                self.create_pod(cluster, each, template, **labels)
