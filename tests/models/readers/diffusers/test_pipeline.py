"""Diffusion pipelines: counted to the single parameter, from folders and from the Hub, and refused where unknown."""

import json

import pytest
from made_pipelines import CLIP, INDEX, PIPELINE, UNET, VAE, pipeline_files, weights_of, write_files

from planner.errors import ModelFileError, SpecError
from planner.models.catalog import load_models
from planner.models.diffusion import Component, find_networks
from planner.models.load import load_model
from planner.models.readers.config_json import read_config
from planner.models.readers.diffusers.pipeline import read_pipeline_folder
from planner.paths import catalog_dir

CATALOG = load_models(catalog_dir() / "models")
READ = read_config(PIPELINE, "test")


def changed(component, **fields):
    """Return the small pipeline with some fields of a component changed."""
    components = {**PIPELINE["components"], component: {**PIPELINE["components"][component], **fields}}
    return {**PIPELINE, "components": components}


@pytest.mark.parametrize(
    ("model", "component", "parameters"),
    [
        # Counted on diffusers 0.40's own classes, built without memory.
        ("stable-diffusion-v1-5/stable-diffusion-v1-5", "unet", 859_520_964),
        ("stable-diffusion-v1-5/stable-diffusion-v1-5", "vae", 83_653_863),
        ("stabilityai/stable-diffusion-xl-base-1.0", "unet", 2_567_463_684),
        ("black-forest-labs/FLUX.1-dev", "transformer", 11_901_408_320),
        ("stabilityai/stable-diffusion-3-medium-diffusers", "transformer", 2_028_328_000),
        ("PixArt-alpha/PixArt-Sigma-XL-2-1024-MS", "transformer", 610_856_096),
    ],
)
def test_components_have_as_many_parameters_as_the_library_makes(model, component, parameters):
    found = {part.name: part.parameters for part in CATALOG.model(model).components}
    assert found[component] == parameters


def test_a_safety_checker_is_the_vision_tower_alone():
    parts = {part.name: part for part in CATALOG.model("stable-diffusion-v1-5/stable-diffusion-v1-5").components}
    assert parts["safety_checker"].part == "other"
    # CLIP ViT-L/14's 303,179,776, its projection, and 20 concepts with their thresholds.
    assert parts["safety_checker"].parameters == 303_179_776 + 1024 * 768 + 20 * 768 + 20


def test_only_pipelines_that_upcast_their_decoder_are_said_to():
    assert find_networks(CATALOG.model("stabilityai/stable-diffusion-xl-base-1.0").components)[1].upcast
    assert not find_networks(READ.components)[1].upcast


def test_a_pipeline_is_not_one_stack_of_layers():
    assert (READ.depth, READ.fixed_length, READ.has_variable_length, READ.kind) == (0, None, False, "diffusion")
    assert READ.parameters == sum(component.parameters for component in READ.components)
    with pytest.raises(SpecError, match="needs components"):
        READ.evolve(components=())
    with pytest.raises(ValueError, match="a denoiser and a decoder"):
        find_networks(READ.components[:1])


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (changed("unet", down_block_types=["DownBlock2D"]), "down_block_types must be 2 of"),
        (changed("unet", down_block_types=["AttnDownBlock2D", "DownBlock2D"]), "down_block_types must be 2 of"),
        (changed("unet", layers_per_block=[1, 2]), "differs between the levels"),
        (changed("unet", layers_per_block=[1]), "must be a number or a list of 2"),
        (changed("unet", layers_per_block=100_000), "layers_per_block must be a whole number from 1 to 64"),
        (changed("unet", block_out_channels=[1] * 1000), "must hold at most 16 numbers"),
        (changed("vae", block_out_channels=[1] * 1000), "must hold at most 16 numbers"),
        ({**PIPELINE, "components": {f"text_encoder_{at}": CLIP for at in range(40)}}, "must be at most 32"),
        (changed("unet", class_embed_type="timestep"), "class_embed_type is not supported"),
        (changed("unet", _class_name="UNet3DConditionModel"), "'UNet3DConditionModel' has no formula"),
        ({**PIPELINE, "components": {"text_encoder": CLIP, "vae": VAE}}, "no denoiser and decoder"),
        ({**PIPELINE, "components": {"unet": UNET}}, "no denoiser and decoder"),
    ],
)
def test_what_has_no_formula_goes_to_the_trace(config, reason):
    with pytest.raises(ModelFileError, match=reason) as caught:
        read_config(config, "test")
    if "formula" in reason:
        assert "gpu-planner trace" in caught.value.hint


def test_a_component_knows_its_largest_tensor():
    vae = next(component for component in READ.components if component.name == "vae")
    assert isinstance(vae, Component)
    assert vae.largest_tensor == 64 * 64 * 3 * 3


def test_a_folder_is_read_with_the_bytes_of_its_files(tmp_path):
    folder = write_files(tmp_path / "tiny-pipeline", pipeline_files(READ))
    loaded = load_model(str(folder), CATALOG)
    counts = {component.name: component.parameters for component in READ.components}
    stored = {component.name: [part.bytes for part in component.stored] for component in loaded.architecture.components}
    assert loaded.name == "tiny-pipeline"
    assert loaded.architecture.parameters == READ.parameters
    assert stored == {"text_encoder": [], "unet": [2 * counts["unet"]], "vae": [4 * counts["vae"]]}
    assert loaded.architecture.stored_bytes == 2 * counts["unet"] + 4 * counts["vae"]
    assert loaded.architecture.reader_notes == (
        "no safetensors files of text_encoder: their bytes follow from the configuration",
    )
    again = load_model(str(folder / "model_index.json"), CATALOG)
    assert (again.name, again.architecture) == ("tiny-pipeline", loaded.architecture)


def test_a_complete_folder_has_no_notes(tmp_path):
    files = {**pipeline_files(READ), "text_encoder/model.safetensors": weights_of(8)}
    assert read_pipeline_folder(write_files(tmp_path, files)).reader_notes == ()


@pytest.mark.parametrize(
    ("index", "reason"),
    [
        ({**INDEX, "../outside": ["diffusers", "X"]}, "has invalid component names"),
        ({**INDEX, **{f"part{number}": ["diffusers", "X"] for number in range(40)}}, "has invalid component names"),
        ({"unet": ["diffusers", "X"]}, "_class_name is missing"),
        ({"_class_name": "StableDiffusionPipeline"}, "no denoiser and decoder"),
    ],
)
def test_a_hostile_index_is_refused(tmp_path, index, reason):
    folder = write_files(tmp_path, {"model_index.json": json.dumps(index).encode()})
    with pytest.raises(ModelFileError, match=reason):
        read_pipeline_folder(folder)
