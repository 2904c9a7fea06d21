"""The accounting view of owned servers."""

import pytest

from planner.cost.figure import NINETY_PERCENT
from planner.cost.owning.accounting import (
    OwnedServers,
    break_even_utilization,
    owned_month,
    payback_month,
    resale_curve,
    user_resale_curve,
    yearly_depreciation,
)
from planner.cost.rent_or_buy.cash_flows import hours_to_pay_back
from planner.plan.catalog import Catalog


def test_books_without_use_have_no_price_an_hour() -> None:
    servers = OwnedServers(
        capex_usd=10_000,
        servers=1,
        gpus=1,
        server_kilowatts=1,
        years=5,
        capital_rate=0.08,
        pue=1,
        tariff_usd_per_kwh=0.2,
        colocation_usd_per_kw_month=0,
        operations_fraction_per_year=0,
        idle_power_fraction=0.3,
    )
    assert servers.evolve(capex_usd=0.5, server_kilowatts=0.5, years=0.5).capex_usd == 0.5
    assert owned_month(servers, 0).usd_per_gpu_hour is None
    assert break_even_utilization(servers, 0.01) is None
    assert break_even_utilization(servers, 0.2) is None
    assert payback_month(servers, 0.5, 0.1) is None
    assert hours_to_pay_back(100, 1.0, 1.0) is None


def test_books_write_off_no_more_than_the_cost() -> None:
    assert yearly_depreciation(900, "straight-line", 3, 5) == [300, 300, 300, 0, 0]
    assert yearly_depreciation(500, "straight-line", 2.5, 3) == [200, 200, 100]
    assert sum(yearly_depreciation(1_000, "declining", 5, 50)) == pytest.approx(1_000, rel=1e-6)
    assert yearly_depreciation(1_000, "declining", 5, 1)[0] == pytest.approx(275.6, abs=0.05)
    assert yearly_depreciation(1_000, "macrs-5", 5, 8) == pytest.approx([200, 320, 192, 115.2, 115.2, 57.6, 0, 0])


def test_the_resale_band_stands_in_order_and_goes_on_falling(catalog: Catalog) -> None:
    curve = resale_curve(catalog.cost.constants)
    assert curve.band(0) == (1, 1, 1)
    before = curve.band(0)
    for years in (0.5, 1, 1.7, 2, 3, 4, 5, 7, 12):
        low, middle, high = curve.band(years)
        assert low <= middle <= high
        assert all(now < then for now, then in zip((low, middle, high), before, strict=True))
        before = low, middle, high
    assert curve.share(3) == pytest.approx(0.38, abs=0.005)
    assert curve.share(3, NINETY_PERCENT) == pytest.approx(curve.band(3)[2])
    assert curve.share(3, -NINETY_PERCENT) == pytest.approx(0.25)


def test_an_own_resale_value_is_reached_at_the_horizon() -> None:
    curve = user_resale_curve(0.25, 4)
    assert curve.share(4) == 0.25
    assert curve.share(2) == pytest.approx(0.5)
    assert curve.share(2, 1.0) == curve.share(2)
    assert user_resale_curve(0, 4).share(4) == 0
