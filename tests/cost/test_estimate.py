"""Renting beside owning: the whole answer, its terms, curves and bands, and what would change it."""

from dataclasses import replace
from datetime import date
from statistics import fmean

import pytest

from planner.cost.carbon import carbon_by_region, rented_footprint
from planner.cost.demand import Throughput, load_profile, required_groups
from planner.cost.estimate import CostEstimate, estimate_cost, flip_value, hybrid_of_plan
from planner.cost.figure import Figure
from planner.cost.job import DailyHours, Run, Service
from planner.cost.owning.purchase import card_price
from planner.cost.rent_or_buy.case import RENT_PRICE, RESALE, USE, Case
from planner.cost.rent_or_buy.cash_flows import (
    ALWAYS_CHEAPER,
    BEYOND_HORIZON,
    FIXED_RENT,
    NEVER_DEARER,
    NO_HOURLY_SAVING,
    RENT_CHEAPER,
    break_even,
)
from planner.cost.rent_or_buy.hybrid import best_mix
from planner.cost.rent_or_buy.uncertainty import SEED, simulate, tornado
from planner.cost.result import OwnCost
from planner.cost.terms import DEFAULT_SOURCES, BuyTerms, CostTerms, RentTerms
from planner.errors import SpecError
from planner.hardware.own import CardChange, OwnHardware, with_own
from planner.plan.catalog import Catalog

EVERY_DAY = DailyHours(hours_per_day=12, days_per_week=7)
PACE = Throughput(samples_per_second=2, tokens_per_second=600, low_time_factor=0.8, high_time_factor=1.3)


def estimate(
    catalog: Catalog, today: date, terms: CostTerms, gpu: str = "h100-sxm5-80gb", count: int = 8
) -> CostEstimate:
    return estimate_cost(terms, catalog.hardware.gpu(gpu), count, PACE, catalog.cost, today)


def case_of(catalog: Catalog, today: date, terms: CostTerms, gpu: str = "h100-sxm5-80gb", count: int = 8) -> Case:
    found = estimate(catalog, today, terms, gpu, count).case
    assert found is not None
    return found


def owned(found: CostEstimate) -> OwnCost:
    assert found.result.own is not None
    return found.result.own


JOBS = [
    EVERY_DAY,
    Run(amount=300),
    Run(amount=3e9, unit="tokens", repeats_per_year=5, checkpoint_seconds=30, restart_seconds=600),
    Run(amount=4_000, repeats_per_year=6),
    Service(requests_per_day=1e6, peak_factor=3),
    Service(requests_per_day=1e6, peak_factor=3, scales_down=True),
]


@pytest.mark.parametrize("place", ["desk", "lab", "colocation", "data-centre"])
@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.kind)
def test_every_job_has_an_answer_in_every_place(catalog: Catalog, today: date, place: str, job: object) -> None:
    terms = CostTerms.model_validate({"job": job, "buy": {"place": place}})
    found = estimate(catalog, today, terms)
    rent, own, answer, meeting = found.result.rent, owned(found), found.result.answer, found.result.break_even
    assert rent is not None
    assert answer is not None
    assert meeting is not None
    assert found.case is not None
    assert sum(term.usd for term in own.upfront) == pytest.approx(own.upfront_usd)
    assert sum(term.usd for term in own.monthly) == pytest.approx(own.monthly_cash_usd)
    assert all(term.source and term.formula and term.symbols for term in (*own.upfront, *own.monthly, *rent.terms))
    assert answer.saves_usd == pytest.approx(abs(answer.rent_usd - answer.own_usd))
    assert (answer.decision == "buy") == (answer.own_usd < answer.rent_usd)
    assert (meeting.gpu_hours is None) == (meeting.reason is not None)
    assert (meeting.years is None) == (meeting.years_reason is not None)
    assert found.result.curve[0].years == 0
    assert found.result.curve[-1].own_usd == pytest.approx(own.present_value_usd)
    for point in found.result.curve:
        assert point.own_low_usd <= point.own_usd + 1e-6
        assert point.rent_low_usd <= point.rent_usd <= point.rent_high_usd
    # One period of renting, repeated over the horizon without interest or drift, is what the curve ends at.
    free = found.case
    undiscounted = replace(free, discount_rate=0.0).streams().rent_usd(free.horizon_years)
    periods = found.demand.per_year(free.horizon_years) * free.horizon_years
    assert undiscounted == pytest.approx(rent.usd * periods, rel=1e-9)


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


