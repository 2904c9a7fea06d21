"""Advice on installing names what GPU Planner was installed from, and never its name on a package index."""

import json
import sys
import tomllib
from importlib import metadata
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from planner import installation
from planner.installation import extra_command, package_command, update_hint

ROOT = Path(__file__).resolve().parents[2]
PIP = f"{sys.executable} -m pip install"


@pytest.fixture
def environment(tmp_path, monkeypatch) -> Path:
    """An environment of its own, with GPU Planner copied into it from nowhere in particular."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "env"))
    monkeypatch.setattr(installation, "_PACKAGE", tmp_path / "env" / "planner")
    monkeypatch.setattr(installation, "find_spec", lambda name: name)
    installed_from(None, monkeypatch)
    (tmp_path / "env").mkdir()
    return tmp_path / "env"


def installed_from(record: str | None, monkeypatch) -> None:
    """Let the metadata of the distribution have `record` as its direct_url.json; None for an index."""

    class Distribution:
        def read_text(self, name: str) -> str | None:
            return record if name == "direct_url.json" else None

    monkeypatch.setattr(metadata, "distribution", lambda _name: Distribution())


def test_a_checkout_is_installed_again_in_place():
    assert extra_command("torch") == f"{PIP} -e '{ROOT}[torch]'"
    assert update_hint() == f"Update GPU Planner: git -C {ROOT} pull"


def test_a_folder_that_was_copied_from_is_installed_again(environment, tmp_path, monkeypatch):
    folder = tmp_path / "a clone"
    folder.mkdir()
    installed_from(json.dumps({"url": folder.as_uri(), "dir_info": {}}), monkeypatch)
    assert extra_command("parquet") == f"{PIP} '{folder}[parquet]'"
    assert update_hint() == f"Update GPU Planner: git -C '{folder}' pull, then: {PIP} '{folder}'"


def test_a_wheel_is_named_by_its_file(environment, tmp_path, monkeypatch):
    wheel = tmp_path / "gpu_planner-1-py3-none-any.whl"
    wheel.touch()
    installed_from(json.dumps({"url": wheel.as_uri(), "archive_info": {}}), monkeypatch)
    assert extra_command("torch") == f"{PIP} 'gpu-planner[torch] @ {wheel.as_uri()}'"
    assert update_hint() == f"Install a newer release of GPU Planner. This one came from {wheel.as_uri()}"


@pytest.mark.parametrize(
    ("record", "named"),
    [
        ({"url": "https://example.org/p.whl", "archive_info": {}}, "https://example.org/p.whl"),
        ({"url": "https://example.org/p", "vcs_info": {"vcs": "git"}}, "git+https://example.org/p"),
    ],
)
def test_what_came_over_the_network_is_named_by_its_url(environment, monkeypatch, record, named):
    installed_from(json.dumps(record), monkeypatch)
    assert extra_command("torch") == f"{PIP} 'gpu-planner[torch] @ {named}'"


@pytest.mark.parametrize("record", [None, "damaged", "{}", '{"url": "file:///gone/p.whl"}'])
def test_where_the_origin_is_unknown_or_gone_the_packages_are_named(environment, monkeypatch, record):
    installed_from(record, monkeypatch)
    assert extra_command("torch") == f"{PIP} torch transformers"
    assert update_hint() == "Install a newer release of GPU Planner."


def test_a_copy_without_metadata_names_the_packages(environment, monkeypatch):
    def fail(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", fail)
    assert extra_command("parquet") == f"{PIP} pyarrow"


def test_pipx_adds_packages_to_its_own_environment(environment):
    (environment / "pipx_metadata.json").touch()
    assert extra_command("torch") == "pipx inject env torch transformers"
    assert package_command("nvidia-ml-py") == "pipx inject env nvidia-ml-py"


def test_an_environment_without_pip_is_filled_by_uv(environment, monkeypatch):
    monkeypatch.setattr(installation, "find_spec", lambda _name: None)
    assert package_command("pyarrow") == f"uv pip install --python {sys.executable} pyarrow"


def test_a_command_for_windows_has_double_quotes(environment, monkeypatch):
    monkeypatch.setattr(sys, "executable", r"C:\Program Files\python.exe")
    monkeypatch.setattr(sys, "platform", "win32")
    assert package_command("torch") == r'"C:\Program Files\python.exe" -m pip install torch'


def test_the_packages_of_an_extra_are_those_that_the_project_declares():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for extra, packages in installation._PACKAGES.items():
        names = (
            line if line in packages else line.partition(">=")[0] for line in declared[extra]
        )  # a bound that matters is kept
        assert tuple(names) == packages


def test_nothing_names_gpu_planner_on_an_index():
    """Search what a person reads: the program, the manual and the README."""
    texts = [*(ROOT / "planner").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    named = ("install gpu-planner", "gpu-planner[torch]'", 'install "gpu-planner[', "upgrade gpu-planner")
    assert [file for file in texts if any(words in file.read_text(encoding="utf-8") for words in named)] == []


def test_the_lock_is_of_the_declared_dependencies_and_has_a_hash_of_each_file():
    def named(name: str, limits: str) -> tuple[str, ...]:
        return canonicalize_name(name), *sorted(filter(None, limits.split(",")))

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = map(Requirement, chain(project["dependencies"], *project["optional-dependencies"].values()))
    packages = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    own = next(package for package in packages if package["name"] == project["name"])
    locked = {named(one["name"], one.get("specifier", "")) for one in own["metadata"]["requires-dist"]}
    assert locked == {named(one.name, str(one.specifier)) for one in declared if one.name != project["name"]}
    files = [file for one in packages if one is not own for file in (*one.get("wheels", ()), one.get("sdist"))]
    assert all(file["hash"].startswith("sha256:") for file in files if file)
