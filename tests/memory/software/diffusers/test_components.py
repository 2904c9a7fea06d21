"""Which components of a pipeline are on the card, in which format, and their networks beside traces of diffusers.

The traces were made with `gpu-planner trace` (PyTorch 2.13, compute capability 8.0, bf16) of the classes of diffusers
0.40.0.dev0, huggingface/diffusers@58eb52c080, built with the configurations of the catalog. The library is no
dependency, so that what they found is written down here: the bytes alive at the peak of the forward pass beside
parameters, buffers and inputs. Convolutions had no workspace there.
"""

from functools import cache, partial

import pytest
from pipeline_phases import phases

from planner.memory.estimate import estimate_memory
from planner.memory.software.diffusers.components import (
    component_bytes,
    decoder_elements,
    rotation_bytes,
    stored_components,
    transformer_elements,
    unet_elements,
)
from planner.models.catalog import load_models
from planner.models.diffusion import DiffusionTransformer, ImageDecoder, UNet, find_networks
from planner.paths import catalog_dir
from planner.units import GIB
from planner.workload.defaults import with_defaults
from planner.workload.diffusion import Diffusion
from planner.workload.workload import Inference

CATALOG = load_models(catalog_dir() / "models")


SD15 = CATALOG.model("stable-diffusion-v1-5/stable-diffusion-v1-5")


SDXL = CATALOG.model("stabilityai/stable-diffusion-xl-base-1.0")


FLUX = CATALOG.model("black-forest-labs/FLUX.1-dev")


def test_all_components_wait_on_the_card_unless_offloaded():
    found = phases(SDXL, compute="fp16")
    parameters = 2 * SDXL.parameters
    assert found["load"] == parameters
    assert list(found) == ["load", "encode-text", "denoise", "decode-image"]
    assert found["denoise"] < found["decode-image"]


def test_offloaded_components_take_turns():
    parts = {one.name: one.parameters for one in SD15.components}
    load = phases(SD15, compute="fp16", diffusion=Diffusion(offload="model"))
    assert load["load"] == 2 * parts["safety_checker"]  # stays, since nothing offloads it
    assert load["denoise"] - load["load"] == pytest.approx(2 * parts["unet"], rel=0.12)
    found = estimate_memory(SD15, Inference(diffusion=Diffusion(offload="model")))
    assert found.host_bytes == 2 * SD15.parameters
    assert any("enable_model_cpu_offload" in note for note in found.notes)
    assert estimate_memory(SD15, Inference()).host_bytes is None


def test_the_last_text_encoder_waits_while_the_others_read_the_negative_prompt():
    parts = {one.name: one.parameters for one in SDXL.components}
    both = parts["text_encoder"] + parts["text_encoder_2"]
    offloaded = partial(phases, SDXL, compute="fp16")
    guided = offloaded(diffusion=Diffusion(offload="model", guidance=True))
    alone = offloaded(diffusion=Diffusion(offload="model", guidance=False))
    assert guided["encode-text"] == pytest.approx(2 * both, rel=0.01)
    assert alone["encode-text"] == pytest.approx(2 * parts["text_encoder_2"], rel=0.01)


def test_t5_keeps_its_last_projections_in_fp32_beside_fp16():
    flux = {one.name: one for one in FLUX.components}
    t5, clip = flux["text_encoder_2"], flux["text_encoder"]
    assert component_bytes(t5, "fp16", "fp16") == 2 * t5.parameters + 2 * 24 * 10_240 * 4096
    assert component_bytes(t5, "bf16", "bf16") == 2 * t5.parameters
    assert component_bytes(clip, "fp16", "fp16") == 2 * clip.parameters


def test_sequential_offloading_holds_one_module():
    found = phases(FLUX, diffusion=Diffusion(offload="sequential"))
    assert max(found.values()) < 3 * GIB
    assert found["load"] == 0
    notes = estimate_memory(FLUX, Inference(diffusion=Diffusion(offload="sequential"))).notes
    assert any("many times slower" in note for note in notes)


