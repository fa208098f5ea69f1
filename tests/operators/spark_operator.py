"""The Spark operator and the drivers that it starts, simulated.

Imitated: a SparkApplication that is not suspended gets a driver pod, which it controls; the driver's pod
controls its executors; their labels; suspension deletes all of them; executors that run end with their
driver, gated ones stay; `status.applicationState`. Not imitated: spark-submit, retries, services, ConfigMaps,
and why a driver wants more executors: a test says how many.
"""

from __future__ import annotations

from cluster import TERMINAL, is_gated
from cluster_api import Object
from operators.simulated import Operator

#: What Spark makes of 1 core and 512m: 384 MiB lie outside the heap.
_POD = {
    "containers": [
        {"name": "spark", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "896Mi"}}}
    ]
}


def spark_application(name: str, *, instances: int | None = None, **allocation: int) -> Object:
    """With a fixed number of executors, or with dynamic allocation: `minExecutors` and so on."""
    size = {"cores": 1, "memory": "512m"}
    spec: Object = {
        "type": "Scala",
        "mode": "cluster",
        "sparkVersion": "4.0.0",
        "mainApplicationFile": "local:///app.jar",
        "driver": size,
        "executor": size if instances is None else {**size, "instances": instances},
    }
    if instances is None:
        spec["dynamicAllocation"] = {"enabled": True, **allocation}
    return {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": name},
        "spec": spec,
    }


class SparkOperator(Operator):
    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._wanted: dict[str, int] = {}
        self._executors_made: dict[str, int] = {}  # by the application's uid: Spark counts on for ever

    def want(self, name: str, executors: int) -> None:
        """From now on a driver wants this many."""
        self._wanted[name] = executors

    def reconcile(self) -> None:
        for app in self.each("SparkApplication"):
            self._look_after(app)

    def _look_after(self, app: Object) -> None:
        driver_name = f"{app['metadata']['name']}-driver"
        driver = self.pods(app).get(driver_name)
        state = (app.get("status") or {}).get("applicationState", {}).get("state", "")
        if app["spec"].get("suspend"):
            for each in [*(self.pods(driver) if driver else ()), *([driver_name] if driver else ())]:
                self.delete_pod(each)
            state = "SUSPENDED" if state else ""
        elif state in ("COMPLETED", "FAILED"):
            return
        elif driver is None:
            self.create_pod(app, driver_name, _POD, **self._labels(app, "driver"))
            state = "SUBMITTED"
        else:
            phase = driver["status"]["phase"]
            state = {"Running": "RUNNING", "Succeeded": "COMPLETED", "Failed": "FAILED"}.get(phase, state)
            if phase == "Running":
                self._drive(app, driver)
            elif phase in TERMINAL:
                for name, each in self.pods(driver).items():
                    if not is_gated(each):
                        self.delete_pod(name)
        if state:
            status = {"applicationState": {"state": state}, "driverInfo": {"podName": driver_name}}
            self.write_status(app, status)

    def _drive(self, app: Object, driver: Object) -> None:
        """What the driver itself does, being in its pod."""
        driver = {"apiVersion": "v1", "kind": "Pod", **driver}
        spec = app["spec"]
        initial = spec["executor"].get("instances") or spec.get("dynamicAllocation", {}).get(
            "minExecutors", 1
        )
        wanted = self._wanted.get(app["metadata"]["name"], initial)
        there = {
            name: each for name, each in self.pods(driver).items() if each["status"]["phase"] not in TERMINAL
        }
        for _ in range(wanted - len(there)):
            uid = app["metadata"]["uid"]
            number = self._executors_made[uid] = self._executors_made.get(uid, 0) + 1
            labels = {
                **self._labels(app, "executor"),
                "spark-exec-id": str(number),
                "spark-exec-resourceprofile-id": "0",
            }
            self.create_pod(driver, f"{app['metadata']['name']}-exec-{number}", _POD, **labels)
        # Those that do not run yet first, as Spark does it.
        excess = sorted(there, key=lambda name: there[name]["status"]["phase"] == "Running")
        for name in excess[: max(0, len(there) - wanted)]:
            self.delete_pod(name)

    @staticmethod
    def _labels(app: Object, role: str) -> dict[str, str]:
        return {
            "spark-role": role,
            "spark-app-selector": f"spark-{app['metadata']['uid']}",
            "sparkoperator.k8s.io/app-name": app["metadata"]["name"],
        }
