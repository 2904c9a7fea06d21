"""Amounts of a log with the lines that they were printed in, numbers of its text, and what is not text."""

import pytest

from planner.errors import LogError
from planner.memory.logs.read import read_log
from planner.memory.logs.reading import (
    LogText,
    decode_log,
    exact_amount,
    logged_amount,
    rounded_amount,
    truncated_amount,
)
from planner.units import GIB, MIB


def test_an_amount_knows_its_line_and_the_interval_of_its_digits():
    (line,) = LogText("start\n  weights take 1.5 GiB  \n").lines_with("take")
    amount = logged_amount("model weights", rounded_amount("1.5", GIB), "weights", line, term="weights")
    assert (amount.line, amount.text) == (2, "weights take 1.5 GiB")
    assert amount.bytes == 1.5 * GIB
    assert (amount.low_bytes, amount.high_bytes) == (round(1.45 * GIB), round(1.55 * GIB))
    assert (amount.term, amount.counter, amount.sense) == ("weights", None, "peak")


def test_lines_have_their_numbers_and_colours_are_taken_off():
    log = LogText("first\n\x1b[32mINFO\x1b[0m Model loading took\r1 GiB\n\nlast Model loading took")
    lines = list(log.lines_with("Model loading took"))
    assert [(line.number, line.text) for line in lines] == [
        (2, "INFO Model loading took 1 GiB"),
        (4, "last Model loading took"),
    ]
    assert log.before(lines[0]) == "first"
    assert LogText("mark").before(next(LogText("mark").lines_with("mark"))) == ""
    assert list(log.after(lines[1], 3)) == []
    assert [line.number for line in LogText("a\nb\nc").after(next(LogText("a\nb\nc").lines_with("a")), 1)] == [2]


def test_a_quoted_line_is_short():
    item = read_log("Model loading took 1.00 GiB" + "x" * 1_000).measured[0]
    assert item.text.endswith("…")


@pytest.mark.parametrize("data", [b"\x80\x04\x95", b"PK\x03\x04rest"])
def test_pickles_are_never_read(data):
    with pytest.raises(LogError, match="pickle") as error:
        decode_log(data)
    assert "json.dump" in error.value.hint


def test_files_of_powershell_and_of_no_encoding_are_text():
    assert decode_log("Größe".encode("utf-16")) == "Größe"
    assert decode_log(b"\xef\xbb\xbfa\xff") == "a\ufffd"


def test_amounts_know_what_their_digits_leave_open():
    assert rounded_amount("1.50", GIB) == (GIB * 3 // 2, round(1.495 * GIB), round(1.505 * GIB))
    assert rounded_amount("1.5", GIB, 2) == rounded_amount("1.50", GIB)
    assert rounded_amount("-0.05", GIB).bytes < 0
    assert truncated_amount("1,000", MIB) == (1000 * MIB, 1000 * MIB, 1001 * MIB - 1)
    assert exact_amount(7) == (7, 7, 7)
