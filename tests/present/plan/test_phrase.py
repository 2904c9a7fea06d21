"""Plans and trace requests as phrases."""

from typing import get_args

import pytest
from recordings import training

from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.plan.shared_gpus import Neighbour
from planner.present.plan.phrase import (
    METHOD_TITLES,
    NOT_ISOLATED,
    OPTIMIZER_TITLES,
    beside_sentences,
    hardware_phrase,
    plan_phrase,
    request_phrase,
    workload_phrase,
)
from planner.trace.request import Target, TraceLora, TraceParallel, TraceRequest
from planner.workload.diffusion import Diffusion
from planner.workload.optimizers import Optimizer
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference, Training

LLAMA = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"))


def inference(**changes):
    return training(task="inference", **changes)


def test_a_plan_is_one_phrase(catalog):
    plan = LLAMA.evolve(gpu="rtx-4090", count=2, workload=Inference(batch=2))
    evaluation = evaluate(plan, catalog)
    assert plan_phrase(evaluation, catalog) == (
        "meta-llama/Llama-3.1-8B · inference, 2 × 4,096 tokens, bf16 · 2 × GeForce RTX 4090"
    )


def test_a_plan_without_a_card_is_its_model_and_workload(catalog):
    phrase = plan_phrase(evaluate(LLAMA, catalog), catalog)
    assert phrase == "meta-llama/Llama-3.1-8B · inference, 1 × 4,096 tokens, bf16"


@pytest.mark.parametrize(
    ("request_", "phrase"),
    [
        (training(), "training, AdamW"),
        (
            training(batch=8, sequence_length=2048, autocast="bf16", checkpointing="full", gradient_accumulation=4),
            "training, AdamW, 4 accumulation steps, checkpointing, batch 8, 2,048 tokens, bf16 autocast",
        ),
        (training(step="gan.py:alternate", dtype="bf16"), "training, custom step alternate, bf16"),
        (training(optimizer="SGD", lora=TraceLora(rank=8)), "training, SGD, LoRA of rank 8"),
        (inference(decode_tokens=1), "inference, 1 output token"),
        (TraceRequest(target=Target(kind="script", place="train.py"), task="training"), "training"),
        (inference(parallel=TraceParallel(ranks=8, strategy="fsdp")), "inference, FSDP on 8 ranks"),
    ],
)
def test_a_trace_request_is_one_phrase(request_, phrase):
    assert request_phrase(request_) == phrase


def test_cards_without_a_name_are_counted_with_their_parallelism(catalog):
    workload = Inference(parallel=Parallel(tensor=2))
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.2-1B"), workload=workload, count=2)
    assert hardware_phrase(evaluate(plan, catalog), catalog).startswith("2 GPUs, ")


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
        (
            Training(sequence_length=2048, images=2),
            "full fine-tuning, AdamW, 1 × 2,048 tokens, 2 images per sequence, bf16 autocast",
        ),
        (Inference(context_length=4096, weights="bf16"), "inference, 1 × 4,096 tokens, bf16"),
        (Inference(batch=2), "inference, 2 sequences, weights as stored"),
        (Inference(batch=2, weights="stored"), "inference, 2 sequences, stored"),
        (Inference(batch=2, weights="fp8-block128"), "inference, 2 sequences, FP8 (blocks of 128)"),
        (
            Inference(context_length=4785, weights="bf16", images=4),
            "inference, 1 × 4,785 tokens, bf16, 4 images per prompt",
        ),
        (
            Inference(batch=8, context_length=8192, weights="nf4", kv_cache="fp8"),
            "inference, 8 × 8,192 tokens, nf4, KV cache in fp8",
        ),
        (
            Training(method="lora", precomputed="none", image_size=(1024, 768)),
            "LoRA, AdamW, 1 × 1,024 × 768 pixels, bf16 autocast",
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


@pytest.mark.parametrize(
    ("alignment", "phrase"),
    [
        ({"method": "dpo"}, "DPO with LoRA, AdamW, 8 × 512 tokens in pairs, bf16 autocast"),
        ({"method": "grpo"}, "GRPO with LoRA, AdamW, 8 × 512 tokens, groups of 8, bf16 autocast"),
        (
            {"method": "ppo", "engine": "same-cards"},
            "PPO with LoRA, AdamW, 8 × 512 tokens, vLLM beside it, bf16 autocast",
        ),
    ],
)
def test_an_objective_is_named_before_the_method(catalog, alignment, phrase):
    workload = Training(method="lora", micro_batch=8, sequence_length=512, alignment=alignment)
    assert workload_phrase(evaluate(LLAMA.evolve(workload=workload), catalog).workload) == phrase


def test_each_neighbour_has_its_part_and_sharing_isolates_nothing():
    small = Neighbour(model="a/b", program="vllm", held_bytes=2 * 2**30, fraction=0.25, verdict="fits")
    large = small.evolve(program="other", verdict="does-not-fit")
    first, second, order, isolation = beside_sentences([small, large])
    assert first == "Beside it on each GPU: a/b in vLLM, 2.00\u2009GiB (25\u2009% of it)."
    assert second.endswith("in other, 2.00\u2009GiB (25\u2009% of it), which does not fit in what is left.")
    assert "one after the other" in order
    assert isolation == NOT_ISOLATED
