"""Checkpoints of scripts: shapes are saved, and come back as tensors."""

import pytest
from scripted import NET, peak_bytes, real_peak_bytes, script, traced

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

SAVED = {
    "state": "torch.save(net.state_dict(), 'net.pt'); net.load_state_dict(torch.load('net.pt'))",
    "file": "f = open('net.pt', 'wb'); torch.save(net.state_dict(), f); f.close(); torch.load(open('net.pt', 'rb'))",
    "module": "torch.save(net, 'net.pt'); net = torch.load('net.pt', weights_only=False)\n"
    "assert isinstance(net[0].weight, nn.Parameter) and net[0].weight.requires_grad",
    "views": "x = torch.ones(1000); torch.save((x[:10], x), 'x.pt'); a, b = torch.load('x.pt')\n"
    "assert a.untyped_storage()._cdata == b.untyped_storage()._cdata",
    "safetensors": "from safetensors.torch import save_file, load_file\n"
    "save_file(net.state_dict(), 'net.safetensors', metadata={'a': 'b'}); loaded = load_file('net.safetensors')",
}


@pytest.mark.parametrize("code", SAVED.values(), ids=SAVED.keys())
def test_what_is_saved_is_loaded_as_in_a_real_run(tmp_path, monkeypatch, code):
    (tmp_path / "real").mkdir()
    monkeypatch.chdir(tmp_path / "real")
    request = script(tmp_path, NET + code + "\nkept = torch.ones(100_000)\n")
    assert peak_bytes(traced(request)) == pytest.approx(real_peak_bytes(request), rel=0.03)


def test_files_of_real_runs_are_loaded(tmp_path, monkeypatch):
    import torch
    from safetensors.torch import save_file

    monkeypatch.chdir(tmp_path)
    torch.save({"x": torch.ones(500)}, "real.pt")
    save_file({"x": torch.ones(500)}, "real.safetensors")
    source = """
import torch
from safetensors.torch import load_file
for x in (torch.load("real.pt")["x"], torch.load(open("real.pt", "rb"))["x"], load_file("real.safetensors")["x"]):
    assert (x + 1).shape == (500,)
"""
    assert peak_bytes(traced(script(tmp_path, source))) >= 2000
