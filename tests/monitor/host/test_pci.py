"""NVIDIA cards as Linux lists them."""

from pathlib import Path

from planner.monitor.host.environment import can_runtime_suspend, find_cards, is_same_pci_address


def _device(folder: Path, name: str, **files: str) -> Path:
    place = folder / name
    (place / "power").mkdir(parents=True)
    for file, content in files.items():
        (place / file.replace("__", "/")).write_text(f"{content}\n")
    return place


def test_nvidia_cards_are_found_with_their_state(tmp_path):
    _device(tmp_path, "0000:00:02.0", vendor="0x8086", **{"class": "0x030000"})
    _device(tmp_path, "0000:01:00.1", vendor="0x10de", **{"class": "0x040300"})
    awake = {"vendor": "0x10de", "class": "0x030000", "power__runtime_status": "active", "power__control": "on"}
    asleep = {"vendor": "0x10de", "class": "0x030200", "power__runtime_status": "suspended", "power__control": "auto"}
    first = _device(tmp_path, "0000:01:00.0", **awake)
    second = _device(tmp_path, "0000:02:00.0", **asleep)
    assert find_cards(tmp_path) == {"0000:01:00.0": "active", "0000:02:00.0": "asleep"}
    assert not can_runtime_suspend(first)
    assert can_runtime_suspend(second)


def test_without_pci_devices_no_card_is_found(tmp_path):
    assert find_cards(tmp_path / "nothing") == {}
    _device(tmp_path, "0000:01:00.0", vendor="0x10de")
    assert find_cards(tmp_path) == {}


def test_driver_and_system_write_a_place_differently():
    assert is_same_pci_address("00000000:0C:00.0", "0000:0c:00.0")
    assert not is_same_pci_address("00000000:0D:00.0", "0000:0c:00.0")
