"""The table of offers: who is in it, in which order, and who may be called the cheapest."""

from datetime import date

import pytest

from planner.cost.demand import Throughput, demand_of
from planner.cost.renting.offer import AMBIGUOUS, FROM_PRICE, UNVERIFIED, ExchangeRate, Offer
from planner.cost.renting.quote import RentalFacts
from planner.cost.renting.table import (
    HISTORY,
    TOO_FEW_CARDS,
    UNDATED,
    WHOLE_SYSTEM,
    CardDemand,
    OfferRow,
    cheapest_row,
    quote_offers,
)
from planner.cost.terms import RENT_MODES, DailyHours, RentTerms, Run
from planner.plan.catalog import Catalog

TODAY = date(2026, 11, 22)
OFFER = Offer(
    id="here",
    provider="Here",
    instance="8x",
    gpu="h100-sxm5-80gb",
    gpu_count=8,
    region="eu",
    on_demand_price_usd_per_hour=40,
    spot_price_usd_per_hour=20,
    price_date="2026-10-10",
    source="a price list",
)
DEMAND = demand_of(Run(amount=100), None)
PLAIN = RentTerms()


def rows(
    catalog: Catalog, *offers: Offer, terms: RentTerms = PLAIN, count: int = 8, today: date = TODAY
) -> tuple[OfferRow, ...]:
    candidates = {"h100-sxm5-80gb": CardDemand("h100-sxm5-80gb", count, DEMAND)}
    return quote_offers(offers, candidates, terms, RentalFacts.of(catalog.cost), today)


def changed(**changes: object) -> Offer:
    return OFFER.evolve(**changes)


@pytest.mark.parametrize(
    ("offer", "remark"),
    [
        (changed(gpu=None, candidates=("h100-sxm5-80gb", "h100-pcie-80gb")), AMBIGUOUS),
        (changed(price_kind="from"), FROM_PRICE),
        (changed(incomplete="the host is billed separately"), "the host is billed separately"),
        (changed(billed_currency=None, notes=("not verified",)), UNVERIFIED),
        (changed(system="dgx-h100"), WHOLE_SYSTEM),
        (changed(gpu_count=1, on_demand_price_usd_per_hour=2, spot_price_usd_per_hour=1), TOO_FEW_CARDS),
    ],
)
def test_some_prices_are_never_the_cheapest(catalog: Catalog, offer: Offer, remark: str) -> None:
    cheap = offer.evolve(id="cheap", on_demand_price_usd_per_hour=offer.gpu_count * 0.5, spot_price_usd_per_hour=None)
    found = rows(catalog, cheap, OFFER)
    assert [row.offer.id for row in found] == ["here", "cheap"]
    assert [row.comparable for row in found] == [True, False]
    assert found[1].remarks[0].endswith(remark)
    best = cheapest_row(found)
    assert best is not None
    assert best.offer is OFFER


def test_single_cards_will_do_where_the_person_says_so(catalog: Catalog) -> None:
    single = changed(gpu_count=1, on_demand_price_usd_per_hour=2, spot_price_usd_per_hour=None)
    (row,) = rows(catalog, single, terms=RentTerms(one_machine=False))
    assert row.comparable
    assert (row.instances, row.usd) == (8, 1_600)


def test_cards_that_exchange_no_data_may_be_in_several_machines_unless_the_person_wants_one(catalog: Catalog) -> None:
    single = changed(gpu_count=1, on_demand_price_usd_per_hour=2, spot_price_usd_per_hour=None)
    unlinked = {"h100-sxm5-80gb": CardDemand("h100-sxm5-80gb", 8, DEMAND, linked_cards=1)}

    def is_comparable(one_machine: bool | None) -> bool:
        terms = RentTerms(one_machine=one_machine)
        return quote_offers((single,), unlinked, terms, RentalFacts.of(catalog.cost), TODAY)[0].comparable

    assert is_comparable(None)
    assert is_comparable(False)
    assert not is_comparable(True)
    assert not rows(catalog, single)[0].comparable


def test_more_cards_than_a_machine_holds_share_several(catalog: Catalog) -> None:
    (row,) = rows(catalog, OFFER, count=16)
    assert row.comparable
    assert row.instances == 2


def test_nothing_comparable_gives_no_cheapest(catalog: Catalog) -> None:
    assert cheapest_row(rows(catalog, changed(price_kind="from"))) is None


@pytest.mark.parametrize(("day", "history"), [("2025-11-22", False), ("2025-11-21", True), ("2023-08-16", True)])
def test_history_stays_out_unless_it_is_asked_for(catalog: Catalog, day: str, history: bool) -> None:
    offer = changed(price_date=day)
    assert len(rows(catalog, offer)) == (0 if history else 1)
    (row,) = rows(catalog, offer, terms=RentTerms(include_history=True))
    assert (HISTORY in row.remarks) == history
    assert row.comparable


def test_undated_prices_say_so(catalog: Catalog) -> None:
    (row,) = rows(catalog, changed(price_date=None))
    assert row.remarks == (UNDATED,)
    assert (row.age_days, row.price_date) == (None, None)


