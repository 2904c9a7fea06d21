"""What would help, for well-known plans."""

import pytest
from recordings import training, two_steps

from planner.plan.advice.advise import CHANGES, advise, advise_in_rounds, larger_card
from planner.plan.advice.change import COSTS
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.trace.analysis.memory import facts_of
from planner.units import GIB
from planner.workload.workload import Inference, Parallel, Training

LLAMA = ModelChoice(id="meta-llama/Llama-3.1-8B")


TOO_MANY = Plan(model=LLAMA, workload=Inference(batch=16), gpu="rtx-4090")


FEW = tuple(change for change in CHANGES if change.name in ("8-bit AdamW", "full checkpointing"))


def names(found):
    return [advice.name for advice in found]


def named(found, name):
    return next(advice for advice in found if advice.name == name)


def test_smaller_passes_keep_the_effective_batch(catalog):
    plan = Plan(model=ModelChoice(id="openai-community/gpt2"), workload=Training(micro_batch=64), gpu="rtx-4090")
    best = advise(plan, catalog)[0]
    assert best.verdict == "fits"
    assert best.plan.workload.micro_batch * best.plan.workload.gradient_accumulation == 64
    assert best.plan.workload.micro_batch > 1
    assert (best.cost, best.risk, best.slower_by_about) == ("time", "none", None)
    assert best.keeps == ("64 sequences per GPU and optimizer step",)


