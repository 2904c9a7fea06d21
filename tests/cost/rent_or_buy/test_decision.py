"""The decision: its verdict and confidence, both sides' figures, and the values at which it flips."""

from datetime import date

import pytest
from cost_cases import EVERY_DAY, case_of, estimate

from planner.cost.rent_or_buy.case import RENT_PRICE
from planner.cost.rent_or_buy.decision import SURE_SHARE, best_mix, flip_value
from planner.cost.rent_or_buy.uncertainty import owning_cheaper_fraction, simulate
from planner.cost.result import Decision
from planner.cost.terms import BuyTerms, CostTerms, DailyHours, Job, RentTerms, Run, Service
from planner.errors import SpecError
from planner.plan.catalog import Catalog


def decided(catalog: Catalog, today: date, terms: CostTerms, gpu: str = "rtx-4090", count: int = 1) -> Decision:
    found = estimate(catalog, today, terms, gpu, count).result.answer
    assert found is not None
    return found


def test_the_answer_flips_where_it_says(catalog: Catalog, today: date) -> None:
    four, eight = (case_of(catalog, today, CostTerms(job=EVERY_DAY), count=count) for count in (4, 8))
    for case, name in ((four, "card_price_usd"), (eight, "server_price_usd"), (eight, RENT_PRICE)):
        value = flip_value(case, name)
        assert value is not None
        assert case.with_values({**case.central, name: value}).saving_usd(5) == pytest.approx(0, abs=0.01)


def test_figures_that_decide_nothing_never_flip(catalog: Catalog, today: date) -> None:
    fixed = BuyTerms(server_price_usd=300_000)
    case = case_of(catalog, today, CostTerms(buy=fixed))
    assert flip_value(case, "card_price_usd") is None


@pytest.mark.sweep
@pytest.mark.parametrize("hours", [6, 14, 17, 19, 24])
def test_the_share_is_that_of_the_whole_simulation(catalog: Catalog, today: date, hours: float) -> None:
    terms = CostTerms(job=DailyHours(hours_per_day=hours, days_per_week=7))
    case, answer = case_of(catalog, today, terms, "rtx-4090", 1), decided(catalog, today, terms)
    simulation = simulate(case)
    assert simulation is not None
    owning = simulation.owning_cheaper_fraction
    assert owning_cheaper_fraction(case) == owning
    assert answer.draws == simulation.draws
    assert answer.confidence == max(owning, 1 - owning)
    agreeing = owning if answer.decision == "buy" else 1 - owning
    assert answer.verdict == (answer.decision if agreeing >= SURE_SHARE else "too-close")


def test_hardly_more_than_half_of_the_draws_decide_nothing(catalog: Catalog, today: date) -> None:
    verdicts = {
        hours: decided(catalog, today, CostTerms(job=DailyHours(hours_per_day=hours, days_per_week=7))).verdict
        for hours in (2, 13, 24)
    }
    assert verdicts[2] == "rent"
    assert verdicts[13] == "too-close"


FLIPPING = [
    DailyHours(hours_per_day=10),
    DailyHours(hours_per_day=20, days_per_week=7),
    Run(amount=3e8, unit="tokens", repeats_per_year=12),
    Run(amount=9_000),
    Service(requests_per_day=4e4, scales_down=True),
]


@pytest.mark.parametrize("job", FLIPPING, ids=lambda job: f"{job.kind}-{job.model_dump_json()[-12:-1]}")
def test_trying_a_flip_changes_the_cheaper_side(catalog: Catalog, today: date, job: Job) -> None:
    terms = CostTerms(job=job)
    before = decided(catalog, today, terms)
    assert before.flips
    for flip in before.flips:
        if flip.field is None:
            continue
        part, name = flip.field.removeprefix("cost.").split(".")
        inner = getattr(terms, part).evolve(**{name: flip.try_value})
        after = decided(catalog, today, terms.evolve(**{part: inner}))
        assert after.decision != before.decision, flip


def test_whole_servers_flip_at_the_price_of_a_server(catalog: Catalog, today: date) -> None:
    answer = decided(catalog, today, CostTerms(job=EVERY_DAY), "h100-sxm5-80gb", 8)
    flip = next(flip for flip in answer.flips if flip.name == "server-price")
    assert flip.field == "cost.buy.server_price_usd"
    assert flip.value == answer.flips_at_server_price_usd
    assert answer.flips_at_card_price_usd is None


def test_far_off_values_are_no_flips(catalog: Catalog, today: date) -> None:
    once = decided(catalog, today, CostTerms(job=Run(amount=8)))
    assert once.flips_at_utilization_fraction is not None
    assert once.flips == ()


