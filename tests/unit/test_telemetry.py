"""Log lines: one JSON object each, and in every one what it is about."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from sluice.settings import Settings
from sluice.telemetry import setup_logging


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_every_line_says_what_it_is_about(capsys: pytest.CaptureFixture[str]) -> None:
    setup_logging("scheduler", Settings())
    about = {
        "cell": "default",
        "epoch": "1-42",
        "seq": "7",
        "event": "east/pod/u/8/ADDED",
        "object": "pod/a/b",
    }
    logging.getLogger("sluice").warning("admitted\n%s", "twice", extra=about)
    logging.getLogger("aiohttp").error("of a library's")
    told, other = lines(capsys)
    assert told | about == told
    assert (told["service"], told["level"], told["message"]) == ("scheduler", "WARNING", "admitted\ntwice")
    assert all(other[name] == "" for name in about), "always there, empty where it does not apply"


def test_a_line_is_one_line_though_it_tells_of_an_exception(capsys: pytest.CaptureFixture[str]) -> None:
    setup_logging("watcher", Settings())
    try:
        raise ValueError("no idea")
    except ValueError:
        logging.getLogger("sluice").exception("ended")
    [told] = lines(capsys)
    assert told["exception"].endswith("ValueError: no idea")


def test_what_a_library_retries_is_its_own_business(capsys: pytest.CaptureFixture[str]) -> None:
    setup_logging("watcher", Settings(log_level="DEBUG"))
    logging.getLogger("kafka.client").error("connection refused")
    assert lines(capsys) == []
