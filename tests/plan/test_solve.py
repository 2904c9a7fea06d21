"""The largest numbers, the fewest cards and the smallest card, on well-known models."""

import pytest
from small_models import small_llama

from planner.errors import SpecError
from planner.memory.fit import CardFit
from planner.plan import solve
from planner.plan.catalog import load_catalog
from planner.plan.evaluate import evaluate, find_fits
from planner.plan.plan import ModelChoice, Plan
from planner.plan.sharing import sharing_counts
from planner.plan.solve import (
    fewest_cards,
    largest_allowed,
    largest_that_fits,
    on_cards,
    sizes_of,
    smallest_card,
    with_value,
)
from planner.workload.workload import Inference, Parallel, Training

READING = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), gpu="rtx-4090")


LEARNING = Plan(model=ModelChoice(id="openai-community/gpt2"), workload=Training(), gpu="rtx-4090")


CASES = [
    (READING, "batch"),
    (READING, "context_length"),
    (READING.evolve(model=ModelChoice(id="openai/gpt-oss-20b"), gpu="h200-sxm-141gb"), "batch"),
    (LEARNING, "micro_batch"),
    (LEARNING.evolve(workload=Training(activation_checkpointing="full", optimizer="adamw-8bit")), "micro_batch"),
]


TINY = Plan(model=ModelChoice(id="prajjwal1/bert-tiny"), gpu="h200-sxm-141gb", workload=Inference(context_length=1))


@pytest.mark.parametrize(("plan", "field"), CASES)
def test_the_largest_fits_the_next_is_tight_and_beyond_it_does_not(catalog, plan, field):
    surely = largest_that_fits(plan, catalog, field)
    barely = largest_that_fits(plan, catalog, field, "tight")

    def verdict(value):
        return evaluate(with_value(plan, field, value), catalog).memory.verdict

    def free(value):
        return evaluate(with_value(plan, field, value), catalog).memory.free_bytes

    assert (surely.verdict, surely.bounded_by, surely.asked) == ("fits", "memory", field)
    assert (barely.verdict, barely.bounded_by) == ("tight", "memory")
    assert verdict(surely.value) == "fits"
    assert verdict(surely.value + 1) == "tight"
    assert free(barely.value) >= 0 > free(barely.value + 1)


def test_what_is_found_is_the_evaluation_of_the_plan_that_it_carries(catalog):
    found = largest_that_fits(READING, catalog, "batch")
    memory = evaluate(found.plan, catalog).memory
    assert found.plan.workload.batch == found.value
    assert (found.total_bytes, found.free_bytes, found.verdict) == (
        memory.total_bytes,
        memory.free_bytes,
        memory.verdict,
    )


def test_a_prompt_longer_than_the_context_is_cut_to_it():
    plan = READING.evolve(workload=Inference(prompt_length=2000))
    assert with_value(plan, "context_length", 100).workload.prompt_length == 100
    assert with_value(plan, "context_length", 5000).workload.prompt_length == 2000


def test_grpo_accumulates_steps_of_whole_groups_at_other_sizes_and_counts():
    grouped = Plan(model=READING.model, workload=Training(micro_batch=8, alignment={"method": "grpo"}))
    changed = (grouped, with_value(grouped, "micro_batch", 6), on_cards(with_value(grouped, "micro_batch", 2), 2))
    assert [plan.workload.gradient_accumulation for plan in changed] == [1, 4, 4]


def test_grpo_is_searched_in_whole_groups(catalog):
    """More accumulation would generate more completions at once, so that a larger micro-batch could need less."""
    workload = Training(
        method="lora",
        micro_batch=8,
        sequence_length=1536,
        activation_checkpointing="full",
        alignment={"method": "grpo"},
    )
    plan = READING.evolve(gpu="h100-sxm5-80gb", workload=workload)
    found = largest_that_fits(plan, catalog, "micro_batch")
    assert found.value % 8 == 0
    assert found.plan.workload.gradient_accumulation == 1
    further = evaluate(with_value(plan, "micro_batch", found.value + 8), catalog).memory
    assert further.verdict != "fits"


@pytest.mark.parametrize(("accumulation", "count", "unit"), [(1, 1, 8), (2, 1, 4), (3, 1, 8), (2, 2, 2), (4, 8, 1)])
def test_sizes_of_grpo_are_parts_of_a_group_and_whole_groups(accumulation, count, unit):
    workload = Training(gradient_accumulation=accumulation, alignment={"method": "grpo"})
    sizes = sizes_of(READING.evolve(workload=workload, count=count), "micro_batch")
    values = [sizes.at(step) for step in range(1, 8)]
    assert values == sorted({*values})
    assert all(value % unit == 0 or unit % value == 0 for value in values)
    assert [sizes.step(value) for value in values] == list(range(1, 8))
    assert sizes.at(sizes.step(unit * 5 + unit - 1)) == unit * 5


def test_a_value_that_the_workload_does_not_take_is_refused():
    with pytest.raises(SpecError, match="batch"):
        with_value(READING, "batch", 0)


