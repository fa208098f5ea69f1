"""Cluster traces as scenarios: a pod is a workload of one, its tenant the value of a column."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import yaml
from pydantic import ValidationError

from sluice_scheduler.simulator.scenario import Event, Pool, Queue, Scenario, ScenarioError

#: Field of ours → column of the public openb trace (alibaba/clusterdata, cluster-trace-gpu-v2023).
DEFAULT_COLUMNS: Final = {
    "name": "name",
    "cpu_milli": "cpu_milli",
    "memory_mib": "memory_mib",
    "gpus": "num_gpu",
    "gpu_milli": "gpu_milli",
    "tenant": "qos",
    "created": "creation_time",
    "started": "scheduled_time",
    "ended": "deletion_time",
    "node_cpu_milli": "cpu_milli",
    "node_memory_mib": "memory_mib",
    "node_gpus": "gpu",
}
#: GPUs are shared in thousandths.
GPU: Final = "gpu-milli"


def read_trace(
    pods: Path, nodes: Path, *, queues: Path | None, columns: dict[str, str], part: float = 1.0
) -> Scenario:
    """Without `queues` each tenant has one. With them, pods of tenants that none is named after are spread by
    a hash of their name over the queues that have no children. `part` of the nodes' capacity is played on."""
    pool = _pool(nodes, columns, part)
    rows = sorted(_rows(pods), key=lambda row: int(_cell(row, columns, "created")))
    tenants = sorted({_cell(row, columns, "tenant").lower() for row in rows})
    standing = _queues(queues) if queues else [Queue(name=tenant) for tenant in tenants]
    parents = {queue.parent for queue in standing}
    leaves = [queue.name for queue in standing if queue.name not in parents]
    events = [_submission(row, columns, leaves) for row in rows]
    return Scenario(
        api_version="sluice.dev/v1alpha1", kind="Scenario", pools=[pool], queues=standing, events=events
    )


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from error


def _cell(row: dict[str, str], columns: dict[str, str], field: str) -> str:
    if columns[field] not in row:
        raise ScenarioError(
            f"the trace has no column {columns[field]!r}: name the one for {field} with --columns"
        )
    return row[columns[field]]


def _pool(path: Path, columns: dict[str, str], part: float) -> Pool:
    """Fit is by the sums of a pool, so the trace's nodes are added up into one."""
    rows = _rows(path)
    cpu = sum(int(_cell(row, columns, "node_cpu_milli")) for row in rows)
    memory = sum(int(_cell(row, columns, "node_memory_mib")) for row in rows)
    gpus = sum(int(_cell(row, columns, "node_gpus")) for row in rows)
    capacity = {
        "cpu": f"{int(cpu * part)}m",
        "memory": f"{int(memory * part)}Mi",
        GPU: str(int(gpus * 1000 * part)),
    }
    return Pool(name="default", nodes=1, capacity=capacity)


def _queues(path: Path) -> list[Queue]:
    try:
        content = yaml.safe_load(path.read_text())
        listed = content["queues"] if isinstance(content, dict) else content
        return [Queue.model_validate(each) for each in listed]
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValidationError) as error:
        raise ScenarioError(f"{path}: not a list of queues: {error}") from error


def _submission(row: dict[str, str], columns: dict[str, str], leaves: list[str]) -> Event:
    tenant = _cell(row, columns, "tenant").lower()
    name = _cell(row, columns, "name")
    queue = tenant if tenant in leaves else leaves[crc32(name.encode()) % len(leaves)]
    created = int(_cell(row, columns, "created"))
    started = int(_cell(row, columns, "started") or created)
    gpus = int(_cell(row, columns, "gpus") or 0) * int(_cell(row, columns, "gpu_milli") or 0)
    requests: dict[str, Any] = {
        "cpu": f"{_cell(row, columns, 'cpu_milli')}m",
        "memory": f"{_cell(row, columns, 'memory_mib')}Mi",
    }
    if gpus:
        requests[GPU] = str(gpus)
    runtime = max(1, int(_cell(row, columns, "ended")) - started)
    return Event.model_validate(
        {
            "at": created,
            "submit": {
                "name": name,
                "queue": queue,
                "podSets": [{"name": "main", "count": 1, "requests": requests}],
                "runtime": runtime,
            },
        }
    )
