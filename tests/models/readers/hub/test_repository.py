"""Requests to the Hugging Face Hub: ranges, tokens, error responses, time limits and cancellation."""

import json
import time
from functools import partial
from itertools import count

import pytest
from fake_hub import NAME, RequestsLikeSession, point_to, redirect, refusal, refuse, weights
from huggingface_hub import constants
from made_files import TINY, tiny_tensors

from planner.errors import NetworkError
from planner.models.readers.hub import repository as hub_files
from planner.models.readers.hub.model import read_hub_config, read_hub_model


def _dripping(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    for _ in range(10):
        handler.wfile.write(b" " * 100_000)


def test_a_long_header_takes_a_second_request(hub, monkeypatch):
    monkeypatch.setattr(hub_files, "_FIRST_BYTES", 600)
    hub.files[f"{NAME}/model.safetensors"] = weights(tiny_tensors())
    assert read_hub_model(f"hf:{NAME}").container == "safetensors"
    assert hub.asked[-1][2].startswith("bytes=8-")
    hub.ranges = False
    assert read_hub_model(f"hf:{NAME}").container == "safetensors"


def test_a_file_that_shrinks_between_two_requests_is_cut_short(hub, monkeypatch):
    monkeypatch.setattr(hub_files, "_FIRST_BYTES", 600)
    content = weights(tiny_tensors())
    turns = count()
    hub.files[f"{NAME}/model.safetensors"] = lambda handler: hub.send(
        handler, content if next(turns) == 0 else content[:700]
    )
    assert "is cut short" in refusal().message


def test_the_users_token_is_sent_to_the_hub_and_not_to_redirected_hosts(hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_something")
    monkeypatch.setattr(hub_files, "_SCHEMES", ("http",))  # the server here has no certificate
    monkeypatch.setattr(hub_files, "_HUB_DOMAINS", ("localhost",))
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
    hub_files._check_redirect(f"https://{host}/file", "https://huggingface.co")


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
    monkeypatch.setattr(hub_files, "TIME_LIMIT_S", 0.0)
    assert "took longer than 0 seconds" in refusal(kind=NetworkError).message


def test_a_silent_hub_is_not_waited_for(hub, monkeypatch):
    monkeypatch.setattr(hub_files, "ANSWER_SECONDS", 0.2)
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