def test_lengths_end_at_what_the_model_is_made_for(catalog):
    found = largest_that_fits(LEARNING, catalog, "sequence_length")
    assert (found.value, found.bounded_by) == (1024, "model")


def test_numbers_end_at_what_may_be_asked(catalog):
    choice = ModelChoice(id="tiny", architecture=small_llama(vocab_size=8, hidden_size=8, num_attention_heads=2))
    plan = Plan(model=choice, gpu="h200-sxm-141gb", workload=Inference(context_length=1))
    found = largest_that_fits(plan, catalog, "batch")
    assert (found.value, found.bounded_by) == (largest_allowed(plan, "batch"), "workload")


@pytest.mark.parametrize(
    ("plan", "field", "reason"),
    [
        (READING.evolve(gpu=None), "batch", "the plan has no GPU"),
        (READING.evolve(gpu="tpu-v5e"), "batch", "TPUs run compiled XLA programs"),
        (READING.evolve(model=ModelChoice(id="meta-llama/Llama-3.1-70B")), "batch", "not even 1 fits"),
        (
            READING.evolve(model=ModelChoice(id="google/vit-base-patch16-224")),
            "context_length",
            "every input of this model has 197 tokens",
        ),
        (READING, "gpu_layers", "only llama.cpp can keep layers in RAM"),
    ],
    ids=["no GPU", "unsupported", "too large", "fixed length", "other software"],
)
def test_without_a_value_the_reason_is_said(catalog, plan, field, reason):
    found = largest_that_fits(plan, catalog, field)
    assert found.value is None
    assert found.plan is None
    assert found.reason.startswith(reason)


def test_a_card_of_which_little_is_known_gives_no_verdict(catalog):
    unknown = next(gpu for gpu in catalog.hardware.gpus if catalog.hardware.usable_memory(gpu) is None)
    found = largest_that_fits(READING.evolve(gpu=unknown.id), catalog, "batch")
    assert found.reason == "the usable memory of the GPU is unknown"


@pytest.mark.parametrize(("plan", "field"), [(READING, "micro_batch"), (LEARNING, "batch"), (LEARNING, "colour")])
def test_a_field_that_the_workload_does_not_have_is_named(catalog, plan, field):
    with pytest.raises(SpecError, match=f"{plan.workload.task} workloads have no such field") as caught:
        largest_that_fits(plan, catalog, field)
    assert caught.value.field == field


def test_one_card_is_enough_where_it_fits_whatever_the_plan_has(catalog):
    plan = READING.evolve(count=8, workload=Inference(parallel=Parallel(data=8)))
    found = fewest_cards(plan, catalog)
    assert (found.value, found.plan.count, found.plan.workload.parallel.data) == (1, 1, None)


def test_some_plans_are_too_large_for_any_number_of_cards(catalog):
    plan = Plan(model=ModelChoice(id="deepseek-ai/DeepSeek-V3"), workload=Training(), gpu="gtx-1080")
    found = fewest_cards(plan, catalog)
    assert (found.value, found.reason) == (None, "each GPU still needs more memory than it has")


@pytest.mark.parametrize(
    ("workload", "how"),
    [
        (Inference(), "with the layers split across them"),
        (Inference(profile="vllm"), "with tensor and pipeline parallelism"),
        (Training(activation_checkpointing="full"), "with ZeRO-3"),
    ],
)
def test_cards_share_the_network_where_one_is_not_enough(catalog, workload, how):
    plan = READING.evolve(model=ModelChoice(id="Qwen/Qwen2.5-32B"), workload=workload)
    found = fewest_cards(plan, catalog)
    assert (found.verdict, found.how, found.plan.count) == ("fits", how, found.value)
    assert evaluate(found.plan, catalog).memory.total_bytes == found.total_bytes
    possible = sharing_counts(evaluate(plan, catalog).workload, catalog.models.model(plan.model.id))
    for count in (count for count in possible if count < found.value):
        assert evaluate(on_cards(plan, count), catalog).memory.verdict != "fits"


def test_cards_are_counted_of_a_kind(catalog):
    with pytest.raises(SpecError, match="the plan has no GPU"):
        fewest_cards(READING.evolve(gpu=None), catalog)


def test_the_smallest_card_has_the_least_memory_of_those_that_fit(catalog):
    surely, barely = smallest_card(READING, catalog), smallest_card(READING, catalog, "tight")
    fits = {fit.gpu_id: fit for fit in find_fits(READING, catalog)}
    assert fits[surely.value].verdict == surely.verdict == "fits"
    assert surely.plan.gpu == surely.value
    assert fits[barely.value].capacity_bytes <= fits[surely.value].capacity_bytes
    smaller = (fit for fit in fits.values() if fit.capacity_bytes < fits[surely.value].capacity_bytes)
    assert all(fit.verdict == "tight" for fit in smaller)


