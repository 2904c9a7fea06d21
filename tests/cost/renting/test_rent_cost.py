"""Explained costs of renting."""

import pytest
from renting_samples import OFFER, PLAIN, explained

from planner.cost.demand import (
    Throughput,
    demand_of,
)
from planner.cost.renting.offer import ExchangeRate
from planner.cost.renting.quote import (
    RentalFacts,
    quote,
)
from planner.cost.renting.rent_cost import rent_cost
from planner.cost.terms import Run


def test_the_range_of_the_pace_is_that_of_the_price(facts: RentalFacts) -> None:
    pace = Throughput(tokens_per_second=1_000, low_time_factor=0.9, high_time_factor=1.3)
    demand = demand_of(Run(amount=3.6e8, unit="tokens"), pace)
    cost = rent_cost(quote(OFFER, "on-demand", demand, 8, PLAIN, facts), demand, PLAIN, facts, pace)
    assert (cost.low_usd, cost.usd, cost.high_usd) == pytest.approx((3_600, 4_000, 5_200))
    assert cost.usd_per_million_tokens == pytest.approx(4_000 / 360)
    assert cost.usd_per_gpu_hour == 5
    assert [(each.mode, each.above_fraction) for each in cost.commitments] == [
        ("reserved-1y", 0.7),
        ("reserved-3y", 0.5),
    ]


def test_what_has_to_be_said_of_a_price_is_said(facts: RentalFacts) -> None:
    demand = demand_of(Run(amount=10), None)
    rate = ExchangeRate(currency="EUR", usd_per_unit=1.17, date="2026-08-21", source="ECB")
    foreign = OFFER.evolve(billed_currency="EUR", exchange_rate=rate)
    cost = explained(quote(foreign, "on-demand", demand, 8, PLAIN, facts), demand, facts)
    assert cost.oldest_price_date == "2026-08-21"
    assert cost.terms[0].symbols[-1].meaning == "USD for one EUR"
    assert cost.terms[0].symbols[0].source == "the job, 8 GPUs each"
    odd = OFFER.evolve(
        gpu=None,
        candidates=("h100-sxm5-80gb", "h100-pcie-80gb"),
        gpu_count=1,
        billed_currency=None,
        price_date=None,
        region=None,
        incomplete="the host is billed separately",
        notes=("currency not verified",),
        spot_price_usd_per_hour=None,
        own=True,
    )
    said = explained(quote(odd, "on-demand", demand, 8, PLAIN, facts), demand, facts)
    assert len(said.notes) == 6
    assert said.oldest_price_date is None
    assert said.terms[0].symbols[0].source == "the job, 1 GPU each"
    assert said.terms[0].certainty == "yours"


@pytest.mark.parametrize(("linked", "why"), [(1, "each GPU holds a whole copy"), (2, "each 2 GPUs hold")])
def test_several_machines_are_explained_where_they_are_enough(facts: RentalFacts, linked: int, why: str) -> None:
    demand = demand_of(Run(amount=10), None)
    pairs = OFFER.evolve(gpu_count=2)
    notes = explained(quote(pairs, "on-demand", demand, 8, PLAIN, facts, linked), demand, facts).notes
    assert [note for note in notes if note.startswith(f"4 machines are enough: {why}")]
    assert not any(
        "are enough" in note
        for note in explained(quote(pairs, "on-demand", demand, 2, PLAIN, facts), demand, facts).notes
    )


def test_an_offer_says_whether_it_states_what_it_bills(facts: RentalFacts) -> None:
    demand = demand_of(Run(amount=1.1), None)
    by_second = explained(
        quote(OFFER.evolve(billing_increment_seconds=1), "on-demand", demand, 8, PLAIN, facts), demand, facts
    )
    assert (by_second.billing_increment_seconds, by_second.states_increment) == (1, True)
    assert by_second.billed_hours == pytest.approx(1.1)
    by_hour = explained(
        quote(OFFER.evolve(billing_increment_seconds=None), "on-demand", demand, 8, PLAIN, facts), demand, facts
    )
    assert (by_hour.billed_hours, by_hour.states_increment) == (2, False)
