"""Linux' drivers of graphics cards: which files of theirs hold which quantity, as data, and what follows from them.

**Source** Linux' Documentation/gpu/amdgpu/thermal.rst, driver-misc.rst, xe_gt_freq.c, xe_gt_idle.c,
Documentation/ABI/testing/sysfs-driver-intel-{i915,xe}-hwmon, as of Linux 6.12.
"""

import re
from typing import Final, NamedTuple

from planner.monitor.host.usage import CounterRates, EnergyMeter
from planner.monitor.readings.metrics import BY_NAME, CLOCK_REASONS, checked_reading
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.sources.files import CardFiles, FileQuantity, pcie_generation
from planner.units import MICRO, MILLI, PER_CENT

# Offset of `indep_throttle_status`, the reasons that are numbered alike for all chips, by format and revision of the
# table. Data-centre GPUs since MI300 and the newest APUs have no such field.
_OFFSETS: Final = {b"\1\3": 112, b"\2\2": 120, b"\2\3": 120, b"\2\4": 120}
_WIDTH: Final = 8
_NOT_FILLED: Final = (1 << 8 * _WIDTH) - 1
_BITS: Final = {reason.name: reason.bit for reason in CLOCK_REASONS}
_REASONS: Final = (
    # Package power (PPT0 to SPPT_APU).
    (range(8), "power-cap"),
    # Sustained and peak currents (TDC, EDC, APCC).
    (range(16, 24), "hardware-slowdown"),
    # Chip, memory, voltage regulators and liquid at their limits (TEMP_…).
    (range(32, 44), "software-thermal"),
    # Signals of the regulators and the board (VRHOT, PROCHOT).
    (range(44, 48), "hardware-thermal"),
)
"""Bits of the field by their nearest counterpart among the clock reasons."""


def amd_clock_reasons(table: bytes) -> float | None:
    """Return the clock reasons that a table tells, None if it has no field for them that all chips share.

    **Source** Linux 6.12, drivers/gpu/drm/amd/include/kgd_pp_interface.h (`gpu_metrics_v1_3`, `gpu_metrics_v2_2` to
    `v2_4`), and pm/swsmu/inc/amdgpu_smu.h (`SMU_THROTTLER_…_BIT`); fields that a chip does not fill are all ones.
    """
    offset = _OFFSETS.get(table[2:4])
    if offset is None or len(table) < offset + _WIDTH:
        return None
    status = int.from_bytes(table[offset : offset + _WIDTH], "little")
    if status == _NOT_FILLED:
        return None
    return float(sum({_BITS[name] for bits, name in _REASONS if any(status >> bit & 1 for bit in bits)}))


_PWM: Final = 255

_LINK: Final = (
    FileQuantity("pcie_generation", ("device/current_link_speed",), parse=pcie_generation),
    FileQuantity("pcie_width", ("device/current_link_width",)),
)
_LINK_FACTS: Final = (
    FileQuantity("pcie_generation_most", ("device/max_link_speed",), parse=pcie_generation),
    FileQuantity("pcie_width_most", ("device/max_link_width",)),
)


class DrmDriver(NamedTuple):
    """Files of a driver by the quantities that they hold.

    `idle_counters` are milliseconds in which a part of the GPU (a GT) was in its idle state. `throttling` begins the
    paths of files that say 1 while the reason in their names lowers the clock; amdgpu's reasons are in `table`.
    """

    name: str
    vendor: str
    fast: tuple[FileQuantity, ...] = ()
    slow: tuple[FileQuantity, ...] = ()
    facts: tuple[FileQuantity, ...] = ()
    idle_counters: tuple[str, ...] = ()
    throttling: str = ""
    table: str = ""


def _error_count(kind: str) -> FileQuantity:
    def parse(text: str) -> float:
        found = re.search(rf"\b{kind}:\s*(\d+)", text)
        if found is None:
            raise ValueError(text)
        return float(found[1])

    names = {"ce": "ecc_corrected", "ue": "ecc_uncorrected"}
    return FileQuantity(names[kind], ("device/ras/umc_err_count",), parse=parse)


def _retired_pages(text: str) -> float:
    return len(re.findall(r":\s*R\s*$", text, re.MULTILINE))


def _pages_are_pending(text: str) -> float:
    return float(re.search(r":\s*P\s*$", text, re.MULTILINE) is not None)


def _highest_level(text: str) -> float:
    """Return the highest clock in MHz of a table of levels, such as `1: 2500Mhz *`."""
    return max(map(float, re.findall(r":\s*(\d+)\s*[Mm][Hh]z", text)))


