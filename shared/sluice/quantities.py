"""Exact amounts of resources: Kubernetes' quantities, percentages, and the integers the ledger counts in.

No float touches an amount: a quantity becomes a `Fraction`, and what is counted is an integer in the
resource's base unit, milli-cores for cpu and whole units (bytes, devices) for everything else.

The grammar is that of `resource.Quantity`'s documentation. The Go parser is laxer in three places that no
manifest means ("Mi", "." and "+" read as 0); here they are errors.
"""

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

from sluice.texts import cut

CPU: Final = "cpu"
#: No amount is larger, as in Kubernetes; a larger one is capped, so a pod asking for 1e30 simply never fits.
MAX_AMOUNT: Final = 2**63 - 1

_SUFFIXES: Final = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
_NUMBER: Final = r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+"
_QUANTITY: Final = re.compile(
    rf"(?P<sign>[+-]?)(?P<number>{_NUMBER})(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_PERCENT: Final = re.compile(rf"(?P<number>{_NUMBER})%")
#: Longer texts are no amounts but attacks on arbitrary precision.
_LENGTH_MAX: Final = 256
#: 10 to this power is past every cap and, negated, below every rounding, whatever digits precede it.
_EXPONENT_MAX: Final = 2 * _LENGTH_MAX
_NANO: Final = 10**9
_WRITTEN_LARGEST_FIRST: Final = ("Ei", "E", "Pi", "P", "Ti", "T", "Gi", "G", "Mi", "M", "Ki", "k", "")


class QuantityError(ValueError):
    """A text is no quantity; the message names it and says what would be one."""


def parse_quantity(text: str) -> Fraction:
    """The exact value of a quantity: "500m" is 1/2, "1.5Gi" is 1610612736, "2e3" is 2000.

    As in Kubernetes, what is finer than a nano is rounded up (away from zero) to one, so that asking for
    something is never asking for nothing, and what is beyond 2^63-1 is capped there.
    """
    match = _QUANTITY.fullmatch(text) if len(text) <= _LENGTH_MAX else None
    if match is None:
        raise QuantityError(
            f"{_shown(text)} is not a quantity: write a number with an optional suffix "
            "(n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as e3), for example 4, 500m or 16Gi"
        )
    magnitude = Fraction(match["number"]) * _scale(match["suffix"], match["exponent"])
    magnitude = min(Fraction(_ceil(magnitude * _NANO), _NANO), Fraction(MAX_AMOUNT))
    return -magnitude if match["sign"] == "-" else magnitude


def parse_percent(text: str) -> Fraction:
    """The share that a percentage from 0% to 100% stands for: "50%" is 1/2."""
    match = _PERCENT.fullmatch(text) if len(text) <= _LENGTH_MAX else None
    share = Fraction(match["number"]) / 100 if match else None
    if share is None or share > 1:
        raise QuantityError(
            f"{_shown(text)} is not a percentage: write a number from 0 to 100 with %, for example 50%"
        )
    return share


def is_percent(text: str) -> bool:
    """Whether a queue's amount is a share of a pool rather than a quantity."""
    return text.endswith("%")


@lru_cache(maxsize=4096)  # the same few requests stand on thousands of pods
def to_base_units(resource: str, text: str) -> int:
    """A quantity in its resource's base unit, rounded up (away from zero) as Kubernetes does."""
    value = parse_quantity(text)
    magnitude = min(_ceil(abs(value) * _units_per_whole(resource)), MAX_AMOUNT)
    return -magnitude if value < 0 else magnitude


def format_amount(resource: str, amount: int) -> str:
    """An amount in base units as people write it: 3500 of cpu is "3.5", 1610612736 of memory is "1.5Gi".

    It is the shortest text that `to_base_units` reads back as the same amount, so that what an explanation
    says can be put into a manifest as it is.
    """
    sign, magnitude = ("-", -amount) if amount < 0 else ("", amount)
    if resource == CPU:
        return sign + _decimal(Fraction(magnitude, _units_per_whole(resource)))
    if not _is_in_bytes(resource):
        return f"{sign}{magnitude}"
    texts = [
        _decimal(magnitude / _SUFFIXES[suffix]) + suffix
        for suffix in _WRITTEN_LARGEST_FIRST
        if magnitude >= _SUFFIXES[suffix] or not suffix
    ]
    return sign + min(texts, key=len)  # of equals the first: the largest unit


def _scale(suffix: str | None, exponent: str | None) -> Fraction:
    if exponent is None:
        return _SUFFIXES[suffix or ""]
    return Fraction(10) ** max(-_EXPONENT_MAX, min(int(exponent), _EXPONENT_MAX))


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)


def _units_per_whole(resource: str) -> int:
    return 1000 if resource == CPU else 1


def _is_in_bytes(resource: str) -> bool:
    return resource in ("memory", "storage", "ephemeral-storage") or resource.startswith("hugepages-")


def _decimal(value: Fraction) -> str:
    """A fraction whose denominator divides a power of ten, in full."""
    whole, rest = divmod(value.numerator, value.denominator)
    digits = ""
    while rest:
        digit, rest = divmod(rest * 10, value.denominator)
        digits += str(digit)
    return f"{whole}.{digits}" if digits else str(whole)


def _shown(text: str) -> str:
    return repr(cut(text, 40))