def test_without_an_offer_owning_is_still_told(catalog: Catalog, today: date) -> None:
    found = estimate(catalog, today, CostTerms(rent=RentTerms(regions=("nowhere",))))
    assert (found.result.rent, found.result.break_even, found.result.answer) == (None, None, None)
    assert owned(found).upfront_usd > 0
    assert "no current offer" in found.result.notes[0]


def test_offers_that_cannot_be_compared_give_no_answer(catalog: Catalog, today: date) -> None:
    found = estimate(catalog, today, CostTerms(), "rtx-pro-6000-blackwell-ws", 1)
    assert found.rows
    assert found.result.rent is None
    assert "no current comparable offer" in found.result.notes[0]


def test_a_card_whose_price_nobody_knows_can_still_be_rented(catalog: Catalog, today: date) -> None:
    found = estimate(catalog, today, CostTerms(job=Run(amount=10)), "a10g", 1)
    assert found.case is None
    assert found.result.own is None
    assert found.result.rent is not None
    assert "the price of one A10G is unknown" in found.result.notes[-1]
    neither = estimate(catalog, today, CostTerms(rent=RentTerms(regions=("nowhere",))), "a10g", 1)
    assert neither.result.unsupported is not None
    with_price = CostTerms(buy=BuyTerms(card_price_usd=3_000))
    assert "board power of the A10G is unknown" in estimate(catalog, today, with_price, "a10g", 1).result.notes[-1]
    whole = CostTerms(buy=BuyTerms(server_price_usd=9_000, server_power_watts=700))
    assert owned(estimate(catalog, today, whole, "a10g", 1)).upfront_usd == 9_000


def test_a_region_without_a_tariff_asks_for_one(catalog: Catalog, today: date) -> None:
    found = estimate(catalog, today, CostTerms(region="gcp:us-central1"))
    assert "the electricity price in Council Bluffs, USA is unknown" in found.result.notes[-1]
    mine = CostTerms(region="gcp:us-central1", buy=BuyTerms(tariff_usd_per_kwh=0.1))
    carbon = owned(estimate(catalog, today, mine)).carbon
    assert carbon.grams_per_kwh is not None
    assert carbon.carbon_kg == pytest.approx(carbon.energy_kwh * 0.430)
    unknown = CostTerms(region="REG-EU")
    assert owned(estimate(catalog, today, unknown)).carbon.carbon_kg is None


def test_a_run_longer_than_the_horizon_is_refused(catalog: Catalog, today: date) -> None:
    with pytest.raises(SpecError, match="one run takes longer than the horizon"):
        estimate(catalog, today, CostTerms(job=Run(amount=9_000), horizon_years=1))


def test_own_figures_are_certain_and_theirs(catalog: Catalog, today: date) -> None:
    buy = BuyTerms(
        card_price_usd=20_000,
        host_factor=1.5,
        server_power_factor=1.5,
        resale_share=0.3,
        tariff_usd_per_kwh=0.1,
        network_usd=1_000,
        tax_fraction=0.19,
        insurance_fraction_per_year=0.01,
        shipping_usd=10,
        install_usd=10,
    )
    found = estimate(catalog, today, CostTerms(buy=buy, rent=RentTerms(price_drift_per_year=0.05)))
    own = owned(found)
    assert found.case is not None
    assert own.resale_usd == own.low_resale_usd == own.high_resale_usd == pytest.approx(160_000 * 0.3)
    assert RESALE not in found.case.uncertain
    assert {term.name for term in own.upfront if term.certainty == "yours"} >= {"cards", "host", "tax"}
    assert not any("not counted" in note for note in own.notes)


