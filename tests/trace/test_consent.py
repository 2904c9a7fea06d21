"""Which files of their own a person is asked about."""

import os
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from planner.errors import TraceError
from planner.trace.consent import content_digest, find_module_file, user_files, with_absolute_paths
from planner.trace.request import Target, TraceRequest

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
