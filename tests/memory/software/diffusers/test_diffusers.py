"""The phases of a pipeline, what offloading leaves on the card, and published runs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_phases import phases
from small_models import bundled, llama

from planner.hardware.catalog import load_hardware
from planner.memory.estimate import estimate_memory
from planner.memory.software import serving_memory
from planner.memory.software.diffusers import diffusion_timeline
from planner.memory.software.diffusers.components import (
    decoder_elements,
    resnet_elements,
    rotation_bytes,
    transformer_elements,
)
from planner.models.catalog import load_models
from planner.models.diffusion import DiffusionTransformer
from planner.models.readers.config_json import read_config
from planner.paths import catalog_dir
from planner.present.memory.verdict import fewest_cards_note
from planner.units import GIB
from planner.workload.defaults import with_defaults
from planner.workload.diffusion import Diffusion
from planner.workload.workload import Inference


@pytest.fixture(scope="module")
def catalog_of_cards():
    """The bundled hardware."""
    return load_hardware(catalog_dir())


CATALOG = load_models(catalog_dir() / "models")


SD15 = CATALOG.model("stable-diffusion-v1-5/stable-diffusion-v1-5")


SDXL = CATALOG.model("stabilityai/stable-diffusion-xl-base-1.0")


SD3 = CATALOG.model("stabilityai/stable-diffusion-3-medium-diffusers")


PIXART = CATALOG.model("PixArt-alpha/PixArt-Sigma-XL-2-1024-MS")


FLUX = CATALOG.model("black-forest-labs/FLUX.1-dev")


def without(architecture, name):
    """Return a pipeline that was loaded without one of its components."""
    return architecture.evolve(components=tuple(one for one in architecture.components if one.name != name))


@pytest.mark.parametrize(
    ("architecture", "asked", "measured_gib", "tolerance"),
    [
        # huggingface/diffusers, fast_diffusion tutorial: four images of 1024 × 1024 on an A100, decoded in fp32.
        (SDXL, {"compute": "fp16", "batch": 4}, 21.72, 0.01),
        (SDXL, {"compute": "fp32", "batch": 4}, 28.09, 0.01),
        # One image, on a card that is not stated.
        (SDXL, {"compute": "fp16"}, 10.47, 0.015),
        # sayakpaul/diffusers-torchao: eight images, bf16.
        (FLUX, {"batch": 8}, 47.509, 0.03),
        # Stable Diffusion 1.5 of 512 × 512, fp16, on an A10.
        (SD15, {"compute": "fp16"}, 3.192, 0.06),
        # Stable Diffusion 3 without T5, offloaded component by component: the denoiser decides.
        (without(SD3, "text_encoder_3"), {"compute": "fp16", "diffusion": {"offload": "model"}}, 4.266, 0.02),
        # With T5: it waits on the card while the second encoder reads the negative prompt.
        (SD3, {"compute": "fp16", "diffusion": {"offload": "model"}}, 12.0645, 0.005),
        (SD3, {"compute": "fp16"}, 18.765, 0.03),
    ],
)
def test_published_peaks_are_met_by_their_mechanism(architecture, asked, measured_gib, tolerance):
    found = estimate_memory(architecture, Inference(**asked))
    assert found.allocated_bytes / GIB == pytest.approx(measured_gib, rel=tolerance)
    assert found.low_bytes <= found.total_bytes <= found.high_bytes


@pytest.mark.parametrize(("architecture", "measured_gib"), [(PIXART, 12.086), (SD3, 16.403)])
def test_components_in_fp16_take_what_was_measured_at_any_number_of_images(architecture, measured_gib):
    # huggingface/blog quanto-diffusers, H100, fp16: as much for one image of PixArt-Sigma as for four, to 1 MiB.
    assert phases(architecture, compute="fp16")["load"] / GIB == pytest.approx(measured_gib, rel=0.015)


def test_guidance_doubles_the_passes_of_those_that_are_not_distilled():
    assert with_defaults(Inference(), SDXL, 1).diffusion.guidance is True
    assert with_defaults(Inference(), FLUX, 1).diffusion.guidance is False
    once = phases(SDXL, diffusion=Diffusion(guidance=False))["denoise"] - phases(SDXL)["load"]
    twice = phases(SDXL)["denoise"] - phases(SDXL)["load"]
    assert twice == pytest.approx(2 * once, rel=0.01)
    assert any("one pass" in note for note in estimate_memory(SDXL, Inference(diffusion={"guidance": False})).notes)


def test_slicing_and_tiling_bound_the_decoder():
    whole = phases(FLUX, batch=4, image_size=2048)["decode-image"]
    sliced = phases(FLUX, batch=4, image_size=2048, diffusion=Diffusion(vae_slicing=True))["decode-image"]
    tiled = phases(FLUX, batch=4, image_size=2048, diffusion=Diffusion(vae_tiling=True))["decode-image"]
    small = phases(FLUX, batch=4, diffusion=Diffusion(vae_tiling=True))["decode-image"]
    assert whole > tiled
    assert whole > sliced
    assert small == phases(FLUX, batch=4)["decode-image"]  # the image is one tile


@pytest.mark.parametrize(("batch", "slicing", "held"), [(1, False, 102_400), (2, False, 204_800), (2, True, 167_936)])
def test_decoded_tiles_wait_until_the_last_one(batch, slicing, held):
    # 256 latent pixels a side in tiles of 64 that start 48 apart: five whole ones and one of 16. Four rows of 64 × 336
    # and four tiles wait for the last whole one: 102,400 latent pixels; an image that is finished has 65,536.
    asked = Inference(batch=batch, image_size=2048, diffusion=Diffusion(vae_tiling=True, vae_slicing=slicing))
    found = diffusion_timeline(SD15, with_defaults(asked, SD15, 1))
    decoding = next(one for one in found.snapshots if one.name == "decode-image")
    kept = next(term for term in decoding.written() if term.name == "buffers")
    assert next(symbol.value for symbol in kept.symbols if symbol.name == "p") == 3 * 64 * held


def test_longer_prompts_take_more_where_an_encoder_takes_them():
    short, long = (phases(FLUX, diffusion=Diffusion(prompt_tokens=tokens)) for tokens in (128, 512))
    assert short["denoise"] < long["denoise"]
    assert short["encode-text"] < long["encode-text"]


def terms(architecture, phase, name="activations"):
    """Return the bytes and the symbols' values of a term in each snapshot of a phase, for two images."""
    found = diffusion_timeline(architecture, with_defaults(Inference(batch=2), architecture, 1))
    written = [term for one in found.snapshots if one.name == phase for term in one.written() if term.name == name]
    return [(term.bytes, {symbol.name: symbol.value for symbol in term.symbols}) for term in written]


