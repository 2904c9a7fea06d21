"""NVML's clock event reasons: names and titles of the bits that explain a lowered clock."""

from typing import Final, NamedTuple


class ClockReason(NamedTuple):
    """One bit of NVML's clock reasons; `slows` marks a reason that lowers the clock involuntarily."""

    bit: int
    name: str
    title: str
    slows: bool


CLOCK_REASONS: Final = (
    ClockReason(0x1, "idle", "idle", slows=False),
    ClockReason(0x2, "application-clocks", "clocks set by hand", slows=False),
    ClockReason(0x4, "power-cap", "power limit", slows=True),
    ClockReason(0x8, "hardware-slowdown", "slowed by the hardware: heat, power brake or supply", slows=True),
    ClockReason(0x10, "sync-boost", "synchronized with other cards", slows=True),
    ClockReason(0x20, "software-thermal", "slowed by heat: at the target temperature", slows=True),
    ClockReason(0x40, "hardware-thermal", "slowed by heat: near the hardware's limit", slows=True),
    ClockReason(0x80, "power-brake", "slowed by the machine's power supply", slows=True),
    ClockReason(0x100, "display-clocks", "clocks set by the display", slows=False),
)
"""Every clock reason, by ascending bit. **Source** nvml.h, nvmlClocksEventReasons."""


def slowing_reasons(bits: int, utilization: float | None) -> tuple[ClockReason, ...]:
    """Return the clock reasons in `bits` that slow a card down.

    The power-cap bit is meaningless on an idle card: it is set at 39 W of 250 W (nvidia-smi of an
    RTX 2080 Super, nvidia_gpu_exporter, internal/captures, MIT).
    """
    return tuple(
        reason
        for reason in CLOCK_REASONS
        if reason.slows and bits & reason.bit and not (reason.name == "power-cap" and utilization == 0)
    )
