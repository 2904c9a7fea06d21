"""Which components of a pipeline are on the card, and in which format."""

from functools import partial

import pytest
from pipeline_phases import phases

from planner.memory.estimate import estimate_memory
from planner.memory.software.diffusers import component_bytes, stored_components
from planner.models.catalog import load_models
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