def test_a_power_limit_of_ones_own_is_ones_own_figure(catalog: Catalog, today: date) -> None:
    change = CardChange(gpu="rtx-3090", power_limit_watts=250, date="2026-11-01")
    changed = with_own(catalog.hardware, OwnHardware(changes=(change,)))
    for hardware, certainty in ((catalog.hardware, "quoted"), (changed, "yours")):
        found = estimate_cost(CostTerms(), hardware.gpu("rtx-3090"), 1, PACE, catalog.cost, today)
        assert found.case is not None
        assert found.case.figures["card_power_watts"].certainty == certainty


def test_what_was_paid_for_a_card_is_what_owning_it_costs(catalog: Catalog, today: date) -> None:
    change = CardChange(gpu="rtx-3090", purchase_price_usd=720, date="2026-11-01")
    changed = with_own(catalog.hardware, OwnHardware(changes=(change,)))
    for terms, price in ((CostTerms(), 720), (CostTerms(buy=BuyTerms(card_price_usd=500)), 500)):
        found = estimate_cost(terms, changed.gpu("rtx-3090"), 2, PACE, catalog.cost, today)
        assert found.case is not None
        figure = found.case.figures["card_price_usd"]
        assert (figure.value, figure.certainty) == (price, "yours")
        cards = next(term for term in owned(found).upfront if term.name == "cards")
        assert cards.usd == 2 * price


def test_a_foreign_offer_beside_household_power_says_that_one_is_without_tax(catalog: Catalog, today: date) -> None:
    terms = CostTerms(
        job=Run(amount=10), rent=RentTerms(offer="scaleway-l40s-global-2026-08-23"), buy=BuyTerms(place="desk")
    )
    assert "excludes VAT" in estimate(catalog, today, terms, "l40s", 1).result.notes[0]


def test_electricity_within_colocation_costs_nothing_more(catalog: Catalog, today: date) -> None:
    included = BuyTerms(place="colocation", colocation_usd_per_kw_month=200, colocation_power="included")
    own = owned(estimate(catalog, today, CostTerms(buy=included)))
    assert "energy" not in {term.name for term in own.monthly}
    assert own.books.energy_usd == 0
    assert own.carbon.energy_kwh > 0
    assert "electricity is included in the colocation price" in own.notes[0]


def test_what_a_place_has_to_say_is_said(catalog: Catalog, today: date) -> None:
    notes = owned(estimate(catalog, today, CostTerms(buy=BuyTerms(place="colocation")))).notes
    assert "electricity is metered" in notes[0]
    assert "may contain cooling, which the PUE counts too" in notes[1]


def test_cards_that_are_switched_off_draw_nothing_at_rest(catalog: Catalog, today: date) -> None:
    on, off = (
        owned(estimate(catalog, today, CostTerms(buy=BuyTerms(switched_off_when_idle=switched))))
        for switched in (False, True)
    )
    assert off.carbon.energy_kwh < on.carbon.energy_kwh
    assert off.books.energy_usd < on.books.energy_usd


def test_the_answer_flips_where_it_says(catalog: Catalog, today: date) -> None:
    case = case_of(catalog, today, CostTerms(job=EVERY_DAY))
    for name in ("card_price_usd", RENT_PRICE):
        value = flip_value(case, name)
        assert value is not None
        assert case.with_values({**case.central, name: value}).saving_usd(5) == pytest.approx(0, abs=0.01)


def test_figures_that_decide_nothing_never_flip(catalog: Catalog, today: date) -> None:
    fixed = BuyTerms(server_price_usd=300_000)
    case = case_of(catalog, today, CostTerms(buy=fixed))
    assert flip_value(case, "card_price_usd") is None


def changed(case: Case, **values: float) -> Case:
    return replace(case, figures={**case.figures, **{name: Figure.own(value) for name, value in values.items()}})


