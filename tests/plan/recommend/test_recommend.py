"""Which hardware to take: everything that fits and is within the limits, ranked, and what stands out."""

from datetime import date

import pytest
from recordings import training, two_steps

from planner.cost.job import DailyHours, Run, Service
from planner.cost.terms import BuyTerms, CostTerms
from planner.errors import SpecError
from planner.performance.setting import MeasuredSpeed, TimeSetting
from planner.plan.catalog import Catalog, load_catalog
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.plan.recommend.option import HardwareOption, Recommendation, Wish
from planner.plan.recommend.recommend import recommend
from planner.plan.recommend.variants import apply_option, possible_plans
from planner.trace.analysis.summary import facts_of
from planner.units import GIB
from planner.workload.parallel import CardCount, Parallel
from planner.workload.workload import Inference, Training

TODAY = date(2026, 11, 22)
TUNING = Plan(
    model=ModelChoice(id="meta-llama/Llama-3.1-8B"),
    workload=Training(method="qlora", activation_checkpointing="full"),
    cost=CostTerms(job=Run(amount=50e6, unit="tokens")),
)
LARGE = Plan(
    model=ModelChoice(id="meta-llama/Llama-3.1-70B"),
    workload=Inference(weights="nf4"),
    cost=CostTerms(job=DailyHours(hours_per_day=8)),
)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture(scope="module")
def tuned(catalog: Catalog) -> Recommendation:
    return found(TUNING, catalog)


def found(plan: Plan, catalog: Catalog, **wish: object) -> Recommendation:
    result = recommend(plan, catalog, TODAY, Wish.model_validate(wish))
    assert result is not None
    return result


def measured_options(recommendation: Recommendation) -> list[HardwareOption]:
    """Return the options that may be recommended: comparable, of measured families, at current prices."""
    return [one for one in recommendation.options if one.comparable and one.current and one.basis != "unmeasured"]


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
    limited = found(TUNING, catalog, budget_usd=20, deadline_hours=5, power_limit_watts=800)
    assert limited.options
    assert all(option.usd <= 20 and option.hours <= 5 and option.power_watts <= 800 for option in limited.options)
    reasons = {one.reason for one in limited.left_out}
    assert {"over the budget", "after the deadline", "over the power limit"} <= reasons
    assert "does-not-fit" in reasons


def test_where_nothing_is_within_the_limits_the_nearest_is_named(catalog):
    none = found(TUNING, catalog, budget_usd=0.01)
    assert none.options == ()
    assert none.cheapest is None
    assert none.nearest.usd == min(option.usd for option in measured_options(found(TUNING, catalog)))
    hungry = found(TUNING, catalog, power_limit_watts=1)
    assert hungry.nearest.power_watts


def test_renting_and_owning_can_be_asked_for_alone(catalog):
    rented = found(TUNING, catalog, having=["rent"], counts=[1])
    owned = found(TUNING, catalog, having=["own"], counts=[1])
    assert {option.having for option in rented.options} == {"rent"}
    assert all(option.offer and option.mode == "on-demand" for option in rented.options)
    assert "no offer to rent it is known" in {one.reason for one in rented.left_out}
    assert {option.having for option in owned.options} == {"own"}
    assert all(option.offer is None for option in owned.options)


def test_other_ways_to_rent_are_looked_at_on_request(catalog):
    modes = ["on-demand", "spot", "reserved-1y", "reserved-3y"]
    ways = {option.mode for option in found(TUNING, catalog, having=["rent"], counts=[1], modes=modes).options}
    assert ways == set(modes)


def test_only_some_makers(catalog):
    amd = found(TUNING.evolve(workload=Training(method="lora")), catalog, vendors=["AMD"], counts=[1])
    assert {catalog.hardware.gpu(option.gpu).vendor for option in amd.options} == {"AMD"}


def test_what_fits_only_just_is_looked_at_on_request(catalog):
    usual, tight = (found(TUNING, catalog, include_tight=tight, counts=[1]) for tight in (False, True))
    assert {option.verdict for option in usual.options} == {"fits"}
    assert "tight" in {option.verdict for option in tight.options}


