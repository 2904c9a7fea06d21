"""Renting beside owning: the whole answer, its terms, curves and bands, and what would change it."""

from dataclasses import replace
from datetime import date
from statistics import fmean

import pytest
from cost_cases import EVERY_DAY, PACE, estimate

from planner.cost.demand import Throughput, load_profile, required_groups
from planner.cost.estimate import CostEstimate, estimate_cost, hybrid_of_plan
from planner.cost.result import OwnCost
from planner.cost.terms import BuyTerms, CostTerms, DailyHours, RentTerms, Run, Service
from planner.errors import SpecError
from planner.hardware.own import CardChange, OwnHardware, with_own_hardware
from planner.plan.catalog import Catalog


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
    undiscounted = replace(free, discount_rate=0.0).cash_flows().rent_usd(free.horizon_years)
    periods = found.demand.per_year(free.horizon_years) * free.horizon_years
    assert undiscounted == pytest.approx(rent.usd * periods, rel=1e-9)


def test_without_an_offer_owning_is_still_told(catalog: Catalog, today: date) -> None:
    found = estimate(catalog, today, CostTerms(rent=RentTerms(regions=("nowhere",))))
    assert (found.result.rent, found.result.break_even, found.result.answer) == (None, None, None)
    assert owned(found).upfront_usd > 0
    assert "no current on-demand offer" in found.result.notes[0]


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


def test_a_power_limit_of_ones_own_is_ones_own_figure(catalog: Catalog, today: date) -> None:
    change = CardChange(gpu="rtx-3090", power_limit_watts=250, date="2026-11-01")
    changed = with_own_hardware(catalog.hardware, OwnHardware(changes=(change,)))
    for hardware, certainty in ((catalog.hardware, "quoted"), (changed, "yours")):
        found = estimate_cost(CostTerms(), hardware.gpu("rtx-3090"), 1, PACE, catalog.cost, today)
        assert found.case is not None
        assert found.case.figures["card_power_watts"].certainty == certainty


def test_what_was_paid_for_a_card_is_what_owning_it_costs(catalog: Catalog, today: date) -> None:
    change = CardChange(gpu="rtx-3090", purchase_price_usd=720, date="2026-11-01")
    changed = with_own_hardware(catalog.hardware, OwnHardware(changes=(change,)))
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


def test_the_base_load_is_owned_and_peaks_are_rented(catalog: Catalog, today: date) -> None:
    job = Service(requests_per_day=1e6, peak_factor=4, scales_down=True)
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


@pytest.mark.parametrize("scales_down", [False, True])
def test_the_ends_of_the_mixes_are_the_sides_of_the_decision(
    catalog: Catalog, today: date, *, scales_down: bool
) -> None:
    job = Service(requests_per_day=1e6, peak_factor=3, scales_down=scales_down, model_gb=500)
    terms = CostTerms(job=job, buy=BuyTerms(place="lab"), rent=RentTerms(billing_increment_seconds=1))
    plan = estimate(catalog, today, terms)
    found, answer = hybrid_of_plan(plan, terms, PACE), plan.result.answer
    assert found is not None
    assert answer is not None
    assert found.always_on != scales_down
    assert found.mixes[0].usd == pytest.approx(answer.rent_usd, rel=1e-3)
    assert found.mixes[-1].usd == pytest.approx(answer.own_usd, rel=1e-9)


def test_a_gpu_hour_is_an_hour_that_the_job_holds_a_card(catalog: Catalog, today: date) -> None:
    offer = "aws-p5.48xlarge-us-east-1-2026-10-10"
    service = CostTerms(job=Service(requests_per_day=1e4), rent=RentTerms(offer=offer))
    found = estimate(catalog, today, service)
    rent, answer = found.result.rent, found.result.answer
    assert rent is not None
    assert answer is not None
    # One machine, day and night: 730.5 hours a month at the offer's own price, 55.04 USD for eight cards.
    assert rent.usd_per_gpu_hour == pytest.approx(55.04 / 8, rel=1e-3)
    assert answer.planned_gpu_hours == pytest.approx(8_766 * 5 * 8)
    assert found.result.curve[-1].gpu_hours == pytest.approx(8_766 * 5 * 8)
    assert owned(found).usd_per_gpu_hour == pytest.approx(owned(found).usd_per_period / 730.5 / 8)


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
    answers = "at full load, the plan's GPUs answer 2 requests per second, 4 at a time"
    (note,) = [note for note in told.result.notes if note.startswith(answers)]
    assert "the mean wait is at most " in note
    full = terms.evolve(job=terms.job.evolve(requests_per_day=2 * 86_400, peak_factor=1, busy_fraction=1))
    crowded = estimate_cost(full, card, 8, pace, catalog.cost, today)
    assert not any("mean wait" in note for note in crowded.result.notes)