def test_only_matrices_are_quantized():
    held = stored_components(FLUX, with_defaults(Inference(weights="nf4", diffusion={"text_weights": "int8"}), FLUX, 1))
    by_name = {one.component.name: one for one in held}
    transformer = by_name["transformer"]
    assert transformer.bytes / transformer.component.parameters == pytest.approx(4.5 / 8, rel=0.005)
    assert by_name["text_encoder_2"].bytes == pytest.approx(by_name["text_encoder_2"].component.parameters, rel=0.05)
    assert by_name["vae"].bytes == 2 * by_name["vae"].component.parameters


def test_weights_as_stored_are_those_of_the_files():
    stored = {"format": "F8_E4M3", "place": "other", "elements": 7, "bytes": 7}
    read = FLUX.evolve(components=tuple(one.evolve(stored=(stored,)) for one in FLUX.components))
    filled = with_defaults(Inference(weights="stored", diffusion={"text_weights": "stored"}), read, 1)
    held = {one.component.name: one.bytes for one in stored_components(read, filled)}
    assert (held["transformer"], held["text_encoder_2"]) == (7, 7)
    names = {part.name for part in estimate_memory(read, filled).terms[0].parts}
    assert "transformer in their files" in names


BF16 = 2
SD15_ID = "stable-diffusion-v1-5/stable-diffusion-v1-5"
SDXL_ID = "stabilityai/stable-diffusion-xl-base-1.0"
SD3 = "stabilityai/stable-diffusion-3-medium-diffusers"
PIXART = "PixArt-alpha/PixArt-Sigma-XL-2-1024-MS"
FLUX_ID = "black-forest-labs/FLUX.1-dev"
CLOSE = 0.001


@cache
def networks(model):
    """Return the denoiser and the decoder of a pipeline of the catalog."""
    return find_networks(load_models(catalog_dir() / "models").model(model).components)


@pytest.mark.parametrize(
    ("model", "batch", "side", "traced"),
    [
        (SDXL_ID, 2, 64, 82_586_936),
        (SDXL_ID, 2, 96, 185_806_136),
        (SDXL_ID, 2, 128, 330_313_016),
        (SDXL_ID, 2, 192, 743_189_816),
        (SD15_ID, 2, 64, 136_321_336),
        (SD15_ID, 1, 96, 153_357_496),
    ],
)
def test_a_unet_holds_what_was_traced(model, batch, side, traced):
    unet = networks(model)[0]
    assert isinstance(unet, UNet)
    assert batch * unet_elements(unet, side, side, 0) * BF16 == pytest.approx(traced, rel=CLOSE)


@pytest.mark.parametrize(
    ("model", "batch", "side", "traced"),
    [(SD15_ID, 2, 64, 2_262_840_000), (SD15_ID, 1, 48, 372_185_536), (SDXL_ID, 2, 128, 3_030_407_872)],
)
def test_eager_attention_holds_the_matrices_that_were_traced(model, batch, side, traced):
    """The U-Net with `AttnProcessor` of diffusers 0.42.1, in fp32."""
    unet = networks(model)[0]
    assert batch * unet_elements(unet, side, side, 0, eager=True) * 4 == pytest.approx(traced, rel=CLOSE)


def test_an_eager_decoder_holds_scores_and_softmax_of_one_head_in_fp32():
    decoder = networks(SD15_ID)[1]
    assert decoder_elements(decoder, 64, 64, 0, BF16) == decoder_elements(decoder, 64, 64, 0)  # its end needs more
    pixels = 128 * 128
    assert decoder_elements(decoder, 128, 128, 0, BF16) == pixels * (9 * decoder.channels[-1] + 2 * pixels * 4 // BF16)


@pytest.mark.parametrize(
    ("model", "batch", "image", "text", "single", "traced"),
    [
        (FLUX_ID, 1, 4096, 512, True, 486_067_260),
        (FLUX_ID, 1, 4096, 512, False, 354_001_980),
        (FLUX_ID, 2, 1024, 256, True, 268_754_496),
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
    decoder = networks(SDXL_ID)[1]
    assert isinstance(decoder, ImageDecoder)
    assert batch * decoder_elements(decoder, side, side, 0) * BF16 == pytest.approx(traced, rel=CLOSE)