def test_cards_share_what_one_does_not_hold(catalog):
    shared = found(LARGE, catalog, counts=[4], having=["own"])
    on_4090 = next(option for option in shared.options if option.gpu == "rtx-4090")
    assert on_4090.sharing == "with the layers split across them"
    plan = apply_option(on_4090, LARGE, catalog)
    assert (plan.gpu, plan.count, plan.workload.parallel.is_open) == ("rtx-4090", 4, True)
    evaluation = evaluate(plan, catalog)
    assert (evaluation.memory.verdict, evaluation.workload.parallel.pipeline) == ("fits", 4)


def test_a_plan_that_is_spread_in_its_own_way_stays_so(catalog):
    plan = LARGE.evolve(workload=Inference(profile="vllm", parallel=Parallel(tensor=2)), count=2, gpu="h100-sxm5-80gb")
    own = found(plan, catalog, counts=[1, 2, 4], having=["rent"])
    assert {option.count for option in own.options} <= {2, 4}
    assert all(apply_option(option, plan, catalog).workload.parallel.tensor == 2 for option in own.options[:5])


def test_what_has_no_end_is_fast_by_its_pace(catalog):
    service = LARGE.evolve(cost=CostTerms(job=DailyHours(hours_per_day=8)))
    month = found(service, catalog, counts=[1, 2])
    assert month.period == "month"
    sooner = min(option.output_token_seconds for option in measured_options(month))
    assert month.fastest.output_token_seconds <= 1.1 * sooner


def test_a_service_is_looked_at_too(catalog):
    plan = TUNING.evolve(
        workload=Inference(profile="vllm", batch=16), cost=CostTerms(job=Service(requests_per_day=20_000))
    )
    assert found(plan, catalog, counts=[1]).cheapest is not None


def test_using_an_option_sets_the_offer(tuned, catalog):
    rented = next(option for option in tuned.options if option.having == "rent")
    plan = apply_option(rented, TUNING, catalog)
    assert (plan.cost.rent.offer, plan.cost.rent.mode) == (rented.offer, rented.mode)
    owned = next(option for option in tuned.options if option.having == "own")
    assert apply_option(owned, TUNING, catalog).cost == TUNING.cost


def test_an_option_of_another_plan_is_refused(tuned, catalog):
    pairs = TUNING.evolve(workload=Inference(parallel=Parallel(tensor=2)), count=2)
    with pytest.raises(SpecError, match="cannot run on 3 cards"):
        apply_option(tuned.options[0].evolve(count=3), pairs, catalog)


def test_unequal_cards_are_forgotten(catalog):
    cards = (CardCount(id="rtx-4090", count=1), CardCount(id="rtx-3090", count=1))
    plan = LARGE.evolve(workload=LARGE.workload.evolve(gpus=cards), count=2)
    first = next(possible_plans(plan, None, (1,)))
    assert (first.workload.gpus, first.count) == ((), 1)


def test_a_traced_module_runs_on_the_cards_that_it_was_traced_for(catalog):
    facts = facts_of(two_steps(GIB, training()))
    plan = Plan(model=ModelChoice.of_trace(facts), gpu="rtx-4090", cost=TUNING.cost)
    (spread,) = possible_plans(plan, None, (1, 2, 4))
    assert (spread.count, spread.gpu) == (1, None)
    assert "its speed is unknown" in {one.reason for one in found(plan, catalog).left_out}


def test_a_measured_speed_is_of_the_plans_own_cards(catalog):
    timing = TimeSetting(measured=MeasuredSpeed(value=1_000, unit="tokens/s"))
    plan = TUNING.evolve(gpu="rtx-4090", timing=timing)
    options = found(plan, catalog, counts=[1], having=["rent"]).options
    own = next(option for option in options if option.gpu == "rtx-4090")
    assert (own.tokens_per_second, own.basis) == (pytest.approx(1_000), "measured")
    assert next(option for option in options if option.gpu == "l40s").tokens_per_second > 1_000


def test_runs_beyond_the_horizon_are_left_out(catalog):
    endless = TUNING.evolve(cost=CostTerms(job=Run(amount=1e16, unit="tokens")))
    assert "a run takes longer than the horizon" in {one.reason for one in found(endless, catalog, counts=[1]).left_out}


def test_a_plan_that_does_not_go_with_its_model_says_why(catalog):
    plan = LARGE.evolve(workload=Inference(profile="vllm", parallel=Parallel(tensor=3)), count=3)
    with pytest.raises(SpecError, match="64 attention heads are not divisible by 3"):
        recommend(plan, catalog, TODAY, Wish(counts=(3,)))


