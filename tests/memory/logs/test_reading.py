"""Amounts of a log keep the line that they were printed in."""

from planner.memory.logs.reading import logged_amount
from planner.memory.logs.text import LogText, rounded_amount
from planner.units import GIB


def test_an_amount_knows_its_line_and_the_interval_of_its_digits():
    (line,) = LogText("start\n  weights take 1.5 GiB  \n").lines_with("take")
    amount = logged_amount("model weights", rounded_amount("1.5", GIB), "weights", line, term="weights")
    assert (amount.line, amount.text) == (2, "weights take 1.5 GiB")
    assert amount.bytes == 1.5 * GIB
    assert (amount.low_bytes, amount.high_bytes) == (round(1.45 * GIB), round(1.55 * GIB))
    assert (amount.term, amount.counter, amount.sense) == ("weights", None, "peak")
