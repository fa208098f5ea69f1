"""QueueJobs: Sluice itself makes their pods, so what they ask for is what they say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sluice.applications import QUEUE_JOB
from sluice.events import JobFacts

from sluice_watcher.applications.asked import Asked, Part
from sluice_watcher.applications.fields import Fields
from sluice_watcher.applications.owners import Member, Owner
from sluice_watcher.applications.templates import read_template

PODS: Final = "main"
_ENDED: Final = ("Finished", "Failed")


def asked(job: Fields) -> Asked:
    spec, status = job.at("spec"), job.at("status")
    replicas = spec.count("replicas", 1)
    completions = spec.count("completions", replicas)
    count = min(replicas, completions)
    phase = status.text("phase")
    return Asked(
        parts=(
            Part(
                name=PODS,
                template=read_template(spec.at("template")),
                count=count,
                min_count=min(spec.count("minAvailable", replicas), count),
                max_count=count,
                completions=completions,
                succeeded=status.count("succeeded", 0),
            ),
        ),
        suspended=False,
        suspendable=False,
        finished=phase in _ENDED,
        failed=phase == "Failed",
        job=JobFacts(
            restart_limit=spec.count("restartLimit", 0) if "restartLimit" in spec else None,
            backoff_limit=spec.count("backoffLimit", 6),
            backoff_ms=1000 * spec.count("backoffSeconds", 10),
        ),
        replaces_failed=True,
    )


def member(labels: Mapping[str, str], owner: Owner | None) -> Member | None:
    return Member(pod_set=PODS) if owner and owner.kind == QUEUE_JOB else None
