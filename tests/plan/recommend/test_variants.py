"""Variants of a plan that a recommendation tries, and the plan of a chosen option."""

import pytest
from recommended_hardware import LARGE, TUNING, recommended
from recordings import training, two_steps

from planner.cost.job import Service
from planner.cost.terms import CostTerms
from planner.errors import SpecError
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.plan.recommend.variants import apply_option, counts_tokens, possible_plans
from planner.trace.analysis.summary import facts_of
from planner.units import GIB
from planner.workload.parallel import CardCount, Parallel
from planner.workload.workload import Inference


def test_cards_share_what_one_does_not_hold(catalog):
    shared = recommended(LARGE, catalog, counts=[4], having=["own"])
    on_4090 = next(option for option in shared.options if option.gpu == "rtx-4090")
    assert on_4090.sharing == "with the layers split across them"
    plan = apply_option(on_4090, LARGE, catalog)
    assert (plan.gpu, plan.count, plan.workload.parallel.is_open) == ("rtx-4090", 4, True)
    evaluation = evaluate(plan, catalog)
    assert (evaluation.memory.verdict, evaluation.workload.parallel.pipeline) == ("fits", 4)


def test_a_plan_that_is_spread_in_its_own_way_stays_so(catalog):
    plan = LARGE.evolve(workload=Inference(profile="vllm", parallel=Parallel(tensor=2)), count=2, gpu="h100-sxm5-80gb")
    own = recommended(plan, catalog, counts=[1, 2, 4], having=["rent"])
    assert {option.count for option in own.options} <= {2, 4}
    assert all(apply_option(option, plan, catalog).workload.parallel.tensor == 2 for option in own.options[:5])


def test_using_an_option_sets_the_offer_and_what_was_chosen(tuned, catalog):
    rented = next(option for option in tuned.options if option.having == "rent")
    plan = apply_option(rented, TUNING, catalog)
    assert (plan.cost.rent.offer, plan.cost.rent.mode, plan.cost.chosen) == (rented.offer, rented.mode, "rent")
    owned = next(option for option in tuned.options if option.having == "own")
    assert apply_option(owned, TUNING, catalog).cost == TUNING.cost.evolve(chosen="buy")


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
    assert "its speed is unknown" in {one.reason for one in recommended(plan, catalog).left_out}


def test_tensor_parallelism_answers_sooner_than_copies(catalog):
    chat = TUNING.evolve(workload=Inference(profile="vllm"), cost=CostTerms(job=Service(requests_per_day=10_000)))
    options = recommended(chat, catalog, counts=[4], having=["rent"]).options
    copies, shared = (
        next(one for one in options if one.gpu == "h100-sxm5-80gb" and bool(one.sharing) == is_shared)
        for is_shared in (False, True)
    )
    assert shared.output_token_seconds < copies.output_token_seconds
    assert shared.key != copies.key


def test_an_option_with_changes_that_no_longer_apply_cannot_be_used(tuned, catalog):
    option = tuned.options[0].evolve(changes=("a change of another plan",))
    with pytest.raises(SpecError, match="cannot run on 1 cards"):
        apply_option(option, TUNING, catalog)


def test_the_speed_of_a_traced_module_is_counted_in_samples(catalog):
    traced = Plan(model=ModelChoice.of_trace(facts_of(two_steps(GIB, training()))), gpu="rtx-4090")
    assert not counts_tokens(traced, catalog)
    assert counts_tokens(TUNING, catalog)
