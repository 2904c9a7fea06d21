"""The best mix of owned and rented groups."""

import pytest

from planner.cost.rent_or_buy.hybrid import best_mix
from planner.errors import SpecError


def test_a_group_is_owned_while_it_is_busy_enough() -> None:
    # One more costs 100 and saves 1 an hour: worth it from 100 busy hours of 400 on.
    loads = [3, 2, 2, 0]
    found = best_mix(loads, [0, 100, 200, 300], 0.0, 1.0, 400)
    assert found.best.owned == 2
    assert best_mix([0.0], [0], 0.0, 1.0, 10).best.owned_work_fraction == 1


@pytest.mark.parametrize("loads", [[], [-1.0], [1e6]])
def test_absurd_loads_are_refused(loads: list[float]) -> None:
    with pytest.raises(SpecError, match="loads: must be from 0 to 2,000 groups"):
        best_mix(loads, [0], 0, 1, 1)
