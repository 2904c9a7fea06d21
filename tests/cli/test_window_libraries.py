"""A missing library of the system is named with its package before Qt would end the process without a word."""

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import pytest

from planner.cli import main as cli
from planner.cli import window_libraries
from planner.cli.window_libraries import DEBIAN_PACKAGES, missing_libraries, packages_hint

ROOT = Path(__file__).resolve().parents[2]
LOADER_ERROR = "libxcb-cursor.so.0: cannot open shared object file: No such file or directory"
LISTED = "\tlibc.so.6 => /lib/libc.so.6 (0x1)\n\tlibxcb-cursor.so.0 => not found\n\tlibxcb-shape.so.0 => not found\n"


@pytest.fixture
def plugins(tmp_path, monkeypatch) -> dict[str, str]:
    """Let Qt have plugins for X11, Wayland and offscreen; the returned errors of the loader are theirs, by name."""
    errors: dict[str, str] = {}
    for name in ("xcb", "wayland", "offscreen"):
        (tmp_path / f"libq{name}.so").touch()
    for name in ("QT_QPA_PLATFORM", "WAYLAND_DISPLAY", "DISPLAY"):
        monkeypatch.delenv(name, raising=False)

    def load(file: str) -> None:
        name = Path(file).stem.removeprefix("libq")
        if name in errors:
            raise OSError(errors[name])

    monkeypatch.setattr(window_libraries, "_qt_folders", lambda: [tmp_path])
    monkeypatch.setattr(ctypes, "CDLL", load)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, LISTED))
    return errors


def test_every_library_that_is_missing_is_named_at_once(plugins, monkeypatch):
    plugins["xcb"] = LOADER_ERROR
    monkeypatch.setenv("DISPLAY", ":0")
    assert missing_libraries() == ("libxcb-cursor.so.0", "libxcb-shape.so.0")


def test_without_ldd_the_first_library_is_named(plugins, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise FileNotFoundError

    plugins["xcb"] = LOADER_ERROR
    monkeypatch.setenv("QT_QPA_PLATFORM", "xcb:nativepainting")
    monkeypatch.setattr(subprocess, "run", fail)
    assert missing_libraries() == ("libxcb-cursor.so.0",)


def test_one_platform_that_can_be_used_is_enough(plugins, monkeypatch):
    plugins["wayland"] = LOADER_ERROR
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    assert missing_libraries()
    monkeypatch.setenv("DISPLAY", ":0")
    assert missing_libraries() == ()


@pytest.mark.parametrize("platform", ["offscreen", "a-platform-of-their-own"])
def test_a_platform_without_a_fault_lacks_nothing(plugins, monkeypatch, platform):
    monkeypatch.setenv("QT_QPA_PLATFORM", platform)
    assert missing_libraries() == ()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the plugins of Linux")
def test_the_platform_of_these_tests_lacks_nothing(monkeypatch):
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    assert any(folder.is_dir() for folder in window_libraries._qt_folders())
    assert missing_libraries() == ()


def test_the_hint_names_each_package_once_and_unknown_libraries_by_their_names():
    assert packages_hint(["libglib-2.0.so.0", "libgthread-2.0.so.0", "libnew.so.2"]) == (
        "On Debian or Ubuntu: sudo apt install libglib2.0-0. Install the packages that have libnew.so.2."
    )


def test_the_command_says_what_is_missing_instead_of_ending_in_qt(monkeypatch, capsys):
    monkeypatch.setenv("QT_QPA_PLATFORM", "xcb")
    monkeypatch.setattr(window_libraries, "missing_libraries", lambda: ("libxcb-cursor.so.0",))
    assert cli.main([]) == cli.ENVIRONMENT
    error = capsys.readouterr().err
    assert "cannot open the window: libxcb-cursor.so.0 is missing on this system" in error
    assert "apt install libxcb-cursor0." in error


@pytest.mark.parametrize("page", ["README.md", "docs/first-steps.md", ".ci/run"])
def test_every_library_that_a_page_names_is_one_that_the_hint_knows(page):
    named = set(re.findall(r"\blib[a-z0-9.+-]+[0-9]\b", (ROOT / page).read_text(encoding="utf-8")))
    assert {"libglib2.0-0", "libegl1"} <= named
    assert named - {"libc6"} <= set(DEBIAN_PACKAGES.values())
