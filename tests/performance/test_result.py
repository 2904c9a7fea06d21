"""Terms of a time estimate."""

import pytest

from planner.errors import SpecError
from planner.performance.result import TimeResult, TimeTerm

EXCHANGE = TimeTerm(
    name="gradient_exchange",
    seconds=3.0,
    overlapped_seconds=2.0,
    formula="G ÷ B",
    symbols=(),
    source="a test",
    certainty="measured",
)


def test_overlapped_seconds_do_not_lengthen_the_total() -> None:
    assert EXCHANGE.exposed_seconds == 1.0


def test_terms_are_found_by_name() -> None:
    result = TimeResult(task="training", kind="step", terms=(EXCHANGE,))
    assert result.term("gradient_exchange") == EXCHANGE
    assert result.term("host") is None


def test_no_term_takes_less_than_no_time() -> None:
    with pytest.raises(SpecError, match="seconds"):
        EXCHANGE.evolve(seconds=-1.0)
