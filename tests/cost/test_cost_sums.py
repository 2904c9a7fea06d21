"""The sums that everything about money is made of: present values, waste, demand, residuals, owning."""

import math

import pytest

from planner.cost.constants import Constant
from planner.cost.demand import (
    HOURS_PER_MONTH,
    Throughput,
    demand_of,
    load_exceeded_for,
    load_profile,
    run_hours,
    usd_per_million_tokens,
)
from planner.cost.figure import NINETY_PERCENT, Figure
from planner.cost.finance import annuity, equivalent_annual, irr, loan_value
from planner.cost.job import DailyHours, Job, Run, Service
from planner.cost.owning.accounting import OwnedServers, break_even_utilization, owned_month, payback_month
from planner.cost.owning.costs import (
    FIGURES,
    ServerSetup,
    financed_usd,
    full_power_watts,
    kilowatt_hours,
    running_costs,
    upfront_costs,
)
from planner.cost.owning.residual import own_curve, resale_curve, yearly_depreciation
from planner.cost.rent_or_buy.cash_flows import hours_to_pay_back
from planner.cost.renting.quote import interruption_overhead, interruption_share, mean_hours_between
from planner.errors import SpecError
from planner.performance.result import TimeResult
from planner.plan.catalog import Catalog
from planner.workload.workload import Inference

PACE = Throughput(
    tokens_per_second=1_000, samples_per_second=2, steps_per_second=0.5, low_time_factor=0.8, high_time_factor=1.5
)
SERVING = Throughput(samples_per_second=2, low_time_factor=0.8, high_time_factor=1.5)


def test_a_figures_range_is_log_normal() -> None:
    figure = Figure(value=10, low=5, high=20, source="a study")
    assert figure.quantile(0) == 10
    assert figure.quantile(NINETY_PERCENT) == pytest.approx(20)
    assert figure.quantile(-NINETY_PERCENT) == pytest.approx(5)
    assert figure.quantile(NINETY_PERCENT / 2) == pytest.approx(10 * math.sqrt(2))


def test_a_range_around_zero_is_spread_evenly() -> None:
    figure = Figure(value=0, low=-0.3, high=0.3, source="a study")
    assert figure.quantile(NINETY_PERCENT / 3) == pytest.approx(0.1)


def test_a_certain_figure_does_not_move() -> None:
    assert Figure.own(3).quantile(2) == 3
    assert (Figure.own(3).lowest, Figure.own(3).highest) == (3, 3)


def test_a_value_lies_within_its_range() -> None:
    with pytest.raises(ValueError, match="5 is not between 1 and 2"):
        Figure(value=5, low=1, high=2, source="a study")


def test_the_rate_of_return_makes_flows_worth_nothing() -> None:
    assert irr([-100, 60, 60]) == pytest.approx(0.130662, abs=1e-6)
    assert irr([-100, 10]) == pytest.approx(-0.9)
    assert irr([100, 10]) is None


def test_payments_spread_over_the_year_are_worth_less_later() -> None:
    assert annuity(0, 3) == 3
    assert annuity(0.1, 1) == pytest.approx((1 - 1 / 1.1) / math.log(1.1))
    assert annuity(0.05, 4, growth=0.05) == 4
    assert equivalent_annual(annuity(0.08, 5) * 70, 0.08, 5) == pytest.approx(70)


def test_a_loan_at_the_discount_rate_costs_what_is_borrowed() -> None:
    for years in (0.5, 2, 3, 5):
        assert loan_value(1_000, 0.06, 3, 0.06, years) == pytest.approx(1_000)
    assert loan_value(1_000, 0.1, 3, 0.05, 5) > 1_000
    assert loan_value(900, 0.0, 3, 0.0, 1) == pytest.approx(900)


def test_books_write_off_no_more_than_the_cost() -> None:
    assert yearly_depreciation(900, "straight-line", 3, 5) == [300, 300, 300, 0, 0]
    assert yearly_depreciation(500, "straight-line", 2.5, 3) == [200, 200, 100]
    assert sum(yearly_depreciation(1_000, "declining", 5, 50)) == pytest.approx(1_000, rel=1e-6)
    assert yearly_depreciation(1_000, "declining", 5, 1)[0] == pytest.approx(275.6, abs=0.05)
    assert yearly_depreciation(1_000, "macrs-5", 5, 8) == pytest.approx([200, 320, 192, 115.2, 115.2, 57.6, 0, 0])


def test_the_best_interval_balances_checkpoints_and_lost_work() -> None:
    found = interruption_overhead(checkpoint_hours=0.05, restart_hours=0, mean_hours=24)
    assert found.checkpoint_fraction == pytest.approx(found.lost_fraction)
    assert found.interval_hours is not None
    for other in (0.5, 2):
        worse = interruption_overhead(0.05, 0, 24, found.interval_hours * other)
        assert worse.waste_fraction > found.waste_fraction


