"""DynamicWorkloads that somebody writes by hand, for an application of a kind that nobody here knows.

What the application is does not matter: its pods name the workload by label, and it ends by being deleted.
"""

from __future__ import annotations

from typing import Final

from sluice.events import Gang

from sluice_watcher.applications.asked import Asked, Part
from sluice_watcher.applications.fields import Fields
from sluice_watcher.applications.templates import Template

#: The phases of an application that is admitted: its status is all that says so.
_ADMITTED: Final = ("Running", "Growing")


def asked(workload: Fields) -> Asked:
    spec, status = workload.at("spec"), workload.at("status")
    return Asked(
        parts=tuple(_part(each) for each in spec.each("podSets")),
        suspended=False,
        finished=False,
        priority=spec.whole("priority", 0),
        priority_class=spec.text("priorityClassName"),
        suspendable=False,
        released=status.text("phase") in _ADMITTED,
        decision=status.text("decision"),
        gang=_gang(spec.at("gang")),
    )


def _gang(fields: Fields) -> Gang | None:
    seconds = fields.count("deadlineSeconds", 0)
    return Gang(deadline_ms=seconds * 1000, hard=fields.text("onDeadline") != "soft") if seconds else None


def _part(pod_set: Fields) -> Part:
    count = pod_set.count("count", 0)
    container = Fields({"resources": {"requests": pod_set.at("requests").texts()}}, pod_set.path)
    return Part(
        name=pod_set.text("name"),
        template=Template(containers=(container,)),
        count=count,
        min_count=min(pod_set.count("minCount", count), count),
        max_count=pod_set.count("maxCount", count) if "maxCount" in pod_set else None,
    )
