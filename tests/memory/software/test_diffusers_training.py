"""Memory of training a pipeline's denoiser: its phases, what is beside it, and what is refused."""

import pytest
from small_models import bundled

from planner.errors import SpecError
from planner.memory.estimate import estimate_memory, resolve_workload
from planner.memory.software import memory_of, training_memory
from planner.present.memory.verdict import fewest_cards_note
from planner.units import GIB
from planner.workload.training import Lora, Training

SDXL = bundled().models.model("stabilityai/stable-diffusion-xl-base-1.0")
SD15 = bundled().models.model("stable-diffusion-v1-5/stable-diffusion-v1-5")
FLUX = bundled().models.model("black-forest-labs/FLUX.1-dev")
UNET = next(one for one in SDXL.components if one.part == "denoiser").parameters


def estimated(architecture=SDXL, count=1, **fields):
    return estimate_memory(architecture, Training(**fields), count=count)


def phases(found):
    return {phase.name: phase.bytes for phase in found.phases}


def terms(found):
    return {term.name: term for term in found.terms}


def test_what_was_computed_beforehand_is_not_on_the_gpu():
    kept = {name: estimated(method="lora", precomputed=name) for name in ("none", "prompts", "all")}
    parts = {name: [part.name for part in terms(found)["weights"].parts] for name, found in kept.items()}
    assert parts["none"] == ["text_encoder in BF16", "text_encoder_2 in BF16", "unet in BF16", "vae in FP32"]
    assert parts["prompts"] == ["unet in BF16", "vae in FP32"]
    assert parts["all"] == ["unet in BF16"]
    assert [name for name in ("encode-text", "encode-image") if name in phases(kept["none"])] == [
        "encode-text",
        "encode-image",
    ]
    assert "encode-text" not in phases(kept["prompts"])
    assert "encode-image" not in phases(kept["all"])


def test_products_in_tf32_read_parameters_in_fp32():
    assert phases(estimated(SD15, compute="tf32")) == phases(estimated(SD15, compute="fp32"))


def test_full_training_keeps_weights_gradients_and_two_states_in_fp32():
    found = estimated(activation_checkpointing="full", precomputed="all")
    assert terms(found)["weights"].bytes == terms(found)["optimizer_states"].bytes / 2 == 4 * UNET
    assert found.peak_phase == "backward"
    assert 4 * UNET * 0.9 < terms(found)["gradients"].bytes <= 4 * UNET


def test_the_encoder_may_need_most_where_images_are_many_and_blocks_are_checkpointed():
    found = estimated(method="lora", activation_checkpointing="full", micro_batch=4)
    assert found.peak_phase == "encode-image"
    # Four images of 1024 × 1024 in fp32, with four tensors of 128 channels at once.
    assert terms(found)["activations"].bytes == pytest.approx(4 * 4 * 128 * 1024**2 * 4, rel=0.01)


def test_adapters_are_on_the_layers_of_the_scripts():
    sizes = [
        terms(estimated(SD15, method="lora", lora={"rank": 4, **own}))["adapters"].bytes
        for own in ({}, {"adapter_dtype": "bf16"}, {"targets": ["attn1.to_q"]}, {"targets": "all-linear"})
    ]
    assert sizes[:2] == [4 * 797_184, 2 * 797_184]  # 797,184 numbers, as published adapters of rank 4 have
    assert sizes[2] < sizes[0] < sizes[3]


def test_layers_that_no_denoiser_has_are_refused():
    with pytest.raises(SpecError, match=r"no linear layer of the model is named 'q_proj'") as refused:
        estimated(method="lora", lora=Lora(targets=("q_proj",)))
    assert "to_out.0" in refused.value.hint


def test_accumulation_keeps_the_gradients_throughout():
    once, twice = (estimated(SD15, gradient_accumulation=times, precomputed="all") for times in (1, 2))
    parameters = next(one for one in SD15.components if one.part == "denoiser").parameters
    assert terms(twice)["gradients"].bytes == 4 * parameters
    assert phases(twice)["denoise"] - phases(once)["denoise"] == pytest.approx(4 * parameters, rel=0.02)


def test_activations_grow_with_the_images_and_their_size():
    small, many, large = (
        terms(estimated(SD15, method="lora", precomputed="all", **fields))["activations"].bytes
        for fields in ({}, {"micro_batch": 4}, {"image_size": (1024, 512)})
    )
    assert many == pytest.approx(4 * small, rel=0.01)
    assert large == pytest.approx(2 * small, rel=0.05)


def test_dropout_of_adapters_needs_memory():
    plain, dropped = (
        terms(estimated(SD15, method="lora", precomputed="all", lora=Lora(dropout=rate)))["activations"].bytes
        for rate in (0.0, 0.1)
    )
    assert dropped > plain


def test_each_of_several_gpus_is_a_replica_with_buckets_of_gradients():
    found = estimated(SD15, count=2, method="lora")
    buckets = [part for part in terms(found)["communication"].parts if "buckets" in part.name]
    assert buckets[0].bytes == terms(found)["adapters"].bytes
    assert fewest_cards_note(found) == ()


def test_a_plan_that_does_not_fit_says_nothing_of_splitting():
    card = bundled().hardware.gpu("rtx-4090")
    from planner.plan.evaluate import evaluate
    from planner.plan.plan import ModelChoice, Plan

    plan = Plan(model=ModelChoice(id="black-forest-labs/FLUX.1-dev"), workload=Training(), gpu=card.id)
    memory = evaluate(plan, bundled()).memory
    assert memory.verdict == "does-not-fit"
    assert fewest_cards_note(memory) == ()


def test_flux_with_adapters_needs_what_was_published():
    # huggingface/blog flux-qlora.md: about 26 GB for LoRA in bf16, checkpointing, cached latents, 8-bit Adam.
    found = estimated(
        FLUX,
        method="lora",
        lora=Lora(rank=4, targets=("to_k", "to_q", "to_v", "to_out.0")),
        optimizer="adamw-8bit",
        activation_checkpointing="full",
        image_size=(512, 768),
        precomputed="all",
    )
    assert found.total_bytes / 1e9 == pytest.approx(26, rel=0.03)
    assert found.total_bytes > 23 * GIB


def test_pipelines_are_trained_by_a_program_of_their_own():
    workload = resolve_workload(SD15, Training(), 1).workload
    assert memory_of(SD15, workload) is training_memory("hf", SD15)
    assert training_memory("hf") is not training_memory("hf", SD15)
