"""What renting costs: machines, hours, commitments, interruptions, storage, egress; and how it is explained."""

import pytest

from planner.cost.demand import Demand, Throughput, demand_of
from planner.cost.job import DailyHours, Run, Service
from planner.cost.renting.offer import ExchangeRate, Offer
from planner.cost.renting.quote import RentFacts, RentQuote, commitment_share, quote
from planner.cost.renting.rent_cost import rent_cost
from planner.cost.result import RentCost
from planner.cost.terms import RentTerms
from planner.errors import SpecError
from planner.plan.catalog import Catalog

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
RUN = Run(amount=100, checkpoint_seconds=36, restart_seconds=900)
PLAIN = RentTerms()


@pytest.fixture(scope="module")
def facts(catalog: Catalog) -> RentFacts:
    return RentFacts.of(catalog.cost)


def explained(found: RentQuote, demand: Demand, facts: RentFacts, terms: RentTerms = PLAIN) -> RentCost:
    cost = rent_cost(found, demand, terms, facts)
    assert sum(term.usd for term in cost.terms) == pytest.approx(cost.usd)
    assert cost.low_usd <= cost.usd <= cost.high_usd
    assert all(term.low_usd <= term.usd <= term.high_usd for term in cost.terms)
    return cost


def test_hours_are_billed_in_whole_increments(facts: RentFacts) -> None:
    demand = demand_of(Run(amount=10.2), None)
    assert quote(OFFER, "on-demand", demand, 8, PLAIN, facts).usd == 11 * 40
    by_minute = OFFER.evolve(billing_increment_seconds=60)
    assert quote(by_minute, "on-demand", demand, 8, PLAIN, facts).usd == pytest.approx(10.2 * 40)
    by_day = RentTerms(billing_increment_seconds=86_400)
    assert quote(OFFER, "on-demand", demand, 8, by_day, facts).usd == 24 * 40


def test_each_day_is_a_session_of_its_own(facts: RentFacts) -> None:
    demand = demand_of(DailyHours(hours_per_day=7.5, days_per_week=7), None)
    found = quote(OFFER, "on-demand", demand, 8, PLAIN, facts)
    assert found.billed_hours == pytest.approx(8 * 365.25 / 12)


def test_whole_machines_are_rented(facts: RentFacts) -> None:
    demand = demand_of(Run(amount=10), None)
    assert quote(OFFER, "on-demand", demand, 9, PLAIN, facts).usd == 2 * 10 * 40
    assert quote(OFFER, "on-demand", demand, 2, RentTerms(minimum_instances=3), facts).usd == 3 * 10 * 40


def test_idle_hours_are_billed_too(facts: RentFacts) -> None:
    demand = demand_of(Run(amount=10), None)
    assert quote(OFFER, "on-demand", demand, 8, RentTerms(idle_billed_hours=5), facts).usd == 15 * 40


def test_a_commitment_is_paid_for_its_whole_term(facts: RentFacts) -> None:
    once = demand_of(Run(amount=10), None)
    assert quote(OFFER, "reserved-1y", once, 8, PLAIN, facts).usd == 8_760 * 28
    assert quote(OFFER, "reserved-3y", once, 8, PLAIN, facts).usd == 3 * 8_760 * 20
    long = demand_of(Run(amount=9_000), None)
    assert quote(OFFER, "reserved-1y", long, 8, PLAIN, facts).usd == 2 * 8_760 * 28
    yearly = demand_of(Run(amount=100, repeats_per_year=4), None)
    assert quote(OFFER, "reserved-1y", yearly, 8, PLAIN, facts).usd == pytest.approx(8_760 * 28 / 4)
    often = demand_of(Run(amount=1_000, repeats_per_year=12), None)
    assert quote(OFFER, "reserved-1y", often, 8, PLAIN, facts).usd == pytest.approx(2 * 8_760 * 28 / 12)


def test_interruptions_lengthen_a_spot_run(facts: RentFacts) -> None:
    terms = RentTerms(mean_hours_between_interruptions=24)
    demand = demand_of(RUN, None)
    found = quote(OFFER, "spot", demand, 8, terms, facts)
    assert found.waste is not None
    assert found.hours == pytest.approx(100 * (1 + found.waste.waste_fraction) + 0.25)
    assert found.usd >= 16 * 100
    cost = explained(found, demand, facts, terms)
    assert cost.checkpoint_interval_hours == pytest.approx((2 * 0.01 * 24) ** 0.5)
    assert {symbol.name for symbol in cost.terms[0].symbols} == {"m", "h", "p", "w", "M"}


def test_more_machines_are_interrupted_more_often(facts: RentFacts) -> None:
    demand = demand_of(RUN, None)
    one, two = (quote(OFFER, "spot", demand, count, PLAIN, facts) for count in (8, 16))
    assert one.waste is not None
    assert two.waste is not None
    assert two.waste.waste_fraction > one.waste.waste_fraction


