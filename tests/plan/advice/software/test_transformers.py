"""Memory-saving changes of Hugging Face Transformers."""

import pytest

from planner.plan.advice.search import apply_change
from planner.plan.advice.software.transformers import CHANGES
from planner.plan.plan import ModelChoice, Plan
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference, Training

NAMED = {change.name: change for change in CHANGES}
LLAMA = ModelChoice(id="meta-llama/Llama-3.2-1B")


@pytest.mark.parametrize(
    ("name", "workload", "profile"),
    [
        ("Q4_K_M in llama.cpp", Inference(), "llama.cpp"),
        ("Liger kernels", Training(), "liger"),
        ("Unsloth", Training(method="qlora"), "unsloth"),
    ],
)
def test_a_change_switches_to_the_program_that_has_the_feature(name, workload, profile):
    changed = apply_change(Plan(model=LLAMA, workload=workload), NAMED[name])
    assert changed.workload.profile == profile


def test_unsloth_is_offered_for_adapters_on_one_card(catalog):
    architecture = catalog.models.model(LLAMA.id)
    for method, count, is_offered in (("qlora", 1, True), ("lora", 1, True), ("full", 1, False), ("qlora", 2, False)):
        workload = with_defaults(Training(method=method), architecture, count)
        assert NAMED["Unsloth"].applies_to(workload, None) is is_offered


def test_other_programs_have_changes_of_their_own(catalog):
    workload = with_defaults(Inference(profile="vllm"), catalog.models.model(LLAMA.id), 1)
    assert not any(change.applies_to(workload, None) for change in CHANGES)


def test_a_cache_in_8_bits_is_offered_once(catalog):
    architecture = catalog.models.model(LLAMA.id)
    plain, quantized = (with_defaults(Inference(kv_cache=kind), architecture, 1) for kind in ("bf16", "fp8"))
    assert NAMED["KV cache in fp8"].applies_to(plain, None)
    assert not NAMED["KV cache in fp8"].applies_to(quantized, None)