def test_hours_that_no_day_has_cannot_be_tried(catalog: Catalog, today: date) -> None:
    weekly = decided(catalog, today, CostTerms(job=DailyHours(hours_per_day=20, days_per_week=2)))
    use = next(flip for flip in weekly.flips if flip.name == "utilization")
    assert (use.field, use.try_value) == (None, None)


def test_the_users_own_rental_price_replaces_that_of_the_offer(catalog: Catalog, today: date) -> None:
    own = RentTerms(usd_per_gpu_hour=0.5)
    rent = estimate(catalog, today, CostTerms(job=Run(amount=100), rent=own), "rtx-4090", 2).result.rent
    assert rent is not None
    assert rent.usd == pytest.approx(100 * 2 * 0.5)
    assert rent.usd_per_gpu_hour == pytest.approx(0.5)
    assert rent.terms[0].certainty == "yours"
    unknown = CostTerms(job=Run(amount=100), rent=own.evolve(mode="reserved-1y", providers=("nobody",)))
    year = estimate(catalog, today, unknown, "rtx-4090", 2).result.rent
    assert year is not None
    assert (year.provider, year.usd) == ("your own offer", pytest.approx(8_760 * 2 * 0.5))


def test_both_sides_figures_fit_the_job(catalog: Catalog, today: date) -> None:
    daily = CostTerms(job=DailyHours(hours_per_day=8), buy=BuyTerms(loan_fraction=0.5))
    found = estimate(catalog, today, daily, "rtx-4090", 1).result
    answer, rent, own = found.answer, found.rent, found.own
    assert answer is not None
    assert rent is not None
    assert own is not None
    assert (answer.rent_figures.month_usd, answer.rent_figures.unit) == (rent.usd, "GPU-hour")
    assert answer.own_figures.month_usd == own.monthly_cash_usd + own.loan_usd_per_month
    assert answer.own_figures.start_usd == pytest.approx(own.upfront_usd / 2)
    once = decided(catalog, today, CostTerms(job=Run(amount=300)))
    assert (once.rent_figures.month_usd, once.own_figures.month_usd, once.rent_figures.unit) == (None, None, "run")
    monthly = decided(catalog, today, CostTerms(job=Run(amount=300, repeats_per_year=6)))
    assert monthly.rent_figures.month_usd == pytest.approx(monthly.rent_figures.unit_usd / 2)
    service = decided(catalog, today, CostTerms(job=Service(requests_per_day=1e5)))
    assert service.rent_figures.unit == "million output tokens"


@pytest.mark.parametrize(("count", "usd"), [(1, 5.0), (8, 40.0), (12, 60.0)])
def test_ones_own_price_is_paid_for_the_cards_that_are_used(
    catalog: Catalog, today: date, count: int, usd: float
) -> None:
    rent = RentTerms(offer="aws-p5.48xlarge-us-east-1-2026-10-10", usd_per_gpu_hour=0.05)
    found = estimate(catalog, today, CostTerms(job=Run(amount=100), rent=rent), count=count).result.rent
    assert found is not None
    assert found.usd == pytest.approx(usd)


def test_a_group_is_owned_while_it_is_busy_enough() -> None:
    # One more costs 100 and saves 1 an hour: worth it from 100 busy hours of 400 on.
    loads = [3, 2, 2, 0]
    found = best_mix(loads, [0, 100, 200, 300], 0.0, 1.0, 400)
    assert found.best.owned == 2
    assert best_mix([0.0], [0], 0.0, 1.0, 10).best.owned_work_fraction == 1


def test_whole_groups_are_rented_for_the_hours_of_their_load() -> None:
    # Two parts of 50 hours: 1.5 groups take two, 0.5 take one. Group-hours of work are 75 and 25.
    none, one, two = best_mix([1.5, 0.5], [0.0, 100.0, 200.0], 0.1, 1.0, 100, rent_fixed_usd=7.0).mixes
    assert (none.own_usd, none.rent_usd, none.owned_work_fraction) == (0, 150 + 7, 0)
    assert (one.own_usd, one.rent_usd, one.owned_work_fraction) == (pytest.approx(100 + 7.5), 50 + 7, 0.75)
    assert (two.own_usd, two.rent_usd, two.owned_work_fraction) == (pytest.approx(200 + 10), 0, 1)
    assert one.usd == one.own_usd + one.rent_usd


def test_groups_that_are_always_on_are_rented_for_all_hours() -> None:
    found = best_mix([1.5, 0.5], [0.0, 100.0, 200.0], 0.0, 1.0, 100, work_hours=10, always_on=True)
    assert [mix.rent_usd for mix in found.mixes] == [200, 100, 0]


@pytest.mark.parametrize("loads", [[], [-1.0], [1e6]])
def test_absurd_loads_are_refused(loads: list[float]) -> None:
    with pytest.raises(SpecError, match="loads: must be from 0 to 2,000 groups"):
        best_mix(loads, [0], 0, 1, 1)
