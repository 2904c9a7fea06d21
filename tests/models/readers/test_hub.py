"""Requests to the Hugging Face Hub: ranges, tokens, error responses, time limits and cancellation."""

import json
import os
import subprocess
import sys
import time
from functools import partial
from itertools import count

import pytest
from fake_hub import COMMIT, NAME, FakeHub, RequestsLikeSession, point_to, redirect, refusal, refuse, weights
from huggingface_hub import constants
from made_files import TINY, gguf_bytes, tiny_gguf, tiny_tensors
from made_pipelines import PIPELINE, pipeline_files

from planner.errors import MissingPackageError, NetworkError
from planner.models.catalog import load_models
from planner.models.load import load_config, load_model
from planner.models.readers import hub as repository
from planner.models.readers.config_json import read_config
from planner.models.readers.hub import read_hub_config, read_hub_model
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


def _dripping(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    for _ in range(10):
        handler.wfile.write(b" " * 100_000)


def test_a_long_header_takes_a_second_request(hub, monkeypatch):
    monkeypatch.setattr(repository, "_FIRST_BYTES", 600)
    hub.files[f"{NAME}/model.safetensors"] = weights(tiny_tensors())
    assert read_hub_model(f"hf:{NAME}").container == "safetensors"
    assert hub.asked[-1][2].startswith("bytes=8-")
    hub.ranges = False
    assert read_hub_model(f"hf:{NAME}").container == "safetensors"


def test_a_file_that_shrinks_between_two_requests_is_cut_short(hub, monkeypatch):
    monkeypatch.setattr(repository, "_FIRST_BYTES", 600)
    content = weights(tiny_tensors())
    turns = count()
    hub.files[f"{NAME}/model.safetensors"] = lambda handler: hub.send(
        handler, content if next(turns) == 0 else content[:700]
    )
    assert "is cut short" in refusal().message


def test_the_users_token_is_sent_to_the_hub_and_not_to_redirected_hosts(hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_something")
    monkeypatch.setattr(repository, "_SCHEMES", ("http",))  # the server here has no certificate
    monkeypatch.setattr(repository, "_HUB_DOMAINS", ("localhost",))
    other = hub.endpoint.replace("127.0.0.1", "localhost") + f"/{NAME}/resolve/main/other"
    hub.files |= {f"{NAME}/other": hub.files[f"{NAME}/config.json"], f"{NAME}/config.json": partial(redirect, to=other)}
    assert read_hub_model(f"hf:{NAME}").hidden == 64
    assert [asked[3] for asked in hub.asked[:2]] == ["Bearer hf_something", None]


def test_a_redirect_within_the_hub_keeps_the_token(hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_something")
    moved = partial(redirect, to=f"/{NAME}/resolve/main/other")
    hub.files |= {f"{NAME}/other": hub.files[f"{NAME}/config.json"], f"{NAME}/config.json": moved}
    assert read_hub_model(f"hf:{NAME}").hidden == 64
    assert {asked[3] for asked in hub.asked} == {"Bearer hf_something"}


@pytest.mark.parametrize(
    ("to", "named"),
    [
        ("https://elsewhere.example/file", "https://elsewhere.example"),
        ("https://huggingface.co.elsewhere.example/file", "https://huggingface.co.elsewhere.example"),
        ("http://cdn-lfs.hf.co/file", "http://cdn-lfs.hf.co"),
        ("http://127.0.0.1:9/file", "http://127.0.0.1"),
        ("file:///etc/passwd", "file://"),
    ],
)
def test_redirects_to_other_hosts_and_without_https_are_not_followed(hub, to, named):
    hub.files[f"{NAME}/config.json"] = partial(redirect, to=to)
    assert f"redirects to {named}" in refusal(kind=NetworkError).message
    assert len(hub.asked) == 1


def test_redirects_are_counted(hub):
    hub.files[f"{NAME}/config.json"] = partial(redirect, to=f"/{NAME}/resolve/main/config.json")
    assert "redirects too often" in refusal(kind=NetworkError).message
    assert len(hub.asked) == 4


@pytest.mark.parametrize("host", ["huggingface.co", "cdn-lfs.hf.co", "cas-bridge.xethub.hf.co"])
def test_the_hubs_own_storage_is_reached_over_https(host):
    repository._check_redirect(f"https://{host}/file", "https://huggingface.co")


@pytest.mark.parametrize(
    ("status", "code", "reason", "hint"),
    [
        (401, "GatedRepo", "is gated", "Accept its conditions at https://huggingface.co/someone/tiny"),
        (403, "GatedRepo", "is gated", "log in with: hf auth login"),
        (401, "RepoNotFound", "there is no such model", "hf auth login"),
        (401, "", "there is no such model", "hf auth login"),
        (403, "", "there is no such model", "hf auth login"),
        (404, "RepoNotFound", "there is no such model", "Check its name"),
        (404, "RevisionNotFound", "has no such revision", "/tree/main"),
        (404, "EntryNotFound", "has no file config.json", "write hf:someone/tiny:file.gguf"),
        (404, "", "has no file config.json", "/tree/main"),
    ],
)
def test_error_responses_have_a_reason_and_a_hint(hub, status, code, reason, hint):
    hub.files[f"{NAME}/config.json"] = partial(refuse, status=status, code=code)
    error = refusal()
    assert error.message.startswith(f"hf:{NAME}: ")
    assert reason in error.message
    assert hint in error.hint
    assert not error.environment


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_error_is_a_network_error(hub, status):
    hub.files[f"{NAME}/config.json"] = partial(refuse, status=status)
    error = refusal(kind=NetworkError)
    assert f"status {status}" in error.message
    assert error.environment


def test_refused_weights_are_reported(hub):
    hub.files[f"{NAME}/model.safetensors.index.json"] = partial(refuse, status=403)
    assert "requires a login" in refusal().message


def test_a_refused_connection_is_a_network_error(hub, monkeypatch):
    point_to("http://127.0.0.1:9", monkeypatch)
    error = refusal(kind=NetworkError)
    assert "cannot be reached" in error.message
    assert "choose the config.json in the folder" in error.hint


def test_offline_mode_is_named_in_the_error(hub, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "switched off by HF_HUB_OFFLINE" in refusal(kind=NetworkError).message
    assert hub.asked == []


def test_there_is_a_time_limit(hub, monkeypatch):
    hub.files[f"{NAME}/config.json"] = _dripping
    monkeypatch.setattr(repository, "TIME_LIMIT_S", 0.0)
    assert "took longer than 0 seconds" in refusal(kind=NetworkError).message


def test_a_silent_hub_is_not_waited_for(hub, monkeypatch):
    monkeypatch.setattr(repository, "ANSWER_SECONDS", 0.2)
    hub.files[f"{NAME}/config.json"] = lambda _: time.sleep(0.5)
    assert "did not respond in time" in refusal(kind=NetworkError).message


def test_reading_can_be_cancelled(hub):
    with pytest.raises(NetworkError, match="was cancelled"):
        read_hub_model(f"hf:{NAME}", stop=lambda: True)


def test_an_answer_without_a_size_is_as_long_as_it_is(hub):
    def unsized(handler):
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(json.dumps(TINY).encode())
        handler.close_connection = True

    hub.files[f"{NAME}/config.json"] = unsized
    assert read_hub_config(f"hf:{NAME}") == TINY


def test_the_sessions_of_older_versions_work_too(hub, monkeypatch):
    monkeypatch.setattr("huggingface_hub.utils.get_session", RequestsLikeSession)
    hub.files[f"{NAME}/model.safetensors.index.json"] = json.dumps({"weight_map": {"a": "x.safetensors"}}).encode()
    hub.files[f"{NAME}/x.safetensors"] = weights({"a": ("F32", [2])})
    assert read_hub_model(f"hf:{NAME}").stored_bytes == 8
    point_to("http://127.0.0.1:9", monkeypatch)
    assert "Connection refused" in refusal(kind=NetworkError).message
