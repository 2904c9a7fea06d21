"""Memory-saving changes of inference workloads."""

import pytest

from planner.memory.result import MemoryResult
from planner.plan.advice.inference_changes import INFERENCE_CHANGES
from planner.plan.advice.search import apply_change
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.workload.defaults import with_defaults
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
