"""Variants of a plan that a recommendation tries, and the plan of a chosen option."""

import pytest
from recommended_hardware import LARGE, TUNING, recommended
from recordings import training, two_steps

from planner.cost.terms import CostTerms, Service
from planner.errors import SpecError
from planner.plan.advice.training_changes import TRAINING_CHANGES
from planner.plan.evaluate import architecture_of, evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.plan.recommend.variants import (
    AdaptedPlan,
    _changed,
    apply_option,
    counts_tokens,
    possible_plans,
    speed_only_changes,
)
from planner.trace.analysis.memory import facts_of
from planner.units import GIB
from planner.workload.parallel import CardCount, Parallel
from planner.workload.workload import Inference, Training


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
    with pytest.raises(SpecError, match="cannot run on 3 GPUs"):
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
    with pytest.raises(SpecError, match="cannot run on 1 GPUs"):
        apply_option(option, TUNING, catalog)


def test_the_speed_of_a_traced_module_is_counted_in_samples(catalog):
    traced = Plan(model=ModelChoice.of_trace(facts_of(two_steps(GIB, training()))), gpu="rtx-4090")
    assert not counts_tokens(traced, catalog)
    assert counts_tokens(TUNING, catalog)


LLAMA = ModelChoice(id="meta-llama/Llama-3.1-8B")


def changed(catalog, workload, *, quantize: bool = False) -> tuple[AdaptedPlan, ...]:
    plan = Plan(model=LLAMA, workload=workload)
    return speed_only_changes(plan, architecture_of(plan, catalog), quantize=quantize)


def test_a_training_is_checkpointed_and_its_optimizer_kept_in_eight_bits(catalog):
    names = [one.names for one in changed(catalog, Training(micro_batch=1))]
    assert names == [
        ("8-bit AdamW",),
        ("selective checkpointing",),
        ("8-bit AdamW", "selective checkpointing"),
        ("full checkpointing",),
        ("8-bit AdamW", "full checkpointing"),
    ]


def test_smaller_micro_batches_keep_the_batch_of_a_step(catalog):
    for one in changed(catalog, Training(micro_batch=4, gradient_accumulation=2)):
        workload = one.plan.workload
        assert workload.micro_batch * workload.gradient_accumulation == 8
        assert (workload.method, workload.sequence_length) == ("full", None)


def test_what_the_plan_does_already_is_not_tried(catalog):
    done = Training(micro_batch=1, optimizer="adamw-8bit", activation_checkpointing="full")
    assert changed(catalog, done) == ()


def test_weights_keep_their_bits_unless_fewer_are_allowed(catalog):
    assert changed(catalog, Inference()) == ()
    fewer = changed(catalog, Inference(), quantize=True)
    assert [one.plan.workload.weights for one in fewer] == ["int8", "nf4", "Q4_K_M", "awq4-128"]
    assert {one.plan.workload.profile for one in fewer if one.names == ("Q4_K_M in llama.cpp",)} == {"llama.cpp"}


def test_quantized_adapters_come_after_all_that_keeps_the_bits(catalog):
    tried = changed(catalog, Training(method="lora"), quantize=True)
    quantized = ["QLoRA instead of LoRA" in one.names for one in tried]
    assert any(quantized)
    assert quantized == sorted(quantized)


def test_full_training_never_becomes_another_method(catalog):
    methods = {one.plan.workload.method for one in changed(catalog, Training(micro_batch=2), quantize=True)}
    assert methods == {"full"}


def test_a_change_that_the_workload_refuses_gives_no_plan(catalog):
    plan = Plan(model=LLAMA, workload=Training(micro_batch=4))
    (change,) = [known for known in TRAINING_CHANGES if known.name == "full checkpointing"]
    assert _changed(plan, [change]).plan.workload.activation_checkpointing == "full"
    assert _changed(plan, [change._replace(settings={"micro_batch": 0})]) is None
