"""Whatever length somebody writes at, what quotes it fits into a record."""

import orjson
import pytest
from sluice.kafka import VALUE_BYTES_MAX, Received, dead_letter
from sluice.kube import Answer
from sluice.texts import LENGTH_MAX, cut

LONG = "x" * 2_000_000


def test_a_text_is_cut_only_if_it_is_too_long() -> None:
    assert cut("four", 4) == "four"
    assert cut("fives", 4) == "f..."


@pytest.mark.parametrize("body", [orjson.dumps({"message": LONG}), LONG.encode()])
def test_an_api_servers_words_are_cut(body: bytes) -> None:
    assert Answer(422, body).message == cut(LONG)


def test_a_dead_letter_keeps_what_fits() -> None:
    record = Received(partition=0, offset=7, key=b"k", value=LONG.encode(), headers=[("ce_id", b"1")])
    letter = dead_letter(record, topic="t", error=LONG)
    assert letter.value == LONG[:VALUE_BYTES_MAX].encode()
    assert len(letter.header("sluice_error") or "") == LENGTH_MAX
    assert letter.header("ce_id") == "1"