def test_some_plans_are_too_large_for_every_card(catalog):
    plan = READING.evolve(model=ModelChoice(id="deepseek-ai/DeepSeek-V3"), workload=Training())
    assert smallest_card(plan, catalog).reason == "no GPU in the catalog is large enough"


def test_a_plan_that_is_spread_in_its_own_way_stays_so(catalog):
    plan = READING.evolve(count=2, workload=Inference(parallel=Parallel(tensor=2)))
    found = fewest_cards(plan, catalog)
    assert (found.value, found.how) == (2, "")
    assert found.plan.workload.parallel.tensor == 2


def with_free(bytes_free: int, *, in_the_worst_case: bool = True) -> CardFit:
    """Return a verdict with so much free memory; of unequal cards the worst case is not known."""
    verdict = "fits" if bytes_free >= 0 else "does-not-fit"
    return CardFit("card", verdict, 0, 100, bytes_free, (), 0.5, bytes_free if in_the_worst_case else None)


@pytest.mark.parametrize("in_the_worst_case", [True, False])
@pytest.mark.parametrize(
    "free", [lambda n: 10**7 - 37 * n, lambda n: 10**7 - n * n, lambda n: 10**4 - max(3 * n, n**3)]
)
def test_the_search_finds_the_last_number_that_fits_however_memory_grows(free, in_the_worst_case) -> None:
    def fit(value: int) -> CardFit:
        return with_free(free(value), in_the_worst_case=in_the_worst_case)

    value, found = solve._search_largest(fit, "fits", 1 << 24, 1, fit(1))
    assert free(value) >= 0 > free(value + 1)
    assert found == fit(value)


def test_the_search_ends_at_the_most_that_is_allowed() -> None:
    assert solve._search_largest(with_free, "fits", 1000, 1, with_free(1))[0] == 1000


def test_no_more_layers_are_on_the_card_than_the_model_has(catalog):
    plan = READING.evolve(workload=Inference(profile="llama.cpp", weights="Q4_K_M"))
    assert largest_that_fits(plan, catalog, "gpu_layers").value == 33


def test_the_search_halves_where_free_memory_leads_nowhere() -> None:
    assert solve._interpolated_step(with_free(0), with_free(0), "tight", 10) == 5


def test_the_workload_bounds_what_can_be_asked():
    assert largest_allowed(TINY, "batch") == 1_000_000
    assert largest_allowed(TINY, "context_length") == 100_000_000


def test_the_load_that_fits_is_limited_to_the_kv_cache_that_an_engine_allocates():
    catalog = load_catalog()
    workload = Inference(profile="vllm", context_length=8_192, batch=16)
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), gpu="h100-sxm5-80gb", workload=workload)
    for field, now in (("batch", 16), ("context_length", 8_192)):
        found = largest_that_fits(plan, catalog, field)
        assert isinstance(found.value, int)
        assert found.value > now
        assert found == largest_that_fits(plan, catalog, field, "tight")
        longest = evaluate(with_value(plan, field, found.value), catalog)
        beyond = evaluate(with_value(plan, field, found.value + 16), catalog)
        assert longest.memory.cache_pool.sequences >= longest.workload.batch
        assert beyond.memory.cache_pool.sequences < beyond.workload.batch
    least = plan.evolve(workload=workload.evolve(engine={"memory_utilization": 0.2}))
    assert largest_that_fits(least, catalog, "batch").reason == "not even 1 fits"


def test_a_field_of_the_other_task_is_named():
    with pytest.raises(SpecError, match="micro_batch"):
        largest_allowed(TINY, "micro_batch")


def test_the_largest_that_fits_stays_within_the_bound():
    catalog = load_catalog()
    smallest = min(catalog.models.records, key=lambda record: record.parameters)
    plan = Plan(model=ModelChoice(id=smallest.id), gpu="h200-sxm-141gb", workload=Inference(context_length=1))
    largest = largest_that_fits(plan, catalog, "batch")
    assert isinstance(largest.value, int)
    assert largest.value <= largest_allowed(plan, "batch")


@pytest.mark.parametrize(
    ("workload", "prompt"),
    [
        (Inference(), 4_096),
        (Inference(prompt_length=2_048), None),
        (Inference(profile="vllm"), None),
    ],
)
def test_the_longest_context_tells_the_prompt_that_the_plan_leaves_open(catalog, workload, prompt):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), gpu="rtx-4090", workload=workload)
    assert largest_that_fits(plan, catalog, "context_length").prompt == prompt


@pytest.mark.parametrize("field", ["batch", "context_length"])
@pytest.mark.parametrize("batch", [1, 6, 50])
def test_what_a_fitting_plan_has_is_at_most_the_largest_that_fits(catalog, field, batch):
    plan = Plan(
        model=ModelChoice(id="meta-llama/Llama-3.1-70B"),
        workload=Inference(profile="vllm", batch=batch, context_length=4096),
        gpu="h100-sxm5-80gb",
        count=8,
    )
    assert evaluate(plan, catalog).memory.verdict == "fits"
    assert largest_that_fits(plan, catalog, field).value >= getattr(plan.workload, field)
