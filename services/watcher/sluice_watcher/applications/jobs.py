"""Batch Jobs.

A Job's pods work independently of each other, so by default one of them is enough to start with and the
others are growth: a Job larger than its queue runs in parts, as its pods do without any of this. An
annotation asks for more at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sluice_watcher.applications.asked import Asked, Part, has_condition, min_count
from sluice_watcher.applications.fields import Fields, count_of
from sluice_watcher.applications.owners import Member, Owner
from sluice_watcher.applications.templates import read_template

PODS: Final = "main"


def asked(job: Fields) -> Asked:
    spec = job.at("spec")
    completions = spec.count("completions", 0) if "completions" in spec else None
    status = job.at("status")
    failed_indexes = _length(status.text("failedIndexes"))  # nobody replaces these
    count = spec.count("parallelism", 1)
    if completions is not None:
        count = min(count, completions)  # the controller starts no pod that need not succeed
    return Asked(
        parts=(
            Part(
                name=PODS,
                template=read_template(spec.at("template")),
                count=count,
                min_count=min_count(job, count=count, default=1),
                max_count=count,
                completions=None if completions is None else max(0, completions - failed_indexes),
                succeeded=status.count("succeeded", 0),
            ),
        ),
        suspended=spec.flag("suspend"),
        finished=has_condition(job, "Complete", "Failed"),
        failed=has_condition(job, "Failed"),
        replaces_failed=True,
    )


def _length(indexes: str) -> int:
    """Of how many indexes a text such as `1,3-5,7` tells."""
    spans = [span.partition("-") for span in indexes.split(",") if span]
    path = "status.failedIndexes"
    return sum(count_of(last or first, path) - count_of(first, path) + 1 for first, _, last in spans)


def member(labels: Mapping[str, str], owner: Owner | None) -> Member | None:
    return Member(pod_set=PODS) if owner and owner.kind == "Job" else None
