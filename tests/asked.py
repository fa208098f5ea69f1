"""How long, and how often, somebody asks of a program for something (argparse's `type`)."""

from __future__ import annotations

from argparse import ArgumentTypeError
from contextlib import suppress
from math import isfinite


def some_minutes(text: str) -> float:
    with suppress(ValueError):
        if isfinite(minutes := float(text)) and minutes > 0:
            return minutes
    raise ArgumentTypeError(f"{text or 'nothing'} is no time to work for: write minutes, more than 0")


def at_least_one(text: str) -> int:
    with suppress(ValueError):
        if (number := int(text)) > 0:
            return number
    raise ArgumentTypeError(f"{text or 'nothing'} is too few: write a whole number, 1 or more")
