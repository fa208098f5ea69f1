"""Spark: a driver, and executors that it asks for while it runs.

The Spark operator turns an application into arguments of spark-submit: its own fields win over `sparkConf`,
except `memoryOverheadFactor`, which comes before it. Spark then adds to each memory what lies outside the
heap.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from sluice.applications import WITHOUT_OPERATOR
from sluice.crds.workloads import POD_COUNT_MAX

from sluice_watcher.applications.asked import Asked, Part, bounded, min_count, one
from sluice_watcher.applications.fields import ApplicationError, Fields, amount, count_of
from sluice_watcher.applications.owners import Member, Owner
from sluice_watcher.applications.templates import Template, read_partial

DRIVER: Final = "driver"
EXECUTOR: Final = "executor"
Role = Literal["driver", "executor"]

#: Of a Spark application, whoever started it.
SELECTOR_LABEL: Final = "spark-app-selector"
ROLE_LABEL: Final = "spark-role"
PROFILE_LABEL: Final = "spark-exec-resourceprofile-id"
#: Of a SparkApplication.
NAME_LABEL: Final = "sparkoperator.k8s.io/app-name"

_JVM_FACTOR: Final = "0.1"
_OTHER_FACTOR: Final = "0.4"  # of Python and R, which use more beside the heap
_MEMORY: Final = re.compile(r"([0-9]+)([a-z]*)")
_BYTES: Final = {
    unit: 1024**power
    for power, units in enumerate((("b",), ("k", "kb"), ("m", "mb"), ("g", "gb"), ("t", "tb"), ("p", "pb")))
    for unit in units
}
_MIB: Final = 1024**2


def asked(application: Fields) -> Asked:
    submitted = _Submitted(application.at("spec"))
    executors = _executors(application, submitted)
    # In client mode the driver is no pod of its own.
    has_driver = submitted.spec.text("mode") not in ("client", "in-cluster-client")
    state = application.at("status", "applicationState").text("state")
    driver = (one(DRIVER, submitted.template(DRIVER)),) if has_driver else ()
    return Asked(
        parts=(*driver, executors),
        suspended=submitted.spec.flag("suspend"),
        finished=state in ("COMPLETED", "FAILED"),
        failed=state == "FAILED",
        priority_class=submitted.spec.at("driver").text("priorityClassName")
        or submitted.spec.at("batchSchedulerOptions").text("priorityClassName"),
    )


def _executors(application: Fields, submitted: _Submitted) -> Part:
    """A driver is of no use without an executor, and two drivers that wait for each other's share are of none
    either: so there is always one to start with.
    """
    template = submitted.template(EXECUTOR)
    if not submitted.dynamic:
        instances = submitted.count(("executor", "instances"), "spark.executor.instances", default=1)
        if not instances.value:
            raise ApplicationError(
                instances.path, "an application without executors does nothing: write 1 or more"
            )
        return Part(
            name=EXECUTOR,
            template=template,
            count=instances.value,
            min_count=max(1, min_count(application, count=instances.value, default=instances.value)),
            max_count=instances.value,
        )
    prefix = "spark.dynamicAllocation."
    least = submitted.count(("dynamicAllocation", "minExecutors"), prefix + "minExecutors", default=0)
    most = submitted.count(
        ("dynamicAllocation", "maxExecutors"), prefix + "maxExecutors", default=POD_COUNT_MAX
    )
    if most.value < max(1, least.value):
        raise ApplicationError(
            most.path,
            f"{most.value} executors are too few: Spark wants at least one, and no fewer than minExecutors "
            f"({least.value})",
        )
    initial = submitted.count(
        ("dynamicAllocation", "initialExecutors"), prefix + "initialExecutors", default=least.value
    )
    instances = submitted.count(("executor", "instances"), "spark.executor.instances", default=0)
    wanted = max(1, least.value, initial.value, instances.value)
    return Part(
        name=EXECUTOR,
        template=template,
        count=min(wanted, most.value),
        min_count=max(1, least.value),
        max_count=bounded(most.value),
    )


@dataclass(frozen=True, slots=True)
class _Setting:
    value: str
    path: str


@dataclass(frozen=True, slots=True)
class _Count:
    value: int
    path: str


class _Submitted:
    """An application's settings as spark-submit gets to see them."""

    def __init__(self, spec: Fields) -> None:
        self.spec = spec
        self._conf = spec.at("sparkConf")
        self._conf_texts = self._conf.texts()
        own = spec.at("dynamicAllocation").flag("enabled")
        self._own_allocation = own  # the operator passes on the others of these fields only if it is enabled
        self.dynamic = own or self._is_true("spark.dynamicAllocation.enabled")
        main = spec.text("mainApplicationFile")
        # Spark goes by the file's name; the operator's `type` only counts where there is no file.
        self._python = main.endswith(".py") if main else spec.text("type") == "Python"
        self._other = self._python or (main.lower().endswith(".r") if main else spec.text("type") == "R")

    def template(self, role: Role) -> Template:
        fields = self.spec.at(role)
        template = read_partial(fields.at("template", "spec"))
        main, others = _main_first(template.containers or (Fields({}, fields.path),), role)
        return replace(
            template,
            containers=(self._main(role, main), *others, *fields.each("sidecars")),
            init_containers=(*template.init_containers, *fields.each("initContainers")),
            node_selector=self._node_selector(role, fields, template),
            priority_class=fields.text("priorityClassName") or template.priority_class,
        )

    def count(self, own: tuple[str, str], key: str, *, default: int) -> _Count:
        at, name = own
        fields = self.spec.at(at)
        if name in fields and (at != "dynamicAllocation" or self._own_allocation):
            return _Count(fields.count(name, 0), fields.path_of(name))
        text = self._conf_texts.get(key)
        path = self._conf.path_of(key)
        if text is None:
            return _Count(default, fields.path_of(name))
        return _Count(count_of(text, path), path)

    def _main(self, role: Role, container: Fields) -> Fields:
        """The container that runs Spark: memory and cpu are Spark's, whatever its template says."""
        resources = container.at("resources")
        requests: dict[str, Any] = {
            **resources.at("requests").texts(),
            "memory": f"{self._memory_mib(role)}Mi",
            "cpu": self._cores(role),
        }
        limits = {**resources.at("limits").texts(), **self._devices(role)}
        return Fields(
            {"name": container.text("name"), "resources": {"requests": requests, "limits": limits}},
            self.spec.at(role).path,
        )

    def _cores(self, role: Role) -> str:
        cores = (
            self._pick(role, "coreRequest", f"spark.kubernetes.{role}.request.cores")
            or self._pick(role, "cores", f"spark.{role}.cores")
            or _Setting("1", "")
        )
        amount("cpu", cores.value, cores.path)
        return cores.value

    def _memory_mib(self, role: Role) -> int:
        heap = _mebibytes(self._pick(role, "memory", f"spark.{role}.memory") or _Setting("1g", ""))
        total = heap + self._overhead_mib(role, heap)
        if role == EXECUTOR:
            if self._is_true("spark.memory.offHeap.enabled"):
                size = self._of_conf("spark.memory.offHeap.size")
                total += _mebibytes(size, unit="b") if size else 0
            if self._python and (python := self._of_conf("spark.executor.pyspark.memory")):
                total += _mebibytes(python)
        return total

    def _overhead_mib(self, role: Role, heap: int) -> int:
        overhead = self._pick(role, "memoryOverhead", f"spark.{role}.memoryOverhead")
        if overhead:
            return _mebibytes(overhead)
        least = self._of_conf(f"spark.{role}.minMemoryOverhead") or _Setting("384m", "")
        # In doubles and cut off, as Spark does it.
        return max(int(self._factor(role) * heap), _mebibytes(least))

    def _factor(self, role: Role) -> float:
        factor = (
            self._of_conf(f"spark.{role}.memoryOverheadFactor")
            or self._of_conf("spark.kubernetes.memoryOverheadFactor")
            or _Setting(self.spec.text("memoryOverheadFactor"), self.spec.path_of("memoryOverheadFactor"))
        )
        text = factor.value or (_OTHER_FACTOR if self._other else _JVM_FACTOR)
        if not re.fullmatch(r"[0-9]{0,9}\.?[0-9]{1,18}", text):
            raise ApplicationError(factor.path, f"{text!r} is no factor: write a number such as 0.1")
        return float(text)

    def _devices(self, role: Role) -> dict[str, str]:
        devices = {}
        gpu = self.spec.at(role, "gpu")
        if "name" in gpu:
            devices[gpu.text("name")] = gpu.text("quantity")
        for key, number in self._conf_texts.items():
            match = re.fullmatch(rf"(spark\.{role}\.resource\.([^.]+))\.amount", key)
            if match is None:
                continue
            vendor = self._conf_texts.get(f"{match[1]}.vendor")
            if not vendor:
                raise ApplicationError(
                    self._conf.path_of(key),
                    f"nobody knows whose {match[2]} it is: set {match[1]}.vendor",
                )
            devices[f"{vendor}/{match[2]}"] = number
        return devices

    def _node_selector(self, role: Role, fields: Fields, template: Template) -> dict[str, str]:
        selected = dict(template.node_selector)
        for prefix in ("spark.kubernetes.node.selector.", f"spark.kubernetes.{role}.node.selector."):
            selected |= {
                key.removeprefix(prefix): text
                for key, text in self._conf_texts.items()
                if key.startswith(prefix)
            }
        return selected | self.spec.at("nodeSelector").texts() | fields.at("nodeSelector").texts()

    def _pick(self, role: Role, name: str, key: str) -> _Setting | None:
        """The operator's own field, or else the setting."""
        fields = self.spec.at(role)
        if text := fields.text(name):
            return _Setting(text, fields.path_of(name))
        return self._of_conf(key)

    def _of_conf(self, key: str) -> _Setting | None:
        text = self._conf_texts.get(key)
        return _Setting(text, self._conf.path_of(key)) if text else None

    def _is_true(self, key: str) -> bool:
        return self._conf_texts.get(key, "").lower() == "true"