AMDGPU: Final = DrmDriver(
    "amdgpu",
    "AMD",
    fast=(
        FileQuantity("utilization_fraction", ("device/gpu_busy_percent",), PER_CENT),
        FileQuantity("memory_controller_fraction", ("device/mem_busy_percent",), PER_CENT),
        FileQuantity("memory_used_bytes", ("device/mem_info_vram_used",)),
        FileQuantity("shared_memory_used_bytes", ("device/mem_info_gtt_used",)),
        FileQuantity("power_reported_watts", ("device/hwmon/*/power1_average", "device/hwmon/*/power1_input"), MICRO),
        FileQuantity(
            "temperature_celsius",
            ("device/hwmon/*/temp*_input@edge", "device/hwmon/*/temp*_input@junction", "device/hwmon/*/temp1_input"),
            MILLI,
        ),
        FileQuantity("hotspot_temperature_celsius", ("device/hwmon/*/temp*_input@junction",), MILLI),
        FileQuantity("memory_temperature_celsius", ("device/hwmon/*/temp*_input@mem",), MILLI),
        FileQuantity("sm_clock_mhz", ("device/hwmon/*/freq*_input@sclk",), MICRO),
        FileQuantity("memory_clock_mhz", ("device/hwmon/*/freq*_input@mclk",), MICRO),
    ),
    slow=(
        FileQuantity("fan_fraction", ("device/hwmon/*/pwm1",), _PWM),
        FileQuantity("power_limit_watts", ("device/hwmon/*/power1_cap",), MICRO),
        *_LINK,
        FileQuantity("pcie_replays", ("device/pcie_replay_count",)),
        _error_count("ce"),
        _error_count("ue"),
        FileQuantity("retired_uncorrected", ("device/ras/gpu_vram_bad_pages",), parse=_retired_pages),
        FileQuantity("retirement_pending", ("device/ras/gpu_vram_bad_pages",), parse=_pages_are_pending),
    ),
    facts=(
        FileQuantity("memory_total_bytes", ("device/mem_info_vram_total",)),
        FileQuantity("shared_memory_total_bytes", ("device/mem_info_gtt_total",)),
        FileQuantity("power_default_watts", ("device/hwmon/*/power1_cap_default",), MICRO),
        FileQuantity("power_least_watts", ("device/hwmon/*/power1_cap_min",), MICRO),
        FileQuantity("power_most_watts", ("device/hwmon/*/power1_cap_max",), MICRO),
        FileQuantity("sm_clock_most_mhz", ("device/pp_dpm_sclk",), parse=_highest_level),
        FileQuantity("memory_clock_most_mhz", ("device/pp_dpm_mclk",), parse=_highest_level),
        FileQuantity("slowdown_celsius", ("device/hwmon/*/temp1_crit",), MILLI),
        FileQuantity("shutdown_celsius", ("device/hwmon/*/temp1_emergency",), MILLI),
        *_LINK_FACTS,
    ),
    table="device/gpu_metrics",
)

_INTEL_ENERGY: Final = FileQuantity(
    "energy_joules", ("device/hwmon/*/energy1_input", "device/hwmon/*/energy2_input"), MICRO
)
_INTEL_LIMIT: Final = FileQuantity(
    "power_limit_watts",
    ("device/hwmon/*/power1_max", "device/hwmon/*/power1_cap", "device/hwmon/*/power2_max"),
    MICRO,
)
_INTEL_DEFAULT: Final = FileQuantity(
    "power_default_watts", ("device/hwmon/*/power1_rated_max", "device/hwmon/*/power2_rated_max"), MICRO
)

I915: Final = DrmDriver(
    "i915",
    "Intel",
    fast=(
        _INTEL_ENERGY,
        FileQuantity("temperature_celsius", ("device/hwmon/*/temp1_input",), MILLI),
        FileQuantity("sm_clock_mhz", ("gt/gt0/rps_act_freq_mhz", "gt_act_freq_mhz")),
    ),
    slow=(_INTEL_LIMIT, *_LINK),
    facts=(
        FileQuantity("sm_clock_most_mhz", ("gt/gt0/rps_RP0_freq_mhz", "gt_RP0_freq_mhz")),
        _INTEL_DEFAULT,
        *_LINK_FACTS,
    ),
    idle_counters=("gt/gt*/rc6_residency_ms", "power/rc6_residency_ms"),
    throttling="gt/gt0/throttle_reason_",
)
XE: Final = DrmDriver(
    "xe",
    "Intel",
    fast=(
        _INTEL_ENERGY,
        FileQuantity("temperature_celsius", ("device/hwmon/*/temp*_input@pkg",), MILLI),
        FileQuantity("memory_temperature_celsius", ("device/hwmon/*/temp*_input@vram",), MILLI),
        FileQuantity("sm_clock_mhz", ("device/tile0/gt0/freq0/act_freq",)),
    ),
    slow=(_INTEL_LIMIT, *_LINK),
    facts=(
        FileQuantity("sm_clock_most_mhz", ("device/tile0/gt0/freq0/rp0_freq",)),
        _INTEL_DEFAULT,
        *_LINK_FACTS,
    ),
    idle_counters=("device/tile*/gt*/gtidle/idle_residency_ms",),
    throttling="device/tile0/gt0/freq0/throttle/reason_",
)
NOUVEAU: Final = DrmDriver(
    "nouveau",
    "NVIDIA",
    fast=(FileQuantity("temperature_celsius", ("device/hwmon/*/temp1_input",), MILLI),),
    slow=(FileQuantity("fan_fraction", ("device/hwmon/*/pwm1",), PER_CENT), *_LINK),
    facts=_LINK_FACTS,
)
DRIVERS: Final = {driver.name: driver for driver in (AMDGPU, I915, XE, NOUVEAU)}
"""Every driver whose GPUs are shown, by name. NVIDIA's own is read through NVML."""

