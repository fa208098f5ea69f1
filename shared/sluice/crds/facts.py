"""Specs of custom resources → the facts of them that records carry."""

from __future__ import annotations

from collections.abc import Mapping

from sluice.crds.tenancy import Bounds, QueueSpec, ResourcePoolSpec
from sluice.crds.values import LabelSelector
from sluice.events import Amounts, PoolFacts, QueueFacts
from sluice.values import LabelRequirement, NamespaceSelector
from sluice.vocabulary import NAME_LABEL

_ANY_NAMESPACE = LabelRequirement(key=NAME_LABEL, operator="Exists")


def queue_facts(spec: QueueSpec, *, generation: int, created_ms: int) -> QueueFacts:
    return QueueFacts(
        cell=spec.cell or "",
        parent=spec.parent or "",
        weight=spec.weight,
        guaranteed=spec.guaranteed,
        limit=spec.limit,
        guaranteed_by_pool=_by_pool(spec.pools, "guaranteed"),
        limit_by_pool=_by_pool(spec.pools, "limit"),
        namespaces=NamespaceSelector(
            names=tuple(spec.namespaces.names), requirements=_requirements(spec.namespaces.selector)
        ),
        ordering=spec.ordering,
        preemption=spec.preemption,
        reclaim=spec.reclaim.enabled,
        grace_ms=spec.reclaim.grace_seconds * 1000,
        minimum_run_ms=spec.reclaim.minimum_run_time_seconds * 1000,
        lost_work_per_hour_ms=_ms(spec.reclaim.lost_work_per_hour_seconds),
        tenure_ms=_ms(spec.tenure_seconds),
        patience_ms=_ms(spec.reservation.patience_seconds),
        reserves=spec.reservation.enabled,
        start_deadline_ms=_ms(spec.start_deadline_seconds),
        oversubscription=spec.oversubscription,
        policy=spec.policy or "",
        created_ms=created_ms,
        generation=generation,
    )


def pool_facts(spec: ResourcePoolSpec, *, generation: int) -> PoolFacts:
    return PoolFacts(
        cell=spec.cell, node_selector=spec.node_selector, supply=spec.supply or "", generation=generation
    )


def _ms(seconds: int | None) -> int | None:
    """Absent stays absent: then the cell's setting holds."""
    return None if seconds is None else seconds * 1000


def _by_pool(pools: Mapping[str, Bounds], bound: str) -> dict[str, Amounts]:
    return {name: amounts for name, bounds in pools.items() if (amounts := getattr(bounds, bound))}


def _requirements(selector: LabelSelector | None) -> tuple[LabelRequirement, ...]:
    """An absent selector selects nothing, an empty one everything, as in Kubernetes."""
    return () if selector is None else label_requirements(selector) or (_ANY_NAMESPACE,)


def label_requirements(selector: LabelSelector) -> tuple[LabelRequirement, ...]:
    """All of what a selector asks for; nothing if it is empty."""
    labels = (
        LabelRequirement(key=key, operator="In", values=(value,))
        for key, value in selector.match_labels.items()
    )
    expressions = (
        LabelRequirement(key=each.key, operator=each.operator, values=tuple(each.values))
        for each in selector.match_expressions
    )
    return (*labels, *expressions)
