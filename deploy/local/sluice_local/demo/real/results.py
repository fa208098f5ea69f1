"""What the programs have found out: read where they print it, and judged."""

from __future__ import annotations

import threading
from ast import literal_eval
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sluice_local.demo.real.scenario import CAST, ML, RESULT, SQUARES, TASKS
from sluice_local.demo.scenario import Tenant
from sluice_local.errors import StackError
from sluice_local.kubectl import kubectl

_READY_WITHIN: Final = "--timeout=240s"


@dataclass(frozen=True, slots=True)
class Result:
    """What one tenant's programs have printed, each its part of it."""

    tenant: Tenant
    parts: tuple[float, ...]
    trouble: str = ""

    @property
    def found(self) -> float:
        return sum(self.parts)

    @property
    def is_right(self) -> bool:
        task = TASKS[self.tenant.name]
        return len(self.parts) == task.parts and task.is_right(self.found)


class RayProgram(threading.Thread):
    """Run on the head of ml's RayCluster, as soon as that is ready."""

    def __init__(self, kubeconfig: Path) -> None:
        super().__init__(name="Ray's program", daemon=True)
        self._where = (f"--kubeconfig={kubeconfig}", f"--namespace={ML.namespace}")
        self.said = ""
        self.trouble = ""

    def run(self) -> None:
        ready = "--for=jsonpath={.status.state}=ready"
        try:
            kubectl(*self._where, "wait", f"raycluster/{ML.name}", ready, _READY_WITHIN)
            head = kubectl(*self._where, "get", "pods", "--selector=ray.io/node-type=head", "--output=name")
            there = (head.strip(), "--container=ray", "--")
            self.said = kubectl(*self._where, "exec", *there, "python", "-c", SQUARES)
        except StackError as error:
            self.trouble = str(error).splitlines()[-1]


def results(kubeconfig: Path, ray: RayProgram) -> Mapping[str, Result]:
    """By tenant. Only what has succeeded is asked: a pod that was taken back may have printed its part too."""
    found = {}
    for tenant in CAST.tenants:
        if tenant == ML:
            found[tenant.name] = Result(tenant, parts([ray.said]), ray.trouble)
            continue
        where = (f"--kubeconfig={kubeconfig}", f"--namespace={tenant.namespace}")
        succeeded = ("--field-selector=status.phase=Succeeded", "--output=name")
        pods = kubectl(*where, "get", "pods", *succeeded).split()
        found[tenant.name] = Result(tenant, parts(kubectl(*where, "logs", pod) for pod in pods))
    return found


def parts(outputs: Iterable[str]) -> tuple[float, ...]:
    lines = [line for output in outputs for line in output.splitlines() if line.startswith(RESULT)]
    return tuple(literal_eval(line.removeprefix(RESULT).strip()) for line in lines)
