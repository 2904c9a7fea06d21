"""Autocast's copies of weights as memory terms."""

from planner.memory.training.setup import cast_terms


def test_copies_take_two_bytes_for_each_cast_parameter():
    (copies,) = cast_terms(1000, 2)
    assert (copies.name, copies.bytes, copies.formula) == ("temporaries", 2000, "P_c × w")
    assert [symbol.value for symbol in copies.symbols] == [1000, 2]


def test_without_cast_parameters_there_is_no_term():
    assert cast_terms(0, 2) == ()
