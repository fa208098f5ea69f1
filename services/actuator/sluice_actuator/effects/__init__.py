"""Decisions → effects: the table of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sluice.applications import APPLICATION_KINDS, BY_HAND
from sluice.decisions import (
    Admit,
    AdmitWorkload,
    CreatePod,
    CreateWorkload,
    Delete,
    Evict,
    EvictWorkload,
    LabelNamespace,
    Notice,
    ObjectDecision,
    ReportJob,
    ReportPool,
    ReportQueue,
    ReportWorkload,
)
from sluice.values import DecisionId

from sluice_actuator.effects.applications import CreateWorkloadEffect, NoEffect, ReleaseEffect
from sluice_actuator.effects.base import GONE, Effect, Outcome
from sluice_actuator.effects.pods import AdmitEffect, CreatePodEffect, DeleteEffect, EvictEffect
from sluice_actuator.effects.told import LabelNamespaceEffect, NoticeEffect, ReportEffect
from sluice_actuator.kube import Cluster

__all__ = ["GONE", "Effect", "Effects", "Outcome"]


#: Those that need to know nothing but their decision.
_PLAIN: Final[dict[type[ObjectDecision], Callable[[Cluster, Any, DecisionId], Effect]]] = {
    Admit: AdmitEffect,
    CreatePod: CreatePodEffect,
    Delete: DeleteEffect,
    LabelNamespace: LabelNamespaceEffect,
    Notice: NoticeEffect,
}


class Effects:
    """Makes the effect of any decision about an object of one cluster."""

    def __init__(self, cluster: Cluster, *, termination_s: int) -> None:
        self._cluster = cluster
        self._termination_s = termination_s
        self._versions: dict[str, str] = {}

    def of(self, decision: ObjectDecision, identity: DecisionId) -> Effect:
        cluster, effect = self._cluster, _PLAIN.get(type(decision))
        if effect is not None:
            return effect(cluster, decision, identity)
        match decision:
            case Evict():
                return EvictEffect(cluster, decision, identity, termination_s=self._termination_s)
            case AdmitWorkload() | EvictWorkload():
                return self._release(decision, identity)
            case CreateWorkload():
                return CreateWorkloadEffect(cluster, decision, identity, self._versions)
            case ReportQueue() | ReportPool() | ReportWorkload() | ReportJob():
                return ReportEffect(cluster, decision, identity, self._versions)
            case _:
                raise TypeError(f"no effect is known for decisions of type {decision.type!r}")

    def _release(self, decision: AdmitWorkload | EvictWorkload, identity: DecisionId) -> Effect:
        kind = APPLICATION_KINDS.get(decision.application)
        if kind is None:
            return NoEffect(f"a {decision.application} has no object: its pods' gates hold it back")
        if decision.application == BY_HAND:
            return NoEffect("its status says it, by a decision of its own")
        return ReleaseEffect(self._cluster, decision, identity, kind)
