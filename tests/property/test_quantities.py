"""Quantities against Kubernetes' rules, written down a second time, and against its Go parser's answers."""

from decimal import ROUND_UP, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sluice.quantities import (
    MAX_AMOUNT,
    QuantityError,
    format_amount,
    parse_percent,
    parse_quantity,
    to_base_units,
)

DECIMAL_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
BYTES = ("memory", "ephemeral-storage", "hugepages-2Mi")


class Oracle:
    """The documented rules of resource.Quantity, on decimals of ample precision.

    number × suffix; rounded away from zero to a nano; capped at ±(2^63 - 1). Value() and MilliValue() round
    away from zero once more, to a unit and to a milli.
    """

    @staticmethod
    def value(sign: str, digits: str, suffix: str) -> Decimal:
        with localcontext() as context:
            context.prec = 1000
            number = Decimal(digits)
            if suffix in DECIMAL_SUFFIXES:
                number = number.scaleb(DECIMAL_SUFFIXES[suffix])
            elif suffix in BINARY_SUFFIXES:
                number *= 2 ** BINARY_SUFFIXES[suffix]
            else:
                number = number.scaleb(int(suffix[1:]))
            number = min(number.quantize(Decimal("1e-9"), rounding=ROUND_UP), Decimal(2**63 - 1))
            return -number if sign == "-" else number

    @staticmethod
    def units(value: Decimal, per_whole: int) -> int:
        with localcontext() as context:
            context.prec = 1000
            rounded = int((value * per_whole).to_integral_value(rounding=ROUND_UP))
        return max(-(2**63 - 1), min(rounded, 2**63 - 1))


signs = st.sampled_from(["", "+", "-"])
whole = st.integers(0, 10**21).map(str)
numbers = st.one_of(
    whole,
    whole.map("{}.".format),
    st.tuples(whole, st.integers(0, 10**15).map(str)).map(".".join),
    st.integers(0, 10**15).map(".{}".format),
    st.tuples(st.sampled_from(["0", "000"]), whole).map("".join),
)
exponents = st.tuples(st.sampled_from("eE"), signs, st.integers(0, 30)).map(lambda e: "".join(map(str, e)))
suffixes = st.one_of(st.sampled_from([*DECIMAL_SUFFIXES, *BINARY_SUFFIXES]), exponents)


@given(signs, numbers, suffixes)
def test_every_quantity_has_the_value_that_the_rules_give_it(sign: str, digits: str, suffix: str) -> None:
    expected = Oracle.value(sign, digits, suffix)
    text = sign + digits + suffix
    assert parse_quantity(text) == Fraction(expected)
    assert to_base_units("cpu", text) == Oracle.units(expected, 1000)
    assert to_base_units("memory", text) == Oracle.units(expected, 1)
    assert to_base_units("nvidia.com/gpu", text) == Oracle.units(expected, 1)


@given(st.text(alphabet="0123456789.+-eEinumkKMGTP% ", max_size=12))
def test_any_text_is_a_quantity_or_a_named_error(text: str) -> None:
    try:
        value = parse_quantity(text)
    except QuantityError as error:
        complaint = str(error)
    else:
        assert abs(value) <= MAX_AMOUNT
        return
    assert repr(text) in complaint
    assert "for example" in complaint


@given(st.sampled_from(["cpu", "nvidia.com/gpu", *BYTES]), st.integers(-MAX_AMOUNT, MAX_AMOUNT))
def test_what_is_written_reads_back_as_the_same(resource: str, amount: int) -> None:
    if resource == "cpu":  # whole cores are capped, so milli-cores cannot say more
        amount //= 1000
    assert to_base_units(resource, format_amount(resource, amount)) == amount


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_rounding_never_loses_a_request(first: int, second: int) -> None:
    """The sum of rounded parts covers the rounded sum: nobody gets more than is accounted for."""
    parts = sum(to_base_units("cpu", f"{amount}n") for amount in (first, second))
    assert parts >= to_base_units("cpu", f"{first + second}n")


