"""Downloads of scripts: refused, with the name of what was wanted."""

import gc
from collections.abc import Iterator

import pytest
from scripted import LOOP, script, traced

from planner.errors import TraceError

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def collected_sockets() -> Iterator[None]:
    """Collect what a script left open here, not in a later test."""
    yield
    gc.collect(1)


WANTED = {
    "urllib": (
        "import urllib.request\nurllib.request.urlretrieve('https://data.example.org/mnist.gz', 'mnist.gz')",
        "https://data.example.org/mnist.gz",
    ),
    "torch.hub": (
        "torch.hub.download_url_to_file('https://data.example.org/net.pth', 'net.pth')",
        "https://data.example.org/net.pth",
    ),
    "address": ("import socket\nsocket.create_connection(('192.0.2.1', 80))", "192.0.2.1"),
    "socket": ("import socket\nsocket.socket().connect(('192.0.2.1', 80))", "192.0.2.1"),
    "mirrors": (
        "import urllib.request\nfor url in ('http://a.example.org/x', 'http://b.example.org/x'):\n"
        "    try:\n        urllib.request.urlopen(url)\n    except OSError:\n        pass\n"
        "else:\n    urllib.request.urlopen(url)",
        "http://b.example.org/x",
    ),
}


@pytest.mark.parametrize(("code", "wanted"), WANTED.values(), ids=WANTED.keys())
def test_what_was_wanted_is_named(tmp_path, code, wanted):
    with pytest.raises(TraceError, match="wants to download") as caught:
        traced(script(tmp_path, f"import torch\n{code}\n"))
    assert wanted in caught.value.reason
    assert "on this machine" in caught.value.hint
    assert any(str(entry.path) == str(tmp_path / "train.py") for entry in caught.traceback)


def test_a_script_may_do_without_the_network(tmp_path):
    asked = (
        "import urllib.request\ntry:\n    urllib.request.urlopen('https://example.org')\nexcept OSError:\n    pass\n"
    )
    assert traced(script(tmp_path, asked + LOOP)).spans


def test_this_machine_may_be_asked(tmp_path):
    source = """
import socket, torch
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).close()
torch.ones(3)
"""
    assert traced(script(tmp_path, source)).spans