def test_spot_is_never_taken_to_cost_more_than_on_demand(facts: RentFacts) -> None:
    terms = RentTerms(mean_hours_between_interruptions=0.1)
    demand = demand_of(RUN, None)
    found = quote(OFFER, "spot", demand, 8, terms, facts)
    assert found.capped
    assert found.usd == quote(OFFER, "on-demand", demand, 8, terms, facts).usd
    assert any("cost more than on-demand" in note for note in explained(found, demand, facts, terms).notes)
    only_spot = OFFER.evolve(on_demand_price_usd_per_hour=None)
    assert quote(only_spot, "spot", demand, 8, terms, facts).usd > found.usd


def test_what_interruptions_lose_of_daily_hours_is_not_known(facts: RentFacts) -> None:
    demand = demand_of(DailyHours(hours_per_day=8), None)
    found = quote(OFFER, "spot", demand, 8, PLAIN, facts)
    assert any("unknown for this job" in note for note in explained(found, demand, facts).notes)


def test_storage_is_paid_as_long_as_the_run_takes(facts: RentFacts) -> None:
    demand = demand_of(Run(amount=730.5, checkpoint_gb=300, dataset_gb=200), None)
    found = quote(OFFER, "on-demand", demand, 8, PLAIN, facts)
    assert found.storage_usd == pytest.approx(500 * 0.02)
    assert [term.name for term in explained(found, demand, facts).terms] == ["machines", "storage"]
    own = RentTerms(storage_usd_per_gb_month=0.1)
    assert quote(OFFER, "on-demand", demand, 8, own, facts).storage_usd == pytest.approx(50)


@pytest.mark.parametrize(
    ("offer", "terms", "usd", "formula"),
    [
        (OFFER, PLAIN, 900 * 0.09, "100 GB free, then 0.09 to 10,000 GB; 0.085 to 50,000 GB"),
        (OFFER, RentTerms(egress_usd_per_gb=0.2), 200, "g · 0.2"),
        (OFFER.evolve(egress_free=True), PLAIN, 0, "g · 0"),
        (OFFER.evolve(provider="Nowhere"), PLAIN, 0, "not counted"),
    ],
)
def test_egress_is_paid_by_the_providers_tiers(
    facts: RentFacts, offer: Offer, terms: RentTerms, usd: float, formula: str
) -> None:
    demand = demand_of(Run(amount=10, egress_gb=1_000), None)
    found = quote(offer, "on-demand", demand, 8, terms, facts)
    assert found.egress_usd == pytest.approx(usd)
    cost = explained(found, demand, facts, terms)
    assert cost.terms[-1].formula.startswith(formula)
    assert any("unknown and not counted" in note for note in cost.notes) == (offer.provider == "Nowhere")


def test_the_range_of_the_pace_is_that_of_the_price(facts: RentFacts) -> None:
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


def test_a_service_is_rented_for_its_groups(facts: RentFacts) -> None:
    demand = demand_of(Service(requests_per_day=86_400, peak_factor=3), Throughput(samples_per_second=2))
    found = quote(OFFER, "on-demand", demand, 8, PLAIN, facts)
    assert found.usd == pytest.approx(demand.groups * 731 * 40, rel=0.002)
    assert explained(found, demand, facts).gpu_count == demand.groups * 8
    committed = quote(OFFER, "reserved-1y", demand, 8, PLAIN, facts)
    assert committed.usd == pytest.approx(demand.groups * 730.5 * 28)
    assert committed.low_usd == committed.usd == committed.high_usd
    interrupted = quote(OFFER, "spot", demand, 8, RentTerms(mean_hours_between_interruptions=50), facts)
    assert interrupted.hours == demand.rented_hours


def test_what_has_to_be_said_of_a_price_is_said(facts: RentFacts) -> None:
    demand = demand_of(Run(amount=10), None)
    rate = ExchangeRate(currency="EUR", usd_per_unit=1.17, date="2026-08-21", source="ECB")
    foreign = OFFER.evolve(billed_currency="EUR", exchange_rate=rate)
    cost = explained(quote(foreign, "on-demand", demand, 8, PLAIN, facts), demand, facts)
    assert cost.oldest_price_date == "2026-08-21"
    assert cost.terms[0].symbols[-1].meaning == "USD for one EUR"
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
    assert said.terms[0].certainty == "yours"


def test_what_an_offer_does_not_have_is_refused(facts: RentFacts) -> None:
    demand = demand_of(Run(amount=10), None)
    with pytest.raises(SpecError, match="has no spot price") as caught:
        quote(OFFER.evolve(spot_price_usd_per_hour=None), "spot", demand, 8, PLAIN, facts)
    assert caught.value.field == "rent.mode"
    with pytest.raises(SpecError, match=r"a fraction of 0\.5 of a card"):
        quote(OFFER.evolve(gpu_count=0.5), "on-demand", demand, 1, PLAIN, facts)


def test_commitments_that_save_nothing_have_no_break_even() -> None:
    assert commitment_share(OFFER, "spot") is None
    assert commitment_share(OFFER.evolve(reserved_1y_price_usd_per_hour=45), "reserved-1y") is None
    assert commitment_share(OFFER.evolve(on_demand_price_usd_per_hour=None), "reserved-1y") is None
