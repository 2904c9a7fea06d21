"""The networks of pipelines beside traces of diffusers' own classes.

The traces were made with `gpu-planner trace` (PyTorch 2.13, compute capability 8.0, bf16) of the classes of diffusers
0.40.0.dev0, huggingface/diffusers@58eb52c080, built with the configurations of the catalog. The library is no
dependency, so that what they found is written down here: the bytes alive at the peak of the forward pass beside
parameters, buffers and inputs. Convolutions had no workspace there.
"""

from functools import cache

import pytest

from planner.memory.software.diffusers.blocks import (
    decoder_elements,
    rotation_bytes,
    transformer_elements,
    unet_elements,
)
from planner.models.catalog import load_models
from planner.models.diffusion import DiffusionTransformer, ImageDecoder, UNet, find_networks
from planner.paths import catalog_dir

BF16 = 2
SD15 = "stable-diffusion-v1-5/stable-diffusion-v1-5"
SDXL = "stabilityai/stable-diffusion-xl-base-1.0"
SD3 = "stabilityai/stable-diffusion-3-medium-diffusers"
PIXART = "PixArt-alpha/PixArt-Sigma-XL-2-1024-MS"
FLUX = "black-forest-labs/FLUX.1-dev"
CLOSE = 0.001


@cache
def networks(model):
    """Return the denoiser and the decoder of a pipeline of the catalog."""
    return find_networks(load_models(catalog_dir() / "models").model(model).components)


@pytest.mark.parametrize(
    ("model", "batch", "side", "traced"),
    [
        (SDXL, 2, 64, 82_586_936),
        (SDXL, 2, 96, 185_806_136),
        (SDXL, 2, 128, 330_313_016),
        (SDXL, 2, 192, 743_189_816),
        (SD15, 2, 64, 136_321_336),
        (SD15, 1, 96, 153_357_496),
    ],
)
def test_a_unet_holds_what_was_traced(model, batch, side, traced):
    unet = networks(model)[0]
    assert isinstance(unet, UNet)
    assert batch * unet_elements(unet, side, side, 0) * BF16 == pytest.approx(traced, rel=CLOSE)


@pytest.mark.parametrize(
    ("model", "batch", "side", "traced"),
    [(SD15, 2, 64, 2_262_840_000), (SD15, 1, 48, 372_185_536), (SDXL, 2, 128, 3_030_407_872)],
)
def test_eager_attention_holds_the_matrices_that_were_traced(model, batch, side, traced):
    """The U-Net with `AttnProcessor` of diffusers 0.42.1, in fp32."""
    unet = networks(model)[0]
    assert batch * unet_elements(unet, side, side, 0, eager=True) * 4 == pytest.approx(traced, rel=CLOSE)


def test_an_eager_decoder_holds_scores_and_softmax_of_one_head_in_fp32():
    decoder = networks(SD15)[1]
    assert decoder_elements(decoder, 64, 64, 0, BF16) == decoder_elements(decoder, 64, 64, 0)  # its end needs more
    pixels = 128 * 128
    assert decoder_elements(decoder, 128, 128, 0, BF16) == pixels * (9 * decoder.channels[-1] + 2 * pixels * 4 // BF16)


@pytest.mark.parametrize(
    ("model", "batch", "image", "text", "single", "traced"),
    [
        (FLUX, 1, 4096, 512, True, 486_067_260),
        (FLUX, 1, 4096, 512, False, 354_001_980),
        (FLUX, 2, 1024, 256, True, 268_754_496),
        (SD3, 2, 4096, 333, True, 333_336_632),
        (SD3, 4, 1024, 333, True, 175_939_640),
        (PIXART, 2, 4096, 300, True, 227_935_976),
    ],
)
def test_a_transformer_holds_what_was_traced(model, batch, image, text, single, traced):
    network = networks(model)[0]
    assert isinstance(network, DiffusionTransformer)
    network = network if single else network.evolve(single_blocks=0)
    found = transformer_elements(network, batch * image, batch * text, BF16) * BF16
    found += rotation_bytes(network, image + text)
    assert found == pytest.approx(traced, rel=CLOSE)


@pytest.mark.parametrize(("batch", "side", "traced"), [(1, 128, 1_610_743_872), (2, 64, 805_371_968)])
def test_a_decoder_holds_what_was_traced(batch, side, traced):
    decoder = networks(SDXL)[1]
    assert isinstance(decoder, ImageDecoder)
    assert batch * decoder_elements(decoder, side, side, 0) * BF16 == pytest.approx(traced, rel=CLOSE)
