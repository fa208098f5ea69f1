"""What a pod says of its work, its end and its devices."""

from __future__ import annotations

from typing import Any

import pytest
from samples_of_objects import TIME_MS, pod, seen
from sluice.events import PodFacts
from sluice_watcher import normalise


def facts(**parts: Any) -> PodFacts:
    return normalise.pod(seen(pod(**parts))).pod


def saying(text: str) -> dict[str, Any]:
    return pod(metadata={"annotations": {"sluice.dev/saved-at": text}})


def saved(text: str) -> int:
    return normalise.pod(seen(saying(text))).pod.saved_ms


@pytest.mark.parametrize(
    ("text", "saved_ms"),
    [
        ("2026-01-02T03:04:05Z", 1_767_323_045_000),
        ("2026-01-02T03:04:05.25Z", 1_767_323_045_250),
        ("2026-01-02T03:04:05.123456789Z", 1_767_323_045_123),
        ("2026-01-02T04:04:05+01:00", 1_767_323_045_000),
        ("2026-01-02 03:04:05z", 1_767_323_045_000),
    ],
)
def test_when_it_saved_its_work_is_an_rfc_3339_time(text: str, saved_ms: int) -> None:
    assert saved(text) == saved_ms
    assert normalise.unread_of_pod(saying(text)) is None


@pytest.mark.parametrize(
    "text",
    [
        "yesterday",
        "1767323045",
        "2026-01-02",
        "2026-01-02T03:04:05",  # of which zone?
        "2026-13-02T03:04:05Z",
        "2026-01-02T03:04:05+99:00",
        "٢٠٢٦-01-02T03:04:05Z",
    ],
)
def test_nonsense_says_nothing_and_is_told(text: str) -> None:
    assert saved(text) == 0
    assert "is no time: write one such as" in str(normalise.unread_of_pod(saying(text)))


@pytest.mark.parametrize("text", ["", "1969-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00"])
def test_who_does_not_say_when_has_saved_nothing(text: str) -> None:
    assert saved(text) == 0
    assert normalise.unread_of_pod(saying(text)) is None


def test_a_time_in_the_future_says_nothing() -> None:
    assert TIME_MS == 1_790_000_000_000
    assert saved("2026-09-21T14:13:20Z") == TIME_MS
    assert saved("2026-09-21T14:13:21Z") == 0


def test_when_it_ends_at_the_latest_is_its_active_deadline() -> None:
    assert facts(spec={"activeDeadlineSeconds": 90}).ends_in_ms == 90_000
    assert facts(spec={"activeDeadlineSeconds": None}).ends_in_ms == 0
    assert facts().ends_in_ms == 0


def test_devices_claimed_by_dra_are_told_of() -> None:
    assert facts(spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "one"}]}).claims_devices
    assert not facts(spec={"resourceClaims": None}).claims_devices
    assert not facts().claims_devices
