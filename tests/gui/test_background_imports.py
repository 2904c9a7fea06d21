"""Modules are imported beside the window's thread."""

import sys
import threading
from pathlib import Path

import pytest

from planner.gui.imports import import_soon, is_imported


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that takes until a file appears."""
    text = "import pathlib, time\nwhile not pathlib.Path(__file__).with_name('go').exists():\n    time.sleep(0.001)\n"
    (tmp_path / f"slow_{tmp_path.name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return f"slow_{tmp_path.name}"


def end_imports() -> None:
    for thread in threading.enumerate():
        if thread.name == "imports":
            thread.join()


def test_a_module_is_there_once_it_was_imported_elsewhere(module, tmp_path):
    assert not is_imported(module)
    (tmp_path / "go").touch()
    end_imports()
    assert is_imported(module)
    assert module in sys.modules


def test_what_is_known_already_need_not_be_waited_for():
    assert is_imported("json")


def test_modules_are_imported_soon(module, tmp_path):
    (tmp_path / "go").touch()
    import_soon([module])
    end_imports()
    assert module in sys.modules
