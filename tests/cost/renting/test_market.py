"""The offer that is chosen for a job in each rental mode."""

from dataclasses import replace
from datetime import date

import pytest
from cost_cases import estimate
from renting_samples import OFFER, PLAIN

from planner.cost.demand import demand_of
from planner.cost.renting.offer import Offer
from planner.cost.renting.rent_cost import RentalMarket
from planner.cost.terms import CostTerms, RentTerms, Run
from planner.errors import SpecError
from planner.plan.catalog import Catalog

DEAR = OFFER.evolve(id="dear-8x", on_demand_price_usd_per_hour=48, spot_price_usd_per_hour=12)


def market(catalog: Catalog, today: date, *offers: Offer, terms: RentTerms = PLAIN, count: int = 8) -> RentalMarket:
    gpu = catalog.hardware.gpu("h100-sxm5-80gb")
    demand = demand_of(Run(amount=100), None)
    return RentalMarket(gpu, count, demand, terms, replace(catalog.cost, given_offers=offers), today)


def test_each_mode_has_its_own_cheapest_offer(catalog: Catalog, today: date) -> None:
    found = market(catalog, today, DEAR, OFFER)
    chosen, reason = found.choose()
    assert chosen is not None
    assert (chosen.offer.id, reason) == ("here-8x", "")
    assert [row.usd for row in found.rows("on-demand")] == [4_000, 4_800]
    by_mode = {quoted.mode: quoted.offer.id for quoted in found.quotes()}
    assert by_mode["on-demand"] == "here-8x"
    assert by_mode["spot"] == "dear-8x"


def test_an_offer_that_is_named_holds_in_all_modes_that_it_has(catalog: Catalog, today: date) -> None:
    named = market(catalog, today, DEAR.evolve(spot_price_usd_per_hour=None), OFFER, terms=RentTerms(offer="dear-8x"))
    assert {quoted.offer.id for quoted in named.quotes()} == {"dear-8x"}
    assert named.quote_in("spot") is None


@pytest.mark.parametrize(("count", "cards", "usd"), [(8, 8, 24), (12, 6, 18), (1, 1, 3)])
def test_a_price_of_ones_own_is_that_of_as_many_cards_as_are_used(
    catalog: Catalog, today: date, count: int, cards: int, usd: float
) -> None:
    chosen, _ = market(catalog, today, terms=RentTerms(usd_per_gpu_hour=3), count=count).choose()
    assert chosen is not None
    offer = chosen.offer
    assert (offer.provider, offer.own) == ("your own offer", True)
    assert (offer.gpu_count, offer.on_demand_price_usd_per_hour) == (cards, usd)


def test_a_price_of_ones_own_keeps_where_the_offer_is(catalog: Catalog, today: date) -> None:
    chosen, _ = market(catalog, today, OFFER, terms=RentTerms(usd_per_gpu_hour=3)).choose()
    assert chosen is not None
    assert (chosen.offer.id, chosen.offer.region) == ("here-8x", "us-east-1")
    assert chosen.offer.on_demand_price_usd_per_hour == 24


def test_without_an_offer_the_reason_is_given(catalog: Catalog, today: date) -> None:
    name = catalog.hardware.gpu("h100-sxm5-80gb").name
    assert market(catalog, today).choose() == (None, f"no current on-demand offer for the {name} is known")
    odd = OFFER.evolve(price_kind="from")
    chosen, reason = market(catalog, today, odd).choose()
    assert chosen is None
    assert reason.startswith(f"no on-demand offer for the {name} is comparable (the cheapest: ")


def test_the_cheapest_that_can_be_compared_is_taken(catalog: Catalog, today: date) -> None:
    found = estimate(catalog, today, CostTerms(job=Run(amount=300)))
    assert found.result.rent is not None
    best = next(row for row in found.rows if row.comparable)
    assert found.result.rent.offer_id == best.offer.id
    assert found.result.rent.usd == pytest.approx(best.usd)


def test_a_named_offer_is_taken_whatever_it_costs(catalog: Catalog, today: date) -> None:
    named = RentTerms(offer="aws-p5.48xlarge-us-east-1-2026-10-10")
    found = estimate(catalog, today, CostTerms(job=Run(amount=300), rent=named))
    assert found.result.rent is not None
    assert found.result.rent.usd == 300 * 55.04
    assert (found.result.rent.region, found.result.rent.billed_currency) == ("us-east-1", "USD")
    assert found.result.answer is not None
    assert found.result.answer.region == "us-east-1"
    assert found.result.rent.carbon is not None
    assert found.result.rent.carbon.region == "US-VA"
    assert found.result.rent.carbon.pue.value == 1.135
    with pytest.raises(SpecError, match="has h100-sxm5-80gb, not l4") as caught:
        estimate(catalog, today, CostTerms(rent=named), "l4")
    assert caught.value.field == "rent.offer"


def test_offers_that_cannot_be_compared_give_no_answer(catalog: Catalog, today: date) -> None:
    found = estimate(catalog, today, CostTerms(), "rtx-pro-6000-blackwell-ws", 1)
    assert found.rows
    assert found.result.rent is None
    assert "is comparable" in found.result.notes[0]


def test_modes_that_nobody_offers_are_left_out(catalog: Catalog, today: date) -> None:
    modes = [each.mode for each in estimate(catalog, today, CostTerms(), "rtx-4090", 1).result.rental_modes]
    assert modes == ["on-demand"]
