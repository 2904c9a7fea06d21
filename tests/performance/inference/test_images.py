"""Time of images from diffusion pipelines."""

import pytest
from small_models import bundled

from planner.models.diffusion import ImageDecoder, UNet, find_networks
from planner.performance.estimate import estimate_time
from planner.performance.inference.images import decoder_counts, denoiser_counts, pipeline_counts
from planner.performance.setting import TimeSetting
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference

SD_15 = "stable-diffusion-v1-5/stable-diffusion-v1-5"


def gpu(name):
    return bundled().hardware.gpu(name)


def image(card="a100-pcie-80gb", **changes):
    architecture = bundled().models.model(SD_15)
    workload = with_defaults(Inference(**changes), architecture, 1)
    return architecture, workload, estimate_time(architecture, workload, ((gpu(card), 1),))


def test_an_a100_makes_the_images_a_second_that_were_measured():
    # LambdaLabsML/lambda-diffusers: 1.61 images a second in fp16 with 16 at once.
    _, _, found = image(batch=16, compute="fp16")
    assert found.samples_per_second == pytest.approx(1.61, rel=0.15)
    assert found.kind == "service"
    assert "30 denoising steps" in found.notes[0]
    assert image(compute="fp32")[2].samples_per_second < found.samples_per_second


def test_an_image_takes_as_many_steps_as_are_set():
    architecture, workload, usual = image()
    cards = ((gpu("a100-pcie-80gb"), 1),)
    few = estimate_time(architecture, workload, cards, TimeSetting(diffusion_steps=4))
    assert 4 < usual.seconds / few.seconds < 30 / 4
    assert "4 denoising steps" in few.notes[0]
    assert estimate_time(architecture, workload, cards, TimeSetting(diffusion_steps=30)).seconds == usual.seconds


def test_a_card_without_a_rate_makes_no_image():
    architecture, workload, _ = image()
    bare = gpu("a100-pcie-80gb").evolve(rates=())
    assert estimate_time(architecture, workload, ((bare, 1),)).unsupported


@pytest.mark.parametrize(
    ("model", "side", "text", "denoiser_tflop", "decoder_tflop"),
    [
        (SD_15, 64, 77, 0.80, 2.5),
        ("stabilityai/stable-diffusion-xl-base-1.0", 128, 77, 6.8, 10.5),
        ("stabilityai/stable-diffusion-3-medium-diffusers", 128, 333, 8.9, 10.5),
        ("PixArt-alpha/PixArt-Sigma-XL-2-1024-MS", 128, 300, 6.6, 10.5),
        ("black-forest-labs/FLUX.1-dev", 128, 512, 74.4, 10.5),
    ],
)
def test_operations_of_denoisers_and_decoders(model, side, text, denoiser_tflop, decoder_tflop):
    denoiser, decoder = find_networks(bundled().models.model(model).components)
    assert denoiser_counts(denoiser, side, side, text).flops == pytest.approx(denoiser_tflop * 1e12, rel=0.02)
    assert decoder_counts(decoder, side, side).flops == pytest.approx(decoder_tflop * 1e12, rel=0.02)


def test_the_middle_of_a_unet_has_a_transformer_block_between_two_convolution_blocks():
    """By hand, with 8 channels, 16 pixels and 2 text tokens of width 4 at a single level."""
    unet = UNet(
        channels=(8,), depths=(0,), heads=(1,), mid_depth=1, layers=1, latent_channels=4, text_width=4, sample_size=4
    )
    first, behind_skip = 9 * 2 * 8 * 8, 9 * (16 * 8 + 8 * 8) + 16 * 8
    block = (2 + 4 + 2 + 12) * 8 * 8 + 2 * 8 * (16 + 2)  # projections, then scores and values of pixels and text
    ends = 2 * 9 * 4 * 8
    macs = 16 * (ends + 3 * first + 2 * behind_skip + block) + 2 * 8 * 4 * 2
    counts = denoiser_counts(unet, 4, 4, 2)
    assert counts.flops == 2 * macs
    assert counts.calls == 1 + 5 * 12 + 45


def test_a_decoder_attends_between_two_convolution_blocks_at_the_latents():
    """By hand, with 8 channels and 16 pixels: what convolutions and the attention write, and the image."""
    decoder = ImageDecoder(channels=(8,), layers=1, latent_channels=4, sample_size=4)
    counts = decoder_counts(decoder, 4, 4)
    assert counts.elements == 16 * (8 + 4 * 2 * 8 + 5 * 8 + 3)
    assert counts.calls == 4 * 12 + 3


def test_an_image_is_its_steps_twice_with_guidance():
    architecture, guided, _ = image()
    plain = image(diffusion={"guidance": False})[1]
    denoiser, decoder = find_networks(architecture.components)
    one, last = denoiser_counts(denoiser, 64, 64, 77).flops, decoder_counts(decoder, 64, 64).flops
    encoders = 2 * 77 * sum(part.parameters for part in architecture.components if part.part == "text")
    assert pipeline_counts(architecture, guided).flops == pytest.approx(60 * one + last + encoders)
    calls = 30 * denoiser_counts(denoiser, 64, 64, 77).calls + decoder_counts(decoder, 64, 64).calls
    assert pipeline_counts(architecture, guided).calls == calls
    assert pipeline_counts(architecture, plain).flops == pytest.approx(30 * one + last + encoders)