@pytest.mark.parametrize(
    ("size", "said"), [(None, "the median of marketplace offers"), (7, "the median of 7 marketplace offers")]
)
def test_a_marketplaces_median_has_a_range(catalog: Catalog, size: int | None, said: str) -> None:
    (row,) = rows(catalog, changed(price_kind="median", sample_size=size))
    assert row.remarks == (f"{said}, which changes daily",)
    assert (row.low_usd, row.usd, row.high_usd) == pytest.approx((2_400, 4_000, 6_160))


def test_the_age_is_told(catalog: Catalog) -> None:
    (row,) = rows(catalog, OFFER)
    assert row.age_days == 43


def test_regions_and_providers_are_not_mixed(catalog: Catalog) -> None:
    there = changed(id="there", region="us", provider="There")
    assert {row.offer.region for row in rows(catalog, OFFER, there)} == {"eu", "us"}
    (only,) = rows(catalog, OFFER, there, terms=RentTerms(regions=("us",)))
    assert only.offer is there
    (mine,) = rows(catalog, OFFER, there, terms=RentTerms(providers=("Here",)))
    assert mine.offer is OFFER


def test_other_cards_and_shares_of_cards_stay_out(catalog: Catalog) -> None:
    share = changed(gpu_count=0.5, on_demand_price_usd_per_hour=1, spot_price_usd_per_hour=None)
    assert rows(catalog, changed(gpu="l4"), share) == ()


def test_an_ambiguous_offer_spans_the_costs_of_all_it_may_be(catalog: Catalog) -> None:
    offer = changed(gpu=None, candidates=("h100-sxm5-80gb", "h100-pcie-80gb"))
    fast, slow = (demand_of(Run(amount=hours), Throughput()) for hours in (100, 200))
    candidates = {
        "h100-sxm5-80gb": CardDemand("h100-sxm5-80gb", 8, fast),
        "h100-pcie-80gb": CardDemand("h100-pcie-80gb", 8, slow),
    }
    (row,) = quote_offers([offer], candidates, PLAIN, RentalFacts.of(catalog.cost), TODAY)
    assert (row.gpu, row.low_usd, row.usd, row.high_usd) == ("h100-pcie-80gb", 4_000, 8_000, 8_000)


def test_every_way_to_rent_can_be_listed(catalog: Catalog) -> None:
    candidates = {"h100-sxm5-80gb": CardDemand("h100-sxm5-80gb", 8, DEMAND)}
    found = quote_offers([OFFER], candidates, PLAIN, RentalFacts.of(catalog.cost), TODAY, RENT_MODES)
    assert [row.mode for row in found] == ["spot", "on-demand"]


def test_the_bundled_offers_are_sorted_and_their_cheapest_is_a_plain_price(catalog: Catalog) -> None:
    demand = demand_of(DailyHours(hours_per_day=8), None)
    candidates = {gpu.id: CardDemand(gpu.id, 1, demand) for gpu in catalog.hardware.gpus}
    found = quote_offers(catalog.offers, candidates, PLAIN, RentalFacts.of(catalog.cost), TODAY)
    assert len(found) > 300
    current, others = (
        [row.usd for row in found if row.comparable and row.current is is_current] for is_current in (True, False)
    )
    assert current == sorted(current)
    assert others == sorted(others)
    assert [row.usd for row in found if row.comparable] == current + others
    assert not any(row.offer.ambiguous or row.offer.is_history(TODAY) for row in found if row.comparable)


def test_euros_are_compared_by_their_dated_rate(catalog: Catalog) -> None:
    rate = ExchangeRate(currency="EUR", usd_per_unit=1.17, date="2026-08-21", source="ECB")
    (row,) = rows(catalog, changed(billed_currency="EUR", exchange_rate=rate))
    assert row.comparable
    assert row.offer.exchange_rate is rate


def test_old_and_undated_prices_never_lead_a_current_one(catalog: Catalog) -> None:
    bare = {"spot_price_usd_per_hour": None}
    old = changed(id="old", price_date="2026-07-01", on_demand_price_usd_per_hour=1.0, **bare)
    undated = changed(id="undated", price_date=None, on_demand_price_usd_per_hour=2.0, **bare)
    new = changed(id="new", price_date="2026-10-10", on_demand_price_usd_per_hour=90.0, **bare)
    found = rows(catalog, old, undated, new)
    assert [row.offer.id for row in found] == ["new", "old", "undated"]
    assert [row.current for row in found] == [True, False, False]
    assert cheapest_row(found).offer.id == "new"
    assert cheapest_row(found[1:]).offer.id == "old"


def test_replicas_need_no_machine_with_all_cards(catalog: Catalog) -> None:
    demand = demand_of(DailyHours(hours_per_day=8), None)
    facts = RentalFacts.of(catalog.cost)
    for linked, comparable in ((None, False), (4, False), (1, True)):
        candidates = {"l40s": CardDemand("l40s", 4, demand, linked)}
        found = quote_offers(catalog.offers, candidates, PLAIN, facts, TODAY)
        assert any(row.comparable and row.offer.gpu_count == 1 for row in found) is comparable
