"""The settings file: stored changes, damaged files, and recent plans."""

from pathlib import Path

import pytest

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


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00", b"[1, 2]", b'"x"', b"null"])
def test_an_unreadable_file_is_renamed_and_ignored(file: Path, content: bytes):
    file.write_bytes(content)
    assert SettingsStore(file).current == WindowSettings()
    assert file.with_suffix(".json.bad").read_bytes() == content


def test_invalid_fields_do_not_affect_the_others(file: Path):
    file.write_text('{"scheme": "dark", "tab": 7, "from_the_future": true}')
    assert SettingsStore(file).current == WindowSettings(scheme="dark")
    assert file.with_suffix(".json.bad").exists()


def test_a_folder_in_place_of_the_file_does_not_fail(file: Path, caplog):
    file.mkdir()
    store = SettingsStore(file)
    file.mkdir(exist_ok=True)
    (file / "x").touch()
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
