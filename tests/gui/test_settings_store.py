"""The settings file: stored changes, damaged files, and recent plans."""

import json
from pathlib import Path

import pytest

from planner.gui.locks import FileLock
from planner.gui.settings import SettingsStore, WindowSettings


@pytest.fixture
def file(tmp_path: Path, qapp) -> Path:
    return tmp_path / "settings.json"


def test_stored_changes_are_read_again(file: Path):
    store = SettingsStore(file)
    store.update(scheme="dark", tab="catalog")
    store.flush()
    assert SettingsStore(file).current == WindowSettings(scheme="dark", tab="catalog")


def test_changes_are_written_soon_by_themselves(file: Path, qtbot):
    store = SettingsStore(file)
    store.update(scheme="dark")
    assert not file.exists()
    qtbot.waitUntil(file.exists)


def test_an_unchanged_value_writes_nothing(file: Path):
    store = SettingsStore(file)
    store.update(scheme="system")
    assert store.current == WindowSettings()
    assert not file.exists()


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00", b"[1, 2]", b'"x"', b"null", b"9" * 5000])
def test_an_unreadable_file_is_kept_and_said(file: Path, content: bytes):
    file.write_bytes(content)
    store = SettingsStore(file)
    assert store.current == WindowSettings()
    assert store.unread.hint == f"The file is kept as {file.with_suffix('.json.bad')}."
    assert file.with_suffix(".json.bad").read_bytes() == content


def test_an_unreadable_file_that_cannot_be_renamed_stays_and_is_named(file: Path, monkeypatch: pytest.MonkeyPatch):
    file.write_bytes(b"{")
    monkeypatch.setattr("planner.gui.settings.set_aside", lambda _path: None)
    assert SettingsStore(file).unread.hint == f"It stays in {file}."
    assert file.read_bytes() == b"{"


def test_what_this_version_does_not_know_stays_in_the_file(file: Path):
    file.write_text('{"scheme": "dark", "tab": 7, "from_the_future": true, "monitor": {"of_it": 1}}')
    store = SettingsStore(file)
    assert store.current == WindowSettings(scheme="dark")
    assert store.unread.message.endswith("so their defaults apply: monitor, tab.")
    store.update(scheme="light", monitor=store.current.monitor.evolve(may_end_others=True))
    store.flush()
    assert json.loads(file.read_text()) == {
        "scheme": "light",
        "tab": 7,
        "from_the_future": True,
        "monitor": {"of_it": 1, "may_end_others": True},
    }


def test_two_windows_keep_what_each_has_changed(file: Path):
    SettingsStore(file).flush()
    one, other = SettingsStore(file), SettingsStore(file)
    one.update(scheme="dark", splitters={"a": (1, 2)})
    one.add_recent_plan(Path("/one.json"))
    one.trust("1" * 64)
    one.flush()
    other.update(tab="catalog", splitters={"b": (3, 4)})
    other.add_recent_plan(Path("/other.json"))
    other.trust("2" * 64)
    other.flush()
    one.update(scheme="system")
    one.flush()
    assert SettingsStore(file).current == WindowSettings(
        tab="catalog",
        splitters={"a": (1, 2), "b": (3, 4)},
        recent=("/other.json", "/one.json"),
        trusted_code=("2" * 64, "1" * 64),
    )


def test_a_window_that_writes_is_waited_for(file: Path, qtbot):
    store, lock = SettingsStore(file), FileLock(file.with_name("settings.json.lock"))
    assert lock.acquire()
    store.update(scheme="dark")
    store.flush()
    assert not file.exists()
    lock.release()
    qtbot.waitUntil(file.exists)


def test_a_folder_in_place_of_the_file_is_kept_aside(file: Path):
    file.mkdir()
    (file / "x").touch()
    store = SettingsStore(file)
    store.update(scheme="dark")
    store.flush()
    assert SettingsStore(file).current.scheme == "dark"
    assert (file.with_suffix(".json.bad") / "x").exists()


def test_settings_that_cannot_be_written_are_only_logged(file: Path, caplog):
    store = SettingsStore(file.with_name("gone") / "settings.json")
    store.update(scheme="dark")
    store.flush()
    assert store.current.scheme == "dark"
    assert "could not be written" in caplog.text


def test_recent_plans_are_unique_newest_first_and_few(file: Path):
    store = SettingsStore(file)
    for number in range(12):
        store.add_recent_plan(Path(f"/plans/{number}.json"))
    store.add_recent_plan(Path("/plans/9.json"))
    store.flush()
    assert store.current.recent[:3] == tuple(str(Path(f"/plans/{number}.json")) for number in (9, 11, 10))
    assert len(store.current.recent) == 8