def test_break_even_says_why_there_is_none(catalog: Catalog, today: date) -> None:
    case = case_of(catalog, today, CostTerms(job=EVERY_DAY))
    cheap = changed(case, rent_usd_per_hour=1e-6)
    assert break_even(cheap.streams(), 5).reason == NO_HOURLY_SAVING
    assert break_even(cheap.streams(), 5).years_reason == RENT_CHEAPER
    assert break_even(changed(case, rent_usd_per_hour=3.0).streams(), 5).reason == BEYOND_HORIZON
    dear = replace(changed(case, rent_usd_per_hour=500.0), rent_usd_per_year=1e8)
    assert break_even(dear.streams(), 5).reason == ALWAYS_CHEAPER
    assert break_even(dear.streams(), 5).years is not None
    given = changed(dear, host_factor=1.0, network_share=0.0, rack_usd_per_server=0.0)
    assert break_even(given.streams(), 5).years_reason == NEVER_DEARER
    service = case_of(catalog, today, CostTerms(job=Service(requests_per_day=1e5)))
    assert break_even(service.streams(), 5).reason == FIXED_RENT


def test_a_commitment_is_owed_to_the_end_of_its_term(catalog: Catalog, today: date) -> None:
    rent = RentTerms(mode="reserved-3y")
    case = case_of(catalog, today, CostTerms(job=EVERY_DAY, rent=rent))
    assert case.rent_term_years == 3
    streams = case.streams()
    assert streams.rent_usd(0.1) == streams.rent_usd(3) < streams.rent_usd(3.1) == streams.rent_usd(6)
    once = case_of(catalog, today, CostTerms(job=Run(amount=100), rent=rent))
    assert once.rent_term_years == 0
    assert replace(once, discount_rate=0.0).streams().rent_usd(5) >= 3 * 8_760
    assert simulate(case, draws=20) is not None


def test_a_loan_at_the_discount_rate_changes_nothing(catalog: Catalog, today: date) -> None:
    plain, borrowed = (
        owned(estimate(catalog, today, CostTerms(buy=BuyTerms(loan_fraction=share, loan_rate=0.08))))
        for share in (0.0, 0.6)
    )
    assert borrowed.present_value_usd == pytest.approx(plain.present_value_usd)
    assert (plain.borrowed_usd, plain.loan_usd_per_month) == (0, 0)
    assert borrowed.borrowed_usd == pytest.approx(0.6 * borrowed.upfront_usd)
    assert borrowed.loan_usd_per_month * 36 > borrowed.borrowed_usd


def test_the_tornado_is_sorted_and_only_holds_what_moves_something(catalog: Catalog, today: date) -> None:
    case = case_of(catalog, today, CostTerms(job=EVERY_DAY))
    swings = tornado(case)
    assert [swing.width_usd for swing in swings] == sorted((swing.width_usd for swing in swings), reverse=True)
    assert all(swing.width_usd > 0 and swing.source for swing in swings)
    names = {swing.name for swing in swings}
    assert {"card_price_usd", RESALE, USE} <= names
    assert "network_share" not in names
    price = next(swing for swing in swings if swing.name == "card_price_usd")
    assert price.low_value < price.value < price.high_value
    assert price.low_saving_usd > price.high_saving_usd


def test_draws_are_always_the_same(catalog: Catalog, today: date) -> None:
    case = case_of(catalog, today, CostTerms(job=EVERY_DAY))
    first, again, other = (simulate(case, draws=200, seed=seed) for seed in (SEED, SEED, 7))
    assert first is not None
    assert other is not None
    assert first == again
    assert first.saving_usd != other.saving_usd
    assert first.saving_usd.p10 < first.saving_usd.p50 < first.saving_usd.p90
    assert len(first.band) == 13
    assert first.band[0].years == 0
    assert first.band[-1].own_usd == first.own_usd


def test_draws_without_uncertainty_are_the_answer(catalog: Catalog, today: date) -> None:
    case = case_of(catalog, today, CostTerms(job=EVERY_DAY, buy=BuyTerms(resale_share=0.2, loan_fraction=0.5)))
    certain = changed(case, **case.central)
    found = simulate(certain, draws=3)
    assert found is not None
    streams = certain.streams()
    assert found.own_usd.p50 == pytest.approx(streams.own_usd(5))
    assert found.rent_usd.p90 == pytest.approx(streams.rent_usd(5))
    assert found.owning_cheaper_fraction == (streams.saving_usd(5) > 0)


