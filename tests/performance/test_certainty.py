"""Factors of the intervals of speeds."""

import pytest

from planner.performance.certainty import (
    CALIBRATED_SPREAD,
    CARRIED_OVER_SPREAD,
    SPREADS,
    scale_to_measured,
    spread_factor,
)
from planner.performance.result import TimeResult, TimeTerm
from planner.performance.setting import MeasuredSpeed


def test_fewer_sources_never_make_an_interval_narrower() -> None:
    for kind in SPREADS:
        factors = [spread_factor(kind, sources) for sources in (0, 1, 2, 5)]
        assert factors == sorted(factors, reverse=True)
        assert factors[-1] == factors[-2] > 1


TERM = TimeTerm(name="matrix_products", seconds=2.0, formula="F ÷ R", symbols=(), source="a test", certainty="measured")
ESTIMATE = TimeResult(
    task="training", kind="step", seconds=2.0, tokens_per_second=100.0, samples_per_second=1.0, terms=(TERM,)
)


@pytest.mark.parametrize(("value", "unit"), [(4.0, "seconds/step"), (50.0, "tokens/s"), (0.5, "samples/s")])
def test_a_measurement_half_as_fast_doubles_every_time(value: float, unit: str) -> None:
    measured = MeasuredSpeed.model_validate({"value": value, "unit": unit})
    scaled = scale_to_measured(ESTIMATE, ESTIMATE, measured, is_same=True)
    assert (scaled.seconds, scaled.tokens_per_second, scaled.samples_per_second) == (4.0, 50.0, 0.5)
    assert scaled.terms[0].seconds == 4.0
    assert (scaled.low_seconds, scaled.high_seconds) == (4.0 / CALIBRATED_SPREAD, 4.0 * CALIBRATED_SPREAD)
    assert scaled.basis == "measured"


def test_a_measurement_on_other_cards_scales_by_the_ratio_of_the_estimates() -> None:
    counterpart = ESTIMATE.evolve(seconds=8.0)
    scaled = scale_to_measured(ESTIMATE, counterpart, MeasuredSpeed(value=4.0, unit="seconds/step"), is_same=False)
    assert scaled.seconds == 1.0
    assert scaled.high_seconds == CARRIED_OVER_SPREAD