@pytest.mark.parametrize(("architecture", "tokens"), [(FLUX, 512), (SD3, 77 + 256)])
def test_a_denoiser_reads_the_text_tokens_that_its_pipeline_hands_it(architecture, tokens):
    # FLUX hands over T5's 512 tokens, without CLIP's 77; SD 3 both, T5's 256 tokens behind CLIP's.
    ((_, symbols),) = terms(architecture, "denoise")
    assert symbols["T"] == tokens


def test_the_numbers_of_each_text_encoder_come_to_its_bytes():
    encoders = terms(FLUX, "encode-text")
    assert [symbols["T"] for _, symbols in encoders] == [77, 512]
    for held, symbols in encoders:
        assert symbols["B"] * symbols["T"] * symbols["a"] == pytest.approx(held, rel=1e-3)


def test_a_block_that_widens_copies_its_input():
    # 256 → 128 channels at full size: norm and activation of the input, or the copy that the convolution reads.
    assert [resnet_elements(256, 128, copies) for copies in range(3)] == [512, 640, 768]


def test_a_block_holds_what_is_added_and_the_sum_that_is_divided_by_one():
    assert [resnet_elements(128, channels, 0) for channels in (128, 256)] == [3 * 128, 4 * 256]


def test_a_decoder_of_one_level():
    decoder = next(one.network for one in FLUX.components if one.part == "image-decoder")
    flat = decoder.evolve(channels=(64,))
    assert (flat.scale, decoder.scale) == (1, 8)
    assert decoder_elements(flat, 4, 4, 0) == 16 * 64 * 9