# text: Value(), MilliValue(), as apimachinery 0.36.3 answered.
GO = {
    "0": (0, 0),
    "1": (1, 1000),
    "100m": (1, 100),
    "1500m": (2, 1500),
    "0.5": (1, 500),
    ".5Gi": (536870912, 536870912000),
    "1.Gi": (1073741824, 1073741824000),
    "1.1Ki": (1127, 1126400),
    "0.1m": (1, 1),
    "-0.1m": (-1, -1),
    "-1.5": (-2, -1500),
    "0.1n": (1, 1),
    "1e-40": (1, 1),
    "1.0000000001": (2, 1001),
    "0.0000000001Ki": (1, 1),
    "1E3": (1000, 1000000),
    "1e+3": (1000, 1000000),
    "1e-3": (1, 1),
    "1k": (1000, 1000000),
    "16Gi": (17179869184, 17179869184000),
}


@pytest.mark.parametrize("text", GO)
def test_it_agrees_with_kubernetes_own_parser(text: str) -> None:
    assert (to_base_units("memory", text), to_base_units("cpu", text)) == GO[text]


@pytest.mark.parametrize("text", ["1E", "8E", "1000P"])
def test_a_capital_e_alone_is_exa(text: str) -> None:
    assert parse_quantity(text) == int(text[:-1]) * {"E": 10**18, "P": 10**15}[text[-1]]


@pytest.mark.parametrize("text", ["10Ei", "1e30", "1e99999999999", "9223372036854775808", "9" * 200])
def test_what_is_beyond_all_bounds_is_capped(text: str) -> None:
    assert to_base_units("memory", text) == MAX_AMOUNT
    assert to_base_units("cpu", text) == MAX_AMOUNT
    assert to_base_units("memory", f"-{text}") == -MAX_AMOUNT


@pytest.mark.parametrize(
    "text",
    [
        "4x",
        "1K",
        "1ki",
        "1i",
        "1e",
        "1e3.5",
        "1KiB",
        "0x10",
        "1,5",
        "--1",
        "½",
        "١",
        "Mi",
        ".",
        "+",
        "-",
        ".Mi",
        "nan",
        "inf",
        "1_000",
        "1e1Ki",
        "",
        " ",
        " 1",
        "1 ",
        "1\n",
        "9" * 300,
    ],
)
def test_nonsense_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(
        QuantityError, match=r"is not a quantity: write a number .* for example 4, 500m or 16Gi"
    ):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("0%", 0),
        ("50%", Fraction(1, 2)),
        ("12.5%", Fraction(1, 8)),
        ("100%", 1),
        ("100.0%", 1),
        (".5%", Fraction(1, 200)),
    ],
)
def test_percentages(text: str, share: Fraction) -> None:
    assert parse_percent(text) == share


@pytest.mark.parametrize("text", ["", "%", "50", "-1%", "100.1%", "1e1%", "50 %", "5%%", "1Ki%"])
def test_wrong_percentages_are_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(QuantityError, match="write a number from 0 to 100 with %"):
        parse_percent(text)


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 3500, "3.5"),
        ("cpu", 250, "0.25"),
        ("cpu", -1, "-0.001"),
        ("cpu", 64000, "64"),
        ("memory", 0, "0"),
        ("memory", 1023, "1023"),
        ("memory", 3 * 2**29, "1.5Gi"),
        ("memory", 896 * 2**20, "896Mi"),
        ("memory", 2**30 + 1, "1073741825"),
        ("memory", 10**9, "1G"),
        ("memory", -(2**40), "-1Ti"),
        ("hugepages-2Mi", 2**22, "4Mi"),
        ("ephemeral-storage", 10 * 2**30, "10Gi"),
        ("nvidia.com/gpu", 1024, "1024"),
        ("pods", 110, "110"),
    ],
)
def test_amounts_are_written_as_people_write_them(resource: str, amount: int, text: str) -> None:
    assert format_amount(resource, amount) == text