def test_draws_stop_when_nobody_wants_them(catalog: Catalog, today: date) -> None:
    case = case_of(catalog, today, CostTerms(job=EVERY_DAY))
    asked = []

    def cancelled() -> bool:
        asked.append(True)
        return len(asked) == 3

    assert simulate(case, cancelled=cancelled) is None
    assert len(asked) == 3


def test_the_base_load_is_owned_and_peaks_are_rented(catalog: Catalog, today: date) -> None:
    job = Service(requests_per_day=1e6, peak_factor=4)
    terms = CostTerms(job=job, buy=BuyTerms(place="data-centre"))
    plan = estimate(catalog, today, terms)
    average = required_groups(job, PACE)
    assert fmean(load_profile(job, average)) == pytest.approx(average, rel=1e-3)
    found = hybrid_of_plan(plan, terms, PACE)
    assert found is not None
    assert 0 < found.best.owned < average * 4
    assert found.best.usd == min(mix.usd for mix in found.mixes)
    assert found.mixes[0].own_usd == found.mixes[-1].rent_usd == 0
    assert [mix.owned_work_fraction for mix in found.mixes] == sorted(mix.owned_work_fraction for mix in found.mixes)


@pytest.mark.parametrize(
    ("terms", "pace"),
    [
        (CostTerms(), PACE),
        (CostTerms(job=Service(requests_per_day=1e6), rent=RentTerms(mode="reserved-3y")), PACE),
    ],
)
def test_mixing_is_no_question_without_peaks_to_rent(
    catalog: Catalog, today: date, terms: CostTerms, pace: Throughput | None
) -> None:
    assert hybrid_of_plan(estimate(catalog, today, terms), terms, pace) is None


def test_a_service_with_hardly_any_requests_takes_one_group(catalog: Catalog, today: date) -> None:
    terms = CostTerms(job=Service(requests_per_day=1e-9))
    assert owned(estimate(catalog, today, terms)).count == 8


def test_a_service_too_large_to_look_through_is_not_mixed(catalog: Catalog, today: date) -> None:
    terms = CostTerms(job=Service(requests_per_day=1e11))
    assert hybrid_of_plan(estimate(catalog, today, terms), terms, PACE) is None


def test_the_answer_says_how_long_requests_wait(catalog: Catalog, today: date) -> None:
    pace = Throughput(concurrent_requests=4, prompt_token_seconds=0.0005, output_token_seconds=0.005)
    terms, card = CostTerms(job=Service(requests_per_day=1e5)), catalog.hardware.gpu("h100-sxm5-80gb")
    told = estimate_cost(terms, card, 8, pace, catalog.cost, today)
    (note,) = [
        note for note in told.result.notes if "one group of cards answers 2 requests per second, 4 concurrently" in note
    ]
    assert "a request waits" in note
    full = terms.evolve(job=terms.job.evolve(requests_per_day=2 * 86_400, peak_factor=1, busy_fraction=1))
    crowded = estimate_cost(full, card, 8, pace, catalog.cost, today)
    assert not any("waits" in note for note in crowded.result.notes)


def test_a_group_is_owned_while_it_is_busy_enough() -> None:
    # One more costs 100 and saves 1 an hour: worth it from 100 busy hours of 400 on.
    loads = [3, 2, 2, 0]
    found = best_mix(loads, [0, 100, 200, 300], 0.0, 1.0, 400)
    assert found.best.owned == 2
    assert best_mix([0.0], [0], 0.0, 1.0, 10).best.owned_work_fraction == 1


@pytest.mark.parametrize("loads", [[], [-1.0], [1e6]])
def test_absurd_loads_are_refused(loads: list[float]) -> None:
    with pytest.raises(SpecError, match="loads: must be from 0 to 2,000 groups"):
        best_mix(loads, [0], 0, 1, 1)


