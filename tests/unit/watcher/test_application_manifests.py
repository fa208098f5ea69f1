"""Whole manifests as people apply them, and what they ask for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
import yaml
from samples_of_applications import GI, MI, counts, read

MANIFESTS: Final = Path(__file__).parent / "manifests"

#: manifest → of each pod set: minimum, now, at most; cpu, memory, GPUs of a pod.
EXPECTED: dict[str, dict[str, tuple[int, int, int | None, int, int, int]]] = {
    "spark-dynamic": {
        "driver": (1, 1, 1, 1000, (2048 + 819) * MI, 0),
        "executor": (2, 4, 40, 3600, (8192 + 3276 + 512 + 128) * MI, 0),
    },
    "ray-autoscaling": {
        "head": (1, 1, 1, 2500, 4 * GI + 512 * MI, 0),
        "cpu": (1, 2, 10, 4000, 8 * GI, 0),
        "gpu": (0, 0, 6, 8000, 64 * GI, 4),
    },
    "ray-job": {
        "head": (1, 1, 1, 1000, 2 * GI, 0),
        "small": (3, 3, 3, 1000, 2 * GI, 0),
        "submitter": (1, 1, 1, 500, 200 * MI, 0),
    },
    "job-indexed": {"main": (5, 20, 20, 500, 10**9, 0)},
    "pytorch-elastic": {"worker": (1, 2, 4, 16000, 96 * GI, 4)},
    "dask-cluster": {"scheduler": (1, 1, 1, 500, GI, 0), "worker": (1, 3, None, 2000, 6 * GI, 0)},
}


def test_every_manifest_is_expected() -> None:
    assert {path.stem for path in MANIFESTS.iterdir()} == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_what_a_manifest_asks_for(name: str) -> None:
    application = yaml.safe_load((MANIFESTS / f"{name}.yaml").read_text())
    found = {
        each.name: (
            *counts(application)[each.name],
            each.requests["cpu"],
            each.requests["memory"],
            each.requests.get("nvidia.com/gpu", 0),
        )
        for each in read(application).pod_sets
    }
    assert found == EXPECTED[name]
    assert not read(application).finished


@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_kept_of_its_spec_is_what_counts(name: str) -> None:
    application = yaml.safe_load((MANIFESTS / f"{name}.yaml").read_text())
    kept = read(application).application_spec
    assert "image" not in json.dumps(kept)
    assert read({**application, "spec": kept}).pod_sets == read(application).pod_sets


def test_it_does_not_say_what_holds_the_application_back() -> None:
    """That changes, and what is kept is that of the first sight."""
    job = yaml.safe_load((MANIFESTS / "job-indexed.yaml").read_text())
    job["spec"]["suspend"] = True
    assert "suspend" not in read(job).application_spec
    training = yaml.safe_load((MANIFESTS / "pytorch-elastic.yaml").read_text())
    training["spec"]["runPolicy"] = {"suspend": True, "schedulingPolicy": {"priorityClass": "high"}}
    assert read(training).application_spec["runPolicy"] == {"schedulingPolicy": {"priorityClass": "high"}}


def test_what_would_be_too_large_to_show_is_left_out() -> None:
    job = yaml.safe_load((MANIFESTS / "job-indexed.yaml").read_text())
    job["spec"]["template"]["spec"]["nodeSelector"] = {f"label-{n}": "x" * 60 for n in range(60)}
    assert read(job).application_spec == {}
    assert len(read(job).pod_sets) == 1
