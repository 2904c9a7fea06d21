"""Networks that scripts load by name: built from the catalog's configurations, without weights."""

from types import SimpleNamespace

import pytest
import torch
from scripted import NET, peak_bytes, real_peak_bytes, script, traced

from planner.errors import TraceError
from planner.trace.worker.script.weights import without_graphs

pytest.importorskip("transformers")


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """Set the Hub's offline mode, as a trace's own process does."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def test_networks_of_transformers_are_built_by_their_names(tmp_path):
    source = """
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification, GPT2Model
config = AutoConfig.from_pretrained("gpt2", n_layer=2, n_embd=64, n_head=2)
first = GPT2Model.from_pretrained("gpt2", config=config)
second = AutoModelForSequenceClassification.from_pretrained(
    "google-bert/bert-base-uncased", num_labels=5, num_hidden_layers=1, torch_dtype=torch.bfloat16, cache_dir="x"
)
assert (first.config.n_layer, second.config.num_labels, second.dtype) == (2, 5, torch.bfloat16)
assert not first.training and first.name_or_path == "gpt2"
"""
    notes = traced(script(tmp_path, source)).notes
    assert "gpt2 is built as GPT2Model from its configuration, without weights." in notes
    assert any(note.startswith("google-bert/bert-base-uncased is built as") for note in notes)


def test_a_network_in_a_folder_is_built_from_its_configuration(tmp_path):
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "config.json").write_text('{"model_type": "gpt2", "n_layer": 1, "n_embd": 64, "n_head": 2}')
    source = f"from transformers import AutoModel\nnet = AutoModel.from_pretrained({str(tmp_path / 'net')!r})\n"
    source += "assert net.config.n_layer == 1\n"
    assert traced(script(tmp_path, source)).spans


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("AutoModel.from_pretrained('nobody/nothing')", "wants to download nobody/nothing"),
        ("AutoTokenizer.from_pretrained('gpt2')", "wants to download the tokenizer of gpt2"),
        ("AutoModel.from_pretrained('gpt2', load_in_4bit=True)", "gpt2 is loaded quantized"),
    ],
)
def test_what_is_missing_is_named(tmp_path, code, reason):
    with pytest.raises(TraceError, match=reason):
        traced(script(tmp_path, f"from transformers import AutoModel, AutoTokenizer\n{code}\n"))


def test_weights_at_an_address_are_left_out(tmp_path):
    source = NET + "from torch.hub import load_state_dict_from_url\n"
    source += "weights = load_state_dict_from_url('https://example.org/net.pth')\n"
    notes = traced(script(tmp_path, source + "print(net.load_state_dict(weights, strict=True))\n")).notes
    assert "Weights are not downloaded: https://example.org/net.pth." in notes
    for use in ("weights['0.weight']", "list(weights)", "len(weights)"):
        with pytest.raises(TraceError, match=r"reads the weights of https://example.org/net.pth"):
            traced(script(tmp_path, source + use + "\n"))


def test_a_package_is_changed_when_it_is_imported(tmp_path):
    package = tmp_path / "timm" / "models"
    package.mkdir(parents=True)
    (tmp_path / "timm" / "__init__.py").write_text("")
    (package / "__init__.py").write_text("from ._builder import load_pretrained\n")
    (package / "_builder.py").write_text("def load_pretrained(model, **kwargs):\n    raise OSError\n")
    source = NET + "from timm.models import load_pretrained\nload_pretrained(net, strict=True)\n"
    assert "Weights of timm's Sequential are not downloaded." in traced(script(tmp_path, source)).notes


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


def test_a_network_is_run_once_where_its_graph_would_be_drawn():
    writer = SimpleNamespace(SummaryWriter=type("SummaryWriter", (), {}))
    net, notes, seen = torch.nn.Sequential(torch.nn.Identity()), list[str](), list[bool]()
    net.register_forward_hook(lambda module, inputs, output: seen.append(module.training))
    with without_graphs(writer, notes.append):
        writer.SummaryWriter().add_graph(net, torch.ones(3), verbose=True)
        writer.SummaryWriter().add_graph(net, (torch.ones(3),))
    assert (seen, net.training, len(notes)) == ([False, False], True, 2)
    assert "TensorBoard's graph of Sequential is not drawn" in notes[0]
