"""Files with one value each: texts that are none, and errors of the system."""

import os

import pytest
from cards_kit import (
    RADEON,
    radeon,
    write_cards,
)

from planner.monitor.host.processes import HostProcesses
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.sources.drm import DrmSource
from planner.monitor.sources.source import CardGoneError


@pytest.fixture
def source(tmp_path):
    return DrmSource(tmp_path, HostProcesses(), sees_same_pids=True)


def _read(source, now=1.0, *, slow=True):
    return {device.uuid: source.read(device, now, slow=slow) for device in source.find(now)}


@pytest.mark.parametrize(
    ("file", "text", "name", "expected"),
    [
        ("device/gpu_busy_percent", "busy", "utilization_fraction", missing(Cause.UNREADABLE)),
        ("device/gpu_busy_percent", "", "utilization_fraction", missing(Cause.UNREADABLE)),
        ("device/gpu_busy_percent", "255", "utilization_fraction", Reading(2.55, is_implausible=True)),
        ("device/current_link_speed", "Unknown", "pcie_generation", missing(Cause.UNREADABLE)),
        ("device/current_link_speed", "9.0 GT/s", "pcie_generation", missing(Cause.UNREADABLE)),
        ("device/ras/umc_err_count", "none", "ecc_corrected", missing(Cause.UNREADABLE)),
    ],
)
def test_texts_that_are_no_numbers_are_said_to_be_unreadable(source, tmp_path, file, text, name, expected):
    write_cards(tmp_path, radeon() | {file: text})
    assert _read(source)[RADEON][name] == expected


@pytest.mark.parametrize(
    ("number", "cause"),
    [
        (1, Cause.ASLEEP),
        (13, Cause.NO_PERMISSION),
        (95, Cause.NOT_SUPPORTED),
        (16, Cause.NOT_YET),
        (5, Cause.FAILED),
        (2, Cause.NOT_SUPPORTED),
    ],
)
def test_errors_of_the_system_are_told_apart(source, tmp_path, monkeypatch, number, cause):
    write_cards(tmp_path, radeon())
    (device,) = source.find(0.0)

    def refuse(path):
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr("planner.monitor.sources.files._read_text", refuse)
    assert source.read(device, 1.0, slow=True)["utilization_fraction"] == missing(cause)


def test_a_card_that_disappears_while_it_is_read_is_gone(source, tmp_path, monkeypatch):
    (folder,) = write_cards(tmp_path, radeon())
    (device,) = source.find(0.0)

    def vanish(path):
        if folder.exists():
            folder.rename(tmp_path / "gone")
        raise OSError(19, "No such device", str(path))

    monkeypatch.setattr("planner.monitor.sources.files._read_text", vanish)
    with pytest.raises(CardGoneError):
        source.read(device, 1.0, slow=False)
