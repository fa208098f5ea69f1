"""Alerts are about metrics that there are, and lead to a section of the runbook that there is."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from prometheus_client import REGISTRY
from sluice_scheduler import metrics

ROOT = Path(__file__).parents[2]
RULES = yaml.safe_load((ROOT / "deploy/alerts/sluice.rules.yaml").read_text())


def test_alerts_know_the_metrics_and_the_runbook() -> None:
    rules = [rule for group in RULES["groups"] for rule in group["rules"]]
    known = {
        f"{metric.name}_total" if metric.type == "counter" else metric.name for metric in REGISTRY.collect()
    }
    sections = set(re.findall(r"^## (.*)$", (ROOT / "docs/runbook.md").read_text(), re.MULTILINE))
    assert metrics.SET_ASIDE
    assert rules
    for rule in rules:
        assert set(re.findall(r"sluice_\w+", rule["expr"])) <= known
        [section] = re.findall(r"docs/runbook.md, ([\w ]+)\.", rule["annotations"]["description"])
        assert section in sections
