"""Workloads as phrases."""

from typing import get_args

import pytest

from planner.present.plan.workload import METHOD_TITLES, OPTIMIZER_TITLES, workload_phrase
from planner.workload.diffusion import Diffusion
from planner.workload.optimizers import Optimizer
from planner.workload.workload import Inference, Training


@pytest.mark.parametrize(
    ("workload", "phrase"),
    [
        (
            Training(micro_batch=4, sequence_length=2048),
            "full fine-tuning, AdamW, 4 × 2,048 tokens, bf16 autocast",
        ),
        (
            Training(
                optimizer="sgd-momentum",
                sequence_length=512,
                gradient_accumulation=8,
                compute="bf16",
                activation_checkpointing="full",
            ),
            "full fine-tuning, SGD with momentum, 1 × 512 tokens, 8 accumulation steps, bf16, checkpointing",
        ),
        (Inference(context_length=4096, weights="bf16"), "inference, 1 × 4,096 tokens, bf16"),
        (Inference(batch=2), "inference, 2 sequences, weights as stored"),
        (
            Inference(context_length=4785, weights="bf16", images=4),
            "inference, 1 × 4,785 tokens, bf16, 4 images per prompt",
        ),
        (
            Inference(batch=8, context_length=8192, weights="nf4", kv_cache="fp8"),
            "inference, 8 × 8,192 tokens, nf4, KV cache in fp8",
        ),
        (Inference(profile="vllm", weights="bf16"), "inference in vLLM, 1 sequence, bf16"),
        (
            Inference(profile="llama.cpp", weights="Q4_K_M", kv_cache="fp16"),
            "inference in llama.cpp, 1 sequence, Q4_K_M",
        ),
        (
            Inference(profile="llama.cpp", weights="Q8_0", kv_cache="q8_0"),
            "inference in llama.cpp, 1 sequence, Q8_0, KV cache in q8_0",
        ),
    ],
)
def test_a_workload_is_one_phrase(workload, phrase):
    assert workload_phrase(workload) == phrase


@pytest.mark.parametrize(
    ("settings", "phrase"),
    [
        (Diffusion(guidance=True), "images, 2 × 1,024 × 768 pixels, bf16"),
        (Diffusion(guidance=False, text_weights="bf16"), "images, 2 × 1,024 × 768 pixels, bf16, one pass per step"),
        (
            Diffusion(guidance=True, text_weights="nf4", offload="model", vae_slicing=True, vae_tiling=True),
            "images, 2 × 1,024 × 768 pixels, bf16, text encoders in nf4, model offload, decoded image by image, "
            "decoded in tiles",
        ),
    ],
)
def test_a_diffusion_workload_states_its_images(settings, phrase):
    assert workload_phrase(Inference(batch=2, image_size="1024x768", weights="bf16", diffusion=settings)) == phrase


def test_every_optimizer_and_method_has_a_title():
    assert set(OPTIMIZER_TITLES) == set(get_args(Optimizer))
    assert set(METHOD_TITLES) == set(get_args(Training.model_fields["method"].annotation))