def test_the_sale_of_an_owned_card_counts_when_asked(catalog: Catalog, today: date) -> None:
    buy = BuyTerms(place="desk", owned=True, sale_usd_per_card=900, resale_share=0.25)
    found = estimate(catalog, today, CostTerms(job=EVERY_DAY, buy=buy), "rtx-3090", 1)
    assert owned(found).upfront_usd == 900
    assert owned(found).resale_usd == 225
    assert found.result.answer is not None
    flip = next(flip for flip in found.result.answer.flips if flip.name == "card-price")
    assert flip.field == "cost.buy.sale_usd_per_card"


def test_a_single_run_is_paid_at_todays_prices(catalog: Catalog, today: date) -> None:
    once, often = (
        estimate(catalog, today, CostTerms(job=Run(amount=10, repeats_per_year=repeats))).case for repeats in (None, 5)
    )
    assert once is not None
    assert often is not None
    assert "price_drift_per_year" not in once.uncertain
    assert "price_drift_per_year" in often.uncertain


@pytest.mark.parametrize("mode", ["on-demand", "reserved-3y"])
def test_reserved_and_on_demand_are_compared_whichever_is_chosen(catalog: Catalog, today: date, mode: str) -> None:
    rent = RentTerms.model_validate({"offer": "gcp-a3-highgpu-8g-us-central1-2026-08-20", "mode": mode})
    found = estimate(catalog, today, CostTerms(job=DailyHours(hours_per_day=24, days_per_week=7), rent=rent))
    by_mode = {each.mode: each for each in found.result.rental_modes}
    assert set(by_mode) == {"on-demand", "spot", "reserved-1y", "reserved-3y"}
    # 88.49 USD on demand, 61.38 for one year and 38.86 for three, of 730.5 or of 8,760 / 12 hours a month.
    assert by_mode["on-demand"].month_usd == pytest.approx(88.49 * 730.5, rel=1e-4)
    assert by_mode["reserved-1y"].month_usd == pytest.approx(61.38 * 730.5, rel=1e-3)
    assert by_mode["reserved-3y"].month_usd == pytest.approx(38.86 * 730.5, rel=1e-3)
    assert found.result.rent is not None
    assert found.result.answer is not None
    assert by_mode[rent.mode].usd == found.result.rent.usd
    assert by_mode[rent.mode].horizon_usd == pytest.approx(found.result.answer.rent_usd)
    # Five years need two terms of three years.
    assert by_mode["reserved-3y"].horizon_usd > by_mode["reserved-3y"].month_usd * 12 * 4.3


def test_the_rest_of_a_last_term_is_told_of_work_that_repeats(catalog: Catalog, today: date) -> None:
    rent, last = RentTerms(mode="reserved-3y"), "the last term ends after 6 years"
    for job, told in ((EVERY_DAY, True), (Run(amount=10), False)):
        notes = estimate(catalog, today, CostTerms(job=job, rent=rent, horizon_years=5)).result.notes
        assert any(note.startswith(last) for note in notes) == told


def test_a_price_that_nobody_knows_is_said(catalog: Catalog, today: date) -> None:
    unpriced = next(gpu.id for gpu in catalog.hardware.gpus if gpu.vendor == "Google" and gpu.launch_price_usd is None)
    found = estimate(catalog, today, CostTerms(), unpriced, 1)
    assert found.case is None
    assert any("owning: " in note for note in found.result.notes)