# Intel's reasons by their nearest counterpart among the clock reasons: PL1, PL2 and PL4 are power limits, RATL is the
# running average thermal limit, PROCHOT and VR_THERMALERT come from the hardware, VR_TDC is a limit of the current.
_INTEL_REASONS: Final = {
    "pl1": "power-cap",
    "pl2": "power-cap",
    "pl4": "power-cap",
    "thermal": "software-thermal",
    "ratl": "software-thermal",
    "prochot": "hardware-thermal",
    "vr_thermalert": "hardware-thermal",
    "vr_tdc": "hardware-slowdown",
}
_VOLTAGE_OF_NORTHBRIDGE: Final = "device/hwmon/*/in1_input@vddnb"


class DrmCard:
    """Readings of one GPU through the files of its driver."""

    def __init__(self, files: CardFiles, driver: DrmDriver) -> None:
        self.files, self.driver = files, driver
        # Only APUs have a northbridge whose voltage is reported (amdgpu, thermal.rst).
        self._is_apu = driver is AMDGPU and files.has(_VOLTAGE_OF_NORTHBRIDGE)
        self._rates, self._energy = CounterRates(), EnergyMeter()

    def facts(self) -> dict[str, Reading]:
        """Return the fixed properties of the GPU."""
        facts = self.files.readings(self.driver.facts)
        if self._is_apu:
            facts["unified_memory"] = Reading(1)
            facts["memory_total_bytes"] = _sum(facts, "memory_total_bytes", "shared_memory_total_bytes")
        return facts

    def read(self, now: float, *, slow: bool) -> dict[str, Reading]:
        """Return the readings of the GPU at the monotonic time `now`."""
        readings = self.files.readings(self.driver.fast)
        if self._is_apu:
            # What is set aside and what is mapped from the rest of the RAM (GTT) is equally fast.
            readings["memory_used_bytes"] = _sum(readings, "memory_used_bytes", "shared_memory_used_bytes")
        readings |= self._power_readings(readings, now)
        if self.driver.idle_counters:
            readings["utilization_fraction"] = self._utilization(now)
        if self.driver.throttling:
            readings |= self._clock_reasons()
        if self.driver.table and (reasons := amd_clock_reasons(self.files.content(self.driver.table))) is not None:
            readings["clock_reasons"] = Reading(reasons)
        return readings | (self.files.readings(self.driver.slow) if slow else {})

    def _power_readings(self, readings: dict[str, Reading], now: float) -> dict[str, Reading]:
        """Return the power that the driver reports, or else the mean power from its counter of energy."""
        reported, energy = readings.get("power_reported_watts"), readings.get("energy_joules")
        if reported is not None:
            return {"power_watts": reported}
        if energy is None or energy.value is None:
            return {} if energy is None else {"power_watts": energy}
        watts = self._energy.watts(now, energy.value)
        return {
            "power_watts": missing(Cause.NOT_YET) if watts is None else checked_reading(BY_NAME["power_watts"], watts)
        }

    def _utilization(self, now: float) -> Reading:
        """Return the share of time in which the busiest part of the GPU was not in its idle state."""
        counters = next(filter(None, map(self.files.numbers, self.driver.idle_counters)), ())
        if not counters:
            return missing(Cause.NOT_SUPPORTED)
        rates = [self._rates.per_second(f"idle {part}", now, counter) for part, counter in enumerate(counters)]
        shares = [rate / MILLI for rate in rates if rate is not None]
        # The counter is read a moment after the clock.
        return Reading(min(max(1 - min(shares), 0.0), 1.0)) if shares else missing(Cause.NOT_YET)

    def _clock_reasons(self) -> dict[str, Reading]:
        found = {name: self.files.numbers(f"{self.driver.throttling}{name}") for name in _INTEL_REASONS}
        bits = {_BITS[_INTEL_REASONS[name]] for name, numbers in found.items() if any(numbers)}
        return {"clock_reasons": Reading(sum(bits))} if any(found.values()) else {}


def _sum(readings: dict[str, Reading], *names: str) -> Reading:
    known = [readings[name] for name in names if name in readings]
    if not known:
        return missing(Cause.NOT_SUPPORTED)
    values = [reading.value for reading in known if reading.value is not None]
    return Reading(sum(values)) if len(values) == len(known) else next(each for each in known if each.value is None)
