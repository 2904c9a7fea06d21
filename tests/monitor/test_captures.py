"""Captured readings of real cards, with the cause of every missing reading."""

import json
from pathlib import Path

import pytest
from fake_nvml_kit import A

from planner.monitor.host.processes import HostProcesses
from planner.monitor.nvml import Nvml
from planner.monitor.readings.reading import Cause
from planner.monitor.sampler.session import CardProcesses, NvmlSession

_CAPTURES = json.loads((Path(__file__).parent / "data" / "nvidia_smi_captures.json").read_text())["captures"]

# nvidia-smi's field, the library's key, how many of the library's units are in one of nvidia-smi's, and ours.
_READINGS = (
    ("fan.speed", "fan", 1, "fan_fraction", 100),
    ("pstate", "pstate", 1, "performance_state", 1),
    ("clocks_event_reasons.active", "reasons", 1, "clock_reasons", 1),
    ("memory.used", "memory.used", 2**20, "memory_used_bytes", 1 / 2**20),
    ("memory.reserved", "memory.reserved", 2**20, "memory_reserved_bytes", 1 / 2**20),
    ("utilization.gpu", "utilization", 1, "utilization_fraction", 100),
    ("utilization.memory", "memory_utilization", 1, "memory_controller_fraction", 100),
    ("utilization.encoder", "encoder", 1, "encoder_fraction", 100),
    ("utilization.decoder", "decoder", 1, "decoder_fraction", 100),
    ("utilization.jpeg", "jpeg", 1, "jpeg_fraction", 100),
    ("utilization.ofa", "ofa", 1, "ofa_fraction", 100),
    ("temperature.gpu", "temperature.0", 1, "temperature_celsius", 1),
    ("temperature.gpu.tlimit", "margin", 1, "temperature_margin_celsius", 1),
    ("temperature.memory", "field.82", 1, "memory_temperature_celsius", 1),
    ("power.draw", "power", 1000, "power_watts", 1),
    ("enforced.power.limit", "power_limit", 1000, "power_limit_watts", 1),
    ("clocks.current.sm", "clock.1", 1, "sm_clock_mhz", 1),
    ("clocks.current.memory", "clock.2", 1, "memory_clock_mhz", 1),
    ("pcie.link.gen.current", "pcie_generation", 1, "pcie_generation", 1),
    ("pcie.link.width.current", "pcie_width", 1, "pcie_width", 1),
    ("ecc.errors.corrected.volatile.total", "field.3", 1, "ecc_corrected", 1),
    ("ecc.errors.uncorrected.volatile.total", "field.4", 1, "ecc_uncorrected", 1),
    ("remapped_rows.correctable", "field.142", 1, "remapped_corrected", 1),
    ("remapped_rows.uncorrectable", "field.143", 1, "remapped_uncorrected", 1),
    ("remapped_rows.pending", "field.144", 1, "remapping_pending", 1),
    ("remapped_rows.failure", "field.145", 1, "remapping_failed", 1),
)
_FACTS = (
    ("memory.total", "memory.total", 2**20, "memory_total_bytes", 1 / 2**20),
    ("power.default_limit", "power_default", 1000, "power_default_watts", 1),
    ("power.min_limit", "power_min", 1000, "power_least_watts", 1),
    ("power.max_limit", "power_max", 1000, "power_most_watts", 1),
    ("clocks.max.sm", "max_clock.1", 1, "sm_clock_most_mhz", 1),
    ("clocks.max.memory", "max_clock.2", 1, "memory_clock_most_mhz", 1),
    ("pcie.link.gen.max", "pcie_max_generation", 1, "pcie_generation_most", 1),
    ("pcie.link.width.max", "pcie_max_width", 1, "pcie_width_most", 1),
    ("mig.mode.current", "mig", 1, "mig_enabled", 1),
    ("ecc.mode.current", "ecc", 1, "ecc_enabled", 1),
    ("persistence_mode", "persistence", 1, "persistence_enabled", 1),
)
_WORDS = {"Enabled": 1, "Disabled": 0, "Yes": 1, "No": 0}


