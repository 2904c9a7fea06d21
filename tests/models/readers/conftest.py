"""A local server that stands for the Hugging Face Hub."""

import json

import huggingface_hub
import pytest
from fake_hub import NAME, point_to, running_hub
from huggingface_hub import constants
from made_files import TINY


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub with one model; no token, and a cache of its own that is empty."""
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    close = getattr(huggingface_hub, "close_session", lambda: None)
    close()
    with running_hub() as made:
        point_to(made.endpoint, monkeypatch)
        made.files[f"{NAME}/config.json"] = json.dumps(TINY).encode()
        yield made
        close()
    assert not (tmp_path / "cache").exists() or (tmp_path / "cache" / "kept").exists()
