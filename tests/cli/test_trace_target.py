"""What the first word of `gpu-planner trace` stands for."""

import json

import pytest

from planner.cli.trace.command import parse_target
from planner.errors import PlannerError

NET = """
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        return x

def make():
    raise SystemExit("this file must not be run")

raise SystemExit("this file must not be run")
"""


@pytest.fixture
def net(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(NET)
    return tmp_path / "net.py"


@pytest.fixture
def target(catalog):
    """Return a way to read a word."""
    return lambda word: parse_target(word, catalog.models)


def test_a_class_in_a_file(target, net):
    found = target(f"{net}:Net")
    assert (found.kind, found.place, found.name) == ("file", str(net), "Net")
    assert target("net.py:Net").title == "net.py:Net"


def test_a_file_without_a_name_is_a_script(target, net):
    found = target("net.py")
    assert (found.kind, found.place, found.name, found.title) == ("script", "net.py", "", "net.py")
    assert target(str(net)).short_title == "net.py"


def test_a_drive_letter_is_no_separator(target, net, monkeypatch):
    (net.parent / "C:\\nets.py").write_text(NET)
    found = target("C:\\nets.py:Net")
    assert (found.kind, found.place, found.name) == ("file", "C:\\nets.py", "Net")


def test_a_name_in_a_package(target):
    found = target("torchvision.models:resnet18")
    assert (found.kind, found.place, found.name) == ("import", "torchvision.models", "resnet18")


def test_a_model_of_the_catalog(target):
    found = target("llama-3.1-8b")
    assert found.place == "meta-llama/Llama-3.1-8B"
    assert json.loads(found.config)["hidden_size"] == 4096


def test_a_config_that_is_not_estimated_is_traced_all_the_same(target, tmp_path):
    path = tmp_path / "frob" / "config.json"
    path.parent.mkdir()
    path.write_text('{"model_type": "frobnicator", "width": 3}')
    for word in (str(path), str(path.parent)):
        found = target(word)
        assert (found.kind, found.place) == ("config", "frob")
        assert json.loads(found.config) == {"model_type": "frobnicator", "width": 3}


@pytest.mark.parametrize(
    ("word", "message", "hint"),
    [
        ("net.py:", "net.py: needs the name of a module or a function", "Use net.py:Net or net.py:make."),
        ("empty.py:", "empty.py: needs the name", "no module class"),
        ("broken.py:", "is not Python", "Choose a Python file"),
        ("missing.py", "there is no file missing.py", "Check the path"),
        ("missing.py:Net", "there is no file missing.py", "Check the path"),
        ("missing.json", "missing.json: cannot be read", "Check the path"),
        ("nobody/nothing", "no model is called 'nobody/nothing'", "gpu-planner models"),
    ],
)
def test_what_is_nothing_says_so(target, net, word, message, hint):
    (net.parent / "empty.py").write_text("x = 1\n")
    (net.parent / "broken.py").write_text("def\n")
    with pytest.raises(PlannerError) as caught:
        target(word)
    assert message in caught.value.message
    assert hint in caught.value.hint