def test_checkpoints_that_take_no_time_lose_no_work() -> None:
    found = interruption_overhead(checkpoint_hours=0, restart_hours=0.5, mean_hours=10)
    assert (found.interval_hours, found.waste_fraction) == (None, 0.05)


def test_interruptions_without_pause_are_refused() -> None:
    with pytest.raises(SpecError, match="mean_hours_between_interruptions"):
        interruption_overhead(0.1, 0.1, 0)


def test_interruption_shares_become_hours() -> None:
    assert mean_hours_between(0.15) == pytest.approx(730.5 / -math.log(0.85))


def test_cards_without_a_band_take_the_range_of_all(catalog: Catalog) -> None:
    constants = catalog.cost.constants
    h100, l4 = (interruption_share(gpu, constants) for gpu in ("h100-sxm5-80gb", "l4"))
    a100, other = (interruption_share(gpu, constants) for gpu in ("a100-pcie-80gb", "l40s"))
    assert [round(figure.value, 3) for figure in (h100, a100, l4, other)] == [0.15, 0.075, 0.025, 0.1]
    assert (h100.certainty, other.certainty) == ("quoted", "assumed")
    assert other.highest == 0.2


def test_a_run_takes_its_work_and_what_comes_with_it() -> None:
    run = Run(
        amount=7_200_000,
        unit="tokens",
        checkpoint_seconds=36,
        checkpoint_interval_hours=0.5,
        restart_seconds=360,
        evaluation_fraction=0.1,
    )
    hours = run_hours(run, PACE)
    assert (hours.work_hours, hours.evaluation_hours, hours.start_hours) == pytest.approx((2, 0.2, 0.1))
    assert hours.checkpoint_hours == pytest.approx(0.04)
    assert hours.total_hours == pytest.approx(2.34)
    assert (hours.low_hours, hours.high_hours) == pytest.approx((2.34 * 0.8, 2.34 * 1.5))


@pytest.mark.parametrize(
    ("amount", "unit", "hours"), [(3_600, "samples", 0.5), (2, "epochs", 1.0), (1_800, "steps", 1.0), (3, "hours", 3.0)]
)
def test_work_is_counted_in_any_unit(amount: float, unit: str, hours: float) -> None:
    run = Run.model_validate({"amount": amount, "unit": unit, "dataset_samples": 3_600})
    assert run_hours(run, PACE).work_hours == pytest.approx(hours)


def test_hours_that_are_given_are_certain() -> None:
    hours = run_hours(Run(amount=5), PACE)
    assert hours.low_hours == hours.high_hours == hours.total_hours == 5


def test_a_job_that_cannot_be_timed_says_what_is_missing() -> None:
    with pytest.raises(SpecError, match="the size of an epoch is missing"):
        run_hours(Run(amount=1, unit="epochs"), PACE)
    for pace in (None, Throughput()):
        with pytest.raises(SpecError, match="the tokens per second of these cards are unknown"):
            run_hours(Run(amount=1, unit="tokens"), pace)
        with pytest.raises(SpecError, match="requests per second"):
            demand_of(Service(requests_per_day=10), pace)
    assert PACE.per_second("hours") is None


def test_a_pace_comes_from_an_estimate_of_time() -> None:
    step = TimeResult(task="training", kind="step", seconds=2, low_seconds=1.5, high_seconds=3, tokens_per_second=500)
    pace = Throughput.of_result(step)
    assert pace is not None
    assert (pace.steps_per_second, pace.tokens_per_second) == (0.5, 500)
    assert (pace.low_time_factor, pace.high_time_factor) == (0.75, 1.5)
    service = Throughput.of_result(TimeResult(task="inference", kind="service", seconds=2, samples_per_second=4))
    assert service is not None
    assert (service.steps_per_second, service.low_time_factor) == (None, 1.0)
    assert service.requests_per_second(100, 100) == 4
    assert Throughput.of_result(TimeResult(task="training", kind="step", unsupported="no")) is None


def test_requests_of_other_lengths_take_another_time() -> None:
    # Eight at once: half a second for 1,000 tokens, and 20 ms for each of 100.
    time = TimeResult(
        task="inference",
        kind="service",
        seconds=2.5,
        samples_per_second=3.2,
        tokens_per_second=400,
        first_token_seconds=0.5,
        output_token_seconds=0.02,
    )
    pace = Throughput.of_result(time, Inference(prompt_length=1_000, context_length=1_100, batch=8))
    assert pace is not None
    assert pace.requests_per_second(1_000, 100) == pytest.approx(3.2)
    assert pace.requests_per_second(2_000, 300) == pytest.approx(8 / 7)
    unknown = Throughput.of_result(time)
    assert unknown is not None
    assert unknown.requests_per_second(2_000, 300) == 3.2


