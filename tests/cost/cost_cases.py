"""Cost estimates and rent-or-buy cases of a plan that several tests start from."""

from dataclasses import replace
from datetime import date

from planner.cost.demand import Throughput
from planner.cost.estimate import CostEstimate, estimate_cost
from planner.cost.figure import Figure
from planner.cost.owning.accounting import user_resale_curve
from planner.cost.owning.costs import FIGURES, ServerSetup
from planner.cost.rent_or_buy.case import DRIFT, RENT_PRICE, TIME, USE, RentOrBuyCase
from planner.cost.terms import CostTerms, DailyHours
from planner.plan.catalog import Catalog

EVERY_DAY = DailyHours(hours_per_day=12, days_per_week=7)
PACE = Throughput(samples_per_second=2, tokens_per_second=600, low_time_factor=0.8, high_time_factor=1.3)


def estimate(
    catalog: Catalog, today: date, terms: CostTerms, gpu: str = "h100-sxm5-80gb", count: int = 8
) -> CostEstimate:
    return estimate_cost(terms, catalog.hardware.gpu(gpu), count, PACE, catalog.cost, today)


def case_of(
    catalog: Catalog, today: date, terms: CostTerms, gpu: str = "h100-sxm5-80gb", count: int = 8
) -> RentOrBuyCase:
    found = estimate(catalog, today, terms, gpu, count).case
    assert found is not None
    return found


def changed(case: RentOrBuyCase, **values: float) -> RentOrBuyCase:
    return replace(case, figures={**case.figures, **{name: Figure.own(value) for name, value in values.items()}})


def two_cards() -> RentOrBuyCase:
    """Return a case of two cards in one server in round numbers, most of them exact, without interest."""
    given = {
        "card_price_usd": 10_000.0,
        "host_factor": 1.5,
        "card_power_watts": 500.0,
        "server_power_factor": 1.2,
        "active_power_fraction": 0.8,
        "idle_power_fraction": 0.3,
        "pue": 1.25,
        "tariff_usd_per_kwh": 0.2,
        RENT_PRICE: 2.0,
        DRIFT: 0.0,
        USE: 1.0,
        TIME: 1.0,
    }
    figures = {name: Figure.own(value) for name, value in (dict.fromkeys(FIGURES, 0.0) | given).items()}
    price = Figure(value=10_000, low=5_000, high=20_000, source="a shop", date="2026-10-01")
    return RentOrBuyCase(
        figures=figures | {"card_price_usd": price},
        setup=ServerSetup(count=2, groups=1, gpus_per_server=8, colocation_power="metered"),
        resale=user_resale_curve(0.25, 4),
        busy_hours_per_year=2_000,
        billed_per_busy_hour=1.1,
        billed_hours_per_year=100,
        rent_usd_per_year=50,
        rent_term_years=0,
        horizon_years=4,
        discount_rate=0,
    )
