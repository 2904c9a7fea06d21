"""Programs that read a GPU line by line."""

import json
import os
from time import monotonic

import pytest

from planner.monitor.readings.faults import FaultKind
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.sources import programs
from planner.monitor.sources.programs import (
    LineProgram,
    ProgramSource,
    apple_source,
    jetson_source,
    macmon_values,
    tegrastats_values,
)
from planner.monitor.sources.source import SourceFailedError

GIB = 2**30
# macmon's readme, shortened; the second line has the names of versions before 0.8.
MACMON = {
    "temp": {"cpu_temp_avg": 43.7, "gpu_temp_avg": 36.9},
    "memory": {"ram_total": 24 * GIB, "ram_usage": 20 * GIB},
    "fans": [{"name": "fan0", "rpm": 980, "max_rpm": 4900}, {"name": "fan1", "rpm": 0, "max_rpm": 0}],
    "gpu_freq_mhz": 461,
    "gpu_active_ratio": 0.09,
    "gpu_power": 0.25,
}
OLD_MACMON = {"gpu_usage": [461, 0.02], "gpu_power": 0.25}
# Lines of an AGX Orin and of a Thor, whose line has no share of time.
ORIN = (
    "RAM 2448/7772MB (lfb 4x4MB) SWAP 0/3886MB CPU [12%@729,off] EMC_FREQ 7%@2133 GR3D_FREQ 61%@[1007,1007] "
    "cpu@45.5C gpu@44.2C VDD_GPU_SOC 5139mW/5100mW VDD_CPU_CV 1000mW/1000mW"
)
THOR = "RAM 4722/7844MB (lfb 1x512kB) EMC_FREQ 2%@1866 GR3D_FREQ @[1000,1000,1000] gpu@40C VDD_GPU 2000mW/2000mW"


def _program(tmp_path, monkeypatch, name, script):
    path = tmp_path / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return path


def _line_of(program):
    while not program.line and not program.has_ended:
        pass
    return program.line


def test_what_macmon_prints():
    assert macmon_values(json.dumps(MACMON)) == {
        "utilization_fraction": 0.09,
        "sm_clock_mhz": 461,
        "power_watts": 0.25,
        "power_reported_watts": 0.25,
        "temperature_celsius": 36.9,
        "memory_used_bytes": 20 * GIB,
        "memory_free_bytes": 4 * GIB,
        "fan_fraction": 0.2,
    }
    old = macmon_values(json.dumps(OLD_MACMON))
    assert (old["utilization_fraction"], old["sm_clock_mhz"]) == (0.02, 461)
    assert (old["memory_used_bytes"], old["memory_free_bytes"], old["fan_fraction"]) == (None, None, None)


def test_what_tegrastats_prints():
    assert tegrastats_values(ORIN) == {
        "utilization_fraction": 0.61,
        "sm_clock_mhz": 1007,
        "memory_controller_fraction": 0.07,
        "memory_clock_mhz": 2133,
        "memory_used_bytes": 2448 * 2**20,
        "memory_free_bytes": (7772 - 2448) * 2**20,
        "temperature_celsius": 44.2,
        "power_watts": 5.139,
        "power_reported_watts": 5.139,
    }
    thor = tegrastats_values(THOR)
    assert (thor["utilization_fraction"], thor["sm_clock_mhz"], thor["power_watts"]) == (None, 1000, 2)
    bare = tegrastats_values("RAM 1/2MB")
    assert {name for name, value in bare.items() if value is not None} == {"memory_used_bytes", "memory_free_bytes"}
    with pytest.raises(ValueError, match="hello"):
        tegrastats_values("hello")


@pytest.fixture
def made_source():
    made = []

    def make(*, is_expected=True):
        device = Device("Apple-0", "Apple M4 GPU", 0, driver="macmon")
        made.append(ProgramSource(device, ("macmon", "pipe"), macmon_values, is_expected=is_expected))
        return made[-1]

    yield make
    for source in made:
        source.close()


