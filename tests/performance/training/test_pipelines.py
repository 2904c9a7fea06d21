"""Time of training a pipeline's denoiser."""

import pytest
from small_models import bundled

from planner.models.diffusion import ImageDecoder, find_networks
from planner.performance.estimate import estimate_time
from planner.performance.inference.images import denoiser_counts, encoder_counts
from planner.performance.setting import MeasuredSpeed, TimeSetting
from planner.performance.training.pipelines import training_counts
from planner.workload.defaults import with_defaults
from planner.workload.training import Training

SD15 = bundled().models.model("stable-diffusion-v1-5/stable-diffusion-v1-5")
FLUX = bundled().models.model("black-forest-labs/FLUX.1-dev")


def gpu(name="rtx-4090"):
    return bundled().hardware.gpu(name)


def timed(architecture=SD15, cards=1, setting=None, kinds=("rtx-4090",), **fields):
    workload = with_defaults(Training(**fields), architecture, cards * len(kinds))
    return estimate_time(architecture, workload, tuple((gpu(kind), cards) for kind in kinds), setting or TimeSetting())


def counts(**fields):
    return training_counts(SD15, with_defaults(Training(**fields), SD15, 1))


def test_operations_are_passes_of_the_denoiser_and_what_makes_its_inputs():
    denoiser, decoder = find_networks(SD15.components)
    once = denoiser_counts(denoiser, 64, 64, 77).flops
    assert counts(precomputed="all").flops == 3 * once
    assert counts(precomputed="all", method="lora").flops == 2 * once
    assert counts(precomputed="all", method="lora", activation_checkpointing="full").flops == 3 * once
    with_images = counts(precomputed="prompts").flops - 3 * once
    assert with_images == encoder_counts(decoder, 64, 64).flops
    text = next(one for one in SD15.components if one.part == "text")
    assert counts(precomputed="none").flops - 3 * once - with_images == 2 * 77 * text.parameters


def test_an_encoder_mirrors_its_decoder_with_a_block_less_on_each_level():
    """By hand: a level of 8 channels on 4 × 4 pixels with one block, and attention between two blocks."""
    decoder = ImageDecoder(channels=(8,), layers=1, latent_channels=2, sample_size=8)
    block, ends = 2 * 9 * 8 * 8, 9 * 8 * (3 + 2 * 2)
    macs = 16 * (3 * block + ends + 4 * 8**2 + 2 * 16 * 8)
    assert encoder_counts(decoder, 4, 4).flops == 2 * macs
    assert encoder_counts(decoder.evolve(channels=(8, 8)), 4, 4).flops > 2 * macs


def test_a_batch_in_parts_takes_as_long_as_its_operations_and_more_launches():
    whole, parts = (timed(micro_batch=size, gradient_accumulation=8 // size, precomputed="all") for size in (8, 2))
    assert whole.seconds < parts.seconds < 4 * whole.seconds
    assert whole.samples_per_second == pytest.approx(8 / whole.seconds)
    assert whole.samples == "images"
    assert whole.low_seconds < whole.seconds < whole.high_seconds
    assert [term.name for term in whole.terms][-1] == "optimizer"


def test_the_optimizer_moves_gradients_parameters_and_states():
    found = timed(precomputed="all").terms[-1]
    parameters = next(one for one in SD15.components if one.part == "denoiser").parameters
    assert found.seconds == pytest.approx(parameters * 4 * (3 + 2 * 2) / gpu().bandwidth_bytes_per_s)
    assert timed(precomputed="all", optimizer="sgd").terms[-1].seconds < found.seconds
    assert timed(precomputed="all", method="lora").terms[-1].seconds < found.seconds / 50


def test_published_speeds_lie_within_the_interval():
    # huggingface/blog flux-qlora.md: 700 steps of four images of 512 × 768 in 41 minutes on an RTX 4090, with QLoRA.
    found = timed(
        FLUX,
        method="lora",
        image_size=(512, 768),
        gradient_accumulation=4,
        activation_checkpointing="full",
        precomputed="all",
        compute="amp-fp16",
    )
    assert found.low_seconds < 41 * 60 / 700 < found.high_seconds


def test_several_gpus_exchange_gradients_and_wait_for_the_slowest():
    alone, both = timed(), timed(cards=2)
    assert alone.seconds < both.seconds
    assert both.samples_per_second > alone.samples_per_second
    mixed = timed(kinds=("rtx-4090", "rtx-3060-12-gb"))
    assert mixed.notes[0] == f"All GPUs wait for the slowest: the time is that of the {gpu('rtx-3060-12-gb').name}."


def test_precisions_that_tensor_cores_lack_take_longer():
    times = [timed(compute=compute, precomputed="all").seconds for compute in ("amp-bf16", "tf32", "fp32")]
    assert times == sorted(times)


def test_a_measured_speed_replaces_the_estimate():
    measured = MeasuredSpeed(value=5, unit="samples/s")
    assert timed(setting=TimeSetting(measured=measured)).samples_per_second == pytest.approx(5)
    tokens = timed(setting=TimeSetting(measured=MeasuredSpeed(value=5, unit="tokens/s")))
    assert "does not read tokens" in tokens.unsupported


def test_a_gpu_without_a_rate_trains_in_unknown_time():
    bare = gpu().evolve(rates=())
    workload = with_defaults(Training(), SD15, 1)
    assert "is unknown" in estimate_time(SD15, workload, ((bare, 1),)).unsupported