def _main_first(containers: tuple[Fields, ...], role: Role) -> tuple[Fields, tuple[Fields, ...]]:
    """A template's container that Spark fills in: the one that bears its name, or else the first."""
    names = [container.text("name") for container in containers]
    name = f"spark-kubernetes-{role}"
    main = names.index(name) if name in names else 0
    return containers[main], containers[:main] + containers[main + 1 :]


def _mebibytes(setting: _Setting, *, unit: str = "m") -> int:
    """Java's way to write memory: 512m, 4g; without a unit it is `unit`. A rest below a MiB is cut off."""
    match = _MEMORY.fullmatch(setting.value.strip().lower())
    scale: int | None = _BYTES.get(match[2] or unit) if match else None
    if match is None or scale is None or len(match[1]) > 18:
        raise ApplicationError(
            setting.path,
            f"{setting.value!r} is no memory that Spark reads: write a whole number and unit, like 1536m",
        )
    return int(match[1]) * scale // _MIB


def member(labels: Mapping[str, str], owner: Owner | None) -> Member | None:
    """An executor's controller is its driver, if that is a pod; the driver's is the SparkApplication."""
    role = labels.get(ROLE_LABEL)
    if role not in (DRIVER, EXECUTOR) or SELECTOR_LABEL not in labels:
        return None
    named = (
        f"SparkApplication/{labels[NAME_LABEL]}"
        if NAME_LABEL in labels
        else f"{WITHOUT_OPERATOR}/{labels[SELECTOR_LABEL]}"
    )
    return Member(pod_set=_pod_set(labels), named=named)


def _pod_set(labels: Mapping[str, str]) -> str:
    """Executors of another resource profile than the first are others."""
    if labels[ROLE_LABEL] == DRIVER:
        return DRIVER
    profile = labels.get(PROFILE_LABEL, "0")
    return EXECUTOR if profile == "0" else f"{EXECUTOR}-{profile}"