def test_the_larger_micro_batch_is_taken(catalog):
    plan = Plan(model=ModelChoice(id="openai-community/gpt2"), workload=Training(micro_batch=64), gpu="rtx-4090")
    best = advise(plan, catalog)[0].plan.workload
    larger = best.evolve(micro_batch=2 * best.micro_batch, gradient_accumulation=best.gradient_accumulation // 2)
    assert evaluate(plan.evolve(workload=larger), catalog).memory.verdict != "fits"


def test_combined_changes_multiply_slowdowns_and_join_needs(catalog):
    plan = Plan(model=LLAMA, workload=Training(), gpu="h100-sxm5-80gb")
    both = named(advise(plan, catalog, FEW), "8-bit AdamW + full checkpointing")
    assert both.slower_by_about == 4 / 3
    assert (both.cost, both.risk, both.needs) == ("time", "small", ("bitsandbytes",))
    assert [step.name for step in both.steps] == ["8-bit AdamW", "full checkpointing"]
    assert {setting.field: setting.value for setting in both.settings} == {
        "workload.optimizer": "adamw-8bit",
        "workload.activation_checkpointing": "full",
    }


def test_advice_is_ranked_by_cost(catalog):
    found = advise(TOO_MANY, catalog)
    assert names(found[:2]) == ["Q4_K_M in llama.cpp", "4 sequences at once"]
    fitting = [COSTS.index(advice.cost) for advice in found if advice.verdict == "fits"]
    assert fitting == sorted(fitting)
    assert len({advice.name for advice in found}) == len(found) <= 8


def test_smaller_and_divided_batches_fit(catalog):
    found = advise(TOO_MANY, catalog)
    fewer = next(advice for advice in found if advice.name.endswith("at once"))
    assert fewer.kept == fewer.plan.workload.batch / 16
    shared = next(advice for advice in found if "GPUs" in advice.name)
    assert shared.plan.count * shared.plan.workload.batch == 16
    assert shared.cost == "hardware"


def test_the_advised_card_is_the_smallest_as_capable_one(catalog):
    other = next(advice for advice in advise(TOO_MANY, catalog) if advice.name.endswith("instead"))
    card, present = catalog.hardware.gpu(other.plan.gpu), catalog.hardware.gpu("rtx-4090")
    assert card.vendor == present.vendor
    assert float(card.compute_capability) >= float(present.compute_capability)
    assert evaluate(other.plan, catalog).memory.verdict == "fits"


def test_cards_of_other_vendors_are_compared_by_year(catalog):
    plan = TOO_MANY.evolve(gpu="radeon-rx-7900-xtx")
    other = next(advice for advice in advise(plan, catalog) if advice.name.endswith("instead"))
    card = catalog.hardware.gpu(other.plan.gpu)
    assert (card.vendor, card.year >= catalog.hardware.gpu("radeon-rx-7900-xtx").year) == ("AMD", True)


def test_any_capable_card_is_advised_for_a_card_that_cannot_run_the_plan(catalog):
    plan = Plan(model=LLAMA, gpu="tpu-v5e")
    assert names(advise(plan, catalog))[0].endswith("instead")


def test_an_unsupported_setting_can_be_changed(catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.2-1B"), workload=Inference(attention="flash"), gpu="tesla-t4")
    assert evaluate(plan, catalog).memory.unsupported
    best = advise(plan, catalog)[0]
    assert (best.name, best.verdict) == ("SDPA attention", "fits")


def test_an_unsupported_change_lists_it_as_a_need(catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.2-3B"), workload=Inference(batch=8), gpu="tesla-k80")
    nf4 = tuple(change for change in CHANGES if change.name == "weights in NF4")
    (found,) = [advice for advice in advise(plan, catalog, nf4) if advice.verdict is None]
    assert found.name == "weights in NF4"
    assert "bitsandbytes has no kernels for this GPU" in found.needs[-1]


def test_the_nearest_changes_are_listed_if_only_hardware_helps(catalog):
    plan = Plan(model=LLAMA, workload=Training(), gpu="rtx-4090")
    found = advise(plan, catalog, FEW)
    hardware = [advice for advice in found if advice.cost == "hardware"]
    nearest = [advice for advice in found if advice.cost != "hardware"]
    assert found[0] in hardware
    assert {advice.verdict for advice in hardware[:1]} == {"fits"}
    assert {advice.verdict for advice in nearest} == {"does-not-fit"}
    before = evaluate(plan, catalog).memory.total_bytes
    assert all(advice.total_bytes < before for advice in nearest)


@pytest.mark.parametrize(
    ("workload", "count", "name"),
    [
        (Inference(), 1, "2 GPUs with the layers split across them"),
        (Inference(parallel=Parallel(sharing="manual")), 2, "layer split over the 2 GPUs"),
        (Inference(profile="vllm", parallel=Parallel(data=4)), 4, "tensor parallelism over 2 of the GPUs"),
        (Inference(profile="vllm", parallel=Parallel(tensor=2), batch=64), 4, "pipeline parallelism over the 4 GPUs"),
        (Training(method="lora", parallel=Parallel(data=2)), 2, "ZeRO-3"),
    ],
)
def test_sharing_is_always_among_what_would_help(catalog, workload, count, name):
    plan = Plan(model=ModelChoice(id="Qwen/Qwen2.5-14B"), workload=workload, gpu="a100-sxm4-40gb", count=count)
    plan = plan if isinstance(workload, Training) else plan.evolve(gpu="rtx-3090")
    found = next(advice for advice in advise(plan, catalog) if name in advice.name)
    assert found.plan.workload.parallel.sharing == "manual"
    assert found.saved_bytes > 0
    assert evaluate(found.plan, catalog).memory.verdict == found.verdict


def test_a_cheap_change_saves_cards(catalog):
    """Checkpointing on 8 cards instead of 64 cards without it; adapters would need fewer still, but train less."""
    found = advise(Plan(model=LLAMA, gpu="rtx-4090", workload=Training(method="full")), catalog)
    more_cards = [advice for advice in found if advice.plan.count > 1]
    assert [(advice.plan.count, advice.risk, advice.verdict) for advice in more_cards] == [(8, "none", "fits")]
    assert more_cards[0].plan.workload.activation_checkpointing == "full"
    assert more_cards[0].plan.workload.parallel.zero == 3


def test_a_plan_that_is_shared_by_its_software_may_get_more_cards(catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-70B"), gpu="rtx-3090", count=2)
    assert evaluate(plan, catalog).sharing.scheme == "layer split"
    more = next(one for one in advise(plan, catalog) if one.plan.count > 2)
    assert (more.name, more.verdict) == (f"{more.plan.count} GPUs with the layers split across them", "fits")


def test_very_slow_changes_are_ranked_last(catalog):
    found = advise(Plan(model=LLAMA, workload=Training(micro_batch=8), gpu="h100-sxm5-80gb"), catalog)
    costs = [advice.cost for advice in found if advice.verdict == "fits"]
    assert costs == sorted(costs, key=lambda cost: (cost in ("much-time", "hardware"), cost == "hardware"))
    assert all(len(advice.steps) <= 2 for advice in found if advice.cost == "much-time" and advice.verdict == "fits")


def test_a_tight_plan_is_made_to_fit(catalog):
    plan = next(
        candidate
        for size in range(1, 30)
        if evaluate(candidate := TOO_MANY.evolve(workload=Inference(batch=size)), catalog).memory.verdict == "tight"
    )
    found = advise(plan, catalog)
    assert found
    assert {advice.verdict for advice in found} <= {"fits", None}


def test_closing_other_programs_is_advised(catalog):
    plan = Plan(model=LLAMA, workload=Inference(other_processes_bytes=8 * 2**30), gpu="rtx-4090")
    closed = advise(plan, catalog)[0]
    assert (closed.name, closed.saved_bytes, closed.verdict) == ("close other programs", 8 * 2**30, "fits")


def test_advice_for_a_plan_that_fits_is_ranked_by_savings(catalog):
    found = advise(Plan(model=LLAMA, gpu="rtx-4090"), catalog)
    assert names(found) == [
        "Q4_K_M in llama.cpp",
        "4-bit weights (AWQ)",
        "weights in NF4",
        "weights in INT8",
        "KV cache in fp8",
    ]
    without_card = advise(Plan(model=LLAMA), catalog)
    assert names(without_card) == names(found)
    assert all(advice.verdict is None for advice in without_card)


def test_a_faster_program_is_one_of_at_most_eight_pieces_of_advice(catalog):
    workload = Inference(batch=16, attention="eager", prompt_logits="all")
    plan = Plan(model=ModelChoice(id="openai-community/gpt2"), workload=workload, gpu="b300-sxm-288gb", count=4)
    found = names(advise(plan, catalog))
    assert found[0].startswith("Run in vLLM: ")
    assert len(found) == 8


def test_a_requested_prompt_is_shortened_with_the_context(catalog):
    workload = Inference(context_length=32_768, prompt_length=32_768, attention="eager")
    found = advise(Plan(model=LLAMA, workload=workload, gpu="a100-sxm4-80gb"), catalog)
    shorter = next(advice for advice in found if advice.name.startswith("a context"))
    assert shorter.plan.workload.prompt_length == shorter.plan.workload.context_length < 32_768
    assert shorter.kept < 1


def test_accumulation_beyond_its_limit_is_not_advised(catalog):
    workload = Training(micro_batch=64, gradient_accumulation=1_000_000)
    found = advise(Plan(model=ModelChoice(id="openai-community/gpt2"), workload=workload, gpu="rtx-4090"), catalog)
    assert found
    assert not any("accumulated" in advice.name for advice in found)


@pytest.mark.parametrize(("gpu", "held", "count"), [("rtx-4090", 18, 1), ("rtx-4090", 0, 0), (None, 0, 0)])
def test_the_only_advice_for_a_traced_plan_is_another_card(catalog, gpu, held, count):
    facts = facts_of(two_steps(GIB, training()))
    workload = Inference(other_processes_bytes=held * GIB)
    found = advise(Plan(model=ModelChoice.of_trace(facts), workload=workload, gpu=gpu), catalog)
    assert len(found) == count
    for advice in found:
        assert advice.name.endswith("instead")
        assert evaluate(advice.plan, catalog).memory.verdict == advice.verdict == "fits"


def test_single_changes_are_advised_before_combinations(catalog):
    *earlier, last = advise_in_rounds(TOO_MANY, catalog)
    assert last == advise(TOO_MANY, catalog)
    assert len(earlier) > 1
    assert all(len(advice.steps) == 1 for advice in earlier[0])


def test_a_stopped_search_finds_nothing_more(catalog):
    rounds = advise_in_rounds(TOO_MANY, catalog, stop=lambda: True)
    assert all(advice.cost == "hardware" for found in rounds for advice in found)


def test_a_larger_slice_of_the_same_card_comes_before_other_cards(catalog):
    plan = Plan(model=LLAMA, workload=Inference(), gpu="h100-sxm5-80gb-mig-1g.10gb")
    found = advise(plan, catalog)
    (one,) = (advice for advice in found if advice.plan.gpu != plan.gpu)
    assert (one.verdict, one.plan.gpu) == ("fits", "h100-sxm5-80gb-mig-3g.40gb")
    assert one.steps[0].sentence.startswith("Use the smallest slice (MIG) of the GPU that the plan fits on")
    assert all(advice.plan.count == 1 for advice in found)


def test_a_plan_that_fits_on_no_slice_gets_another_card(catalog):
    plan = Plan(model=ModelChoice(id="Qwen/Qwen2.5-32B"), workload=Inference(), gpu="a30-mig-1g.6gb")
    assert all("MIG" not in advice.name for advice in advise(plan, catalog))


def test_slices_do_not_work_together(catalog):
    plan = Plan(model=LLAMA, workload=Inference(parallel=Parallel(tensor=2)), gpu="h100-sxm5-80gb-mig-3g.40gb", count=2)
    assert "no direct access to each other" in evaluate(plan, catalog).memory.unsupported[0]


def test_no_announced_card_is_advised_while_another_fits(catalog):
    tuned = Training(method="qlora", activation_checkpointing="full")
    plan = Plan(model=ModelChoice(id="bigscience/bloom"), workload=tuned, gpu="arc-pro-b50")
    change, _ = larger_card(plan, catalog)
    assert not catalog.hardware.gpu(change.hardware["gpu"]).preliminary


def test_unsloth_is_combined_neither_with_offload_nor_with_sharing(catalog):
    tuned = Training(method="qlora", activation_checkpointing="full")
    plan = Plan(model=ModelChoice(id="Qwen/Qwen3-8B"), workload=tuned, gpu="rtx-4070")
    levers = [{step.lever for step in found.steps} for found in advise(plan, catalog) if "Unsloth" in found.name]
    assert levers
    assert not any(found & {"offload", "sharing", "cards"} for found in levers)
