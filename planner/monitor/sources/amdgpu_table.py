"""amdgpu's table of metrics (the file `gpu_metrics`): why the clock is lowered."""

from typing import Final

from planner.monitor.readings.clock_reasons import CLOCK_REASONS

# Offset of `indep_throttle_status`, the reasons that are numbered alike for all chips, by format and revision of the
# table. Data-centre cards since MI300 and the newest APUs have no such field.
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