def test_card_prices_are_the_median_of_what_is_asked(catalog: Catalog, today: date) -> None:
    purchases = catalog.cost.purchases
    l40s = card_price(purchases, "l40s", None, today)
    assert l40s is not None
    assert (l40s.value, l40s.low, l40s.high, l40s.date) == (8_500, 4_250, 17_000, None)
    assert "2 without a date" in l40s.source
    h100 = card_price(purchases, "h100-sxm5-80gb", None, today)
    assert h100 is not None
    assert (h100.low, h100.high) == (30_000, 40_000)
    old = card_price(purchases, "rtx-2080-ti", 999, date(2031, 1, 1))
    assert old is not None
    assert "one price, none from the last two years" in old.source
    launch = card_price(purchases, "no-such-card", 1_000, today)
    assert launch is not None
    assert (launch.value, launch.certainty) == (1_000, "assumed")
    assert card_price(purchases, "no-such-card", None, today) is None


def test_carbon_is_told_by_region(catalog: Catalog) -> None:
    rows = carbon_by_region(1_000, catalog.cost)
    assert [row.carbon_kg for row in rows] == sorted(row.carbon_kg for row in rows)
    assert len({row.code for row in rows}) == len(rows) > 150
    france = next(row for row in rows if row.code == "FR")
    assert france.carbon_kg == pytest.approx(56.039)


def test_carbon_of_a_rented_job_needs_its_region(catalog: Catalog) -> None:
    offer = catalog.cost.offer("gcp-a3-highgpu-8g-us-central1-2026-08-20")
    found = rented_footprint(offer, 100, catalog.cost)
    assert found is not None
    assert found.energy_kwh == pytest.approx(110)
    assert found.carbon_kg == pytest.approx(110 * 0.430)
    assert rented_footprint(offer.evolve(region=None), 100, catalog.cost) is None
    assert rented_footprint(offer.evolve(region="us-nowhere9"), 100, catalog.cost) is None
    assert rented_footprint(offer.evolve(provider="Else"), 100, catalog.cost) is None


@pytest.mark.parametrize(
    ("field", "terms"),
    [
        ("horizon_years", {"horizon_years": 0}),
        ("discount_rate", {"discount_rate": 1.0}),
        ("discount_rate", {"discount_rate": -0.1}),
        ("buy.card_price_usd", {"buy": {"card_price_usd": -100}}),
        ("buy.card_price_usd", {"buy": {"card_price_usd": 1e12}}),
        ("buy.pue", {"buy": {"pue": 0.5}}),
        ("buy", {"buy": {"colocation_usd_per_kw_month": 150}}),
        ("rent.storage_usd_per_gb_month", {"rent": {"storage_usd_per_gb_month": -1}}),
        ("rent.price_drift_per_year", {"rent": {"price_drift_per_year": -1}}),
        ("job.run.amount", {"job": {"kind": "run", "amount": 0}}),
        ("job.daily-hours.hours_per_day", {"job": {"kind": "daily-hours", "hours_per_day": 25}}),
        ("job.service.peak_factor", {"job": {"kind": "service", "requests_per_day": 1, "peak_factor": 0.5}}),
    ],
)
def test_absurd_terms_are_refused_by_field(field: str, terms: dict[str, object]) -> None:
    from pydantic import ValidationError

    with pytest.raises(ValidationError) as caught:
        CostTerms.model_validate(terms)
    assert SpecError.from_validation(caught.value).field == field


def test_each_default_that_has_a_source_is_a_field() -> None:
    kinds = {"job": (Run, Service, DailyHours), "rent": (RentTerms,), "buy": (BuyTerms,)}
    for name, source in DEFAULT_SOURCES.items():
        part, _, field = name.rpartition(".")
        assert source
        assert any(field in kind.model_fields for kind in kinds.get(part, (CostTerms,)))


def test_terms_round_trip() -> None:
    terms = CostTerms(job=Service(requests_per_day=10), buy=BuyTerms(place="desk", pue=1.1))
    assert CostTerms.model_validate_json(terms.model_dump_json()) == terms
