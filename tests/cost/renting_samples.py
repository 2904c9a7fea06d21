"""An offer and its explained cost, for tests of renting."""

import pytest

from planner.cost.demand import Demand
from planner.cost.renting.offer import Offer
from planner.cost.renting.quote import RentalFacts, RentQuote
from planner.cost.renting.rent_cost import rent_cost
from planner.cost.result import RentCost
from planner.cost.terms import RentTerms

OFFER = Offer(
    id="here-8x",
    provider="AWS",
    instance="8x",
    gpu="h100-sxm5-80gb",
    gpu_count=8,
    region="us-east-1",
    on_demand_price_usd_per_hour=40,
    spot_price_usd_per_hour=16,
    reserved_1y_price_usd_per_hour=28,
    reserved_3y_price_usd_per_hour=20,
    price_date="2026-10-10",
    source="a price list",
)
PLAIN = RentTerms()


def explained(found: RentQuote, demand: Demand, facts: RentalFacts, terms: RentTerms = PLAIN) -> RentCost:
    cost = rent_cost(found, demand, terms, facts)
    assert sum(term.usd for term in cost.terms) == pytest.approx(cost.usd)
    assert cost.low_usd <= cost.usd <= cost.high_usd
    assert all(term.low_usd <= term.usd <= term.high_usd for term in cost.terms)
    return cost
