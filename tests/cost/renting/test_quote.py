"""What renting costs: machines, hours, commitments, interruptions, storage, egress; and how it is explained."""

import math

import pytest
from renting_samples import OFFER, PLAIN, explained

from planner.cost.demand import (
    Throughput,
    demand_of,
)
from planner.cost.renting.offer import Offer
from planner.cost.renting.quote import (
    RentalFacts,
    commitment_share,
    interruption_overhead,
    interruption_share,
    machines_for,
    mean_hours_between_interruptions,
    quote,
)
from planner.cost.terms import DailyHours, RentTerms, Run, Service
from planner.errors import SpecError
from planner.plan.catalog import Catalog

RUN = Run(amount=100, checkpoint_seconds=36, restart_seconds=900)


def test_hours_are_billed_in_whole_increments(facts: RentalFacts) -> None:
    demand = demand_of(Run(amount=10.2), None)
    assert quote(OFFER, "on-demand", demand, 8, PLAIN, facts).usd == 11 * 40
    by_minute = OFFER.evolve(billing_increment_seconds=60)
    assert quote(by_minute, "on-demand", demand, 8, PLAIN, facts).usd == pytest.approx(10.2 * 40)
    by_day = RentTerms(billing_increment_seconds=86_400)
    assert quote(OFFER, "on-demand", demand, 8, by_day, facts).usd == 24 * 40


def test_each_day_is_a_session_of_its_own(facts: RentalFacts) -> None:
    demand = demand_of(DailyHours(hours_per_day=7.5, days_per_week=7), None)
    found = quote(OFFER, "on-demand", demand, 8, PLAIN, facts)
    assert found.billed_hours == pytest.approx(8 * 365.25 / 12)


def test_whole_machines_are_rented(facts: RentalFacts) -> None:
    demand = demand_of(Run(amount=10), None)
    assert quote(OFFER, "on-demand", demand, 9, PLAIN, facts).usd == 2 * 10 * 40
    assert quote(OFFER, "on-demand", demand, 2, RentTerms(minimum_instances=3), facts).usd == 3 * 10 * 40


def test_idle_hours_are_billed_too(facts: RentalFacts) -> None:
    demand = demand_of(Run(amount=10), None)
    assert quote(OFFER, "on-demand", demand, 8, RentTerms(idle_billed_hours=5), facts).usd == 15 * 40


def test_a_commitment_is_paid_for_its_whole_term(facts: RentalFacts) -> None:
    once = demand_of(Run(amount=10), None)
    assert quote(OFFER, "reserved-1y", once, 8, PLAIN, facts).usd == 8_760 * 28
    assert quote(OFFER, "reserved-3y", once, 8, PLAIN, facts).usd == 3 * 8_760 * 20
    long = demand_of(Run(amount=9_000), None)
    assert quote(OFFER, "reserved-1y", long, 8, PLAIN, facts).usd == 2 * 8_760 * 28
    yearly = demand_of(Run(amount=100, repeats_per_year=4), None)
    assert quote(OFFER, "reserved-1y", yearly, 8, PLAIN, facts).usd == pytest.approx(8_760 * 28 / 4)
    often = demand_of(Run(amount=1_000, repeats_per_year=12), None)
    assert quote(OFFER, "reserved-1y", often, 8, PLAIN, facts).usd == pytest.approx(2 * 8_760 * 28 / 12)


def test_interruptions_lengthen_a_spot_run(facts: RentalFacts) -> None:
    terms = RentTerms(mean_hours_between_interruptions=24)
    demand = demand_of(RUN, None)
    found = quote(OFFER, "spot", demand, 8, terms, facts)
    assert found.overhead is not None
    assert found.hours == pytest.approx(100 * (1 + found.overhead.total_fraction) + 0.25)
    assert found.usd >= 16 * 100
    cost = explained(found, demand, facts, terms)
    assert cost.checkpoint_interval_hours == pytest.approx((2 * 0.01 * 24) ** 0.5)
    assert {symbol.name for symbol in cost.terms[0].symbols} == {"m", "h", "p", "w", "M"}


def test_more_machines_are_interrupted_more_often(facts: RentalFacts) -> None:
    demand = demand_of(RUN, None)
    one, two = (quote(OFFER, "spot", demand, count, PLAIN, facts) for count in (8, 16))
    assert one.overhead is not None
    assert two.overhead is not None
    assert two.overhead.total_fraction > one.overhead.total_fraction


def test_spot_is_never_taken_to_cost_more_than_on_demand(facts: RentalFacts) -> None:
    terms = RentTerms(mean_hours_between_interruptions=0.1)
    demand = demand_of(RUN, None)
    found = quote(OFFER, "spot", demand, 8, terms, facts)
    assert found.capped
    assert found.usd == quote(OFFER, "on-demand", demand, 8, terms, facts).usd
    assert any("cost more than on-demand" in note for note in explained(found, demand, facts, terms).notes)
    only_spot = OFFER.evolve(on_demand_price_usd_per_hour=None)
    assert quote(only_spot, "spot", demand, 8, terms, facts).usd > found.usd


