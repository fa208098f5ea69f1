"""Kinds of other projects, where their own CRDs are not installed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def stand_in(
    kind: str,
    collection: str,
    *,
    labels: Mapping[str, str] | None = None,
    spec_properties: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """As little of a kind as the API server needs: any fields, and a status of its own. `collection` is where
    its objects are: group/version/plural.
    """
    group, version, plural = collection.split("/")
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    # The API server asks for a word about groups that end so.
    approved = {"api-approved.kubernetes.io": "unapproved, a stand-in"} if group.endswith("k8s.io") else {}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "labels": dict(labels or {}), "annotations": approved},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
            },
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {**anything, "properties": dict(spec_properties or {})},
                                "status": anything,
                            },
                        }
                    },
                }
            ],
        },
    }
