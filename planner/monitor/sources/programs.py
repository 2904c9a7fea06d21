"""Programs that print readings line by line: macmon on Apple's chips, tegrastats on NVIDIA's Jetson."""

import json
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import IO, Any, Final

import psutil

from planner.monitor.driver_calls import DriverCalls
from planner.monitor.host.environment import text_of
from planner.monitor.readings.faults import FaultKind
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess
from planner.monitor.sources.source import SourceFailedError, readings_of
from planner.units import MIB, MILLI, PER_CENT

_END_SECONDS: Final = 2.0
# A line is due every second.
_LATE_SECONDS: Final = 5.0
_SYSCTL: Final = ("/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string")
_LONGEST_LINE: Final = 1 << 16

Values = Mapping[str, float | None]
"""Values of quantities by name, None if a line does not say them."""

# What is missing while a program says nothing.
_NAMES: Final = (
    "utilization_fraction",
    "sm_clock_mhz",
    "power_watts",
    "power_reported_watts",
    "temperature_celsius",
    "memory_used_bytes",
    "memory_free_bytes",
)


class LineProgram:
    """A program that runs beside this one, with the last line that it printed and the time of that line."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace"
        )
        self.line, self.read_at = "", monotonic()
        self._thread = Thread(target=self._read_lines, args=(self._process.stdout,), name=command[0], daemon=True)
        self._thread.start()

    @property
    def has_ended(self) -> bool:
        """Return whether the program has ended."""
        return self._process.poll() is not None

    def close(self) -> None:
        """End the program."""
        self._process.terminate()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        # Its child may hold the pipe: the thread then ends with this process.
        self._thread.join(_END_SECONDS)

    def _read_lines(self, lines: IO[str]) -> None:
        with lines:
            while line := lines.readline(_LONGEST_LINE):
                self.line, self.read_at = line, monotonic()


class ProgramSource:
    """The one GPU of a chip whose memory is the CPU's, read by a program; `parse` returns what a line says.

    `is_expected` says whether this machine has such a chip, so that the program is missed.
    """

    def __init__(
        self, device: Device, command: Sequence[str], parse: Callable[[str], Values], *, is_expected: bool
    ) -> None:
        self.calls = DriverCalls()
        self._device, self._command, self._parse, self._is_expected = device, command, parse, is_expected
        self._program: LineProgram | None = None

    def find(self, _now: float) -> tuple[Device, ...]:
        """Return the GPU, and start the program if it does not run.

        Raises:
            SourceFailedError: If the program is not installed on a machine that has such a chip, or does not start.
        """
        path = shutil.which(self._command[0])
        if self._program is not None and (path is None or self._program.has_ended):
            self.close()
        if path is None:
            if not self._is_expected:
                return ()
            raise SourceFailedError(FaultKind.HELPER_MISSING, self._command[0], (self._device,))
        if self._program is None:
            try:
                self._program = LineProgram((path, *self._command[1:]))
            except OSError as error:
                raise SourceFailedError(
                    FaultKind.SOURCE_FAILED, f"{path}: {error.strerror}", (self._device,)
                ) from error
        return (self._device,)

    def read(self, _device: Device, now: float, *, slow: bool) -> dict[str, Reading]:
        """Return what the last line says, or why it says nothing."""
        del slow
        program = self._program
        if program is None:
            return dict.fromkeys(_NAMES, missing(Cause.NO_HELPER))
        if now - program.read_at > _LATE_SECONDS:
            return dict.fromkeys(_NAMES, missing(Cause.NO_ANSWER))
        if not program.line:
            return dict.fromkeys(_NAMES, missing(Cause.NOT_YET))
        try:
            return readings_of(self._parse(program.line))
        except (ValueError, TypeError, KeyError, AttributeError, IndexError):
            return dict.fromkeys(_NAMES, missing(Cause.UNREADABLE))

    def processes(self, _devices: Collection[Device], _now: float) -> tuple[CardProcess, ...]:
        """Return none: the programs print nothing of processes."""
        return ()

    def close(self) -> None:
        """End the program."""
        if self._program is not None:
            self._program.close()
            self._program = None


def macmon_values(line: str) -> Values:
    """Return what a line of `macmon pipe` says; the memory is that of the whole machine.

    **Source** macmon's readme, 0e8f26f (2026-11). Before version 0.8, the share of time was `gpu_usage`, a pair of the
    clock in MHz and the share.
    """
    told: dict[str, Any] = json.loads(line)
    old = told.get("gpu_usage") or (None, None)
    memory, temperature = told.get("memory") or {}, told.get("temp") or {}
    fans = [fan for fan in told.get("fans") or () if fan.get("max_rpm")]
    used, total = memory.get("ram_usage"), memory.get("ram_total")
    return {
        "utilization_fraction": _first(told.get("gpu_active_ratio"), old[1]),
        "sm_clock_mhz": _first(told.get("gpu_freq_mhz"), old[0]),
        "power_watts": told.get("gpu_power"),
        "power_reported_watts": told.get("gpu_power"),
        "temperature_celsius": temperature.get("gpu_temp_avg"),
        "memory_used_bytes": used,
        "memory_free_bytes": None if used is None or total is None else total - used,
        "fan_fraction": max((fan["rpm"] / fan["max_rpm"] for fan in fans), default=None),
    }


_RAM: Final = re.compile(r"\bRAM (\d+)/(\d+)MB")
_GPU: Final = re.compile(r"\bGR3D_FREQ (?:(\d+)%)?(?:@\[?(\d+))?")
_CONTROLLER: Final = re.compile(r"\bEMC_FREQ (\d+)%(?:@(\d+))?")
_TEMPERATURE: Final = re.compile(r"\b(?:gpu|GPU)@(-?[\d.]+)C")
# The rail of the GPU, on Orin together with the CPU or other parts; before Orin, also without the `m` of the unit.
_POWER: Final = re.compile(r"\b(?:VDD_GPU_SOC|VDD_CPU_GPU_CV|VDD_GPU|POM_5V_GPU|GPU) (\d+)(?:mW)?/")


def tegrastats_values(line: str) -> Values:
    """Return what a line of tegrastats says; the memory is that of the whole machine, and the power that of a rail.

    **Source** NVIDIA Jetson Linux Developer Guide, tegrastats utility; sizes are in MiB, power in mW, clocks in MHz.

    Raises:
        ValueError: If the line is none of tegrastats.
    """
    ram, gpu = _RAM.search(line), _GPU.search(line)
    if ram is None:
        raise ValueError(line)
    controller, temperature, power = _CONTROLLER.search(line), _TEMPERATURE.search(line), _POWER.search(line)
    watts = None if power is None else float(power[1]) / MILLI
    used, total = float(ram[1]), float(ram[2])
    return {
        # Thor's line has the clocks only.
        "utilization_fraction": float(gpu[1]) / PER_CENT if gpu is not None and gpu[1] else None,
        "sm_clock_mhz": float(gpu[2]) if gpu is not None and gpu[2] else None,
        "memory_controller_fraction": None if controller is None else float(controller[1]) / PER_CENT,
        "memory_clock_mhz": float(controller[2]) if controller is not None and controller[2] else None,
        "memory_used_bytes": used * MIB,
        "memory_free_bytes": (total - used) * MIB,
        "temperature_celsius": None if temperature is None else float(temperature[1]),
        "power_watts": watts,
        "power_reported_watts": watts,
    }


def apple_source() -> ProgramSource:
    """Return the GPU of an Apple chip, which macmon reads without an administrator's rights."""
    is_apple = platform.system() == "Darwin" and platform.machine() == "arm64"
    name = _mac_chip() if is_apple else ""
    facts = {"unified_memory": Reading(1), "memory_total_bytes": Reading(psutil.virtual_memory().total)}
    device = Device("Apple-0", f"{name or 'Apple chip'} GPU", 0, driver="macmon", facts=facts)
    return ProgramSource(device, ("macmon", "pipe", "-i", "1000"), macmon_values, is_expected=is_apple)


def jetson_source(root: Path) -> ProgramSource:
    """Return the GPU of a Jetson, which tegrastats reads; `root` is the root of the file system."""
    model = text_of(root / "proc/device-tree/model").strip("\0\n ")
    facts = {"unified_memory": Reading(1), "memory_total_bytes": Reading(psutil.virtual_memory().total)}
    device = Device("Jetson-0", model or "NVIDIA Jetson", 0, driver="tegrastats", facts=facts)
    is_jetson = (root / "etc/nv_tegra_release").exists()
    return ProgramSource(device, ("tegrastats", "--interval", "1000"), tegrastats_values, is_expected=is_jetson)


def _mac_chip() -> str:
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(_SYSCTL, capture_output=True, text=True, timeout=_END_SECONDS, check=True).stdout.strip()
    return ""


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)
