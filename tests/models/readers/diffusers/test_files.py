"""Folders of diffusion pipelines: stored bytes, notes and refused indexes."""

import json

import pytest
from made_pipelines import INDEX, PIPELINE, pipeline_files, weights_of, write_files

from planner.errors import ModelFileError
from planner.models.catalog import load_models
from planner.models.load import load_model
from planner.models.readers.config_json import read_config
from planner.models.readers.diffusers.files import read_pipeline_folder
from planner.paths import catalog_dir

CATALOG = load_models(catalog_dir() / "models")


READ = read_config(PIPELINE, "test")


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
