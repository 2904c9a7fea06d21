"""Terms with their bounds, and symbols with the origin of their value."""

import pytest

from planner.memory import terms


@pytest.mark.parametrize(
    ("symbol", "origin"),
    [
        (terms.model_symbol, "model"),
        (terms.workload_symbol, "workload"),
        (terms.format_symbol, "format"),
        (terms.library_symbol, "library"),
        (terms.card_symbol, "card"),
        (terms.traced_symbol, "trace"),
    ],
)
def test_a_symbol_says_where_its_value_comes_from(symbol, origin):
    made = symbol("x", 3, "an amount")
    assert (made.name, made.value, made.meaning, made.origin) == ("x", 3, "an amount", origin)


def test_a_term_without_bounds_is_exact():
    exact = terms.term("weights", 100, "P", (), "counted")
    assert (exact.low_bytes, exact.bytes, exact.high_bytes, exact.certainty) == (100, 100, 100, "exact")


def test_a_measured_term_is_uncertain_by_one_percent_below_and_five_above():
    measured = terms.measured_term("activations", 1000, "T", (), "a trace")
    assert (measured.low_bytes, measured.bytes, measured.high_bytes) == (990, 1000, 1050)
    assert measured.certainty == "measured"
    assert terms.checked_bounds_bytes(1000) == (990, 1050)
