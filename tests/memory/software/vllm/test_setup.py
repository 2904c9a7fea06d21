"""Limits of vLLM's steps by class of card, and what its kernels pad of experts in MXFP4, calculated by hand."""

import pytest
from small_models import bundled, llama
from vllm_cases import setup

from planner.memory.estimate import estimate_memory
from planner.memory.software.vllm.setup import (
    CardClass,
    ExpertKernels,
    card_setup,
    kernels_of_card,
    padded_weights_term,
)
from planner.memory.weights import weights_term
from planner.units import GIB
from planner.workload.workload import Inference


@pytest.mark.parametrize(
    ("name", "of_card"),
    [
        ("b200-sxm-180gb", CardClass.LARGEST),
        ("h100-sxm5-80gb", CardClass.LARGE),
        ("a100-sxm4-80gb", CardClass.OTHER),
        ("rtx-4090", CardClass.OTHER),
    ],
)
def test_defaults_follow_the_card(name: str, of_card: CardClass):
    assert card_setup(bundled().hardware.gpu(name)).limits is of_card


def test_limits_of_a_step():
    large = setup()
    assert (large.tokens, large.sequences, large.in_flight, large.utilization) == (8192, 1024, 16_384, 0.92)
    assert setup(version="0.11").utilization == 0.9
    assert setup(length=1, max_num_seqs=3).tokens == 3
    assert setup(max_num_batched_tokens=100).sequences == 100
    assert setup(max_num_batched_tokens=100, max_num_seqs=200).sequences == 200


EXPERTS = 36 * 128 * 3 * 2880**2
"""Elements of the matrices of gpt-oss-120b's experts: gate, up and down."""
SCALES, STORED = EXPERTS // 32, EXPERTS // 2 + EXPERTS // 32
BIASES = 36 * 128 * (5760 + 2880)


@pytest.fixture(scope="module")
def gpt_oss():
    return bundled().models.model("openai/gpt-oss-120b")


@pytest.mark.parametrize(
    ("kernels", "padding"),
    [
        (ExpertKernels.MARLIN, STORED * 2944 * 3072 // 2880**2 - STORED),
        (ExpertKernels.FLASHINFER, STORED * 3072 * 3072 // 2880**2 - STORED),
        (ExpertKernels.TRITON, SCALES * (5888 + 3072) // (5760 + 2880) + BIASES * 2),
        (None, 0),
    ],
)
def test_the_padding_of_each_kernel(gpt_oss, kernels, padding):
    plain = weights_term(gpt_oss, "mxfp4")
    padded = padded_weights_term(gpt_oss, "mxfp4", kernels)
    assert padded.bytes - plain.bytes == pytest.approx(padding, rel=1e-6)
    assert sum(part.bytes for part in padded.parts) == padded.bytes


def test_logs_of_vllm_say_the_same(gpt_oss):
    for kernels, logged_gib in ((ExpertKernels.MARLIN, 65.9651), (ExpertKernels.TRITON, 64.38)):
        assert padded_weights_term(gpt_oss, "mxfp4", kernels).bytes / GIB == pytest.approx(logged_gib, rel=0.0015)


@pytest.mark.parametrize(
    ("card", "kernels"),
    [
        ("a100-sxm4-80gb", ExpertKernels.MARLIN),
        ("rtx-5090", ExpertKernels.MARLIN),
        ("h100-sxm5-80gb", ExpertKernels.TRITON),
        ("b200-sxm-180gb", ExpertKernels.FLASHINFER),
        ("instinct-mi300x", ExpertKernels.FLASHINFER),
    ],
)
def test_the_kernels_of_a_card(card, kernels):
    assert kernels_of_card(bundled().hardware.gpu(card)) is kernels


def test_only_experts_are_padded(gpt_oss):
    def weights(model, card, **changes):
        gpu = bundled().hardware.gpu(card)
        return estimate_memory(model, Inference(profile="vllm", **changes), gpu).term("weights").bytes

    assert weights(gpt_oss, "a100-sxm4-80gb", weights="mxfp4") > weights(gpt_oss, "h100-sxm5-80gb", weights="mxfp4")
    assert weights(gpt_oss, "a100-sxm4-80gb", weights="bf16") == weights(gpt_oss, "h100-sxm5-80gb", weights="bf16")
    small = llama()
    assert weights(small, "a100-sxm4-80gb", weights="mxfp4") == weights_term(small, "mxfp4").bytes