def _number(text):
    """Return the number that nvidia-smi prints, none where it prints that there is none."""
    if text in ("N/A", "[N/A]", "[Not Supported]"):
        return None
    word = text.split(" ")[0]
    if word in _WORDS:
        return _WORDS[word]
    return int(word, 16) if word.startswith("0x") else float(word.lstrip("P"))


@pytest.mark.parametrize("capture", _CAPTURES, ids=lambda one: f"{one['capture']}-{one['load']}")
def test_captured_readings_of_real_cards_are_read_with_causes_of_missing_values(near_nvml, capture):
    near_nvml.say(_script(capture, 0, A))
    nvml = Nvml()
    session = NvmlSession(nvml, CardProcesses(nvml, HostProcesses(), sees_same_pids=True))
    session.open(0.0)
    readings = session.read(0.0, 0.0, slow=True, budget_seconds=10.0)[A]
    device = session.devices[0]
    session.close()
    _check_all(capture, device, readings)


def test_all_captured_cards_are_read_at_once_by_a_sampler(fake_nvml):
    uuids = [f"GPU-{number}" for number in range(len(_CAPTURES))]
    fake_nvml.say(*(_script(capture, number, uuids[number]) for number, capture in enumerate(_CAPTURES)))
    with fake_nvml.supervisor():
        latest = fake_nvml.wait_for(lambda latest: all("pcie_width" in latest.readings(uuid) for uuid in uuids))
    devices = {device.uuid: device for device in latest.inventory.devices}
    for capture, uuid in zip(_CAPTURES, uuids, strict=True):
        _check_all(capture, devices[uuid], latest.readings(uuid))


def _fields(capture):
    return {field: _number(capture["fields"][field]) for field, *_ in (*_READINGS, *_FACTS)}


def _is_wddm(capture):
    return capture["fields"]["driver_model.current"] == "WDDM"


def _script(capture, number, uuid):
    """Return what the library says of such a card."""
    fields = _fields(capture)
    keys = {
        key: round(fields[field] * times)
        for field, key, times, *_ in (*_READINGS, *_FACTS)
        if fields[field] is not None
    }
    keys |= {"uuid": uuid, "name": capture["fields"]["name"]} | ({"driver_model": 0} if _is_wddm(capture) else {})
    return {f"{number}.{key}": value for key, value in keys.items()}


def _check_all(capture, device, readings):
    fields = _fields(capture)
    assert device.name == capture["fields"]["name"]
    assert device.fact("windows_display_driver") == (1 if _is_wddm(capture) else None)
    in_mig_mode = fields["mig.mode.current"] == 1
    for field, _, _, name, factor in _READINGS:
        _check(readings[name], fields[field], factor, name, in_mig_mode=in_mig_mode)
    for field, _, _, name, factor in _FACTS:
        _check(device.facts[name], fields[field], factor, name, in_mig_mode=False)


def _check(reading, expected, factor, name, *, in_mig_mode):
    if expected is not None:
        assert reading.value * factor == pytest.approx(expected), name
        assert not reading.is_implausible
        return
    held_back = name.startswith(("utilization", "memory_controller", "encoder", "decoder", "jpeg", "ofa", "remapp"))
    assert reading.cause is (Cause.MIG if in_mig_mode and held_back else Cause.NOT_SUPPORTED), name


def test_the_captures_contain_the_relevant_missing_values():
    """The patterns that the names of causes were made for are there: MIG, GeForce and Windows."""
    by_card = {one["capture"]: one["fields"] for one in _CAPTURES}
    assert by_card["linux-x86_64__nvidia-h100-mig__590.48.01"]["utilization.gpu"] == "[N/A]"
    assert by_card["linux-x86_64__nvidia-h200__590.48.01"]["fan.speed"] == "[N/A]"
    assert by_card["linux-x86_64__nvidia-geforce-rtx-4080-super__595.71.05"]["temperature.memory"] == "N/A"
    assert by_card["windows-x86_64__nvidia-geforce-rtx-2080-super__610.62"]["persistence_mode"] == "[N/A]"