def test_a_region_that_nobody_knows_is_refused(catalog):
    nowhere = TUNING.evolve(cost=CostTerms(region="XX"))
    with pytest.raises(SpecError, match="no electricity data for 'XX'"):
        recommend(nowhere, catalog, TODAY)
    assert found(nowhere, catalog, having=["rent"], counts=[1]).cheapest


def test_a_desk_has_one_machine_on_one_circuit(catalog):
    at_home = LARGE.evolve(cost=CostTerms(job=DailyHours(hours_per_day=8), buy=BuyTerms(place="desk")))
    usual, german = (
        found(at_home.evolve(cost=at_home.cost.evolve(region=region)), catalog, having=["own"])
        for region in ("US", "DE")
    )
    for home, watts in ((usual, 1_800), (german, 3_680)):
        assert home.options
        assert all(option.machines == 1 and option.cards <= 2 for option in home.options)
        assert all(option.power_watts * 1.8 <= watts for option in home.options)  # with the rest of the machine
    assert "over the power of one circuit" in {one.reason for one in usual.left_out}
    assert len(german.options) > len(usual.options)
    more_room = at_home.evolve(cost=at_home.cost.evolve(buy=BuyTerms(place="desk", gpus_per_server=4)))
    assert max(option.cards for option in found(more_room, catalog, having=["own"]).options) == 4


def test_several_machines_that_exchange_data_need_a_network(catalog):
    plan = TUNING.evolve(workload=Training(activation_checkpointing="full"))
    both = found(plan, catalog, counts=[8, 16], vendors=["NVIDIA"])
    for option in both.options:
        several = option.count > option.cards_per_machine
        assert (option.network_bytes_per_s is not None) == several
        assert (option.network_usd is not None) == (several and option.having == "own")
    h100 = next(one for one in both.options if (one.gpu, one.count, one.having) == ("h100-sxm5-80gb", 16, "own"))
    assert (h100.machines, h100.network_bytes_per_s) == (2, 50e9)  # 400 Gbit/s
    assert 0 < h100.network_usd < h100.usd


def test_copies_of_a_service_need_no_network_and_are_all_counted(catalog):
    busy = TUNING.evolve(
        workload=Inference(profile="vllm", batch=16), cost=CostTerms(job=Service(requests_per_day=3_000_000))
    )
    many = found(busy, catalog, counts=[1], having=["own"], vendors=["NVIDIA"])
    option = next(one for one in many.options if one.gpu == "a100-pcie-80gb")
    assert option.copies > 8
    assert option.machines == -(-option.copies // 8)
    assert option.power_watts == 300 * option.copies
    assert option.network_bytes_per_s is None


def test_changes_are_tried_only_where_the_plan_does_not_fit(catalog):
    plan = TUNING.evolve(workload=Training(method="qlora"))
    changed, as_planned = (found(plan, catalog, counts=[1], change_plan=change) for change in (True, False))
    unchanged = {option.key for option in changed.options if not option.changes}
    assert unchanged == {option.key for option in as_planned.options}
    assert {"rtx-4090", "rtx-3090"} <= {option.gpu for option in changed.options if option.changes}
    assert changed.cheapest.usd < as_planned.cheapest.usd
    assert changed.cheapest.gpu == "rtx-4090"


def test_tensor_parallelism_answers_sooner_than_copies(catalog):
    chat = TUNING.evolve(workload=Inference(profile="vllm"), cost=CostTerms(job=Service(requests_per_day=10_000)))
    options = found(chat, catalog, counts=[4], having=["rent"]).options
    copies, shared = (
        next(one for one in options if one.gpu == "h100-sxm5-80gb" and bool(one.sharing) == is_shared)
        for is_shared in (False, True)
    )
    assert shared.output_token_seconds < copies.output_token_seconds
    assert shared.key != copies.key


def test_prices_of_long_ago_are_not_called_the_cheapest(catalog):
    old = [one for one in found(TUNING, catalog, having=["own"], counts=[1]).options if not one.comparable]
    assert old
    assert all("the newest known price is" in one.remarks[0] for one in old)
    assert "rtx-4090" not in {one.gpu for one in old}


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
