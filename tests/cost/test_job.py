"""Validation of jobs."""

import pytest

from planner.cost.job import Service
from planner.errors import SpecError


@pytest.mark.parametrize("shares", [[1.0] * 23, [-1.0] + [1.0] * 23, [0.0] * 24])
def test_absurd_hours_of_a_day_are_refused(shares: list[float]) -> None:
    with pytest.raises(SpecError, match="hourly_shares needs 24 non-negative numbers"):
        Service(requests_per_day=1, hourly_shares=tuple(shares))