def test_a_gpu_is_read_by_its_program(tmp_path, monkeypatch, made_source):
    _program(tmp_path, monkeypatch, "macmon", f"echo '{json.dumps(MACMON)}'; exec sleep 60")
    source = made_source()
    (device,) = source.find(0.0)
    assert _line_of(source._program)
    assert source.read(device, monotonic(), slow=True)["utilization_fraction"] == Reading(0.09)
    assert source.processes((device,), 0.0) == ()
    # A program that has not printed for some seconds does not answer.
    silent = source.read(device, monotonic() + 60, slow=False)
    assert set(silent.values()) == {missing(Cause.NO_ANSWER)}
    running = source._program
    assert source.find(4.0) == (device,)
    assert source._program is running


@pytest.mark.parametrize("line", ["[1, 2", "[]", '{"temp": 5}', '{"fans": [{"max_rpm": 2}]}', '{"gpu_usage": [1]}'])
def test_lines_that_are_none_of_it_are_unreadable(tmp_path, monkeypatch, made_source, line):
    _program(tmp_path, monkeypatch, "macmon", f"echo '{line}'; exec sleep 60")
    source = made_source()
    (device,) = source.find(0.0)
    assert _line_of(source._program)
    assert source.read(device, monotonic(), slow=False)["power_watts"] == missing(Cause.UNREADABLE)


def test_a_program_that_ended_is_started_again(tmp_path, monkeypatch, made_source):
    _program(tmp_path, monkeypatch, "macmon", "exit 3")
    source = made_source()
    (device,) = source.find(0.0)
    first = source._program
    first._process.wait()
    assert source.read(device, monotonic(), slow=False)["power_watts"] == missing(Cause.NOT_YET)
    source.find(4.0)
    assert source._program is not first


def test_a_gpu_without_its_program_is_listed(monkeypatch, made_source, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert made_source(is_expected=False).find(0.0) == ()
    source = made_source()
    with pytest.raises(SourceFailedError, match="macmon") as caught:
        source.find(0.0)
    (device,) = caught.value.devices
    assert caught.value.kind is FaultKind.HELPER_MISSING
    assert source.read(device, 1.0, slow=False)["utilization_fraction"] == missing(Cause.NO_HELPER)


def test_a_program_that_cannot_be_started_is_named(tmp_path, monkeypatch, made_source):
    _program(tmp_path, monkeypatch, "macmon", "").write_text("#!/no/such/program\n")
    with pytest.raises(SourceFailedError, match=r"macmon: No such file") as caught:
        made_source().find(0.0)
    assert caught.value.kind is FaultKind.SOURCE_FAILED


def test_a_program_that_ignores_the_request_to_end_is_killed(tmp_path, monkeypatch):
    path = _program(tmp_path, monkeypatch, "stubborn", "trap '' TERM; echo on; while :; do sleep 0.05; done")
    monkeypatch.setattr(programs, "_END_SECONDS", 0.1)
    program = LineProgram((str(path),))
    assert _line_of(program) == "on\n"
    program.close()
    assert program.has_ended


def test_the_chip_of_a_mac_has_its_name(monkeypatch):
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    monkeypatch.setattr("planner.monitor.sources.programs._SYSCTL", ("echo", "Apple M4 Max"))
    assert apple_source()._device.name == "Apple M4 Max GPU"
    monkeypatch.setattr("planner.monitor.sources.programs._SYSCTL", ("/no/such/program",))
    assert apple_source()._device.name == "Apple chip GPU"


def test_a_jetson_has_the_name_of_its_board(tmp_path):
    assert jetson_source(tmp_path)._device.name == "NVIDIA Jetson"
    (tmp_path / "proc/device-tree").mkdir(parents=True)
    (tmp_path / "proc/device-tree/model").write_bytes(b"NVIDIA Jetson AGX Orin\0")
    assert jetson_source(tmp_path)._device.name == "NVIDIA Jetson AGX Orin"
