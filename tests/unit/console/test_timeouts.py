"""`sluice doctor workloads`: what ends a workload while it only waits."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sluice_console.main import main


class Run(NamedTuple):
    code: int
    out: str
    err: str


Doctor = Callable[..., Run]


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Doctor:
    def run(text: str, *words: str, file: str = "-") -> Run:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        code = main(["doctor", "workloads", file, *words])
        return Run(code, *capsys.readouterr())

    return run


def an(kind: str, *, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": "it", "namespace": "team", "labels": labels}, "spec": spec}


GROUP: dict[str, Any] = {"template": {"metadata": {"labels": {"sluice.dev/pod-group": "g"}}}}


@pytest.mark.parametrize(
    ("each", "told"),
    [
        (an("Pod", labels={"kubernetes_pod_operator": "True"}), "schedule_timeout_seconds"),
        (an("Pod", labels={"kubernetes_executor": "True"}), "task_queued_timeout"),
        (an("Job", template={"metadata": {"labels": {"prefect.io/flow-run-id": "4"}}}), "pod_watch_timeout"),
        (an("Pod", labels={"skypilot-cluster-name": "mine"}), "provision_timeout"),
        (an("Job", activeDeadlineSeconds=60), "spec.activeDeadlineSeconds ends it after 60 s"),
        (an("CronJob", jobTemplate={"spec": {"activeDeadlineSeconds": 60}}), "jobTemplate.spec.active"),
        (an("RayJob", preRunningDeadlineSeconds=300), "spec.preRunningDeadlineSeconds ends it after 300 s"),
        (an("PyTorchJob", runPolicy={"activeDeadlineSeconds": 60}), "spec.runPolicy.active"),
        (an("SparkApplication"), "maxRegisteredResourcesWaitingTime"),
        (an("StatefulSet", **GROUP), "podManagementPolicy to Parallel"),
    ],
    ids=lambda value: value if isinstance(value, str) else value["kind"],
)
def test_what_ends_it_is_told_with_what_to_do(doctor: Doctor, each: dict[str, Any], told: str) -> None:
    run = doctor(json.dumps(each))
    assert run.code == 1
    assert told in run.out
    assert f"{each['kind']} team/it: " in run.out
    assert run.out.endswith("1 object looked at; 1 time-out\n")


@pytest.mark.parametrize(
    "each",
    [
        an("Pod", activeDeadlineSeconds=60),
        an("Pod", labels={"kubernetes_pod_operator": "False"}),
        an("Job", template={"spec": {"activeDeadlineSeconds": 60}}),
        an("SparkApplication", sparkConf={"spark.scheduler.maxRegisteredResourcesWaitingTime": "1h"}),
        an("StatefulSet", podManagementPolicy="Parallel", **GROUP),
        an("StatefulSet"),
        {"kind": "ConfigMap", "metadata": None, "data": {"a": "b"}},
        {"kind": "Pod", "metadata": ["odd"], "spec": 7},
        {"kind": "Job", "metadata": {"labels": "odd"}, "spec": {"template": ["odd"]}},
    ],
    ids=lambda value: value["kind"],
)
def test_what_ends_nothing_is_not_told(doctor: Doctor, each: dict[str, Any]) -> None:
    run = doctor(json.dumps(each))
    assert (run.code, run.out) == (0, "1 object looked at; no time-outs\n")


def test_what_kubectl_lists_and_several_documents_are_read(doctor: Doctor) -> None:
    listed = {"kind": "List", "items": [an("Job", activeDeadlineSeconds=1), an("Pod")]}
    run = doctor(
        f"{json.dumps(listed)}\n---\n---\nkind: RayJob\nspec: {{activeDeadlineSeconds: 5}}\n", "--json"
    )
    found = json.loads(run.out)
    assert found["objects"] == 3
    assert [each["subject"] for each in found["timeOuts"]] == ["Job team/it", "RayJob …"]


@pytest.mark.parametrize("text", ["[1]", "a: [", "kind: 7"])
def test_what_is_no_object_is_refused_with_a_remedy(doctor: Doctor, text: str) -> None:
    run = doctor(text)
    assert run.code == 1
    assert run.err.startswith("sluice: - ")
    assert "remedy: " in run.err


def test_a_file_that_is_not_there_is_named(doctor: Doctor, tmp_path: Path) -> None:
    run = doctor("", file=str(tmp_path / "none.yaml"))
    assert run.code == 1
    assert "none.yaml can't be read" in run.err
