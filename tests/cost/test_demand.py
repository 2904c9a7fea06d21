"""The demand of jobs at a given throughput, computed by hand."""

import pytest

from planner.cost.demand import (
    HOURS_PER_MONTH,
    Throughput,
    demand_of,
    load_exceeded_for,
    load_profile,
    run_hours,
    usd_per_million_tokens,
    wait_seconds,
)
from planner.cost.terms import DailyHours, Job, Run, Service
from planner.errors import SpecError
from planner.performance.result import TimeResult
from planner.workload.workload import Inference

PACE = Throughput(
    tokens_per_second=1_000, samples_per_second=2, steps_per_second=0.5, low_time_factor=0.8, high_time_factor=1.5
)
SERVING = Throughput(samples_per_second=2, low_time_factor=0.8, high_time_factor=1.5)


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
        with pytest.raises(SpecError, match="the tokens per second of these GPUs are unknown"):
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


def test_waits_of_erlangs_formula():
    # One place, half busy: a request of one second waits one second on average (M/M/1).
    assert wait_seconds(0.5, 1.0, 1) == pytest.approx(1.0)
    # Two places, each half busy: C(2, 1) = 1/3, and 1/3 · 1 / (2 − 1) of a second.
    assert wait_seconds(1.0, 2.0, 2) == pytest.approx(1 / 3)
    assert wait_seconds(1.0, 2.0, 2) > wait_seconds(0.5, 2.0, 2)
    assert wait_seconds(0.8, 1.0, 10_000) == 0.0


def test_a_queue_that_only_grows_has_no_mean_wait():
    assert wait_seconds(1.0, 1.0, 4) is None


@pytest.mark.parametrize("field", ["tokens_per_second", "samples_per_second", "steps_per_second"])
def test_no_speed_is_endless(field: str) -> None:
    with pytest.raises(SpecError, match=field):
        Throughput(**{field: float("inf")})
