import importlib
from pathlib import Path

import pytest

from planner import paths
from planner.storage import may_exist, write_stored


def test_the_catalog_and_resources_of_the_checkout_are_found():
    assert (paths.catalog_dir() / "gpus").is_dir()
    assert (paths.resources_dir() / "tokens").is_dir()


def test_a_wheel_keeps_them_inside_the_package(tmp_path, monkeypatch):
    (tmp_path / "planner" / "_catalog").mkdir(parents=True)
    monkeypatch.setattr(paths, "_PACKAGE", tmp_path / "planner")
    assert paths.catalog_dir() == tmp_path / "planner" / "_catalog"


def test_the_state_folder_can_be_moved_and_is_not_made_by_asking_for_it(own_state_dir):
    assert paths.state_dir() == own_state_dir
    assert paths.traces_dir().parent == paths.prices_dir().parent == paths.own_hardware_file().parent == own_state_dir
    assert not own_state_dir.exists()


def test_the_state_folder_is_the_platforms_own_otherwise(tmp_path, monkeypatch):
    platformdirs = importlib.import_module("platformdirs")
    monkeypatch.delenv("GPU_PLANNER_HOME")
    for name in ("HOME", "XDG_DATA_HOME", "LOCALAPPDATA", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    folder = paths.state_dir()
    assert folder == Path(platformdirs.user_data_path("gpu-planner", appauthor=False))
    assert not folder.exists()
    assert folder.name == "gpu-planner"


def _unknown(*_arguments, **_options):
    raise RuntimeError("could not determine the home directory")


@pytest.mark.parametrize("answer", [_unknown, lambda *_arguments, **_options: Path("~/.local/share/gpu-planner")])
def test_a_user_without_a_home_keeps_nothing(answer, monkeypatch, tmp_path):
    monkeypatch.delenv("GPU_PLANNER_HOME")
    monkeypatch.setattr("platformdirs.user_data_path", answer)
    monkeypatch.chdir(tmp_path)
    assert not may_exist(paths.prices_dir())
    with pytest.raises(NotADirectoryError):
        write_stored(paths.own_hardware_file(), "[]")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("value", ["", None])
def test_an_empty_variable_is_none(value, tmp_path, monkeypatch):
    monkeypatch.delenv("GPU_PLANNER_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    if value is not None:
        monkeypatch.setenv("GPU_PLANNER_HOME", value)
    assert paths.state_dir().name == "gpu-planner"