def test_tokens_without_a_pace_have_no_price() -> None:
    assert usd_per_million_tokens(1, None) is None
    assert usd_per_million_tokens(1, Throughput(samples_per_second=1)) is None


@pytest.mark.parametrize("peak", [1.0, 1.5, 2.0, 5.0])
def test_the_load_has_its_mean_and_peak(peak: float) -> None:
    parts = 20_000
    mean = sum(load_exceeded_for((part + 0.5) / parts, peak) for part in range(parts)) / parts
    assert mean == pytest.approx(1, abs=1e-3)
    assert load_exceeded_for(0, peak) == peak


def test_a_service_needs_groups_for_its_peak() -> None:
    # Two requests a second each; 6.25 on average.
    job = Service(requests_per_day=12.5 * 86_400, peak_factor=2, busy_fraction=1)
    demand = demand_of(job, SERVING)
    assert demand.groups == 13
    assert demand.busy_hours == pytest.approx(6.25 * HOURS_PER_MONTH)
    assert demand.rented_hours == pytest.approx(13 * HOURS_PER_MONTH)
    assert demand.always_on
    thrifty = demand_of(job.evolve(scales_down=True), SERVING)
    assert demand.busy_hours < thrifty.rented_hours < demand.rented_hours
    by_tokens = demand_of(job, Throughput(tokens_per_second=600))
    assert by_tokens.busy_hours == pytest.approx(demand.busy_hours)


def test_a_service_leaves_room_so_that_requests_do_not_wait() -> None:
    # Two requests a second each, four at once; 12.5 at the busiest moment.
    job = Service(requests_per_day=6.25 * 86_400, peak_factor=2)
    pace = Throughput(concurrent_requests=4, prompt_token_seconds=0.0005, output_token_seconds=0.005)
    tight, roomy = demand_of(job.evolve(busy_fraction=1), pace), demand_of(job, pace)
    assert (tight.groups, roomy.groups) == (7, 8)
    assert tight.busy_hours == roomy.busy_hours
    assert tight.peak_wait_seconds is not None
    assert roomy.peak_wait_seconds is not None
    assert 0 < roomy.peak_wait_seconds < tight.peak_wait_seconds
    full = demand_of(job.evolve(requests_per_day=2 * 86_400, peak_factor=1, busy_fraction=1), pace)
    assert full.peak_wait_seconds is None


def test_a_service_can_be_told_by_the_hour() -> None:
    job = Service(requests_per_day=6 * 86_400, hourly_shares=(*[1.0] * 12, *[3.0] * 12), busy_fraction=1)
    assert load_profile(job, 3) == pytest.approx((*[1.5] * 12, *[4.5] * 12))
    assert demand_of(job, SERVING).groups == 5
    assert demand_of(job.evolve(scales_down=True), SERVING).rented_hours == pytest.approx(3.5 * HOURS_PER_MONTH)


@pytest.mark.parametrize("shares", [[1.0] * 23, [-1.0] + [1.0] * 23, [0.0] * 24])
def test_absurd_hours_of_a_day_are_refused(shares: list[float]) -> None:
    with pytest.raises(ValueError, match="hourly_shares needs 24 non-negative numbers"):
        Service(requests_per_day=1, hourly_shares=tuple(shares))


def test_a_service_never_works_more_than_its_machines_run() -> None:
    demand = demand_of(Service(requests_per_day=2 * 86_400, peak_factor=1, busy_fraction=1), SERVING)
    assert demand.high_busy_hours == pytest.approx(HOURS_PER_MONTH)


def test_daily_hours_make_a_month() -> None:
    demand = demand_of(DailyHours(hours_per_day=8, days_per_week=7), None)
    assert demand.busy_hours == pytest.approx(8 * 365.25 / 12)
    assert demand.per_year(5) == 12


def test_a_run_that_is_done_once_is_spread_over_the_horizon() -> None:
    once: Job = Run(amount=100)
    assert demand_of(once, None).per_year(4) == 0.25
    assert demand_of(Run(amount=100, repeats_per_year=3), None).per_year(4) == 3


def test_the_resale_band_stands_in_order_and_goes_on_falling(catalog: Catalog) -> None:
    curve = resale_curve(catalog.cost.constants)
    assert curve.band(0) == (1, 1, 1)
    before = curve.band(0)
    for years in (0.5, 1, 1.7, 2, 3, 4, 5, 7, 12):
        low, middle, high = curve.band(years)
        assert low <= middle <= high
        assert all(now < then for now, then in zip((low, middle, high), before, strict=True))
        before = low, middle, high
    assert curve.share(3) == pytest.approx(0.38, abs=0.005)
    assert curve.share(3, NINETY_PERCENT) == pytest.approx(curve.band(3)[2])
    assert curve.share(3, -NINETY_PERCENT) == pytest.approx(0.25)


