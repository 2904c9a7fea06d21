"""Memory-saving changes of inference workloads, and the faster program."""

import re

import pytest

from planner.memory.result import MemoryResult
from planner.memory.training.autograd.network import feed_forward_parameters
from planner.memory.training.full import fp8_cast_terms
from planner.plan.advice import inference_changes as module
from planner.plan.advice.advise import advise
from planner.plan.advice.inference_changes import INFERENCE_CHANGES, faster_program, smaller_images
from planner.plan.advice.search import ChangeSearch, apply_change
from planner.plan.evaluate import architecture_of, evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.plan.solve import largest_that_fits
from planner.workload.defaults import with_defaults
from planner.workload.training import Training
from planner.workload.workload import Inference

CHANGES = {change.name: change for change in INFERENCE_CHANGES}
GPT2 = ModelChoice(id="openai-community/gpt2")


@pytest.mark.parametrize("name", ["weights in bf16", "weights in fp16"])
def test_sixteen_bits_halve_the_weights(catalog, name):
    plan = Plan(model=GPT2, workload=Inference(weights="fp32", compute="fp32"))
    changed = apply_change(plan, CHANGES[name])
    before, after = (evaluate(each, catalog).memory.term("weights").bytes for each in (plan, changed))
    assert before == 2 * after


def test_only_formats_with_more_bits_can_be_quantized(catalog):
    def applying(**settings):
        workload = with_defaults(Inference(**settings), catalog.models.model(GPT2.id), 1)
        return {name for name, change in CHANGES.items() if "weights" in name and change.applies_to(workload, None)}

    assert applying(weights="fp32", compute="fp32") >= {"weights in INT8", "weights in NF4", "4-bit weights (AWQ)"}
    assert applying(weights="int8") == {"weights in NF4", "4-bit weights (AWQ)"}
    assert applying(weights="nf4") == set()


def _logits_bytes(memory: MemoryResult) -> int:
    return max(share.bytes for phase in memory.phases for share in phase.shares if share.name == "logits")


def test_logits_of_one_token_replace_those_of_the_whole_prompt(catalog):
    plan = Plan(model=GPT2, workload=Inference(prompt_logits="all", prompt_length=1_000, context_length=1_024))
    changed = apply_change(plan, CHANGES["logits of the last token only"])
    before, after = (_logits_bytes(evaluate(each, catalog).memory) for each in (plan, changed))
    assert before > 100 * after


EIGHT = Plan(
    model=ModelChoice(id="meta-llama/Llama-3.1-70B"), gpu="h100-sxm5-80gb", count=8, workload=Inference(profile="hf")
)
SMALL = EIGHT.evolve(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), count=1)


def found(plan, catalog):
    search = ChangeSearch.for_plan(plan, catalog, architecture_of(plan, catalog), lambda: False)
    workload = with_defaults(plan.workload, search.architecture, plan.count)
    return [changed.changes[0].name for changed in faster_program(search, workload)]


def test_cards_that_would_compute_together_are_named_first_with_both_rates(catalog):
    first = advise(EIGHT, catalog)[0]
    rates = [evaluate(plan, catalog).time.tokens_per_second for plan in (first.plan, EIGHT)]
    numbers = re.fullmatch(r"Run in vLLM: ([\d,]+) instead of ([\d,]+) tokens/s", first.name).groups()
    assert [float(number.replace(",", "")) for number in numbers] == pytest.approx(rates, rel=0.05)
    assert first.slower_by_about == pytest.approx(rates[1] / rates[0])
    assert first.plan == EIGHT.evolve(workload=Inference(profile="vllm"))


@pytest.mark.parametrize(
    "plan",
    [
        SMALL,
        SMALL.evolve(workload=Training()),
        EIGHT.evolve(workload=Inference(profile="vllm")),
        EIGHT.evolve(gpu=None),
        EIGHT.evolve(gpu="tesla-t4"),
        SMALL.evolve(model=ModelChoice(id="openai-community/gpt2"), gpu="tesla-t4", workload=Inference(batch=2)),
    ],
    ids=["one user", "training", "already", "no GPU", "does not fit", "not on this GPU"],
)
def test_other_plans_get_no_other_program(catalog, plan):
    assert found(plan, catalog) == []


def test_a_few_users_are_enough_but_a_small_gain_is_not(catalog, monkeypatch):
    plan = SMALL.evolve(workload=Inference(profile="hf", batch=2))
    assert len(found(plan, catalog)) == 1
    monkeypatch.setattr(module, "_WORTHWHILE", 100)
    assert found(plan, catalog) == []


SDXL = ModelChoice(id="stabilityai/stable-diffusion-xl-base-1.0")


def test_smaller_images_keep_their_aspect_ratio_in_steps_of_64_pixels():
    sequence = smaller_images(Inference(image_size="1024x768"))
    assert (sequence.lever, sequence.values[0], sequence.values[-1]) == ("length", 960, 256)
    change = sequence.change(512)
    assert change.settings == {"image_size": "512x384"}
    assert change.kept == pytest.approx(1 / 4)
    assert change.name == "images of 512 × 384 pixels"


def test_a_pipeline_that_does_not_fit_gets_advice(catalog):
    plan = Plan(model=SDXL, workload=Inference(batch=4, image_size="2048x2048", compute="fp16"), gpu="rtx-3060-12-gb")
    assert evaluate(plan, catalog).memory.verdict == "does-not-fit"
    found = advise(plan, catalog)
    assert found
    for advice in found:
        assert advice.saved_bytes > 0 or advice.cost == "hardware"


def test_a_pipeline_has_no_largest_length(catalog):
    found = largest_that_fits(Plan(model=SDXL, gpu="rtx-4090"), catalog, "context_length")
    assert (found.value, found.reason) == (None, "a diffusion pipeline has no such length")


def test_components_without_linear_layers_are_not_quantized(catalog):
    pipeline = catalog.models.model(SDXL.id)
    assert fp8_cast_terms(pipeline, Training(compute="fp8", sequence_length=8), backward=True) == ()
    assert feed_forward_parameters(None, 64) == 0
