"""The accounting view of owned servers."""

from planner.cost.owning.accounting import OwnedServers, break_even_utilization, owned_month, payback_month
from planner.cost.rent_or_buy.cash_flows import hours_to_pay_back


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
