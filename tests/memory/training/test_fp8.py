"""Training in fp8: bf16 but for what linear layers cast, and only where torchao's layers can stand."""

import pytest
from pydantic import ValidationError

from planner.memory.estimate import estimate_memory
from planner.memory.training.fp8 import FP8_NOTES, fp8_cast_terms
from planner.workload.training import Training

LLAMA, MIXTRAL = "meta-llama/Llama-3.1-8B", "mistralai/Mixtral-8x7B-v0.1"


def by_phase(result, phase):
    return next(found for found in result.phases if found.name == phase)


def share(phase, name):
    return sum(part.bytes for part in phase.shares if part.name == name)


@pytest.fixture
def llama(catalog):
    return catalog.models.model(LLAMA)


def test_autocast_keeps_no_copies_of_linear_layers(llama):
    fp8, autocast = (estimate_memory(llama, Training(compute=compute)) for compute in ("fp8", "amp-bf16"))
    head = 128_256 * 4_096
    assert share(by_phase(fp8, "forward"), "temporaries") == 2 * head
    linear = 32 * (2 * 4_096 * 4_096 + 2 * 1_024 * 4_096 + 3 * 4_096 * 14_336)
    assert share(by_phase(autocast, "forward"), "temporaries") == 2 * (head + linear)
    kept = [share(by_phase(result, "forward"), "activations") for result in (fp8, autocast)]
    assert kept[0] == kept[1]
    assert set(FP8_NOTES) <= set(fp8.notes)


def test_what_is_cast_for_one_product_by_hand(llama):
    workload = Training(micro_batch=2, sequence_length=1_024, compute="fp8")
    tokens, read, made = 2_048, 4_096, 14_336
    (forward,), (backward,) = (fp8_cast_terms(llama, workload, backward=back) for back in (False, True))
    assert forward.bytes == tokens * made + read * made  # down: reads 14,336
    assert backward.bytes == tokens * read + read * made + 2 * tokens * made  # gate and up: make 14,336
    assert backward.high_bytes == backward.bytes + 8 * read * made


def test_parameters_in_bf16_have_no_copies_either_way(llama):
    fp8, bf16 = (estimate_memory(llama, Training(compute=compute, weights="bf16")) for compute in ("fp8", "bf16"))
    assert by_phase(fp8, "step").bytes == by_phase(bf16, "step").bytes
    assert by_phase(fp8, "loss").bytes == by_phase(bf16, "loss").bytes


def test_experts_and_routers_are_no_linear_layers(catalog):
    mixtral = catalog.models.model(MIXTRAL)
    fp8 = estimate_memory(mixtral, Training(compute="fp8"))
    head, routers = 32_000 * 4_096, 32 * 8 * 4_096
    assert share(by_phase(fp8, "forward"), "temporaries") == 2 * (head + routers)


def test_it_goes_with_fused_kernels_and_with_sharding(llama, catalog):
    gpu = catalog.hardware.gpu("h100-sxm5-80gb")
    liger = estimate_memory(llama, Training(compute="fp8", profile="liger"))
    assert set(FP8_NOTES) <= set(liger.notes)
    sharded = Training.model_validate({"compute": "fp8", "parallel": {"zero": 3}})
    one = estimate_memory(llama, sharded, gpu, count=8)
    assert sum(term.bytes for term in one.terms) == one.total_bytes


@pytest.mark.parametrize(
    ("card", "runs"),
    [
        ("h100-sxm5-80gb", True),
        ("rtx-4090", True),
        ("rtx-3090", False),
        ("instinct-mi300x", True),
        ("instinct-mi250x", False),
    ],
)
def test_cards_without_fp8_products_say_so(llama, catalog, card, runs):
    result = estimate_memory(llama, Training(compute="fp8"), catalog.hardware.gpu(card))
    assert any("torchao's fp8" in reason for reason in result.unsupported) != runs


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"method": "lora"}, "fp8 and adapters both replace the linear layers"),
        ({"profile": "megatron"}, "Megatron-LM has its own linear layers"),
        ({"weights": "fp16"}, "parameters in fp16 cannot be trained in fp8; choose fp32 or bf16"),
    ],
)
def test_where_other_layers_stand_it_is_refused(fields, reason):
    with pytest.raises(ValidationError, match=reason):
        Training.model_validate({"compute": "fp8", **fields})