def test_an_own_resale_value_is_reached_at_the_horizon() -> None:
    curve = own_curve(0.25, 4)
    assert curve.share(4) == 0.25
    assert curve.share(2) == pytest.approx(0.5)
    assert curve.share(2, 1.0) == curve.share(2)
    assert own_curve(0, 4).share(4) == 0


def figures(**given: float) -> dict[str, float]:
    neutral = dict.fromkeys(FIGURES, 0.0) | {"host_factor": 1.6, "server_power_factor": 1.5, "pue": 1.2}
    named = {
        "card_price_usd": 10_000.0,
        "card_power_watts": 500.0,
        "tariff_usd_per_kwh": 0.2,
        "active_power_fraction": 0.8,
    }
    return neutral | named | {"idle_power_fraction": 0.3} | given


SHAPE = ServerSetup(count=8, groups=2, gpus_per_server=8, colocation_power="metered")


def test_what_is_bought_sums_up() -> None:
    purchase = upfront_costs(figures(network_share=0.2, tax_fraction=0.1, shipping_usd=500, install_usd=700), SHAPE)
    assert (purchase.cards, purchase.host) == pytest.approx((160_000, 96_000))
    assert purchase.network == pytest.approx(64_000)
    assert purchase.tax == pytest.approx(32_000)
    assert purchase.usd == pytest.approx(160_000 + 96_000 + 64_000 + 32_000 + 1_200)


def test_one_server_needs_no_network() -> None:
    assert upfront_costs(figures(network_share=0.2), SHAPE.evolve(groups=1)).network == 0


def test_power_is_drawn_at_work_and_at_rest() -> None:
    assert full_power_watts(figures(), SHAPE) == 16 * 500 * 1.5
    assert full_power_watts(figures(), SHAPE.evolve(server_power_watts=7_000.0)) == 14_000
    rest = kilowatt_hours(figures(), SHAPE, 1, 0)
    assert rest == pytest.approx(12 * 1.2 * 8_766 * 0.3)
    # Both groups at work the whole year.
    assert kilowatt_hours(figures(), SHAPE, 1, 2 * 8_766) == pytest.approx(12 * 1.2 * 8_766 * 0.8)
    assert kilowatt_hours(figures(), SHAPE.evolve(switched_off_when_idle=True), 1, 0) == 0


def test_electricity_is_paid_once() -> None:
    values = figures(colocation_usd_per_kw_month=150.0)
    purchase = upfront_costs(values, SHAPE)
    metered, included = (
        running_costs(values, SHAPE.evolve(colocation_power=power), purchase) for power in ("metered", "included")
    )
    assert metered.colocation == included.colocation == 12 * 150 * 12
    assert metered.idle_energy > 0
    assert (included.idle_energy, included.usd_per_busy_hour) == (0, 0)


def test_yearly_costs_sum_up() -> None:
    values = figures(
        operations_fraction_per_year=0.08,
        support_fraction_per_year=0.02,
        spares_fraction_per_year=0.05,
        insurance_fraction_per_year=0.01,
        staff_usd_per_year=9_000,
        licence_usd_per_gpu_year=4_500,
        tariff_usd_per_kwh=0,
    )
    purchase = upfront_costs(values, SHAPE)
    yearly = running_costs(values, SHAPE, purchase)
    assert yearly.usd_per_year == pytest.approx(purchase.usd * 0.11 + 160_000 * 0.05 + 9_000 + 16 * 4_500)


def test_a_purchase_without_a_loan_is_paid_at_once() -> None:
    assert financed_usd(1_000, SHAPE, 0.08, 3) == 1_000
    borrowed = SHAPE.evolve(loan_fraction=0.5, loan_rate=0.0, loan_years=4.0)
    assert financed_usd(1_000, borrowed, 0.08, 10) < 1_000


def test_books_without_use_have_no_price_an_hour() -> None:
    servers = OwnedServers(
        capex_usd=10_000,
        servers=1,
        gpus=1,
        server_kilowatts=1,
        years=5,
        capital_rate=0.08,
        pue=1,
        tariff_usd_per_kwh=0.2,
        colocation_usd_per_kw_month=0,
        operations_fraction_per_year=0,
        idle_power_fraction=0.3,
    )
    assert owned_month(servers, 0).usd_per_gpu_hour is None
    assert break_even_utilization(servers, 0.01) is None
    assert break_even_utilization(servers, 0.2) is None
    assert payback_month(servers, 0.5, 0.1) is None
    assert hours_to_pay_back(100, 1.0, 1.0) is None


def test_a_constant_keeps_what_its_source_says_of_the_date() -> None:
    constant = Constant(id="a", kind="pue", name="an average", value=1.5, unit="ratio", date="2024", source="a survey")
    assert constant.figure.date == "2024"
