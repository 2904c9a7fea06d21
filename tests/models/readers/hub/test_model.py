import json
import os
import subprocess
import sys

import pytest
from fake_hub import COMMIT, NAME, FakeHub, refusal, weights
from huggingface_hub import constants
from made_files import TINY, gguf_bytes, tiny_gguf, tiny_tensors
from made_pipelines import PIPELINE, pipeline_files

from planner.errors import MissingPackageError
from planner.models.catalog import load_models
from planner.models.load import load_config, load_model
from planner.models.readers.config_json import read_config
from planner.models.readers.hub import repository
from planner.models.readers.hub.model import read_hub_model
from planner.paths import catalog_dir


def add_shards(hub: FakeHub) -> None:
    tensors = list(tiny_tensors().items())
    shards = {
        "model-00001-of-00002.safetensors": dict(tensors[:9]),
        "model-00002-of-00002.safetensors": dict(tensors[9:]),
    }
    index = {"metadata": {}, "weight_map": {name: file for file, part in shards.items() for name in part}}
    hub.files[f"{NAME}/model.safetensors.index.json"] = json.dumps(index).encode()
    hub.files |= {f"{NAME}/{file}": weights(part) for file, part in shards.items()}


@pytest.mark.parametrize("ranges", [True, False])
def test_a_model_of_one_file_is_read_by_its_head(hub, ranges):
    hub.ranges = ranges
    hub.files[f"{NAME}/model.safetensors"] = weights(tiny_tensors())
    found = read_hub_model(f"hf:{NAME}")
    assert found.reader_notes == ()
    assert found.stored_bytes == 2 * found.parameters
    assert {asked[1] for asked in hub.asked[1:]} == {COMMIT}
    assert all(authorization is None for *_, authorization in hub.asked)


def test_a_sharded_model_is_read_by_its_index_and_heads(hub):
    add_shards(hub)
    found = read_hub_model(f"hf:{NAME}@v1.0")
    assert found.stored_bytes == 2 * found.parameters
    assert hub.asked[0][:2] == (f"{NAME}/config.json", "v1.0")
    assert not any(file.endswith("/model.safetensors") for file, *_ in hub.asked)


def test_without_safetensors_the_configuration_counts(hub):
    found = read_hub_model(f"hf:{NAME}")
    assert found.stored == ()
    assert found.reader_notes == (
        "the Hub has no safetensors files of this model: stored sizes follow from its configuration",
    )


def test_a_gguf_file_is_read_by_its_head(hub):
    hub.files[f"{NAME}/tiny-Q8_0.gguf"] = gguf_bytes(*tiny_gguf())
    assert read_hub_model(f"hf:{NAME}:tiny-Q8_0.gguf").quantization == "Q8_0"


def test_without_network_a_copy_that_was_downloaded_before_is_read(hub, tmp_path, monkeypatch):
    snapshot = tmp_path / "cache" / "models--someone--tiny" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (tmp_path / "cache" / "kept").touch()
    refs = snapshot.parent.parent / "refs"
    refs.mkdir()
    (refs / "main").write_text(COMMIT)
    (snapshot / "config.json").write_text(json.dumps(TINY))
    (snapshot / "model.safetensors").write_bytes(weights(tiny_tensors()))
    (snapshot / "tiny.gguf").write_bytes(gguf_bytes(*tiny_gguf()))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    found = read_hub_model(f"hf:{NAME}")
    assert found.stored_bytes == 2 * found.parameters
    assert "was not reached" in found.reader_notes[-1]
    assert read_hub_model(f"hf:{NAME}:tiny.gguf").container == "gguf"


def test_huge_configurations_and_indexes_are_refused(hub):
    def huge(handler):
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes 0-0/{2**40}")
        handler.send_header("Content-Length", "1")
        handler.end_headers()
        handler.wfile.write(b"{")

    hub.files[f"{NAME}/model.safetensors.index.json"] = huge
    assert "model.safetensors.index.json: has 1,099,511,627,776 bytes" in refusal().message
    hub.files[f"{NAME}/config.json"] = huge
    assert "config.json: has 1,099,511,627,776 bytes" in refusal().message


def test_hostile_answers_are_refused(hub):
    hub.files[f"{NAME}/model.safetensors.index.json"] = b'{"weight_map": {"a": "../../x.safetensors"}}'
    assert "is not the name of a safetensors file" in refusal().message
    hub.files[f"{NAME}/config.json"] = b"\xff"
    assert "not text in UTF-8" in refusal().message


@pytest.mark.parametrize(
    "text", ["hf:", "hf:a/b/c", "hf:../x", "hf:a b", "hf:a@", "hf:a:x.bin", "hf:" + "x" * 200, "hf:ä"]
)
def test_what_is_no_name_is_refused_before_anything_is_asked(hub, text):
    assert refusal(text).hint
    assert hub.asked == []


def test_without_its_client_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(repository, "find_spec", lambda _name: None)
    with pytest.raises(MissingPackageError, match="needs the package huggingface_hub") as error:
        read_hub_model("hf:owner/name")
    assert "[hub]" in error.value.hint
    assert error.value.environment


def test_names_on_the_hub_are_models_like_others(hub):
    catalog = load_models(catalog_dir() / "models")
    loaded = load_model(f"hf:{NAME}", catalog)
    assert (loaded.name, loaded.path, loaded.architecture.hidden) == (NAME, f"hf:{NAME}", 64)
    assert load_config(f"hf:{NAME}", catalog) == (NAME, TINY)


@pytest.mark.parametrize(("endpoint", "code"), [("", 0), ("http://127.0.0.1:9", 3)])
def test_the_command_line_reads_from_the_hub(hub, tmp_path, endpoint, code):
    hub.files[f"{NAME}/model.safetensors"] = weights(tiny_tensors())
    variables = {"HF_ENDPOINT": endpoint or hub.endpoint, "HF_HOME": str(tmp_path / "home"), "NO_PROXY": "127.0.0.1"}
    ran = subprocess.run(
        [sys.executable, "-m", "planner", "fit", f"hf:{NAME}", "--json"],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **variables},
        timeout=60,
        check=False,
    )
    assert ran.returncode == code
    assert ("error: the Hugging Face Hub cannot be reached" in ran.stderr) == bool(code)
    assert code or json.loads(ran.stdout)["plan"]["model"]["path"] == f"hf:{NAME}"


def test_a_pipeline_has_an_index_instead_of_a_configuration(hub):
    read = read_config(PIPELINE, "test")
    index = {"metadata": {}, "weight_map": {"weight": "diffusion_pytorch_model-00001-of-00001.safetensors"}}
    files = pipeline_files(read)
    files["vae/diffusion_pytorch_model-00001-of-00001.safetensors"] = files.pop(
        "vae/diffusion_pytorch_model.safetensors"
    )
    files["vae/diffusion_pytorch_model.safetensors.index.json"] = json.dumps(index).encode()
    del hub.files[f"{NAME}/config.json"]
    hub.files.update({f"{NAME}/{name}": content for name, content in files.items()})
    found = read_hub_model(f"hf:{NAME}")
    stored = {component.name: sum(part.bytes for part in component.stored) for component in found.components}
    counts = {component.name: component.parameters for component in read.components}
    assert stored == {"text_encoder": 0, "unet": 2 * counts["unet"], "vae": 4 * counts["vae"]}
