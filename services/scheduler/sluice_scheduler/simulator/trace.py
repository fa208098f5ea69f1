"""Cluster traces as scenarios: a pod is a workload of one, its tenant the value of a column."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn
from zlib import crc32

import yaml

from sluice_scheduler.simulator.reading import read_yaml, text_of, validated
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


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a trace; what is wrong in it is told with line and column."""

    file: Path
    line: int
    cells: Mapping[str, str | None]
    columns: Mapping[str, str]

    def text(self, field: str) -> str:
        if self.columns[field] not in self.cells:
            raise ScenarioError(
                f"{self.file}: the trace has no column {self.columns[field]!r}: name the one for {field} "
                "with --columns"
            )
        return self.cells[self.columns[field]] or ""

    def name(self, field: str) -> str:
        return self.text(field) or self.fail(field, "is empty: write a name")

    def number(self, field: str, default: float | None = None) -> float:
        """Seconds, or an amount; an empty cell is the default."""
        text = self.text(field)
        if not text and default is not None:
            return default
        try:
            found = int(text) if text.isdecimal() else float(text)
        except ValueError:
            found = math.nan
        if not 0 <= found < math.inf:
            self.fail(field, f"{text!r} is not a number of 0 or more")
        return found

    def fail(self, field: str, message: str) -> NoReturn:
        raise ScenarioError(f"{self.file}:{self.line}: {self.columns[field]}: {message}")


def read_trace(
    pods: Path, nodes: Path, *, queues: Path | None, columns: dict[str, str], part: float = 1.0
) -> Scenario:
    """Without `queues` each tenant has one. With them, pods of tenants that none is named after are spread by
    a hash of their name over the queues that have no children. `part` of the nodes' capacity is played on."""
    pool = _pool(_rows(nodes, columns), part)
    rows = sorted(_rows(pods, columns), key=lambda row: row.number("created"))
    _refuse_repeated_names(rows)
    tenants = sorted({row.name("tenant").lower() for row in rows})
    standing = _queues(queues) if queues else [Queue(name=tenant) for tenant in tenants]
    parents = {queue.parent for queue in standing}
    leaves = [queue.name for queue in standing if queue.name not in parents]
    events = [_submission(row, leaves) for row in rows]
    return Scenario(
        api_version="sluice.dev/v1alpha1", kind="Scenario", pools=[pool], queues=standing, events=events
    )


def _rows(path: Path, columns: dict[str, str]) -> list[Row]:
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8", newline="")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8", newline="") as file
        ):
            reader = csv.DictReader(file)
            rows = [Row(path, reader.line_num, cells, columns) for cells in reader]
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise ScenarioError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if not rows:
        raise ScenarioError(f"{path}: there is no line in it below the names of the columns")
    return rows


def _refuse_repeated_names(rows: list[Row]) -> None:
    lines: dict[str, int] = {}
    for row in rows:
        name = row.name("name")
        if name in lines:
            row.fail("name", f"{name} stands in line {lines[name]} already: give each pod a name of its own")
        lines[name] = row.line


def _pool(rows: list[Row], part: float) -> Pool:
    """Fit is by the sums of a pool, so the trace's nodes are added up into one."""
    cpu, memory, gpus = (
        sum(row.number(field) for row in rows) for field in ("node_cpu_milli", "node_memory_mib", "node_gpus")
    )
    capacity = {
        "cpu": f"{int(cpu * part)}m",
        "memory": f"{int(memory * part)}Mi",
        GPU: str(int(gpus * 1000 * part)),
    }
    return Pool(name="default", nodes=1, capacity=capacity)


def _queues(path: Path) -> list[Queue]:
    """The file lists them, or is a mapping in which `queues` does."""
    root, content = read_yaml(text_of(path), str(path))
    if isinstance(root, yaml.SequenceNode):
        key = yaml.ScalarNode("tag:yaml.org,2002:str", "queues", root.start_mark, root.start_mark)
        root = yaml.MappingNode("tag:yaml.org,2002:map", [(key, root)], root.start_mark, root.end_mark)
        content = {"queues": content}
    if not isinstance(content, dict) or "queues" not in content:
        raise ScenarioError(f"{path}:1: the file must be a list of queues")
    scenario = {"apiVersion": "sluice.dev/v1alpha1", "kind": "Scenario", "pools": [{"name": "default"}]}
    return validated({**scenario, "queues": content["queues"]}, root, str(path)).queues


def _submission(row: Row, leaves: list[str]) -> Event:
    """A pod of which the trace does not see the end runs on."""
    tenant = row.name("tenant").lower()
    name = row.name("name")
    queue = tenant if tenant in leaves else leaves[crc32(name.encode()) % len(leaves)]
    created = row.number("created")
    started = row.number("started", created)
    gpus = row.number("gpus", 0) * row.number("gpu_milli", 0)
    requests = {"cpu": f"{row.number('cpu_milli')}m", "memory": f"{row.number('memory_mib')}Mi"}
    if gpus:
        requests[GPU] = str(gpus)
    submit: dict[str, Any] = {
        "name": name,
        "queue": queue,
        "podSets": [{"name": "main", "count": 1, "requests": requests}],
    }
    if row.text("ended"):
        submit["runtime"] = max(1, row.number("ended") - started)
    return Event.model_validate({"at": created, "submit": submit})