def test_transformers_in_fp32_rotate_without_copies():
    flux = next(one.network for one in FLUX.components if one.part == "denoiser")
    sd3 = next(one.network for one in SD3.components if one.part == "denoiser")
    assert isinstance(flux, DiffusionTransformer)
    # In fp32 a single block's end is highest: stream, sequence, norm, attention, projection, its product, the MLP's
    # 4 widths, and 5 of what is projected; before, with rotated copies, 16 bits need 6 + 4 + 7.
    assert transformer_elements(flux, 64, 8, 4) == (6 + 4 + 5) * 72 * 3072
    assert transformer_elements(flux, 64, 8, 2) == 17 * 72 * 3072
    assert rotation_bytes(sd3, 72) == 0
    dual = transformer_elements(sd3.evolve(dual_blocks=13), 4096, 333, 2)
    assert dual > transformer_elements(sd3, 4096, 333, 2)


@settings(max_examples=25)
@given(st.sampled_from((SD15, SDXL, SD3, PIXART, FLUX)), st.integers(1, 4), st.integers(4, 16))
def test_terms_sum_and_larger_images_take_more(architecture, batch, units):
    small = estimate_memory(architecture, Inference(batch=batch, image_size=64 * units))
    large = estimate_memory(architecture, Inference(batch=batch + 1, image_size=64 * (units + 1)))
    assert sum(term.bytes for term in small.terms) == small.total_bytes
    assert small.total_bytes < large.total_bytes


def test_a_pipeline_without_a_text_encoder_denoises_all_the_same():
    components = tuple(one for one in SDXL.components if one.part != "text")
    assert "encode-text" not in phases(SDXL.evolve(components=components))


def test_a_small_decoder_is_asked_for_by_the_reader():
    config = {
        "model_type": "diffusers",
        "_class_name": "StableDiffusionXLPipeline",
        "components": {
            "unet": {
                "_class_name": "UNet2DConditionModel",
                "block_out_channels": [8],
                "down_block_types": ["DownBlock2D"],
            },
            "vae": {"_class_name": "AutoencoderKL", "block_out_channels": [8]},
        },
    }
    found = phases(read_config(config, "test"), compute="fp16")
    assert found["decode-image"] > found["load"]


@pytest.mark.parametrize("offload", ["none", "model", "sequential"])
def test_the_numbers_put_in_come_to_the_bytes(offload):
    found = estimate_memory(FLUX, Inference(diffusion=Diffusion(offload=offload), batch=2))
    values = {term.name: {symbol.name: symbol.value for symbol in term.symbols} for term in found.terms}
    held = {term.name: term.bytes for term in found.terms}
    weights = values["weights"]
    assert weights["P"] * weights["w"] == pytest.approx(held["weights"], rel=1e-3)
    if found.peak_phase == "denoise":
        a = values["activations"]
        assert a["B"] * (a["I"] + a["T"]) * a["a"] + a["R"] == held["activations"]
    else:
        a = values["activations"]
        assert a["B"] * a["n"] * a["c"] * a["w"] == pytest.approx(held["activations"], rel=1e-2)


def test_nothing_is_said_of_splitting_a_pipeline(catalog_of_cards):
    card = catalog_of_cards.gpu("rtx-3060-12-gb")
    memory = estimate_memory(FLUX, Inference(), card, catalog_of_cards.usable_memory(card))
    assert memory.verdict == "does-not-fit"
    assert fewest_cards_note(memory) == ()


def test_a_pipeline_of_images_is_run_by_diffusers():
    network = bundled().models.model("stabilityai/stable-diffusion-xl-base-1.0")
    assert type(serving_memory("hf", network)).__name__ == "Diffusers"
    assert type(serving_memory(None, llama())).__name__ == "Transformers"
