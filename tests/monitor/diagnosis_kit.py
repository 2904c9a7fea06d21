"""Histories for tests of the diagnosis: real recordings, captures, and generated shapes."""

import json
from pathlib import Path

from planner.monitor.diagnosis.time_series import TimeSeries
from planner.monitor.history import History
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess, HostProcess, Sample
from planner.units import GIB, MIB

UUID = "GPU-one"
OTHER = "GPU-two"
_DATA = Path(__file__).parent / "data"
RECORDINGS = {one["name"]: one for one in json.loads((_DATA / "training_recordings.json").read_text())}
CAPTURES = json.loads((_DATA / "nvidia_smi_captures.json").read_text())["captures"]

FACTS = {"memory_total_bytes": 24 * GIB, "sm_clock_most_mhz": 2000}
# A card in steady use that draws 60 % of its limit.
ORDINARY = {
    "utilization_fraction": 0.95,
    "memory_controller_fraction": 0.4,
    "memory_used_bytes": 18 * GIB,
    "power_watts": 210.0,
    "power_limit_watts": 350.0,
    "sm_clock_mhz": 1950,
    "clock_reasons": 0,
    "temperature_celsius": 65,
    "encoder_fraction": 0.0,
    "decoder_fraction": 0.0,
    "pcie_transmit_bytes_per_s": 1e8,
    "pcie_receive_bytes_per_s": 2e8,
    "pcie_generation": 4,
    "pcie_width": 16,
}
# What the driver itself and a small desktop hold.
IDLE = {"utilization_fraction": 0.0, "memory_used_bytes": 0.4 * GIB}
ORDINARY_HOST = {"cpu_fraction": 0.3, "io_wait_fraction": 0.0}


def a_device(uuid=UUID, facts=FACTS, **fields):
    return Device(uuid, "NVIDIA Test", 0, facts={name: Reading(value) for name, value in facts.items()}, **fields)


def a_process(uuid=UUID, memory=4 * GIB, pid=1, command="python train.py", cpu=0.5, kind="compute", user="ada"):
    held = missing(Cause.NOT_SUPPORTED) if memory is None else Reading(memory)
    host = HostProcess("python", user, command, 0.0, cpu, GIB, is_own=True)
    return CardProcess(pid, uuid, kind, held, host=host)


def reading(value):
    return value if isinstance(value, Reading) else Reading(value)


def a_history(
    seconds=150, every=1.0, host=None, processes=(), cores=8, devices=None, faults=(), inventory=None, **changes
):
    """Return a history of one card, or of those in `devices` (UUID → changes); a change is a value or one of time."""
    history = History()
    cards = {UUID: changes} if devices is None else devices
    history.note(inventory or Inventory("580", devices=tuple(a_device(uuid) for uuid in cards), faults=faults))
    values = {uuid: {**ORDINARY, **card} for uuid, card in cards.items()}
    machine = {**ORDINARY_HOST, **(host or {})}
    for step in range(int(seconds / every) + 1):
        time = step * every
        history.note(
            Sample(
                time,
                1e9 + time,
                {uuid: _at(card, time) for uuid, card in values.items()},
                _at(machine, time),
                cores=(0.3,) * cores,
                processes=tuple(processes),
            )
        )
    return history


def _at(values, time):
    now = {name: value(time) if callable(value) else value for name, value in values.items()}
    return {name: reading(value) for name, value in now.items() if value is not None}


def a_recording(name, facts=FACTS, until=None, host=None, **constant):
    """Return the history of a real recording; `constant` adds what it does not hold."""
    recording = RECORDINGS[name]
    history = History()
    history.note(Inventory("580", devices=(a_device(facts=facts),)))
    for row in recording["rows"]:
        told = dict(zip(recording["columns"], row, strict=True))
        time = told.pop("seconds")
        if until is None or time <= until:
            readings = {name: Reading(value) for name, value in (_ours(*one) for one in told.items())}
            history.note(Sample(time, 1e9 + time, {UUID: {**readings, **_at(constant, time)}}, _at(host or {}, time)))
    return history


def _ours(name, value):
    if name.endswith("_percent"):
        return name.replace("_percent", "_fraction"), value / 100
    return (name.replace("_mib", "_bytes"), value * MIB) if name.endswith("_mib") else (name, value)


_CAPTURED = {
    "utilization_fraction": ("utilization.gpu", 0.01),
    "memory_controller_fraction": ("utilization.memory", 0.01),
    "encoder_fraction": ("utilization.encoder", 0.01),
    "decoder_fraction": ("utilization.decoder", 0.01),
    "memory_used_bytes": ("memory.used", MIB),
    "power_watts": ("power.draw", 1),
    "power_limit_watts": ("enforced.power.limit", 1),
    "clock_reasons": ("clocks_event_reasons.active", 1),
    "pcie_generation": ("pcie.link.gen.current", 1),
    "pcie_width": ("pcie.link.width.current", 1),
    "temperature_celsius": ("temperature.gpu", 1),
    "sm_clock_mhz": ("clocks.current.sm", 1),
}
_CAPTURED_FACTS = {"memory_total_bytes": ("memory.total", MIB), "sm_clock_most_mhz": ("clocks.max.sm", 1)}


def a_capture(capture, processes=()):
    """Return the history of a card that stays as nvidia-smi once showed it."""
    cause = Cause.MIG if "mig" in capture["capture"] else Cause.NOT_SUPPORTED
    facts = {name: _number(capture["fields"][field], scale) for name, (field, scale) in _CAPTURED_FACTS.items()}
    shown = {name: _number(capture["fields"][field], scale) for name, (field, scale) in _CAPTURED.items()}
    readings = {name: missing(cause) if value is None else Reading(value) for name, value in shown.items()}
    known = {**dict.fromkeys(ORDINARY), **readings}
    return a_history(inventory=Inventory("580", devices=(a_device(facts=facts),)), processes=processes, **known)


def _number(text, scale):
    if "N/A" in text:
        return None
    word = text.split(" ")[0]
    return int(word, 16) if word.startswith("0x") else float(word) * scale


GPM = {"graphics_active_fraction": 0.95, "sm_active_fraction": 0.9, "tensor_active_fraction": 0.2}


def imbalanced(first=0.95, second=0.5, **changes):
    same = {"command": "python train.py --local_rank=0"}, {"command": "python train.py --local_rank=1", **changes}
    processes = [a_process(UUID, pid=1, **same[0]), a_process(OTHER, pid=2, **same[1])]
    cards = {UUID: {"utilization_fraction": first}, OTHER: {"utilization_fraction": second}}
    return a_history(devices=cards, processes=processes)


def stretch(*values, every=1.0):
    return TimeSeries(tuple(place * every for place in range(len(values))), values)
