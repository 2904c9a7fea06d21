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


def test_whole_groups_are_rented_for_the_hours_of_their_load() -> None:
    # Two parts of 50 hours: 1.5 groups take two, 0.5 take one. Group-hours of work are 75 and 25.
    none, one, two = best_mix([1.5, 0.5], [0.0, 100.0, 200.0], 0.1, 1.0, 100, rent_fixed_usd=7.0).mixes
    assert (none.own_usd, none.rent_usd, none.owned_work_fraction) == (0, 150 + 7, 0)
    assert (one.own_usd, one.rent_usd, one.owned_work_fraction) == (pytest.approx(100 + 7.5), 50 + 7, 0.75)
    assert (two.own_usd, two.rent_usd, two.owned_work_fraction) == (pytest.approx(200 + 10), 0, 1)
    assert one.usd == one.own_usd + one.rent_usd


def test_groups_that_are_always_on_are_rented_for_all_hours() -> None:
    found = best_mix([1.5, 0.5], [0.0, 100.0, 200.0], 0.0, 1.0, 100, work_hours=10, always_on=True)
    assert [mix.rent_usd for mix in found.mixes] == [200, 100, 0]


@pytest.mark.parametrize("loads", [[], [-1.0], [1e6]])
def test_absurd_loads_are_refused(loads: list[float]) -> None:
    with pytest.raises(SpecError, match="loads: must be from 0 to 2,000 groups"):
        best_mix(loads, [0], 0, 1, 1)
