"""Recommended hardware: everything that fits and is within the limits, ranked, and what stands out."""

from types import SimpleNamespace

import pytest
from recommended_hardware import LARGE, TODAY, TUNING, measured_options, recommended

from planner.cost.terms import CostTerms, DailyHours, Run, Service
from planner.errors import SpecError
from planner.performance.setting import MeasuredSpeed, TimeSetting
from planner.plan.evaluate import evaluate
from planner.plan.recommend.option import HardwareOption, Recommendation, Wish
from planner.plan.recommend.recommend import _needing_less, recommend
from planner.plan.recommend.variants import apply_option
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference, Training


def test_every_option_fits_and_is_paid_for_what_it_takes(tuned, catalog):
    assert len(tuned.options) > 100
    for option in tuned.options[:: len(tuned.options) // 20]:
        evaluation = evaluate(apply_option(option, TUNING, catalog), catalog)
        assert evaluation.memory.verdict == "fits"
        assert evaluation.time.tokens_per_second == pytest.approx(option.tokens_per_second)
        assert option.hours == pytest.approx(50e6 / option.tokens_per_second / 3600, rel=0.05)
        assert option.low_usd <= option.usd <= option.high_usd


def test_the_named_ones_are_what_they_are_called(tuned):
    sure = measured_options(tuned)
    least, dearest = min(option.usd for option in sure), 2 * min(option.usd for option in sure)
    soonest = min(option.hours for option in sure)
    assert tuned.cheapest.usd == least
    assert tuned.fastest.usd == min(option.usd for option in sure if option.hours <= 1.1 * soonest)
    products = (option.usd * option.hours for option in sure if option.usd <= dearest)
    assert tuned.best_value.usd * tuned.best_value.hours == min(products)
    assert tuned.period == "run"
    assert tuned.nearest is None


def test_nothing_on_the_front_is_beaten(tuned):
    sure = {option.key: option for option in measured_options(tuned)}
    front = [sure[key] for key in tuned.pareto]
    assert tuned.cheapest in front
    for option in front:
        assert not any(other.usd < option.usd and other.hours < option.hours for other in sure.values())


def test_ambiguous_offers_are_never_the_answer(tuned):
    unsure = [option for option in tuned.options if not option.comparable]
    assert unsure
    assert all(option.remarks for option in unsure)
    assert not {option.key for option in unsure} & set(tuned.pareto)
    ranks = [option.comparable for option in tuned.options]
    assert ranks == sorted(ranks, reverse=True)


def test_limits_are_kept_and_what_they_cost_is_said(catalog):
    limited = recommended(TUNING, catalog, budget_usd=20, deadline_hours=5, power_limit_watts=800)
    assert limited.options
    assert all(option.usd <= 20 and option.hours <= 5 and option.power_watts <= 800 for option in limited.options)
    reasons = {one.reason for one in limited.left_out}
    assert {"over the budget", "after the deadline", "over the power limit"} <= reasons
    assert "does-not-fit" in reasons


def test_where_nothing_is_within_the_limits_the_nearest_is_named(tuned, catalog):
    none = recommended(TUNING, catalog, budget_usd=0.01)
    assert none.options == ()
    assert none.cheapest is None
    assert none.nearest.usd == min(option.usd for option in measured_options(tuned))
    hungry = recommended(TUNING, catalog, power_limit_watts=1, counts=[1])
    assert hungry.nearest.power_watts


def test_only_some_makers(catalog):
    amd = recommended(TUNING.evolve(workload=Training(method="lora")), catalog, vendors=["AMD"], counts=[1])
    assert {catalog.hardware.gpu(option.gpu).vendor for option in amd.options} == {"AMD"}


def test_what_fits_only_just_is_looked_at_on_request(catalog):
    usual, tight = (recommended(TUNING, catalog, include_tight=tight, counts=[1]) for tight in (False, True))
    assert {option.verdict for option in usual.options} == {"fits"}
    assert "tight" in {option.verdict for option in tight.options}


def test_what_has_no_end_is_fast_by_its_pace(catalog):
    service = LARGE.evolve(cost=CostTerms(job=DailyHours(hours_per_day=8)))
    month = recommended(service, catalog, counts=[1, 2])
    assert month.period == "month"
    sooner = min(option.output_token_seconds for option in measured_options(month))
    assert month.fastest.output_token_seconds <= 1.1 * sooner


def test_a_service_is_looked_at_too(catalog):
    plan = TUNING.evolve(
        workload=Inference(profile="vllm", batch=16), cost=CostTerms(job=Service(requests_per_day=20_000))
    )
    assert recommended(plan, catalog, counts=[1]).cheapest is not None


def test_a_measured_speed_is_of_the_plans_own_cards(catalog):
    timing = TimeSetting(measured=MeasuredSpeed(value=1_000, unit="tokens/s"))
    plan = TUNING.evolve(gpu="rtx-4090", timing=timing)
    options = recommended(plan, catalog, counts=[1], having=["rent"]).options
    own = next(option for option in options if option.gpu == "rtx-4090")
    assert (own.tokens_per_second, own.basis) == (pytest.approx(1_000), "measured")
    assert next(option for option in options if option.gpu == "l40s").tokens_per_second > 1_000


def test_a_measured_speed_of_another_card_stays_with_that_card(catalog):
    timing = TimeSetting(measured=MeasuredSpeed(value=1_000, unit="tokens/s", gpu="l40s", count=1))
    plan = TUNING.evolve(gpu="rtx-4090", count=2, timing=timing)
    options = recommended(plan, catalog, counts=[1], having=["rent"]).options
    assert next(option for option in options if option.gpu == "l40s").tokens_per_second == pytest.approx(1_000)


def test_runs_beyond_the_horizon_are_left_out(catalog):
    endless = TUNING.evolve(cost=CostTerms(job=Run(amount=1e16, unit="tokens")))
    left_out = recommended(endless, catalog, counts=[1]).left_out
    assert "a run takes longer than the horizon" in {one.reason for one in left_out}


def test_a_plan_that_does_not_go_with_its_model_says_why(catalog):
    plan = LARGE.evolve(workload=Inference(profile="vllm", parallel=Parallel(tensor=3)), count=3)
    with pytest.raises(SpecError, match="64 attention heads are not divisible by 3"):
        recommend(plan, catalog, TODAY, Wish(counts=(3,)))


def test_a_region_that_nobody_knows_is_refused(catalog):
    nowhere = TUNING.evolve(cost=CostTerms(region="XX"))
    with pytest.raises(SpecError, match="no electricity data for 'XX'"):
        recommend(nowhere, catalog, TODAY)
    assert recommended(nowhere, catalog, having=["rent"], counts=[1]).cheapest


def test_changes_are_tried_only_where_the_plan_does_not_fit(catalog):
    plan = TUNING.evolve(workload=Training(method="qlora"))
    changed, as_planned = (recommended(plan, catalog, counts=[1], change_plan=change) for change in (True, False))
    unchanged = {option.key for option in changed.options if not option.changes}
    assert unchanged == {option.key for option in as_planned.options}
    assert {"rtx-4090", "rtx-3090"} <= {option.gpu for option in changed.options if option.changes}
    assert changed.cheapest.usd < as_planned.cheapest.usd
    assert changed.cheapest.gpu == "rtx-4090"


def test_a_card_is_left_out_for_what_the_plan_is_on_it_and_not_for_what_its_changes_are(catalog):
    plan = TUNING.evolve(workload=Training())  # which no card holds only just
    found = recommended(plan, catalog, counts=[1], having=["own"], vendors=["NVIDIA"])
    reasons = {one.reason for one in found.left_out}
    assert "does-not-fit" in reasons
    assert reasons.isdisjoint({"tight", "not-supported"})


def test_options_are_told_as_they_are_found(catalog):
    parts: list[Recommendation] = []
    whole = recommend(TUNING, catalog, TODAY, Wish(counts=(1, 2)), found=parts.append)
    sizes = [len(part.options) for part in parts]
    assert sizes == sorted(set(sizes))
    assert parts[0].cheapest.count == 1
    assert parts[-1].options == whole.options


def test_it_ends_when_nobody_waits(catalog):
    assert recommend(TUNING, catalog, TODAY, stop=lambda: True) is None


def test_it_says_how_far_it_is(catalog):
    steps: list[tuple[int, int]] = []
    recommend(TUNING, catalog, TODAY, Wish(counts=(1, 2)), progress=lambda *step: steps.append(step))
    assert steps == [(0, 2), (1, 2), (2, 2)]


def test_a_job_that_cannot_be_told_in_hours_is_refused(catalog):
    plan = TUNING.evolve(cost=CostTerms(job=Run(amount=3, unit="epochs")))
    with pytest.raises(SpecError, match="the size of an epoch is missing"):
        recommend(plan, catalog, TODAY)


def test_slowness_is_time_or_the_inverse_of_pace(tuned):
    option: HardwareOption = tuned.options[0]
    assert option.slowness == option.hours
    month = option.evolve(period="month")  # training has no answers, so that all of its tokens count
    assert month.slowness == pytest.approx(1 / option.tokens_per_second)
    assert month.evolve(output_token_seconds=0.05).slowness == pytest.approx(0.05)
    assert month.evolve(tokens_per_second=None, samples_per_second=4.0).slowness == 0.25
    assert month.evolve(tokens_per_second=None, samples_per_second=None).slowness == option.hours


def test_a_maker_without_cards_leaves_nothing_to_choose_from(catalog):
    assert recommended(TUNING, catalog, vendors=["nobody"]).options == ()


def test_a_change_must_need_noticeably_less_than_those_before_in_its_program(monkeypatch):
    # What is needed is given, in bytes: 1 % less than the least before is not worth another look at all cards.
    offered = [("hf", 99.5), ("hf", 80.0), ("hf", 85.0), ("vllm", 90.0), ("hf", 79.9), ("hf", 40.0)]
    variants = [
        SimpleNamespace(needed=needed, plan=SimpleNamespace(workload=SimpleNamespace(profile=profile)))
        for profile, needed in offered
    ]
    module = "planner.plan.recommend.recommend"
    monkeypatch.setattr(f"{module}.changed_variants", lambda *_, quantize: variants)
    monkeypatch.setattr(f"{module}._needed_bytes", lambda _, variant: variant.needed)
    search = SimpleNamespace(market=SimpleNamespace(wish=Wish()), architecture=None)
    found = _needing_less(search, SimpleNamespace(needed=100.0))
    assert [variant.needed for variant in found] == [80.0, 90.0, 40.0]
