"""Which files of their own a person is asked about."""

import os
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from planner.errors import ModelFileError, TraceError
from planner.trace.request import Target, TraceRequest
from planner.trace.user_code import (
    CandidateParameter,
    content_digest,
    find_module_file,
    find_trace_candidates,
    runs_as_script,
    user_files,
    with_absolute_paths,
)

CONFIG = Target(kind="config", place="gpt2", config="{}")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def of_file(place="net.py", **changes):
    return TraceRequest(target=Target(kind="file", place=place, name="Net"), **changes)


def of_import(place):
    return TraceRequest(target=Target(kind="import", place=place, name="Net"))


def test_a_configuration_runs_no_user_code():
    request = TraceRequest(target=CONFIG, loss="cross_entropy")
    assert content_digest(request) is None
    assert user_files(request) == ()
    assert with_absolute_paths(request) == request


def test_the_digest_depends_on_content_only(folder):
    Path("net.py").write_text("x = 1")
    first = content_digest(of_file())
    # Settings keep it: an answer is to hold in later versions.
    assert first == sha256((5).to_bytes(8, "big") + b"x = 1").hexdigest()
    assert content_digest(of_file(str(folder / "net.py"), steps=3)) == first
    Path("other.py").write_text("x = 1")
    assert content_digest(of_file("other.py")) == first
    Path("net.py").write_text("x = 2")
    assert content_digest(of_file()) != first


def test_the_files_of_a_loss_and_of_a_step_count(folder):
    for name in ("net", "losses", "steps"):
        Path(f"{name}.py").write_text(name)
    request = of_file(loss="losses.py:focal", step="steps.py:alternate")
    assert user_files(request) == (folder / "net.py", folder / "losses.py", folder / "steps.py")
    assert content_digest(request) not in (content_digest(of_file()), content_digest(of_file(loss="losses.py:focal")))
    only_step = TraceRequest(target=CONFIG, step="steps.py:alternate")
    assert user_files(only_step) == (folder / "steps.py",)
    assert content_digest(only_step) is not None


def test_the_digest_depends_on_the_boundary_between_files():
    Path("net.py").write_text("ab")
    Path("losses.py").write_text("c")
    first = content_digest(of_file(loss="losses.py:focal"))
    Path("net.py").write_text("a")
    Path("losses.py").write_text("bc")
    assert content_digest(of_file(loss="losses.py:focal")) != first


def test_each_file_is_listed_once(folder):
    assert user_files(of_file(loss="./net.py:loss", step=f"{folder / 'net.py'}:step")) == (folder / "net.py",)


@pytest.mark.parametrize("place", ["gone.py", "."])
def test_an_unreadable_file_is_an_error(place):
    with pytest.raises(TraceError, match="directory") as caught:
        content_digest(of_file(place))
    assert caught.value.stage == "load"


def test_absolute_paths_do_not_depend_on_the_working_directory(folder):
    request = with_absolute_paths(of_file("nets/../net.py", loss="losses.py:focal", step="mse"))
    assert request.target.place == str(folder / "net.py")
    assert request.loss == f"{folder / 'losses.py'}:focal"
    assert request.step == "mse"


def test_a_module_is_found_without_running_its_package(folder):
    (folder / "nets" / "deep" / "plain").mkdir(parents=True)
    (folder / "nets" / "__init__.py").write_text("raise SystemExit")
    (folder / "nets" / "deep" / "__init__.py").write_text("raise SystemExit")
    # Without an __init__.py, inside a package that has not been imported.
    for file in (folder / "nets" / "deep" / "unet.py", folder / "nets" / "deep" / "plain" / "vit.py"):
        file.write_text("raise SystemExit")
        name = ".".join(file.relative_to(folder).with_suffix("").parts)
        assert find_module_file(name) == file
        assert user_files(of_import(name)) == (file,)
    assert find_module_file("nets.deep") == folder / "nets" / "deep" / "__init__.py"
    assert "nets" not in sys.modules


def test_an_installed_module_is_found():
    assert find_module_file("json.decoder") == Path(os.__file__).parent / "json" / "decoder.py"


@pytest.mark.parametrize("name", ["sys", "not_there", "not_there.inside", "json.not_there", "json.decoder.not_there"])
def test_a_module_without_a_file_counts_by_its_name(name):
    assert find_module_file(name) is None
    assert user_files(of_import(name)) == ()
    assert content_digest(of_import(name)) not in (None, content_digest(of_import(f"{name}2")))


def test_the_content_of_a_module_counts(folder):
    (folder / "own_net.py").write_text("x = 1")
    first = content_digest(of_import("own_net"))
    (folder / "own_net.py").write_text("x = 2")
    assert content_digest(of_import("own_net")) != first


def test_a_script_is_a_file_of_the_person(folder):
    Path("train.py").write_text("x = 1")
    request = TraceRequest(target=Target(kind="script", place="train.py"))
    assert user_files(request) == (folder / "train.py",)
    assert with_absolute_paths(request).target.place == str(folder / "train.py")
    assert len(content_digest(request)) == 64


def test_a_program_is_the_module_that_runs(folder):
    Path("whole").mkdir()
    Path("whole/__init__.py").write_text("")
    Path("whole/__main__.py").write_text("x = 1")
    Path("whole/part.py").write_text("x = 2")
    for place, file in (("whole", "__main__.py"), ("whole.part", "part.py")):
        request = TraceRequest(target=Target(kind="program", place=place))
        assert user_files(request) == (folder / "whole" / file,)
    unknown = TraceRequest(target=Target(kind="program", place="no_such_package"))
    assert user_files(unknown) == ()
    assert len(content_digest(unknown)) == 64


