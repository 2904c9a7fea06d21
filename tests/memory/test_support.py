"""Reasons why PyTorch cannot run a workload on a card."""

import pytest
from small_models import bundled, llama, small_llama

from planner.memory.estimate import estimate_memory
from planner.memory.software import memory_of
from planner.memory.support import pytorch_reasons
from planner.workload.workload import Inference, Training


def gpu(name):
    return bundled().hardware.gpu(name)


@pytest.mark.parametrize(
    ("name", "workload", "words"),
    [
        ("tpu-v5e", Inference(), "XLA"),
        ("trainium3", Inference(), "Neuron"),
        ("apple-m1", Inference(weights="nf4"), "bitsandbytes"),
        ("apple-m1", Training(optimizer="adamw-8bit"), "bitsandbytes"),
        ("tesla-k80", Inference(weights="nf4"), "bitsandbytes"),
        ("gtx-1080", Inference(weights="int8"), "bitsandbytes"),
        ("quadro-rtx-4000", Inference(attention="flash"), "FlashAttention"),
        ("apple-m1", Inference(attention="flash"), "FlashAttention"),
        ("radeon-rx-6900-xt", Inference(attention="flash"), "FlashAttention"),
        ("apple-m1", Training(method="qlora"), "bitsandbytes"),
        ("apple-m1", Training(optimizer="paged-lion-8bit"), "bitsandbytes"),
        ("gtx-1080", Training(method="lora", weights="int8"), "bitsandbytes"),
        ("rtx-4090", Training(attention="flash", compute="fp32"), "fp16 and bf16 only"),
        ("gtx-1080", Training(profile="liger"), "Triton"),
        ("apple-m1", Training(profile="unsloth"), "Triton"),
        ("rtx-3090", Inference(weights="fp8-block128"), "8.9"),
        ("tesla-v100-sxm2-16gb", Inference(weights="mxfp4"), "7.5"),
    ],
)
def test_what_a_card_cannot_run_gets_a_reason_and_no_verdict(name, workload, words):
    reasons = memory_of(llama(), workload).unsupported_reasons(workload, gpu(name))
    assert any(words in reason for reason in reasons)
    available = bundled().hardware.usable_memory(gpu(name))
    result = estimate_memory(small_llama(), workload, gpu(name), available)
    assert result.verdict is None
    assert result.unsupported == reasons


def test_gaudi_is_told_apart_from_other_cards_of_its_maker():
    gaudi = [card for card in bundled().hardware.gpus if card.architecture == "Gaudi"]
    assert gaudi
    assert all("Gaudi" in pytorch_reasons(Inference(), card)[0] for card in gaudi)
    assert not pytorch_reasons(Inference(weights="nf4"), gpu("max-1100"))


@pytest.mark.parametrize(
    ("name", "workload"),
    [
        ("gtx-1080", Inference(weights="nf4")),
        ("rtx-4090", Inference(weights="int8", attention="flash")),
        ("instinct-mi325x", Training(optimizer="adamw-8bit", attention="flash")),
        ("apple-m1", Inference(weights="Q4_K_M")),
        ("tesla-v100-sxm2-16gb", Training(profile="liger", compute="amp-bf16")),
        ("instinct-mi325x", Training(profile="unsloth", method="qlora")),
        ("rtx-4090", Inference(weights="fp8-block128")),
        ("apple-m1", Training(optimizer="adafactor-transformers")),
    ],
)
def test_what_it_can_run_has_none(name, workload):
    assert not memory_of(llama(), workload).unsupported_reasons(workload, gpu(name))
