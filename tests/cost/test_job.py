"""Validation of jobs."""

import pytest

from planner.cost.job import DailyHours, Service
from planner.errors import SpecError


@pytest.mark.parametrize("shares", [[1.0] * 23, [-1.0] + [1.0] * 23, [0.0] * 24])
def test_absurd_hours_of_a_day_are_refused(shares: list[float]) -> None:
    with pytest.raises(SpecError, match="hourly_shares needs 24 non-negative numbers"):
        Service(requests_per_day=1, hourly_shares=tuple(shares))


@pytest.mark.parametrize("change", [{"hours_per_day": 24}, {"hours_per_day": 1e-3}, {"days_per_week": 7}])
def test_hours_up_to_a_whole_week_are_allowed(change: dict[str, float]) -> None:
    DailyHours(**({"hours_per_day": 8} | change))


@pytest.mark.parametrize(
    "change", [{"hours_per_day": 24.5}, {"hours_per_day": 0}, {"days_per_week": 7.5}, {"days_per_week": 0}]
)
def test_hours_that_no_week_has_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(SpecError):
        DailyHours(**({"hours_per_day": 8} | change))


def test_an_hour_is_at_most_wholly_busy() -> None:
    assert Service(requests_per_day=1, busy_fraction=1).busy_fraction == 1
    with pytest.raises(SpecError, match="busy_fraction"):
        Service(requests_per_day=1, busy_fraction=1.5)


def test_requests_may_be_as_short_and_targets_as_strict_as_one_likes() -> None:
    small = {"prompt_tokens": 0.0, "output_tokens": 0.5, "ttft_seconds": 0.5, "tpot_seconds": 0.5, "e2e_seconds": 0.5}
    service = Service(requests_per_day=0.5, burstiness=0.5, **small)
    assert service.evolve(**small) == service
    for field in ("output_tokens", "ttft_seconds", "tpot_seconds", "e2e_seconds", "burstiness"):
        with pytest.raises(SpecError, match=field):
            Service(requests_per_day=1, **{field: 0})