def test_a_script_is_looked_for_in_its_working_folder(folder):
    (folder / "runs" / "package").mkdir(parents=True)
    for name in ("train.py", "package/__init__.py", "package/__main__.py"):
        (folder / "runs" / name).write_text(name)
    script = TraceRequest(target=Target(kind="script", place="train.py", folder="runs"))
    assert user_files(script) == (folder / "runs" / "train.py",)
    program = TraceRequest(target=Target(kind="program", place="package", folder="runs"))
    assert user_files(program) == (folder / "runs" / "package" / "__main__.py",)
    absolute = with_absolute_paths(script).target
    assert (absolute.place, absolute.folder) == (str(folder / "runs" / "train.py"), str(folder / "runs"))
    assert with_absolute_paths(program).target.folder == str(folder / "runs")


SOURCE = '''
"""What a person writes."""
import torch
from torch import nn

raise SystemExit("this file is read, never run")

class Helper:
    def run(self): ...

class Block(nn.Module):
    """A block.

    With more to say.
    """
    def __init__(self, width, bias=True, *rest, scale: float = 0.5, name, **more):
        ...
    def forward(self, x, mask=None): ...

class Deeper(Block):
    pass

class Odd(torch.jit.ScriptModule):
    pass

class Loop(Loop): ...

class Duck:
    def forward(self, /, x): ...

def make(width=8):
    """Make it."""
    return Block(width)

def _hidden(): ...

def example():
    if torch.cuda.is_available():
        return Block(3), (torch.zeros(2),)
    return None

async def later(): ...
'''


@pytest.fixture
def found(tmp_path):
    file = tmp_path / "net.py"
    file.write_text(SOURCE, encoding="utf-8")
    return {candidate.name: candidate for candidate in find_trace_candidates(file)}


def test_modules_and_functions_are_found_without_running_the_file(found):
    assert list(found) == ["Block", "Deeper", "Odd", "Duck", "make", "example", "later"]
    assert [candidate.kind for candidate in found.values()] == ["class"] * 4 + ["function"] * 3


def test_arguments_and_inputs_have_their_defaults(found):
    assert found["Block"].arguments == (
        CandidateParameter("width", None),
        CandidateParameter("bias", "True"),
        CandidateParameter("scale", "0.5"),
        CandidateParameter("name", None),
    )
    assert found["Block"].inputs == (CandidateParameter("x", None), CandidateParameter("mask", "None"))
    assert found["Block"].summary == "A block."
    assert found["Duck"].inputs == (CandidateParameter("x", None),)


def test_methods_inherited_within_the_file_count(found):
    assert found["Deeper"].arguments == found["Block"].arguments
    assert found["Deeper"].inputs == found["Block"].inputs
    assert found["Odd"].arguments == ()


def test_a_function_that_returns_a_pair_has_its_own_inputs(found):
    assert found["example"].returns_inputs
    assert not found["make"].returns_inputs
    assert found["make"].arguments == (CandidateParameter("width", "8"),)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"class A(\n", "is not Python: line 1, '(' was never closed"),
        (b"\0", "is not Python: source code string cannot contain null bytes"),
        (b"x = " + b"(" * 5000, "is not Python"),
        (b"#" * 2**21, "large"),
    ],
)
def test_a_file_that_is_not_python_is_an_error(tmp_path, content, reason):
    file = tmp_path / "net.py"
    file.write_bytes(content)
    with pytest.raises(ModelFileError) as error:
        find_trace_candidates(file)
    assert reason in error.value.message


def test_a_file_may_have_a_mebibyte(tmp_path):
    file = tmp_path / "net.py"
    file.write_bytes(b"#" * 2**20)
    assert find_trace_candidates(file) == ()
    file.write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(ModelFileError, match="too large"):
        find_trace_candidates(file)


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(ModelFileError, match="cannot be read"):
        find_trace_candidates(tmp_path / "none.py")


def test_syntax_warnings_are_not_shown(tmp_path):
    file = tmp_path / "net.py"
    file.write_text("def make():\n    return '\\d'\n", encoding="utf-8")
    assert [candidate.name for candidate in find_trace_candidates(file)] == ["make"]


GUARD = 'if __name__ == "__main__":\n    main()\n'


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def main():\n    loss.backward()\n\n" + GUARD, True),
        ("class Net(nn.Module): ...\nfor batch in batches:\n    optimizer.step()\n", True),
        ("class Net(nn.Module): ...\nL.Trainer().fit(Net())\n", True),
        ("model = load()\nprint(model(x))\n", True),
        ("class Net(nn.Module): ...\n\ndef main():\n    print(Net()(x))\n\n" + GUARD, False),  # a demonstration
        ("class Net(nn.Module): ...\n\ndef step(net):\n    loss.backward()\n", False),
        ('"""Only words."""\nWIDTH = 8\nif WIDTH > 4:\n    DEPTH = 2\n', False),
    ],
)
def test_a_script_is_known_by_what_it_runs(tmp_path, source, expected):
    file = tmp_path / "train.py"
    file.write_text(source)
    assert runs_as_script(file) is expected