def test_what_interruptions_lose_of_daily_hours_is_not_known(facts: RentalFacts) -> None:
    demand = demand_of(DailyHours(hours_per_day=8), None)
    found = quote(OFFER, "spot", demand, 8, PLAIN, facts)
    assert any("unknown for this job" in note for note in explained(found, demand, facts).notes)


def test_storage_is_paid_as_long_as_the_run_takes(facts: RentalFacts) -> None:
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
    facts: RentalFacts, offer: Offer, terms: RentTerms, usd: float, formula: str
) -> None:
    demand = demand_of(Run(amount=10, egress_gb=1_000), None)
    found = quote(offer, "on-demand", demand, 8, terms, facts)
    assert found.egress_usd == pytest.approx(usd)
    cost = explained(found, demand, facts, terms)
    assert cost.terms[-1].formula.startswith(formula)
    assert any("unknown and not counted" in note for note in cost.notes) == (offer.provider == "Nowhere")


def test_a_service_is_rented_for_its_groups(facts: RentalFacts) -> None:
    demand = demand_of(Service(requests_per_day=86_400, peak_factor=3), Throughput(samples_per_second=2))
    found = quote(OFFER, "on-demand", demand, 8, PLAIN, facts)
    assert found.usd == pytest.approx(demand.groups * 731 * 40, rel=0.002)
    assert explained(found, demand, facts).gpu_count == demand.groups * 8
    committed = quote(OFFER, "reserved-1y", demand, 8, PLAIN, facts)
    assert committed.usd == pytest.approx(demand.groups * 730.5 * 28)
    assert committed.low_usd == committed.usd == committed.high_usd
    interrupted = quote(OFFER, "spot", demand, 8, RentTerms(mean_hours_between_interruptions=50), facts)
    assert interrupted.hours == demand.rented_hours


def test_what_an_offer_does_not_have_is_refused(facts: RentalFacts) -> None:
    demand = demand_of(Run(amount=10), None)
    with pytest.raises(SpecError, match="has no spot price") as caught:
        quote(OFFER.evolve(spot_price_usd_per_hour=None), "spot", demand, 8, PLAIN, facts)
    assert caught.value.field == "rent.mode"
    with pytest.raises(SpecError, match=r"only 0\.5 of a GPU"):
        quote(OFFER.evolve(gpu_count=0.5), "on-demand", demand, 1, PLAIN, facts)


def test_commitments_that_save_nothing_have_no_break_even() -> None:
    assert commitment_share(OFFER, "spot") is None
    assert commitment_share(OFFER.evolve(reserved_1y_price_usd_per_hour=45), "reserved-1y") is None
    assert commitment_share(OFFER.evolve(on_demand_price_usd_per_hour=None), "reserved-1y") is None


def test_the_best_interval_balances_checkpoints_and_lost_work() -> None:
    found = interruption_overhead(checkpoint_hours=0.05, restart_hours=0, mean_hours=24)
    assert found.checkpoint_fraction == pytest.approx(found.lost_fraction)
    assert found.interval_hours is not None
    for other in (0.5, 2):
        worse = interruption_overhead(0.05, 0, 24, found.interval_hours * other)
        assert worse.total_fraction > found.total_fraction


def test_checkpoints_that_take_no_time_lose_no_work() -> None:
    found = interruption_overhead(checkpoint_hours=0, restart_hours=0.5, mean_hours=10)
    assert (found.interval_hours, found.total_fraction) == (None, 0.05)


def test_interruptions_without_pause_are_refused() -> None:
    with pytest.raises(SpecError, match="mean_hours_between_interruptions"):
        interruption_overhead(0.1, 0.1, 0)


def test_interruption_shares_become_hours() -> None:
    assert mean_hours_between_interruptions(0.15) == pytest.approx(730.5 / -math.log(0.85))


def test_cards_without_a_band_take_the_range_of_all(catalog: Catalog) -> None:
    constants = catalog.cost.constants
    h100, l4 = (interruption_share(gpu, "AWS", constants) for gpu in ("h100-sxm5-80gb", "l4"))
    a100, other = (interruption_share(gpu, "AWS", constants) for gpu in ("a100-pcie-80gb", "l40s"))
    assert [round(figure.value, 3) for figure in (h100, a100, l4, other)] == [0.15, 0.075, 0.025, 0.1]
    assert (h100.certainty, other.certainty) == ("quoted", "assumed")
    assert other.highest == 0.2
    elsewhere = interruption_share("h100-sxm5-80gb", "Azure", constants)
    assert (elsewhere.value, elsewhere.certainty) == (h100.value, "assumed")
    assert elsewhere.source.startswith("assumed: Azure publishes no rate")


@pytest.mark.parametrize(
    ("cards", "count", "groups", "minimum", "machines"),
    [(8, 8, 1, 1, 1), (1, 8, 2, 1, 16), (8, 1, 33, 1, 5), (8, 2, 33, 1, 9), (8, 5, 3, 1, 3), (1, 1, 1, 4, 4)],
)
def test_a_large_machine_holds_several_groups(
    cards: float, count: int, groups: int, minimum: int, machines: int
) -> None:
    assert machines_for(cards, count, groups, minimum) == machines
